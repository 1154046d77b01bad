"""Where and how is a version of a project deployed differently?

What the analysis knows of services is compared first, whether ``mup.toml`` or the class says it; then
what only ``mup.toml`` says and may matter under load. Values that may be secret are not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path as FilePath

from analyzer.static.application import Service
from analyzer.static.project_version import Difference, DifferenceKind, TomlFile, Version
from mup.project import DatabaseConfig, Project, ServiceConfig

__all__ = ["deployment_changes"]

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


def deployment_changes(old: Version, new: Version) -> Iterator[Difference]:
    """Yield services that came and went, and other settings, each with its place in the new version."""
    for name, service in new.services.items():
        if name not in old.services:
            yield Difference("service", (name,), "the service is new", new.file(service.file), service.line)
        else:
            yield from _settings(old.services[name], service, new)
    for name in old.services:
        if name not in new.services:
            place = ("", 0) if new.toml is None else new.toml.place()
            yield Difference("service", (name,), "the service is gone", *place)
    if old.project is not None and new.project is not None and new.toml is not None:
        yield from _toml(old.project, new.project, new.toml)


def _settings(old: Service, new: Service, version: Version) -> Iterator[Difference]:
    for field, word in SETTINGS.items():
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            text = f"{word} {_shown(before)} -> {_shown(after)}"
            yield Difference("deployment", (new.name,), text, *_set_at(new, field, version))


def _set_at(service: Service, field: str, version: Version) -> tuple[str, int]:
    """Return the place that decides about a setting: ``mup.toml`` if it says so, else the class."""
    configs = () if version.project is None else version.project.services
    config = next((s for s in configs if s.name == service.name), None)
    if version.toml is not None and getattr(config, field, None) is not None:
        return version.toml.place(f"services.{service.name}", field)
    line = version.source.attribute_line(service.file, service.line, field)
    return version.file(service.file), line or service.line


def _toml(old: Project, new: Project, toml: TomlFile) -> Iterator[Difference]:
    before = {service.name: service for service in old.services}
    for service in new.services:
        if service.name in before:
            yield from _table(before[service.name], service, OTHER_SETTINGS, "services", "deployment", toml)
            was, now = before[service.name].env, service.env
            names = sorted(key for key in {*was, *now} if was.get(key) != now.get(key))
            if names:
                change, place = f"environment changed: {', '.join(names)}", f"services.{service.name}"
                yield Difference("deployment", (service.name,), change, *toml.place(place, "env"))
    databases = {database.name: database for database in old.databases}
    for database in new.databases:
        where = f"databases.{database.name}"
        if database.name not in databases:
            yield Difference("database", (database.name,), "the database is new", *toml.place(where, "uri"))
            continue
        known = databases[database.name]
        yield from _table(known, database, ("database", "load", "host"), "databases", "database", toml)
        if known.uri != database.uri:
            # Not shown: there may be a password in it.
            yield Difference("database", (database.name,), "another server", *toml.place(where, "uri"))
    for name in sorted(databases.keys() - {database.name for database in new.databases}):
        yield Difference("database", (name,), "the database is gone", *toml.place())
    yield from _whole(old, new, toml)


def _table(
    old: ServiceConfig | DatabaseConfig,
    new: ServiceConfig | DatabaseConfig,
    names: Sequence[str],
    group: str,
    kind: DifferenceKind,
    toml: TomlFile,
) -> Iterator[Difference]:
    known = {field.name for field in fields(new)}
    for name in (name for name in names if name in known):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            change = f"{name} {_shown(before)} -> {_shown(after)}"
            yield Difference(kind, (new.name,), change, *toml.place(f"{group}.{new.name}", name))


def _whole(old: Project, new: Project, toml: TomlFile) -> Iterator[Difference]:
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
            place = toml.place(f"{table}.{names[0]}", "")
        else:
            change, place = f"{table} {key} {_shown(before)} -> {_shown(after)}", toml.place(table, key)
            if table == "tls":
                change = "TLS is on" if after else "TLS is off"
        yield Difference("deployment", (new.name,), change, *place)


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
