"""Which operations can an endpoint execute, in which orders?

Walks the control flow of ``analyzer.static.control`` in every state at once. After each statement, states
that have done the same operations are merged; what is left at the end are the paths.

Inside ``try`` a remote operation may fail, and local work may raise: each such point continues in the
handlers that can catch it. Outside of ``try`` a failure simply ends the request and is not a path of its
own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from analyzer.static.application import Path
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
from analyzer.static.diagnostics import Diagnostic, Diagnostics
from analyzer.static.dispatching import Dispatching
from analyzer.static.enumerations import Enumerations
from analyzer.static.evaluation import Expressions
from analyzer.static.exceptions import Exceptions
from analyzer.static.factoring import as_trees
from analyzer.static.functions import Functions
from analyzer.static.generators import Generators
from analyzer.static.keeping import Keeping
from analyzer.static.keyed_copies import KeyedCopies
from analyzer.static.left_behind import with_copies_left_behind
from analyzer.static.library import Library
from analyzer.static.lookups import Lookups
from analyzer.static.loops import Loops
from analyzer.static.making import Making
from analyzer.static.managers import Managers
from analyzer.static.mistakes import Mistakes
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.operations import Operations
from analyzer.static.overloading import Overloading
from analyzer.static.own_exceptions import OwnExceptions
from analyzer.static.patterns import Patterns
from analyzer.static.races import Races
from analyzer.static.resuming import Resuming
from analyzer.static.rounds_in_logs import not_told_apart
from analyzer.static.shared import Shared
from analyzer.static.state import Flow, State, merge_flows
from analyzer.static.statements import Statements
from analyzer.static.tables import Tables
from analyzer.static.tasks import Tasks
from analyzer.static.values import FunctionValue, Value
from analyzer.static.variables import Variables
from analyzer.static.waiting import Waiting
from analyzer.static.walk import MAX_STEPS, Context, Role, TooManyPathsError, Walk

__all__ = ["Execution", "assembled"]

MAX_PATHS = 1000
"""Paths an endpoint may have, its independent branches aside."""

MAX_ENUMERATED = 64
"""Endpoints with more paths than this, those of iterations included, are described with choices."""

MAX_LISTING_STEPS = 20_000
"""Listing paths is given up after so many steps, for factoring follows the same code in a few of them."""

MAX_SIZE = 10_000
"""Paths and bodies of loops and choices an endpoint may have in all."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one walk through a method found.

    Attributes:
        exploded: It was given up, for there were too many ways.
    """

    paths: tuple[Path, ...]
    diagnostics: Diagnostics
    exploded: bool = False

    @property
    def errors(self) -> set[Diagnostic]:
        """The findings that make a model impossible."""
        return {d for d in self.diagnostics.all() if d.severity == "error"}


class Execution:
    """Symbolic execution of one endpoint or scenario at a time.

    Args:
        names: Meaning of names in the source tree.
        catalogue: What calls and queries may address.
        diagnostics: Where findings go.
    """

    def __init__(self, names: Names, catalogue: Catalogue, diagnostics: Diagnostics) -> None:
        self.walk = assembled(Walk(names, catalogue, diagnostics, MAX_PATHS))

    def paths(
        self, function: FunctionInfo, receiver: ClassInfo, role: Role, served: Value | None = None
    ) -> tuple[Path, ...]:
        """Return the paths of a method.

        Args:
            function: The method.
            receiver: The class of the object it runs on.
            role: What its ``Communication`` can do.
            served: What runs instead, if the class has more than the method with its decorators.
        """
        self.walk.role = role
        reporting = self.walk.diagnostics
        # What a constant has to report is reported when it is evaluated first: in every attempt anew.
        constants = self.walk.lookups.constants
        listed = self._attempt(
            function, receiver, served, dict(constants), limit=MAX_ENUMERATED, steps=MAX_LISTING_STEPS
        )
        found = listed
        if listed.exploded:
            found = self._attempt(
                function, receiver, served, dict(constants), factoring=True, limit=MAX_PATHS
            )
            if not found.exploded and found.errors - listed.errors:
                # Choices accept more than can happen, which may be what is wrong with them.
                other = self._attempt(function, receiver, served, constants, limit=MAX_PATHS)
                found = other if not other.exploded and len(other.errors) < len(found.errors) else found
        outside = Context(function.module)
        self.walk.begin(outside, reporting, factoring=False, limit=MAX_PATHS, steps=MAX_STEPS)
        self.walk.diagnostics.extend(found.diagnostics)
        paths = with_copies_left_behind(found.paths)
        self._check_fan_outs(paths)
        return paths

    def _check_fan_outs(self, paths: tuple[Path, ...]) -> None:
        for fan_out, why in not_told_apart(paths):
            what = f"a log does not tell how many copies this fan-out has: {why}"
            hint = "make its calls in a function that does nothing else and is used once"
            self.walk.diagnostics.at(fan_out.site, "MUP030", what, hint)

    def _attempt(
        self,
        function: FunctionInfo,
        receiver: ClassInfo,
        served: Value | None,
        constants: dict[Assigned, Value],
        *,
        factoring: bool = False,
        limit: int,
        steps: int = MAX_STEPS,
    ) -> _Attempt:
        """Walk a method.

        Args:
            function: The method.
            receiver: The class of the object it runs on.
            served: What runs instead; None = the method with its decorators.
            constants: Constants that are known already; what is found out about others is added.
            factoring: Fold ways that nothing can tell apart later instead of enumerating them.
            limit: How many ways there may be at once.
            steps: How many steps it may take.
        """
        here = Context(function.module, function, captured=FunctionValue(function).captured)
        self.walk.begin(here, Diagnostics(), factoring=factoring, limit=limit, steps=steps)
        self.walk.lookups.constants = constants
        self.walk.tasks.forget_tasks()
        self.walk.resuming.forget()
        if served is None:
            served = self.walk.decorators.decorated(function)
            self._check_decorators(function)
        try:
            flows = self._run_endpoint(function, receiver, served)
            # Invariant: whatever a part of the walk has entered, it has left.
            assert len(self.walk.contexts) == 1 and not self.walk.tries  # noqa: S101, PT018
            for flow in [*flows, *self.walk.raised]:
                self.walk.resuming.check_left(flow.state)
            found = _paths([*flows, *self.walk.raised])
            if factoring and _size(found) > MAX_PATHS:
                found = as_trees(found)
            if _size(found) > (MAX_SIZE if factoring else limit):
                raise TooManyPathsError
            return _Attempt(found, self.walk.diagnostics)
        except TooManyPathsError as error:
            self.walk.contexts = [here]
            why = str(error) or f"has more than {MAX_PATHS} paths, its independent branches aside"
            hint = "wait for a call in the branch that makes it, or split the function"
            self.walk.report("MUP034", f"{function.qualname!r} {why}", function.place, hint)
            return _Attempt(_paths(self.walk.raised), self.walk.diagnostics, exploded=True)
        except RecursionError:
            self.walk.contexts = [here]
            what = f"{function.qualname!r} is nested too deeply to be analysed"
            self.walk.report("MUP030", what, function.place, "split its longest expression")
            return _Attempt(_paths(self.walk.raised), self.walk.diagnostics)

    def _run_endpoint(self, function: FunctionInfo, receiver: ClassInfo, served: Value | None) -> list[Flow]:
        if served is None:
            return self.walk.statements.run_body(
                function, State((self.walk.functions.communication_of(function, receiver),))
            )
        self.walk.contexts = [Context(function.module)]
        results = self.walk.functions.served(served, receiver, function.place)
        return [Flow(state, "return", value) for state, value in results]

    def _check_decorators(self, function: FunctionInfo) -> None:
        if self.walk.decorators.decorated(function) is not None:
            return
        for name in self.walk.lookups.decorators(function):
            if not self.walk.decorators.transparent(name):
                what = f"the decorator {name!r} may change what {function.qualname!r} does"
                hint = "call a helper function instead, or declare it: [analysis] transparent in mup.toml"
                self.walk.report("MUP030", what, function.place, hint)


def assembled(walk: Walk) -> Walk:
    """Give a walk its parts."""
    walk.variables = Variables(walk)
    walk.lookups = Lookups(walk)
    walk.expressions = Expressions(walk)
    walk.conditions = Conditions(walk)
    walk.comprehensions = Comprehensions(walk)
    walk.loops = Loops(walk)
    walk.assignment = Assignment(walk)
    walk.calls = Calls(walk)
    walk.functions = Functions(walk)
    walk.operations = Operations(walk)
    walk.making = Making(walk)
    walk.enumerations = Enumerations(walk)
    walk.attaching = Attaching(walk)
    walk.attributes = Attributes(walk)
    walk.shared = Shared(walk)
    walk.decorators = Decorators(walk)
    walk.generators = Generators(walk)
    walk.resuming = Resuming(walk)
    walk.managers = Managers(walk)
    walk.patterns = Patterns(walk)
    walk.library = Library(walk)
    walk.asyncio = Asyncio(walk)
    walk.tasks = Tasks(walk)
    walk.waiting = Waiting(walk)
    walk.races = Races(walk)
    walk.completing = Completing(walk)
    walk.copies = Copies(walk)
    walk.keyed = KeyedCopies(walk)
    walk.statements = Statements(walk)
    walk.exceptions = Exceptions(walk)
    walk.own_exceptions = OwnExceptions(walk)
    walk.mistakes = Mistakes(walk)
    walk.keeping = Keeping(walk)
    walk.dispatching = Dispatching(walk)
    walk.overloading = Overloading(walk)
    walk.tables = Tables(walk)
    walk.annotated.members = walk.enumerations.members
    return walk


def _size(paths: Iterable[Path]) -> int:
    return sum(path.size for path in paths)


def _paths(flows: Iterable[Flow]) -> tuple[Path, ...]:
    """Return the paths that a method can end with."""
    # Nothing is left to be done: what variables hold tells no two ways apart any more.
    ended = [replace(f, state=replace(f.state, heap={})) for f in flows]
    flows = merge_flows(f if f.kind == "raise" else Flow(f.state, "return") for f in ended)
    # An exception behind the last operation (after the response, that is) does not make another path.
    returned = {f.state.operations for f in flows if f.kind == "return"}
    return tuple(
        Path(
            f.state.operations,
            "raise" if f.kind == "raise" else "return",
            f.line if f.kind == "raise" else 0,
            f.state.local_lines,
        )
        for f in flows
        if f.kind == "return" or f.state.operations not in returned
    )
