"""Another profile leaves our trace of the scheduler alone; a trace that was lost counts as none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.host.tracing import EVENTS, TRACEFS, recorded

INSTANCES = TRACEFS / "instances"
ANOTHER = "from analyzer.host.tracing import recorded\nwith recorded(): pass"
LOST = f"""
import subprocess
from analyzer.host.tracing import recorded
with recorded() as recording:
    subprocess.run(["umount", "--lazy", {str(TRACEFS)!r}], check=True)
print(repr(recording.text))
"""


def _apart(code: str, *namespaces: str) -> str:
    """Run code in namespaces of its own, as in a container; return what it prints."""
    command = ["unshare", *namespaces, "--fork", sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def _own_instance() -> Path:
    return INSTANCES / f"mup-host-{os.getpid()}"


@pytest.fixture(autouse=True)
def _can_trace() -> None:
    with recorded() as recording:
        if recording is None:
            pytest.skip("this machine does not let us trace its scheduler")


def test_a_profile_in_another_container_leaves_our_trace() -> None:
    """It does not see the process that traces, and takes the trace for what a killed one has left."""
    with recorded() as recording:
        _apart(ANOTHER, "--pid", "--mount-proc")
        assert _own_instance().is_dir()
    assert recording is not None
    assert EVENTS[0] in recording.text
    assert not _own_instance().exists()


def test_what_a_killed_profile_left_is_removed() -> None:
    """Its instance would go on to record."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = INSTANCES / f"mup-host-{ended.pid}"
    with recorded():  # mounts what is not mounted
        left.mkdir()
    with recorded():
        assert not left.exists()


def test_a_lost_trace_is_none() -> None:
    """Measuring goes on without it, as where tracing is not permitted."""
    assert _apart(LOST, "--mount", "--propagation", "private").strip() == "''"
