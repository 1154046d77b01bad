"""What does calling a function of the source tree do?

Helpers that are handed communication or a future are inlined; others are walked for what they do to objects.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.arguments import PLACEHOLDER, Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.expressions import literal
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo
from analyzer.static.reflection import Mentions, mentions_of
from analyzer.static.state import Flow, Results, State
from analyzer.static.syntax import (
    last_name,
    name_of,
    named_parameters,
    positional_parameters,
    simple_statements,
)
from analyzer.static.values import (
    COMM,
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    Coroutine,
    DictRef,
    EnumMember,
    External,
    Function,
    FunctionValue,
    Instance,
    MapValue,
    Method,
    ObjectRef,
    Partial,
    SharedObject,
    TupleValue,
    Value,
    alternatives,
    join,
    of_kind,
)
from analyzer.static.walk import Context, Part, Walk, changed
from analyzer.static.walking import nodes_of

__all__ = ["Functions"]

MAX_INLINE_DEPTH = 50
"""Helpers that call helpers; real code has a handful, and each level is Python's stack here, too."""

MAX_RECURSION = 32
"""Calls of a function inside of itself that are walked."""

MAX_QUIET_DEPTH = 3
"""Functions that do not communicate are walked this deep for what they do to objects."""

REMEMBERING = {"functools.cache", "functools.lru_cache"}
"""Decorators that return what the function returns, now or before."""

INLINING = 50
"""Steps that inlining a helper counts for."""


class Functions(Part):
    """Calls functions of the source tree."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._quiet = 0
        self._factories: dict[FunctionInfo, bool] = {}
        self._filled: dict[cst.Param, bool] = {}
        self._changed: dict[cst.Param, bool] = {}

    def call_function(
        self,
        callee: Function,
        arguments: Arguments,
        node: cst.CSTNode,
        state: State,
        *,
        follow: bool = False,
        chosen: bool = False,
    ) -> Results:
        """Return what calling a function of the source tree does.

        Args:
            callee: The function.
            arguments: What it is given.
            node: What calls it.
            state: Where.
            follow: Walk it also where it seems to do nothing that matters.
            chosen: It is what ``functools.singledispatch`` has chosen.
        """
        info = callee.info
        if not chosen and self.walk.dispatching.dispatches(callee):
            return self._dispatched(callee, arguments, node, state, follow=follow)
        given = [*arguments.values, *callee.leading]
        nested = isinstance(callee, Closure)
        communicates = self.walk.calls.communicate([callee, *given] if nested else given, state)
        # What sets up a service counts as well: it may give it attributes.
        waits = info.is_async and (communicates or self.walk.shared.sets_up(info, given))
        body = self.walk.generators.generator_body(info)
        follow = (
            follow or communicates or waits or _is_expression(info) or self._is_worth_following(callee, given)
        )
        if not (follow or body is not None or self.walk.attaching.active):
            return self._unfollowed(callee, given, state)
        # What a nested function is has been decided where its definition was run.
        unknown = "" if chosen or nested else self._unknown_decorator(info)
        if unknown and communicates:
            self.walk.decorators.may_change(unknown, info, node)
        elif unknown and unknown not in REMEMBERING and not self.walk.attaching.active:
            # It may swallow what the function raises, or return something else.
            return self._unfollowed(callee, given, state)
        frame, state = self._parameters(callee, arguments, node, state)
        if not self._may_begin(callee, frame, state):
            if communicates:
                what = f"{info.qualname!r} communicates and calls itself"
                self.walk.report(
                    "MUP032", what, node, "write the communication as a loop with a visible bound"
                )
            return self._unfollowed(callee, given, state)
        if body is not None:
            context = Context(info.module, info, closure=callee.depth, captured=callee.captured)
            made = self.walk.generators.new_generator(context, body, frame, state, communicates=communicates)
            return [made]
        if waits:
            return [(state, Coroutine(callee, tuple(frame.items()), node))]
        if info.is_async:
            return self._unfollowed(callee, given, state)
        if communicates:
            return self.inline(callee, frame, node, state)
        return self._followed_quietly(callee, frame, node, state)

    def _unknown_decorator(self, info: FunctionInfo) -> str:
        """Return a decorator of a function that may change what it does; "" if there is none."""
        unknown = [n for n in self.walk.lookups.decorators(info) if not self.walk.decorators.transparent(n)]
        return unknown[0] if unknown and self.walk.decorators.decorated(info) is None else ""

    def _dispatched(
        self, callee: Function, arguments: Arguments, node: cst.CSTNode, state: State, *, follow: bool
    ) -> Results:
        """Return what a function does of which the class of an argument decides what runs."""
        choice = self.walk.dispatching.chosen(callee, arguments)
        if choice is not None:
            results: Results = []
            for one, handed in choice:
                results += self.call_function(one, handed, node, state, follow=follow, chosen=True)
            return merge_results(results)
        given = [*arguments.values, *callee.leading]
        if self.walk.calls.communicate(given, state):
            what = f"it is not known which implementations of {callee.info.qualname!r} there are"
            hint = "register each with '@function.register', at the top level of a module of this source tree"
            self.walk.report("MUP030", what, node, hint)
        return self._unfollowed(callee, given, state)

    def _may_begin(self, callee: Function, frame: Mapping[str, Value], state: State) -> bool:
        """Return whether a function is walked with these variables: it must come to an end.

        One that is being walked already must get a constant that none of its calls around this one has got
        (a depth that is counted), or an object that is older than what each of them has got (the next layer,
        the child of a node), or code that none of them has got (it does something else with each). What a
        decorator has made of one function is not what it has made of another.
        """
        contexts = self.walk.contexts
        around = (callee.depth, callee.captured)
        running = [
            state.frames[depth] if depth < len(state.frames) else {}
            for depth, c in enumerate(contexts)
            if c.function is callee.info and (c.closure, c.captured) == around
        ]
        if len(contexts) > MAX_INLINE_DEPTH or len(running) > MAX_RECURSION:
            return False
        return not running or any(
            all(_is_older(value, other.get(name, UNKNOWN)) for other in running)
            or (
                (_code_of(value) is not None or self.walk.lookups.freeze(value, state).python()[0])
                and all(_differs(value, other.get(name, UNKNOWN)) for other in running)
            )
            for name, value in frame.items()
        )

    def _is_worth_following(self, callee: Function, given: Sequence[Value]) -> bool:
        """Return whether a function that does not communicate is walked for what it does to objects."""
        if self._quiet >= MAX_QUIET_DEPTH:
            return False
        match callee:
            case Closure() | FunctionValue(bound=SharedObject() | EnumMember()):
                return True
            case FunctionValue(bound=ClassValue(info=kind)) if self.walk.enumerations.is_enumeration(kind):
                return True
        if self._only_raises(callee.info) or of_kind(given, ObjectRef):
            return True
        effects = self.walk.variables.effects(callee.info)
        if effects.contents and of_kind(given, MapValue, TupleValue):
            return True  # it may change what was taken for constant
        if callee.info not in self._factories:
            made = (self.walk.names.dotted(callee.info.module, name) for name in effects.called)
            self._factories[callee.info] = any(isinstance(kind, ClassValue) for kind in made)
        return effects.defines or self._factories[callee.info]

    def _only_raises(self, info: FunctionInfo) -> bool:
        """Return whether no call of a function returns, as far as its text tells."""
        node = info.definition
        if node is None or info.is_async:
            return False
        if node.returns is not None:
            kind = self.walk.names.dotted(info.module, node.returns.annotation)
            if isinstance(kind, External) and kind.class_name in ("NoReturn", "Never"):
                return True
        last = simple_statements(node.body.body[-1])[-1] if node.body.body else None
        return type(last) is cst.Raise and not nodes_of(node.body, (cst.Return, cst.Yield))

    def _unfollowed(self, callee: Function, given: Sequence[Value], state: State) -> Results:
        """Return what a function does that is not walked: what it can reach may have changed."""
        reached = given if self.walk.variables.effects(callee.info).contents else ()
        changed = [callee, *reached] if isinstance(callee, Closure) else reached
        return [(self.walk.variables.forget_contents(changed, state), UNKNOWN)]

    def _followed_quietly(
        self, callee: Function, frame: dict[str, Value], node: cst.CSTNode, state: State
    ) -> Results:
        """Walk a function that does not communicate: its exceptions and lines are local work as any other."""
        with self.walk.catching() as raised, changed(self, _quiet=self._quiet + 1):
            results = self.inline(callee, frame, node, state)
        # Without a way on, the exception is what happens; inside `try`, it says what the handler gets.
        if self.walk.tries or not results:
            self.walk.raised += raised
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
        self.walk.spend(INLINING)
        info = callee.info
        depth = len(state.frames)
        line = self.walk.module.line(node)
        context = Context(info.module, info, closure=callee.depth, captured=callee.captured)
        results: Results = []
        with self.walk.within(context), self.walk.variables.ending(depth):
            with self.walk.catching() as raised:
                if type(info.node) is cst.Lambda:
                    found = self.walk.expressions.evaluate(info.node.body, state.enter(frame))
                    flows = [Flow(s, "return", v) for s, v in found]
                else:
                    flows = self.walk.statements.run_body(info, state.enter(frame))
            for flow in [*flows, *raised]:
                after, (value,) = self.walk.variables.left([flow.value], flow.state, depth)
                if flow.kind == "raise":
                    self.walk.raised.append(Flow(after, "raise", value, flow.line or line))
                else:
                    results.append((after, value if flow.kind == "return" else NONE))
        return merge_results(results)

    def _parameters(
        self, callee: Function, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> tuple[dict[str, Value], State]:
        """Bind arguments to parameters; what cannot be matched must not be tracked."""
        info = callee.info
        declared = info.node.params
        parameters = {p.name.value: p for p in named_parameters(declared)}
        names = [p.name.value for p in positional_parameters(declared)]
        # Behind `*` it is not known which parameter gets which; `**` may give any that is left.
        given = [*callee.leading, *arguments.placed()]
        listed, named = arguments.spread("*"), arguments.spread("**")
        frame = dict(zip(names, given, strict=False))
        rest = given[len(names) :]
        extra: dict[str, Value] = {}
        for name, value in arguments.keywords():
            (frame if name in parameters else extra)[name] = value
        match declared.star_arg:
            case cst.Param(name=cst.Name(value=name)):
                frame[name] = UNKNOWN if listed else TupleValue(tuple(rest))
                rest = rest if listed else []
        if declared.star_kwarg is not None:
            pairs = tuple((Const.of(name), value) for name, value in extra.items())
            others: Value = UNKNOWN if named else MapValue(pairs)
            if not named and self._changes(info, declared.star_kwarg):
                number = self.walk.allocate()
                state, others = state.store(number, pairs), DictRef(number)
            frame[declared.star_kwarg.name.value] = others
            extra = extra if named else {}
        self.walk.calls.release(
            [*rest, *extra.values(), *listed, *named], state, node, f"{info.qualname!r} in a way not followed"
        )
        for name, parameter in parameters.items():
            if name not in frame:
                if named or (listed and name in names):
                    frame[name] = UNKNOWN
                elif isinstance(callee, Closure):
                    frame[name] = dict(callee.defaults).get(name, UNKNOWN)
                else:
                    frame[name] = self._default(info, parameter)
            frame[name] = self.walk.annotated.local(info, name, frame[name])
        return frame, state

    def _changes(self, info: FunctionInfo, parameter: cst.Param) -> bool:
        """Return whether a function may change what a parameter holds, or keep it where that may happen."""
        if parameter not in self._changed:
            self._changed[parameter] = _is_changed(info, parameter)
        return self._changed[parameter]

    def _default(self, info: FunctionInfo, parameter: cst.Param) -> Value:
        """Return the default of a parameter; of a list or dict that calls may fill nothing is known."""
        if parameter not in self._filled:
            self._filled[parameter] = _is_filled(info, parameter)
        if parameter.default is None or self._filled[parameter]:
            return UNKNOWN
        # The scratch binding makes the default a constant of the helper's module.
        return self.walk.lookups.constant(info.module, Assigned(parameter.default))

    def served(self, endpoint: Value, receiver: ClassInfo, node: cst.CSTNode) -> Results:
        """Return what serving a request does, if the endpoint is not just a method.

        Args:
            endpoint: What the class has: a function that decorators have made, or one of another place.
            receiver: The class.
            node: The code that says so.
        """
        nodes = [cst.Arg(PLACEHOLDER), cst.Arg(PLACEHOLDER)]
        values: list[Value] = [Instance(receiver), COMM]
        if self.walk.role == "endpoint":
            # What other parameters get comes from the request.
            nodes.append(cst.Arg(PLACEHOLDER, star="**"))
            values.append(UNKNOWN)
        arguments = Arguments(tuple(nodes), tuple(values))
        results = endpoint.call(arguments, node, State(({},)), self.walk)
        return self.finished([(state, one) for state, found in results for one in alternatives(found)], node)

    def finished(self, results: Results, node: cst.CSTNode) -> Results:
        """Return what results become where coroutines among them run."""
        done: Results = []
        for state, value in results:
            match value:
                case Coroutine(function=function, arguments=arguments):
                    done += self.inline(function, dict(arguments), node, state)
                case _:
                    done.append((state, value))
        return done

    def communication_of(self, function: FunctionInfo, receiver: ClassInfo) -> dict[str, Value]:
        """Return the first frame of an endpoint or scenario: ``self`` and its Communication."""
        frame = self.first_frame(function, (Instance(receiver), COMM))
        if self.walk.role == "endpoint":
            # What stands behind comm comes from the request or is the default; its type is checked.
            for parameter in named_parameters(function.node.params)[2:]:
                name = parameter.name.value
                received = self.walk.annotated.received(function, name)
                if parameter.default is not None and received != UNKNOWN:
                    received = join([received, frame[name]])
                frame[name] = received
        return frame

    def first_frame(self, function: FunctionInfo, values: Sequence[Value]) -> dict[str, Value]:
        """Return the frame of a function that the framework calls with these values."""
        declared = function.node.params
        names = [p.name.value for p in positional_parameters(declared)]
        frame = dict(zip(names, values, strict=False))
        for parameter in (*declared.params, *declared.kwonly_params):
            if parameter.name.value not in frame:
                frame[parameter.name.value] = self._default(function, parameter)
        return frame


MUTABLE = {"dict", "list", "set", "deque", "defaultdict", "Counter", "OrderedDict", "SimpleNamespace"}
"""What makes something that can be changed, by the last part of its name."""


def _is_older(value: Value, other: Value) -> bool:
    """Return whether an object was older than another one, or a part of it: no chain of these is endless."""
    match value, other:
        case ObjectRef(number=this), ObjectRef(number=that):
            return this < that
        case SharedObject(), ObjectRef():
            return True
        case SharedObject(), SharedObject(own=own):
            return any(value == part or _is_older(value, part) for _, part in own)
        case SharedObject(), _:
            return any(value == part or _is_older(value, part) for part in other.parts())
    return False


def _code_of(value: Value) -> Hashable:
    """Return what code a callable runs, whatever it is called with; None if it is none."""
    match value:
        case Closure(info=info) | FunctionValue(info=info):
            return info
        case Partial(function=function):
            return _code_of(function)
        case Method(name=name):
            return name
    return None


def _differs(value: Value, other: Value) -> bool:
    """Return whether a constant is another one, or a callable runs other code."""
    code = _code_of(value)
    return value != other if code is None else code != _code_of(other)


def _is_filled(info: FunctionInfo, parameter: cst.Param) -> bool:
    """Return whether a default is a container that a call may leave changed for the next one."""
    match parameter.default:
        case cst.List() | cst.Dict() | cst.Set():
            pass
        case cst.Call(func=function) if last_name(function) in MUTABLE:
            pass
        case _:
            return False
    return _is_changed(info, parameter)


def _is_changed(info: FunctionInfo, parameter: cst.Param) -> bool:
    """Return whether the body of a function may change what a parameter holds, or keep it."""
    nodes = mentions_of(info.node.body)
    mentions = Mentions.of(nodes)
    name = parameter.name.value
    return any(name_of(node) == name and not mentions.only_looks(node) for node in nodes)


def _is_expression(info: FunctionInfo) -> bool:
    """Return whether a function is worth evaluating for its value: one ``return`` and nothing else."""
    if isinstance(info.node, cst.Lambda):
        return True
    match [one for line in info.node.body.body for one in simple_statements(line)]:
        case [cst.Return()]:
            return True
        case [cst.Expr(value=value), cst.Return()]:
            return literal(value) is not None
    return False
