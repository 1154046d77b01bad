"""What does an entry do, step by step, and by which names that do not move when a line is inserted?

The record of a path (``Entry.paths``) lists its operations, those inside a loop, choice or task behind it.
Here they are a tree again. Activities are named after lines of the source (``comm_9``); their *stable*
names say instead what they do and, where that is done several times, how many times before:

- ``comm@B/epB/``: waits for B's answer; ``reg@B/epB/``: looks B up. A second call on the same path is
  ``comm@B/epB/.2``; a query is ``comm@db.find``.
- ``comp@start``: the work before the first operation of a path; ``comp@get-B/epB/``: that behind a wait for
  B; likewise ``comp@call-B/epB/``, ``comp@query-db.find``, ``comp@respond``, ``comp@think``, ``comp@loop``,
  ``comp@choice``, ``comp@task``, ``comp@fan-out``, ``comp@join``, ``comp@race``. The first work inside is
  ``comp@in-loop`` (choice, task, fan-out, race).
- ``think``: a think step; ``start``: what chooses between the paths; ``loop``: between those of an iteration;
  ``fan-out``: between those of a copy.
- ``#2`` behind a name says which path it is on if there are several, ``~2`` which branch of a choice or loop,
  in source order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mup.lqn.model import Entry

__all__ = ["Route", "Step", "chooser", "routes", "stable_names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation of a path.

    Attributes:
        index: Its number in the record of the path.
        op: As in `analyzer.static.application.Operation`: ``call``, ``query``, ``get``, ``loop`` ...
        target: What is called or asked; "" for other operations.
        file, function, line: Where it is in the source, for display.
        of: Of a ``get`` or ``join``, the number of what it waits for.
        registry, communication, exchange, think: The activities (the entry of the network) that stand for it;
            "" if there is none.
        bodies: Of a loop, choice, task, fan-out or race.
    """

    index: int
    op: str
    target: str
    file: str = ""
    function: str = ""
    line: int = 0
    of: int | None = None
    registry: str = ""
    communication: str = ""
    exchange: str = ""
    think: str = ""
    bodies: tuple[Route, ...] = ()

    @property
    def last(self) -> int:
        """The number of the last operation inside it, or its own."""
        inside = [step.last for body in self.bodies for step in body.steps]
        return max(inside, default=self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, or one of the bodies of a loop, choice, task, fan-out or race.

    Attributes:
        steps: In the order of execution.
        segments: The activities of local work: before the first step, between steps, behind the last.
        ends: ``return`` or ``raise``; "" of a body.
    """

    steps: tuple[Step, ...]
    segments: tuple[str, ...]
    ends: str = ""

    def walk(self, around: tuple[Step, ...] = ()) -> Iterator[tuple[Step, tuple[Step, ...]]]:
        """Yield every step in order, each before those inside it, with the steps around it, outer first."""
        for step in self.steps:
            yield step, around
            for body in step.bodies:
                yield from body.walk((*around, step))


def routes(entry: Entry) -> tuple[Route, ...]:
    """Return the paths of an entry; () if it has none, or records that do not tell their activities."""
    try:
        return tuple(_Record(record).route() for record in entry.paths)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Of a path little is checked when a file is read, and old ones say less.
        return ()


class _Record:
    """Makes a tree of the record of one path."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._operations: Sequence[Mapping[str, Any]] = record["operations"]
        self._at: dict[tuple[int, int] | None, list[int]] = {}
        for index, operation in enumerate(self._operations):
            inside = operation.get("inside")
            place = None if inside is None else (int(inside[0]), int(inside[1]))
            self._at.setdefault(place, []).append(index)

    def route(self) -> Route:
        return self._route(None, self._record["segments"], self._record["ends"])

    def _route(self, place: tuple[int, int] | None, segments: Sequence[str], ends: str = "") -> Route:
        steps = tuple(self._step(index) for index in self._at.get(place, ()))
        if len(segments) != len(steps) + 1:
            raise ValueError(segments)
        return Route(steps=steps, segments=tuple(segments), ends=ends)

    def _step(self, index: int) -> Step:
        operation, key = self._operations[index], str(index)
        of = operation["of"]

        def activity(kind: str) -> str:
            return str(self._record.get(kind, {}).get(key, ""))

        return Step(
            index=index,
            op=operation["op"],
            target=operation["target"],
            file=operation.get("file", ""),
            function=operation.get("function", ""),
            line=operation.get("line", 0),
            of=None if of is None else int(of),
            registry=activity("registry"),
            communication=activity("communication"),
            exchange=activity("exchange"),
            think=activity("think"),
            bodies=tuple(
                self._route((index, number), body)
                for number, body in enumerate(self._bodies(operation["op"], key))
            ),
        )

    def _bodies(self, op: str, key: str) -> Sequence[Sequence[str]]:
        if op == "task":
            return [self._record["tasks"][key]]
        kinds = {"loop": "loops", "choice": "choices", "fan-out": "fan_outs", "race": "races"}
        return self._record[kinds[op]][key] if op in kinds else []


def stable_names(entry: Entry) -> dict[str, str]:
    """Return the stable name of every activity that has one, by its name; see the head of this module."""
    return _StableNames(entry).found


class _StableNames:
    """Names the activities of an entry. Read ``found`` afterwards."""

    def __init__(self, entry: Entry) -> None:
        self.found: dict[str, str] = {}
        self._entry = entry
        self._taken: set[str] = set()
        paths = routes(entry)
        several = len(paths) > 1
        if several:
            self._give(entry.start, "start", "")
        for number, route in enumerate(paths, 1):
            self._name(route, "start", f"#{number}" if several else "", {})

    def _give(self, activity: str, name: str, suffix: str) -> None:
        if not activity or activity in self.found:
            return
        count, text = 1, name + suffix
        while text in self._taken:
            count += 1
            text = f"{name}.{count}{suffix}"
        self._taken.add(text)
        self.found[activity] = text

    def _name(self, route: Route, opening: str, suffix: str, targets: dict[int, str]) -> None:
        """Name what is on a route; ``targets`` holds what was called before, by number."""
        self._give(route.segments[0], f"comp@{opening}", suffix)
        for step, behind in zip(route.steps, route.segments[1:], strict=True):
            targets[step.index] = step.target
            waited = targets.get(step.of, "") if step.of is not None else step.target
            self._give(step.registry, f"reg@{step.target}", suffix)
            self._give(step.communication, f"comm@{step.target}", suffix)
            self._give(step.think, "think", suffix)
            if step.op in ("loop", "fan-out") and len(step.bodies) > 1:
                self._give(chooser(self._entry, step), step.op, suffix)
            for number, body in enumerate(step.bodies, 1):
                inner = f"{suffix}~{number}" if len(step.bodies) > 1 else suffix
                self._name(body, f"in-{step.op}", inner, targets)
            shown = waited if step.op in ("call", "query", "get") else ""
            self._give(behind, f"comp@{step.op}-{shown}" if shown else f"comp@{step.op}", suffix)


def chooser(entry: Entry, step: Step) -> str:
    """Return the activity that chooses between the bodies of a step; "" if there is none."""
    first = step.bodies[0].segments[0]
    return next((p.pre[0] for p in entry.precedences if p.fork == "or" and first in p.post), "")
