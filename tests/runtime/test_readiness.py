"""A replica is ready when it should get requests, and says why when it is not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from deployments import Answer, ask, make_project, running, wait_for

pytestmark = pytest.mark.services

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
from pathlib import Path

from mup import EP, MS, Communication

BROKEN = Path(__file__).with_name("broken")


class Shop(MS):
    def setup(self):
        if BROKEN.exists():
            raise RuntimeError("broken on purpose")

    @EP("/x/")
    def x(self, comm: Communication) -> None:
        comm.respond("x")
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def readiness(url: str) -> tuple[int, str] | None:
    """Return status and state; None while there is no answer."""
    try:
        answer: Answer = ask(url, "/readyz")
    except OSError:
        return None
    assert ("reason" in answer.body) == (answer.status == 503)
    return answer.status, answer.body["status"]


def test_not_ready_before_it_is_registered(tmp_path: Path) -> None:
    """A replica that serves, but that no registry knows of, says so; then it is ready."""
    make_project(tmp_path, SOURCE, "Shop")
    port, registry_port = free_port(), free_port()
    config = {
        "service": "Shop",
        "target": "shop:Shop",
        "source": str(tmp_path),
        "registry": f"http://127.0.0.1:{registry_port}",
        "port": port,
        "registry_patience": 60,
    }
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "mup.runtime.replica", json.dumps(config)],
        stdout=subprocess.DEVNULL,
        env=environment,
    ) as replica:
        try:
            wait_for(lambda: readiness(url) == (503, "not registered"), 30)
            assert ask(url, "/healthz").status == 200
            with subprocess.Popen(
                [sys.executable, "-m", "mup_registry", "--port", str(registry_port)],
                stdout=subprocess.DEVNULL,
                env=environment,
            ) as registry:
                wait_for(lambda: readiness(url) == (200, "ready"), 30)
                replica.send_signal(signal.SIGTERM)
                assert replica.wait(30) == 0
                registry.terminate()
        finally:
            replica.kill()


@pytest.mark.slow
def test_not_ready_without_workers(tmp_path: Path) -> None:
    """A replica whose workers have died and cannot be replaced is alive, but not ready."""
    with running(make_project(tmp_path, SOURCE, "Shop")) as system:
        url = system.url("Shop")
        (tmp_path / "broken").touch()
        os.kill(system.status("Shop")["workers"][0], signal.SIGKILL)
        wait_for(lambda: readiness(url) == (503, "no worker"), 30)
        assert ask(url, "/healthz").status == 200
        (tmp_path / "broken").unlink()
        wait_for(lambda: readiness(url) == (200, "ready"), 30)
        assert ask(url, "/x/").raw == b"x"
