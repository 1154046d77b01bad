"""An event loop sleeps while none of its requests is at work; what that costs is as all kinds of rounds show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.observed import observe
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.calibration.sleeping import sleeps
from analyzer.static import Application, analyse
from mup.events.record import QUEUED, Event
from mup.lqn import Model, Task

SOURCE = """\
from mup import EP, MS


class S(MS):
    runtime = "async"

    @EP("/e/")
    async def e(self, comm):
        await comm.call("T", "/t/")
        comm.respond(1)


class T(MS):
    @EP("/t/")
    def t(self, comm):
        comm.respond(1)
"""
BASE, AMOUNT = 1.0, 0.6
"""Milliseconds of processor time of a request of a loop that has slept shortly, and on top after a long sleep."""
AWAKE = 0.6
"""The same of a loop that has not slept."""
WAIT = 3.0
BY_DEFAULT = Components()


def application(folder: Path) -> Application:
    folder.mkdir()
    (folder / "services.py").write_text(SOURCE)
    return analyse(folder)


def share(gap: float) -> float:
    """Return what is on top after a sleep in milliseconds, as a share."""
    return float(np.interp(np.log(max(gap, 1e-3)), np.log([1.0, 30.0]), [0.0, 1.0]))


class Logs:
    """Logs of S, of its front, and of T."""

    def __init__(self, folder: Path, found: Application) -> None:
        folder.mkdir()
        self.folder, self.application = folder, found
        self.front = LogFile(folder / "S.0.front.mlog", service="S", role="front")
        self.loop = LogFile(folder / "S.0.w0.mlog", service="S")
        self.callee = LogFile(folder / "T.0.w0.mlog", service="T")
        self.sites = [operation.site for operation in found.endpoint("S/e/").paths[0].operations]
        self.served = found.endpoint("T/t/").paths[0].operations[0].site
        self.requests = 0

    def request(
        self, begin: float, before: float, wait: float, behind: float, *, queued: bool = False
    ) -> float:
        """Log a request with work, a call of so many milliseconds, and work; return when it is done."""
        call, get, respond = self.sites
        self.requests += 1
        number, log = self.requests, self.loop
        flags = QUEUED if queued else 0
        self.front.add(Event.ARRIVE, number, begin - 0.005, name="S/e/", flags=flags)
        log.add(Event.BEGIN, number, begin, cpu=begin, name="S/e/")
        sent = begin + before
        log.add(Event.COMM_START, number, sent, cpu=sent, name="T/t/", site=call, seq=1)
        log.add(Event.CONTACT_DEST, number, sent, cpu=sent, name="T/t/", seq=1)
        log.add(Event.WAIT_START, number, sent, cpu=sent, site=get, seq=1)
        back = sent + wait
        log.add(Event.COMM_FINISH, number, back, cpu=sent, name="T/t/", seq=1)
        log.add(Event.WAIT_END, number, back, cpu=sent, site=get, seq=1)
        done = back + behind
        log.add(Event.END, number, done, cpu=sent + behind, name="S/e/", site=respond)
        log.add(Event.DONE, number, done, cpu=sent + behind, name="S/e/")
        of_callee = 10**6 + number
        self.callee.add(Event.BEGIN, of_callee, sent + 0.2, cpu=0.0, name="T/t/")
        self.callee.add(Event.END, of_callee, sent + 0.4, cpu=0.2, name="T/t/", site=self.served)
        self.callee.add(Event.DONE, of_callee, sent + 0.4, cpu=0.2, name="T/t/")
        return done

    def run(self, windows: list[Window]) -> Run:
        for log in (self.front, self.loop, self.callee):
            log.close()
        processes = [
            ProcessUse(role=role, service="S", pid=pid)  # type: ignore[arg-type]
            for role, pid in (("worker", 7), ("front", 8))
            if windows and str(pid) in windows[0].cpu
        ]
        parts = [PartInfo(windows=windows, processes=processes)]
        RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(self.application)).save(
            self.folder
        )
        return load_run(self.folder)


def test_a_loop_sleeps_while_its_requests_wait(tmp_path: Path) -> None:
    """The second request comes while the first waits for T, the third while the second is at work."""
    logs = Logs(tmp_path / "run", application(tmp_path / "source"))
    logs.request(0.0, 1.0, 10.0, 1.0)
    logs.request(5.0, 2.0, 10.0, 1.0)
    logs.request(6.0, 0.5, 0.5, 1.0)
    logs.request(30.0, 1.0, 1.0, 1.0)
    logs.request(33.01, 1.0, 1.0, 1.0, queued=True)
    logged = observe(logs.run([])).logged
    loop = sleeps(logged, {"S"}, {"S"}).workers
    assert {n: 1e3 * seconds for n, seconds in loop.items() if n < 10**6} == pytest.approx(
        {2: 4.0, 3: 0.0, 4: 12.0, 5: 0.0}
    )
    threads = sleeps(logged, {"S"}).workers
    assert threads[2] == threads[3] == 0.0


FRONT = {"hot": 0.3, "cold": 0.5, "burst": 0.1}
"""Milliseconds of the front per request."""


def explored(folder: Path, found: Application, awake: float, *, front: bool) -> Run:
    """Write hot and cold rounds of one user, and bursts of two, who find the loop awake every other time.

    Perhaps it is known what the front needs, too.
    """
    random = np.random.default_rng(3)
    logs = Logs(folder, found)
    windows: list[Window] = []
    now = 0.0
    for phase in ("hot", "cold", "hot", "cold", "hot", "cold", "burst", "burst"):
        start, used = now, 0.0
        requests = {"hot": 200, "cold": 60, "burst": 150}[phase]
        for k in range(requests):
            if phase == "burst":
                gap = 0.001 if k % 2 else random.uniform(1.0, 1.5)
            else:
                gap = random.uniform(1.0, 3.0) if phase == "hot" else random.uniform(10.0, 40.0)
            now += gap
            cpu = awake if gap < 0.1 else BASE + AMOUNT * share(gap)
            done = logs.request(now, cpu / 2, WAIT, cpu / 2)
            used += cpu
            now = now + cpu / 2 if phase == "burst" and k % 2 == 0 else done
        windows.append(
            Window(
                round(start * 1e6),
                round((now + 0.001) * 1e6),
                phase=phase,  # type: ignore[arg-type]
                clients=2 if phase == "burst" else 1,
                cpu={"7": used / 1e3} | ({"8": requests * FRONT[phase] / 1e3} if front else {}),
            )
        )
        now += 500.0
    return logs.run(windows)


def needed(task: Task, gap: float) -> float:
    """Return the milliseconds of processor time that a request needs after a sleep in seconds."""
    entry, setup = task.entry("/e/"), task.setup
    assert setup is not None
    own = sum(a.demand.mean for a in entry.activities if a.demand is not None)
    extra = sum(seconds for key, (seconds, _) in setup.demands.items() if key != "front")
    return 1e3 * (own + extra * setup.share(setup.worker, gap))


def model(
    folder: Path, *, awake: float = AWAKE, components: Components = BY_DEFAULT, front: bool = False
) -> Model:
    found = application(folder / "source")
    run = explored(folder / "run", found, awake, front=front)
    return calibrate(run, found, name="s", components=components).model


def test_work_goes_from_that_of_bursts_to_that_of_one_user(tmp_path: Path) -> None:
    """What a loop needs that has not slept is what requests of bursts do on average."""
    task = model(tmp_path).task("S")
    assert task.load_dependence is None
    assert needed(task, 0.0) == pytest.approx((AWAKE + BASE + AMOUNT * share(1.25)) / 2, rel=0.05)
    assert needed(task, 0.002) == pytest.approx(BASE + AMOUNT * share(2.0), rel=0.1)
    assert needed(task, 0.025) == pytest.approx(BASE + AMOUNT * share(25.0), rel=0.05)


def test_where_bursts_need_more_times_go_by_the_rate(tmp_path: Path) -> None:
    """It is something else than sleep then."""
    task = model(tmp_path, awake=1.6).task("S")
    assert task.setup is None


def test_it_can_be_left_out(tmp_path: Path) -> None:
    """By the component that all of it is under."""
    assert model(tmp_path, components=Components(setup=False)).task("S").setup is None


def test_its_front_goes_by_the_rate(tmp_path: Path) -> None:
    """That is a process of its own; no time has both a set-up and a load dependence."""
    task = model(tmp_path, front=True).task("S")
    assert task.setup is not None
    assert task.load_dependence is not None
    assert task.load_dependence.demands.keys() == {"front"}
    assert "front" not in task.setup.demands
