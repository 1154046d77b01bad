"""Services below ``mup run``, as a user starts them, and their processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any, TypeVar, cast
from urllib.parse import urlsplit

from mup.runtime.protocol.run_token import find_token

__all__ = ["Process", "System", "ask", "wait_for", "write_project"]

START_SECONDS = 60.0
STOP_SECONDS = 60.0
_MARK = "MUP_FAULTS_FAMILY"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the system.

    Attributes:
        role: ``run``, ``registry``, ``front``, ``worker`` or ``other``.
        descriptors: Open ones.
        memory: KiB: pages of its own, and its share of those it has in common with others.
    """

    pid: int
    role: str
    descriptors: int
    memory: int


def wait_for(condition: Callable[[], _T], what: str, seconds: float = 60.0) -> _T:
    """Return the first true value of a condition.

    Raises:
        TimeoutError: There is none in time.
    """
    give_up = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > give_up:
            raise TimeoutError(f"waited {seconds:g} s for: {what}")
        time.sleep(0.02)
    return value


def ask(url: str, path: str, seconds: float = 30.0, token: str = "") -> tuple[int, Any]:
    """Return status and decoded body of a GET, which shows a token if there is one.

    Raises:
        OSError: There is no answer.
    """
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=seconds)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        data = response.read()
        return response.status, json.loads(data) if data[:1] in b"{[" else data.decode()
    finally:
        connection.close()


def write_project(folder: Path, services: Sequence[str], database: str = "", extra: str = "") -> Path:
    """Write a project of some of the services in ``project``; return its folder.

    Args:
        folder: Must not exist.
        services: Names of classes.
        database: URI of the database ``db``; "" = none.
        extra: More of ``mup.toml``.
    """
    shutil.copytree(Path(__file__).parent / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = '[project]\nname = "shop"\nclient = "workload:Buyer"\n'
    text += extra or "[registry]\nport = 0\n"
    for name in services:
        text += f'[services.{name}]\nclass = "shop:{name}"\nport = 0\n'
    if database:
        text += f'[databases.db]\nuri = "{database}"\n'
    (folder / "mup.toml").write_text(text, encoding="utf-8")
    return folder


class System:
    """``mup run`` and all it has started; a context manager that stops it.

    Args:
        project: Folder.
        options: More of the command line.
        env: Environment on top of this one's.
        prefix: Command that runs it, such as ``ip netns exec NAME``.
        said: File for what it writes to standard error; None = one in the project's folder.

    Attributes:
        logs: Folder of the event logs.
        said: File with everything it has written to standard error.
        registry: URL.
    """

    def __init__(
        self,
        project: Path,
        *,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        said: Path | None = None,
    ) -> None:
        self.project = project
        self.logs = project / "logs"
        self.said = said or project / "said.txt"
        self._mark = uuid.uuid4().hex
        self._options = [*options, "--json", "--log", str(self.logs)]
        self._prefix = list(prefix)
        self._env = {**os.environ, **(env or {}), _MARK: self._mark}
        self.registry = ""

    def __enter__(self) -> System:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it; return when it serves."""
        with self.said.open("ab") as said:
            self._run = subprocess.Popen(
                [*self._prefix, sys.executable, "-m", "mup", "run", str(self.project), *self._options],
                stdout=subprocess.PIPE,
                stderr=said,
                env=self._env,
                process_group=0,
            )
        try:
            self._described = self._description()
        except BaseException:
            self.kill()
            raise
        self.registry = self._described["registry"]

    @property
    def pid(self) -> int:
        """Process id of ``mup run``."""
        return self._run.pid

    @property
    def exit_status(self) -> int | None:
        """How ``mup run`` ended; None = it has not."""
        return self._run.poll()

    def first_urls(self, service: str) -> list[str]:
        """Return where the replicas of a service were when the system had started."""
        return list(self._described["services"][service]["replicas"])

    def replicas(self, service: str) -> list[dict[str, Any]]:
        """Return what the registry lists; nothing while there is no registry."""
        try:
            status, answer = ask(
                self.registry, f"/replicas?service={service}", token=find_token(self.registry)
            )
        except OSError:
            return []
        return list(answer["replicas"]) if status == 200 else []

    def status(self, service: str, replica: int = 0) -> dict[str, Any]:
        """Return what a front says of itself; nothing while it does not answer."""
        for found in self.replicas(service):
            if found["replica"] == replica:
                try:
                    answer: dict[str, Any] = ask(
                        found["url"], "/mup/status", token=find_token(self.registry)
                    )[1]
                except OSError:
                    continue
                return answer
        return {}

    def metrics(self, service: str, replica: int = 0) -> dict[str, float]:
        """Return the metrics of a replica by name and labels, without those all of them have."""
        (url,) = [r["url"] for r in self.replicas(service) if r["replica"] == replica]
        own = f'service="{service}",replica="{replica}"'
        found = {}
        for line in ask(url, "/mup/metrics")[1].splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name.replace(own, "").replace("{,", "{").replace("{}", "")] = float(value)
        return found

    def registry_pid(self) -> int:
        """Return the process id of the registry, 0 = there is none."""
        return next((pid for pid, line in self._family() if "mup_registry" in line), 0)

    def processes(self) -> list[Process]:
        """Return every process that the system consists of."""
        found = []
        fronts: set[int] = set()
        for pid, line in sorted(self._family()):
            role = "other"
            if pid == self._run.pid:
                role = "run"
            elif "mup_registry" in line:
                role = "registry"
            elif "mup.runtime.replica" in line:
                # Workers are forks of their front.
                role = "worker" if _parent(pid) in fronts else "front"
                fronts.add(pid)
            try:
                found.append(Process(pid, role, _descriptors(pid), _memory(pid)))
            except OSError:
                continue  # it has ended meanwhile
        return found

    def stop(self) -> None:
        """End it as Ctrl-C does; may be called at any time."""
        if not hasattr(self, "_run"):
            return
        if self._run.poll() is None:
            self._run.send_signal(signal.SIGINT)
            try:
                self._run.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        if self._run.stdout is not None:
            self._run.stdout.close()

    def kill(self) -> None:
        """Kill ``mup run`` with -9, and nothing else."""
        self._run.kill()
        self._run.wait()

    def left_over(self, seconds: float = 30.0) -> list[str]:
        """Return the command lines of processes that still run, after they have had some time to end."""
        try:
            wait_for(lambda: not self._family(), "all processes to end", seconds)
        except TimeoutError:
            return [line for _, line in self._family()]
        return []

    def log_text(self) -> str:
        """Return everything it has written to standard error."""
        return self.said.read_text(encoding="utf-8", errors="replace")

    def _description(self) -> dict[str, Any]:
        # The pipe is not waited at for ever: a system that does not start is to be noticed.
        out = cast("IO[bytes]", self._run.stdout)
        os.set_blocking(out.fileno(), False)
        text = b""

        def complete() -> dict[str, Any]:
            nonlocal text
            text += out.read() or b""
            if self._run.poll() is not None:
                raise RuntimeError(f"mup run ended with {self._run.returncode}: {self.log_text()}")
            try:
                answer: dict[str, Any] = json.loads(text)
            except ValueError:
                return {}
            return answer

        return wait_for(complete, "mup run to start", START_SECONDS)

    def _family(self) -> list[tuple[int, str]]:
        """Return pid and command line of every process that carries the mark and is no zombie."""
        found = []
        mark = f"{_MARK}={self._mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append((int(folder.name), line))
            except OSError:
                continue  # not ours to look at, or it has ended meanwhile
        return found


def _parent(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(text.rpartition(")")[2].split()[1])


def _descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
