"""Start and stop a project: registry, databases and replicas, each a process of its own."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from mup.addresses import is_loopback, is_wildcard, route_to, socket_for, url_of, why_not_bound
from mup.databases.address import without_credentials
from mup.environment import REGISTRY_TOKEN, is_production, registry_token
from mup.errors import DeploymentError, UsageError, did_you_mean
from mup.events.settings import LogSettings
from mup.project import EMBEDDED, LOOPBACK, Project, ServiceConfig
from mup.runtime.client.reply import BrokenError, RawResponse
from mup.runtime.client.request import RawRequest, address_of
from mup.runtime.client.sockets import ConnectionPool
from mup.runtime.deployment.child import Child
from mup.runtime.deployment.registry_client import RegistryClient
from mup.runtime.process.debugging import NO_HURRY, Debugging
from mup.runtime.protocol.run_token import find_token, forget_token, is_run_token, keep_token, new_token
from mup.service import ADMISSIONS
from mup.tls import TlsFiles, refuse_clear_text, server_context, tls_environment

if TYPE_CHECKING:
    from mup.databases.server import DatabaseServer

__all__ = ["Deployment", "ProcessInfo", "ReplicaInfo", "ServiceInfo"]

READY_SECONDS = 30.0
DRAIN_SECONDS = 5.0
"""What a replica gives its requests unless the project says otherwise."""
STOP_SECONDS = 9.0
"""What it gets for all: its workers have 2 s behind the requests before it kills them itself."""

_ELSEWHERE = "192.0.2.1"
"""An address of the documentation's: on no network, so that the way to it is the way to other machines."""

Role = Literal["front", "worker", "registry", "database", "client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    """A running replica; ``pid`` is its front's."""

    service: str
    replica: int
    url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInfo:
    """What a service runs with, class attributes and overrides taken together."""

    name: str
    pool_size: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """A process whose CPU time belongs to the deployment.

    Attributes:
        role: What it does.
        service: Service or database it belongs to; "registry" for the registry.
        replica: Number of the replica, else 0.
        worker: Number of the (first) worker, else 0.
        workers: How many workers it holds: one, or all of a replica of threads or with an event loop.
        pid: Process id.
    """

    role: Role
    service: str
    replica: int = 0
    worker: int = 0
    workers: int = 1
    pid: int


@dataclass(slots=True)
class _Replica:
    config: ServiceConfig
    number: int
    child: Child
    started: float
    ready: dict[str, Any]


class Deployment:
    """A project, running. A context manager: starts on entry, stops on exit.

    Without a token of the project or the environment, it invents one for this run: only its own processes,
    and commands of the same user, may join, ask or change anything (`mup.runtime.protocol.run_token`).

    Args:
        project: What to run.
        log_dir: Folder for event logs; None = ``MUP_LOG_DIR``, or no logs.
        log: How they are written; None = as ``MUP_LOG_SEGMENT``, ``MUP_LOG_KEEP`` and ``MUP_LOG_SAMPLE`` say.
        pools: Changed pool sizes by service.
        replicas: Changed numbers of replicas by service.
        admissions: Changed orders of admission by service.
        reloading: Whether `reload` will be used.
        services: Names of the services to run; empty = all.
        registry: URL of a registry that runs already; "" = the project's own is started, and so are its
            databases.
        host: Address replicas listen on.
        advertise: Address others reach them at; "" = ``host``.
        first_replica: Number of each service's first replica, so that those of several machines differ.
        debug: What the worker of the only service is debugged with; then nothing has to be ready in time.
        tls: Instead of the project's certificate, key and trust; None = the project's.
        production: Whether clients are told nothing of what goes wrong; so they are if the project says so.

    Attributes:
        registry_url: Of the registry, once it is started.
        token: What registry and replicas want to see; "" before the start, or with a registry that has none.
        token_file: Where commands of the same user find it, if it was invented; else None.

    Raises:
        UsageError: ``pools``, ``replicas``, ``admissions`` or ``services`` name an unknown service, a number
            is below 1, or an order unknown.
        DeploymentError: The environment says something about logs that is not understood, or the registry is
            not encrypted although the services are.
    """

    def __init__(
        self,
        project: Project,
        *,
        log_dir: Path | None = None,
        log: LogSettings | None = None,
        pools: Mapping[str, int] | None = None,
        replicas: Mapping[str, int] | None = None,
        admissions: Mapping[str, str] | None = None,
        reloading: bool = False,
        services: Sequence[str] = (),
        registry: str = "",
        host: str = LOOPBACK,
        advertise: str = "",
        first_replica: int = 0,
        debug: Debugging | None = None,
        tls: TlsFiles | None = None,
        production: bool = False,
    ) -> None:
        # Of all of them: machines that run some each agree on it.
        self._positions = {service.name: at for at, service in enumerate(project.services)}
        if services:
            chosen = {name: project.service(name) for name in services}
            project = replace(project, services=tuple(chosen.values()))
        self._project = project
        self._reloading = reloading
        self._foreign_registry = bool(registry)
        self._host, self._advertise, self._first = host, advertise, first_replica
        self._debug = debug
        self.token = ""
        self.token_file: Path | None = None
        self._production = production or project.production or is_production()
        self._tls = tls or project.tls
        if registry:
            refuse_clear_text(registry, self._tls)
        self._log_dir = str(log_dir.resolve()) if log_dir else os.environ.get("MUP_LOG_DIR", "")
        self._database_uris: dict[str, str] = {}
        self._log = log or LogSettings.from_environment(os.environ)
        self._pools = _checked("pool", pools or {}, project)
        self._counts = _checked("replicas", replicas or {}, project)
        self._admissions = _checked_admissions(admissions or {}, project)
        self._registry: Child | None = None
        self._databases: dict[str, DatabaseServer] = {}
        self._replicas: list[_Replica] = []
        self._http = ConnectionPool(self._tls)
        self._registry_started = 0.0
        self.registry_url = registry

    def __enter__(self) -> Deployment:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything, and return when every replica serves.

        Raises:
            DeploymentError: Something did not start; then everything is stopped again.
        """
        try:
            deadline = time.monotonic() + (NO_HURRY if self._debug else READY_SECONDS)
            self.token = registry_token(self._project)
            if not self.token and self._foreign_registry:
                self.token = find_token(self.registry_url)
            self._database_uris = self._known_databases()
            if not self._foreign_registry:
                self._start_registry(self._project.registry_port)
            for config in self._project.services:
                # How many replicas the class wants is known when the first one has imported it.
                for number in range(self._counts.get(config.name) or config.replicas or 1):
                    self._replicas.append(self._start_replica(config, self._first + number))
            if not self._foreign_registry:
                self._start_databases(deadline)
            for replica in self._replicas:
                replica.ready = replica.child.ready(deadline)
            more = [
                self._start_replica(first.config, self._first + number)
                for first in [r for r in self._replicas if r.number == self._first]
                if first.config.name not in self._counts and first.config.replicas is None
                for number in range(1, first.ready["replicas"])
            ]
            self._replicas += more
            for replica in more:
                replica.ready = replica.child.ready(deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, requests in work first; may be called again."""
        replicas, self._replicas = self._replicas, []
        databases, self._databases = self._databases, {}
        registry, self._registry = self._registry, None
        _end(replicas)
        for database in databases.values():
            database.stop()
        if registry is not None:
            registry.terminate()
            registry.end(time.monotonic() + 3.0)
        if not self._foreign_registry:
            forget_token(self.registry_url)
        self._http.close()

    def services(self) -> dict[str, ServiceInfo]:
        """Return what each service runs with."""
        return {
            config.name: ServiceInfo(
                name=config.name,
                pool_size=self._of(config.name)[0].ready["pool_size"],
                replicas=len(self._of(config.name)),
            )
            for config in self._project.services
        }

    def endpoints(self) -> dict[str, list[str]]:
        """Return what logs and models call the endpoints that each service serves."""
        return {c.name: list(self._of(c.name)[0].ready["endpoints"]) for c in self._project.services}

    def replicas(self) -> list[ReplicaInfo]:
        """Return the replicas, by service in file order, then by number."""
        return [
            ReplicaInfo(service=name, replica=r.number, url=r.ready["url"], pid=r.child.pid)
            for name in (config.name for config in self._project.services)
            for r in self._of(name)
        ]

    def databases(self) -> dict[str, DatabaseServer]:
        """Return the databases by name."""
        return dict(self._databases)

    def processes(self) -> list[ProcessInfo]:
        """Return every process of the deployment on this host, as of now.

        Raises:
            DeploymentError: A replica does not answer.
        """
        found = []
        if self._registry is not None:
            found.append(ProcessInfo(role="registry", service="registry", pid=self._registry.pid))
        for name, database in self._databases.items():
            if database.pid is not None:
                found.append(ProcessInfo(role="database", service=name, pid=database.pid))
        for replica in self.replicas():
            who = {"service": replica.service, "replica": replica.replica}
            found.append(ProcessInfo(role="front", pid=replica.pid, **who))  # type: ignore[arg-type]
            pids: list[int] = self._status(replica)["workers"]
            for pid in dict.fromkeys(pids):
                several = {"worker": pids.index(pid), "workers": pids.count(pid)}
                found.append(ProcessInfo(role="worker", pid=pid, **several, **who))  # type: ignore[arg-type]
        return found

    def alive(self) -> bool:
        """Whether every process the launcher started still runs."""
        return (
            (self._registry is None or self._registry.alive())
            and all(database.alive() for database in self._databases.values())
            and all(replica.child.alive() for replica in self._replicas)
        )

    def supervise(self) -> list[str]:
        """Replace replicas, and the registry, if they have died; to be called about once a second.

        Returns:
            What happened, one line each.

        Raises:
            DeploymentError: A database has died, or a replica or the registry dies again and again.
        """
        events = []
        if self._registry is not None and not self._registry.alive():
            events += self._replace_registry(self._registry)
        for name, database in self._databases.items():
            if not database.alive():
                raise DeploymentError(f"database {name!r} has died")
        for replica in self._replicas:
            if replica.child.alive():
                continue
            who = f"{replica.config.name}.{replica.number}"
            events.append(f"{who} (pid {replica.child.pid}) {replica.child.how_it_ended()}")
            replica.child.end(time.monotonic())
            if time.monotonic() - replica.started < 1.0:
                raise DeploymentError(f"replica {who} dies right after its start; giving up")
            fresh = self._start_replica(replica.config, replica.number)
            replica.child, replica.started = fresh.child, fresh.started
            replica.ready = fresh.child.ready(time.monotonic() + READY_SECONDS)
            events.append(f"{who} was restarted (pid {replica.child.pid})")
        return events

    def made_of(self, service: str) -> set[Path]:
        """Return the source files a service has loaded, if the deployment is one to be reloaded."""
        return {Path(file) for replica in self._of(service) for file in replica.ready["sources"]}

    def reload(self, service: str) -> None:
        """Replace the replicas of a service by fresh ones, which serve before the old ones stop.

        Raises:
            DeploymentError: A fresh one cannot start; the old ones go on.
        """
        old = self._of(service)
        fresh: list[_Replica] = []
        try:
            for replica in old:
                # One by one: those started before one fails have to be stopped.
                fresh += [self._start_replica(replica.config, replica.number)]
            for replica in fresh:
                replica.ready = replica.child.ready(time.monotonic() + READY_SECONDS)
        except BaseException:
            _end(fresh)
            raise
        self._replicas = [replica for replica in self._replicas if replica not in old] + fresh
        _end(old)

    def _of(self, service: str) -> list[_Replica]:
        mine = [replica for replica in self._replicas if replica.config.name == service]
        return sorted(mine, key=lambda replica: replica.number)

    def _start_registry(self, port: int) -> None:
        """Start the registry on a socket that is open already: replicas need not wait for it.

        Raises:
            DeploymentError: It cannot listen there, or must not without a token.
        """
        host = self._project.registry_host
        seen = _seen_from_elsewhere(host)
        arguments = self._known_as(seen)
        if self._tls is not None:
            server_context(self._tls, seen)
            arguments += ["--tls-cert", self._tls.cert, "--tls-key", self._tls.key]
            if self._tls.client_ca:
                arguments += ["--tls-client-ca", self._tls.client_ca]
        if not self.token and is_loopback(host):
            self.token = new_token()
        if not self.token:
            raise DeploymentError(
                f"a registry on {host}, that other machines reach, needs a token",
                where="registry",
                hint=f"set {REGISTRY_TOKEN} here and wherever services are started, "
                "or name another variable: token = '${NAME}'",
            )
        with socket_for(host) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port))
            except OSError as error:
                reason, remedy = why_not_bound(error, host, port, "the registry")
                raise DeploymentError(reason, where="registry", hint=remedy) from error
            listener.listen(1024)
            port = listener.getsockname()[1]
            self.registry_url = url_of(seen, port, tls=self._tls is not None)
            if is_run_token(self.token):
                self.token_file = keep_token(self.registry_url, self.token)
            descriptor = listener.fileno()
            self._registry = Child(
                "mup_registry",
                ["--fd", str(descriptor), *arguments],
                where="registry",
                env=self._shared(),
                pass_fds=[descriptor],
            )
            self._registry_started = time.monotonic()

    def _known_as(self, seen: str) -> list[str]:
        """Return the options of the registry about names and addresses.

        Args:
            seen: What others call the machine of the registry.
        """
        project = self._project
        names = [f"--name={name}" for name in (project.registry_host, seen, *project.registry_names)]
        # The launcher knows where its own replicas are.
        own = [host for host in (self._host, self._advertise) if host and not is_wildcard(host)]
        return names + [f"--allow={item}" for item in (*own, *project.registry_allow)]

    def _replace_registry(self, dead: Child) -> list[str]:
        """Start the registry again where it was; replicas register anew by themselves.

        Raises:
            DeploymentError: It dies again and again, or does not start.
        """
        events = [f"the registry (pid {dead.pid}) {dead.how_it_ended()}"]
        dead.end(time.monotonic())
        if time.monotonic() - self._registry_started < 1.0:
            raise DeploymentError("the registry dies right after its start; giving up")
        self._start_registry(address_of(self.registry_url)[1])
        assert self._registry is not None  # noqa: S101 - just started
        self._registry.ready(time.monotonic() + READY_SECONDS)
        self._register_databases()
        return [*events, f"the registry was restarted (pid {self._registry.pid})"]

    def _shared(self) -> dict[str, str]:
        """Return the environment of every process: the token, trusted certificates, and its own."""
        token = {REGISTRY_TOKEN: self.token} if self.token else {}
        return {**token, **tls_environment(self._tls)}

    def _known_databases(self) -> dict[str, str]:
        """Return the URIs of the databases that mup does not start."""
        configs = [config for config in self._project.databases if config.uri != EMBEDDED]
        if not configs:
            return {}
        from mup.databases.server import uri_of  # noqa: PLC0415

        return {config.name: uri_of(config) for config in configs}

    def _start_databases(self, deadline: float) -> None:
        assert self._registry is not None  # noqa: S101 - started before
        if not self._project.databases:
            self._registry.ready(deadline)
            return
        # A project without databases does not load their drivers.
        from mup.databases.server import start_database  # noqa: PLC0415

        for config in self._project.databases:
            self._databases[config.name] = start_database(config, self._project.source)
        self._registry.ready(deadline)
        self._register_databases()

    def _register_databases(self) -> None:
        """Tell the registry where the databases are; credentials are for the services only."""
        registry = RegistryClient(self.registry_url, self.token, self._tls)
        for name, database in self._databases.items():
            registry.post("/databases", {"name": name, "uri": without_credentials(database.uri)})

    def _start_replica(self, config: ServiceConfig, number: int) -> _Replica:
        settings = {
            "service": config.name,
            "target": config.target,
            "source": str(self._project.source),
            "registry": self.registry_url,
            "replica": number,
            "position": self._positions[config.name],
            "pool_size": self._pools.get(config.name, config.pool_size),
            "queue_limit": config.queue_limit,
            "admission": self._admissions.get(config.name, config.admission),
            "replicas": self._counts.get(config.name, config.replicas),
            "port": config.port,
            "static": None if config.static is None else dict(config.static),
            "host": self._host,
            "advertise": self._advertise,
            "names": list(self._project.registry_names),
            "registry_cache": self._project.registry_cache,
            "databases": self._database_uris,
            "queries": bool(self._project.databases),
            "tls": None if self._tls is None else asdict(self._tls),
            "retries": None if config.retries is None else asdict(config.retries),
            "log_dir": self._log_dir,
            "log": msgspec.to_builtins(self._log),
            "reload": self._reloading,
            "debug": msgspec.to_builtins(self._debug),
            "production": self._production,
            **_set(config, "max_body", "max_bodies", "body_timeout", "request_limit", "busy_limit", "drain"),
        }
        # Whether compiled files are current is decided by the second, and people save twice in one.
        env = {"PYTHONDONTWRITEBYTECODE": "1"} if self._reloading else {}
        child = Child(
            "mup.runtime.replica",
            ["-"],
            where=f"services.{config.name}",
            first_line=json.dumps(settings),
            env={**env, **self._shared(), **config.env},
            pass_fds=[self._debug.stdin] if self._debug else [],
            foreground=self._debug is not None,
        )
        return _Replica(config, number, child, time.monotonic(), {})

    def _status(self, replica: ReplicaInfo) -> dict[str, Any]:
        with self._reach(f"replica {replica.service}.{replica.replica}"):
            status: dict[str, Any] = msgspec.json.decode(self._get(replica.url, "/mup/status").body)
            return status

    def _get(self, url: str, path: str) -> RawResponse:
        connection = self._http.take(address_of(url), 3.0)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        response = connection.ask(RawRequest("GET", path, headers), 3.0)
        self._http.give_back(connection, response)
        return response

    @staticmethod
    @contextmanager
    def _reach(who: str) -> Iterator[None]:
        try:
            yield
        except (OSError, BrokenError) as error:
            raise DeploymentError(f"{who} does not answer: {error}") from error


def _end(replicas: list[_Replica]) -> None:
    """Stop replicas, requests in work first."""
    longer = max((replica.config.drain or 0.0 for replica in replicas), default=0.0) - DRAIN_SECONDS
    deadline = time.monotonic() + STOP_SECONDS + max(0.0, longer)
    for replica in replicas:
        replica.child.terminate()
    for replica in replicas:
        replica.child.end(deadline)


def _set(config: ServiceConfig, *names: str) -> dict[str, Any]:
    """Return the fields the project sets; replicas know what the others are."""
    return {name: value for name in names if (value := getattr(config, name)) is not None}


def _seen_from_elsewhere(host: str) -> str:
    """Return the address other machines know this one by, if it listens on all of them."""
    if not is_wildcard(host):
        return host
    try:
        return route_to(_ELSEWHERE, 9)
    except OSError as error:
        raise DeploymentError(
            f"this machine has no address that others reach: {error.strerror}",
            where="registry.host",
            hint="name the address to listen on",
        ) from error


def _checked(what: str, changes: Mapping[str, int], project: Project) -> dict[str, int]:
    for name, number in changes.items():
        _check_known(what, name, project)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise UsageError(f"{what} of {name!r} must be a whole number >= 1, got {number!r}")
    return dict(changes)


def _checked_admissions(changes: Mapping[str, str], project: Project) -> dict[str, str]:
    for name, order in changes.items():
        _check_known("admission", name, project)
        if order not in ADMISSIONS:
            raise UsageError(f"admission of {name!r} must be one of {', '.join(ADMISSIONS)}, got {order!r}")
    return dict(changes)


def _check_known(what: str, name: str, project: Project) -> None:
    known = [service.name for service in project.services]
    if name not in known:
        raise UsageError(f"{what}: no service {name!r}; {did_you_mean(name, known)}")
