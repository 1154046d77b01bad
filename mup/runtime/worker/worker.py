"""A worker, process or thread: set up, serve one request at a time, tear down."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mup.communication import DEFAULT_TIMEOUT
from mup.events.settings import LogSettings
from mup.events.writer import open_log
from mup.runtime.client.events import EventLog
from mup.runtime.client.replicas import CACHE_SECONDS
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.endpoint.execution import Execution, describe
from mup.runtime.endpoint.worker_tools import WorkerTools
from mup.runtime.process.debugging import NO_HURRY, Debugging
from mup.runtime.process.lifetime import die_with
from mup.runtime.protocol.origin import KnownHosts
from mup.runtime.protocol.wire import BlockingChannel, Line, LogOff, Ready, Request
from mup.runtime.worker.tray import Tray
from mup.runtime.worker.worker_communication import WorkerCommunication
from mup.service import MS

if TYPE_CHECKING:
    from mup.retries import RetryPolicy
    from mup.runtime.client.retries import Retries

__all__ = ["ServiceRun", "become_worker_process", "run_worker", "serve_worker"]

_log = logging.getLogger("mup.runtime")
_IDLE_SECONDS = 1
"""Without requests, a worker looks so often whether its log has to be flushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRun:
    """What one replica of a service runs.

    Attributes:
        service: Its name.
        kind: Its class.
        dispatch: Its endpoints.
        replica: Number of this replica.
        registry: URL of the registry.
        source: Folder that sites are named relative to.
        log_dir: Folder for event logs, or "".
        runtime: ``process``, ``thread`` or ``async``.
        admission: In which order waiting requests get workers.
        pinned: Whether a process with several workers stays on one core.
        position: Of the service among those of its project, from 0: the core its first replica is pinned to.
        registry_token: What the registry wants to see.
        hosts: The names by which the replica is called.
        registry_cache: Seconds a list of replicas is used.
        databases: URIs of databases the registry need not be asked for.
        retry: How calls are made again; None = they are not.
        log: How they are written.
        debug: What its worker is debugged with, or None.
        production: Whether clients are told nothing of what goes wrong.
    """

    service: str
    kind: type[MS]
    dispatch: Dispatch
    replica: int
    registry: str
    source: Path
    log_dir: str
    log: LogSettings
    runtime: str = "process"
    admission: str = "fifo"
    pinned: bool = True
    position: int = 0
    registry_token: str = field(default="", repr=False)
    hosts: KnownHosts = field(default_factory=KnownHosts)
    registry_cache: float = CACHE_SECONDS
    databases: Mapping[str, str] = field(default_factory=dict, repr=False)
    retry: RetryPolicy | None = None
    debug: Debugging | None = None
    production: bool = False

    @property
    def patience(self) -> float:
        """Seconds an operation may take unless its caller says otherwise."""
        return NO_HURRY if self.debug is not None else DEFAULT_TIMEOUT

    def retries(self, worker: int) -> Retries | None:
        """Return what decides which calls of a worker are made again, if any are."""
        if self.retry is None:
            return None
        # Loaded where a service has retries.
        from mup.runtime.client.retries import Retries  # noqa: PLC0415

        return Retries(self.retry, f"{self.service} {self.replica} {worker}")

    def resolver(self, pool: ConnectionPool) -> Resolver:
        """Return what finds replicas and databases for the workers that share some connections."""
        return Resolver(
            self.registry,
            pool,
            ttl=self.registry_cache,
            token=self.registry_token,
            databases=self.databases,
        )


def run_worker(run: ServiceRun, number: int, line: Line, parent: int, tray: Tray) -> None:
    """Be a process with one worker: serve until the front closes its end of the line, or dies.

    Args:
        run: What to serve.
        number: Of this worker in the replica, from 0.
        line: To the front.
        parent: Process id of the front.
        tray: Of the replica.
    """
    become_worker_process(parent)
    serve_worker(run, number, line, tray)


def become_worker_process(parent: int) -> None:
    """Leave signals to the front, and end when it does."""
    # Ctrl-C and SIGTERM reach whole process groups; the front decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with(parent)


def serve_worker(run: ServiceRun, number: int, line: Line, tray: Tray) -> None:
    """Set up, serve until the front closes its end of the line, tear down.

    Args:
        run: What to serve.
        number: Of this worker in the replica, from 0.
        line: To the front.
        tray: Of the replica.
    """
    channel = BlockingChannel(line, _IDLE_SECONDS)
    header = {"role": "worker", "service": run.service, "replica": run.replica, "worker": number}
    writer = open_log(run.log_dir, f"{run.service}.{run.replica}.w{number}", header, run.log)
    pool = ConnectionPool()
    log, silent = EventLog(writer, run.source), EventLog(None, run.source)
    resolver = run.resolver(pool)
    retries = resolver.retries = run.retries(number)
    if retries is not None:
        retries.report = channel.send
    tools = WorkerTools(
        service=run.service,
        log=log,
        silent=silent,
        resolver=resolver,
        pool=pool,
        patience=run.patience,
        production=run.production,
    )
    failure = ""
    try:
        instance = run.kind()
        instance.service_name = run.service
        instance.setup()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        _log.exception("worker %d: setup failed", number)
        failure = f"setup failed: {describe(error)}"
    try:
        channel.send(Ready(failure))
        if not failure:
            _serve(instance, run, tools, channel, tray)
    except OSError as error:
        # The front has gone, or needs this worker no more; there is no one-way message left to send.
        _log.warning("worker %d: the front has gone: %s", number, error)
    finally:
        if not failure:
            try:
                instance.teardown()
            except (Exception, SystemExit):  # noqa: BLE001 - the user's code may raise anything
                _log.exception("worker %d: teardown failed", number)
        if tools.queries is not None:
            tools.queries.close()
        pool.close()
        if writer is not None:
            writer.close()
        # In a process of threads nothing else does, and the front waits for it.
        line.close()


def _serve(instance: MS, run: ServiceRun, tools: WorkerTools, channel: BlockingChannel, tray: Tray) -> None:
    writer, pool = tools.log.writer, tools.pool
    off = False
    following: Request | None = None
    while True:
        if writer is not None and (writer.problem != "") is not off:
            off = not off
            channel.send(LogOff(off))
        try:
            request = following or channel.receive()
        except BlockingIOError:
            # Idle: keep the log fresh for readers and look after answers that are not waited for.
            pool.reap()
            if writer is not None:
                writer.flush_if_older(_IDLE_SECONDS)
            if not pool.abandoned and (writer is None or not writer.pending):
                channel.wait()
            continue
        if request is None:
            return
        following = _execute(instance, run, tools, channel, request, tray)
        if pool.abandoned:
            pool.reap()
        if writer is not None:
            writer.flush_if_older(_IDLE_SECONDS)


def _execute(
    instance: MS, run: ServiceRun, tools: WorkerTools, channel: BlockingChannel, request: Request, tray: Tray
) -> Request | None:
    """Serve one request; return the one the worker has then taken by itself."""
    began = time.monotonic()
    key, dispatch = request.key, run.dispatch
    comm = WorkerCommunication(request, f"{run.service}{key}", tools, channel, dispatch.names.get(key, ()))
    comm.runner = _execute.__code__
    execution = Execution(run.service, request, comm)
    with execution:
        values = dispatch.values(key, comm)
        getattr(instance, dispatch.endpoints[key].method)(comm, **values)
    taken, following = tray.take()
    channel.done(failed=execution.failed, taken=taken, seconds=time.monotonic() - began)
    comm.close()
    return following
