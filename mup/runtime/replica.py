"""Run one replica of a service: ``python -m mup.runtime.replica CONFIG``.

``CONFIG`` is a JSON object (fields: :class:`ReplicaConfig`), or ``-``: then it is the first line of standard
input, and the replica ends when standard input does, so that it never outlives its parent process.

Prints one JSON line when it serves, ``{"ready": true, "url", "pid", "workers", ...}``, or when it cannot,
``{"error", "where", "hint"}`` with exit status 2.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mup.addresses import socket_for, url_of, why_not_bound
from mup.environment import is_production
from mup.errors import DeploymentError, MupError
from mup.events.settings import LogSettings
from mup.events.writer import open_log
from mup.retries import RetryPolicy
from mup.runtime.client.replicas import CACHE_SECONDS
from mup.runtime.deployment.registration import Registration, advertised_host
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.pool.front import MAX_BODIES, MAX_BODY, Front, Limits
from mup.runtime.pool.watchdog import BUSY_SECONDS
from mup.runtime.pool.workforce import Workforce, open_descriptors
from mup.runtime.process.debugging import Debugging
from mup.runtime.process.importing import import_service
from mup.runtime.process.loops import new_event_loop
from mup.runtime.process.service_log import set_up_logging
from mup.runtime.protocol.origin import KnownHosts
from mup.runtime.protocol.run_token import find_token
from mup.runtime.server.http_server import HttpServer
from mup.runtime.worker.worker import ServiceRun
from mup.service import check_admission, check_queue_limit, check_service
from mup.tls import TlsFiles, refuse_clear_text, server_context
from mup.workload.limits import allow_many_files

if TYPE_CHECKING:
    from mup.runtime.server.static_files import StaticFiles

__all__ = ["ReplicaConfig", "main"]

_log = logging.getLogger("mup.runtime")
_BEGIN_SECONDS = 1.0
"""What connections get that were accepted last: with TLS there is a handshake."""


class ReplicaConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one replica is told.

    Attributes:
        service: Name of the service.
        target: ``module:Class``.
        source: Folder to import it from.
        registry: URL of the registry.
        replica: Number of this replica, from 0.
        position: Of the service among those of its project, from 0.
        pool_size, replicas, port: Override the class; None = as the class says.
        host: Address to listen on.
        log_dir: Folder for event logs, or "".
        log: How they are written.
        static: Folders of files to serve by path prefix; None = as the class says.
        max_body: Bytes a request body may have.
        max_bodies: Bytes that all request bodies in memory may have together; None = 64 MiB, or `max_body` if
            that is more.
        body_timeout: Seconds a request body may take to arrive.
        request_limit: Seconds a worker may have one request; None = as long as it takes.
        busy_limit: Seconds after which a replica whose workers are all busy with the same requests is not
            ready; 0 = never.
        production: Whether clients are told nothing of what goes wrong but the status and an id.
        queue_limit: Overrides the class: requests that may wait for a worker; None = as the class says.
        admission: Overrides the class: in which order they get one; None = as the class says.
        heartbeat: Seconds between signs of life to the registry.
        registry_patience: Seconds to wait for the registry at start.
        registry_cache: Seconds workers use a list of replicas before they ask again; 0 = they ask for every
            call.
        advertise: Address under which others reach this machine; "" = ``host``, or the one the registry sees.
        names: Others by which it may be called, where it tells of itself.
        databases: URIs, with the name of the database and credentials, that workers need not ask the registry
            for; by the name the project gives them.
        queries: Whether the project has databases: what queries need is loaded before there are workers.
        tls: Certificate and key it serves with; None = unencrypted.
        retries: How the calls of this service are made again; None = they are not.
        drain: Seconds requests in work get when the replica stops.
        debug: What the worker is debugged with, or None.
        reload: Whether a successor may start on the same port before this replica stops; then it also says
            which source files it is made of.
    """

    service: str
    target: str
    source: str
    registry: str
    replica: int = 0
    position: int = 0
    pool_size: int | None = None
    replicas: int | None = None
    port: int | None = None
    host: str = "127.0.0.1"
    log_dir: str = ""
    log: LogSettings = LogSettings()
    static: dict[str, str] | None = None
    max_body: int = MAX_BODY
    max_bodies: int | None = None
    body_timeout: float = 30.0
    request_limit: float | None = None
    busy_limit: float = BUSY_SECONDS
    production: bool = False
    queue_limit: int | None = None
    admission: str | None = None
    heartbeat: float = 1.0
    registry_patience: float = 3.0
    registry_cache: float = CACHE_SECONDS
    advertise: str = ""
    names: list[str] = []
    databases: dict[str, str] = {}
    queries: bool = False
    tls: TlsFiles | None = None
    retries: RetryPolicy | None = None
    drain: float = 5.0
    reload: bool = False
    debug: Debugging | None = None


def main(arguments: list[str] | None = None) -> int:
    """Run a replica until it is told to stop; return the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    # What services print must not get between the launcher and its JSON line.
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # A connection is a descriptor, and the usual limit of 1024 is for programs that use select().
    allow_many_files()
    os.dup2(2, 1)
    watch_stdin = words == ["-"]
    try:
        if len(words) != 1:
            raise DeploymentError("expected one argument: a JSON object, or - to read it from stdin")
        config = _config(_first_line() if watch_stdin else words[0])
        set_up_logging(config.service, config.replica)
        _Replica(config, report, watch_stdin=watch_stdin).run()
    except MupError as error:
        if not report.closed:
            with contextlib.suppress(BrokenPipeError):  # who started this replica may have gone
                json.dump({"error": error.message, "where": error.where, "hint": error.hint}, report)
                report.write("\n")
                report.close()
        return 2
    return 0


class _Replica:
    """Import, bind, fork, register, serve, drain."""

    def __init__(self, config: ReplicaConfig, report: Any, *, watch_stdin: bool) -> None:
        self._config = config
        self._report = report
        self._watch_stdin = watch_stdin
        kind = import_service(config.target, Path(config.source))
        self._pool_size: int = kind.pool_size if config.pool_size is None else config.pool_size
        self._replicas: int = kind.replicas if config.replicas is None else config.replicas
        self._port: int = kind.port if config.port is None else config.port
        self._advertised = advertised_host(config.host, config.advertise, config.registry)
        tls = config.tls
        refuse_clear_text(config.registry, tls)
        self._tls = server_context(tls, self._advertised) if tls is not None else None
        queue_limit = kind.queue_limit if config.queue_limit is None else config.queue_limit
        check_queue_limit(queue_limit, kind)
        admission = kind.admission if config.admission is None else config.admission
        check_admission(admission, kind)
        self._limits = Limits(
            max_body=config.max_body,
            body_seconds=config.body_timeout,
            queue=math.inf if queue_limit is None else queue_limit,
            bodies=max(MAX_BODIES, config.max_body) if config.max_bodies is None else config.max_bodies,
            request_seconds=config.request_limit,
            busy_seconds=config.busy_limit,
        )
        endpoints = check_service(kind, pool_size=self._pool_size, replicas=self._replicas, port=self._port)
        self._run = ServiceRun(
            service=config.service,
            kind=kind,
            dispatch=Dispatch(kind, endpoints),
            replica=config.replica,
            registry=config.registry,
            source=Path(config.source),
            log_dir=config.log_dir,
            runtime=kind.runtime,
            admission=admission,
            pinned=kind.pinned,
            position=config.position,
            registry_token=find_token(config.registry),
            hosts=KnownHosts(config.host, [self._advertised, *config.names]),
            registry_cache=config.registry_cache,
            databases=config.databases,
            retry=config.retries,
            log=config.log,
            debug=config.debug,
            production=config.production or is_production(),
        )
        folders = kind.static if config.static is None else config.static
        where = f"services.{config.service}"
        self._static: StaticFiles | None = None
        if folders:
            # What sends files is loaded where there are some.
            from mup.runtime.server.static_files import StaticFiles  # noqa: PLC0415

            self._static = StaticFiles(folders, self._run.source, where)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT, or the end of standard input.

        Raises:
            DeploymentError: It could not start.
        """
        # Descriptors of the user's module survive in workers, everything opened from here on does not.
        inherited = open_descriptors() - {self._report.fileno()}
        self._listener = self._bind()
        if self._config.queries:
            # What drivers are made of is loaded where there are databases.
            from mup.databases.driver import load_drivers  # noqa: PLC0415

            load_drivers(awaited=self._run.runtime == "async")
        self._workforce = Workforce(self._run, self._pool_size, inherited)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    def _bind(self) -> socket.socket:
        port = self._port + self._config.replica if self._port else 0
        listener = socket_for(self._config.host)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._config.reload:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind((self._config.host, port))
            listener.listen(1024)
        except (OSError, OverflowError) as error:
            listener.close()
            owner = f"replica {self._config.replica}"
            reason, remedy = why_not_bound(error, self._config.host, port, owner)
            raise DeploymentError(reason, where=f"services.{self._config.service}", hint=remedy) from error
        return listener

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGUSR1, self._workforce.show_stacks)
        if self._watch_stdin:
            loop.add_reader(0, _at_end_of_stdin, stop.set)
        config = self._config
        header = {
            "role": "front",
            "service": config.service,
            "replica": config.replica,
            "worker": None,
            "pool_size": self._pool_size,
        }
        writer = open_log(config.log_dir, f"{config.service}.{config.replica}.front", header, config.log)
        self._front = Front(self._run, self._pool_size, writer, self._limits, self._static)
        self._front.resize = self._workforce.resize
        try:
            await self._workforce.join(self._front)
            self._front.watchdog.start()
            port = self._listener.getsockname()[1]
            self._front.url = url_of(self._advertised, port, tls=self._tls is not None)
            self._front.pid = os.getpid()
            server = HttpServer(
                self._front,
                max_body=self._limits.max_body,
                max_bodies=self._limits.bodies,
                body_seconds=self._limits.body_seconds,
            )
            await server.listen(
                self._listener, self._tls, self._front.caller_refused, self._front.no_descriptor
            )
            registration = self._registration()
            try:
                await registration.start()
                self._front.listed = True
                self._say_ready()
                await self._until(stop, writer)
            finally:
                # First, so that callers look elsewhere; what comes meanwhile is still served.
                self._workforce.ending = True
                self._front.listed = False
                await registration.stop()
                self._front.draining = True
                server.stop_listening()
                await server.begun(_BEGIN_SECONDS)
                await self._front.drained(config.drain)
                if server.connections:
                    await self._front.quiet()
                await server.shut_down(0.5)
        finally:
            self._front.watchdog.stop()
            await self._workforce.end()
            if writer is not None:
                writer.close()

    async def _until(self, stop: asyncio.Event, writer: Any) -> None:
        """Wait for the end, keeping the log fresh for readers."""
        while not stop.is_set():
            if writer is not None:
                writer.flush_if_older(1.0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1.0)

    def _registration(self) -> Registration:
        entry = {
            "service": self._config.service,
            "replica": self._config.replica,
            "url": self._front.url,
            "pid": os.getpid(),
            "endpoints": {
                endpoint.name: endpoint.address for endpoint in self._run.dispatch.endpoints.values()
            },
        }
        config = self._config
        return Registration(
            config.registry,
            entry,
            heartbeat=config.heartbeat,
            patience=config.registry_patience,
            token=self._run.registry_token,
        )

    def _say_ready(self) -> None:
        """Tell the process that started the replica that it serves."""
        ready = {
            "ready": True,
            **self._front.status(),
            "replicas": self._replicas,
            "port": self._port,
            "endpoints": list(self._run.dispatch.endpoints),
            "sources": _sources(self._run.source) if self._config.reload else [],
        }
        with contextlib.suppress(OSError):  # the reader may have gone
            json.dump(ready, self._report)
            self._report.write("\n")
            self._report.close()


def _config(text: str) -> ReplicaConfig:
    try:
        return msgspec.json.decode(text, type=ReplicaConfig)
    except msgspec.DecodeError as error:
        raise DeploymentError(f"the replica's configuration is wrong: {error}") from error


def _first_line() -> str:
    """Read one line without taking anything behind it from the descriptor."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            # The parent has gone before it said what to serve: there is no reader of a message.
            os._exit(1)
        line += byte
    return line.decode()


def _at_end_of_stdin(stop: Any) -> None:
    if not os.read(0, 4096):
        asyncio.get_running_loop().remove_reader(0)
        stop()


def _sources(folder: Path) -> list[str]:
    """Return the files below a folder that are loaded as modules."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return sorted(file for file in files if file and Path(file).is_relative_to(folder))


if __name__ == "__main__":
    sys.exit(main())
