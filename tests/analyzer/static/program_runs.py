"""Run an endpoint without a network, and tell whether what it did is what the analyzer said.

``Communication`` is a stand-in that executes nothing and notes the site of every operation. Whatever the
program cannot know - parameters, answers, failures - is a *decision*: drawn at random, or enumerated.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from analyzer.static.application import Operation
from analyzer.static.application import Path as ExecutionPath
from mup.errors import CallError, CallTimeoutError, MupError, NoReplicaError, QueryError, UnknownServiceError
from mup.events.sites import Site, SiteTable

__all__ = ["Decisions", "Recorder", "Run", "Step", "accepts", "load", "run", "shown", "ways"]

MOST_STEPS = 60
"""Operations and questions after which a run is cut off: random programs need not end."""

ERRORS: dict[str, tuple[type[MupError], ...]] = {
    "call": (NoReplicaError, UnknownServiceError, CallTimeoutError),
    "query": (QueryError,),
    "get of call": (CallError, CallTimeoutError, NoReplicaError),
    "get of query": (QueryError, CallTimeoutError),
}


class CutOffError(BaseException):
    """The run takes too long; nothing a program catches."""


@dataclass
class Decisions:
    """What a program is told: first the given choices, then at random (0 without a random source)."""

    given: Sequence[int] = ()
    source: random.Random | None = None
    taken: list[tuple[int, int]] = field(default_factory=list)

    def draw(self, options: int) -> int:
        """Return one of 0, 1, ..."""
        if len(self.taken) >= 4 * MOST_STEPS:
            raise CutOffError
        place = len(self.taken)
        if place < len(self.given):
            choice = self.given[place]
        else:
            choice = 0 if self.source is None else self.source.randrange(options)
        self.taken.append((choice, options))
        return choice


def ways() -> Iterator[Decisions]:
    """Yield decisions until every combination has been there; each must be used before the next is asked for."""
    given: list[int] = []
    while True:
        decisions = Decisions(given)
        yield decisions
        taken = decisions.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        given = [choice for choice, _ in taken]
        given[-1] += 1


class Params(dict[str, Any]):
    """Parameters of a request: decided when they are looked at.

    The first letter says what a parameter is: ``c`` a condition, ``m`` one of several texts, ``w`` a condition
    that changes while it is watched, ``n`` a number or nonsense, ``k`` perhaps missing, ``items`` a list.
    With ``fresh`` conditions may change as well, so that all evaluations are independent.
    """

    def __init__(self, decisions: Decisions, *, fresh: bool) -> None:
        super().__init__()
        self._decisions = decisions
        self._fresh = fresh

    def __bool__(self) -> bool:
        return True

    def _decided(self, name: str) -> Any:
        if name in self.keys() and not (self._fresh or name[0] == "w"):
            return super().__getitem__(name)
        options: tuple[Any, ...] = (None, "1")
        if name[0] == "m":
            options = (None, "1", "2", "4")
        elif name[0] == "n":
            options = ("1", "x")
        elif name == "items":
            options = ([], ["x"], ["x", "y"], ["x", "y", "x"])
        self[name] = options[self._decisions.draw(len(options))]
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # type: ignore[override]
        value = self._decided(name)
        return default if value is None else value

    def __contains__(self, name: object) -> bool:
        return self._decided(str(name)) is not None

    def __getitem__(self, name: str) -> Any:
        value = self._decided(name)
        if value is None:
            raise KeyError(name)
        return list(value) if isinstance(value, list) else value


class Answer(dict[str, Any]):
    """The body of a reply: true or false, with or without what is looked for in it."""

    def __init__(self, decisions: Decisions, *, whole: bool) -> None:
        super().__init__(text="x")
        self._decisions = decisions
        self._whole = whole
        self._truth: bool | None = None

    def __bool__(self) -> bool:
        if self._truth is None:
            self._truth = self._decisions.draw(2) == 1
        return self._truth

    def __getitem__(self, name: str) -> Any:
        if not self._whole and self._decisions.draw(4) == 3:
            raise KeyError(name)
        return "x"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation that was executed; ``back`` of a get: how many steps ago the awaited one was."""

    op: str
    site: Site
    target: str = ""
    back: int = 0


Answers: TypeAlias = "Mapping[str, Sequence[Any]]"
"""By target of an operation: what it may answer."""


class Recorder:
    """A Communication that executes nothing; the ``failing``-th operation fails (0 = none does)."""

    def __init__(
        self,
        table: Sites,
        decisions: Decisions,
        failing: int = 0,
        *,
        fresh: bool = False,
        params: Mapping[str, Any] | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.params: Mapping[str, Any] = Params(decisions, fresh=fresh) if params is None else params
        self.answers = answers
        self.steps: list[Step] = []
        self.decisions = decisions
        self.fresh = fresh
        self._table = table
        self._failing = failing

    def note(self, op: str, kind: str, target: str = "", back: int = 0) -> None:
        """Note the operation of the caller's caller, which may fail."""
        site = self._table.of(sys._getframe(2))
        if len(self.steps) >= MOST_STEPS:
            raise CutOffError
        self.steps.append(Step(op, site, target, back))
        if len(self.steps) == self._failing and kind:
            errors = ERRORS[kind]
            error = errors[self.decisions.draw(len(errors))]
            raise error("no", status=500) if error is CallError else error("no")

    def call(self, dest_ms: str, path: str, params: object = None) -> Reply:
        target = f"{dest_ms}{path}" if path.startswith("/") else f"{dest_ms}/{path}/"
        self.note("call", "call", target)
        return Reply(self, "get of call", target)

    def query(self, db_name: str, qry_name: str, coll_name: str, qry_txt: object) -> Reply:
        target = f"{db_name}.{qry_name}"
        self.note("query", "query", target)
        return Reply(self, "get of query", target)

    def respond(self, body: object = None, status: int = 200) -> None:
        self.note("respond", "")


class Reply:
    """A future; asked again, it answers or fails as the first time."""

    def __init__(self, comm: Recorder, kind: str, target: str) -> None:
        self._comm = comm
        self._kind = kind
        self._target = target
        self._number = len(comm.steps) - 1
        self._asked = False
        self._outcome: Any = None

    def get(self) -> Any:
        if not self._asked:
            comm, self._asked = self._comm, True
            try:
                comm.note("get", self._kind, back=len(comm.steps) - self._number)
                self._outcome = self._answer()
            except MupError as error:
                self._outcome = error
        if isinstance(self._outcome, MupError):
            raise self._outcome
        # Whether an answer counts as true is a decision of its own if all evaluations are independent.
        return self._answer() if self._comm.fresh else self._outcome

    def _answer(self) -> Any:
        decisions = self._comm.decisions
        if self._comm.answers is None:
            return Answer(decisions, whole=self._comm.fresh)
        options = self._comm.answers[self._target]
        return options[decisions.draw(len(options))]


class Sites:
    """Sites by frame; stands in for the log they are usually written to."""

    def __init__(self, root: Path) -> None:
        self.known: list[Site] = []
        self._table = SiteTable(self, root)  # type: ignore[arg-type]

    def site(self, site: Site) -> int:
        """Note a site; what the table expects of a log."""
        self.known.append(site)
        return len(self.known)

    def of(self, frame: Any) -> Site:
        """Return the site of the call that a frame is executing."""
        return self.known[self._table.of_frame(frame, "call") - 1]


@dataclass(frozen=True)
class Run:
    """What an execution did.

    Attributes:
        ended: The exception that left the endpoint, None if none did.
    """

    steps: tuple[Step, ...]
    ended: BaseException | None


def run(endpoint: Any, comm: Recorder) -> Run:
    """Execute an endpoint."""
    try:
        endpoint(comm)
    except (Exception, CutOffError) as error:  # noqa: BLE001  (random programs raise anything)
        return Run(tuple(comm.steps), error)
    return Run(tuple(comm.steps), None)


def load(folder: Path, *names: str) -> list[ModuleType]:
    """Import modules of a folder; no other code will find them under these names."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)


# Acceptance.


class _Acceptor:
    """Runs a path, which with loops is a regular expression, over steps."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.furthest = 0

    def ends(self, operations: Sequence[Operation], starts: Iterable[int]) -> set[int]:
        """Return where a sequence of operations may end that begins at one of these steps."""
        places = set(starts)
        for index, operation in enumerate(operations):
            if operation.op == "loop":
                places = self._loop(operation, places)
            elif operation.op == "choice":
                places = {e for body in operation.bodies for e in self.ends(body.operations, places)}
            else:
                back = _steps_back(operations, index)
                places = {p + 1 for p in places if self._fits(operation, p, back)}
            self.furthest = max(self.furthest, *places, 0)
            if not places:
                break
        return places

    def _loop(self, loop: Operation, places: set[int]) -> set[int]:
        found, new = set(places), set(places)
        while new:
            new = {e for body in loop.bodies for e in self.ends(body.operations, new)} - found
            found |= new
        return found

    def _fits(self, operation: Operation, place: int, back: int | None) -> bool:
        if place >= len(self._steps):
            return False
        step = self._steps[place]
        if (step.op, step.site, step.target) != (operation.op, operation.site, operation.target):
            return False
        return operation.op != "get" or back in (None, step.back)


def _steps_back(operations: Sequence[Operation], index: int) -> int | None:
    """Return how many steps before a get its operation was; None if that is not fixed."""
    of = operations[index].of
    if of is None or any(o.op in ("loop", "choice") for o in operations[of:index]):
        return None
    return index - of


def accepts(paths: Iterable[ExecutionPath], steps: Sequence[Step], *, prefix: bool) -> bool:
    """Return whether a path consists of these steps, or (``prefix``) begins with them."""
    for path in paths:
        acceptor = _Acceptor(steps)
        ends = acceptor.ends(path.operations, [0])
        if len(steps) in ends or (prefix and acceptor.furthest >= len(steps)):
            return True
    return False


def shown(steps: Iterable[Step | Operation]) -> str:
    """Return steps, or the operations of a path, as one line with their places in the source."""
    words = []
    for step in steps:
        if isinstance(step, Operation) and step.bodies:
            words.append(f"{step.op}[{' | '.join(shown(b.operations) for b in step.bodies)}]")
        else:
            site = step.site
            words.append(f"{step.op}{':' + step.target if step.target else ''}@{site.line}.{site.column}")
    return " ".join(words)
