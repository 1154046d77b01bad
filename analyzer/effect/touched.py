"""Which endpoints does a change touch, so that their times may be other ones?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from analyzer.static.application import Application, Endpoint, Service
from analyzer.static.project_version import Difference, Version
from mup.errors import UsageError
from mup.lqn.refs import QueryRef

__all__ = ["DONE", "Touched", "check_same_client", "stamped", "touched"]

DONE: Final = ("calls", "parallelism", "order", "paths", "local work", "think time")
"""Kinds of differences that are about what an endpoint or scenario of both versions does."""
WORK: Final = (*DONE, "endpoint")
RUNNING: Final = ("runtime", "pinned")
CONFIGURED: Final = ("env", "host", "cpus", "retries")


@dataclass(frozen=True, slots=True)
class Touched:
    """What may take another time than before.

    Attributes:
        endpoints: Labels of endpoints and scenarios: what they do is another thing, or their service runs in
            another way, or a database they ask is another one.
        redeployed: Services that run in another way, so that also their framework takes another time.
    """

    endpoints: frozenset[str]
    redeployed: frozenset[str]


def touched(before: Version, after: Version, found: Sequence[Difference]) -> Touched:
    """Return what the differences between two versions touch."""
    labels = {label for one in found if one.kind in WORK for label in one.subjects}
    redeployed = frozenset(
        name
        for name, service in after.services.items()
        if name in before.services and _runs_differently(before, after, before.services[name], service)
    )
    databases = {name for one in found if one.kind == "database" for name in one.subjects}
    for mine, others in ((before, after), (after, before)):
        for name, service in mine.services.items():
            elsewhere = name in redeployed or name not in others.services
            labels |= {e.label for e in service.endpoints if elsewhere or _asks(e, databases)}
    return Touched(frozenset(labels), redeployed)


def _runs_differently(before: Version, after: Version, old: Service, new: Service) -> bool:
    if any(getattr(old, field) != getattr(new, field) for field in RUNNING):
        return True
    one, other = (
        next((s for s in (v.project.services if v.project else ()) if s.name == new.name), None)
        for v in (before, after)
    )
    return (
        one is not None
        and other is not None
        and any(getattr(one, field) != getattr(other, field) for field in CONFIGURED)
    )


def _asks(endpoint: Endpoint, databases: Collection[str]) -> bool:
    return any(
        isinstance(operation.to, QueryRef) and operation.to.database in databases
        for path in endpoint.paths
        for operation in path.walk()
    )


def check_same_client(before: Version, after: Version, found: Sequence[Difference]) -> str:
    """Return the client of both versions.

    Raises:
        UsageError: There is none, or the loads of the two versions would not be the same.
    """
    for version in (before, after):
        if version.project is None:
            raise UsageError(
                "there is no mup.toml, which says what is run and who asks",
                where=str(version.application.root),
                hint="name the folder of a project",
            )
        if not version.project.client:
            raise UsageError(
                "the project has no client, so there is no load to compare under",
                where=str(version.project.root),
                hint="name one: [project] client = 'module:Class'",
            )
    assert before.project is not None  # noqa: S101 - both have one
    assert after.project is not None  # noqa: S101
    was, now = before.project.client_class, after.project.client_class
    if was != now:
        raise UsageError(
            f"the scenario was that of {was}, is that of {now}: the loads of both versions are not the same",
            hint="compare versions with the same client",
        )
    label = f"{now}.scenario"
    for one in found:
        if one.kind in WORK and label in one.subjects:
            place = f"{one.file}:{one.line}" if one.line else one.file
            raise UsageError(
                f"the scenario of {now} is another one ({one.text}): loads of both versions are not the same",
                where=place,
                hint="compare versions with the same scenario: change it in a commit of its own",
            )
    return now


def stamped(application: Application, labels: Collection[str], mark: str) -> Application:
    """Return the application with fingerprints of some endpoints that no other version has.

    What was measured of them then counts for this version only, whatever the source says.
    """

    def endpoint(one: Endpoint) -> Endpoint:
        return replace(one, fingerprint=f"{one.fingerprint}-{mark}") if one.label in labels else one

    services = tuple(
        replace(service, endpoints=tuple(map(endpoint, service.endpoints)))
        for service in application.services
    )
    return replace(application, services=services)
