"""A worker can be stopped in a debugger, and logs its stacks."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deployments import ask, make_project, running, wait_for

from mup.cli.main import main

pytestmark = [pytest.mark.services, pytest.mark.slow]

SERVICES = """
import asyncio
import os
import time

from mup import EP, MS, Communication

class {name}(MS):
    runtime = "{runtime}"
    pool_size = 4

    @EP("/stop/")
    {prefix}def stop(self, comm: Communication) -> None:
        secret = 6 * 7
        breakpoint()
        comm.respond(secret)
"""
TOML = """
[registry]
port = 0
[services.A]
class = "shop:A"
port = 0
"""


class Session:
    """A running ``mup run --debug`` with pipes in place of a terminal."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mup", "run", str(folder), "--debug", "--json", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.pid = self._process.pid
        self._seen = ""
        self._arrived: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while data := os.read(self._process.stdout.fileno(), 4096):
            self._arrived.put(data.decode())

    def until(self, text: str) -> str:
        """Return what was printed up to a text, which is taken off."""
        give_up = time.monotonic() + 60
        while text not in self._seen:
            self._seen += self._arrived.get(timeout=max(0.0, give_up - time.monotonic()))
        before, _, self._seen = self._seen.partition(text)
        return before

    def type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def url(self) -> str:
        """Return where the service listens, once it does."""
        text = self.until("\n}")
        described = json.loads(text[text.index("{") :] + "}")
        (url,) = described["services"]["A"]["replicas"]
        assert described["services"]["A"]["pool_size"] == 1
        return str(url)

    def end(self) -> int:
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait(60)
        self._reader.join(60)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return status


@contextmanager
def debugging(folder: Path, runtime: str, *words: str) -> Iterator[Session]:
    prefix = "async " if runtime == "async" else ""
    (folder / "shop.py").write_text(SERVICES.format(name="A", runtime=runtime, prefix=prefix))
    (folder / "mup.toml").write_text(TOML)
    session = Session(folder, *words)
    try:
        yield session
    finally:
        assert session.end() == 0


@pytest.mark.parametrize("runtime", ["process", "async"])
def test_breakpoint_stops_the_worker_in_the_terminal(tmp_path: Path, runtime: str) -> None:
    """One reads variables, changes one and goes on; the answer has it. The caller's deadline does not matter."""
    with debugging(tmp_path, runtime) as session, ThreadPoolExecutor(1) as pool:
        url = session.url()
        answer = pool.submit(ask, url, "/stop/", X_Mup_Deadline="1")
        assert "comm.respond(secret)" in session.until("(Pdb) ")
        session.type("p secret")
        assert session.until("(Pdb) ").strip() == "42"
        session.type("secret = 43")
        session.until("(Pdb) ")
        session.type("c")
        assert answer.result(60).raw == b"43"


def test_an_editor_attaches(tmp_path: Path) -> None:
    """With a port, debugpy answers there as the debug adapter protocol wants it, and the service serves."""
    pytest.importorskip("debugpy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with debugging(tmp_path, "process", "--debug-port", str(port)) as session:
        assert ask(session.url(), "/healthz").status == 200
        asked = {"seq": 1, "type": "request", "command": "initialize", "arguments": {"adapterID": "test"}}
        body = json.dumps(asked).encode()
        with socket.create_connection(("127.0.0.1", port), 30) as editor:
            editor.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            seen = b""
            while b"supportsConfigurationDoneRequest" not in seen:
                seen += editor.recv(65536) or pytest.fail(f"the adapter has gone: {seen!r}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param([], "--debug runs one service in the foreground, not 2 (A, B)", id="several"),
        pytest.param(["--service", "A", "--pool", "A=2"], "leave out --pool", id="pool"),
        pytest.param(["--service", "A", "--reload"], "--reload", id="reload"),
    ],
)
def test_what_cannot_be_debugged_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    """With what to type instead, before anything is started."""
    (tmp_path / "mup.toml").write_text(TOML + '[services.B]\nclass = "shop:B"\n')
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path), "--debug", *words])
    assert (ended.value.code, says in capsys.readouterr().err) == (2, True)


BUSY = """
import asyncio
import time

from mup import EP, MS, Communication

class Processes(MS):
    pool_size = 2

    @EP("/think/")
    def think(self, comm: Communication) -> None:
        self.deep_in_thought(comm.params["until"])
        comm.respond("done")

    def deep_in_thought(self, until):
        import os
        while not os.path.exists(until):
            time.sleep(0.005)

class Threads(Processes):
    runtime = "thread"
    think = EP("/think/")(Processes.think)
"""


@pytest.mark.parametrize(("service", "form"), [("Processes", "text"), ("Threads", "json")])
def test_stacks_of_all_workers(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    form: str,
) -> None:
    """SIGUSR1 to the front: every worker's stacks are logged, and everything goes on."""
    monkeypatch.setenv("MUP_LOG", form)
    release = tmp_path / "go"
    with running(make_project(tmp_path, BUSY, service)) as system:
        thinking = system.begin(service, f"/think/?until={release}")
        wait_for(lambda: system.status(service)["busy"] == 1, 30)
        (front,) = [r.pid for r in system.deployment.replicas()]
        log: list[str] = []

        def told() -> bool:
            # A worker counts as busy a moment before it is in the endpoint.
            os.kill(front, signal.SIGUSR1)
            time.sleep(0.2)
            log.append(capfd.readouterr().err)
            text = "".join(log)
            return "deep_in_thought" in text and text.count("is doing this") >= (
                2 if service == "Processes" else 1
            )

        wait_for(told, 30)
        release.touch()
        assert thinking.result(30).raw == b"done"
        assert system.ask(service, f"/think/?until={release}").raw == b"done"
    if form == "json":
        lines: list[Any] = [json.loads(line) for line in "".join(log).splitlines() if line.startswith("{")]
        assert any("deep_in_thought" in part for line in lines for part in line.get("stacks", ()))


def test_a_worker_that_is_stopped_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The front waits for it no longer than it must, and says so."""
    with running(make_project(tmp_path, BUSY, "Threads")) as system:
        (front,) = [r.pid for r in system.deployment.replicas()]
        worker = system.status("Threads")["workers"][0]
        os.kill(worker, signal.SIGSTOP)
        try:
            os.kill(front, signal.SIGUSR1)
            seen: list[str] = []
            wait_for(
                lambda: (
                    seen.append(capfd.readouterr().err) or "does not say what it is doing" in "".join(seen)
                ),
                30,
            )
        finally:
            os.kill(worker, signal.SIGCONT)
