"""References to elements of a model, their texts, and the only way back.

The code refers to an element by data (``EntryRef``, ``ActivityRef``, ``QueryRef``, ``FigureRef``). A text is
made of it where people read, and where files have keys. A text that people typed, or that is a key of a file,
is looked up among the names the model has (``Names``). It is never taken apart at the first point or the last
colon, because names may contain these.

A text is plain (``A/epA/:comp_8``, ``db.find``) unless two elements of the same model would share it, as task
``A.b`` with entry ``c`` and task ``A`` with entry ``b.c`` do. Their names are then quoted: ``"A.b"."c"``. A
plain text that begins with a quotation mark is quoted, too, so that none looks like a quoted one. People may
always write the quoted form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from mup.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from mup.lqn.model import Entry, Task  # which needs this module

__all__ = [
    "ActivityRef",
    "CallRef",
    "EndpointRef",
    "EntryRef",
    "FigureRef",
    "JoinRef",
    "Names",
    "ParameterRef",
    "QueryRef",
    "ResourceRef",
    "WorkNames",
    "destination",
    "entry_label",
    "halves",
    "service_of",
]

ARROW: Final = " -> "
FORWARD: Final = "forward"
FRONT: Final = ("front.request", "front.reply")
BESIDE: Final = (*FRONT, FORWARD)
"""What results name beside the activities of an entry."""
QUOTE: Final = '"'


class EntryRef(NamedTuple):
    """An entry of a task; equal to the tuple of the two names."""

    task: str
    entry: str

    @property
    def label(self) -> str:
        """The text for people; within a model, that of ``Names.entries`` is unique."""
        return entry_label(self.task, self.entry)

    @property
    def quoted(self) -> str:
        """The text that stands for nothing else in any model."""
        return _quoted(self)


class ActivityRef(NamedTuple):
    """An activity of an entry; equal to the tuple of the three names."""

    task: str
    entry: str
    activity: str

    @property
    def owner(self) -> EntryRef:
        """The entry it belongs to."""
        return EntryRef(self.task, self.entry)

    @property
    def label(self) -> str:
        """The text for people; within a model, that of ``Names.activity`` is unique."""
        return f"{entry_label(self.task, self.entry)}:{self.activity}"

    @property
    def quoted(self) -> str:
        """The text that stands for nothing else in any model."""
        return f"{_quoted(self.owner)}:{json.dumps(self.activity, ensure_ascii=False)}"


class CallRef(NamedTuple):
    """All calls an activity makes to one entry."""

    caller: ActivityRef
    target: EntryRef


class JoinRef(NamedTuple):
    """A join of an entry, by the activities it waits for; of a fan-out, by the first one of its branch."""

    owner: EntryRef
    activities: tuple[str, ...]


class QueryRef(NamedTuple):
    """A query that a service asks a database."""

    database: str
    query: str

    @property
    def label(self) -> str:
        """The text for people, ``db.find``."""
        return f"{self.database}.{self.query}"


class EndpointRef(NamedTuple):
    """An endpoint that a service calls; the path begins with a slash."""

    service: str
    path: str

    @property
    def label(self) -> str:
        """The text for people, ``B/epB/``."""
        return f"{self.service}{self.path}"


class ResourceRef(NamedTuple):
    """What can be full: a task or a processor."""

    kind: Literal["task", "processor"]
    name: str

    @property
    def label(self) -> str:
        """The text for people and in files, ``task B``."""
        return f"{self.kind} {self.name}"


class FigureRef(NamedTuple):
    """A figure of a result: of the cycle (``name`` is ""), or of a task, entry or processor.

    Its text is ``cycle.response_time`` or ``tasks.B.utilization``. Neither groups nor figures have points.
    """

    group: str
    name: str
    figure: str

    @property
    def label(self) -> str:
        """The text for people and in files."""
        return ".".join(part for part in self if part)

    @classmethod
    def parse(cls, text: str) -> FigureRef:
        """Return what a text stands for; whether there is such a figure shows when it is read."""
        group, _, rest = text.partition(".")
        if group == "cycle":
            return cls(group, "", rest)
        name, _, figure = rest.rpartition(".")
        return cls(group, name, figure)


class ParameterRef(NamedTuple):
    """A number of a model that is fitted or set, ``demand.B/epB/``; ``name`` is "" where there is one only.

    Kinds have no points; what the name stands for, the kind says.
    """

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ParameterRef:
        """Return what a text stands for; whether a model has it shows when it is read."""
        kind, _, name = text.partition(".")
        return cls(kind, name)


@lru_cache(maxsize=4096)
def destination(text: str) -> EndpointRef | QueryRef:
    """Return what an event log names: ``B/epB/`` is an endpoint, ``db.find`` a query.

    Services and databases of a project have neither points nor slashes in their names (``mup.names``), so the
    first of these ends them.
    """
    service, slash, path = text.partition("/")
    database, point, query = text.partition(".")
    if point and len(database) < len(service):
        return QueryRef(database, query)
    return EndpointRef(service, f"{slash}{path}")


def service_of(label: str) -> str:
    """Return the service of a label of an endpoint, ``B`` of ``B/epB/``; "" if it is none."""
    service, slash, _ = label.partition("/")
    return service if slash else ""


def entry_label(task: str, entry: str) -> str:
    """Return the name results use: ``A/epA/`` for endpoints, ``db.qry`` for everything else."""
    return f"{task}{entry}" if entry.startswith("/") else f"{task}.{entry}"


def _quoted(names: Iterable[str]) -> str:
    return ".".join(json.dumps(name, ensure_ascii=False) for name in names)


def _ambiguous(texts: Iterable[str]) -> set[str]:
    """Return the texts that more than one element has, or that look like a quoted one."""
    return {text for text, count in Counter(texts).items() if count > 1 or text.startswith(QUOTE)}


class Names:
    """The texts of the elements of a model, each unique, and what they stand for.

    Attributes:
        entries: The text of every entry, as results name it.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = tuple(tasks)
        plain = {
            EntryRef(task.name, entry.name): entry_label(task.name, entry.name)
            for task in self._tasks
            for entry in task.entries
        }
        shared = _ambiguous(plain.values())
        self.entries: Mapping[EntryRef, str] = {
            ref: ref.quoted if text in shared else text for ref, text in plain.items()
        }
        self._owners = {ref for ref, text in plain.items() if text in shared}

    @cached_property
    def _separators(self) -> bool:
        """Whether some name holds what texts put between names: else only labels of entries can be shared."""
        tasks = (t.name for t in self._tasks)
        entries = (e.name for t in self._tasks for e in t.entries)
        activities = (ref.activity for ref in self.activities())
        together = "\n".join(chain(tasks, entries, activities))
        return any(mark in together for mark in (":", "&", "->"))

    def activities(self) -> Iterator[ActivityRef]:
        """Yield every activity, in the order of the model."""
        for task in self._tasks:
            for entry in task.entries:
                for activity in entry.activities:
                    yield ActivityRef(task.name, entry.name, activity.name)

    def activity(self, ref: ActivityRef) -> str:
        """Return the text of an activity of the model, or of what ``beside`` returns: ``A/epA/:comp_8``."""
        text = ref.label
        return ref.quoted if ref.owner in self._owners or text in self._shared_keys else text

    def beside(self, owner: EntryRef, what: str) -> ActivityRef:
        """Return a name for what an entry does beside its activities: its front, or forwarding."""
        taken = {activity.name for activity in self._element(owner).activities}
        while what in taken:
            what = f"({what})"
        return ActivityRef(*owner, what)

    def call(self, ref: CallRef) -> str:
        """Return the text of the calls from one place to an entry, ``A/epA/:comm_9 -> B/epB/``."""
        text = self._call(ref)
        if text in self._shared_calls:
            return f"{ref.caller.quoted}{ARROW}{ref.target.quoted}"
        return text

    def _call(self, ref: CallRef) -> str:
        return f"{self.activity(ref.caller)}{ARROW}{self.entries[ref.target]}"

    def join(self, ref: JoinRef) -> str:
        """Return the text of a join, ``A/epA/:left&right``."""
        text = self._join(ref)
        if text in self._shared_joins:
            names = (json.dumps(name, ensure_ascii=False) for name in ref.activities)
            return f"{ref.owner.quoted}:{'&'.join(names)}"
        return text

    def _join(self, ref: JoinRef) -> str:
        return f"{self.entries[ref.owner]}:{'&'.join(ref.activities)}"

    def source(self, ref: EntryRef) -> str:
        """Return the text of an entry that requests come to from outside, beside the names of tasks."""
        text = self.entries[ref]
        return ref.quoted if any(task.name == text for task in self._tasks) else text

    def _element(self, ref: EntryRef) -> Entry:
        return next(t for t in self._tasks if t.name == ref.task).entry(ref.entry)

    @cached_property
    def _shared_keys(self) -> set[str]:
        if not self._separators:
            return set()
        every = list(self.activities())
        for task in self._tasks:
            for entry in task.entries:
                owner = EntryRef(task.name, entry.name)
                every += [self.beside(owner, what) for what in BESIDE]
        return _ambiguous(ref.label for ref in every)

    @cached_property
    def _shared_calls(self) -> set[str]:
        return _ambiguous(map(self._call, self._calls())) if self._separators else set()

    def _calls(self) -> set[CallRef]:
        found = set()
        for task in self._tasks:
            for entry in task.entries:
                owner = EntryRef(task.name, entry.name)
                for activity in entry.activities:
                    place = ActivityRef(*owner, activity.name)
                    found |= {CallRef(place, EntryRef(c.task, c.entry)) for c in activity.calls}
                place = self.beside(owner, FORWARD)
                found |= {CallRef(place, EntryRef(f.task, f.entry)) for f in entry.forwards}
        return found

    @cached_property
    def _shared_joins(self) -> set[str]:
        if not self._separators:
            return set()
        return _ambiguous(
            self._join(JoinRef(EntryRef(task.name, entry.name), waited))
            for task in self._tasks
            for entry in task.entries
            for arc in entry.precedences
            for waited in (arc.pre, *((arc.bodies,) if arc.fork == "fan-out" else ()))
            if len(waited) > 1 or waited == arc.bodies
        )

    # From texts.

    @cached_property
    def by_label(self) -> Mapping[str, EntryRef]:
        """Every entry by its text, and by its quoted text."""
        found = {ref.quoted: ref for ref in self.entries}
        return found | {text: ref for ref, text in self.entries.items()}

    @cached_property
    def by_key(self) -> Mapping[str, ActivityRef]:
        """Every activity by its text, and by its quoted text."""
        found = {ref.quoted: ref for ref in self.activities()}
        return found | {self.activity(ref): ref for ref in self.activities()}

    @cached_property
    def _spoken(self) -> Mapping[str, list[EntryRef]]:
        """All entries by what people may write for them, ``A/b`` or ``A.b``; texts of results come first."""
        texts: dict[str, list[EntryRef]] = {}
        for ref in self.entries:
            for text in _spellings(ref):
                texts.setdefault(text, []).append(ref)
        return texts | {text: [ref] for text, ref in self.by_label.items()}

    def database(self, query: str) -> str:
        """Return the database of a query, as the paths of an entry name it (``db.find``).

        A model whose databases lack the query has it from elsewhere: then the longest name of a database
        that fits counts, and without any the part before the first point.
        """
        tasks = {task.name: task for task in self._tasks}
        found = [ref.task for ref in self._spoken.get(query, []) if tasks[ref.task].role == "database"]
        fitting = [t.name for t in self._tasks if t.role == "database" and query.startswith(f"{t.name}.")]
        return next(iter(found), None) or max(fitting, key=len, default=query.partition(".")[0])

    def spoken_entry(self, text: str) -> EntryRef | None:
        """Return the entry that people mean; None if there is none.

        Raises:
            UsageError: It can be several.
        """
        found = self._spoken.get(text, [])
        if len(found) > 1:
            raise _several(text, "entries", (ref.quoted for ref in found))
        return found[0] if found else None

    def spoken_activity(self, text: str) -> ActivityRef:
        """Return the activity that people mean by ``TASK/entry:ACTIVITY``.

        Raises:
            UsageError: There is no such entry or activity, or more than one.
        """
        if text in self.by_key:
            return self.by_key[text]
        places = [(owner, name) for label, name in halves(text, ":") for owner in self._spoken.get(label, [])]
        known = set(self.activities())
        found = {ref for owner, name in places if (ref := ActivityRef(*owner, name)) in known}
        found = found or {
            ActivityRef(*owner, activity)
            for owner, name in places
            if (activity := self._by_stable_name(owner).get(name)) is not None
        }
        if len(found) == 1:
            return found.pop()
        if found:
            raise _several(text, "activities", (ref.quoted for ref in found))
        if places:
            owner, name = places[-1]
            activities = self._element(owner).activities
            near = list(self._by_stable_name(owner)) if "@" in name else [a.name for a in activities]
            raise UsageError(f"{self.entries[owner]!r} has no activity {name!r}; {did_you_mean(name, near)}")
        label = next((label for label, _ in halves(text, ":")), None)
        if label is None:
            raise UsageError(f"an activity is spelt TASK/entry:ACTIVITY, got {text!r}")
        raise UsageError(f"no entry {label!r}; {did_you_mean(label, list(self.entries.values()))}")

    def _by_stable_name(self, owner: EntryRef) -> Mapping[str, str]:
        """Return the activities of an entry by the names that do not move with lines of the source."""
        from mup.lqn.path_steps import stable_names  # noqa: PLC0415  (which models without source never need)

        return {stable: name for name, stable in stable_names(self._element(owner)).items()}

    def spoken_call(self, text: str) -> CallRef:
        """Return the calls that people mean by ``TASK/entry:ACTIVITY->TARGET``.

        The target is an entry, or its task if the activity calls one entry of that only.

        Raises:
            UsageError: There is no such activity or call, or more than one.
        """
        problems: list[UsageError] = []
        for start, target in (*halves(text, "->"), *halves(text, ARROW)):
            try:
                caller = self.spoken_activity(start)
            except UsageError as error:
                problems.append(error)
                continue
            calls = self._element(caller.owner).activity(caller.activity).calls
            called = list(dict.fromkeys(EntryRef(call.task, call.entry) for call in calls))
            found = [ref for ref in called if target in (*_spellings(ref), ref.quoted)]
            found = found or [ref for ref in called if ref.task == target]
            if len(found) == 1:
                return CallRef(caller, found[0])
            what = f"has {len(found)} calls to" if found else "does not call"
            labels = [self.entries[ref] for ref in called]
            problems.append(UsageError(f"{start!r} {what} {target!r}; {did_you_mean(target, labels)}"))
        raise (
            problems[0]
            if problems
            else UsageError(f"a call is spelt TASK/entry:ACTIVITY->TARGET, got {text!r}")
        )


def _spellings(ref: EntryRef) -> tuple[str, ...]:
    """Return what people may write for an entry where it is the only one."""
    return tuple(dict.fromkeys((ref.label, f"{ref.task}/{ref.entry}", f"{ref.task}.{ref.entry}")))


def _several(text: str, what: str, quoted: Iterable[str]) -> UsageError:
    return UsageError(f"{text!r} can be several {what}", hint=f"write one of {', '.join(sorted(quoted))}")


class WorkNames:
    """Keys of the works of one task, unique in it: ``entry:activity``, as in load dependence and set-up."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        pairs = [(entry.name, activity.name) for entry in entries for activity in entry.activities]
        plain = {pair: ":".join(pair) for pair in pairs}
        shared = _ambiguous(plain.values())
        self.texts: Mapping[tuple[str, str], str] = {
            pair: ":".join(json.dumps(name, ensure_ascii=False) for name in pair) if text in shared else text
            for pair, text in plain.items()
        }
        self.pairs: Mapping[str, tuple[str, str]] = {text: pair for pair, text in self.texts.items()}


def halves(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield both sides of every place a text can be divided at, from the right.

    Only for what people typed: which of the sides is a name, the names there are decide.
    """
    at = text.rfind(mark)
    while at >= 0:
        yield text[:at], text[at + len(mark) :]
        at = text.rfind(mark, 0, at)
