"""What do the parts of a walk through a program share?

A walk follows the code of one endpoint or scenario at a time, in every state at once. Each of its parts knows
one side of the language and finds the others here; what holds only inside a piece of code - the function it
is in, the ``try`` around it, the loops it is unrolled for - is entered and left by context managers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import libcst as cst

from analyzer.static.annotations import AnnotatedValues
from analyzer.static.application import Held
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.factoring import fold
from analyzer.static.liveness import Liveness
from analyzer.static.state import Failure, Flow, State, merge
from mup.events.sites import Site

if TYPE_CHECKING:
    from analyzer.static.assignment import Assignment
    from analyzer.static.asyncio_functions import Asyncio
    from analyzer.static.attaching import Attaching
    from analyzer.static.attributes import Attributes
    from analyzer.static.calls import Calls
    from analyzer.static.catalogue import Catalogue
    from analyzer.static.completing import Completing
    from analyzer.static.comprehensions import Comprehensions
    from analyzer.static.conditions import Conditions
    from analyzer.static.copies import Copies
    from analyzer.static.decorators import Decorators
    from analyzer.static.dispatching import Dispatching
    from analyzer.static.enumerations import Enumerations
    from analyzer.static.evaluation import Expressions
    from analyzer.static.exceptions import Exceptions
    from analyzer.static.functions import Functions
    from analyzer.static.generators import Consumer, Generators
    from analyzer.static.keeping import Keeping
    from analyzer.static.keyed_copies import KeyedCopies
    from analyzer.static.library import Library
    from analyzer.static.lookups import Lookups
    from analyzer.static.loops import Loops
    from analyzer.static.making import Making
    from analyzer.static.managers import Managers
    from analyzer.static.mistakes import Mistakes
    from analyzer.static.names import ClassInfo, FunctionInfo, Names
    from analyzer.static.operations import Operations
    from analyzer.static.overloading import Overloading
    from analyzer.static.own_exceptions import OwnExceptions
    from analyzer.static.patterns import Patterns
    from analyzer.static.races import Races
    from analyzer.static.resuming import Resuming
    from analyzer.static.shared import Shared
    from analyzer.static.source import Module
    from analyzer.static.statements import Statements
    from analyzer.static.tables import Tables
    from analyzer.static.tasks import Tasks
    from analyzer.static.values import Semaphore, Value
    from analyzer.static.variables import Variables
    from analyzer.static.waiting import Waiting

__all__ = ["Context", "Part", "Points", "Role", "TooLongError", "TooManyPathsError", "Trial", "Walk"]
__all__ += ["changed"]

Role = Literal["endpoint", "client"]

MAX_STEPS = 200_000
"""Statements and items that are followed for one endpoint."""

MAX_UNROLLED = 1000
"""Iterations of loops inside one another that are walked one by one."""


class TooManyPathsError(Exception):
    """Enumeration has exploded; the endpoint is given up."""


class TooLongError(TooManyPathsError):
    """The code of an endpoint is too much to be followed; what of it is in the message."""


@contextmanager
def changed(owner: object, **values: object) -> Iterator[None]:
    """Give attributes of an object other values for a while."""
    outer = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in outer.items():
            setattr(owner, name, value)


@dataclass(frozen=True, eq=False)
class Context:
    """The function whose code is being walked; one per frame of a state.

    Attributes:
        function: None for code at module or class level.
        owner: Class whose attributes are plain names here (class bodies only).
        closure: Frame in which the names of the enclosing function live, or None.
        captured: Those names and their values if that function has ended.
        comprehension: Whether the frame has the variables of a comprehension only.
        unbound: Names that ``owner`` binds behind this code.
    """

    module: Module
    function: FunctionInfo | None = None
    owner: ClassInfo | None = None
    closure: int | None = None
    captured: tuple[tuple[str, Value], ...] = ()
    comprehension: bool = False
    unbound: frozenset[str] = frozenset()


@dataclass
class Points:
    """Where exceptions can occur inside one ``try``: a state per kind and sequence of operations."""

    states: dict[Failure, list[State]] = field(default_factory=dict)

    def add(self, kind: Failure, state: State) -> None:
        """Note a state in which an operation of this kind can fail."""
        self.states.setdefault(kind, []).append(state)

    def merged(self, depth: int) -> Iterator[tuple[Failure, State]]:
        """Yield the states as seen by the function whose frame is the ``depth``-th."""
        for kind, states in self.states.items():
            for state in merge(s.leave(depth) for s in states):
                yield kind, state

    def copy(self) -> Points:
        """Return the same points, to which others may be added."""
        return Points({kind: list(states) for kind, states in self.states.items()})


@dataclass
class Trial:
    """What an attempt at a piece of code has found, which counts only if it is kept."""

    diagnostics: Diagnostics
    tries: list[Points]
    raised: list[Flow]
    kept: bool = False


class Part:
    """One side of the language; it finds the others through the walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk


class Walk:
    """A walk through the code of endpoints and scenarios.

    Attributes:
        names: Meaning of names in the source tree.
        annotated: What annotations say.
        catalogue: What calls and queries may address.
        diagnostics: Where findings go.
        role: What the ``Communication`` object can do.
        contexts: The functions whose code is being walked, the innermost last.
        raised: Ways on that end in an exception, of the expression or statement being walked.
        tries: Where exceptions can occur, for every ``try`` around the code being walked.
        consumers: What takes the items of the generators being walked.
        loops_found: How many loops have been found that communicate.
        limit: How many ways there may be at once.
        factoring: Whether ways that nothing can tell apart later are folded.
        liveness: What the code being walked has yet to read.
        in_request: Whether this is code that a request runs, and not what runs once for all requests.
        first_own: Where, in the path, the innermost iteration or task being walked has begun.
        loops_around: Loops of unknown length around the code being walked.
        tasks_around: Tasks around it.
        answering: Whether it handles what has failed behind the response.
        sharing: Whether requests share the semaphores and locks of the service: a replica serves several at
            once, in one process.
        held: Those around the code being walked.
    """

    variables: Variables
    lookups: Lookups
    expressions: Expressions
    conditions: Conditions
    comprehensions: Comprehensions
    completing: Completing
    loops: Loops
    assignment: Assignment
    calls: Calls
    functions: Functions
    operations: Operations
    making: Making
    enumerations: Enumerations
    attaching: Attaching
    attributes: Attributes
    shared: Shared
    decorators: Decorators
    generators: Generators
    resuming: Resuming
    managers: Managers
    patterns: Patterns
    library: Library
    asyncio: Asyncio
    tasks: Tasks
    waiting: Waiting
    races: Races
    copies: Copies
    keyed: KeyedCopies
    statements: Statements
    exceptions: Exceptions
    own_exceptions: OwnExceptions
    mistakes: Mistakes
    keeping: Keeping
    dispatching: Dispatching
    overloading: Overloading
    tables: Tables

    def __init__(self, names: Names, catalogue: Catalogue, diagnostics: Diagnostics, limit: int) -> None:
        self.names = names
        self.annotated = AnnotatedValues(names)
        self.catalogue = catalogue
        self.diagnostics = diagnostics
        self.role: Role = "endpoint"
        self.contexts: list[Context] = []
        self.raised: list[Flow] = []
        self.tries: list[Points] = []
        self.consumers: list[Consumer] = []
        self.loops_found = 0
        self.limit = limit
        self.factoring = False
        self.liveness = Liveness()
        self._steps = 0
        self._most_steps = MAX_STEPS
        self._width = 1
        self.in_request = True
        self.first_own = 0
        self.loops_around = 0
        self.tasks_around = 0
        self.answering = False
        self.sharing = False
        self.held: tuple[Held, ...] = ()
        self._places = 0

    def begin(
        self, context: Context, diagnostics: Diagnostics, *, factoring: bool, limit: int, steps: int
    ) -> None:
        """Begin with an endpoint or scenario.

        Args:
            context: Where its code is.
            diagnostics: Where findings go.
            factoring: Fold ways that nothing can tell apart later instead of enumerating them.
            limit: How many ways there may be at once.
            steps: How many steps it may take.
        """
        self.factoring, self.limit, self._most_steps = factoring, limit, steps
        self.diagnostics = diagnostics
        self.contexts, self.raised, self.tries = [context], [], []
        self._steps, self._width, self.first_own = 0, 1, 0
        self.loops_around = self.tasks_around = 0
        self.held = ()

    @property
    def module(self) -> Module:
        """Return the module of the code being walked."""
        return self.contexts[-1].module

    @property
    def qualname(self) -> str:
        """Return what the qualified names of functions inside the function being walked begin with."""
        function = self.contexts[-1].function
        return f"{function.qualname}.<locals>." if function else ""

    # Findings.

    def report(self, code: str, message: str, node: cst.CSTNode, hint: str = "") -> None:
        """Record a finding about a piece of the code being walked."""
        self.module.report(self.diagnostics, code, message, node, hint)

    def refuse(self, what: str, node: cst.CSTNode, hint: str) -> None:
        """Report code that communicates in a way that is not followed."""
        self.report("MUP030", f"{what}: not analysed yet", node, hint)

    def code(self, node: cst.CSTNode) -> str:
        """Return source text on one line, shortened for a message."""
        text = " ".join(self.module.tree.code_for_node(node).split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    def site(self, node: cst.CSTNode) -> Site:
        """Return the call site of a call or ``await``; of anything else its place."""
        return self.module.site(node) if isinstance(node, cst.Call | cst.Await) else self.place(node)

    def place(self, node: cst.CSTNode) -> Site:
        """Return the place of a loop or choice: it has no ordinal, for nothing of it is in a log."""
        module, function = self.module, self.contexts[-1].function
        qualname = function.qualname if function else ""
        return Site(module.file, qualname, 0, module.line(node), module.column(node))

    # Limits.

    def spend(self, steps: int) -> None:
        """Count what is followed for an endpoint: helpers that call helpers can be endless work."""
        self._steps += steps
        if self._steps > self._most_steps:
            raise TooLongError(f"takes more than {self._most_steps} steps to follow")

    def unrolls(self, items: Sequence[Value], most: int = MAX_UNROLLED) -> bool:
        """Return whether a loop over items is unrolled, given the unrolled loops around it."""
        return self._width * len(items) <= most

    def allocate(self) -> int:
        """Return a new place in the heap."""
        self._places += 1
        return self._places

    def folded(self, flows: Sequence[Flow], base: int, node: cst.CSTNode) -> list[Flow]:
        """Return flows that came from one place with those folded that nothing can tell apart later.

        Args:
            flows: All of one kind.
            base: How many operations had been done at that place.
            node: The code in which they parted, or one behind it.
        """
        if not self.factoring or len(flows) < 2:
            return list(flows)
        return fold(flows, base, self.liveness.names(len(self.contexts)), self.place(node))

    # Where the code being walked is.

    def within(self, context: Context) -> AbstractContextManager[None]:
        """Walk code of another function."""
        return changed(self, contexts=[*self.contexts, context])

    def widened(self, items: Sequence[Value]) -> AbstractContextManager[None]:
        """Walk the iterations of an unrolled loop over items."""
        return changed(self, _width=self._width * max(len(items), 1))

    def beginning(self, first: int, *, task: bool = False) -> AbstractContextManager[None]:
        """Walk what happens once for each of several iterations or tasks.

        Args:
            first: Its place in the path; what lies before it is there only once.
            task: It is a task.
        """
        loops, tasks = self.loops_around + (not task), self.tasks_around + task
        held = () if task else self.held
        return changed(self, first_own=first, loops_around=loops, tasks_around=tasks, held=held)

    @property
    def limited(self) -> bool:
        """Whether requests may wait for semaphores and locks that others hold; users of a client do not."""
        return self.sharing and self.role == "endpoint"

    def holding(self, semaphore: Semaphore, node: cst.CSTNode) -> AbstractContextManager[None]:
        """Walk code while it holds a semaphore or lock that requests share.

        Args:
            semaphore: It. One that is held already is not taken again.
            node: What takes it.
        """
        held = self.held
        if self.limited and semaphore.permits and all(one.made != semaphore.site for one in held):
            held = (*held, Held(semaphore.name, semaphore.permits, semaphore.site, self.place(node)))
        return changed(self, held=held)

    @contextmanager
    def catching(self) -> Iterator[list[Flow]]:
        """Collect the ways on that end in an exception apart from those found until now."""
        outer, self.raised = self.raised, []
        try:
            yield self.raised
        finally:
            self.raised = outer

    def apart(self, context: Context, diagnostics: Diagnostics | None = None) -> AbstractContextManager[None]:
        """Walk code that does not run now, but when its module is imported or the service starts.

        It is not inside the ``try`` that uses it, nor does it give items to a consumer.

        Args:
            context: Where that code is.
            diagnostics: Where its findings go; None = with the others.
        """
        known = diagnostics or self.diagnostics
        around: dict[str, Any] = {
            "raised": [],
            "tries": [],
            "consumers": [],
            "contexts": [context],
            "held": (),
        }
        return changed(self, **around, diagnostics=known, in_request=False)

    def unhurried(self) -> AbstractContextManager[None]:
        """Walk code whose steps and loops do not count for the endpoint that uses it."""
        return changed(self, _steps=0, _width=1)

    @contextmanager
    def trying(self) -> Iterator[Trial]:
        """Walk code whose findings, failures and exceptions count only if they are kept."""
        trial = Trial(Diagnostics(), [points.copy() for points in self.tries], [])
        with changed(self, diagnostics=trial.diagnostics, tries=trial.tries, raised=trial.raised):
            yield trial
        if trial.kept:
            self.diagnostics.extend(trial.diagnostics)
            for points, seen in zip(self.tries, trial.tries, strict=True):
                points.states.update(seen.states)
            self.raised += trial.raised

    # Exceptions.

    def going_on(self, flows: Iterable[Flow]) -> Iterator[Flow]:
        """Yield the ways on that come to their end; the others go where exceptions do."""
        for flow in flows:
            if flow.kind == "next":
                yield flow
            else:
                self.raised.append(flow)

    def may_fail(self, state: State, kind: Failure) -> None:
        """Note that an exception can occur here."""
        if self.tries:
            self.tries[-1].add(kind, state)
        else:
            self.resuming.check_left(state)

    def may_fail_behind(self, before: State, after: State, kind: Failure = "local") -> None:
        """Note that local work may raise after the operations between two states: ``f.get()["key"]``."""
        if after.operations != before.operations:
            self.may_fail(after, kind)

    @contextmanager
    def collected(self, points: Points | None = None) -> Iterator[Points]:
        """Collect where exceptions can occur in a piece of code, in a ``try`` or not."""
        points = Points() if points is None else points
        with changed(self, tries=[*self.tries, points]):
            yield points

    @contextmanager
    def watched(self) -> Iterator[Points]:
        """Collect where exceptions can occur in a piece of code instead of noting them."""
        if not self.tries:
            # Outside of every `try` a failure ends the request: nothing depends on where.
            yield Points()
            return
        with self.collected() as points:
            yield points
