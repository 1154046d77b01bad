"""What happens when a generator is consumed: which of its code runs between which statements of the consumer?

A generator is walked when items are taken from it, not when it is made. At every ``yield`` the walk
goes on in the consumer - the body of the loop, or whatever takes the item - and comes back. Meanwhile the
generator's variables wait among those of the consumer, under names no Python variable has. A consumer that
leaves early (``break``, ``return``, an exception) closes the generator: its ``finally`` blocks run, then the
consumer goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import Arm, Block, Branch, Loop, Run, Step, lower
from analyzer.static.evaluation import merge_results
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Failure, Flow, Results, State, merge, merge_flows
from analyzer.static.values import (
    LOST,
    NONE,
    UNKNOWN,
    Closure,
    Const,
    Generator,
    Leaving,
    ListRef,
    ObjectRef,
    TupleValue,
    Value,
    alternatives,
    binary,
    compare,
    of_kind,
)
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Context, Part, Points, Walk, changed
from analyzer.static.walking import nodes_of

__all__ = ["Generators"]

Each = Callable[[State, Value], list[Flow]]

NEW, BEGUN, DONE = Const.of("new"), Const.of("begun"), Const.of("done")
"""What the heap says about a generator."""

PENDING = "<pending>"
"""Variable of a context manager's generator: how its ``with`` block ended."""

OPENING = {"all", "any", "enumerate", "islice", "iter", "list", "set", "sorted", "sum", "tuple"}
"""What takes items of its first argument, one at a time."""
MAPPING = {"builtins.map", "builtins.filter"} | {
    f"itertools.{name}" for name in ("dropwhile", "filterfalse", "takewhile")
}
"""What calls its first argument for each item of the second, as items are taken from it."""
EXHAUSTING = {"list", "tuple", "set", "frozenset", "sorted", "sum", "max", "min", "dict", "deque", "Counter"}


@dataclass(frozen=True, eq=False, slots=True)
class Consumer:
    """Who gets the items of the generator that is being walked.

    Attributes:
        prefix: Put before the names of the generator's variables while they wait.
        depth: Number of frames of the consumer.
        each: Takes an item.
        contexts: Of the consumer.
        tries: Of the consumer.
        manager: Whether the consumer is a ``with`` block, whose exceptions are thrown into the generator.
        pauses: Whether the generator waits where it yields, and is resumed later.
    """

    prefix: str
    depth: int
    each: Each
    contexts: list[Context]
    tries: list[Points]
    manager: bool
    pauses: bool = False


FIRST = "__iterable__"

ITEM = "__item__"

PART = "__part__"

COUNT = "__count__"
"""Variables of a generator that the source does not spell out."""


class Generators(Part):
    """Makes generators and consumes them."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._generator_bodies: dict[FunctionInfo, Block | None] = {}

    def generator_body(self, function: FunctionInfo) -> Block | None:
        """Return the body of a generator function; None for any other function."""
        if function not in self._generator_bodies:
            body: Block | None = None
            if function.definition is not None and cst.Yield in function.module.kinds:
                code = function.definition.body
                body = lower(code) if nodes_of(code, (cst.Yield,), (cst.FunctionDef, cst.Lambda)) else None
            self._generator_bodies[function] = body
        return self._generator_bodies[function]

    def new_generator(
        self, context: Context, body: Block, frame: dict[str, Value], state: State, *, communicates: bool
    ) -> tuple[State, Generator]:
        """Return the state with a generator of which no item has been taken."""
        number = self.walk.allocate()
        made = Generator(context, body, tuple(frame.items()), number, communicates)
        return state.store(number, NEW), made

    def generator_expression(self, node: cst.GeneratorExp, state: State) -> Results:
        """Return the generator: only its first iterable is evaluated now."""
        outer = self.walk.contexts[-1]
        depth = len(state.frames) - 1
        context = Context(outer.module, outer.function, outer.owner, closure=depth, comprehension=True)
        element = Step(node.elt, cst.Yield(node.elt))
        body = (_as_loop(node.for_in, (element,), cst.Name(FIRST)),)
        self.walk.variables.closures = True
        probe = Closure(self._as_function(node), depth)
        results: Results = []
        for after, iterable in self.walk.expressions.evaluate(node.for_in.iter, state):
            reaches = self.walk.calls.communicate([probe, iterable], after)
            for one in alternatives(iterable):
                made = self.new_generator(context, body, {FIRST: one}, after, communicates=reaches)
                results.append(made)
        return results

    def _as_function(self, node: cst.GeneratorExp) -> FunctionInfo:
        """Return what runs later of a generator expression, all but its first iterable, as a function."""
        if node not in self.walk.variables.functions:
            later = node.with_changes(for_in=node.for_in.with_changes(iter=cst.Name("None")))
            lambda_ = cst.Lambda(cst.Parameters(), later)
            self.walk.variables.functions[node] = FunctionInfo(self.walk.module, lambda_, self.walk.qualname)
        return self.walk.variables.functions[node]

    def _looping(
        self,
        action: Callable[[State], list[Flow]],
        frame: dict[str, Value],
        node: cst.CSTNode,
        state: State,
        before: Block = (),
    ) -> tuple[State, Generator]:
        """Return a generator with these variables that does something for each item of ``FIRST``."""
        return self._running((*before, _loop(node, FIRST, Run(node, action))), frame, state)

    def _running(self, body: Block, frame: dict[str, Value], state: State) -> tuple[State, Generator]:
        """Return a generator with this body and these variables, made by a function of a library."""
        context = replace(self.walk.contexts[-1], closure=len(state.frames) - 1)
        reaches = self.walk.calls.communicate(frame.values(), state)
        return self.new_generator(context, body, frame, state, communicates=reaches)

    def _chaining(
        self, sources: Sequence[Value], node: cst.CSTNode, state: State, *, nested: bool
    ) -> tuple[State, Value]:
        """Return what ``itertools.chain`` returns, or (``nested``) its ``from_iterable``: a generator."""

        def action(inner: State) -> list[Flow]:
            return [Flow(after) for after, _ in self.hand_out(inner.frames[-1][ITEM], inner)]

        frame = {f"{FIRST}{number}": one for number, one in enumerate(sources)}
        each = Run(node, action)
        if nested:
            body: Block = tuple(_loop(node, name, _loop(node, PART, each), item=PART) for name in frame)
        else:
            body = tuple(_loop(node, name, each) for name in frame)
        return self._running(body, frame, state)

    def _mapping(
        self, name: str, function: Value, items: Value, node: cst.CSTNode, state: State
    ) -> tuple[State, Value]:
        """Return a generator: what calls a function for each item, and hands out some of them."""

        def action(inner: State) -> list[Flow]:
            item, asks = inner.frames[-1][ITEM], inner.frames[-1][COUNT].truth({})
            flows: list[Flow] = []
            if asks is not True:  # what ``dropwhile`` does once it has handed out something
                flows += [Flow(after) for after, _ in self.hand_out(item, inner)]
            if asks is not False:
                given = Arguments.of(item)
                said = [(inner, item)] if function == NONE else function.call(given, node, inner, self.walk)
                flows += [flow for after, value in said for flow in self._chosen(name, item, value, after)]
            return flows

        frame = {FIRST: items, COUNT: Const.of(True)}
        state, made = self._looping(action, frame, node, state)
        return state, replace(made, reaches=made.reaches or self.walk.calls.communicate([function], state))

    def _chosen(self, name: str, item: Value, value: Value, state: State) -> list[Flow]:
        """Return how an iteration of ``map``, ``filter`` and their like ends, given what the function said.

        Args:
            name: Theirs.
            item: What the function was called with.
            value: What it returned.
            state: Behind that.
        """
        if name == "map":
            return [Flow(after) for after, _ in self.hand_out(value, state)]
        holds = value.truth({})
        if name in ("filterfalse", "dropwhile"):
            holds = None if holds is None else not holds
        flows: list[Flow] = []
        if holds is not False:
            ended = state.bind(COUNT, Const.of(False)) if name == "dropwhile" else state
            flows += [Flow(after) for after, _ in self.hand_out(item, ended)]
        if holds is not True:
            flows.append(Flow(state, "break" if name == "takewhile" else "next"))
        return flows

    def _numbering(self, items: Value, node: cst.CSTNode, state: State) -> tuple[State, Value]:
        """Return what ``enumerate`` returns for a generator: another one."""

        def action(inner: State) -> list[Flow]:
            number, item = inner.frames[-1][COUNT], inner.frames[-1][ITEM]
            following = binary("Add", number, Const.of(1))
            taken = self.hand_out(TupleValue((number, item)), inner)
            return [Flow(after.bind(COUNT, following)) for after, _ in taken]

        return self._looping(action, {FIRST: items, COUNT: Const.of(0)}, node, state)

    def _sliced(self, given: Sequence[Value], node: cst.CSTNode, state: State) -> Results | None:
        """Return what ``itertools.islice`` returns for a generator and a number of items: another one."""
        known, most = given[1].python() if len(given) == 2 else (True, None)
        if known and (not isinstance(most, int) or most < 0):
            return None

        def action(inner: State) -> list[Flow]:
            taken = binary("Add", inner.frames[-1][COUNT], Const.of(1)) if known else UNKNOWN
            ends = compare("Equal", taken, Const.of(most)).truth({}) if known else None
            flows: list[Flow] = []
            for after, _ in self.hand_out(inner.frames[-1][ITEM], inner):
                counted = after.bind(COUNT, taken)
                flows += [Flow(counted, "break")] if ends is not False else []
                flows += [Flow(counted)] if ends is not True else []
            return flows

        def begin(inner: State) -> list[Flow]:
            return [Flow(inner, "return", NONE), *([] if known else [Flow(inner)])]

        first = () if known and most else (Run(node, begin),)
        return [self._looping(action, {FIRST: given[0], COUNT: Const.of(0)}, node, state, first)]

    def consume(
        self, generator: Generator, state: State, node: cst.CSTNode, each: Each, *, manager: bool = False
    ) -> list[Flow]:
        """Take all items of a generator.

        Args:
            generator: Which one.
            state: Where the consumer is.
            node: The consumer, for findings.
            each: Takes an item; ends with "next" or "continue" to get another one.
            manager: Whether this is a ``with`` statement.

        Returns:
            "next" where the generator has come to its end (with what it returns as the value), and whatever
            else ``each`` or the generator may end with.
        """
        status = state.heap[generator.number]
        if status == DONE:
            return [Flow(state)]
        if status != NEW:
            if generator.reaches:
                what = "a generator that communicates is taken up again after it was left"
                self.walk.refuse(what, node, "take all its items in one loop")
            item: Value = LOST if generator.reaches else UNKNOWN
            return self._any_number(node, state, lambda start: each(start, item))
        depth = len(state.frames)
        prefix = f"<generator {generator.number}>"
        consumer = Consumer(prefix, depth, each, list(self.walk.contexts), list(self.walk.tries), manager)
        state = state.store(generator.number, BEGUN).enter(dict(generator.arguments))
        function = generator.context.function
        mentioned = frozenset[str]()
        if self.walk.factoring and function is not None:
            mentioned = self.walk.liveness.nested(function.node)
        with self.walk.within(generator.context):
            with (
                self.walk.catching() as raised,
                changed(self.walk, consumers=[*self.walk.consumers, consumer]),
                self.walk.liveness.during(depth, mentioned),
            ):
                flows = self.walk.statements.block(generator.body, [state])
            ended = merge_flows(self._ended(generator, [*flows, *raised], depth))
        if any(flow.kind == "paused" for flow in ended):
            what = "a context manager that is entered while it goes through another generator"
            self.walk.refuse(what, node, "enter it with a `with` statement")
        return ended

    def _ended(self, generator: Generator, flows: Iterable[Flow], depth: int) -> list[Flow]:
        """Return how the consumer goes on behind the ends of a generator."""
        done: list[Flow] = []
        for flow in flows:
            pending = flow.state.frames[depth].get(PENDING, NONE)
            after, (value,) = self.walk.variables.left([flow.value], flow.state, depth)
            if flow.kind in ("next", "return"):
                after = after.store(generator.number, DONE)
                result = value if flow.kind == "return" else NONE
                done += [
                    Flow(after, p.kind, p.value, p.line)
                    if isinstance(p, Leaving)
                    else Flow(after, value=result)
                    for p in alternatives(pending)
                ]
            elif flow.kind == "left":
                done += self._unwrapped(after, value)
            else:
                done.append(Flow(after, flow.kind, value, flow.line))
        return done

    def _unwrapped(self, state: State, value: Value) -> list[Flow]:
        """Return how a consumer goes on that has closed the generator."""
        flows: list[Flow] = []
        for one in alternatives(value):
            if not isinstance(one, Leaving):
                flows.append(Flow(state, "raise", UNKNOWN))
            elif one.failure and len(state.operations) > one.done:
                # What the generator communicates while it is closed happens even if this ends the request.
                flows.append(Flow(state, "raise", Const.of(one.failure)))
            elif one.failure:
                self.walk.may_fail(state, one.failure)
            else:
                flows.append(Flow(state, one.kind, one.value, one.line))
        return flows

    def _any_number(
        self, node: cst.CSTNode, state: State, iteration: Callable[[State], list[Flow]]
    ) -> list[Flow]:
        """Return how any number of iterations ends, nothing about them being known."""
        loop, _, flows = self.walk.loops.repeated(node, state, iteration)
        done = [loop.end(Flow(state))]
        done += [loop.end(f) if f.kind in ("next", "continue") else loop.leave(f) for f in flows]
        return merge_flows(done)

    def yielded(self, node: cst.Yield, state: State) -> Results:
        """Return what a ``yield`` does: the consumer goes on, and perhaps comes back."""
        inside = self.walk.consumers and len(self.walk.contexts) == self.walk.consumers[-1].depth + 1
        if not inside:
            self.walk.report("MUP030", "a generator is not analysed yet", node, "return a list instead")
        match node.value:
            case None:
                results: Results = [(state, NONE if inside else UNKNOWN)]
            case cst.From(item=item) if inside:
                return self._delegated(item, state)
            case cst.From(item=item) | item:
                results = self.walk.expressions.evaluate(item, state)
        if not inside:
            return results
        if self.walk.consumers[-1].pauses:
            for after, value in results:
                self.walk.resuming.pause(node, value, after)
            return []
        return merge_results([r for after, value in results for r in self.hand_out(value, after)])

    def _delegated(self, node: cst.BaseExpression, state: State) -> Results:
        def each(inner: State, item: Value) -> list[Flow]:
            return [Flow(after) for after, _ in self.hand_out(item, inner)]

        results: Results = []
        for after, iterable in self.walk.expressions.evaluate(node, state):
            for one in alternatives(iterable):
                flows = self.over(one, after, node, each)
                results += [(f.state, f.value) for f in self.walk.going_on(flows)]
        return merge_results(results)

    def over(self, iterable: Value, state: State, node: cst.CSTNode, each: Each) -> list[Flow]:
        """Hand every item of something to ``each``."""
        if isinstance(iterable, Generator):
            return self.consume(iterable, state, node, each)
        items = self.walk.expressions.items(iterable, state)
        if items is None:
            unknown = state.content_of([iterable])
            return self._any_number(node, state, lambda start: each(start, unknown))
        states, done = [state], list[Flow]()
        for item in items:
            flows = [flow for s in states for flow in each(s, item)]
            states = merge(f.state for f in flows if f.kind in ("next", "continue"))
            done += [f for f in flows if f.kind not in ("next", "continue")]
        return merge_flows([*done, *(Flow(s) for s in states)])

    def hand_out(self, value: Value, state: State) -> Results:
        """Give an item to the consumer and return where the generator goes on."""
        consumer = self.walk.consumers[-1]
        depth, prefix = consumer.depth, consumer.prefix
        (value,) = self.walk.variables.without_frames([value], state, depth)
        hidden = {f"{prefix}{name}": one for name, one in state.frames[depth].items()}
        frames = (*state.frames[: depth - 1], {**state.frames[depth - 1], **hidden})
        points = Points()
        with self._at_consumer(consumer, points), self.walk.catching() as raised:
            flows = consumer.each(replace(state, frames=frames), value)
        results: Results = []
        for flow in [*flows, *raised]:
            after = _resumed(flow.state, depth, prefix)
            if flow.kind in ("next", "continue"):
                results.append((after.bind(PENDING, NONE) if consumer.manager else after, NONE))
            elif flow.kind == "paused":
                self.walk.raised.append(Flow(after, "paused", flow.value))
            elif not consumer.manager:
                leaving = Leaving(flow.kind, flow.value, flow.line)
                self.walk.raised.append(Flow(after, "left", leaving))
            elif flow.kind == "raise":
                self.walk.raised.append(Flow(after, "raise", flow.value, flow.line))
            else:
                results.append((after.bind(PENDING, Leaving(flow.kind, flow.value, flow.line)), NONE))
        for kind, place in points.merged(depth):
            self._failed_outside(consumer, kind, _resumed(place, depth, prefix))
        return results

    def _at_consumer(self, consumer: Consumer, points: Points) -> AbstractContextManager[None]:
        """Walk code of the consumer while the generator waits; what may fail there is noted in ``points``."""
        # Outside of every `try`, the generator's included, nothing depends on where something fails.
        tries = [points] if self.walk.tries else []
        others = self.walk.consumers[:-1]
        return changed(self.walk, contexts=list(consumer.contexts), consumers=others, tries=tries)

    def _failed_outside(self, consumer: Consumer, kind: Failure, state: State) -> None:
        """Note that the consumer may fail while the generator waits."""
        if consumer.manager:
            self.walk.may_fail(state, kind)
        elif list(map(id, self.walk.tries)) != list(map(id, consumer.tries)):
            # On the way out this generator is closed, or one that waits between it and the consumer.
            leaving = Leaving("raise", failure=kind, done=len(state.operations))
            self.walk.raised.append(Flow(state, "left", leaving))
        else:
            self.walk.may_fail(state.leave(consumer.depth), kind)

    def as_list(self, generator: Generator, node: cst.CSTNode, state: State) -> Results:
        """Take all items into a new list."""
        made = ListRef(self.walk.allocate())

        def each(inner: State, item: Value) -> list[Flow]:
            return [Flow(made.grown(UNKNOWN, item, inner))]

        flows = self.consume(generator, state.store(made.number, ()), node, each)
        return [(f.state, made) for f in self.walk.going_on(flows)]

    def listed(
        self, values: Sequence[Value], node: cst.CSTNode, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Return values whose items are all taken, with a list in the place of every generator."""
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for value in values:
            results = [
                (after, (*known, one))
                for before, known in results
                for opened, source in self.opened(value, node, before)
                for after, one in (
                    self.as_list(source, node, opened)
                    if isinstance(source, Generator)
                    else [(opened, source)]
                )
            ]
        return results

    def opened(self, value: Value, node: cst.CSTNode, state: State) -> Results:
        """Return what items of a value are taken from: of an object of the source tree what it iterates over.

        Where that cannot be followed, this is reported.
        """
        results: Results = [(state, value)]
        methods = [(one, self._iteration(one)) for one in alternatives(value)]
        if any(method is not None for _, method in methods):
            results = []
            for one, method in methods:
                if method is None:
                    results.append((state, one))
                else:
                    results += self.walk.functions.call_method(method, one, (), node, state)
        for after, one in ((after, one) for after, found in results for one in alternatives(found)):
            match one:
                case ObjectRef(info=info) if one.items(after, self.walk) is None and after.holds_tracked(one):
                    what = f"{info.qualname!r} communicates and iterates over itself"
                    self.walk.refuse(what, node, "make __iter__ a generator")
        return results

    def _iteration(self, value: Value) -> FunctionInfo | None:
        """Return the method of an object of the source tree that iterating over it calls."""
        match value:
            case MadeObject(info=info):
                return self.walk.attributes.method_named(info, ("__iter__", "__aiter__"))
        return None

    def contained(self, value: Value, node: cst.CSTNode, state: State) -> Results | None:
        """Return what ``in`` does with an object that only says what it iterates over; None for others."""
        if self._iteration(value) is None:
            return None
        results: Results = []
        for after, one in self.opened(value, node, state):
            unknown = [(after, UNKNOWN)]
            results += self._until("in", one, (), node, after) if isinstance(one, Generator) else unknown
        return results

    def consuming(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results | None:
        """Return what a function outside the source tree does with generators; None if nothing known."""
        short = name.rsplit(".", 1)[-1]
        given = arguments.positional()
        if name in MAPPING and len(given) == 2 and arguments.plain:
            sources = alternatives(given[1])
            waiting = any(isinstance(one, Generator) and state.holds_tracked(one) for one in sources)
            if waiting or given[0].runs_source():
                return [self._mapping(short, given[0], one, node, state) for one in sources]
            return None
        if short in OPENING and given and arguments.values[0] is given[0] and arguments.plain:
            function = self._iteration(given[0])
            # What an object does that does not communicate, and is no generator, the library's part knows.
            if function is not None and (self.generator_body(function) or state.holds_tracked(given[0])):
                return [
                    result
                    for after, source in self.opened(given[0], node, state)
                    for result in self._of_source(name, arguments, source, node, after)
                ]
        if not of_kind(arguments.values, Generator):
            return None
        match name, given:
            case "builtins.any" | "builtins.all" | "builtins.next", [Generator() as generator, *rest]:
                return self._until(short, generator, rest, node, state)
            case "builtins.enumerate", [items] if not arguments.keywords():
                return [self._numbering(items, node, state)]
            case "itertools.islice", [Generator(), *_] if arguments.plain:
                return self._sliced(given, node, state)
            case "itertools.chain" | "itertools.chain.from_iterable", _ if arguments.plain:
                return [self._chaining(given, node, state, nested=name != "itertools.chain")]
            case "builtins.iter", [items]:
                return [(state, items)]
        if short in EXHAUSTING and name.startswith(("builtins.", "collections.")):
            results: Results = []
            for after, values in self.listed(arguments.values, node, state):
                results += self.walk.library.external(name, Arguments(arguments.nodes, values), node, after)
            return results
        return None

    def _of_source(
        self, name: str, arguments: Arguments, source: Value, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a function does with what its first argument takes items from."""
        if any(self._iteration(one) is not None for one in alternatives(source)):
            return [(state, UNKNOWN)]  # it iterates over itself
        return self.walk.library.external(
            name, Arguments(arguments.nodes, (source, *arguments.values[1:])), node, state
        )

    def _until(
        self, name: str, generator: Generator, default: Sequence[Value], node: cst.CSTNode, state: State
    ) -> Results:
        """Return what ``any``, ``all``, ``next`` or ``in`` does: it stops at the first item that decides."""

        def each(inner: State, item: Value) -> list[Flow]:
            if name == "next":
                return [Flow(inner, "return", item)]
            known = None if name == "in" else item.truth({})
            stops = name != "all"
            flows = [Flow(inner, "return", Const.of(stops))] if known in (None, stops) else []
            return flows + ([Flow(inner)] if known in (None, not stops) else [])

        results: Results = []
        for flow in self.consume(generator, state, node, each):
            if flow.kind == "return":
                results.append((flow.state, flow.value))
            elif flow.kind != "next":
                self.walk.raised.append(flow)
            elif name != "next":
                results.append((flow.state, Const.of(name == "all")))
            elif default:
                results.append((flow.state, default[0]))
            else:
                self.walk.raised.append(Flow(flow.state, "raise", UNKNOWN, self.walk.module.line(node)))
        return merge_results(results)


def _loop(node: cst.CSTNode, iterable: str, body: Run | Loop, *, item: str = ITEM) -> Loop:
    """Return the loop over what a variable of a generator holds."""
    return Loop(node, cst.Name(item), cst.Name(iterable), None, (body,), ())


def _as_loop(clause: cst.CompFor, element: Block, iterable: cst.BaseExpression) -> Loop:
    """Return the loop that a clause of a generator expression stands for."""
    body: Block = element
    if clause.inner_for_in is not None:
        body = (_as_loop(clause.inner_for_in, element, clause.inner_for_in.iter),)
    for condition in reversed(clause.ifs):
        body = (Branch(condition.test, (Arm(condition.test, body),)),)
    return Loop(clause, clause.target, iterable, None, body, ())


def _resumed(state: State, depth: int, prefix: str) -> State:
    """Return the state in which the generator's variables are in a frame of their own again."""
    frame = state.frames[depth - 1]
    own = {name.removeprefix(prefix): value for name, value in frame.items() if name.startswith(prefix)}
    rest = {name: value for name, value in frame.items() if not name.startswith(prefix)}
    return replace(state, frames=(*state.frames[: depth - 1], rest, own))
