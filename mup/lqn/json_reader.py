"""Read the elements of a parsed model file, with all that is wrong with each of them.

Collects every problem of a file instead of stopping at the first. An element that breaks a rule is replaced
by the nearest sound one, so that the rules between elements can still be checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from mup.errors import ModelError
from mup.lqn.distribution_json import count_from_json, distribution_from_json
from mup.lqn.distributions import Constant, Distribution
from mup.lqn.model import (
    LOAD_DEPENDENCE_ABOVE,
    LOCK,
    ONCE,
    SEMAPHORE,
    Activity,
    Call,
    Entry,
    Forward,
    Front,
    LoadDependence,
    Migration,
    Precedence,
    Processor,
    Setup,
    Task,
    Turns,
)
from mup.lqn.uncertainty import Uncertainty, uncertainty_from_json

__all__ = ["Reader"]

T = TypeVar("T")


class Reader:
    """Builds elements from JSON objects.

    Attributes:
        problems: Everything found so far.
        incomplete: Something is missing that others may refer to: rules between elements would report it
            again wherever that happens.
    """

    def __init__(self) -> None:
        self.problems: list[ModelError] = []
        self.incomplete = False

    def report(self, message: str, where: str, *, lost: bool = False) -> None:
        """Note a problem; ``lost`` if others may refer to what is missing now."""
        self.problems.append(ModelError(message, where=where))
        self.incomplete |= lost

    def build(self, make: Callable[[], T], where: str) -> T | None:
        """Run a constructor; a rule it breaks is collected under ``where``."""
        try:
            return make()
        except ModelError as error:
            # Elements with a name know their own path; distributions only know the field.
            if not error.where.startswith(("tasks[", "processors[")):
                error.where = ".".join(filter(None, (where, error.where)))
            self.problems.append(error)
        return None

    # Fields.

    def objects(self, data: dict[str, Any], field: str, where: str) -> list[tuple[dict[str, Any], str]]:
        """Return the objects of a list with the path of each; anything else is a problem."""
        value = data.get(field, [])
        place = f"{where}.{field}" if where else field
        if not isinstance(value, list):
            self.report(f"must be a list, got {type(value).__name__}", place, lost=True)
            return []
        result = []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                self.report(f"must be an object, got {type(item).__name__}", f"{place}[{index}]", lost=True)
                continue
            name = item.get("name")
            result.append((item, f"{place}[{name!r}]" if isinstance(name, str) else f"{place}[{index}]"))
        return result

    def keys(self, data: dict[str, Any], where: str, required: str, optional: str = "") -> bool:
        """Check the fields of an object against two space-separated lists."""
        need, may = required.split(), optional.split()
        missing = [k for k in need if k not in data]
        for key in missing:
            self.report(f"field {key!r} is missing", where, lost=True)
        for key in data:
            if key not in need and key not in may:
                self.report(f"unknown field {key!r}; known: {', '.join(need + may)}", where, lost=True)
        return not missing

    def text(self, data: dict[str, Any], field: str, where: str) -> str:
        """Return a text that must be there (a missing field is reported by ``keys``)."""
        value = data.get(field)
        if isinstance(value, str) and value:
            return value
        if field in data:
            self.report(f"must be a non-empty text, got {value!r}", f"{where}.{field}", lost=True)
        return ""

    def word(self, data: dict[str, Any], field: str, where: str, *known: str) -> Any:
        """Return one of a few words; the first is the default."""
        value = data.get(field, known[0])
        if isinstance(value, str) and value in known:
            return value
        listing = ", ".join(k or "''" for k in known)
        self.report(f"must be one of {listing}, got {value!r}", f"{where}.{field}", lost=True)
        return known[0]

    def reference(self, data: dict[str, Any], field: str, where: str) -> str | None:
        """Return the name of a processor, None if there is none."""
        value = data.get(field)
        if value is None or isinstance(value, str):
            return value
        self.report(f"must be the name of a processor or null, got {value!r}", f"{where}.{field}")
        return None

    def names(self, data: dict[str, Any], field: str, where: str) -> tuple[str, ...]:
        """Return a list of activity names."""
        value = data.get(field)
        if isinstance(value, list) and all(isinstance(n, str) for n in value):
            return tuple(value)
        if field in data:
            self.report(f"must be a list of activity names, got {value!r}", f"{where}.{field}", lost=True)
        return ()

    def flag(self, data: dict[str, Any], field: str, where: str) -> bool:
        """Return true or false, by default false."""
        value = data.get(field, False)
        if not isinstance(value, bool):
            self.report(f"must be true or false, got {value!r}", f"{where}.{field}")
        return value is True

    def whole(self, data: dict[str, Any], field: str, where: str) -> int:
        """Return a whole number, by default 0."""
        value = data.get(field, 0)
        if isinstance(value, bool) or not isinstance(value, int):
            self.report(f"must be a whole number, got {value!r}", f"{where}.{field}")
            return 0
        return value

    def number(self, data: dict[str, Any], field: str, where: str, default: float) -> float:
        """Return a finite number or infinity."""
        value = data.get(field, default)
        if value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.report(f"must be a number or 'inf', got {value!r}", f"{where}.{field}")
            return default
        return value

    def time(self, data: dict[str, Any], field: str, where: str) -> Distribution | None:
        """Return a time; None if it was never measured."""
        return self.build(lambda: distribution_from_json(data.get(field)), f"{where}.{field}")

    # Elements.

    def processor(self, data: dict[str, Any], where: str) -> Processor:
        """Build a processor."""
        self.keys(data, where, "name", "cores discipline speed migration turns parent core idling background")
        name = self.text(data, "name", where)
        cores = self.number(data, "cores", where, 1)
        speed = self.number(data, "speed", where, 1.0)
        kind = self.word(data, "discipline", where, "ps", "fcfs", "hol", "pp", "cores", "infinite")
        parent = self.reference(data, "parent", where)
        core = None if data.get("core") is None else self.whole(data, "core", where)
        migration, turns = self.migration(data, where), self.turns(data, where)
        idling = self.pairs(data, "idling", where)
        background = self.number(data, "background", where, 0.0)
        found = self.build(
            lambda: Processor(
                name=name,
                cores=cores,
                discipline=kind,
                speed=speed,
                migration=migration,
                turns=turns,
                parent=parent,
                core=core,
                idling=idling,
                background=background,
            ),
            where,
        )
        return Processor(name=name) if found is None else found

    def pairs(self, data: dict[str, Any], field: str, where: str) -> tuple[tuple[float, float], ...]:
        """Return a list of pairs, by default none."""
        value = data.get(field, [])
        if isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value):
            return tuple((p[0], p[1]) for p in value)
        self.report(f"must be a list of pairs of numbers, got {value!r}", f"{where}.{field}")
        return ()

    def migration(self, data: dict[str, Any], where: str) -> Migration | None:
        """Build how threads move between cores."""
        raw, spot = data.get("migration"), f"{where}.migration"
        if raw is None:
            return None
        fields = ("wake", "steal", "balance")
        if not isinstance(raw, dict):
            self.report(f"must be an object with {', '.join(fields)}, got {raw!r}", spot)
            return None
        self.keys(raw, spot, "", f"{' '.join(fields)} by_utilization")
        numbers = {field: self.number(raw, field, spot, 0.0) for field in fields}
        return Migration(**numbers, by_utilization=self._rows_of_migration(raw, spot))

    def _rows_of_migration(self, raw: dict[str, Any], spot: str) -> tuple[tuple[float, float, float], ...]:
        value = raw.get("by_utilization", [])
        if isinstance(value, list) and all(isinstance(row, list) and len(row) == 3 for row in value):
            return tuple((row[0], row[1], row[2]) for row in value)
        what = f"must be a list of a utilization, a wake and a steal each, got {value!r}"
        self.report(what, f"{spot}.by_utilization")
        return ()

    def turns(self, data: dict[str, Any], where: str) -> Turns | None:
        """Build how threads take turns on a core."""
        raw, spot = data.get("turns"), f"{where}.turns"
        if raw is None:
            return None
        if not isinstance(raw, dict):
            self.report(f"must be an object with quantum and preempt, got {raw!r}", spot)
            return None
        self.keys(raw, spot, "quantum", "preempt")
        return Turns(
            quantum=self.number(raw, "quantum", spot, 1.0), preempt=self.number(raw, "preempt", spot, 0.0)
        )

    def uncertainty(self, data: Any, _where: str) -> Uncertainty | None:
        """Build what is known about the sureness of a model, whose problems name their whole path themselves.

        None if there is nothing.
        """
        if data is None:
            return None
        return self.build(lambda: uncertainty_from_json(data), "")

    def task(self, data: dict[str, Any], where: str) -> Task:
        """Build a task."""
        optional = (
            "role threads replicas processor admission priority think front setup load_dependence warmth"
        )
        self.keys(data, where, "name entries", optional)
        name = self.text(data, "name", where)
        role = self.word(data, "role", where, "service", "reference", "network", "database", "other")
        entries = tuple(self.entry(e, spot) for e, spot in self.objects(data, "entries", where))
        if "think" in data and data["think"] is None:
            entries = self.thinking(role, entries, f"{where}.think")
        replicas = self.number(data, "replicas", where, 1)
        threads = self.number(data, "threads", where, 1)
        plain = Task(
            name=name,
            role=role,
            processor=self.reference(data, "processor", where),
            entries=entries,
            admission=self.word(data, "admission", where, "fifo", "random", "hol"),
            priority=self.whole(data, "priority", where),
            front=self.front(data, where),
            load_dependence=self.load_dependence(data, where),
            setup=self.setup(data, where),
            think=self.time(data, "think", where),
        )
        if plain.is_open:
            plain = replace(plain, threads=math.inf)
        found = self.build(
            lambda: replace(
                plain,
                threads=threads,
                replicas=int(replicas) if math.isfinite(replicas) and replicas == int(replicas) else replicas,  # type: ignore[arg-type]
            ),
            where,
        )
        return plain if found is None else found

    def thinking(self, role: str, entries: tuple[Entry, ...], where: str) -> tuple[Entry, ...]:
        """Return the entries of a task that thinks for a time that was never measured: one activity more."""
        if role != "reference":
            self.report("only a reference task has a think time", where)
        elif len(entries) == 1 and entries[0].arrivals is not None:
            self.report("no client thinks where requests arrive", where)
        elif len(entries) == 1:
            return (_thinking_first(entries[0]),)
        return entries

    def front(self, data: dict[str, Any], where: str) -> Front | None:
        """Build the framework work of a task."""
        raw, spot = data.get("front"), f"{where}.front"
        if raw is None:
            return None
        if not isinstance(raw, dict):
            self.report("must be an object with 'request' and 'reply'", spot)
            return None
        self.keys(raw, spot, "request reply", "holds")
        return Front(
            request=self.time(raw, "request", spot),
            reply=self.time(raw, "reply", spot),
            holds=self.flag(raw, "holds", spot),
        )

    def load_dependence(self, data: dict[str, Any], where: str) -> LoadDependence | None:
        """Build how the times of a task depend on the rate of requests."""
        old, new = "warmth", "load_dependence"  # files written before the name changed are read, too
        if old in data and new in data:
            self.report(f"is the former name of {new!r}; leave one of them out", f"{where}.{old}")
            return None
        name = old if old in data else new
        raw, spot = data.get(name), f"{where}.{name}"
        if raw is None:
            return None
        if not isinstance(raw, dict):
            self.report("must be an object with 'rates', 'demands' and 'delays'", spot)
            return None
        self.keys(raw, spot, "rates", "by_thread above demands delays")
        times = self._times_by_work(raw, spot, "an object of lists of seconds")
        if times is None:
            return None
        if not isinstance(raw.get("rates"), list):
            self.report("must be a list of requests per second", f"{spot}.rates")
            return None
        by_thread = self._by_thread(raw, spot)
        if by_thread is None:
            return None
        return self.build(
            lambda: LoadDependence(
                rates=tuple(raw["rates"]),
                by_thread=by_thread,
                demands=times["demands"],
                delays=times["delays"],
                above=raw.get("above", LOAD_DEPENDENCE_ABOVE),
            ),
            where,
        )

    def setup(self, data: dict[str, Any], where: str) -> Setup | None:
        """Build what the work of a task costs after sleep."""
        raw, spot = data.get("setup"), f"{where}.setup"
        if raw is None:
            return None
        if not isinstance(raw, dict):
            self.report("must be an object with 'gaps', 'worker', 'core', 'demands' and 'delays'", spot)
            return None
        if not self.keys(raw, spot, "gaps worker core", "by_thread demands delays"):
            return None
        times = self._times_by_work(raw, spot, "an object of pairs of seconds")
        if times is None:
            return None
        for name in ("gaps", "worker", "core"):
            if not isinstance(raw[name], list):
                self.report(f"must be a list of numbers, got {raw[name]!r}", f"{spot}.{name}")
                return None
        by_thread = self._by_thread(raw, spot)
        if by_thread is None:
            return None
        return self.build(
            lambda: Setup(
                gaps=tuple(raw["gaps"]),
                worker=tuple(raw["worker"]),
                core=tuple(raw["core"]),
                by_thread=by_thread,
                demands=times["demands"],
                delays=times["delays"],
            ),
            where,
        )

    def _times_by_work(
        self, raw: dict[str, Any], spot: str, what: str
    ) -> dict[str, dict[str, tuple[Any, ...]]] | None:
        """Return ``demands`` and ``delays`` of load dependence or set-up: numbers by the name of the work."""
        times: dict[str, dict[str, tuple[Any, ...]]] = {}
        for name in ("demands", "delays"):
            found = raw.get(name, {})
            if not isinstance(found, dict) or not all(isinstance(v, list) for v in found.values()):
                self.report(f"must be {what}", f"{spot}.{name}")
                return None
            times[name] = {key: tuple(values) for key, values in found.items()}
        return times

    def _by_thread(self, raw: dict[str, Any], spot: str) -> bool | None:
        by_thread = raw.get("by_thread", False)
        if isinstance(by_thread, bool):
            return by_thread
        self.report(f"must be true or false, got {by_thread!r}", f"{spot}.by_thread")
        return None

    def entry(self, data: dict[str, Any], where: str) -> Entry:
        """Build an entry."""
        optional = "precedences forwards arrivals priority token waits paths fingerprint"
        self.keys(data, where, "name start activities", optional)
        activities = [self.activity(a, spot) for a, spot in self.objects(data, "activities", where)]
        precedences = [self.precedence(p, spot) for p, spot in self.objects(data, "precedences", where)]
        forwards = [self.forward(f, spot) for f, spot in self.objects(data, "forwards", where)]
        paths = self.objects(data, "paths", where)
        for path, spot in paths:
            self.path(path, spot)
        arrivals = self.time(data, "arrivals", where)
        if arrivals is None and data.get("arrivals") is not None:
            self.incomplete = True  # whether the task has clients depends on it
        fingerprint = data.get("fingerprint", "")
        if not isinstance(fingerprint, str):
            self.report(f"must be a text, got {fingerprint!r}", f"{where}.fingerprint")
        return Entry(
            name=self.text(data, "name", where),
            start=self.text(data, "start", where),
            activities=tuple(activities),
            precedences=tuple(precedences),
            forwards=tuple(forwards),
            arrivals=arrivals,
            priority=self.whole(data, "priority", where),
            token=self.word(data, "token", where, "", *SEMAPHORE, *LOCK),
            waits=self.flag(data, "waits", where),
            paths=tuple(p for p, _ in paths),
            fingerprint=fingerprint,
        )

    def forward(self, data: dict[str, Any], where: str) -> Forward:
        """Build where a request is handed on."""
        self.keys(data, where, "task entry", "probability")
        return Forward(
            task=self.text(data, "task", where),
            entry=self.text(data, "entry", where),
            probability=self.number(data, "probability", where, 1.0),
        )

    def path(self, data: dict[str, Any], where: str) -> None:
        """Check what statistics and calibration read of a path; the rest is for display."""
        for field in ("first", "ends"):
            if not isinstance(data.get(field), str):
                self.report(f"must be a text, got {data.get(field)!r}", f"{where}.{field}")
        if "operations" not in data:
            self.report("must be a list of operations", f"{where}.operations")
        for operation, spot in self.objects(data, "operations", where):
            of = operation.get("of")
            if of is not None and (isinstance(of, bool) or not isinstance(of, int)):
                self.report(f"must be an index or null, got {of!r}", f"{spot}.of")
            for field in ("op", "target"):
                if not isinstance(operation.get(field), str):
                    self.report(f"must be a text, got {operation.get(field)!r}", f"{spot}.{field}")
        if "choices" in data and not _choices_fit(data):
            self.report(
                "must have, per index of a choice, the activities of each body; 'inside' of an operation"
                " in it is that index and the number of the body",
                f"{where}.choices",
            )

    def activity(self, data: dict[str, Any], where: str) -> Activity:
        """Build an activity."""
        self.keys(data, where, "name", "kind demand delay calls interleaved replies detached line")
        kinds = ("local", "registry", "communication", "think", "after", "choice")
        return Activity(
            name=self.text(data, "name", where),
            kind=self.word(data, "kind", where, *kinds),
            demand=self.time(data, "demand", where),
            delay=self.time(data, "delay", where),
            calls=tuple(self.call(c, spot) for c, spot in self.objects(data, "calls", where)),
            interleaved=self.flag(data, "interleaved", where),
            replies=self.flag(data, "replies", where),
            detached=self.flag(data, "detached", where),
            line=self.whole(data, "line", where),
        )

    def call(self, data: dict[str, Any], where: str) -> Call:
        """Build a call."""
        self.keys(data, where, "task entry", "count kind")
        return Call(
            task=self.text(data, "task", where),
            entry=self.text(data, "entry", where),
            count=self.count(data["count"], f"{where}.count") if "count" in data else ONCE,
            kind=self.word(data, "kind", where, "synchronous", "send", "releasing"),
        )

    def count(self, data: Any, where: str) -> Distribution | None:
        """Return a number of times; None if it was never measured."""
        return self.build(lambda: count_from_json(data), where)

    def precedence(self, data: dict[str, Any], where: str) -> Precedence:
        """Build an arc of an activity graph."""
        self.keys(data, where, "pre post", "join fork probabilities counts quorum first limit")
        odds = data.get("probabilities")
        if odds is not None and (
            not isinstance(odds, list)
            or any(isinstance(p, bool) or not isinstance(p, int | float) for p in odds)
        ):
            self.report(f"must be a list of numbers or null, got {odds!r}", f"{where}.probabilities")
            odds = None
        counts = data.get("counts", [])
        if not isinstance(counts, list):
            self.report(f"must be a list of counts, got {counts!r}", f"{where}.counts", lost=True)
            counts = []
        return Precedence(
            pre=self.names(data, "pre", where),
            post=self.names(data, "post", where),
            join=self.word(data, "join", where, "sequence", "and", "or"),
            fork=self.word(data, "fork", where, "sequence", "and", "or", "loop", "fan-out"),
            probabilities=None if odds is None else tuple(odds),
            counts=tuple(self.count(c, f"{where}.counts[{i}]") for i, c in enumerate(counts)),
            quorum=None if data.get("quorum") is None else self.whole(data, "quorum", where),
            first=None if data.get("first") is None else self.whole(data, "first", where),
            limit=None if data.get("limit") is None else self.whole(data, "limit", where),
        )


def _thinking_first(entry: Entry) -> Entry:
    """Return a scenario that begins with a think step of unknown length."""
    name = "think"
    while any(activity.name == name for activity in entry.activities):
        name += "'"
    pause = Activity(name=name, kind="think", demand=Constant(0.0), delay=None)
    first = Precedence(pre=(name,), post=(entry.start,))
    return replace(
        entry,
        start=name,
        activities=(pause, *entry.activities),
        precedences=(first, *entry.precedences),
    )


def _choices_fit(path: dict[str, Any]) -> bool:
    """Return whether the operations of a path and the bodies of its choices belong together."""
    operations, choices = path.get("operations"), path["choices"]
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        return True  # which is reported anyway
    expected = {str(i) for i, o in enumerate(operations) if o.get("op") == "choice"}
    if not isinstance(choices, dict) or set(choices) != expected:
        return False
    for bodies in choices.values():
        if not isinstance(bodies, list) or not all(isinstance(b, list) and b for b in bodies):
            return False
        if not all(isinstance(name, str) for body in bodies for name in body):
            return False
    for index, operation in enumerate(operations):
        if "inside" not in operation:
            continue
        inside = operation["inside"]
        if not isinstance(inside, list) or len(inside) != 2 or not all(type(n) is int for n in inside):
            return False
        bodies = choices.get(str(inside[0]))
        if not 0 <= inside[0] < index or (bodies is not None and not 0 <= inside[1] < len(bodies)):
            return False
    return True
