"""Services go on when the disk is full."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from faults.system import System, ask, wait_for, write_project

pytestmark = pytest.mark.services

FULL = Path("/dev/full")


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is Linux's")
def test_standard_error_on_a_full_disk(tmp_path: Path) -> None:
    """Log lines and reports are lost, and nothing else: what dies is replaced, and the end is in good order."""
    with System(write_project(tmp_path / "echo", ["Echo"]), said=FULL) as system:
        status = system.status("Echo")
        os.kill(status["pid"], signal.SIGKILL)
        wait_for(lambda: system.status("Echo").get("pid", status["pid"]) != status["pid"], "a new front")
        (entry,) = [found for found in system.replicas("Echo") if found["pid"] != status["pid"]]
        assert ask(entry["url"], "/echo/") == (200, {"bytes": 0})
        system.stop()
        assert system.exit_status == 0
        assert system.left_over() == []
