"""Processor time of fronts in rounds of several clients: none of it is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibration_logs import LogFile

from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.rundir import PartInfo, ProcessUse, Run, RunInfo, Window, fingerprints, load_run
from analyzer.static import Application, analyse
from mup.events.ids import child_id
from mup.events.record import Event

SOURCE = """\
from mup import EP, MS


class S(MS):
    @EP("/e/")
    def e(self, comm):
        comm.call("T", "/t/").get()
        comm.respond(1)


class T(MS):
    @EP("/t/")
    def t(self, comm):
        comm.respond(1)
"""
FRONT = {"cold": 0.8, "hot": 0.6, "burst": 0.45}
"""Milliseconds of the processor time of T's front per request."""
ROUNDS = {"cold": 20, "hot": 60, "burst": 120}
"""Requests of a round."""
PID = 9


def logged(folder: Path, application: Application, *, exchange: dict[str, float]) -> Run:
    """Write cold, hot and burst rounds.

    Args:
        folder: Of the run.
        application: What runs.
        exchange: By phase, milliseconds of a call of T that its execution does not explain.
    """
    folder.mkdir()
    call, wait, respond = (o.site for o in application.endpoint("S/e/").paths[0].operations)
    served = application.endpoint("T/t/").paths[0].operations[0].site
    log, callee = LogFile(folder / "S.0.w0.mlog", service="S"), LogFile(folder / "T.0.w0.mlog", service="T")
    windows, request = [], 0
    for number, (phase, requests) in enumerate(list(ROUNDS.items()) * 3):
        start = 2000.0 * number
        for k in range(requests):
            request += 1
            child, t = child_id(request, 1), start + k * 1000.0 / requests
            back = t + 2.0 + exchange[phase]
            log.add(Event.BEGIN, request, t, cpu=0, name="S/e/")
            log.add(Event.COMM_START, request, t + 1, cpu=1, name="T/t/", site=call, seq=1)
            log.add(Event.CONTACT_DEST, request, t + 1, cpu=1, name="T/t/", seq=1)
            log.add(Event.WAIT_START, request, t + 1, cpu=1, site=wait, seq=1)
            callee.add(Event.BEGIN, child, t + 1 + exchange[phase] / 2, cpu=0, name="T/t/")
            callee.add(Event.END, child, t + 2 + exchange[phase] / 2, cpu=1, name="T/t/", site=served)
            callee.add(Event.DONE, child, t + 2 + exchange[phase] / 2, cpu=1, name="T/t/")
            log.add(Event.COMM_FINISH, request, back, cpu=1, name="T/t/", seq=1)
            log.add(Event.WAIT_END, request, back, cpu=1, site=wait, seq=1)
            log.add(Event.END, request, back + 1, cpu=2, name="S/e/", site=respond)
            log.add(Event.DONE, request, back + 1, cpu=2, name="S/e/")
        windows.append(
            Window(
                round(start * 1e6),
                round((start + 1000.0) * 1e6),
                phase=phase,  # type: ignore[arg-type]
                cpu={str(PID): FRONT[phase] * requests / 1e3},
            )
        )
    log.close()
    callee.close()
    parts = [PartInfo(windows=windows, processes=[ProcessUse(role="front", service="T", pid=PID)])]
    RunInfo(project="s", cores=2, parts=parts, fingerprints=fingerprints(application)).save(folder)
    return load_run(folder)


@pytest.mark.parametrize("busy", [2.0, 0.1, 0.0], ids=["slow network", "overlapping", "at once"])
def test_the_front_of_a_busy_service_keeps_its_work(tmp_path: Path, busy: float) -> None:
    """However short calls are in bursts, where callers do not wait for all that a front does.

    What callers do not wait for counts behind the response, relative to hot rounds: nothing here.
    """
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "services.py").write_text(SOURCE)
    found = analyse(tmp_path / "source")
    run = logged(tmp_path / "run", found, exchange={"cold": 2.0, "hot": 2.0, "burst": busy})
    task = calibrate(run, found, name="s").model.task("T")
    assert task.front is not None
    assert task.front.request is not None
    assert task.front.reply is not None
    assert task.load_dependence is not None
    base = 1e3 * (task.front.request.mean + task.front.reply.mean)
    extra = [1e3 * value for value in task.load_dependence.demands["front"]]
    assert [base + value for value in extra] == pytest.approx(list(FRONT.values()), abs=0.002)
