"""Executions that overlap on an event loop get CPU clocks of their own: work for others counts once."""

from __future__ import annotations

import heapq
import http.client
import random
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from calibration_logs import PAUSING, LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.executions import Execution, Moment, Operation, Step
from analyzer.calibration.framework import logged_cpu
from analyzer.calibration.observed import observe
from analyzer.calibration.overlapping import give_own_clocks
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.record import Event
from mup.project import load_project
from mup.runtime.deployment.launcher import Deployment
from mup.workload.cpu import process_cpu_seconds

Phases = tuple[int, int, int]
"""Work, sleep, work of one request, in ns."""


def on_loop(requests: list[tuple[int, Phases]], *, service: str = "S", replica: int = 0) -> list[Execution]:
    """Run requests, each with its arrival in ns, on an event loop; return what its log says of them."""
    ready = [(arrival, number, 0) for number, (arrival, _) in enumerate(requests)]
    heapq.heapify(ready)
    now = worked = 0
    found: dict[int, Execution] = {}
    while ready:
        since, number, phase = heapq.heappop(ready)
        now = max(now, since)
        if phase == 0:
            moment = Moment(now, worked)
            found[number] = Execution(number, f"{service}/e/", "worker", service, replica, moment)
        before, sleep, after = requests[number][1]
        now, worked = now + (after if phase else before), worked + (after if phase else before)
        if phase:
            found[number].end = found[number].done = Moment(now, worked)
        else:
            heapq.heappush(ready, (now + sleep, number, 1))
    return [found[number] for number in sorted(found)]


def clocks(executions: list[Execution]) -> list[int]:
    return [one.done.cpu - one.begin.cpu for one in executions if one.done is not None]


@pytest.mark.parametrize("seed", range(30))
def test_all_executions_together_have_worked_as_long_as_the_loop(seed: int) -> None:
    """Where they overlap, their clocks hold more than that; one after the other, exactly that."""
    rng = random.Random(seed)
    between = rng.choice((300, 3_000, 30_000))
    requests = [
        (
            number * between + rng.randrange(between),
            (rng.randint(1, 900), rng.randint(1, 9000), rng.randint(1, 400)),
        )
        for number in range(60)
    ]
    executions = on_loop(requests)
    worked = [before + after for _, (before, _, after) in requests]
    logged = sum(clocks(executions))
    give_own_clocks(executions, {"S"})
    own = clocks(executions)
    assert sum(own) == pytest.approx(sum(worked), abs=2 * len(own))
    assert all(one >= 0 for one in own)
    if between == 300:
        assert logged > 3 * sum(worked)


def test_who_overlaps_nobody_keeps_the_clock() -> None:
    """Nor do replicas overlap each other, and a service without an event loop has a clock for each thread."""
    apart = on_loop([(n * 10_000, (500, 2000, 100)) for n in range(5)])
    other = on_loop([(n * 10_000 + 700, (500, 2000, 100)) for n in range(5)], replica=1)
    threads = on_loop([(n * 500, (500, 2000, 100)) for n in range(5)], service="T")
    before = deepcopy([*apart, *other, *threads])
    give_own_clocks([*apart, *other, *threads], {"S"})
    assert [*apart, *other, *threads] == before


def call(one: Execution, start: Moment, finish: Moment, *, dest: str, on_loop: bool) -> None:
    """Add an operation that is sent at once and waited for."""
    operation = Operation(1, dest, start, contact=start, finish=finish, on_loop=on_loop)
    one.operations[1] = operation
    site = ("s.py", "S.e", 0)
    one.steps += [Step("call", site, 1, start, start), Step("get", site, 1, start, finish)]


def two(*, dest: str, on_loop: bool) -> tuple[Execution, Execution]:
    """Return an execution that waits from 100 to 900, and one that has the loop from 300 to 500."""
    waits = Execution(1, "S/e/", "worker", "S", 0, Moment(0, 1000), done=Moment(960, 1370))
    call(waits, Moment(100, 1100), Moment(900, 1310), dest=dest, on_loop=on_loop)
    works = Execution(2, "S/e/", "worker", "S", 0, Moment(300, 1100), done=Moment(500, 1300))
    return waits, works


def test_what_nobody_else_had_a_part_in_stays() -> None:
    """The work before the wait and behind it is exact; what others did meanwhile is taken off the wait."""
    waits, works = two(dest="T/t/", on_loop=True)
    give_own_clocks([waits, works], {"S"})
    assert waits.done is not None
    assert works.done is not None
    assert works.done.cpu - works.begin.cpu == 200
    assert waits.steps[0].start.cpu - waits.begin.cpu == 100
    assert waits.steps[1].resume.cpu - waits.steps[1].start.cpu == 10
    assert waits.operations[1].finish == Moment(900, 1110)
    assert waits.done.cpu - waits.steps[1].resume.cpu == 60


def test_the_clock_of_a_thread_beside_the_loop_stays() -> None:
    """A query that ran there has its times from there."""
    waits, works = two(dest="db.rows", on_loop=False)
    waits.operations[1].finish = beside = Moment(890, 77)
    give_own_clocks([waits, works], {"S"})
    assert waits.operations[1].finish == beside
    assert waits.steps[1].resume == Moment(900, 1110)


WORK, PAUSE, UNSEEN = 1.0, 5.0, 0.25
"""Milliseconds of each request: the last is work of the framework, which no execution holds."""


def logged(folder: Path, application: Application, *, together: int, burst: int) -> Run:
    """Write requests that come together, in rounds of one user and in bursts."""
    folder.mkdir()
    site = application.endpoint("S/e/").paths[0].operations[0].site
    log = LogFile(folder / "S.0.w0.mlog", service="S")
    windows, request = [], 0
    for number, (phase, size) in enumerate((("hot", together), ("burst", burst)) * 2):
        begin = 4000.0 * number
        for at in range(100):
            start = begin + 10.0 + 30.0 * at
            for which in range(size):
                used = which * WORK
                log.add(Event.BEGIN, request + which + 1, start + used, cpu=used, name="S/e/")
            for which in range(size):
                end = start + max(size * WORK, (which + 1) * WORK + PAUSE)
                one, used = request + which + 1, min(size, 1 + which + PAUSE / WORK) * WORK
                log.add(Event.END, one, end, cpu=used, name="S/e/", site=site)
                log.add(Event.DONE, one, end, cpu=used, name="S/e/")
            request += size
        cpu = {"8": 100 * size * (WORK + UNSEEN) / 1e3}
        windows.append(Window(round(begin * 1e6), round((begin + 3900) * 1e6), phase=phase, cpu=cpu))  # type: ignore[arg-type]
    log.close()
    uses = [ProcessUse(role="worker", service="S", pid=8)]
    parts = [PartInfo(windows=windows, processes=uses)]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(application)).save(folder)
    return load_run(folder)


@pytest.mark.parametrize(("together", "burst"), [(1, 8), (2, 8), (4, 2)])
def test_a_request_needs_as_much_in_a_burst_as_alone(tmp_path: Path, together: int, burst: int) -> None:
    """What the processes used is relative to what the same requests need, not to what overlapping clocks hold."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "services.py").write_text(PAUSING)
    application = analyse(source)
    run = logged(tmp_path / "run", application, together=together, burst=burst)
    task = calibrate(run, application, name="s").model.task("S")
    demand = task.entry("/e/").activities[0].demand
    assert demand is not None
    assert 1e3 * demand.mean == pytest.approx(WORK + UNSEEN, rel=0.02)
    assert task.load_dependence is None


SERVICES = """
import asyncio
import os

from mup import EP, MS, Communication


class Loop(MS):
    runtime = "async"
    pool_size = 8

    @EP("/e/")
    async def e(self, comm: Communication) -> None:
        sum(range(100_000))
        await asyncio.sleep(0.02)
        sum(range(100_000))
        comm.respond(os.getpid())
"""
TOML = """
[registry]
port = 0
[services.Loop]
class = "services:Loop"
"""
AT_ONCE, ROUNDS = 6, 8


@pytest.mark.services
def test_real_requests_at_once_have_worked_as_long_as_their_process(tmp_path: Path) -> None:
    """Six at a time: their threads' clocks hold several times what the process has used, their own do not."""
    (tmp_path / "services.py").write_text(SERVICES)
    (tmp_path / "mup.toml").write_text(TOML)
    logs = tmp_path / "logs"
    with Deployment(load_project(tmp_path), log_dir=logs) as deployment:
        (url,) = (replica.url for replica in deployment.replicas())

        def ask(_: int) -> int:
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            connection.request("GET", "/e/")
            pid = int(connection.getresponse().read())
            connection.close()
            return pid

        before = process_cpu_seconds(ask(0))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            (pid,) = set(pool.map(ask, range(AT_ONCE * ROUNDS)))
        used = process_cpu_seconds(pid) - before
    RunInfo(project="loop", parts=[PartInfo()]).save(logs)
    run = load_run(logs)
    first, *others = sorted(observe(run).executions, key=lambda e: e.begin.time)
    assert len(others) == AT_ONCE * ROUNDS
    assert sum(map(logged_cpu, others)) > 1.5 * used
    own = [e for e in observe(run, loops={"Loop"}).executions if e.request != first.request]
    # The framework has little to do beside such work; both clocks are read a moment after the last reply.
    assert 0.8 * used < sum(map(logged_cpu, own)) < 1.02 * used
