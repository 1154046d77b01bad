"""When a run knows enough: widths per endpoint and path, coverage of paths."""

import textwrap

import pytest

from analyzer.calibration.executions import Execution, Moment, Operation, Step
from analyzer.calibration.rundir import Window
from analyzer.calibration.stop_rule import Knowledge, State
from analyzer.static import analyse
from analyzer.static.application import Application

SOURCE = """
from mup import EP, MS, Client, Communication

class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        if comm.params["x"]:
            comm.call("B", "/b/", {}).get()
            comm.respond(1)
        else:
            comm.respond(2)

    @EP("/many/")
    def many(self, comm: Communication) -> None:
        for item in comm.params["items"]:
            comm.call("B", "/b/", {"item": item}).get()
        comm.respond(3)

class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(4)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(1.0)
        await comm.call("A", "/a/", {})
"""
SECOND = 10**9


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """A service with a choice, a loop without a visible bound, and a callee."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "services.py").write_text(textwrap.dedent(SOURCE))
    return analyse(folder)


class Bench:
    """Makes executions that take the paths of the source, ten rounds of one second each."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.knowledge = Knowledge(application, "User")
        self.rounds = {n: Window(n * SECOND, (n + 1) * SECOND - 1) for n in range(10)}
        self.count = 0

    def add(
        self, label: str, path: int, round_: int, milliseconds: float, *, repeat: int = 1, at: float = 0.5
    ) -> None:
        """Add an execution in a round; a loop is passed ``repeat`` times."""
        begin = int((round_ + at) * SECOND)
        end = begin + int(milliseconds * 1e6)
        self.count += 1
        execution = Execution(self.count, label, "worker", label[0], 0, Moment(begin, 0))
        flat = []
        for operation in self.application.endpoint(label).paths[path].operations:
            flat += [*operation.bodies[0].operations] * repeat if operation.op == "loop" else [operation]
        for seq, o in enumerate(flat):
            if o.op == "call":
                execution.operations[seq] = Operation(seq, o.target, execution.begin)
            site = (o.site.file, o.site.function, o.site.ordinal)
            execution.steps.append(Step(o.op, site, seq, execution.begin, execution.begin))
        execution.end = execution.done = Moment(end, 0)
        self.knowledge.add([execution], self.rounds)

    def state(self) -> State:
        """Return what even rounds (counting) and odd ones (with think times) tell."""
        return self.knowledge.state([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])


@pytest.fixture
def bench(application: Application) -> Bench:
    """Nothing known yet."""
    return Bench(application)


def test_nothing_seen_is_never_enough(bench: Bench) -> None:
    """Before the first execution the widest interval is unknown, and every path is missing."""
    state = bench.state()
    assert state.worst is None
    assert (state.seen, state.total) == (0, 5)


def test_one_batch_per_round(bench: Bench) -> None:
    """Five rounds with means 10..14 ms: the half-width is that of five values, by hand."""
    for n, ms in zip((0, 2, 4, 6, 8), (10, 11, 12, 13, 14), strict=True):
        bench.add("B/b/", 0, n, ms)
    width = bench.state().widths["B/b/"]
    assert width.mean == pytest.approx(0.012)
    assert width.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5 * 1e-3, rel=1e-4)
    assert (width.batches, width.executions) == (5, 5)
    assert bench.state().worst == pytest.approx(width.half_width / 0.012)


def test_phases_are_kept_apart(bench: Bench) -> None:
    """Rounds with think times have widths of their own and do not count; coverage is of both."""
    for n in range(10):
        bench.add("A/a/", 1, n, 10 if n % 2 == 0 else 30)
    bench.add("A/a/", 0, 1, 30)
    state = bench.state()
    assert state.widths["A/a/"].mean == pytest.approx(0.01)
    assert state.cold_widths["A/a/"].mean == pytest.approx(0.03)
    taken, other = state.paths["A/a/"]
    assert (taken.executions, other.executions) == (1, 10)
    assert taken.hot is None
    assert other.hot is not None
    assert state.worst == pytest.approx(0, abs=1e-9)


def test_a_path_has_to_be_known_in_proportion_to_its_share(bench: Bench) -> None:
    """A tenth of the executions take a path known to +-50 %: the endpoint is not known to 1 %."""
    for n, ms in zip((0, 2, 4, 6, 8), (5, 15, 10, 5, 15), strict=True):
        for _ in range(9):
            bench.add("A/a/", 1, n, 10)
        bench.add("A/a/", 0, n, ms)
    state = bench.state()
    rare = state.paths["A/a/"][0].hot
    assert rare is not None
    assert rare.half_width is not None
    assert state.worst is not None
    assert state.worst >= 0.1 * rare.half_width / state.widths["A/a/"].mean


def test_a_path_seen_in_two_rounds_only_is_not_known(bench: Bench) -> None:
    """Two batches have no interval, so the run goes on, and the endpoint is named."""
    for n in (0, 2, 4, 6, 8):
        bench.add("A/a/", 1, n, 10)
    bench.add("A/a/", 0, 0, 10)
    bench.add("A/a/", 0, 2, 10)
    assert bench.state().worst is None
    assert bench.state().widest == "A/a/"


def test_loops_may_repeat_any_number_of_times(bench: Bench) -> None:
    """0, 1 and 7 iterations are the same path."""
    for repeat in (0, 1, 7):
        bench.add("A/many/", 0, 0, 10, repeat=repeat)
    state = bench.state()
    assert sum(use.executions for use in state.paths["A/many/"]) == 3
    assert not state.unmatched


def test_executions_across_the_end_of_a_round_do_not_count(bench: Bench) -> None:
    """An execution belongs to a round only if it begins and ends in it."""
    bench.add("B/b/", 0, 0, 200, at=0.9)
    bench.add("B/b/", 0, 9, 100, at=2.5)
    assert not bench.state().widths


def test_other_code_is_counted_as_unmatched(bench: Bench) -> None:
    """Operations that are on no path of the source: the state says how many executions did them."""
    execution = Execution(1, "B/b/", "worker", "B", 0, Moment(1, 0), end=Moment(2, 0), done=Moment(2, 0))
    execution.steps.append(Step("respond", ("services.py", "B.b", 99), 0, Moment(1, 0), Moment(1, 0)))
    bench.knowledge.add([execution], bench.rounds)
    assert bench.state().unmatched == {"B/b/": 1}
