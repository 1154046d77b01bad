"""Endpoints that take longer for some callers than for others have times per caller in the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.components import ALL
from analyzer.calibration.executions import Execution, Moment, Step
from analyzer.calibration.observed import Observed, Sample
from analyzer.calibration.own_times import OwnTimes, own_time, times_differ
from analyzer.calibration.rundir import PartInfo, Run, RunInfo, Window, fingerprints, load_run
from analyzer.calibration.terms import Terms, of_sample
from analyzer.calibration.variant_times import Together
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event
from mup.lqn import Activity, ActivityRef, Model

SOURCE = """\
from mup import EP, MS

class Web(MS):
    @EP("/few/")
    def few(self, comm):
        comm.respond(comm.call("Back", "/pictures/", {"count": 3}).get())

    @EP("/many/")
    def many(self, comm):
        comm.respond(comm.call("Back", "/pictures/", {"count": 20}).get())

class Back(MS):
    @EP("/pictures/")
    def pictures(self, comm):
        comm.respond(list(range(comm.params["count"])))
"""
PICTURES = "Back/pictures/"
ROUND, PAGES = 10_000.0, 25
"""Milliseconds of a round, and how often each page is asked for in it."""
COLDER = 1.5
"""Factor on processor times of cold rounds."""


@pytest.fixture
def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE, encoding="utf-8")
    found = analyse(source)
    assert not found.errors
    return found


@pytest.fixture
def write(application: Application, tmp_path: Path) -> Callable[..., Run]:
    """Write a run: pictures take some ms on a core and half as long beside it, depending on the page."""

    def make(**milliseconds: float) -> Run:
        run = tmp_path / "run"
        run.mkdir()
        draw = random.Random(1)
        web = LogFile(run / "Web.0.w0.mlog", service="Web")
        back = LogFile(run / "Back.0.w0.mlog", service="Back")
        request, windows = 0, []
        for number, phase in enumerate(("hot", "cold") * 4):
            t = ROUND * number
            # A cold round has as many requests in three times as long.
            pause = ROUND / 2 / PAGES / 2 / (3 if phase == "hot" else 1)
            start = t
            for _ in range(PAGES):
                for page, nominal in milliseconds.items():
                    request += 1
                    work = nominal * draw.uniform(0.9, 1.1) * (COLDER if phase == "cold" else 1.0)
                    _page(application, web, back, request, t, f"Web/{page}/", work, nominal / 2)
                    t += pause
            windows.append(Window(round(start * 1e6), round(t * 1e6), phase=phase))  # type: ignore[arg-type]
        web.close()
        back.close()
        info = RunInfo(
            project="shop", cores=2, parts=[PartInfo(windows=windows)], fingerprints=fingerprints(application)
        )
        info.save(run)
        return load_run(run)

    return make


def _page(
    application: Application,
    web: LogFile,
    back: LogFile,
    request: int,
    t: float,
    page: str,
    work: float,
    delay: float,
    clock: float = 0.0,
) -> None:
    """Write one page; all times in milliseconds. Its own work is 1 ms, the network takes 2 ms."""
    call, get, respond = (operation.site for operation in application.endpoint(page).paths[0].operations)
    (answer,) = (operation.site for operation in application.endpoint(PICTURES).paths[0].operations)
    child, took = child_id(request, 1), work + delay
    web.add(Event.BEGIN, request, t, cpu=0, name=page)
    web.add(Event.COMM_START, request, t + 1, cpu=1, name=PICTURES, site=call, seq=1)
    web.add(Event.CONTACT_DEST, request, t + 1, cpu=1, name=PICTURES, seq=1)
    web.add(Event.WAIT_START, request, t + 1, cpu=1, site=get, seq=1)
    web.add(Event.COMM_FINISH, request, t + 3 + took, cpu=1, name=PICTURES, seq=1)
    web.add(Event.WAIT_END, request, t + 3 + took, cpu=1, seq=1)
    web.add(Event.END, request, t + 3 + took, cpu=1, name=page, site=respond)
    web.add(Event.DONE, request, t + 3 + took, cpu=1, name=page)
    back.add(Event.BEGIN, child, t + 2, cpu=clock, name=PICTURES)
    back.add(Event.END, child, t + 2 + took, cpu=clock + work, name=PICTURES, site=answer)
    back.add(Event.DONE, child, t + 2 + took, cpu=clock + work, name=PICTURES)


def called_by(model: Model, page: str) -> tuple[str, Activity]:
    """Return the entry that makes a page's pictures, and what it does first."""
    calls = [c for a in model.task("Web").entry(page).activities for c in a.calls if c.task == "Back"]
    (call,) = calls
    return call.entry, model.task("Back").entry(call.entry).activities[0]


def milliseconds(activity: Activity) -> tuple[float, float]:
    assert activity.demand is not None
    assert activity.delay is not None
    return 1e3 * activity.demand.mean, 1e3 * activity.delay.mean


def test_callers_whose_calls_overlap_on_an_event_loop_have_delays_of_those_that_do_not(
    tmp_path: Path,
) -> None:
    """What one of two calls waits for the other is no delay of theirs; a simulation makes them wait anew."""
    source, run = tmp_path / "source", tmp_path / "run"
    source.mkdir()
    run.mkdir()
    services = SOURCE.replace("class Back(MS):", 'class Back(MS):\n    runtime = "async"')
    (source / "services.py").write_text(services.replace("def pictures", "async def pictures"))
    application = analyse(source)
    web = LogFile(run / "Web.0.w0.mlog", service="Web")
    back = LogFile(run / "Back.0.w0.mlog", service="Back")
    work, delay, t = 2.0, 1.0, 0.0
    for request in range(1, 161, 4):
        _page(application, web, back, request, t, "Web/few/", work, delay)
        _page(application, web, back, request + 1, t + 100, "Web/many/", 10 * work, 10 * delay)
        # Two that end at once: the first one's clock runs on while the second one works.
        _page(application, web, back, request + 2, t + 200, "Web/few/", 2 * work, delay)
        _page(application, web, back, request + 3, t + 200 + work, "Web/few/", work, delay, clock=work)
        t += 300
    web.close()
    back.close()
    parts = [PartInfo(windows=[Window(0, round(1e6 * t), phase="hot")])]
    RunInfo(project="shop", cores=2, parts=parts, fingerprints=fingerprints(application)).save(run)
    model = calibrate(load_run(run), application, name="shop").model
    for page, times in (("/few/", 1), ("/many/", 10)):
        demand, seconds = milliseconds(called_by(model, page)[1])
        assert demand == pytest.approx(times * work, rel=0.02)
        assert seconds == pytest.approx(times * delay, rel=0.02)


@pytest.mark.parametrize("skip", [[], [PICTURES]], ids=["analysed", "as-a-whole"])
def test_each_caller_meets_the_time_of_its_own_calls(
    application: Application, write: Callable[..., Run], skip: list[str]
) -> None:
    """Demand, delay and load dependence are those of the executions it caused; the mean of both describes neither."""
    model = calibrate(write(few=2.0, many=20.0), analyse(application.root, skip=skip), name="shop").model
    names = set()
    load_dependence = model.task("Back").load_dependence
    assert load_dependence is not None
    for page, work in (("/few/", 2.0), ("/many/", 20.0)):
        entry, activity = called_by(model, page)
        names.add(entry)
        demand, delay = milliseconds(activity)
        assert demand == pytest.approx(work, rel=0.02)
        assert delay == pytest.approx(work / 2, rel=0.02)
        colder, same = load_dependence.demands[f"{entry}:{activity.name}"]
        assert same == 0
        assert 1e3 * colder == pytest.approx((COLDER - 1) * work, rel=0.05)
    assert names == {"/pictures/", "/pictures/@2"}


def test_all_replicates_know_the_variants(application: Application, write: Callable[..., Run]) -> None:
    """How sure a number is was found for the entry, and holds for each of its variants."""
    model = calibrate(write(few=2.0, many=20.0), application, name="shop").model
    assert model.uncertainty is not None
    for draw in model.uncertainty.replicates:
        one, other = (f"Back{called_by(model, page)[0]}" for page in ("/few/", "/many/"))
        activity = called_by(model, "/few/")[1].name
        assert draw.demands[f"{one}:{activity}"] == draw.demands[f"{other}:{activity}"]


@pytest.mark.parametrize("many", [2.0, 2.2])
def test_callers_that_hardly_differ_share_an_entry(
    application: Application, write: Callable[..., Run], many: float
) -> None:
    """A tenth is certain after 200 executions of each, and not worth another entry."""
    model = calibrate(write(few=2.0, many=many), application, name="shop").model
    assert [entry.name for entry in model.task("Back").entries] == ["/pictures/"]
    demand, _ = milliseconds(model.task("Back").entries[0].activities[0])
    assert demand == pytest.approx((2.0 + many) / 2, rel=0.02)


def test_without_variants_every_call_takes_the_mean(
    application: Application, write: Callable[..., Run]
) -> None:
    run = write(few=2.0, many=20.0)
    model = calibrate(run, application, name="shop", components=replace(ALL, variants=False)).model
    assert [entry.name for entry in model.task("Back").entries] == ["/pictures/"]
    demand, delay = milliseconds(model.task("Back").entries[0].activities[0])
    assert (demand, delay) == pytest.approx((11.0, 5.5), rel=0.02)


def test_waiting_for_cores_is_taken_off_the_delay_of_every_variant() -> None:
    """What was taken off for all together was there in each of them; no delay becomes less than nothing."""
    key = ("Back", "/pictures/", "comp")
    whole, own = Sample(), Sample()
    for value in (0.003, 0.005):
        whole.add(value, 0)
    own.add(0.005, 0)
    terms = Terms()
    terms.put(key, None, of_sample(whole))
    window = np.ones(1)
    empty = Observed((), (), (), {}, {}, window)

    def delay(taken: float) -> float | None:
        together = Together(terms, empty, window, window, {ActivityRef("Back", "/pictures/", "comp"): taken})
        found = together.time("delay", key, own)
        return None if found is None else found.mean

    assert delay(0.001) == pytest.approx(0.004)
    assert delay(0.02) == 0
    assert Together(terms, empty, window, window, {}).time("demand", key, own) is None


def times(*values: float) -> OwnTimes:
    found = OwnTimes()
    for value in values:
        found.add(value)
    return found


def test_moments_add_up() -> None:
    """Count, mean and variation are those of all values, in whatever parts they came."""
    draw = random.Random(3)
    values = [draw.expovariate(50.0) for _ in range(300)]
    for cut in (0, 1, 120, 300):
        both = times(*values[:cut]).joined(times(*values[cut:]))
        assert both.count == 300
        assert both.mean == pytest.approx(np.mean(values))
        assert both.squares == pytest.approx(300 * np.var(values))


def test_a_difference_must_matter_and_be_certain() -> None:
    """20 % and 0.1 ms; and no larger than chance makes it."""
    steady = times(*[0.010, 0.0101] * 20)
    assert times_differ([steady, times(*[0.020, 0.0201] * 20)], chance=1e-3)
    assert not times_differ([steady, times(*[0.012, 0.0121] * 20)], chance=1e-3)
    tiny = [times(*[1e-5, 1.1e-5] * 20), times(*[3e-5, 3.1e-5] * 20)]
    assert not times_differ(tiny, chance=1e-3)
    wild = [times(*[0.001] * 39, 0.5), times(*[0.001] * 40)]
    assert not times_differ(wild, chance=1e-3)
    assert not times_differ([steady], chance=1e-3)


def test_false_alarms_are_rare() -> None:
    """Callers whose times are drawn alike are told apart at most twice in 400 times, at 1 in 1000."""
    draw = random.Random(5)
    alarms = sum(
        times_differ([times(*[draw.expovariate(200.0) for _ in range(25)]) for _ in range(3)], chance=1e-3)
        for _ in range(400)
    )
    assert alarms <= 2


def test_own_time_is_without_waiting_and_thinking() -> None:
    def at(milliseconds: float) -> Moment:
        return Moment(round(milliseconds * 1e6), 0)

    execution = Execution(1, "A/a/", "worker", "A", 0, at(10), done=at(40))
    execution.steps += [
        Step("call", None, 1, at(12), at(13)),
        Step("get", None, 1, at(14), at(30)),
        Step("think", None, 0, at(31), at(33)),
    ]
    assert own_time(execution) == pytest.approx(0.012)
