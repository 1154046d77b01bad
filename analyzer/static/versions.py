"""What did a change to a project do, as far as source and ``mup.toml`` tell?

Two versions in, differences in words out, each with a place in the new version. What endpoints and
scenarios do is compared by their operations (``mup.lqn.operation_changes``); where these are the same, by
the definitions behind them (``analyzer.static.definitions``), which finds changed local work. Deployment
is compared setting by setting (``analyzer.static.deployment_changes``). What does not change what happens
- comments, layout, names of local variables, where something stands and in which order methods and
imports do - is no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analyzer.static.application import ClientClass, Definition, Endpoint
from analyzer.static.definitions import changed_line
from analyzer.static.deployment_changes import deployment_changes
from analyzer.static.project_version import Difference, DifferenceKind, Version
from analyzer.static.translate import CLIENT_ENTRY
from mup.lqn.distributions import Distribution
from mup.lqn.matching import aligned, match_routes
from mup.lqn.model import Entry
from mup.lqn.operation_changes import operation_changes
from mup.lqn.path_steps import routes
from mup.lqn.refs import EntryRef

__all__ = ["differences"]


def differences(old: Version, new: Version) -> list[Difference]:
    """Return what is different, grouped over endpoints where it is the same; [] if nothing is."""
    found = [
        *deployment_changes(old, new),
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
                ref = EntryRef(service.name, endpoint.path)
                yield from _work(old, new, known[endpoint.path], endpoint, ref)
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
        place = new.file(after[now].file), after[now].line
        if new.toml is not None:
            place = new.toml.place("project", "client")
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
    reported: set[tuple[str, str]] = set()
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
        reported.add(spot)
        yield Difference(change.kind, (ref.label,), change.text, new.file(place[0]), place[1])
    yield from _thinking(ref.label, one, other, new, reported)
    for (file, name), line in code.changed.items():
        if (file, name) not in reported:
            text = f"local work changed in {name}" if name else "local work changed: a constant"
            yield Difference("local work", (ref.label,), text, new.file(file), line)
    if not code.changed and not operations:
        for definition in code.replaced:
            name = f": {definition.name} is another one" if definition.name else ": a constant is another one"
            text, file = f"local work changed{name}", new.file(definition.file)
            yield Difference("local work", (ref.label,), text, file, definition.line)


def _thinking(
    label: str, old: Entry, new: Entry, version: Version, reported: set[tuple[str, str]]
) -> Iterator[Difference]:
    """Yield think times that are others, of think steps that are versions of each other."""
    for one, other in match_routes(routes(old), routes(new))[0]:
        for i, j in aligned(one.steps, other.steps):
            step = other.steps[j]
            names = one.steps[i].think, step.think
            if all(names):
                before, after = old.activity(names[0]).delay, new.activity(names[1]).delay
                if before != after:
                    reported.add((step.file, step.function))
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
