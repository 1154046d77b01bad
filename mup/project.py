"""``mup.toml``: which services, clients and databases make up a project, and where they run.

Every field is documented in docs/reference/mup-toml.md.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mup.addresses import allowance, is_host_name
from mup.databases.address import scheme_of
from mup.environment import is_reference
from mup.errors import ProjectError, did_you_mean
from mup.names import name_problem
from mup.retries import MAX_ATTEMPTS, RetryPolicy
from mup.service import ADMISSIONS
from mup.tls import TlsFiles

__all__ = ["AnalysisConfig", "DatabaseConfig", "Project", "ServiceConfig", "is_http_url", "load_project"]

EMBEDDED = "embedded"
DEFAULT_REGISTRY_PORT = 9099
LOOPBACK = "127.0.0.1"
MAX_BODY_LIMIT = 2**30
"""Bytes a body may be allowed to have at most: it is in memory as a whole, of front and worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """One service of a project.

    Attributes:
        name: The name other services call it by.
        target: ``module:Class`` of the ``MS`` subclass, importable from the project's source folder.
        pool_size, replicas, port, queue_limit, admission: Override the class attributes; None = as the class
            says.
        static: Folders of files its fronts serve, by path prefix; None = as the class says.
        max_body: Bytes a request body may have; None = as replicas say, as for the next five.
        max_bodies: Bytes all request bodies of a replica in memory may have together.
        body_timeout: Seconds a request body may take to arrive.
        request_limit: Seconds a worker may have one request.
        busy_limit: Seconds all workers may be busy with the same requests until a replica is not ready.
        drain: Seconds requests in work get when a replica stops.
        env: Environment of its processes, on top of mup's own.
        retries: How its calls are made again when they fail; None = they are not.
        host: Machine of ``Project.hosts`` it is deployed on; "" = the one everything is on.
        cpus: Cores a container lets each replica use; None = no limit. A statement for the model: mup does
            not impose it.
    """

    name: str
    target: str
    pool_size: int | None = None
    queue_limit: int | None = None
    admission: str | None = None
    replicas: int | None = None
    port: int | None = None
    static: Mapping[str, str] | None = None
    max_body: int | None = None
    max_bodies: int | None = None
    body_timeout: float | None = None
    request_limit: float | None = None
    busy_limit: float | None = None
    drain: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    retries: RetryPolicy | None = None
    host: str = ""
    cpus: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConfig:
    """One database of a project.

    Attributes:
        name: ``db_name`` of ``Communication.query``.
        uri: ``embedded`` (mup starts one on loopback) or a ``mongodb://`` URI; may refer to environment
            variables (`mup.environment`).
        database: Name inside the server.
        load: ``module:function`` that fills it (it gets a ``pymongo`` database), or "".
        host: Machine of ``Project.hosts`` it is deployed on; "" = the one everything is on.
    """

    name: str
    # May contain a password, although it should not.
    uri: str = field(default=EMBEDDED, repr=False)
    database: str = ""
    load: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisConfig:
    """What static analysis is told besides the source.

    Attributes:
        skip: Labels of endpoints (``A/report``) that are not analysed but measured as a whole.
        transparent: Decorators of libraries, by dotted names, that leave what a function does alone.
        swallowing: Context managers of libraries that may swallow exceptions.
    """

    skip: tuple[str, ...] = ()
    transparent: tuple[str, ...] = ()
    swallowing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A parsed and checked ``mup.toml``.

    Attributes:
        name: For display.
        root: Folder of the file.
        source: Folder that is analysed and importable; below ``root``.
        services: In file order; at least one, unless there are externals.
        databases: In file order.
        registry_port: 0 = any free port.
        registry_host: Address the registry listens on.
        registry_token: Reference to the environment variable that holds its token, or "".
        registry_names: Names by which the machines are called, besides those they know themselves by.
        registry_allow: Addresses, networks and names that may be registered whatever they are.
        registry_cache: Seconds services use a list of replicas before they ask again; 0 = they ask for every
            call.
        tls: What registry and services are encrypted with; None = they are not.
        client: ``module:Class`` of the ``Client`` that drives the project, or "".
        externals: Base URLs of services outside of mup that the client calls, by the name it calls them by.
        hosts: Machines of the deployment by name, each with the file of its profile (``mup host -o``), or
            None for one that is like the machine of the exploratory run.
        client_host: Machine the clients are on; "" = the one everything is on.
        production: Whether clients are told nothing of what goes wrong but the status and an id.
        analysis: What static analysis is told besides the source.
    """

    name: str
    root: Path
    source: Path
    services: tuple[ServiceConfig, ...]
    databases: tuple[DatabaseConfig, ...] = ()
    registry_port: int = DEFAULT_REGISTRY_PORT
    registry_host: str = LOOPBACK
    registry_token: str = ""
    registry_names: tuple[str, ...] = ()
    registry_allow: tuple[str, ...] = ()
    registry_cache: float = 1.0
    tls: TlsFiles | None = None
    client: str = ""
    externals: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, Path | None] = field(default_factory=dict)
    client_host: str = ""
    production: bool = False
    analysis: AnalysisConfig = AnalysisConfig()

    @property
    def state(self) -> Path:
        """Folder for run directories and other things mup writes."""
        return self.root / ".mup"

    @property
    def client_class(self) -> str:
        """Name of the client's class, which its scenario has in models; "" if there is no client."""
        return self.client.rpartition(":")[2]

    def service(self, name: str) -> ServiceConfig:
        """Return the service of this name.

        Raises:
            ProjectError: There is none; the message suggests the closest name.
        """
        for service in self.services:
            if service.name == name:
                return service
        known = [s.name for s in self.services]
        raise ProjectError(
            f"no service {name!r}; {did_you_mean(name, known)}", where=str(self.root / "mup.toml")
        )

    def with_any_ports(self) -> Project:
        """Return the project with every port chosen by the system, so that it never meets another."""
        return replace(self, registry_port=0, services=tuple(replace(s, port=0) for s in self.services))

    def with_externals(self, externals: Mapping[str, str]) -> Project:
        """Return the project with more, or other, services outside of mup.

        Raises:
            ProjectError: One has the name of a service of the project, or no proper name or URL.
        """
        for name, url in externals.items():
            problem = name_problem(name) or _external_problem(name, url, [s.name for s in self.services])
            if problem:
                raise ProjectError(problem, where=f"external.{name}")
        return replace(self, externals={**self.externals, **externals})

    def with_database_uri(self, name: str, uri: str) -> Project:
        """Return the project with another server behind one of its databases.

        Raises:
            ProjectError: The project has no such database.
        """
        known = [d.name for d in self.databases]
        if name not in known:
            raise ProjectError(
                f"no database {name!r}; {did_you_mean(name, known)}", where=str(self.root / "mup.toml")
            )
        return replace(
            self, databases=tuple(replace(d, uri=uri) if d.name == name else d for d in self.databases)
        )


class _Fields:
    """Reads one table of the file, collecting what is wrong with it."""

    def __init__(self, data: Any, where: str, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.seen: set[str] = set()
        if not isinstance(data, dict):
            problems.append(f"[{where}]: must be a table, got {data!r}")

    def text(self, name: str, default: str | None = None) -> str:
        self.seen.add(name)
        value = self.data.get(name, default)
        if not isinstance(value, str) or (default is None and not value):
            missing = name not in self.data
            self.problems.append(
                f"[{self.where}] {name}: " + ("is missing" if missing else f"must be a text, got {value!r}")
            )
            return ""
        return value

    def whole(self, name: str, low: int, high: int = 2**31) -> int | None:
        self.seen.add(name)
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            limit = f"between {low} and {high}" if high < 2**31 else f">= {low}"
            self.problems.append(f"[{self.where}] {name}: must be a whole number {limit}, got {value!r}")
            return None
        return value

    def one_of(self, name: str, known: Sequence[str]) -> str | None:
        self.seen.add(name)
        value = self.data.get(name)
        if value is not None and value not in known:
            choice = ", ".join(map(repr, known))
            self.problems.append(f"[{self.where}] {name}: must be one of {choice}, got {value!r}")
            return None
        return value

    def positive(self, name: str, *, or_zero: bool = False) -> float | None:
        self.seen.add(name)
        value = self.data.get(name)
        if value is None or (or_zero and value == 0 and not isinstance(value, bool)):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            limit = ">= 0" if or_zero else "> 0"
            self.problems.append(f"[{self.where}] {name}: must be a number {limit}, got {value!r}")
            return None
        return float(value)

    def flag(self, name: str) -> bool:
        self.seen.add(name)
        value = self.data.get(name, False)
        if not isinstance(value, bool):
            self.problems.append(f"[{self.where}] {name}: must be true or false, got {value!r}")
            return False
        return value

    def host(self, name: str, hosts: Mapping[str, Any]) -> str:
        value = self.text(name, "")
        if value and value not in hosts:
            known = f"; {did_you_mean(value, list(hosts))}" if hosts else ""
            self.problems.append(f"[{self.where}] {name}: no table [hosts.{value}]{known}")
        return value

    def strings(self, name: str) -> dict[str, str]:
        self.seen.add(name)
        value = self.data.get(name, {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            self.problems.append(f"[{self.where}] {name}: must be a table of texts, got {value!r}")
            return {}
        return value

    def strings_or_none(self, name: str) -> dict[str, str] | None:
        self.seen.add(name)
        return self.strings(name) if name in self.data else None

    def texts(self, name: str, check: Callable[[str], bool], wanted: str) -> tuple[str, ...]:
        self.seen.add(name)
        value = self.data.get(name, [])
        texts = value if isinstance(value, list) else [value]
        for text in texts:
            if not isinstance(text, str) or not check(text):
                self.problems.append(f"[{self.where}] {name}: must be a list of {wanted}, got {text!r}")
                return ()
        return tuple(texts)

    def retries(self, name: str) -> RetryPolicy | None:
        self.seen.add(name)
        if name not in self.data:
            return None
        fields = _Fields(self.data[name], f"{self.where}.{name}", self.problems)
        known = len(self.problems)
        given = {
            "attempts": fields.whole("attempts", 2, MAX_ATTEMPTS),
            **{key: fields.positive(key) for key in ("budget", "backoff", "max_backoff", "attempt_timeout")},
        }
        fields.done()
        if len(self.problems) > known:
            return None
        try:
            return RetryPolicy(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
        except ValueError as error:
            self.problems.append(f"[{fields.where}] {error}")
            return None

    def target(self, name: str, default: str | None = None) -> str:
        value = self.text(name, default)
        if value and (value.count(":") != 1 or not all(value.split(":"))):
            self.problems.append(f"[{self.where}] {name}: must be 'module:name', got {value!r}")
        return value

    def done(self) -> None:
        for name in self.data:
            if name not in self.seen:
                self.problems.append(
                    f"[{self.where}] {name}: unknown field; {did_you_mean(name, sorted(self.seen))}"
                )


def load_project(path: str | Path = ".") -> Project:
    """Read and check a project.

    Args:
        path: Folder that holds ``mup.toml``, or the file itself.

    Raises:
        ProjectError: No such file, not TOML, or wrong fields; all of them are listed at once.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "mup.toml"
    try:
        text = file.read_text(encoding="utf-8-sig")  # editors of Windows write a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ProjectError(
            f"cannot read the project: {reason}",
            where=str(file),
            hint="name a folder that holds a mup.toml (see docs/reference/mup-toml.md)",
        ) from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(f"not TOML: {error}", where=str(file)) from error
    return _project(data, file.resolve())


def _project(data: dict[str, Any], file: Path) -> Project:
    problems: list[str] = []
    head = _Fields(data.get("project", {}), "project", problems)
    name = head.text("name", file.parent.name)
    source = file.parent / head.text("source", ".")
    client = head.target("client", "")
    hosts = {}
    for key, table in _tables(data, "hosts", problems).items():
        fields = _Fields(table, f"hosts.{key}", problems)
        profile = fields.text("profile", "")
        hosts[key] = file.parent / profile if profile else None
        if key == "host":
            problems.append("[hosts.host]: this is the name of the machine everything else is on")
        fields.done()
    client_host = head.host("client_host", hosts)
    production = head.flag("production")
    head.done()
    registry = _Fields(data.get("registry", {}), "registry", problems)
    port = registry.whole("port", 0, 65535)
    registry_host = registry.text("host", LOOPBACK)
    cache = registry.positive("cache", or_zero=True)
    token = registry.text("token", "")
    if token and not is_reference(token):
        # Not shown: it may be the token.
        problems.append("[registry] token: must refer to an environment variable, e.g. '${SHOP_TOKEN}'")
    names = registry.texts("names", is_host_name, "names such as 'shop.internal'")
    allowed = registry.texts("allow", _is_allowance, "networks, addresses or names such as '10.0.0.0/8'")
    registry.done()
    tls = _tls_files(data["tls"], file.parent, problems) if "tls" in data else None
    services = []
    for key, table in _named_tables(data, "services", problems).items():
        fields = _Fields(table, f"services.{key}", problems)
        services.append(
            ServiceConfig(
                name=key,
                target=fields.target("class"),
                pool_size=fields.whole("pool_size", 1),
                queue_limit=fields.whole("queue_limit", 0),
                admission=fields.one_of("admission", ADMISSIONS),
                replicas=fields.whole("replicas", 1),
                port=fields.whole("port", 0, 65535),
                static=fields.strings_or_none("static"),
                max_body=fields.whole("max_body", 0, MAX_BODY_LIMIT),
                max_bodies=fields.whole("max_bodies", 0),
                body_timeout=fields.positive("body_timeout"),
                request_limit=fields.positive("request_limit"),
                busy_limit=fields.positive("busy_limit", or_zero=True),
                drain=fields.positive("drain", or_zero=True),
                env=fields.strings("env"),
                retries=fields.retries("retries"),
                host=fields.host("host", hosts),
                cpus=fields.positive("cpus"),
            )
        )
        fields.done()
        most, one = services[-1].max_bodies, services[-1].max_body or 0
        if most is not None and most < one:
            problems.append(
                f"[services.{key}] max_bodies: must not be less than max_body ({one}), got {most}"
            )
    databases = []
    for key, table in _named_tables(data, "databases", problems).items():
        fields = _Fields(table, f"databases.{key}", problems)
        uri = os.environ.get(f"MUP_DATABASE_{key.upper()}") or fields.text("uri", EMBEDDED)
        fields.seen.add("uri")
        if uri != EMBEDDED and not uri.startswith(("mongodb://", "mongodb+srv://", "${")):
            # Not shown as a whole: what is no URI may still be a password.
            problems.append(
                f"[databases.{key}] uri: must be 'embedded' or start with mongodb://, got {scheme_of(uri)!r}"
            )
        databases.append(
            DatabaseConfig(
                name=key,
                uri=uri,
                database=fields.text("database", key),
                load=fields.target("load", ""),
                host=fields.host("host", hosts),
            )
        )
        fields.done()
    externals = {}
    for key, table in _named_tables(data, "external", problems).items():
        fields = _Fields(table, f"external.{key}", problems)
        externals[key] = fields.text("url")
        problem = externals[key] and _external_problem(key, externals[key], [s.name for s in services])
        if problem:
            problems.append(f"[external.{key}] {problem}")
        fields.done()
    analysis = _analysis(data.get("analysis", {}), [s.name for s in services], problems)
    for key in data:
        known = ["project", "analysis", "registry", "tls", "services", "databases", "external", "hosts"]
        if key not in known:
            problems.append(f"[{key}]: unknown table; {did_you_mean(key, known)}")
    if not services and not externals:
        problems.append("[services]: needs at least one service, e.g. [services.A] with class = 'services:A'")
    if not source.is_dir():
        problems.append(f"[project] source: no such folder: {source}")
    if problems:
        message = (
            problems[0] if len(problems) == 1 else f"{len(problems)} problems\n  " + "\n  ".join(problems)
        )
        raise ProjectError(message, where=str(file))
    return Project(
        name=name,
        root=file.parent,
        source=source.resolve(),
        services=tuple(services),
        databases=tuple(databases),
        registry_port=DEFAULT_REGISTRY_PORT if port is None else port,
        registry_host=registry_host,
        registry_token=token,
        registry_names=names,
        registry_allow=allowed,
        registry_cache=1.0 if cache is None else cache,
        tls=tls,
        client=client,
        externals=externals,
        hosts=hosts,
        client_host=client_host,
        production=production,
        analysis=analysis,
    )


def _analysis(table: Any, services: list[str], problems: list[str]) -> AnalysisConfig:
    fields = _Fields(table, "analysis", problems)
    skip = fields.texts("skip", lambda text: "/" in text[1:], "endpoints such as 'A/report'")
    for label in skip:
        service = label.partition("/")[0]
        if service not in services:
            problems.append(f"[analysis] skip: no service {service!r}; {did_you_mean(service, services)}")
    transparent, swallowing = (
        fields.texts(name, _is_dotted_name, "dotted names such as 'library.timed'")
        for name in ("transparent", "swallowing")
    )
    fields.done()
    return AnalysisConfig(skip=skip, transparent=transparent, swallowing=swallowing)


def _is_dotted_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _tls_files(table: Any, folder: Path, problems: list[str]) -> TlsFiles | None:
    fields = _Fields(table, "tls", problems)
    cert, key = fields.text("cert"), fields.text("key")
    trusted = {name: fields.text(name, "") for name in ("ca", "client_ca")}
    fields.done()
    return TlsFiles(
        cert=str(folder / cert),
        key=str(folder / key),
        **{name: str(folder / file) for name, file in trusted.items() if file},
    )


def _is_allowance(text: str) -> bool:
    try:
        return bool(allowance(text))
    except ValueError:
        return False


def is_http_url(text: str) -> bool:
    """Return whether a text is an absolute URL that can be called."""
    try:
        parts = urlsplit(text)
        # Reading a port that is no number between 0 and 65535 raises, too.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _external_problem(name: str, url: str, services: list[str]) -> str:
    if name in services:
        return f"{name!r} is a service of the project already"
    if not is_http_url(url):
        return f"url: must be a URL such as http://127.0.0.1:8080, got {url!r}"
    return ""


def _named_tables(data: dict[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    """Return tables whose keys are names of services or databases."""
    tables = _tables(data, name, problems)
    for key in tables:
        problem = name_problem(key)
        if problem:
            problems.append(f"[{name}] {key!r}: {problem}")
    return tables


def _tables(data: dict[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        problems.append(f"[{name}]: must be a table, got {value!r}")
        return {}
    return value
