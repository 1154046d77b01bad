"""Calibrated costs of sleep: present where a log shows them, and only there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.observed import observe
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.calibration.sleep_costs import users_in_step
from analyzer.calibration.sleeping import sleeps
from analyzer.static import Application, analyse
from mup.events.record import QUEUED, Event
from mup.lqn import Activity, Constant, Distribution, Entry, Exponential, Model, Setup, Task

SOURCE = """\
from mup import EP, MS


class S(MS):
    @EP("/e/")
    def e(self, comm):
        comm.respond(1)
"""

BY_SLEEP = Components(setup=True)
BASE, AMOUNT = 1.0, 0.5
"""Milliseconds of processor time of a request of a worker that was awake, and on top after a long sleep."""
FRONT, FRONT_AMOUNT = 0.2, 0.3


def share(gap: float) -> float:
    """Return what is on top after a sleep in milliseconds, as a share."""
    return float(np.interp(np.log(max(gap, 1e-3)), np.log([1.0, 30.0]), [0.0, 1.0]))


@pytest.fixture
def application(tmp_path: Path) -> Application:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE)
    return analyse(source)


def write(
    folder: Path,
    application: Application,
    *,
    bursts: bool = False,
    crowded: float = 0.0,
    jitter: float = 0.0,
    sample: int = 1,
    second: float | None = None,
    full: bool = False,
) -> Run:
    """Write three hot and three cold rounds, and perhaps bursts, of a service whose work follows sleep.

    Args:
        folder: To create.
        application: Its source.
        bursts: With two rounds of bursts; every third of their requests waits for the one before.
        crowded: Milliseconds that requests take longer in bursts, whatever slept.
        jitter: Relative deviation of the amounts of rounds.
        sample: One in so many requests is logged.
        second: A second service T, asked whenever S is: milliseconds that its requests take longer in bursts.
        full: In bursts the worker hardly sleeps, and what it used in all is known.
    """
    random = np.random.default_rng(7)
    folder.mkdir()
    site = application.endpoint("S/e/").paths[0].operations[0].site
    worker = LogFile(folder / "S.0.w0.mlog", service="S", sample=sample)
    front = LogFile(folder / "S.0.front.mlog", service="S", role="front", sample=sample)
    other = None if second is None else LogFile(folder / "T.0.w0.mlog", service="T", sample=sample)
    longest = 0.8 if full else 20.0
    windows, request, now = [], 0, 0.0
    phases = ["hot", "cold"] * 3 + ["burst"] * (2 if bursts else 0)
    for phase in phases:
        start, used, worked = now, 0.0, 0.0
        amount = AMOUNT * (1 + jitter * random.standard_normal())
        for k in range({"hot": 300, "cold": 60, "burst": 150}[phase]):
            gap = {
                "hot": lambda: random.uniform(0.5, 1.5),
                "cold": lambda: random.uniform(2.0, 80.0),
                "burst": lambda: random.uniform(0.025 * longest, longest),
            }[phase]()
            queued = phase == "burst" and k % 3 == 0
            gap = 0.01 if queued else gap
            request += 1
            now += gap
            cpu = BASE + amount * (0.0 if queued else share(gap)) + (crowded if phase == "burst" else 0.0)
            if request % sample == 0:
                flags = QUEUED if queued else 0
                front.add(Event.ARRIVE, request, now - 0.005, name="S/e/", flags=flags)
                worker.add(Event.BEGIN, request, now, cpu=0.0, name="S/e/")
                worker.add(Event.END, request, now + cpu, cpu=cpu, name="S/e/", site=site)
                worker.add(Event.DONE, request, now + cpu, cpu=cpu, name="S/e/")
            if other is not None and second is not None:
                more = cpu + (second if phase == "burst" else 0.0)
                at = application.endpoint("T/e/").paths[0].operations[0].site
                flags = QUEUED if queued else 0
                other.add(Event.ARRIVE, 10_000 + request, now - 0.005, name="T/e/", flags=flags)
                other.add(Event.BEGIN, 10_000 + request, now, cpu=0.0, name="T/e/")
                other.add(Event.END, 10_000 + request, now + more, cpu=more, name="T/e/", site=at)
                other.add(Event.DONE, 10_000 + request, now + more, cpu=more, name="T/e/")
                now += more - cpu
            worked += cpu
            used += FRONT + FRONT_AMOUNT * (share(gap + BASE) + share(cpu)) / 2
            now += cpu
        windows.append(
            Window(
                round(start * 1e6),
                round((now + 0.001) * 1e6),
                phase=phase,  # type: ignore[arg-type]
                clients=8 if phase == "burst" else 1,
                cpu={"7": used / 1e3, "8": worked / 1e3},
            )
        )
        now += 500.0
    worker.close()
    front.close()
    if other is not None:
        other.close()
    processes = [ProcessUse(role="front", service="S", pid=7)]
    if full:
        processes.append(ProcessUse(role="worker", service="S", pid=8))
    info = RunInfo(
        project="s",
        cores=2,
        parts=[PartInfo(windows=windows, processes=processes)],
        fingerprints=fingerprints(application),
    )
    info.save(folder)
    return load_run(folder)


def first(model: Model) -> tuple[float, float]:
    """Return the milliseconds of the first segment: without sleep, and on top after a long one."""
    task = model.task("S")
    assert task.setup is not None
    entry = task.entry("/e/")
    activity = entry.activities[-2]
    assert activity.demand is not None
    return activity.demand.mean * 1e3, task.setup.demands[f"/e/:{activity.name}"][0] * 1e3


def extra(setup: Setup, key: str, gap: float) -> float:
    """Return the milliseconds on top after a sleep in milliseconds."""
    return setup.demands[key][0] * setup.share(setup.worker, gap / 1e3) * 1e3


@pytest.mark.parametrize("bursts", [False, True])
def test_work_that_follows_sleep_has_a_setup(tmp_path: Path, application: Application, bursts: bool) -> None:
    """Base and amount come out, at every sleep; queued requests cost nothing on top; the rate has no say."""
    run = write(tmp_path / "run", application, bursts=bursts)
    model = calibrate(run, application, name="s", components=BY_SLEEP).model
    task = model.task("S")
    setup = task.setup
    assert task.load_dependence is None
    assert setup is not None
    base, _ = first(model)
    key = next(key for key in setup.demands if key != "front")
    for gap in (0.0, 0.7, 4.0, 10.0, 60.0):
        expected = BASE + AMOUNT * share(gap)
        assert base + extra(setup, key, gap) == pytest.approx(expected, rel=0.03)
    assert setup.by_thread
    assert set(setup.core) == {0.0}
    assert task.front is not None
    assert task.front.request is not None
    whole = 2e3 * task.front.request.mean + extra(setup, "front", 60.0)
    assert whole == pytest.approx(FRONT + FRONT_AMOUNT, rel=0.15)


def test_what_bursts_do_not_confirm_depends_on_the_rate(tmp_path: Path, application: Application) -> None:
    """Requests of several users that are longer whatever slept: no line by sleep goes through all rounds."""
    run = write(tmp_path / "run", application, bursts=True, crowded=2.0)
    task = calibrate(run, application, name="s", components=BY_SLEEP).model.task("S")
    assert task.setup is None
    assert task.load_dependence is not None


def test_work_is_exact_in_bursts_and_fronts_go_by_the_rate(tmp_path: Path, application: Application) -> None:
    """Requests of a full service that need less, whatever slept: the line through all rounds misses them."""
    run = write(tmp_path / "run", application, bursts=True, crowded=-0.08, full=True)
    model = calibrate(run, application, name="s", components=BY_SLEEP).model
    task = model.task("S")
    assert task.setup is not None
    assert first(model)[0] == pytest.approx(BASE - 0.08, rel=0.01)
    assert "front" not in task.setup.demands
    assert task.load_dependence is not None
    assert set(task.load_dependence.demands) == {"front"}
    assert len(task.load_dependence.rates) == 3


def test_it_has_to_be_asked_for(tmp_path: Path, application: Application) -> None:
    """Else times depend on the rate, as they do where it is not known when anything slept: in a sample."""
    run = write(tmp_path / "run", application)
    left = calibrate(run, application, name="s", components=Components()).model
    assert left.task("S").setup is None
    assert left.task("S").load_dependence is not None
    neither = calibrate(
        run, application, name="s", components=Components(setup=True, load_dependence=False)
    ).model
    assert neither.task("S").setup is None
    assert neither.task("S").load_dependence is None
    sampled = calibrate(
        write(tmp_path / "sampled", application, sample=3), application, name="s", components=BY_SLEEP
    ).model
    assert sampled.task("S").setup is None


@pytest.mark.parametrize(("crowded", "by_sleep"), [(0.0, True), (0.15, False)])
def test_bursts_that_confirm_it_are_reason_enough(
    tmp_path: Path, application: Application, crowded: float, by_sleep: bool
) -> None:
    """What differs from the line by a few percent is left to the rate, unless sleep is asked for."""
    run = write(tmp_path / "run", application, bursts=True, crowded=crowded)
    task = calibrate(run, application, name="s").model.task("S")
    assert (task.setup is not None, task.load_dependence is None) == (by_sleep, by_sleep)
    without = calibrate(run, application, name="s", components=Components(bursts=False)).model.task("S")
    assert without.setup is None
    asked = calibrate(run, application, name="s", components=BY_SLEEP).model.task("S")
    assert asked.setup is not None


@pytest.mark.parametrize(("second", "by_sleep"), [(0.0, True), (0.2, False)])
def test_it_is_confirmed_for_every_service_or_none(tmp_path: Path, second: float, by_sleep: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(SOURCE + SOURCE.partition("MS\n")[2].replace("class S", "class T"))
    application = analyse(source)
    run = write(tmp_path / "run", application, bursts=True, second=second)
    model = calibrate(run, application, name="s").model
    assert [model.task(name).setup is not None for name in ("S", "T")] == [by_sleep, by_sleep]
    assert [model.task(name).load_dependence is None for name in ("S", "T")] == [by_sleep, by_sleep]


CLIENT = """

class User(Client):
    async def scenario(self, comm):
        await self.think(0.02, {family!r})
        await comm.call("S", "/e/")
"""


@pytest.mark.parametrize(("family", "by_sleep"), [("constant", True), ("exponential", False)])
def test_users_who_think_for_constant_times_meet_by_sleep(
    tmp_path: Path, family: str, by_sleep: bool
) -> None:
    """What bursts do not confirm, and runs without bursts: only where users stay in step sleep has a say."""
    source = tmp_path / "source"
    source.mkdir()
    text = SOURCE.replace("import EP, MS", "import EP, MS, Client") + CLIENT.format(family=family)
    (source / "services.py").write_text(text)
    application = analyse(source)
    for folder, bursts, crowded in (("run", True, 0.15), ("alone", False, 0.0)):
        run = write(tmp_path / folder, application, bursts=bursts, crowded=crowded)
        task = calibrate(run, application, name="s", client="User").model.task("S")
        assert (task.setup is not None) == by_sleep
        assert (task.load_dependence is None) == by_sleep


@pytest.mark.parametrize(
    ("think", "arrivals", "in_step"),
    [
        (Constant(0.02), None, True),
        (Constant(0.0), None, False),
        (Exponential(0.02), None, False),
        (None, None, False),
        (Constant(0.02), Exponential(0.1), False),
    ],
)
def test_who_stays_in_step(
    tmp_path: Path,
    application: Application,
    think: Distribution | None,
    arrivals: Distribution | None,
    in_step: bool,
) -> None:
    """Users of a closed load whose think time is constant, not none, and no shorter in the rounds."""
    observed = observe(write(tmp_path / "run", application))
    shortened = [msgspec.structs.replace(window, think_scale=0.1) for window in observed.windows]
    wait = Activity(name="think", kind="think", demand=Constant(0.0), delay=think)
    cycle = Entry(name="cycle", start="think", activities=(wait,), arrivals=arrivals)
    users = Task(name="U", role="reference", threads=np.inf if arrivals is not None else 2, entries=(cycle,))
    model = Model(name="m", tasks=(users,))
    assert users_in_step(model, observed) == in_step
    assert not users_in_step(model, replace(observed, windows=shortened))


def test_replicates_carry_how_sure_the_amounts_are(tmp_path: Path, application: Application) -> None:
    """Rounds that agree leave no doubt; where amounts differ by 20 %, so do the factors."""
    same = calibrate(write(tmp_path / "same", application), application, name="s", components=BY_SLEEP).model
    mixed = calibrate(
        write(tmp_path / "mixed", application, jitter=0.2), application, name="s", components=BY_SLEEP
    ).model

    def deviation(model: Model) -> float:
        assert model.uncertainty is not None
        factors = [replicate.setups["S"][0] for replicate in model.uncertainty.replicates]
        return float(np.std(factors))

    assert deviation(same) < 0.03
    # Three cold rounds of 20 %: 12 % of their mean.
    assert 0.04 < deviation(mixed) < 0.3


def test_sleep_is_that_of_who_works(tmp_path: Path, application: Application) -> None:
    """Of a worker from its last request to the next; of threads of one process, of all; 0 after waiting."""
    folder = tmp_path / "run"
    folder.mkdir()
    site = application.endpoint("S/e/").paths[0].operations[0].site
    front = LogFile(folder / "S.0.front.mlog", service="S", role="front")
    logs = [LogFile(folder / f"S.0.w{number}.mlog", service="S", worker=number) for number in (0, 1)]
    requests = [
        (1, 0, 0.0, 4.0),
        (2, 1, 2.0, 3.0),
        (3, 0, 10.0, 11.0),
        (4, 1, 11.5, 12.0),
        (5, 1, 12.01, 13.0),
    ]
    for request, number, begin, done in requests:
        flags = QUEUED if request == 5 else 0
        front.add(Event.ARRIVE, request, begin - 0.001, name="S/e/", flags=flags)
        logs[number].add(Event.BEGIN, request, begin, cpu=0, name="S/e/")
        logs[number].add(Event.END, request, done, cpu=1, name="S/e/", site=site)
        logs[number].add(Event.DONE, request, done, cpu=1, name="S/e/")
    for log in (front, *logs):
        log.close()
    RunInfo(project="s", cores=2, parts=[PartInfo()], fingerprints=fingerprints(application)).save(folder)
    logged = observe(load_run(folder)).logged
    alone, together = sleeps(logged, ()), sleeps(logged, {"S"})
    assert {r: s * 1e3 for r, s in alone.workers.items()} == pytest.approx({3: 6.0, 4: 8.5, 5: 0.0})
    assert {r: s * 1e3 for r, s in together.workers.items()} == pytest.approx(
        {2: 0.0, 3: 6.0, 4: 0.5, 5: 0.0}
    )
    before, after = alone.fronts[3]
    assert (before * 1e3, after * 1e3) == pytest.approx((5.999, 1.001))
