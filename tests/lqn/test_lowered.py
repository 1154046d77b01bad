"""The meaning of a model stands in one place."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest

from mup.errors import SimulationError, UncalibratedError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Forward,
    Front,
    Geometric,
    Model,
    Precedence,
    Processor,
    Task,
)
from mup.lqn.lowered import (
    Choice,
    Fork,
    Graph,
    Loop,
    Lowered,
    Then,
    check_sources,
    has_front,
    is_limited,
    machines,
    onward,
    pinned_together,
    requests_of,
    slices_of,
    sources_of,
    speeds_of,
    tasks_behind,
    tasks_with_sources,
    wholes,
)

ROOT = Path(__file__).resolve().parents[2]
READERS = {
    "mup/lqn/lowered/": "says what they mean",
    "mup/lqn/validation.py": "the rules of a model, whether a request can get there or not",
    "mup/lqn/graph_rules.py": "the rules of a graph, whether a request can get there or not",
    "mup/lqn/json_io.py": "writes files",
    "mup/lqn/json_reader.py": "makes models of files",
    "mup/lqn/lqnx/": "writes and reads another format, with rules of its own",
    "mup/lqn/drawing/": "pictures show what is written",
    "mup/lqn/comparison.py": "compares what is written",
    "mup/lqn/matching.py": "renames what is written",
    "mup/lqn/path_steps.py": "names what is written",
    "mup/lqn/statistics.py": "counts what is written",
    "mup/lqn/refs.py": "names what is written",
    "mup/lqn/routing_edits.py": "changes a probability",
    "mup/lqn/uncertainty.py": "changes probabilities and counts",
    "simulator/analytic/candidates/changes.py": "compares entries of two models whole",
    "analyzer/static/translate.py": "makes models of source code",
    "analyzer/effect/from_model.py": "takes probabilities and counts of the same arcs of another model",
    "analyzer/calibration/callsites.py": "makes an entry for each place that calls it",
}
"""Files that read ``precedences`` or ``forwards``, and why."""
READ = {"precedences", "forwards"}
PLANS = "simulator/analytic/"
"""Where ``plan.forwards`` are the plans of the analytic estimate, made of what is lowered."""


def _reads(path: Path) -> bool:
    place, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if not any(f".{name}" in text for name in READ):
        return False
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute) or node.attr not in READ:
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        plan = node.attr == "forwards" and owner == "plan" and place.startswith(PLANS)
        if isinstance(node.ctx, ast.Load) and not plan:
            return True
    return False


def test_graphs_are_walked_in_one_place() -> None:
    """What reads arcs and forwards itself is listed with a reason; the rest asks for what they mean."""
    packages = ("mup", "mup_registry", "simulator", "analyzer")
    files = [path for name in packages for path in (ROOT / name).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in files if _reads(path)}
    allowed = {file: next((r for r in READERS if file.startswith(r)), "") for file in found}
    assert sorted(file for file, reader in allowed.items() if not reader) == []
    assert set(READERS) == set(allowed.values())  # none of them is out of date


def _entry(names: str, *arcs: Precedence, **fields: Any) -> Entry:
    """An entry of activities that do nothing, or as ``activities`` says."""
    changed = {a.name: a for a in fields.pop("activities", ())}
    none = Constant(0.0)
    activities = tuple(changed.get(n, Activity(name=n, demand=none, delay=none)) for n in names)
    return Entry(name="e", start=names[0], activities=activities, precedences=arcs, **fields)


def _p(pre: str, post: str, **fields: Any) -> Precedence:
    return Precedence(pre=tuple(pre), post=tuple(post), **fields)


def test_only_what_a_request_can_get_to_is_there() -> None:
    """Alternatives of probability 0, bodies of count 0, and all behind them are left out."""
    entry = _entry(
        "abcdefg",
        _p("a", "bc", fork="or", probabilities=(0.0, 1.0)),
        _p("b", "d"),
        _p("c", "efg", fork="loop", counts=(Constant(0), Geometric(3.0))),
    )
    graph = Graph(entry)
    assert graph.reached == {"a", "c", "f", "g"}
    assert graph.visits == {"a": 1, "c": 1, "f": 3, "g": 1}
    assert graph.after["a"].then == Choice((("c", 1.0),))
    assert set(graph.after) == {"a", "c"}
    assert graph.ends == {"f", "g"}


def test_the_flow_that_holds_the_thread() -> None:
    """It goes on as the first branch; what another branch merges into belongs to that one."""
    entry = _entry(
        "abcdefg",
        _p("a", "bc", fork="and"),
        _p("b", "de", fork="or", probabilities=(0.0, 1.0)),
        _p("dc", "f", join="or"),
        _p("e", "g"),
        activities=(Activity(name="f", replies=True),),
    )
    graph = Graph(entry)
    assert graph.after["a"].then == Fork("b", ("c",))
    assert graph.after["e"].then == Then("g")
    assert graph.carried == {"a", "b", "e", "g"}
    assert graph.flow_from("c") == {"c", "f"}
    assert graph.replying == {"f"}
    assert graph.replies_elsewhere


def test_a_reply_that_is_never_sent_does_not_count() -> None:
    """A branch of probability 0 replies: the reply leaves at the end, as without a mark."""
    entry = _entry(
        "abcde",
        _p("a", "bc", fork="and"),
        _p("c", "de", fork="or", probabilities=(0.0, 1.0)),
        activities=(Activity(name="d", replies=True),),
    )
    graph = Graph(entry)
    assert graph.replying == frozenset()
    assert not graph.replies_elsewhere


def test_a_join_belongs_to_the_last_fork_its_branches_have_in_common() -> None:
    """Branches of an outer fork that meet after an inner one."""
    entry = _entry(
        "abcdefgh",
        _p("a", "bc", fork="and"),
        _p("b", "de", fork="and"),
        _p("de", "f", join="and"),
        _p("fc", "g", join="and"),
        _p("g", "h"),
    )
    graph = Graph(entry)
    assert graph.forks == {2: 1, 3: 0}
    assert [(join.needed, join.quorum) for join in graph.joins.values()] == [(2, False)] * 2


@pytest.mark.parametrize(("quorum", "often"), [(1, 1.0), (None, 0.5)])
def test_a_join_happens_as_often_as_its_last_needed_branch(quorum: int | None, often: float) -> None:
    """One of the branches comes every second time."""
    entry = _entry(
        "abcdef",
        _p("a", "bc", fork="and"),
        _p("c", "de", fork="or", probabilities=(0.5, 0.5)),
        _p("bd", "f", join="and", quorum=quorum),
    )
    assert Graph(entry).visits["f"] == often


def test_a_join_of_a_branch_that_never_comes() -> None:
    """What is behind it never runs, and its branches end there."""
    entry = _entry(
        "abcdefg",
        _p("a", "bcg", fork="and"),
        _p("c", "de", fork="or", probabilities=(0.0, 1.0)),
        _p("dg", "f", join="and"),
    )
    graph = Graph(entry)
    assert graph.visits == {"a": 1, "b": 1, "c": 1, "e": 1, "g": 1}
    assert graph.ends == {"b", "e", "g", "f"}
    assert [arc.number for arc in graph.top.arcs] == [0, 1]


def test_bodies_are_mixed_if_all_that_are_repeated_are_memoryless() -> None:
    """A body of count 0 beside them does not matter."""
    counts = (Geometric(2.0), Constant(0), Geometric(1.0))
    mixed = Graph(_entry("abcd", _p("a", "bcd", fork="loop", counts=counts))).after["a"].then
    assert isinstance(mixed, Loop)
    assert (mixed.mixed, mixed.continuation) == (True, None)
    assert [body.start for body in mixed.bodies] == ["b", "d"]
    turns = (Geometric(2.0), Constant(2), Geometric(1.0))
    in_turn = Graph(_entry("abcde", _p("a", "bcde", fork="loop", counts=turns))).after["a"].then
    assert isinstance(in_turn, Loop)
    assert (in_turn.mixed, in_turn.continuation) == (False, "e")


def test_interleaved_calls_cut_the_demand() -> None:
    """Into one slice more than there are calls; drawn if their counts are geometric."""

    def cut(*counts: Constant | Geometric, interleaved: bool = True) -> tuple[float, bool] | None:
        calls = tuple(Call(task="B", entry="b", count=count) for count in counts)
        activity = Activity(name="a", calls=calls, interleaved=interleaved)
        slices = slices_of(activity, requests_of(activity))
        return None if slices is None else (slices.number, slices.drawn)

    assert cut(Constant(2), Constant(0), Constant(1)) == (4, False)
    assert cut(Geometric(2.0), Geometric(1.5)) == (4.5, True)
    assert cut(Constant(0)) == (1, False)
    assert cut() is None
    assert cut(Constant(2), interleaved=False) is None


def _clients(*calls: Call, **fields: Any) -> Task:
    go = Activity(name="go", demand=Constant(0.0), delay=Constant(0.1), calls=calls)
    entry = Entry(name="cycle", start="go", activities=(go,))
    return Task(name="U", role="reference", entries=(entry,), **fields)


def test_load_comes_from_clients_and_from_outside() -> None:
    """Reference tasks, and entries with arrivals; without any there is nothing to run."""
    open_ = _entry("a", arrivals=Exponential(0.5))
    model = Model(name="m", tasks=(_clients(Call(task="A", entry="e")), Task(name="A", entries=(open_,))))
    assert [(s.key, s.is_open, s.rate) for s in sources_of(model)] == [
        (("U", "cycle"), False, 0.0),
        (("A", "e"), True, 2.0),
    ]
    assert tasks_with_sources(model.tasks) == ["U", "A"]
    with pytest.raises(SimulationError, match="nothing would ever happen"):
        check_sources(Model(name="m", tasks=(Task(name="A", entries=(_entry("a"),)),)))


def test_what_is_behind_a_task() -> None:
    """Whatever it calls or hands on to, however seldom."""
    tasks = {
        "A": Task(
            name="A", entries=(_entry("a", forwards=(Forward(task="B", entry="e", probability=0.0),)),)
        ),
        "B": Task(
            name="B",
            entries=(_entry("a", activities=(Activity(name="a", calls=(Call(task="C", entry="e"),)),)),),
        ),
        "C": Task(name="C", entries=(_entry("a"),)),
        "D": Task(name="D", entries=(_entry("a"),)),
    }
    assert tasks_behind(["A"], tasks) == {"A", "B", "C"}
    assert onward(tasks["A"].entries[0]) == ()


def test_everything_unmeasured_is_listed_at_once() -> None:
    """Also what is behind an unknown count, but nothing behind a probability of 0: in every engine alike."""
    from simulator.analytic import estimate
    from simulator.fluid import fluid
    from simulator.program import compile_model

    unknown = _entry("x", activities=(Activity(name="x", delay=Constant(0.0)),))
    graph = _entry(
        "abcd",
        _p("a", "bc", fork="or", probabilities=(1.0, 0.0)),
        _p("b", "d", fork="loop", counts=(None,)),
        activities=(
            Activity(name="c"),
            Activity(name="d", demand=Constant(0.1), calls=(Call(task="B", entry="e", count=None),)),
        ),
    )
    model = Model(
        name="m",
        tasks=(
            _clients(Call(task="A", entry="e")),
            Task(name="A", entries=(graph,), front=Front(request=None, reply=Constant(0.0))),
            Task(name="B", entries=(unknown,)),
            Task(name="C", entries=(unknown,)),
        ),
    )
    paths = [
        "tasks['A'].entries['e'].activities['d'].delay",
        "tasks['A'].entries['e'].activities['d'].calls[0].count",
        "tasks['A'].entries['e'].precedences[1].counts[0]",
        "tasks['A'].front.request",
        "tasks['B'].entries['e'].activities['x'].demand",
    ]
    assert Lowered(model).unmeasured() == paths
    messages = set()
    for engine in (compile_model, estimate, fluid):
        with pytest.raises(UncalibratedError) as caught:
            engine(model)
        messages.add(str(caught.value))
    (message,) = messages
    assert all(path in message for path in paths)


def test_a_long_list_of_unmeasured_numbers_is_cut() -> None:
    """Twenty paths are enough to see where one stands."""
    names = "abcdefghijklmnopqrstuvwxyz"
    arcs = [_p(one, other) for one, other in itertools.pairwise(names)]
    body = _entry(names, *arcs, activities=tuple(Activity(name=n, delay=Constant(0.0)) for n in names))
    model = Model(name="m", tasks=(_clients(Call(task="A", entry="e")), Task(name="A", entries=(body,))))
    with pytest.raises(UncalibratedError, match=r"26 numbers(.|\n)*\.\.\. and 6 more"):
        Lowered(model).check_measured()


def test_a_front_is_passed_by_requests_to_services() -> None:
    """One without times is never in the way, and clients have none."""
    timed = Front(request=Constant(0.1), reply=Constant(0.0))
    free = Front(request=Constant(0.0), reply=Constant(0.0))
    assert has_front(Task(name="A", entries=(_entry("a"),), front=timed))
    assert has_front(Task(name="A", entries=(_entry("a"),), front=Front(request=None, reply=None)))
    assert not has_front(Task(name="A", entries=(_entry("a"),), front=free))
    assert not has_front(Task(name="A", entries=(_entry("a"),)))
    assert not has_front(_clients(front=timed))


def test_parts_on_one_core_share_it() -> None:
    """Those pinned to the same core, modulo the cores there are."""
    host = Processor(name="host", cores=2, discipline="cores")
    parts = [Processor(name=f"p{core}", parent="host", core=core) for core in (0, 1, 2)]
    model = Model(name="m", processors=(host, *parts), tasks=(_clients(),))
    assert {place: [p.name for p in on] for place, on in pinned_together(model).items()} == {
        ("host", 0): ["p0", "p2"]
    }
    assert [p.name for p in machines(model, "p1")] == ["p1", "host"]
    assert list(machines(model, None)) == []


def test_what_can_be_waited_for() -> None:
    """Processors with fewer cores than threads there can be, their parts, and what these are parts of."""
    from simulator.program import compile_model

    processors = (
        Processor(name="free", cores=float("inf")),
        Processor(name="delay", discipline="infinite", cores=1),
        Processor(name="one", cores=1),
        Processor(name="whole", discipline="infinite", speed=2.0),
        Processor(name="part", cores=2, parent="whole", speed=1.5),
    )
    model = Model(name="m", processors=processors, tasks=(_clients(),))
    assert [p.name for p in processors if is_limited(p)] == ["one", "part"]
    assert wholes(model) == {"whole"}
    assert speeds_of(model) == {"free": 1.0, "delay": 1.0, "one": 1.0, "whole": 2.0, "part": 3.0}
    assert {server.name for server in compile_model(model).servers} == {"one", "whole", "part"}


def test_every_rule_has_its_test() -> None:
    """The table of the rules names tests, and files, that exist."""
    table = (ROOT / "mup" / "lqn" / "lowered" / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    homes = {"model.py": "mup/lqn", "instructions.py": "simulator/program"}
    for _, _, decided, tested in rows:
        home = decided.strip(" `")
        assert (ROOT / homes.get(home, "mup/lqn/lowered") / home).is_file(), home
        file, _, name = tested.strip(" `").partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), tested


def test_engines_agree_about_a_quorum_of_rare_branches() -> None:
    """What is behind it is asked as often as its last needed branch arrives: every time, not every second."""
    from simulator import simulate
    from simulator.analytic import estimate

    asks = Activity(name="f", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="B", entry="e"),))
    side = Activity(name="c", demand=Constant(0.0), delay=Exponential(0.2))
    body = _entry(
        "abcdef",
        _p("a", "bc", fork="and"),
        _p("c", "de", fork="or", probabilities=(0.5, 0.5)),
        _p("bd", "f", join="and", quorum=1),
        activities=(asks, side),
    )
    work = _entry("w", activities=(Activity(name="w", demand=Exponential(0.01), delay=Constant(0.0)),))
    model = Model(
        name="m",
        tasks=(
            _clients(Call(task="A", entry="e"), threads=2, think=Exponential(1.0)),
            Task(name="A", entries=(body,), threads=float("inf")),
            Task(name="B", entries=(work,), threads=float("inf")),
        ),
    )
    assert Lowered(model).requests_per_cycle()["U", "cycle"]["B", "e"] == 1
    seen = simulate(model, horizon=2000.0, seed=1)
    cycles = seen.cycle.throughput.mean
    assert seen.entries["B.e"].throughput.mean == pytest.approx(cycles, rel=0.02)
    found = estimate(model)
    assert found.cycle.throughput is not None
    assert found.entries["B.e"][0] == pytest.approx(found.cycle.throughput, rel=1e-6)
