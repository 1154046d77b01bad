"""Nothing depends on what the wall clock says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deployments import ask, make_project, running, wait_for

pytestmark = pytest.mark.services

JUMPY = """
import random, time

_time, _time_ns = time.time, time.time_ns

def _jump():
    return random.choice((-10**9, -3600, 0, 1, 3600, 10**9))

time.time = lambda: _time() + _jump()
time.time_ns = lambda: _time_ns() + _jump() * 10**9
"""

SOURCE = """
import time
from mup import EP, MS
from mup.errors import CallTimeoutError

class Jumpy(MS):
    pool_size = 3

    @EP("/times/")
    def times(self, comm):
        comm.respond([time.time() for _ in range(100)])

    @EP("/sleep/")
    def sleep(self, comm):
        time.sleep(float(comm.params["seconds"]))
        comm.respond("slept")

    @EP("/late/")
    def late(self, comm):
        try:
            comm.call("Jumpy", "/sleep/", {"seconds": 1}, timeout=0.3).get()
        except CallTimeoutError:
            comm.respond("timed out")

    @EP("/soon/")
    def soon(self, comm):
        comm.respond(comm.call("Jumpy", "/sleep/", {"seconds": 0.01}, timeout=25).get())
"""


@pytest.mark.slow
def test_wall_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that jumps by decades at every look, deadlines hold and replicas stay registered."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(JUMPY)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'clock'}:{os.environ.get('PYTHONPATH', '')}")
    with running(make_project(tmp_path / "project", SOURCE, "Jumpy")) as system:
        registry = system.deployment.registry_url

        def heard() -> float:
            metrics = ask(registry, "/mup/metrics").raw.decode().splitlines()
            beats = 'mup_registry_requests_total{path="/heartbeat",status="200"}'
            return sum(float(line.rpartition(" ")[2]) for line in metrics if line.startswith(beats))

        (entry,) = ask(registry, "/replicas?service=Jumpy").body["replicas"]
        times = system.ask("Jumpy", "/times/").body
        assert max(times) - min(times) > 10**9, "the clock does jump"
        assert system.ask("Jumpy", "/late/").raw == b"timed out"
        # Each of these looks at some clock a dozen times.
        wait_for(lambda: system.ask("Jumpy", "/soon/").raw == b"slept" and heard() >= 2, 60.0)
        assert ask(registry, "/replicas?service=Jumpy").body["replicas"] == [entry]
