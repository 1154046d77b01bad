"""Calibration charges every microsecond once, to what spent it, and says what it does not know."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import Calibration, calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.framework import FrameworkWork, framework_work
from analyzer.calibration.observed import observe
from analyzer.calibration.placement import Placement
from analyzer.calibration.rundir import (
    PartInfo,
    ProcessUse,
    Run,
    RunInfo,
    Width,
    Window,
    fingerprints,
    load_run,
    merge_runs,
)
from analyzer.static import Application, analyse
from mup.errors import LogError, StaleLogError
from mup.events.ids import attempt_of, child_id
from mup.events.record import CENSORED, QUEUED, Event, attempt_flag
from mup.events.sites import Site
from mup.lqn import Constant, Distribution, Model

SOURCE = """\
from mup import EP, MS, Client

class Web(MS):
    pool_size = 3

    @EP("/page/")
    def page(self, comm):
        if not comm.params:
            comm.respond("nothing", status=400)
            return
        if "quick" in comm.params:
            comm.respond("quick")
            return
        reply = comm.call("Back", "/job/", {})
        comm.respond(reply.get())

class Back(MS):
    @EP("/job/")
    def work(self, comm):
        comm.respond(sum(range(1000)))

class User(Client):
    async def scenario(self, comm):
        await self.think(0.05)
        await comm.call("Web", "/page/", {})
"""

PAGE, WORK, CYCLE = "Web/page/", "Back/job/", "User.scenario"
SLOW, QUICK = 3, 1
"""How often each path is taken in the log."""


@pytest.fixture
def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE)
    found = analyse(source)
    assert not found.errors
    return found


def site(application: Application, label: str, path: int, operation: int) -> Site:
    return application.endpoint(label).paths[path].operations[operation].site


@pytest.fixture
def write(application: Application, tmp_path: Path) -> Callable[..., Run]:
    """Write a run: SLOW pages that call Back (20 ms each), QUICK pages, one client; times are known exactly."""

    def make(
        *,
        queued_callee: bool = False,
        censored: bool = False,
        seen: int | None = None,
        retried: bool = False,
        processes: Sequence[ProcessUse] = (),
        first: int = 1000,
        **info: object,
    ) -> Run:
        run = tmp_path / "run"
        run.mkdir(exist_ok=True)
        web, back = (
            LogFile(run / "Web.0.w0.mlog", service="Web"),
            LogFile(run / "Back.0.w0.mlog", service="Back"),
        )
        front = LogFile(run / "Back.0.front.mlog", service="Back", role="front")
        client = LogFile(run / "User.client.mlog", service="User", role="client")
        scenario = application.client("User").paths[0].operations
        for k in range(SLOW + QUICK):
            t, cycle = 100.0 * k, first + k
            page = child_id(cycle, 1)
            client.add(Event.BEGIN, cycle, t, cpu=t / 10, name=CYCLE)
            client.add(Event.THINK_START, cycle, t, cpu=t / 10, site=scenario[0].site)
            client.add(Event.THINK_END, cycle, t + 50, cpu=t / 10, site=scenario[0].site)
            client.add(Event.COMM_START, cycle, t + 50, cpu=t / 10, name=PAGE, site=scenario[1].site, seq=1)
            client.add(Event.CONTACT_DEST, cycle, t + 50, cpu=t / 10, name=PAGE, seq=1)
            client.add(Event.WAIT_START, cycle, t + 50, cpu=t / 10, site=scenario[2].site, seq=1)
            if retried and k == 0:
                end = retried_page(application, web, back, page, t + 51)
            elif k < SLOW:
                end = slow_page(
                    application, web, back, front, page, t + 51, queued_callee, censored and k != seen
                )
            else:
                end = t + 53
                web.add(Event.BEGIN, page, t + 51, cpu=0, name=PAGE)
                web.add(Event.END, page, end, cpu=2, name=PAGE, site=site(application, PAGE, 1, 0))
                web.add(Event.DONE, page, end, cpu=2, name=PAGE)
            client.add(Event.COMM_FINISH, cycle, end + 1, cpu=t / 10, name=PAGE, seq=1)
            client.add(Event.WAIT_END, cycle, end + 1, cpu=t / 10, seq=1)
            client.add(Event.DONE, cycle, end + 1, cpu=t / 10, name=CYCLE)
        for log in (web, back, front, client):
            log.close()
        fields = {
            "project": "shop",
            "client": "User",
            "cores": 2,
            "parts": [PartInfo(windows=[Window(-1, 10**9)], processes=list(processes))],
            "fingerprints": fingerprints(application),
            **info,
        }
        RunInfo(**fields).save(run)  # type: ignore[arg-type]
        return load_run(run)

    return make


def slow_page(
    application: Application,
    web: LogFile,
    back: LogFile,
    front: LogFile,
    page: int,
    t: float,
    queued_callee: bool,
    censored: bool,
) -> float:
    """Write one page that calls Back; return when it responds.

    Web: 2 ms CPU and 1 ms sleep, 0.5 ms sending, waits 20 ms, 1 ms CPU, responds, 0.25 ms after.
    Back: has the request for 15 ms (5 ms of them queued if ``queued_callee``), of which 8 ms CPU and 2 ms sleep.
    """
    call, get, respond = (site(application, PAGE, 2, i) for i in range(3))
    web.add(Event.BEGIN, page, t, cpu=0, name=PAGE)
    web.add(Event.COMM_START, page, t + 3, cpu=2, name=WORK, site=call, seq=1)
    web.add(Event.CONTACT_DEST, page, t + 3.5, cpu=2.5, name=WORK, seq=1)
    web.add(Event.WAIT_START, page, t + 3.5, cpu=2.5, site=get, seq=1)
    flags = CENSORED if censored else 0
    web.add(Event.COMM_FINISH, page, t + 23.5, cpu=2.5, name=WORK, seq=1, flags=flags)
    web.add(Event.WAIT_END, page, t + 23.5, cpu=2.5, seq=1)
    web.add(Event.END, page, t + 24.5, cpu=3.5, name=PAGE, site=respond)
    web.add(Event.DONE, page, t + 24.75, cpu=3.75, name=PAGE)
    child, begin = child_id(page, 1), t + 11 if queued_callee else t + 6
    front.add(Event.ARRIVE, child, t + 6, cpu=0, name=WORK, seq=1, flags=QUEUED if queued_callee else 0)
    back.add(Event.BEGIN, child, begin, cpu=0, name=WORK)
    back.add(Event.END, child, begin + 10, cpu=8, name=WORK, site=site(application, WORK, 0, 0))
    back.add(Event.DONE, child, begin + 10, cpu=8, name=WORK)
    return t + 24.5


def retried_page(application: Application, web: LogFile, back: LogFile, page: int, t: float) -> float:
    """Write one page whose call is executed twice; return when it responds.

    As a slow page, but what Back answers after 10 ms of its own and 5 ms under way is no use. The second attempt
    leaves 17 ms after the first one.
    """
    call, get, respond = (site(application, PAGE, 2, i) for i in range(3))
    web.add(Event.BEGIN, page, t, cpu=0, name=PAGE)
    web.add(Event.COMM_START, page, t + 3, cpu=2, name=WORK, site=call, seq=1)
    web.add(Event.CONTACT_DEST, page, t + 3.5, cpu=2.5, name=WORK, seq=1)
    web.add(Event.WAIT_START, page, t + 3.5, cpu=2.5, site=get, seq=1)
    web.add(Event.COMM_FINISH, page, t + 18.5, cpu=2.5, name=WORK, seq=1)
    flags = attempt_flag(1)
    web.add(Event.COMM_START, page, t + 20, cpu=2.5, name=WORK, site=call, seq=1, flags=flags)
    web.add(Event.CONTACT_DEST, page, t + 20.5, cpu=2.5, name=WORK, seq=1, flags=flags)
    web.add(Event.COMM_FINISH, page, t + 40.5, cpu=2.5, name=WORK, seq=1, flags=flags)
    web.add(Event.WAIT_END, page, t + 40.5, cpu=2.5, seq=1)
    web.add(Event.END, page, t + 41.5, cpu=3.5, name=PAGE, site=respond)
    web.add(Event.DONE, page, t + 41.75, cpu=3.75, name=PAGE)
    for number, begin in enumerate((t + 6, t + 23)):
        child = child_id(page, attempt_of(1, number))
        back.add(Event.BEGIN, child, begin, cpu=0, name=WORK)
        back.add(Event.END, child, begin + 10, cpu=8, name=WORK, site=site(application, WORK, 0, 0))
        back.add(Event.DONE, child, begin + 10, cpu=8, name=WORK)
    return t + 41.5


def milliseconds(distribution: Distribution | None) -> float:
    assert distribution is not None
    return distribution.mean * 1e3


def exchange_of_web(model: Model) -> Distribution | None:
    entry = next(e for e in model.task("Net").entries if "@Web" in e.name)
    return entry.activities[0].delay


@pytest.mark.slow
def test_segments_split_into_processor_time_and_delay(
    application: Application, write: Callable[..., Run]
) -> None:
    """Sleeping is delay, computing is demand, and sending belongs to the registry segment."""
    entry = calibrate(write(), application, name="shop").model.task("Web").entry("/page/")
    segments = entry.paths[2]["segments"]
    times = [
        (milliseconds(entry.activity(s).demand), milliseconds(entry.activity(s).delay)) for s in segments
    ]
    assert times[0] == pytest.approx((2, 1))
    assert times[1] == pytest.approx((0, 0))
    assert times[2] == pytest.approx((1, 0))
    assert times[3] == pytest.approx((0.25, 0))
    registry = entry.activity(entry.paths[2]["registry"]["0"])
    assert (milliseconds(registry.demand), milliseconds(registry.delay)) == pytest.approx((0.5, 0))


@pytest.mark.slow
def test_probabilities_are_frequencies_and_unseen_paths_stay_unknown(
    application: Application, write: Callable[..., Run]
) -> None:
    """Three slow pages and one quick one; the bad request was never seen and says so."""
    result = calibrate(write(), application, name="shop")
    entry = result.model.task("Web").entry("/page/")
    choice = next(p for p in entry.precedences if p.fork == "or")
    assert choice.probabilities == pytest.approx((0, 0.25, 0.75))
    assert entry.activity(entry.paths[0]["segments"][0]).demand is None
    assert len(result.uncovered) == 1
    assert (result.observed, result.paths) == (4, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("queued", "expected"), [(False, 20 - 10), (True, 20 - 15)], ids=["idle", "queued"])
def test_exchange_is_what_the_callee_does_not_explain(
    application: Application, write: Callable[..., Run], queued: bool, expected: float
) -> None:
    """20 ms between contactDest and commFinish, minus the callee's end - arrive, queueing included."""
    model = calibrate(write(queued_callee=queued), application, name="shop").model
    assert milliseconds(exchange_of_web(model)) == pytest.approx(expected)


@pytest.mark.slow
def test_framework_work_is_charged_once(application: Application, write: Callable[..., Run]) -> None:
    """Front and worker time per request become demands and leave the exchange by as much."""
    cpu = {
        "front": 0.006 + 0.001,  # 2 ms per call, and 1 ms of housekeeping in the window of one second
        "worker": 3 * 0.008 + 0.003,  # what was logged, and 1 ms per call
    }
    processes = [
        ProcessUse(role=role, service="Back", pid=1, cpu=seconds, idle_rate=0.001 if role == "front" else 0)
        for role, seconds in cpu.items()
    ]
    result = calibrate(write(processes=processes), application, name="shop")
    back = result.model.task("Back")
    assert back.front is not None
    assert milliseconds(back.front.request) == pytest.approx(1)
    assert milliseconds(back.front.reply) == pytest.approx(1)
    assert milliseconds(back.entry("/job/").activities[0].demand) == pytest.approx(8 + 1)
    assert milliseconds(exchange_of_web(result.model)) == pytest.approx(10 - 2 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("short", [False, True], ids=["as logged", "short"])
def test_workers_whose_requests_take_long_are_held_by_the_front(
    application: Application, write: Callable[..., Run], short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Back has each request for 10 ms: its worker waits for the front, unless that is called short."""
    if short:
        monkeypatch.setattr("analyzer.calibration.framework.SHORT", 0.011)
    processes = [ProcessUse(role="front", service="Back", pid=1, cpu=0.006, idle_rate=0)]
    back = calibrate(write(processes=processes), application, name="shop").model.task("Back")
    assert back.front is not None
    assert back.front.holds is not short


@pytest.mark.parametrize(("share", "held"), [(0.0, True), (0.88, True), (0.89, False), (1.0, False)])
def test_nearly_all_requests_must_be_short_for_workers_to_take_them(share: float, held: bool) -> None:
    """One that is not counts as much as eight that are, as in the front."""
    work = FrameworkWork({}, {}, {}, {}, np.zeros(1), short={"A": share})
    assert work.handed_out("A") is held


def test_exchanges_are_as_frequent_as_the_requests_of_all_services(
    application: Application, write: Callable[..., Run]
) -> None:
    """A model has one task for all of them, whose rate says how warm they are; a cycle is no exchange."""
    observed = observe(write())
    work = framework_work(observed)
    assert work.exchange_rate(observed.single, 1.0) == (SLOW + QUICK) + SLOW
    assert work.rate("User", observed.single, 1.0) == SLOW + QUICK


@pytest.mark.slow
def test_housekeeping_works_in_the_background(application: Application, write: Callable[..., Run]) -> None:
    """Idle work of what is on the machine, and all that the registry did while there was a user."""
    processes = [
        ProcessUse(role="front", service="Back", pid=1, cpu=0.007, idle_rate=0.002),
        ProcessUse(role="database", service="db", pid=2, cpu=0.5, idle_rate=0.003),
        ProcessUse(role="database", service="other", pid=2, cpu=0.5, idle_rate=0.003),
        ProcessUse(role="registry", pid=3, cpu=0.010, idle_rate=0.001),
    ]
    window = Window(0, 10**9, cpu={"1": 0.007, "2": 0.5, "3": 0.010})
    run = write(parts=[PartInfo(windows=[window], processes=processes)])
    found = calibrate(run, application, name="shop").model
    assert found.processor("host").background == pytest.approx(0.002 + 0.003 + 0.010)
    away = Placement(tasks={"Back": "elsewhere"}, machines={"elsewhere": None})
    placed = calibrate(run, application, name="shop", placement=away).model
    assert placed.processor("host").background == pytest.approx(0.003 + 0.010)
    assert placed.processor("elsewhere").background == 0
    without = calibrate(run, application, name="shop", components=Components(background=False)).model
    assert without.processor("host").background == 0


@pytest.mark.slow
def test_replies_picked_up_late_do_not_count(application: Application, write: Callable[..., Run]) -> None:
    """A censored reply contains the caller's own work; with nothing else the exchange is 0 and a warning says so."""
    result = calibrate(write(censored=True), application, name="shop")
    assert exchange_of_web(result.model) == Constant(0.0)
    assert any("picked up late" in w for w in result.warnings)


@pytest.mark.slow
def test_replies_that_only_bursts_see_in_time(application: Application, write: Callable[..., Run]) -> None:
    """Several users make other replies later: what one user's rounds do not tell is not left unmeasured."""
    rounds = [("cold", 0, 100), ("hot", 100, 200), ("burst", 200, 300)]
    windows = [Window(begin * 10**6, end * 10**6, phase=name) for name, begin, end in rounds]  # type: ignore[arg-type]
    result = calibrate(
        write(censored=True, seen=2, parts=[PartInfo(windows=windows)]), application, name="shop"
    )
    assert exchange_of_web(result.model) == Constant(0.0)
    assert any("picked up late" in w for w in result.warnings)


@pytest.mark.slow
def test_a_call_made_again_is_executed_again(application: Application, write: Callable[..., Run]) -> None:
    """The model's call is made as often as the callee executed it; waiting between attempts is a delay."""
    result = calibrate(write(retried=True), application, name="shop")
    entry = result.model.task("Web").entry("/page/")
    communication = entry.activity(entry.paths[2]["communication"]["0"])
    counts = {call.task: call.count for call in communication.calls}
    assert counts["Net"] == Constant(1.0)
    assert counts["Back"] is not None
    assert counts["Back"].mean == pytest.approx(4 / 3)
    # 17 ms from one attempt to the next, of which Back had the request for 10, in one of three calls.
    assert milliseconds(communication.delay) == pytest.approx(7 / 3)
    assert milliseconds(exchange_of_web(result.model)) == pytest.approx(20 - 10)
    registry = entry.activity(entry.paths[2]["registry"]["0"])
    assert milliseconds(registry.demand) == pytest.approx(0.5)
    assert any("1 of 3 calls of Back/job/" in w and "1.333 executions" in w for w in result.warnings)


@pytest.mark.slow
def test_everything_runs_on_the_host_of_the_run(application: Application, write: Callable[..., Run]) -> None:
    """Services and the load generator share one processor-sharing processor; Net has none."""
    model = calibrate(write(), application, name="shop").model
    assert {t.name: t.processor for t in model.tasks} == {
        "User": "host",
        "Web": "host",
        "Back": "host",
        "Net": None,
    }
    assert (model.processor("host").cores, model.processor("host").discipline) == (2, "ps")


def test_changed_code_is_recognised(application: Application, write: Callable[..., Run]) -> None:
    """A log of other code is refused with the endpoint's name; comments do not matter."""
    run = write()
    file = application.root / "services.py"
    file.write_text("# a comment\n" + SOURCE.replace("sum(range(1000))", "sum(range(9999))"))
    with pytest.raises(StaleLogError, match="Back/job/ changed") as caught:
        calibrate(run, analyse(application.root), name="shop")
    assert "Web/page/" not in caught.value.message
    partial = calibrate(run, analyse(application.root), name="shop", partial=True)
    assert partial.model.task("Back").entry("/job/").activities[0].demand is None
    page = partial.model.task("Web").entry("/page/")
    assert page.activity(page.paths[2]["segments"][0]).demand is not None


def test_other_think_times_need_no_other_log(application: Application, write: Callable[..., Run]) -> None:
    """What the source states is taken from there; the log shows the same work."""
    run = write()
    before = calibrate(run, application, name="shop").model
    file = application.root / "services.py"
    assert "self.think(0.05)" in SOURCE
    file.write_text(SOURCE.replace("self.think(0.05)", "self.think(2.5)"))
    after = calibrate(run, analyse(application.root), name="shop").model
    think = next(a for a in after.task("User").entries[0].activities if a.kind == "think")
    assert milliseconds(think.delay) == pytest.approx(2500)
    assert after.task("Web").entry("/page/").activities == before.task("Web").entry("/page/").activities


@pytest.mark.slow
def test_each_run_counts_for_what_has_not_changed(
    application: Application, write: Callable[..., Run], tmp_path: Path
) -> None:
    """Two runs, the callee changed in between: its times are from the newer one, the caller's from both."""
    old = write()
    old.path.rename(tmp_path / "old")
    file = application.root / "services.py"
    # Moved lines change nothing: sites are found by their place in the function.
    file.write_text("# a comment\n\n" + SOURCE.replace("sum(range(1000))", "sum(range(9999))"))
    now = analyse(application.root)
    new = write(first=2000, fingerprints=fingerprints(now))
    new.path.rename(tmp_path / "new")
    run = merge_runs([tmp_path / "new", tmp_path / "old"], fingerprints(now))
    result = calibrate(run, now, name="shop")
    counts = {c.label: c.executions for c in result.coverage}
    assert counts == {CYCLE: 2 * (SLOW + QUICK), PAGE: 2 * (SLOW + QUICK), WORK: SLOW}
    assert [w for w in result.warnings if "left out" in w] == [
        "old is older than the source of Back/job/: what it shows of that is left out"
    ]
    assert milliseconds(result.model.task("Back").entry("/job/").activities[0].demand) == pytest.approx(8)


def test_a_log_that_fits_no_path_is_refused(application: Application, write: Callable[..., Run]) -> None:
    """Without fingerprints the sites themselves tell that the log belongs to other code."""
    run = write(fingerprints={})
    moved = SOURCE.replace('comm.respond("quick")', 'len("x"); comm.respond("quick")')
    (application.root / "services.py").write_text(moved)
    with pytest.raises(LogError, match="Web/page/ fit no path"):
        calibrate(run, analyse(application.root), name="shop")


@pytest.mark.slow
def test_a_truncated_log_is_used_and_named(application: Application, write: Callable[..., Run]) -> None:
    """A process that was killed costs the tail of its log, not the run."""
    run = write()
    file = run.path / "Web.0.w0.mlog"
    file.write_bytes(file.read_bytes()[:-17])
    result: Calibration = calibrate(load_run(run.path), application, name="shop")
    assert any("Web.0.w0.mlog is cut off" in w for w in result.warnings)


@pytest.mark.slow
def test_badly_known_times_are_two_lines_however_many_they_are(
    application: Application, write: Callable[..., Run]
) -> None:
    """The worst are named first, the others counted; what is known to 1 % is not mentioned."""

    def known(half_width: float | None) -> Width:
        return Width(mean=2.0, half_width=half_width, executions=40, batches=9)

    widths = {
        f"Web/{name}/": known(half) for name, half in zip("abcde", (0.03, 0.02, 0.5, 0.1, 0.2), strict=True)
    }
    widths |= {"Back/x/": known(None)}
    found = calibrate(write(widths=widths), application, name="shop")
    few, wide = [w for w in found.warnings if "known" in w]
    assert few.startswith(
        "too few rounds to tell how well the execution time is known: Back/x/ (40 executions);"
    )
    assert wide == (
        "execution times known to worse than +-1%: Web/c/ +-25.0%, Web/e/ +-10.0%, Web/d/ +-5.0% and 1 more;"
        " explore for longer to narrow them"
    )


@pytest.mark.parametrize("damage", ["missing", "empty", "broken"])
def test_an_unusable_run_is_one_message(tmp_path: Path, damage: str) -> None:
    """No run.json, no events, or a broken file: the directory is named with the remedy."""
    run = tmp_path / "run"
    run.mkdir()
    if damage == "empty":
        RunInfo(project="shop").save(run)
    elif damage == "broken":
        (run / "run.json").write_text("{")
    with pytest.raises(LogError, match="run") as caught:
        load_run(run)
    assert "mup explore" in caught.value.hint
