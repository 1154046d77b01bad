"""Generate load in a process of its own, without disturbing the measurement.

By a process of its own: ``python -m mup.workload.driver`` imports the user's client, runs rounds, and is the
only place where user code of the workload runs; its CPU time can be read by its pid. `LoadDriver` is the
handle.

Protocol: one JSON document per line. To the process: its configuration, then the `Settings` of each round.
From it: ``{"ready": true}``, then a `LoadResult` per round; instead of either
``{"error": {"kind", "message", "where", "hint"}}``; before a result ``{"window": "open"}`` and
``{"window": "close"}`` at these moments, and ``{"progress": {...}}`` every second. It ends when its standard
input ends or its answers are not read any more, also in the middle of a round: its parent may have
been killed.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from mup import errors
from mup.environment import REGISTRY_TOKEN, registry_token
from mup.errors import DeploymentError, MupError, ProjectError, UsageError
from mup.events.settings import LogSettings
from mup.project import Project
from mup.runtime.protocol.run_token import find_token
from mup.tls import refuse_clear_text, tls_environment
from mup.workload.arrivals import Arrivals
from mup.workload.engine import DRAIN_SECONDS, Engine, Settings, check_scenario
from mup.workload.http import HttpLoad, request_client
from mup.workload.limits import allow_many_files
from mup.workload.result import LoadResult

if TYPE_CHECKING:
    from mup.runtime.client.events import EventLog
    from mup.workload.client import Client

__all__ = ["LoadDriver", "LoadResult"]

START_SECONDS = 15.0
SILENCE_SECONDS = 3 * DRAIN_SECONDS
"""How long after the end of the window the process may say nothing at all."""
GRACE_SECONDS = 1.0
"""How long the process may take to end in good order once it is not needed any more."""


class LoadDriver:
    """The load driver process of a project; a context manager that runs any number of rounds.

    Args:
        project: Names the client; or HTTP requests to be sent without any project.
        registry_url: Of the running system; "" = there is none.
        log_dir: Folder for the client's event log; None = no log.
        log: How it is written.
        env: Environment of the process on top of this one's.

    Raises:
        ProjectError: The project names no client.
        DeploymentError: The project has certificates, and the registry is not encrypted.
    """

    def __init__(
        self,
        project: Project | HttpLoad,
        registry_url: str,
        log_dir: Path | None = None,
        log: LogSettings | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._received = b""
        self._busy = False
        self._config: dict[str, Any] = {"registry_url": registry_url, "log_dir": str(log_dir or "")}
        self._config["log"] = msgspec.to_builtins(log or LogSettings())
        if isinstance(project, HttpLoad):
            self._config |= {"http": project.to_json(), "source": os.getcwd()}  # noqa: PTH109
            return
        if not project.client:
            raise ProjectError(
                "the project names no client",
                where=str(project.root / "mup.toml"),
                hint="add client = 'workload:ClassName' to [project]",
            )
        if registry_url:
            refuse_clear_text(registry_url, project.tls)
        if token := registry_token(project) or (registry_url and find_token(registry_url)):
            self._env.setdefault(REGISTRY_TOKEN, token)
        self._env = {**tls_environment(project.tls), **self._env}
        self._config |= {
            "client": project.client,
            "source": str(project.source),
            "externals": dict(project.externals),
        }

    @property
    def pid(self) -> int:
        """Process id, for CPU accounting."""
        return self._running().pid

    def __enter__(self) -> LoadDriver:
        package_folder = str(Path(__file__).resolve().parents[2])
        inherited = os.environ.get("PYTHONPATH", "")
        paths = os.pathsep.join(part for part in (package_folder, inherited) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mup.workload.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # The working folder must not hold a module that shadows one of ours.
            env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": paths, **self._env},
            # Ctrl-C goes to the command alone; it stops the others in order.
            process_group=0,
        )
        try:
            self._ask(self._config, START_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(
        self,
        clients: int,
        duration: float,
        warmup: float = 0.0,
        *,
        seed: int = 0,
        think_scale: float = 1.0,
        clients_from: int | None = None,
        arrivals: Arrivals | None = None,
        on_open: Callable[[], None] | None = None,
        on_close: Callable[[], None] | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> LoadResult:
        """Run one round and return what its clients saw.

        Args:
            clients: Concurrent users of a closed load; 0 for an open one.
            duration: Length of the window in seconds.
            warmup: Seconds before the window opens; clients start spread over it.
            seed: Of everything random in clients and arrivals.
            think_scale: Factor on all think times.
            clients_from: Users when the window opens, if others are to join or leave during the window.
            arrivals: Of an open load.
            on_open: Called here when the window opens.
            on_close: Called here when it closes.
            on_progress: Called here about every second with ``seconds`` since the window opened (negative
                before), ``cycles``, ``errors`` and mean ``response_time`` (None without cycles) of the last
                second, ``users`` (at work or thinking), ``unfinished`` cycles of the window, and
                ``first_error``: what the first that failed said, or "".

        Raises:
            UsageError: A value is out of range.
            DeploymentError: The client cannot run, or its process died.
        """
        settings = Settings(
            clients=clients,
            duration=duration,
            warmup=warmup,
            seed=seed,
            think_scale=think_scale,
            clients_from=clients_from,
            arrivals=arrivals,
        )
        deadline = time.monotonic() + warmup + duration + SILENCE_SECONDS
        answer = self._ask(settings.to_json(), warmup + duration + SILENCE_SECONDS)
        while "window" in answer or "progress" in answer:
            if "progress" in answer:
                if on_progress is not None:
                    on_progress(answer["progress"])
            else:
                callback = on_open if answer["window"] == "open" else on_close
                if callback is not None:
                    callback()
            # Who reports is alive: users who think for minutes keep a round from ending.
            deadline = max(deadline, time.monotonic() + SILENCE_SECONDS)
            answer = self._receive(deadline)
        return LoadResult.from_dict(answer)

    def stop(self) -> None:
        """End the process, also in the middle of a round; may be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._busy:
            # The rest of the round is not wanted, nor should it be waited for.
            process.kill()
        # The end of its standard input is what it waits for.
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise DeploymentError("the load driver is not running", hint="use it as a context manager")
        return self._process

    def _ask(self, message: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - pipes
        self._busy = True
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise DeploymentError(f"the load driver died with status {process.wait(timeout=3)}") from error
        return self._receive(time.monotonic() + seconds)

    def _receive(self, deadline: float) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.json.decode(self._line(deadline))
        self._busy = "window" in answer or "progress" in answer
        if "error" in answer:
            raise _error(answer["error"])
        return answer

    def _line(self, deadline: float) -> bytes:
        process = self._running()
        assert process.stdout is not None  # noqa: S101 - a pipe
        chunks = [self._received]
        while b"\n" not in chunks[-1]:
            ready, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                self.stop()
                raise DeploymentError("the load driver does not answer; it was stopped")
            chunk = os.read(process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise DeploymentError(f"the load driver died with status {process.wait(timeout=3)}")
            chunks.append(chunk)
        line, _, self._received = b"".join(chunks).partition(b"\n")
        return line


def _error(data: dict[str, str]) -> MupError:
    kind = getattr(errors, data["kind"], DeploymentError)
    # CallError wants a status as well; nothing that ends a round has one.
    kind = kind if kind is not errors.CallError else DeploymentError
    error: MupError = kind(data["message"], where=data["where"], hint=data["hint"])
    return error


def main() -> None:
    """Run the driver process."""
    import signal  # noqa: PLC0415

    # The parent process decides when this one ends, by the end of standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        # What the user's client prints is for people.
        os.dup2(2, 1)
        lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # A thread, because the user's imports and scenarios need not let an event loop have its turn.
        threading.Thread(target=_listen, args=(lines, answers.fileno()), daemon=True).start()
        allow_many_files()
        _drive(iter(lines.get, None), answers)


def _listen(lines: queue.SimpleQueue[bytes | None], answers: int) -> None:
    """Pass on what standard input says; at its end, or when the reader has gone, end the process."""
    watched = select.poll()
    watched.register(0, select.POLLIN)
    # Of a pipe that is written to, only the loss of its reader is reported.
    watched.register(answers, 0)
    received = b""
    while answers not in dict(watched.poll()):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        *complete, received = (received + chunk).split(b"\n")
        for line in complete:
            lines.put(line)
    lines.put(None)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


def _drive(lines: Iterator[bytes], answers: Any) -> None:
    config_line = next(lines, None)
    if config_line is None:
        return
    try:
        config = json.loads(config_line)
        externals = config.get("externals", {})
        if "http" in config:
            requests = HttpLoad.from_json(config["http"])
            client, externals = request_client(requests), requests.hosts
        else:
            client = _import_client(config["client"], config["source"])
        log = _open_log(config, client)
    except MupError as error:
        _refuse(answers, error)
        return
    _say(answers, {"ready": True})
    engine = Engine(client, config["registry_url"], log, Path(config["source"]), externals)
    _serve(engine, lines, answers)
    if log.writer is not None:
        log.writer.close()


def _serve(engine: Engine, lines: Iterator[bytes], answers: Any) -> None:
    import asyncio  # noqa: PLC0415
    import gc  # noqa: PLC0415

    factory = None
    try:
        import uvloop  # noqa: PLC0415

        factory = uvloop.new_event_loop
    except ImportError:
        pass
    # Thousands of clients are thousands of long-lived objects: not to be searched for garbage at every turn.
    gc.freeze()
    with asyncio.Runner(loop_factory=factory) as runner:
        for line in lines:
            try:
                settings = Settings.from_json(json.loads(line))
                result = runner.run(engine.run(settings, lambda message: _say(answers, message)))
            except MupError as error:
                _refuse(answers, error)
            else:
                _say(answers, result.to_dict())


def _import_client(target: str, source: str) -> type[Client]:
    module, _, name = target.partition(":")
    sys.path.insert(0, source)
    try:
        kind = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise UsageError(
            f"cannot import the client {target!r} from {source}: {type(error).__name__}: {error}"
        ) from error
    return check_scenario(kind, target)


def _open_log(config: dict[str, Any], client: type[Client]) -> EventLog:
    from mup.events.writer import open_log  # noqa: PLC0415
    from mup.runtime.client.events import EventLog  # noqa: PLC0415

    header = {"role": "client", "service": client.__name__, "replica": 0, "worker": 0}
    settings = msgspec.convert(config["log"], LogSettings)
    writer = open_log(config["log_dir"], f"{client.__name__}.client", header, settings)
    return EventLog(writer, Path(config["source"]), settings.sample)


def _refuse(answers: Any, error: MupError) -> None:
    what = {"kind": type(error).__name__, "message": error.message, "where": error.where, "hint": error.hint}
    _say(answers, {"error": what})


def _say(answers: Any, message: Mapping[str, Any]) -> None:
    try:
        answers.write(msgspec.json.encode(message) + b"\n")
        answers.flush()
    except BrokenPipeError:
        # The reader has gone: there is no place for a message.
        os._exit(1)


if __name__ == "__main__":
    main()
