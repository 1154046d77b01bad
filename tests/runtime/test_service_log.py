"""The event log of running services tells a request's story, from caller to callee."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from deployments import make_project, running, wait_for

from mup.events.ids import child_id
from mup.events.reader import Log, read_log
from mup.events.record import CENSORED, FAILED, QUEUED, Event

pytestmark = pytest.mark.services

SOURCE = """
import time
from mup import EP, MS

class Callee(MS):
    @EP("/job/")
    def work(self, comm):
        time.sleep(float(comm.params["seconds"]))
        comm.respond("done")
        time.sleep(0.02)

class Caller(MS):
    @EP("/one/")
    def one(self, comm):
        # Long enough that no machine is so busy that the answer comes before it is waited for.
        answer = comm.call("Callee", "work", {"seconds": 0.4})
        time.sleep(0.01)
        comm.respond(answer.get())

    @EP("/late/")
    def late(self, comm):
        answer = comm.call("Callee", "/job/", {"seconds": 0})
        time.sleep(0.1)
        comm.respond(answer.get())

    @EP("/broken/")
    def broken(self, comm):
        comm.call("Nobody", "/job/").get()
"""

CALL = [
    Event.BEGIN,
    Event.COMM_START,
    Event.CONTACT_DEST,
    Event.WAIT_START,
    Event.COMM_FINISH,
    Event.WAIT_END,
    Event.END,
    Event.DONE,
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Log]:
    """Logs of one request to each endpoint, and two at once to the callee."""
    folder = tmp_path_factory.mktemp("logged")
    with running(make_project(folder, SOURCE, "Caller", "Callee")) as system:
        for path in ("/one/", "/late/", "/broken/"):
            system.ask("Caller", path, X_Mup_Request=f"{len(path):x}", X_Mup_Trace="77")
        first = system.begin("Callee", "/job/?seconds=0.1")
        wait_for(lambda: system.status("Callee")["busy"] == 1)
        system.ask("Callee", "/job/?seconds=0")
        first.result()
        system.settle("Callee")
        # An idle process makes its records visible by itself.
        wait_for(lambda: len(read_log(system.logs / "Callee.0.w0.mlog").records) == 12)
        wait_for(lambda: len(read_log(system.logs / "Callee.0.front.mlog").records) == 4)
    return {path.stem: read_log(path) for path in sorted(system.logs.glob("*.mlog"))}


def of_request(log: Log, request: int) -> np.ndarray:
    """Return the records of one execution."""
    return log.records[log.records["request"] == request]


def test_every_process_has_a_log(logs: dict[str, Log]) -> None:
    """One file per front and worker, with a header that says whose it is."""
    assert set(logs) == {"Callee.0.front", "Callee.0.w0", "Caller.0.front", "Caller.0.w0"}
    headers = {name: log.header for name, log in logs.items()}
    assert headers["Callee.0.w0"]["role"] == "worker"
    assert headers["Callee.0.w0"]["worker"] == 0
    assert headers["Caller.0.front"]["role"] == "front"
    assert headers["Caller.0.front"]["service"] == "Caller"
    assert not any(log.truncated for log in logs.values())


def test_one_call_in_order(logs: dict[str, Log]) -> None:
    """A request is arrive, begin, the call, the wait, end, done, with times and CPU times that rise."""
    request = len("/one/")
    front, worker = of_request(logs["Caller.0.front"], request), of_request(logs["Caller.0.w0"], request)
    assert [Event(e) for e in front["event"]] == [Event.ARRIVE]
    assert [Event(e) for e in worker["event"]] == CALL
    assert set(worker["trace"].tolist()) == {0x77}
    assert front["time"][0] <= worker["time"][0]
    assert np.all(np.diff(worker["time"]) >= 0)
    assert np.all(np.diff(worker["cpu"]) >= 0)
    by_event = {Event(int(r["event"])): r for r in worker}
    assert by_event[Event.WAIT_END]["time"] - by_event[Event.WAIT_START]["time"] > 0.03e9
    # Sleeping costs no CPU: the CPU clock of the whole request stays far below its duration.
    assert worker["cpu"][-1] - worker["cpu"][0] < 0.02e9
    assert worker["flags"].tolist() == [0] * 8
    names = logs["Caller.0.w0"].names
    assert names[int(by_event[Event.BEGIN]["name"])] == "Caller/one/"
    assert {names[int(r["name"])] for r in worker if r["seq"]} == {"Callee/job/"}


def test_caller_and_callee_join(logs: dict[str, Log]) -> None:
    """The callee's execution carries the id the caller's id and sequence number lead to."""
    child = child_id(len("/one/"), 1)
    front, worker = of_request(logs["Callee.0.front"], child), of_request(logs["Callee.0.w0"], child)
    assert [Event(e) for e in front["event"]] == [Event.ARRIVE]
    assert [Event(e) for e in worker["event"]] == [Event.BEGIN, Event.END, Event.DONE]
    assert worker["trace"].tolist() == [0x77] * 3
    # `respond` ends the response, not the hold.
    assert worker["time"][2] - worker["time"][1] >= 0.02e9
    caller = of_request(logs["Caller.0.w0"], len("/one/"))
    started, received = caller["time"][1], caller["time"][4]
    # Invariant: `contactDest` is stamped after the request has left, so the callee may be ahead of it by as long as
    # the sending thread waits for a core.
    assert started < front["time"][0] < worker["time"][1] < received


def test_sites_name_call_get_and_respond(logs: dict[str, Log]) -> None:
    """Every operation carries the site of the expression that made it."""
    log = logs["Caller.0.w0"]
    found = {}
    for record in of_request(log, len("/one/")):
        if record["site"]:
            found[Event(int(record["event"]))] = log.sites[int(record["site"])]
    lines = SOURCE.splitlines()
    assert {site.file for site in found.values()} == {"shop.py"}
    assert {site.function for site in found.values()} == {"Caller.one"}
    assert found[Event.COMM_START] == found[Event.CONTACT_DEST] == found[Event.COMM_FINISH]
    assert found[Event.WAIT_START] == found[Event.WAIT_END]
    assert [found[e].ordinal for e in (Event.COMM_START, Event.WAIT_START, Event.END)] == [1, 3, 4]
    assert "comm.call" in lines[found[Event.COMM_START].line - 1]


def test_reply_that_was_there_before_is_censored(logs: dict[str, Log]) -> None:
    """A reply picked up late is marked: its arrival was not seen."""
    late = of_request(logs["Caller.0.w0"], len("/late/"))
    flags = {Event(int(r["event"])): int(r["flags"]) for r in late}
    assert flags[Event.COMM_FINISH] == CENSORED
    assert flags[Event.WAIT_END] == CENSORED
    assert flags[Event.CONTACT_DEST] == 0


def test_failed_call_is_complete_and_flagged(logs: dict[str, Log]) -> None:
    """A call that cannot be made still has its three records; the execution ends with error, end, done."""
    broken = of_request(logs["Caller.0.w0"], len("/broken/"))
    assert [(Event(int(r["event"])), int(r["flags"])) for r in broken] == [
        (Event.BEGIN, 0),
        (Event.COMM_START, 0),
        (Event.CONTACT_DEST, FAILED),
        (Event.COMM_FINISH, FAILED),
        (Event.ERROR, FAILED),
        (Event.END, FAILED),
        (Event.DONE, FAILED),
    ]


def test_queued_arrival_is_flagged(logs: dict[str, Log]) -> None:
    """A request that found every worker busy says so, and how many it found inside."""
    arrivals = logs["Callee.0.front"].records
    assert arrivals["flags"].tolist()[-2:] == [0, QUEUED]
    assert arrivals["seq"].tolist()[-2:] == [1, 2]
    begins = logs["Callee.0.w0"].records
    begins = begins[begins["event"] == Event.BEGIN]
    assert begins["time"][-1] - arrivals["time"][-1] > 0.02e9


@pytest.mark.slow
def test_log_of_a_killed_worker_is_readable(tmp_path: Path) -> None:
    """What was flushed before a crash can be read; the successor writes a file of its own."""
    with running(make_project(tmp_path, SOURCE, "Callee")) as system:
        system.ask("Callee", "/job/?seconds=0")
        wait_for(lambda: len(read_log(system.logs / "Callee.0.w0.mlog").records) == 3)
        (pid,) = system.status("Callee")["workers"]
        system.begin("Callee", "/job/?seconds=9")
        wait_for(lambda: system.status("Callee")["busy"] == 1)
        import os
        import signal

        os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
        assert system.ask("Callee", "/job/?seconds=0").raw == b"done"
    assert len(read_log(system.logs / "Callee.0.w0.mlog").records) == 3
    assert len(read_log(system.logs / "Callee.0.w0-2.mlog").records) == 3
