"""What did a change to a project do, as far as source and ``mup.toml`` tell?

Two versions in, differences in words out, each with a place in the new version. What endpoints and
scenarios do is compared by their operations (``mup.lqn.operation_changes``); where these are the same, by
the definitions behind them (``analyzer.static.definitions``), which finds changed local work. Deployment is
compared setting by setting. What does not change what happens - comments, layout, names of local variables,
where something stands and in which order methods and imports do - is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal

from analyzer.static.application import Application, ClientClass, Definition, Endpoint, Service
from analyzer.static.definitions import changed_line
from analyzer.static.source_texts import SourceTexts, toml_line
from analyzer.static.translate import CLIENT_ENTRY, translated_entries
from mup.lqn.distributions import Distribution
from mup.lqn.matching import aligned, match_routes
from mup.lqn.model import Entry
from mup.lqn.operation_changes import operation_changes
from mup.lqn.path_steps import routes
from mup.lqn.refs import EntryRef
from mup.project import DatabaseConfig, Project, ServiceConfig

__all__ = ["Difference", "DifferenceKind", "Version", "differences"]

DifferenceKind = Literal[
    "calls",
    "parallelism",
    "order",
    "paths",
    "local work",
    "think time",
    "deployment",
    "service",
    "endpoint",
    "client",
    "database",
]

TOML = "mup.toml"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is another one than before.

    Attributes:
        kind: What it is about.
        subjects: The endpoints, scenarios, services or databases it is about.
        text: What happened, as a phrase that goes on after the subjects.
        file: In the new version, relative to the project's folder; "" if nothing of it is there.
        line: From 1; 0 if no line says it.
    """

    kind: DifferenceKind
    subjects: tuple[str, ...]
    text: str
    file: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of ``mup compare --json``."""
        return {
            "kind": self.kind,
            "subjects": list(self.subjects),
            "text": self.text,
            "file": self.file,
            "line": self.line,
        }


class Version:
    """One of two versions of a project.

    Args:
        application: Result of static analysis with its code; without errors.
        project: Its ``mup.toml``; None for a folder of source without one.
    """

    def __init__(self, application: Application, project: Project | None = None) -> None:
        self.application = application
        self.project = project
        self.services = {service.name: service for service in application.services}
        self.source = SourceTexts(application.root)

    @cached_property
    def entries(self) -> dict[EntryRef, Entry]:
        """Endpoints and scenarios, as the entries they are translated to."""
        return translated_entries(self.application)

    def file(self, name: str) -> str:
        """Return a file of the source folder as the project calls it."""
        if not name or self.project is None:
            return name
        source = self.application.root.resolve()
        root = self.project.root.resolve()
        return (source / name).relative_to(root).as_posix() if source.is_relative_to(root) else name

    @cached_property
    def toml(self) -> str:
        """The text of ``mup.toml``; "" without one."""
        return "" if self.project is None else (self.project.root / TOML).read_text(encoding="utf-8-sig")


def differences(old: Version, new: Version) -> list[Difference]:
    """Return what is different, grouped over endpoints where it is the same; [] if nothing is."""
    found = [
        *_deployment(old, new),
        *_endpoints(old, new),
        *_clients(old, new),
    ]
    together: dict[tuple[DifferenceKind, str, str, int], Difference] = {}
    for one in found:
        key = (one.kind, one.text, one.file, one.line)
        known = together.get(key)
        if known is None:
            together[key] = one
        else:
            subjects = tuple(dict.fromkeys((*known.subjects, *one.subjects)))
            together[key] = replace(known, subjects=subjects)
    return list(together.values())


# What is done.


def _endpoints(old: Version, new: Version) -> Iterator[Difference]:
    for service in new.application.services:
        before = old.services.get(service.name)
        if before is None:
            continue
        known = {endpoint.path: endpoint for endpoint in before.endpoints}
        for endpoint in service.endpoints:
            if endpoint.path in known:
                yield from _work(
                    old, new, known[endpoint.path], endpoint, EntryRef(service.name, endpoint.path)
                )
            else:
                place = new.file(endpoint.file), endpoint.line
                yield Difference("endpoint", (endpoint.label,), "the endpoint is new", *place)
        there = {endpoint.path for endpoint in service.endpoints}
        for path, endpoint in known.items():
            if path not in there:
                place = new.file(service.file), service.line
                yield Difference("endpoint", (endpoint.label,), "the endpoint is gone", *place)


def _clients(old: Version, new: Version) -> Iterator[Difference]:
    before = {client.name: client for client in old.application.clients}
    after = {client.name: client for client in new.application.clients}
    if len(before) == len(after) == 1 and before.keys() != after.keys():
        (was,), (now,) = before, after
        text = f"the scenario was that of {was}, is that of {now}: loads of the two versions are not the same"
        line = toml_line(new.toml, "project", "client")
        place = (TOML, line) if line else (new.file(after[now].file), after[now].line)
        yield Difference("client", (now,), text, *place)
        return
    for name, client in after.items():
        if name in before:
            ref = EntryRef(name, CLIENT_ENTRY)
            yield from _work(old, new, before[name], client, ref)
        else:
            yield Difference("client", (name,), "the client is new", new.file(client.file), client.line)
    for name in before:
        if name not in after:
            yield Difference("client", (name,), "the client is gone")


def _work(
    old: Version, new: Version, before: Endpoint | ClientClass, after: Endpoint | ClientClass, ref: EntryRef
) -> Iterator[Difference]:
    """Yield what an endpoint or scenario does differently."""
    one, other = old.entries[ref], new.entries[ref]
    operations = operation_changes(one, other, (old.source, new.source))
    code = _CodeChanges(before.code, after.code)
    told: set[tuple[str, str]] = set()
    for change in operations:
        spot = change.file, change.function
        if change.line and (spot in code.changed or not code.changed):
            place = change.file, change.line
        elif code.changed:
            # What made the difference is elsewhere, as where helpers are called that do the operations.
            spot, line = next(iter(code.changed.items()))
            place = spot[0], line
        else:
            place = after.file, after.line if isinstance(after, Endpoint) else after.scenario_line
        told.add(spot)
        yield Difference(change.kind, (ref.label,), change.text, new.file(place[0]), place[1])
    yield from _thinking(ref.label, one, other, new, told)
    for (file, name), line in code.changed.items():
        if (file, name) not in told:
            text = f"local work changed in {name}" if name else "local work changed: a constant"
            yield Difference("local work", (ref.label,), text, new.file(file), line)
    if not code.changed and not operations:
        for definition in code.replaced:
            name = f": {definition.name} is another one" if definition.name else ": a constant is another one"
            place = definition.file, definition.line
            yield Difference(
                "local work", (ref.label,), f"local work changed{name}", new.file(place[0]), place[1]
            )


def _thinking(
    label: str, old: Entry, new: Entry, version: Version, told: set[tuple[str, str]]
) -> Iterator[Difference]:
    """Yield think times that are others, of think steps that are versions of each other."""
    for one, other in match_routes(routes(old), routes(new))[0]:
        for i, j in aligned(one.steps, other.steps):
            step = other.steps[j]
            names = one.steps[i].think, step.think
            if all(names):
                before, after = old.activity(names[0]).delay, new.activity(names[1]).delay
                if before != after:
                    told.add((step.file, step.function))
                    text = f"a think time was {_time(before)}, is {_time(after)}"
                    yield Difference("think time", (label,), text, version.file(step.file), step.line)


def _time(time: Distribution | None) -> str:
    return "not known" if time is None else f"{time.mean:.4g} s {time.family}"


class _CodeChanges:
    """Which definitions behind an endpoint are others than before?

    Attributes:
        changed: The line where each changed definition begins to differ, by its file and name, in the order
            they are met.
        replaced: If none has changed: what is referred to instead of something else.
    """

    def __init__(self, old: Sequence[Definition], new: Sequence[Definition]) -> None:
        known = {definition.digest for definition in old}
        kept = {definition.digest for definition in new}
        gone = [definition for definition in old if definition.digest not in kept]
        come = [definition for definition in new if definition.digest not in known]
        self.changed: dict[tuple[str, str], int] = {}
        rest = []
        for definition in come:
            before = _version_of(definition, gone)
            if before is None:
                rest.append(definition)
            else:
                gone.remove(before)
                self.changed[definition.file, definition.name] = changed_line(before, definition)
        for file, name in list(self.changed):
            # A class is said by its method, if that is behind the endpoint, too.
            if name and any(f == file and other.startswith(f"{name}.") for f, other in self.changed):
                del self.changed[file, name]
        self.replaced = rest or (list(new[:1]) if gone else [])


def _version_of(new: Definition, old: Sequence[Definition]) -> Definition | None:
    """Return what a definition was before: that of its name in its file, or else anywhere."""
    named = [definition for definition in old if definition.name == new.name]
    same = [definition for definition in named if definition.file == new.file]
    return next(iter(same or (named if new.name else [])), None)


# Where and how it runs.

SETTINGS: Mapping[str, str] = {
    "pool_size": "pool",
    "replicas": "replicas",
    "runtime": "runtime",
    "admission": "admission",
    "pinned": "pinned",
}
"""What the analysis knows of a deployment, and what a difference calls it."""

OTHER_SETTINGS = (
    "queue_limit",
    "max_body",
    "max_bodies",
    "body_timeout",
    "request_limit",
    "busy_limit",
    "drain",
    "retries",
    "host",
    "cpus",
)
"""What only ``mup.toml`` says and may matter to a service under load."""


def _deployment(old: Version, new: Version) -> Iterator[Difference]:
    for name, service in new.services.items():
        if name not in old.services:
            place = new.file(service.file), service.line
            yield Difference("service", (name,), "the service is new", *place)
        else:
            yield from _settings(old.services[name], service, new)
    for name in old.services:
        if name not in new.services:
            yield Difference(
                "service", (name,), "the service is gone", TOML if new.toml else "", 1 if new.toml else 0
            )
    if old.project is not None and new.project is not None:
        yield from _toml(old.project, new.project, new.toml)


def _settings(old: Service, new: Service, version: Version) -> Iterator[Difference]:
    for field, word in SETTINGS.items():
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            text = f"{word} {_shown(before)} -> {_shown(after)}"
            yield Difference("deployment", (new.name,), text, *_set_at(new, field, version))


def _set_at(service: Service, field: str, version: Version) -> tuple[str, int]:
    """Return the place that decides about a setting: ``mup.toml`` if it says so, else the class."""
    config = (
        next((s for s in version.project.services if s.name == service.name), None)
        if version.project
        else None
    )
    if config is not None and getattr(config, field, None) is not None:
        return TOML, toml_line(version.toml, f"services.{service.name}", field)
    line = version.source.attribute_line(service.file, service.line, field)
    return version.file(service.file), line or service.line


def _toml(old: Project, new: Project, text: str) -> Iterator[Difference]:
    before = {service.name: service for service in old.services}
    for service in new.services:
        if service.name in before:
            yield from _table(before[service.name], service, OTHER_SETTINGS, "services", "deployment", text)
            was, now = before[service.name].env, service.env
            names = sorted(key for key in {*was, *now} if was.get(key) != now.get(key))
            if names:
                line = toml_line(text, f"services.{service.name}", "env")
                change = f"environment changed: {', '.join(names)}"
                yield Difference("deployment", (service.name,), change, TOML, line)
    databases = {database.name: database for database in old.databases}
    for database in new.databases:
        where = f"databases.{database.name}"
        if database.name not in databases:
            line = toml_line(text, where, "uri")
            yield Difference("database", (database.name,), "the database is new", TOML, line)
            continue
        known = databases[database.name]
        yield from _table(known, database, ("database", "load", "host"), "databases", "database", text)
        if known.uri != database.uri:
            # Not shown: there may be a password in it.
            line = toml_line(text, where, "uri")
            yield Difference("database", (database.name,), "another server", TOML, line)
    for name in sorted(databases.keys() - {database.name for database in new.databases}):
        yield Difference("database", (name,), "the database is gone", TOML, 1)
    yield from _whole(old, new, text)


def _table(
    old: ServiceConfig | DatabaseConfig,
    new: ServiceConfig | DatabaseConfig,
    names: Sequence[str],
    group: str,
    kind: DifferenceKind,
    text: str,
) -> Iterator[Difference]:
    known = {field.name for field in fields(new)}
    for name in (name for name in names if name in known):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            line = toml_line(text, f"{group}.{new.name}", name)
            change = f"{name} {_shown(before)} -> {_shown(after)}"
            yield Difference(kind, (new.name,), change, TOML, line)


def _whole(old: Project, new: Project, text: str) -> Iterator[Difference]:
    """Yield what is different for the whole project: registry, TLS, machines, services outside of mup."""
    values = {
        ("registry", "cache"): (old.registry_cache, new.registry_cache),
        ("project", "client_host"): (old.client_host, new.client_host),
        ("tls", "cert"): (old.tls is not None, new.tls is not None),
        ("hosts", ""): (_profiles(old), _profiles(new)),
        ("external", ""): (dict(old.externals), dict(new.externals)),
    }
    for (table, key), (before, after) in values.items():
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            names = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
            change = f"{table} changed: {', '.join(names)}"
            line = toml_line(text, f"{table}.{names[0]}", "")
        else:
            change = (
                f"{table} {key} {_shown(before)} -> {_shown(after)}"
                if table != "tls"
                else ("TLS is on" if after else "TLS is off")
            )
            line = toml_line(text, table, key)
        yield Difference("deployment", (new.name,), change, TOML, line)


def _profiles(project: Project) -> dict[str, str]:
    """Return the profile of every machine, as the file names it."""
    return {name: _relative(profile, project.root) for name, profile in project.hosts.items()}


def _relative(path: FilePath | None, root: FilePath) -> str:
    if path is None:
        return ""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
