"""What does an expression do, and what is it worth, in every state that can reach it?

Walks expressions in evaluation order. Operations on ``Communication`` and futures extend the path;
helpers that are handed one of them are inlined; whatever would let them out of sight is a diagnostic.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import libcst as cst

from analyzer.static.application import Operation, OperationKind
from analyzer.static.arguments import Arguments
from analyzer.static.catalogue import Catalogue
from analyzer.static.control import Block
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.expressions import combine, literal, operands
from analyzer.static.factoring import fold
from analyzer.static.facts import changed_in_loop, holding, without_facts
from analyzer.static.liveness import Liveness
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.repetition import Repetition, carried, repetition
from analyzer.static.source import Module
from analyzer.static.state import Content, Failure, Flow, Results, State, forget, merge
from analyzer.static.stated import Stated
from analyzer.static.values import (
    COMM,
    LOST,
    NONE,
    UNKNOWN,
    Awaitable,
    ClassValue,
    Closure,
    Const,
    Coroutine,
    DictRef,
    External,
    Function,
    FunctionValue,
    Future,
    Generator,
    Group,
    Instance,
    ListRef,
    MapValue,
    Method,
    ModuleValue,
    ObjectRef,
    OneOf,
    Partial,
    SharedObject,
    Super,
    TupleValue,
    Unknown,
    Value,
    alternatives,
    distinct,
    from_python,
    join,
    tuple_of,
)
from analyzer.static.values.evaluator import HERE, Escape
from analyzer.static.values.reading import called_name
from analyzer.static.variables import Context, Variables
from mup.databases.command import NOT_KNOWN, RESERVED, check_known
from mup.errors import ModelError, QueryError, UsageError
from mup.events.sites import Site
from mup.lqn.distributions import Constant, Distribution, Empirical, Exponential
from mup.lqn.refs import EndpointRef, QueryRef
from mup.routes import typed
from mup.workload.times_file import read_times

__all__ = ["Evaluation", "Points", "Role", "TooManyPathsError"]

Role = Literal["endpoint", "client"]

MAX_PATHS = 1000
MAX_INLINE_DEPTH = 50
MAX_QUIET_DEPTH = 3
"""Functions that do not communicate are walked this deep for what they do to objects."""

MAX_UNROLLED = 1000
MAX_OPERATIONS = 3000
"""In one path; more are no program somebody wants to see as a path."""
MAX_STEPS = 200_000
"""Statements and items that are followed for one endpoint."""
INLINING = 50
"""Steps that inlining a helper counts for."""

# Looking at a value is not letting it go.
HARMLESS = {
    f"builtins.{n}" for n in ("isinstance", "len", "print", "repr", "str", "id", "type", "bool", "hash")
}

TRUTH = ("__bool__", "__len__")
TEXT = ("__str__", "__repr__")
CONVERSIONS = {
    "builtins.bool": TRUTH,
    "builtins.format": ("__format__", *TEXT),
    "builtins.hash": ("__hash__",),
    "builtins.len": ("__len__",),
    "builtins.print": TEXT,
    "builtins.repr": ("__repr__",),
    "builtins.str": TEXT,
}
"""Which methods of an object a built-in function runs: the first of these that it has."""

# Functions of these modules do not change what they are given.
LOOKS_ONLY = (
    "builtins.",
    "collections.",
    "copy.",
    "dataclasses.",
    "datetime.",
    "functools.",
    "itertools.",
    "json.",
    "logging.",
    "math.",
    "operator.",
    "statistics.",
    "time.",
    "uuid.",
)

# What these return is known, but not what the functions they are given do meanwhile.
CALLING = {"builtins.max", "builtins.min", "builtins.sorted"}

CHANGING = {
    f"operator.{n}" for n in ("setitem", "delitem", "iadd", "iconcat", "ior", "iand", "isub", "ixor", "imul")
}
"""These change what they are given all the same."""

LOGGING = {"debug", "info", "warning", "error", "exception", "critical", "log"}
"""Methods of unknown objects that do not change what they are given."""

# These reach every variable there is.
SEE_EVERYTHING = {f"builtins.{n}" for n in ("eval", "exec", "locals", "vars")}

# Decorators that leave what a function does alone.
TRANSPARENT = {
    "builtins.property",
    "functools.cached_property",
    "functools.wraps",
    "contextlib.asynccontextmanager",
    "contextlib.contextmanager",
    "typing.no_type_check",
    "typing.overload",
    "builtins.staticmethod",
    "builtins.classmethod",
    "typing.override",
    "typing.final",
    "abc.abstractmethod",
    "mup.EP",
    "mup.service.EP",
}

CALL_PARAMETERS = (("dest_ms",), ("path", "path_or_name", "endpoint"))
METHOD_PARAMETER = (5, ("method",))
QUERY_PARAMETERS = (("db_name",), ("qry_name",))
QUERY_TEXT = (3, ("qry_txt",))
MAX_NESTED = 20
"""Parts of a query's text that lie deeper than this are not looked at."""
RECORDED_TIMES = 500
"""Values that are kept of a file of think times."""
THINK_PARAMETERS = (("seconds", "mean", "time"), ("distribution", "family", "kind"))


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


class TooManyPathsError(Exception):
    """Enumeration has exploded; the endpoint is given up."""


class TooLongError(TooManyPathsError):
    """The code of an endpoint is too much to be followed; what of it is in the message."""


class Evaluation(Variables):
    """Evaluates expressions; statements are the subclass's business.

    Args:
        names: Meaning of names in the source tree.
        catalogue: What calls and queries may address.
        diagnostics: Where findings go.
    """

    def __init__(self, names: Names, catalogue: Catalogue, diagnostics: Diagnostics) -> None:
        super().__init__()
        self.names = names
        self.stated = Stated(names)
        self.catalogue = catalogue
        self.diagnostics = diagnostics
        self.role: Role = "endpoint"
        self.raised: list[Flow] = []
        self.loops = 0
        self._quiet = 0
        self.steps = 0
        self.most_steps = MAX_STEPS
        self.width = 1
        self.limit = MAX_PATHS
        self.factoring = False
        self.liveness = Liveness()
        self._numbers = 0
        self._factories: dict[FunctionInfo, bool] = {}
        self._constants: dict[Assigned, Value] = {}
        self._busy: set[Assigned] = set()
        # Chosen by class: `isinstance` is slow for abstract classes like libcst's.
        self._methods: dict[type, Callable[[Any, State], Results]] = {
            cst.Attribute: self._attribute,
            cst.Await: self.await_,
            cst.BooleanOperation: self._boolean,
            cst.Call: self._call,
            cst.DictComp: self._comprehension,
            cst.GeneratorExp: self.generator_expression,
            cst.IfExp: self._conditional,
            cst.Lambda: self._lambda,
            cst.ListComp: self._comprehension,
            cst.Name: self._name,
            cst.NamedExpr: self._named_expression,
            cst.SetComp: self._comprehension,
            cst.Yield: self.yielded,
        }

    # What statements provide.

    @abstractmethod
    def run_body(self, function: FunctionInfo, state: State) -> list[Flow]:
        """Run the body of a function whose frame and context are in place."""

    @property
    @abstractmethod
    def is_protected(self) -> bool:
        """Whether the code being walked is inside a ``try``."""

    @abstractmethod
    def may_fail(self, state: State, kind: Failure) -> None:
        """Note that an exception can occur here."""

    def may_fail_behind(self, before: State, after: State) -> None:
        """Note that local work may raise after the operations between two states: ``f.get()["key"]``."""
        if after.operations != before.operations:
            self.may_fail(after, "local")

    @abstractmethod
    def watched(self) -> AbstractContextManager[Points]:
        """Collect where exceptions can occur in a piece of code instead of noting them."""

    # What ``await`` and asyncio provide.

    @abstractmethod
    def await_(self, node: cst.Await, state: State) -> Results:
        """Return what ``await`` does."""

    @abstractmethod
    def library(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results | None:
        """Return what calling a function of the library does; None if it does nothing special."""

    # What generators and the library provide.

    @abstractmethod
    def generator_expression(self, node: cst.GeneratorExp, state: State) -> Results:
        """Return the generator an expression makes."""

    @abstractmethod
    def generator_body(self, function: FunctionInfo) -> Block | None:
        """Return the body of a generator function; None for any other function."""

    @abstractmethod
    def new_generator(
        self, context: Context, body: Block, frame: dict[str, Value], state: State, *, communicates: bool
    ) -> tuple[State, Generator]:
        """Return the state with a generator that nobody has taken an item from."""

    @abstractmethod
    def yielded(self, node: cst.Yield, state: State) -> Results:
        """Return what a ``yield`` does."""

    @abstractmethod
    def consume(
        self,
        generator: Generator,
        state: State,
        node: cst.CSTNode,
        each: Callable[[State, Value], list[Flow]],
    ) -> list[Flow]:
        """Take all items of a generator."""

    @abstractmethod
    def listed(
        self, values: Sequence[Value], node: cst.CSTNode, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Return values with a list in the place of every generator."""

    @abstractmethod
    def outside(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results | None:
        """Return what a function outside the source tree does; None if that is not known."""

    @abstractmethod
    def text_method(
        self, owner: Const, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a method of a constant text does."""

    @abstractmethod
    def expanded(self, arguments: Arguments, state: State) -> Arguments:
        """Return arguments with ``*`` and ``**`` replaced by what they stand for, where that is known."""

    # What objects provide.

    @abstractmethod
    def instantiate(self, info: ClassInfo, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling a class does."""

    @abstractmethod
    def call_object(
        self, owner: ObjectRef | SharedObject, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what calling an object does."""

    @abstractmethod
    def assign_attribute(self, target: cst.Attribute, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after ``target = value``."""

    @abstractmethod
    def item_of_object(
        self, owner: ObjectRef | SharedObject, key: Value, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what reading an item of an object does."""

    @abstractmethod
    def iterables(self, node: cst.BaseExpression, state: State) -> Results:
        """Evaluate what a loop is over; objects of known classes say what that is."""

    @abstractmethod
    def class_attribute(
        self, info: ClassInfo, after: ClassInfo | None, name: str, receiver: Value | None
    ) -> Value:
        """Return an attribute that comes from a class or its bases."""

    @abstractmethod
    def method_named(self, info: ClassInfo, names: Sequence[str]) -> FunctionInfo | None:
        """Return the first of these methods that a class has."""

    @abstractmethod
    def property_of(self, info: ClassInfo, after: ClassInfo | None, name: str) -> FunctionInfo | None:
        """Return what reading an attribute runs; None if it is no property."""

    @abstractmethod
    def is_cached(self, getter: FunctionInfo) -> bool:
        """Return whether a property keeps what it returned first."""

    @abstractmethod
    def is_made_once(self, info: ClassInfo, name: str, value: Value) -> bool:
        """Return whether only the making of an object gives this attribute a value."""

    @abstractmethod
    def is_named_tuple(self, info: ClassInfo) -> bool:
        """Return whether objects of a class are tuples of their fields."""

    @abstractmethod
    def is_service(self, number: int) -> bool:
        """Return whether an object is the service or client itself, while it is set up."""

    @abstractmethod
    def empty(self, factory: str, state: State) -> tuple[State, Value]:
        """Return what a function of the library returns that makes an empty container."""

    @abstractmethod
    def as_pairs(self, value: Value, state: State) -> Content | None:
        """Return the items of a mapping, or of a sequence of pairs; None if they are not known."""

    @abstractmethod
    def interruptible(self, state: State) -> None:
        """Note that a timeout may end the wait that has just begun."""

    @abstractmethod
    def future_method(
        self, future: Future, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a future or task does."""

    @abstractmethod
    def group_method(
        self, group: Group, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a group of tasks does."""

    @abstractmethod
    def awaited_future(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for a future or task does."""

    @abstractmethod
    def awaited_several(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for what a function of asyncio returned does."""

    @abstractmethod
    def operated(self, values: Iterable[Value], node: cst.CSTNode, state: State) -> None:
        """Report operators that run code which communicates."""

    @abstractmethod
    def asked(self, value: Value, methods: Sequence[str], node: cst.CSTNode, state: State) -> Results:
        """Return what asking a value through the first of these methods it has does, if that communicates."""

    @abstractmethod
    def members(self, info: ClassInfo) -> tuple[Value, ...] | None:
        """Return the members of an enumeration; None for any other class."""

    @abstractmethod
    def freeze(self, value: Value, state: State) -> Value:
        """Return a value that needs no heap: what is made once outlives every state."""

    @abstractmethod
    def decorated(self, function: FunctionInfo) -> Value | None:
        """Return what a function's decorators make of it; None if they leave it alone or are not known."""

    # Small services.

    def report(self, code: str, message: str, node: cst.CSTNode, hint: str = "") -> None:
        """Record a finding about a piece of the code being walked."""
        module = self.module
        self.diagnostics.add(code, message, file=module.file, hint=hint, **module.span(node))

    def code(self, node: cst.CSTNode) -> str:
        """Return source text on one line, shortened for a message."""
        text = " ".join(self.module.tree.code_for_node(node).split())
        return text if len(text) <= 60 else f"{text[:57]}..."

    def spend(self, steps: int) -> None:
        """Count what is followed for an endpoint: helpers that call helpers can be endless work."""
        self.steps += steps
        if self.steps > self.most_steps:
            raise TooLongError(f"takes more than {self.most_steps} steps to follow")

    def unrolls(self, items: Sequence[Value] | None) -> bool:
        """Return whether a loop over items is unrolled, given the unrolled loops around it."""
        return items is not None and self.width * len(items) <= MAX_UNROLLED

    def allocate(self) -> int:
        """Return a new place in the heap."""
        self._numbers += 1
        return self._numbers

    def place(self, node: cst.CSTNode) -> Site:
        """Return the place of a loop or choice: it has no ordinal, for nothing of it is in a log."""
        module, function = self.module, self.contexts[-1].function
        qualname = function.qualname if function else ""
        return Site(module.file, qualname, 0, module.line(node), module.column(node))

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

    # Constants of modules and classes.

    def constant(self, module: Module, binding: Assigned, owner: ClassInfo | None = None) -> Value:
        """Return what a module or class constant is worth; unknown if it is not one."""
        if binding.value is None or binding in self._busy:
            return self.stated.constant(module, binding, UNKNOWN)
        if binding not in self._constants:
            self._busy.add(binding)
            spent, self.steps, self.width = (self.steps, self.width), 0, 1
            with self.apart(Context(module, owner=owner)):
                try:
                    results = self.evaluate(binding.value, State(({},)))
                except (TooManyPathsError, RecursionError):
                    results = []
                value = join(self.freeze(v, s) for s, v in results) if results else UNKNOWN
            self.steps, self.width = spent
            self._busy.discard(binding)
            self._constants[binding] = self.stated.constant(module, binding, value)
        return self._constants[binding]

    @contextmanager
    def apart(self, context: Context, diagnostics: Diagnostics | None = None) -> Iterator[None]:
        """Walk code that does not run now, but when its module is imported or the service starts.

        Args:
            context: Where that code is.
            diagnostics: Where its findings go; None = with the others.
        """
        outer = self.contexts, self.raised, self.diagnostics
        self.contexts, self.raised = [context], []
        self.diagnostics = diagnostics or self.diagnostics
        try:
            yield
        finally:
            self.contexts, self.raised, self.diagnostics = outer

    # Names and attributes.

    def lookup(self, name: str, state: State) -> Value:
        """Return what a name is worth."""
        if name in state.frames[-1]:
            return state.frames[-1][name]
        context = self.contexts[-1]
        inner: Context | None = context
        while inner is not None:
            for captured, value in inner.captured:
                if captured == name:
                    return value
            depth = inner.closure
            if depth is None or depth >= len(state.frames):
                break
            if name in state.frames[depth]:
                return state.frames[depth][name]
            inner = self.contexts[depth] if depth < len(self.contexts) else None
        if context.owner is not None and name in context.owner.bindings:
            binding = context.owner.bindings[name]
            if isinstance(binding, Assigned):
                return self.constant(context.module, binding, context.owner)
            return self.names.binding_value(binding) or UNKNOWN
        return self._global(context.module, name)

    def _global(self, module: Module, name: str) -> Value:
        found = self.names.find(module, name)
        if isinstance(found, tuple) and isinstance(found[1], FunctionInfo):
            wrapped = self.decorated(found[1])
            if wrapped is not None:
                return wrapped
        value = self.names.value_of(found)
        if value is None and isinstance(found, tuple) and isinstance(found[1], Assigned):
            if self.contexts and name in self.names.changes(self.module).attributes:
                return UNKNOWN
            if found[0] is module and self.names.rebound(module, name):
                return self._rebound(module, name)
            return self.constant(found[0], found[1])
        return value or UNKNOWN

    def _rebound(self, module: Module, name: str) -> Value:
        """Return what a global name is worth that functions rebind: an object that is made when needed."""
        values = [self.constant(module, binding) for binding in self.names.rebound(module, name)]
        made_once = all(value == NONE or isinstance(value, SharedObject) for value in values)
        return join(values) if made_once else UNKNOWN

    def member(self, owner: ModuleValue, name: str) -> Value:
        """Return a name of a module of the source tree."""
        value = self.names.member(owner, name)
        return self._global(owner.module, name) if value is None else value

    def missing_attribute(self, node: cst.CSTNode, state: State) -> Results:
        """Note the ``AttributeError`` of reading an attribute that is not there; there is no way on."""
        missing = External("builtins.AttributeError")
        self.raised.append(Flow(state, "raise", missing, self.module.line(node)))
        return []

    def decorators(self, function: FunctionInfo) -> list[str]:
        """Return the dotted names of a function's decorators; code for those that have none."""
        if not isinstance(function.node, cst.FunctionDef):
            return []
        found = []
        for decorator in function.node.decorators:
            target = decorator.decorator
            base = target.func if isinstance(target, cst.Call) else target
            value = self.names.dotted(function.module, base)
            if isinstance(value, External):
                found.append(value.name)
            else:
                found.append(function.module.tree.code_for_node(base))
        return found

    # Expressions.

    def evaluate(self, node: cst.BaseExpression, state: State) -> Results:
        """Return the states in which an expression ends, each with its value.

        Executions that end in an exception are added to ``raised`` instead.
        """
        known = literal(node)
        if known is not None:
            return [(state, known)]
        method = self._methods.get(type(node), self._pure)
        return method(node, state)

    def _named_expression(self, node: cst.NamedExpr, state: State) -> Results:
        return [(self._named(node.target, v, s), v) for s, v in self.evaluate(node.value, state)]

    def _lambda(self, node: cst.Lambda, state: State) -> Results:
        return [(state, self.closure(node, f"{self._qualname()}<lambda>", state))]

    def _name(self, node: cst.Name, state: State) -> Results:
        return [(state, self.lookup(node.value, state))]

    def evaluate_all(
        self, nodes: Sequence[cst.BaseExpression], state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Evaluate expressions one after the other."""
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for node in nodes:
            results = [
                (after, (*values, value))
                for before, values in results
                for after, value in self.evaluate(node, before)
            ]
            if self.factoring and len(results) > 1:
                results = self._folded_values(results, state, node)
            if len(results) > self.limit:
                raise TooManyPathsError
        return results

    def _folded_values(
        self, results: list[tuple[State, tuple[Value, ...]]], before: State, node: cst.CSTNode
    ) -> list[tuple[State, tuple[Value, ...]]]:
        flows = [Flow(state, value=TupleValue(values)) for state, values in results]
        folded = self.folded(flows, len(before.operations), node)
        groups: dict[tuple[Operation, ...], list[tuple[State, tuple[Value, ...]]]] = {}
        for flow, (_, values) in zip(folded, results, strict=True):
            new = flow.value.values if isinstance(flow.value, TupleValue) else values
            groups.setdefault(flow.state.operations, []).append((flow.state, new))
        return [
            (
                merge(state for state, _ in group)[0],
                tuple(map(join, zip(*(v for _, v in group), strict=True))),
            )
            for group in groups.values()
        ]

    def _qualname(self) -> str:
        function = self.contexts[-1].function
        return f"{function.qualname}.<locals>." if function else ""

    def _pure(self, node: cst.BaseExpression, state: State) -> Results:
        results: Results = []
        for after, values in self.evaluate_all(operands(node), state):
            if type(node) is not cst.List and type(node) is not cst.Tuple:
                self.may_fail_behind(state, after)
            if type(node) is cst.List or type(node) is cst.Set:
                # A set has no order that the source could tell.
                items = self._displayed(node.elements, values, after)
                if items is None or (type(node) is cst.Set and len(items) > 1):
                    number = self.allocate()
                    results.append((after.store(number, after.content_of(values)), ListRef(number)))
                else:
                    results.append(self.new_list(items, after))
            elif type(node) is cst.Tuple:
                items = self._displayed(node.elements, values, after)
                results.append((after, after.content_of(values) if items is None else tuple_of(items)))
            elif type(node) is cst.Dict:
                results.append(self._new_dict(node, values, after))
            elif type(node) is cst.Subscript:
                results += self._subscripted(node, values, after)
            elif type(node) is cst.UnaryOperation and isinstance(node.operator, cst.Not):
                self.operated(values, node, after)
                known = values[0].truth(after.heap)
                results.append((after, UNKNOWN if known is None else Const.of(not known)))
            elif type(node) is cst.BinaryOperation:
                results.append(self._combined(node, values, after))
            else:
                self.operated(values, node, after)
                results.append((after, combine(node, values)))
        return results

    def _combined(
        self, node: cst.BinaryOperation, values: Sequence[Value], state: State
    ) -> tuple[State, Value]:
        """Return the result of an operator; that of lists and dicts may hold futures, too."""
        left, right = values
        if isinstance(right, DictRef):  # `"%(name)s" % {...}`
            return state, combine(node, (left, self.freeze(right, state)))
        self.operated(values, node, state)
        if isinstance(node.operator, cst.Add) and isinstance(left, ListRef) and isinstance(right, ListRef):
            items, more = self.items(left, state), self.items(right, state)
            if items is not None and more is not None:
                return self.new_list((*items, *more), state)
        value = combine(node, values)
        if isinstance(value, Unknown) and any(state.holds_tracked(v) for v in values):
            return state, LOST
        return state, value

    def _subscripted(self, node: cst.Subscript, values: Sequence[Value], state: State) -> Results:
        """Return what reading ``owner[key]`` does."""
        owner, *keys = values
        place = node.slice[0].slice
        if len(node.slice) > 1:
            return [(state, state.content_of([owner]))]
        if isinstance(place, cst.Slice):
            return [(state, self._sliced(place, values, state))]
        return merge_results(owner.item(keys[0], node, state, self))

    def _displayed(
        self, elements: Sequence[cst.BaseElement], values: Sequence[Value], state: State
    ) -> tuple[Value, ...] | None:
        """Return the items of a list, set or tuple that is spelt out; None if a part is unknown."""
        found: list[Value] = []
        for element, value in zip(elements, values, strict=True):
            items = self.items(value, state) if isinstance(element, cst.StarredElement) else (value,)
            if items is None:
                return None
            found += items
        return tuple(found)

    def new_list(self, values: Iterable[Value], state: State) -> tuple[State, Value]:
        """Return the state with a new list."""
        number = self.allocate()
        return state.store(number, tuple((UNKNOWN, value) for value in values)), ListRef(number)

    def _new_dict(self, node: cst.Dict, values: Sequence[Value], state: State) -> tuple[State, Value]:
        number = self.allocate()
        rest = list(values)
        pairs: list[tuple[Value, Value]] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                pairs.append((rest.pop(0), rest.pop(0)))
                continue
            spread = rest.pop(0)
            more = spread.pairs(state.heap) if isinstance(spread, DictRef | MapValue) else None
            if more is None:
                return state.store(number, state.content_of(values)), DictRef(number)
            pairs += more
        return state.store(number, distinct(tuple(pairs), state)), DictRef(number)

    def _sliced(self, part: cst.Slice, values: Sequence[Value], state: State) -> Value:
        """Return ``owner[a:b:c]`` as a tuple: a copy that shares nothing with the owner."""
        bounds: list[int | None] = []
        rest = list(values[1:])
        for bound in (part.lower, part.upper, part.step):
            value = NONE if bound is None else rest.pop(0)
            if not isinstance(value, Const) or not isinstance(value.value, int | None):
                return state.content_of(values[:1])
            bounds.append(value.value)
        results = []
        for owner in alternatives(values[0]):
            items = None if isinstance(owner, DictRef | MapValue) else self.items(owner, state)
            if bounds[2] == 0 or items is None:
                return state.content_of(values[:1])
            taken = items[slice(*bounds)]
            known, text = TupleValue(taken).python()
            is_text = known and isinstance(owner, Const)
            results.append(Const.of("".join(text)) if is_text else TupleValue(taken))
        return join(results)

    def items(self, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what iterating over a value yields; None if that is not known."""
        return value.items(state, self)

    def _attribute(self, node: cst.Attribute, state: State) -> Results:
        results: Results = []
        for after, owner in self.evaluate(node.value, state):
            if not owner.reads_safely:
                self.may_fail_behind(state, after)
            results += owner.read(node.attr.value, node, after, self)
        return merge_results(results)

    def _named(self, target: cst.BaseExpression, value: Value, state: State) -> State:
        """Return the state after ``target := value``, which binds outside of comprehensions."""
        assert isinstance(target, cst.Name)  # noqa: S101  (the grammar has no other target)
        depth = len(state.frames) - 1
        while self.contexts[depth].comprehension:
            outside = self.contexts[depth].closure
            if outside is None:
                break
            depth = outside
        frame = {**state.frames[depth], target.value: value}
        return replace(state, frames=(*state.frames[:depth], frame, *state.frames[depth + 1 :]))

    def _conditional(self, node: cst.IfExp, state: State) -> Results:
        results: Results = []
        for after, holds in self.test(node.test, state):
            results += self.evaluate(node.body if holds else node.orelse, after)
        return merge_results(results)

    def _boolean(self, node: cst.BooleanOperation, state: State) -> Results:
        stops = not isinstance(node.operator, cst.And)
        results: Results = []
        for evaluated, value in self.evaluate(node.left, state):
            for after, told in self.asked(value, TRUTH, node.left, evaluated):
                known = told.truth(after.heap)
                if known is None or known is stops:
                    results.append((after, holding(value, stops)))
                if known is None or known is not stops:
                    results += self.evaluate(node.right, self.narrow(node.left, after, holds=not stops))
        return merge_results(results)

    def test(self, node: cst.BaseExpression, state: State) -> list[tuple[State, bool]]:
        """Return the states behind a condition, each with the answer that leads there."""
        results = []
        for evaluated, value in self.evaluate(node, state):
            for after, told in self.asked(value, TRUTH, node, evaluated):
                known = told.truth(after.heap)
                results += [
                    (self.narrow(node, after, holds=answer), answer)
                    for answer in (True, False)
                    if known is None or known is answer
                ]
        return results

    def narrow(self, node: cst.BaseExpression, state: State, *, holds: bool) -> State:
        """Return the state with what a condition's answer tells about a variable."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            return self.narrow(node.expression, state, holds=not holds)
        if isinstance(node, cst.BooleanOperation) and holds is isinstance(node.operator, cst.And):
            return self.narrow(node.right, self.narrow(node.left, state, holds=holds), holds=holds)
        if isinstance(node, cst.Name) and node.value in state.frames[-1]:
            return state.bind(node.value, holding(state.frames[-1][node.value], holds))
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            comparison = node.comparisons[0]
            name, other = node.left, literal(comparison.comparator)
            if isinstance(name, cst.Name) and name.value in state.frames[-1] and other == NONE:
                is_none = holds is isinstance(comparison.operator, cst.Is | cst.Equal)
                if isinstance(comparison.operator, cst.Is | cst.IsNot | cst.Equal | cst.NotEqual):
                    return self._narrow_none(name.value, state, is_none=is_none)
            if isinstance(name, cst.Name) and isinstance(state.frames[-1].get(name.value), Unknown):
                texts = self._told(comparison, state, holds=holds)
                if texts:
                    return state.bind(name.value, join(texts))
        return state

    def _told(self, comparison: cst.ComparisonTarget, state: State, *, holds: bool) -> tuple[Value, ...]:
        """Return the texts that something unknown must be one of if a comparison has this answer."""
        other = comparison.comparator
        if isinstance(comparison.operator, cst.Equal if holds else cst.NotEqual):
            found: tuple[Value, ...] | None = (literal(other) or UNKNOWN,)
        elif isinstance(comparison.operator, cst.In if holds else cst.NotIn):
            if isinstance(other, cst.Tuple | cst.List | cst.Set):
                found = tuple(literal(element.value) or UNKNOWN for element in other.elements)
            else:
                found = (
                    self.items(self.lookup(other.value, state), state)
                    if isinstance(other, cst.Name)
                    else None
                )
        else:
            found = None
        known = found is not None and all(isinstance(v, Const) and isinstance(v.value, str) for v in found)
        return found if known and found is not None else ()

    def _narrow_none(self, name: str, state: State, *, is_none: bool) -> State:
        value = state.frames[-1][name]
        if is_none:
            return state.bind(name, NONE) if not value.tracked() or isinstance(value, OneOf) else state
        options = [v for v in alternatives(value) if v != NONE]
        return state.bind(name, join(options)) if options else state

    def _comprehension(self, node: cst.BaseComp, state: State) -> Results:
        """Unroll a comprehension over known items; one over unknown items must not communicate."""
        element: Sequence[cst.BaseExpression]
        if isinstance(node, cst.DictComp):
            element = (node.key, node.value)
        else:
            assert isinstance(node, cst.BaseSimpleComp)  # noqa: S101  (the grammar has no third kind)
            element = (node.elt,)
        inner = state.enter({})
        depth = len(state.frames)
        # The comprehension's variables live in a frame of their own, and names around it stay visible.
        context = self.contexts[-1]
        inside = Context(
            context.module, context.function, context.owner, closure=depth - 1, comprehension=True
        )
        self.contexts.append(inside)
        found: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]] = self._clause(
            node.for_in, element, [(inner, ())], node
        )
        results: Results = []
        for after, content in found:
            number = self.allocate()
            ref = DictRef(number) if isinstance(node, cst.DictComp) else ListRef(number)
            if isinstance(node, cst.SetComp) and not isinstance(content, Value) and len(content) > 1:
                content = forget([content], after.heap)  # noqa: PLW2901  (a set has no order)
            if isinstance(node, cst.DictComp) and not isinstance(content, Value):
                content = distinct(content, after)  # noqa: PLW2901
            values = [] if isinstance(content, Value) else [v for _, v in content]
            left, settled = self.left(values, after, depth)
            if not isinstance(content, Value):
                content = tuple((k, v) for (k, _), v in zip(content, settled, strict=True))  # noqa: PLW2901
            results.append((left.store(number, content), ref))
        self.contexts.pop()
        return results

    def _clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        states: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]],
        node: cst.BaseComp,
    ) -> list[tuple[State, tuple[tuple[Value, Value], ...] | Value]]:
        results: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]] = []
        for state, content in states:
            for after, iterable in self.iterables(clause.iter, state):
                if isinstance(iterable, Generator):
                    results += self._generator_clause(clause, element, after, content, iterable, node)
                    continue
                self.may_fail_behind(state, after)
                items = self.items(iterable, after)
                if items is None or not self.unrolls(items):
                    results.append(self._unknown_clause(clause, element, after, iterable, node))
                    continue
                current: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]] = [(after, content)]
                outer, self.width = self.width, self.width * max(len(items), 1)
                for item in items:
                    current = self._iteration(clause, element, item, current, node, len(after.operations))
                self.width = outer
                results += current
        return results

    def _iteration(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        item: Value,
        states: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]],
        node: cst.BaseComp,
        base: int,
    ) -> list[tuple[State, tuple[tuple[Value, Value], ...] | Value]]:
        results: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]] = []
        self.spend(len(states))
        for before, content in states:
            passing = [self.assign(clause.target, item, before, node)]
            for condition in clause.ifs:
                answers = [a for s in passing for a in self.test(condition.test, s)]
                results += [(s, content) for s, holds in answers if not holds]
                passing = [s for s, holds in answers if holds]
            for state in passing:
                if clause.inner_for_in is not None:
                    results += self._clause(clause.inner_for_in, element, [(state, content)], node)
                    continue
                for after, values in self.evaluate_all(element, state):
                    if isinstance(content, Value):
                        results.append((after, forget([content, ((UNKNOWN, values[-1]),)], after.heap)))
                    else:
                        key = values[0] if len(values) > 1 else UNKNOWN
                        results.append((after, (*content, (key, values[-1]))))
        if self.factoring and len(results) > 1:
            flows = self.folded([Flow(s, value=_packed(c)) for s, c in results], base, node)
            results = [(flow.state, _unpacked(flow.value)) for flow in flows]
        groups: dict[tuple[Operation, ...], list[tuple[State, tuple[tuple[Value, Value], ...] | Value]]] = {}
        for pair in results:
            groups.setdefault(pair[0].operations, []).append(pair)
        merged: list[tuple[State, tuple[tuple[Value, Value], ...] | Value]] = []
        for group in groups.values():
            state = merge([s for s, _ in group])[0]
            contents = [c for _, c in group]
            same = len(set(contents)) == 1
            merged.append((state, contents[0] if same else forget(contents, state.heap)))
        if len(merged) > self.limit:
            raise TooManyPathsError
        return merged

    def _generator_clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        content: Content | Value,
        iterable: Generator,
        node: cst.BaseComp,
    ) -> list[tuple[State, Content | Value]]:
        """Walk a comprehension over a generator; what it has collected is in the heap meanwhile."""
        number = self.allocate()

        def each(inner: State, item: Value) -> list[Flow]:
            ends = self._iteration(
                clause, element, item, [(inner, inner.heap[number])], node, len(inner.operations)
            )
            return [Flow(after.store(number, found)) for after, found in ends]

        flows = self.consume(iterable, state.store(number, content), node, each)
        self.raised += [flow for flow in flows if flow.kind != "next"]
        return [(flow.state, flow.state.heap[number]) for flow in flows if flow.kind == "next"]

    def _unknown_clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        iterable: Value,
        node: cst.BaseComp,
    ) -> tuple[State, Value]:
        item = state.content_of([iterable])

        def iteration(start: State) -> list[Flow]:
            ends = self._iteration(clause, element, item, [(start, UNKNOWN)], node, len(start.operations))
            # The contents travel as the value of the flow.
            return [Flow(s, value=c if isinstance(c, Value) else forget([c], s.heap)) for s, c in ends]

        loop, _, flows = self.repeated(node, state, iteration)
        ends = [loop.end(flow) for flow in flows]
        after = merge([loop.end(Flow(state)).state, *(end.state for end in ends)])[0]
        return after, forget([end.value for end in ends], after.heap)

    def repeated(
        self, node: cst.CSTNode, before: State, iteration: Callable[[State], list[Flow]]
    ) -> tuple[Repetition, State, list[Flow]]:
        """Walk a loop that may have any number of iterations.

        Args:
            node: The loop.
            before: The state in which an iteration may begin.
            iteration: Walks one from a state; tells how it ends.

        Returns:
            The loop, the state that any iteration may begin in, and how an iteration ends from there.
            Failures and exceptions inside have been noted as ways out of the loop.
        """
        start = replace(before, local_lines=(*before.local_lines[:-1], 0))
        outer, self.raised = self.raised, []
        while True:
            with self.watched() as points:
                flows = iteration(start)
            again = [f.state.leave(len(before.frames)) for f in flows if f.kind in ("next", "continue")]
            following = changed_in_loop(carried(start, again), again)
            if following == start:
                break
            # What an iteration leaves behind, the next one finds.
            start, self.raised = following, []
        loop = repetition(before, again, self.place(node))
        misplaced = loop.has_tasks_that_wait_for_earlier([*flows, *self.raised])
        self.raised = [*outer, *(loop.leave(flow) for flow in self.raised)]
        for kind, state in points.merged(len(before.frames)):
            self.may_fail(loop.leave(Flow(state)).state, kind)
        if loop.loop is not None:
            self.loops += 1
            if sum(body.size for body in loop.loop.bodies) > self.limit:
                raise TooManyPathsError
        if loop.waits_for_earlier or misplaced:
            self.report(
                "MUP031",
                "a loop without a visible bound waits for an operation made before it",
                node,
                "wait for it before the loop",
            )
        return loop, start, flows

    # Assignment.

    def assign(self, target: cst.BaseExpression, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after binding a value to a target."""
        if isinstance(target, cst.Name):
            function = self.contexts[-1].function
            return self.bind(target.value, self.stated.local(function, target.value, value), state, node)
        if isinstance(target, cst.StarredElement):
            return self.assign(target.value, value, state, node)
        if isinstance(target, cst.Tuple | cst.List):
            return self._unpack(target, value, state, node)
        if isinstance(target, cst.Subscript):
            return self._assign_item(target, value, state, node)
        if isinstance(target, cst.Attribute):
            return self.assign_attribute(target, value, state, node)
        self.release([value], state, node, target)
        return state

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, state: State, node: cst.CSTNode) -> State:
        for after, (listed,) in self.listed([value], node, state)[:1]:
            state, value = after, listed
        items = self.items(value, state)
        size = len(target.elements)
        stars = [i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)]
        if items is not None and stars and len(items) >= size - 1:
            before, behind = stars[0], size - stars[0] - 1
            state, middle = self.new_list(items[before : len(items) - behind], state)
            items = (*items[:before], middle, *items[len(items) - behind :])
        if items is None or len(items) != size:
            items = (state.content_of([value]),) * size
        for element, item in zip(target.elements, items, strict=True):
            state = self.assign(element.value, item, state, node)
        return state

    def _assign_item(self, target: cst.Subscript, value: Value, state: State, node: cst.CSTNode) -> State:
        for after, values in self.place_of(target, state):
            state = after
            owner = values[0]
            key = values[1] if len(values) == 2 else UNKNOWN
            changed = owner.with_item(key, value, state)
            if changed is not None:
                return changed
            self.release([value], state, node, target.value)
            state = without_facts(state)
        return state

    def place_of(self, target: cst.BaseExpression, state: State) -> Sequence[tuple[State, tuple[Value, ...]]]:
        """Evaluate what says where something is assigned: owner and index."""
        results = self.evaluate_all(operands(target), state)
        if len(results) > 1:
            self.report(
                "MUP030",
                f"'{self.code(target)}' communicates in several ways where it is assigned: not analysed yet",
                target,
                "put the index into a variable first",
            )
        return results[:1]

    def delete(self, target: cst.BaseExpression, state: State) -> State:
        """Return the state after ``del``."""
        if not isinstance(target, cst.Subscript):
            return state
        for after, values in self.place_of(target, state):
            state = after
            for owner in alternatives(values[0]):
                changed = owner.without_item(values[-1], state)
                state = without_facts(state) if changed is None else changed
        return state

    # Calls.

    def release(
        self, values: Iterable[Value], state: State, node: cst.CSTNode, to: str | cst.CSTNode
    ) -> None:
        """Report values that leave the code the analyzer can see.

        Args:
            values: What leaves it.
            state: Where that happens.
            node: The code that hands them over.
            to: What takes them: in words, or as code.
        """
        for value in values:
            found = self._released(value, state, node)
            if found is not None:
                code, what, consequence, hint = found
                place = to if isinstance(to, str) else f"'{self.code(to)}'"
                self.report(code, f"{what} is handed to {place}{consequence}", node, hint)

    def _released(self, value: Value, state: State, node: cst.CSTNode) -> Escape | None:
        """Return why a value must not leave: code, what it is, the consequence and the remedy; or None."""
        escape = value.escape(state, self)
        if value.is_communication():
            escape = ("MUP041", "the Communication object", ", where its use cannot be seen", HERE)
        if escape is not None and escape[3] == HERE and _starts_thread(node):
            return (*escape[:3], _THREAD_HINT)
        return escape

    def _communicates(self, values: Iterable[Value], state: State) -> bool:
        """Return whether a function that gets these values can communicate."""
        return any(value.communicates(state, self) for value in values)

    def _call(self, node: cst.Call, state: State) -> Results:
        results: Results = []
        for called, callee in self.evaluate(node.func, state):
            for after, values in self.evaluate_all([a.value for a in node.args], called):
                if callee.may_change(node, values, after):
                    after = without_facts(after)  # noqa: PLW2901
                for ready, given in self._spread(node, values, after):
                    arguments = self.expanded(Arguments(tuple(node.args), given), ready)
                    if node.args or not _waits(callee):
                        self.may_fail(ready, "local")
                    results += callee.call(arguments, node, ready, self)
        return merge_results(results) if len(results) > 1 else results

    def _spread(
        self, node: cst.Call, values: tuple[Value, ...], state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Return arguments after ``*`` has taken the items of the generators it is put before."""
        if not any(a.star and isinstance(v, Generator) for a, v in zip(node.args, values, strict=True)):
            return [(state, values)]
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for argument, value in zip(node.args, values, strict=True):
            results = [
                (after, (*known, *more))
                for before, known in results
                for after, more in (
                    self.listed([value], node, before) if argument.star else [(before, (value,))]
                )
            ]
        return results

    def call_unknown(self, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something does of which nothing is known."""
        function = node.func if isinstance(node, cst.Call) else node
        self.release(arguments.values, state, node, function)
        if called_name(node) not in LOGGING:
            state = self.forget_contents(arguments.values, state)
        return [(state, UNKNOWN)]

    def call_of(self, method: Method | None, node: cst.CSTNode, state: State) -> cst.Call | None:
        """Return the call an operation needs in the source; None, and a finding about ``method``, without."""
        if isinstance(node, cst.Call):
            return node
        if method is not None:
            self.release([method], state, node, "a library")
        return None

    def unknown_future(self, node: cst.CSTNode, state: State) -> Results:
        """Report a wait for a future that is not known; nothing is known of its answer."""
        self.report(
            "MUP040",
            f"it is not known which future '{self.code(node)}' waits for",
            node,
            "keep each future in a variable of its own; wait for a call of a loop without a visible bound in"
            " the same iteration, or loop over range(constant) or a literal sequence",
        )

        return [(state, UNKNOWN)]

    def external(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something outside the source tree does."""
        special = self.library(name, arguments, node, state) if isinstance(node, cst.Call) else None
        if special is None and name in CONVERSIONS:
            special = self._converted(name, arguments.positional(), node, state)
        if special is not None:
            return special
        found = self.outside(name, arguments, node, state)
        if found is None or name in CALLING:
            functions = [v for v in arguments.values if isinstance(v, Closure | Method | Partial)]
            state = self.forget_contents(functions, state) if name not in HARMLESS else state
            found = None if found is None else [(self.forget_contents(functions, s), v) for s, v in found]
        if found is not None:
            return found
        given = arguments.positional()
        self.check_reach(name, given, node, state)
        if name.startswith("builtins.") and arguments.plain and not arguments.keywords():
            value = self._builtin(name.removeprefix("builtins."), given, state)
            if isinstance(value, tuple):
                return [self.new_list(value, state)]
            if value is not None:
                return [(state, value)]
        if name not in HARMLESS:
            function = node.func if isinstance(node, cst.Call) else node
            self.release(arguments.values, state, node, function)
            if not name.startswith(LOOKS_ONLY) or name in CHANGING:
                state = self.forget_contents(arguments.values, state)
        return [(state, UNKNOWN)]

    def _converted(
        self, name: str, given: Sequence[Value], node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what a built-in function does that asks objects which communicate; None if none does."""
        results: Results = [(state, UNKNOWN)]
        for value in given:
            results = [r for before, _ in results for r in self.asked(value, CONVERSIONS[name], node, before)]
        if all(after is state for after, _ in results):
            return None
        return merge_results([(after, v if len(given) == 1 else UNKNOWN) for after, v in results])

    def check_reach(self, name: str, given: Sequence[Value], node: cst.CSTNode, state: State) -> None:
        """Report a function that can do anything with what the variables around it hold."""
        if name not in SEE_EVERYTHING or (given and name == "builtins.vars"):
            return
        if any(state.holds_tracked(value) for frame in state.frames for value in frame.values()):
            short = name.removeprefix("builtins.")
            self.report("MUP041", f"{short!r} can see all variables here", node, "use them by their names")

    def _builtin(self, name: str, given: list[Value], state: State) -> Value | tuple[Value, ...] | None:
        """Return what a built-in function returns: a value, a tuple for a new list, None if not known."""
        if name == "super" and not given:
            function = self.contexts[-1].function
            me = next(iter(state.frames[-1].values()), None)
            if (
                function is not None
                and function.owner is not None
                and isinstance(me, Instance | ObjectRef | SharedObject | ClassValue)
            ):
                return Super(me.info, function.owner, me)
            return None
        if (
            name == "range"
            and given
            and all(isinstance(v, Const) and isinstance(v.value, int) for v in given)
        ):
            try:
                return from_python(range(*(v.value for v in given if isinstance(v, Const))))
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        if name in ("str", "int", "float") and len(given) == 1 and isinstance(given[0], Const):
            convert: Callable[[object], object] = {"str": str, "int": int, "float": float}[name]
            try:
                return from_python(convert(given[0].value))
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        items = self.items(given[0], state) if len(given) == 1 else () if not given else None
        if items is None:
            return None
        if name == "len":
            return Const.of(len(items))
        if name == "list":
            return items
        if name in ("tuple", "iter"):
            return TupleValue(items)
        if name == "reversed":
            return TupleValue(items[::-1])
        return None

    # Operations.

    def emit(self, state: State, operation: Operation) -> State:
        """Return the state after an operation; note that it may have failed."""
        after = state.after(operation)
        if len(after.operations) > MAX_OPERATIONS:
            raise TooLongError(f"has a path of more than {MAX_OPERATIONS} operations")
        if operation.op == "get" and operation.of is not None:
            waited = state.operations[operation.of].op
            self.may_fail(after, "get of query" if waited == "query" else "get of call")
        elif operation.op == "query" or (operation.op == "call" and self.role == "endpoint"):
            # In a client, a call that goes wrong shows when it is awaited.
            self.may_fail(after, operation.op)
        return after

    def communication(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what a method of the ``Communication`` object does."""
        if name == "respond" and self.role == "endpoint":
            return [(self.emit(state, Operation("respond", self.module.site(node))), NONE)]
        if name == "call":
            return self._request("call", arguments, node, state)
        if name == "query" and self.role == "endpoint":
            return self._request("query", arguments, node, state)
        owner = "an endpoint's" if self.role == "endpoint" else "a client's"
        known = "call, query and respond" if self.role == "endpoint" else "call"
        self.report("MUP042", f"{owner} Communication has no operation {name!r}", node, f"it has {known}")
        return [(state, UNKNOWN)]

    def _request(
        self, kind: Literal["call", "query"], arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        parameters = CALL_PARAMETERS if kind == "call" else QUERY_PARAMETERS
        choices: list[tuple[list[str], cst.CSTNode]] = []
        for position, names in enumerate(parameters):
            value, place = arguments.get(position, names)
            value = None if value is None else join(v.as_text() for v in alternatives(value))
            texts = [] if value is None else [v.value for v in alternatives(value) if isinstance(v, Const)]
            if (
                value is None
                or len(texts) != len(alternatives(value))
                or not all(isinstance(t, str) for t in texts)
            ):
                self._unknown_destination(kind, names[0], place or node)
                texts = []
            choices.append((texts, place or node))
        results: Results = []
        method = self._http_method(arguments, node) if kind == "call" else ""
        if kind == "query":
            self._check_query(arguments, node, state)
        (heads, head_node), (tails, tail_node) = choices
        for head in heads or ["?"]:
            for tail in tails or ["?"]:
                to: EndpointRef | QueryRef = EndpointRef(head, tail)
                if kind == "query":
                    to = QueryRef(head, tail)
                    if head != "?":
                        self._check_database(head, head_node)
                elif head != "?":
                    to = self._endpoint_target(head, tail, method, head_node, tail_node)
                operation: OperationKind = kind
                after = self.emit(state, Operation(operation, self.module.site(node), to.label, to=to))
                results.append((after, Future(len(after.operations) - 1)))
        return results

    def _unknown_destination(self, kind: str, parameter: str, node: cst.CSTNode) -> None:
        self.report(
            "MUP010",
            f"{parameter} of this {kind} is not known from the source",
            node,
            'use constants, or say what it can be: `name: Literal["A", "B"] = ...`',
        )

    def _http_method(self, arguments: Arguments, node: cst.Call) -> str:
        """Return the HTTP method a call asks for; "" if it does not say, or the source does not tell."""
        value, place = arguments.get(*METHOD_PARAMETER)
        if value is None or not arguments.plain:
            return ""
        if isinstance(value, Const) and isinstance(value.value, str):
            return value.value
        self._unknown_destination("call", "method", place or node)
        return ""

    def _endpoint_target(
        self,
        service: str,
        endpoint: str,
        method: str,
        service_node: cst.CSTNode,
        endpoint_node: cst.CSTNode,
    ) -> EndpointRef:
        if not self.catalogue.has_service(service):
            hint = self.catalogue.service_hint(service)
            self.report("MUP011", f"no service is named {service!r}", service_node, hint)
        elif endpoint != "?":
            key = self.catalogue.key(service, endpoint, method)
            if key is not None:
                return EndpointRef(service, key)
            hint = self.catalogue.endpoint_hint(service, endpoint, method)
            asked = typed(endpoint, method)
            self.report("MUP012", f"service {service!r} has no endpoint {asked}", endpoint_node, hint)
        return EndpointRef(service, endpoint if endpoint.startswith("/") else f"/{endpoint}")

    def _check_database(self, name: str, node: cst.CSTNode) -> None:
        problem = self.catalogue.database_problem(name)
        if problem is not None:
            message, hint = problem
            self.report("MUP013", message, node, hint)

    def _check_query(self, arguments: Arguments, node: cst.Call, state: State) -> None:
        """Report a query the runtime refuses, whatever is not known of its text."""
        value, place = arguments.get(*QUERY_TEXT)
        if value is None:
            self.report(
                "MUP014", "this query has no qry_txt", node, "it says what to do: a filter or a command"
            )
            return
        problem: QueryError | None = None
        for one in alternatives(value):
            try:
                check_known(self._known_part(one, state))
            except QueryError as error:
                problem = problem or error
            else:
                # Perhaps it is this one.
                return
        if problem is not None:
            hint = problem.hint or f"docs/reference/queries.md has the fields of every {RESERVED}"
            self.report("MUP014", problem.message, place or node, hint)

    def _known_part(self, value: Value, state: State, depth: int = 0) -> Any:
        """Return a value as Python has it, with ``NOT_KNOWN`` for what only an execution tells."""
        constant, plain = value.as_text().python()
        if constant and not isinstance(plain, tuple | dict):
            return plain
        pairs = None if depth > MAX_NESTED else value.pairs(state.heap)
        if pairs is None:
            return NOT_KNOWN
        if isinstance(value, ListRef | TupleValue):
            # Lists that never change are kept as tuples: which of both one is, is not known.
            return [self._known_part(item, state, depth + 1) for _, item in pairs]
        known = {}
        for key, item in pairs:
            name = self._known_part(key, state, MAX_NESTED)
            if not isinstance(name, Hashable) or name is NOT_KNOWN:
                return NOT_KNOWN
            known[name] = self._known_part(item, state, depth + 1)
        return known

    def _get(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        if future.index in state.joined:
            # The answer is already there, or the failure, and nobody knows which.
            waited = state.operations[future.index].op
            self.may_fail(state, "get of query" if waited == "query" else "get of call")
            return [(state, UNKNOWN)]
        operation = Operation("get", self.module.site(node), of=future.index)
        return [(self.emit(state, operation), UNKNOWN)]

    def think(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what thinking does."""
        time = self._think_time(arguments)
        if time is None:
            self.report("MUP043", "the think time is not known from the source", node, "it will be measured")
        return [(self.emit(state, Operation("think", self.module.site(node), think=time)), NONE)]

    def _think_time(self, arguments: Arguments) -> Distribution | None:
        mean, _ = arguments.get(0, THINK_PARAMETERS[0])
        family, _ = arguments.get(1, THINK_PARAMETERS[1])
        if family == Const.of("recorded"):
            return self._recorded(mean)
        if not isinstance(mean, Const) or not isinstance(mean.value, int | float):
            return None
        family = Const.of("constant") if family is None else family
        try:
            if family == Const.of("constant"):
                return Constant(float(mean.value))
            if family == Const.of("exponential"):
                return Exponential(float(mean.value))
        except ModelError:
            return None
        return None

    def _recorded(self, file: Value | None) -> Distribution | None:
        """Return the think times of a file beside the source; None if it cannot be read."""
        if not isinstance(file, Const) or not isinstance(file.value, str):
            return None
        try:
            times = sorted(read_times(self.names.tree.root / file.value))
        except UsageError:
            return None
        size = min(len(times), RECORDED_TIMES)
        # Each value stands for equally many of the recorded ones.
        parts = [times[k * len(times) // size : (k + 1) * len(times) // size] for k in range(size)]
        means = tuple(sum(part) / len(part) for part in parts)
        return Constant(means[0]) if means[0] == means[-1] else Empirical(means)

    # Inlining.

    def call_function(
        self,
        callee: Function,
        arguments: Arguments,
        node: cst.CSTNode,
        state: State,
        *,
        follow: bool = False,
    ) -> Results:
        """Return what calling a function of the source tree does."""
        info = callee.info
        given = [*arguments.values, *callee.leading]
        own = isinstance(callee, Closure) and self.captures(callee, state)
        communicates = own or self._communicates(given, state)
        follow = follow or communicates or _is_expression(info) or self._is_worth_following(callee, given)
        follow = follow or self.generator_body(info) is not None
        if not follow:
            return [(self._after_unfollowed(callee, given, state), UNKNOWN)]
        if communicates:
            unknown = [name for name in self.decorators(info) if not is_transparent(name)]
            if unknown and self.decorated(info) is None:
                self.report(
                    "MUP030",
                    f"the decorator {unknown[0]!r} may change what {info.qualname!r} communicates",
                    node,
                    "call an undecorated function",
                )
        if any(c.function is info for c in self.contexts) or len(self.contexts) > MAX_INLINE_DEPTH:
            if communicates:
                self.report(
                    "MUP032",
                    f"{info.qualname!r} communicates and calls itself",
                    node,
                    "write the communication as a loop with a visible bound",
                )
            return [(self._after_unfollowed(callee, given, state), UNKNOWN)]
        frame = self._parameters(callee, arguments, node, state)
        body = self.generator_body(info)
        if body is not None:
            return [self._made_generator(callee, body, frame, state, communicates=communicates)]
        if info.is_async:
            if communicates:
                return [(state, Coroutine(callee, tuple(frame.items()), node))]
            return [(self._after_unfollowed(callee, given, state), UNKNOWN)]
        if communicates:
            return self.inline(callee, frame, node, state)
        return self._followed_quietly(callee, frame, node, state)

    def _made_generator(
        self,
        callee: Function,
        body: Block,
        frame: dict[str, Value],
        state: State,
        *,
        communicates: bool,
    ) -> tuple[State, Value]:
        context = Context(callee.info.module, callee.info, closure=callee.depth, captured=callee.captured)
        return self.new_generator(context, body, frame, state, communicates=communicates)

    def _is_worth_following(self, callee: Function, given: Sequence[Value]) -> bool:
        """Return whether a function that does not communicate is walked for what it does to objects."""
        if self._quiet >= MAX_QUIET_DEPTH:
            return False
        if isinstance(callee, FunctionValue) and isinstance(callee.bound, SharedObject):
            return True
        if isinstance(callee, Closure) or any(isinstance(value, ObjectRef) for value in given):
            return True
        effects = self.effects(callee.info)
        if callee.info not in self._factories:
            made = (self.names.dotted(callee.info.module, name) for name in effects.called)
            self._factories[callee.info] = any(isinstance(kind, ClassValue) for kind in made)
        return effects.defines or self._factories[callee.info]

    def _after_unfollowed(self, callee: Function, given: Sequence[Value], state: State) -> State:
        """Return the state after a function that was not walked: what it can reach may have changed."""
        reached = given if self.effects(callee.info).contents else ()
        return self.forget_contents([callee, *reached] if isinstance(callee, Closure) else reached, state)

    def _followed_quietly(
        self, callee: Function, frame: dict[str, Value], node: cst.CSTNode, state: State
    ) -> Results:
        """Walk a function that does not communicate: its exceptions and lines are local work as any other."""
        outer, self.raised = self.raised, []
        self._quiet += 1
        results = self.inline(callee, frame, node, state)
        self._quiet -= 1
        # Without a way on, the exception is what happens; inside `try`, it says what the handler gets.
        self.raised = [*outer, *(self.raised if self.is_protected or not results else ())]
        return [
            (replace(s, local_lines=state.local_lines) if s.operations == state.operations else s, v)
            for s, v in results
        ]

    def call_method(
        self,
        method: FunctionInfo,
        owner: Value,
        given: Sequence[Value],
        node: cst.CSTNode,
        state: State,
        *,
        follow: bool = False,
    ) -> Results:
        """Return what calling a method of the source tree with these arguments does."""
        callee = FunctionValue(method, owner)
        return self.call_function(callee, Arguments.of(*given), node, state, follow=follow)

    def inline(self, callee: Function, frame: dict[str, Value], node: cst.CSTNode, state: State) -> Results:
        """Return what running a function of the source tree with these variables does."""
        self.spend(INLINING)
        info = callee.info
        depth = len(state.frames)
        line = self.module.line(node)
        self.contexts.append(Context(info.module, info, closure=callee.depth, captured=callee.captured))
        results: Results = []
        if isinstance(info.node, cst.Lambda):
            for s, v in self.evaluate(info.node.body, state.enter(frame)):
                after, (value,) = self.left([v], s, depth)
                results.append((after, value))
            self.contexts.pop()
            return results
        outer, self.raised = self.raised, []
        flows = self.run_body(info, state.enter(frame))
        flows += self.raised
        self.raised = outer
        for flow in flows:
            after, (value,) = self.left([flow.value], flow.state, depth)
            if flow.kind == "raise":
                self.raised.append(Flow(after, "raise", value, flow.line or line))
            else:
                results.append((after, value if flow.kind == "return" else NONE))
        self.contexts.pop()
        return merge_results(results)

    def _parameters(
        self, callee: Function, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> dict[str, Value]:
        """Bind arguments to parameters; what cannot be matched must not be tracked."""
        info = callee.info
        declared = info.node.params
        names = [p.name.value for p in (*declared.posonly_params, *declared.params)]
        frame: dict[str, Value] = {}
        # With `*` or `**` it is not known how many there are, nor which parameter gets which.
        given = [*callee.leading, *(arguments.positional() if arguments.plain else ())]
        frame.update(zip(names, given, strict=False))
        rest = given[len(names) :]
        keywords = dict(arguments.keywords())
        known = {*names, *(p.name.value for p in declared.kwonly_params)}
        extra: dict[str, Value] = {}
        for name, value in keywords.items():
            (frame if name in known else extra)[name] = value
        if isinstance(declared.star_arg, cst.Param):
            frame[declared.star_arg.name.value] = TupleValue(tuple(rest))
            rest = []
        if declared.star_kwarg is not None:
            pairs = tuple((Const.of(name), value) for name, value in extra.items())
            frame[declared.star_kwarg.name.value] = MapValue(pairs)
            extra = {}
        spread = [v for a, v in zip(arguments.nodes, arguments.values, strict=True) if a.star]
        self.release(
            [*rest, *extra.values(), *spread], state, node, f"{info.qualname!r} in a way not followed"
        )
        for parameter in (*declared.posonly_params, *declared.params, *declared.kwonly_params):
            name = parameter.name.value
            if name not in frame:
                frame[name] = UNKNOWN if parameter.default is None else self._default(info, parameter.default)
                if isinstance(callee, Closure):
                    frame[name] = dict(callee.defaults).get(name, UNKNOWN)
            frame[name] = self.stated.local(info, name, frame[name])
        return frame

    def defaults(self, declared: cst.Parameters, state: State) -> tuple[tuple[str, Value], ...]:
        """Return the defaults of a nested function that is being defined."""
        found = []
        for parameter in (*declared.posonly_params, *declared.params, *declared.kwonly_params):
            if parameter.default is not None:
                results = self.evaluate(parameter.default, state)
                if any(after.operations != state.operations for after, _ in results):
                    self.report(
                        "MUP030", "a default that communicates is not analysed yet", parameter.default
                    )
                found.append((parameter.name.value, join(value for _, value in results)))
        return tuple(found)

    def _default(self, info: FunctionInfo, node: cst.BaseExpression) -> Value:
        # The scratch binding makes the default a constant of the helper's module.
        return self.constant(info.module, Assigned(node))

    def communication_of(self, function: FunctionInfo, receiver: ClassInfo) -> dict[str, Value]:
        """Return the first frame of an endpoint or scenario: ``self`` and its Communication."""
        frame = self.first_frame(function, (Instance(receiver), COMM))
        if self.role == "endpoint":
            # What stands behind comm comes from the request; a default says nothing about that.
            declared = function.node.params
            own = [p.name.value for p in (*declared.posonly_params, *declared.params)][:2]
            frame = {name: value if name in own else UNKNOWN for name, value in frame.items()}
        return frame

    def first_frame(self, function: FunctionInfo, values: Sequence[Value]) -> dict[str, Value]:
        """Return the frame of a function that the framework calls with these values."""
        declared = function.node.params
        names = [p.name.value for p in (*declared.posonly_params, *declared.params)]
        frame = dict(zip(names, values, strict=False))
        for parameter in (*declared.params, *declared.kwonly_params):
            name = parameter.name.value
            if name not in frame:
                frame[name] = (
                    UNKNOWN if parameter.default is None else self._default(function, parameter.default)
                )
        return frame


_THREAD_STARTERS = {"Thread", "submit", "to_thread", "run_in_executor", "start_new_thread", "apply_async"}
_THREAD_HINT = "calls need no threads: make all calls first, then wait for each; they run meanwhile"


def _starts_thread(node: cst.CSTNode) -> bool:
    """Return whether a call looks like one that runs something in another thread."""
    if not isinstance(node, cst.Call):
        return False
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return isinstance(name, cst.Name) and name.value in _THREAD_STARTERS


def _waits(callee: Value) -> bool:
    return isinstance(callee, Method) and isinstance(callee.owner, Future)


def _is_expression(info: FunctionInfo) -> bool:
    """Return whether a function is worth evaluating for its value: one ``return`` and nothing else."""
    if isinstance(info.node, cst.Lambda):
        return True
    statements: list[cst.CSTNode] = []
    for line in info.node.body.body:
        statements += line.body if isinstance(line, cst.SimpleStatementLine) else [line]
    if statements and isinstance(statements[0], cst.Expr) and literal(statements[0].value) is not None:
        statements = statements[1:]
    return len(statements) == 1 and isinstance(statements[0], cst.Return)


def is_transparent(name: str) -> bool:
    """Return whether a decorator leaves what a function does alone."""
    endpoint = name.startswith("mup.") and name.endswith(".EP")
    return name in TRANSPARENT or endpoint or name.endswith(".setter")


def _packed(content: tuple[tuple[Value, Value], ...] | Value) -> Value:
    return content if isinstance(content, Value) else TupleValue(tuple(TupleValue(p) for p in content))


def _unpacked(value: Value) -> tuple[tuple[Value, Value], ...] | Value:
    if not isinstance(value, TupleValue):
        return value
    return tuple((row.values[0], row.values[1]) for row in value.values if isinstance(row, TupleValue))


def merge_results(results: Results) -> Results:
    """Return one result per sequence of operations."""
    if len(results) < 2:
        return results
    groups: dict[tuple[Operation, ...], Results] = {}
    for pair in results:
        groups.setdefault(pair[0].operations, []).append(pair)
    if len(groups) > MAX_PATHS:
        raise TooManyPathsError
    return [(merge([s for s, _ in group])[0], join(v for _, v in group)) for group in groups.values()]
