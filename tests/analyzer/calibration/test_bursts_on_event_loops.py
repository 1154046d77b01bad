"""Processor time in rounds of several clients, of services whose requests share a thread."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.record import Event

SOURCE = """\
from mup import EP, MS


def work():
    pass


class S(MS):
    runtime = "{runtime}"

    @EP("/e/")
    {define} e(self, comm):
        work()
        future = comm.call("T", "/t/")
        {wait}
        work()
        comm.respond(1)


class T(MS):
    @EP("/t/")
    def t(self, comm):
        comm.respond(1)
"""
SEGMENT = 2.0
"""Milliseconds of processor time before the call, and behind the wait."""
OTHERS = 5.0
"""Milliseconds of work of other requests while one of a burst waits."""


def application(folder: Path, runtime: str) -> Application:
    """Return S of a runtime, which calls T and waits."""
    folder.mkdir()
    awaits = runtime == "async"
    define, wait = ("async def", "await future") if awaits else ("def", "future.get()")
    (folder / "services.py").write_text(SOURCE.format(runtime=runtime, define=define, wait=wait))
    return analyse(folder)


def logged(folder: Path, application: Application) -> Run:
    """Write cold, hot and burst rounds; in bursts the thread works for others during the wait."""
    folder.mkdir()
    sites = [operation.site for operation in application.endpoint("S/e/").paths[0].operations]
    call, wait, respond = sites
    served = application.endpoint("T/t/").paths[0].operations[0].site
    log, callee = LogFile(folder / "S.0.w0.mlog", service="S"), LogFile(folder / "T.0.w0.mlog", service="T")
    windows, request = [], 0
    rounds = [("cold", 20, 1.0, 0.0), ("hot", 60, 0.0, 0.0), ("burst", 120, -0.5, OTHERS)] * 3
    for number, (phase, requests, less, others) in enumerate(rounds):
        start = 2000.0 * number
        for k in range(requests):
            request += 1
            t = start + k * 1000.0 / requests
            sent = SEGMENT + less
            resumed = sent + others
            log.add(Event.BEGIN, request, t, cpu=0, name="S/e/")
            log.add(Event.COMM_START, request, t + sent, cpu=sent, name="T/t/", site=call, seq=1)
            log.add(Event.CONTACT_DEST, request, t + sent, cpu=sent, name="T/t/", seq=1)
            log.add(Event.WAIT_START, request, t + sent, cpu=sent, site=wait, seq=1)
            log.add(Event.COMM_FINISH, request, t + sent + 10, cpu=resumed, name="T/t/", seq=1)
            log.add(Event.WAIT_END, request, t + sent + 10, cpu=resumed, site=wait, seq=1)
            end, used = t + sent + 10 + SEGMENT + less, resumed + SEGMENT + less
            log.add(Event.END, request, end, cpu=used, name="S/e/", site=respond)
            log.add(Event.DONE, request, end, cpu=used, name="S/e/")
        windows.append(
            Window(
                round(start * 1e6),
                round((start + 1000.0) * 1e6),
                phase=phase,  # type: ignore[arg-type]
                cpu={"7": 0.0},
            )
        )
    log.close()
    callee.add(Event.BEGIN, 10**6, 1.0, cpu=0, name="T/t/")
    callee.add(Event.END, 10**6, 2.0, cpu=1, name="T/t/", site=served)
    callee.close()
    parts = [PartInfo(windows=windows, processes=[ProcessUse(role="front", service="S", pid=7)])]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(application)).save(folder)
    return load_run(folder)


@pytest.mark.parametrize(("runtime", "behind"), [("async", 0.0), ("thread", OTHERS - 0.5)])
def test_work_for_other_requests_during_a_wait_is_not_of_the_segment_behind_it(
    tmp_path: Path, runtime: str, behind: float
) -> None:
    """An event loop works for others meanwhile, a thread of a pool does not: its own clock is right."""
    found = application(tmp_path / "source", runtime)
    model = calibrate(logged(tmp_path / "run", found), found, name="s").model
    load_dependence = model.task("S").load_dependence
    assert load_dependence is not None
    assert [round(1e3 * v[2], 6) for v in load_dependence.demands.values()] == [-0.5, behind]
