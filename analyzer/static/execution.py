"""Which operations can an endpoint execute, in which orders?

Walks the control flow of ``analyzer.static.control`` in every state at once. After each statement, states
that have done the same operations are merged; what is left at the end are the paths.

Inside ``try`` a remote operation may fail, and local work may raise: each such point continues in the
handlers that can catch it. Outside of ``try`` a failure simply ends the request and is not a path of its
own.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.application import Path
from analyzer.static.arguments import Arguments
from analyzer.static.catalogue import Catalogue
from analyzer.static.concurrency import Concurrency
from analyzer.static.control import (
    Arm,
    Block,
    Branch,
    Define,
    Exit,
    Handler,
    Loop,
    Managed,
    Node,
    Protected,
    Run,
    Step,
    Unsupported,
    With,
    lower,
)
from analyzer.static.diagnostics import Diagnostic, Diagnostics
from analyzer.static.evaluation import (
    MAX_PATHS,
    MAX_STEPS,
    Points,
    Role,
    TooLongError,
    TooManyPathsError,
    is_transparent,
)
from analyzer.static.factoring import as_trees
from analyzer.static.library import Library
from analyzer.static.names import (
    Assigned,
    ClassInfo,
    FunctionInfo,
    Names,
    assigned_names,
    mup_name,
    target_names,
)
from analyzer.static.state import Failure, Flow, State, merge, merge_flows
from analyzer.static.values import (
    COMM,
    LOST,
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    External,
    Generator,
    Instance,
    Leaving,
    ObjectRef,
    SharedObject,
    TupleValue,
    Value,
    alternatives,
    binary,
    mapped,
)
from analyzer.static.variables import Context
from analyzer.static.walking import names_in

__all__ = ["Execution"]

SHORT_SEQUENCE = 32
"""Loops of at most so many iterations, nested ones together, are always unrolled, others if they
communicate."""

MAX_ENUMERATED = 64
"""Endpoints with more paths than this, those of iterations included, are described with choices."""

MAX_LISTING_STEPS = 20_000
"""Listing paths is given up after so many steps, for factoring follows the same code in a few of them."""

MAX_SIZE = 10_000
"""Paths and bodies of loops and choices an endpoint may have in all."""

CATCH_ALL = {"Exception", "BaseException"}

ANCESTORS = {
    "MupError": (),
    "CommunicationError": ("MupError",),
    "CallError": ("CommunicationError", "MupError"),
    "CallTimeoutError": ("CommunicationError", "MupError"),
    "BrokenCallError": ("CommunicationError", "MupError"),
    "NoReplicaError": ("CommunicationError", "MupError"),
    "UnknownServiceError": ("NoReplicaError", "CommunicationError", "MupError"),
    "QueryError": ("CommunicationError", "MupError"),
    "UnknownDatabaseError": ("QueryError", "CommunicationError", "MupError"),
    "DatabaseDownError": ("QueryError", "CommunicationError", "MupError"),
    "QueryTimeoutError": ("QueryError", "CommunicationError", "MupError"),
}
"""The framework's exceptions, as in mup.errors."""

RAISES: dict[Failure, tuple[str, ...]] = {
    "call": ("NoReplicaError", "UnknownServiceError", "CallTimeoutError"),
    "get of call": (
        "CallError",
        "CallTimeoutError",
        "BrokenCallError",
        "NoReplicaError",
        "UnknownServiceError",
    ),
    "query": ("QueryError", "UnknownDatabaseError"),
    "get of query": (
        "QueryError",
        "UnknownDatabaseError",
        "DatabaseDownError",
        "QueryTimeoutError",
        "CallTimeoutError",
    ),
}
"""What a failing operation may raise."""

ASYNCIO: dict[Failure | Value, set[str]] = {
    "timeout": {"TimeoutError", "OSError", "Exception", "BaseException"},
    "cancelled": {"CancelledError", "BaseException"},
    "group": {"ExceptionGroup", "BaseExceptionGroup", "Exception", "BaseException"},
}
"""What certainly catches what asyncio raises."""


class Execution(Concurrency, Library):
    """Symbolic execution of one endpoint or scenario at a time."""

    def __init__(self, names: Names, catalogue: Catalogue, diagnostics: Diagnostics) -> None:
        super().__init__(names, catalogue, diagnostics)
        self._lowered: dict[cst.CSTNode, Block] = {}

    def paths(self, function: FunctionInfo, receiver: ClassInfo, role: Role) -> tuple[Path, ...]:
        """Return the paths of a method.

        Args:
            function: The method.
            receiver: The class of the object it runs on.
            role: What its ``Communication`` can do.
        """
        self.role = role
        reporting = self.diagnostics
        # What a constant has to report is reported when it is evaluated first: in every attempt anew.
        constants = self._constants
        listed = self._attempt(
            function, receiver, dict(constants), limit=MAX_ENUMERATED, steps=MAX_LISTING_STEPS
        )
        found = listed
        if listed.exploded:
            found = self._attempt(function, receiver, dict(constants), factoring=True, limit=MAX_PATHS)
            if not found.exploded and found.errors - listed.errors:
                # Choices accept more than can happen, which may be what is wrong with them.
                other = self._attempt(function, receiver, constants, limit=MAX_PATHS)
                found = other if not other.exploded and len(other.errors) < len(found.errors) else found
        self.factoring, self.limit, self.most_steps = False, MAX_PATHS, MAX_STEPS
        self.diagnostics = reporting
        self.diagnostics.extend(found.diagnostics)
        return found.paths

    def _attempt(
        self,
        function: FunctionInfo,
        receiver: ClassInfo,
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
            constants: Constants that are known already; what is found out about others is added.
            factoring: Fold ways that nothing can tell apart later instead of enumerating them.
            limit: How many ways there may be at once.
            steps: How many steps it may take.
        """
        self.factoring, self.limit, self.most_steps = factoring, limit, steps
        self.diagnostics = Diagnostics()
        self._constants = constants
        self.forget_tasks()
        self.contexts = [Context(function.module, function)]
        self.raised = []
        self.steps, self.width = 0, 1
        self._tries = []
        self._check_decorators(function)
        try:
            flows = self._run_endpoint(function, receiver)
            found = _paths([*flows, *self.raised])
            if factoring and _size(found) > MAX_PATHS:
                found = as_trees(found)
            if _size(found) > (MAX_SIZE if factoring else limit):
                raise TooManyPathsError
            return _Attempt(found, self.diagnostics)
        except TooManyPathsError as error:
            # It may have come from deep inside a helper of another file.
            self.contexts = [Context(function.module, function)]
            self.report(
                "MUP034",
                f"{function.qualname!r} {error}"
                if isinstance(error, TooLongError)
                else f"{function.qualname!r} has more than {MAX_PATHS} paths, its independent branches aside",
                self._name_of(function),
                "wait for a call in the branch that makes it, or split the function",
            )
            return _Attempt(_paths(self.raised), self.diagnostics, exploded=True)
        except RecursionError:
            self.contexts = [Context(function.module, function)]
            self.report(
                "MUP030",
                f"{function.qualname!r} is nested too deeply to be analysed",
                self._name_of(function),
                "split its longest expression",
            )
            return _Attempt(_paths(self.raised), self.diagnostics)

    def _run_endpoint(self, function: FunctionInfo, receiver: ClassInfo) -> list[Flow]:
        wrapped = self.decorated(function)
        if wrapped is None:
            return self.run_body(function, State((self.communication_of(function, receiver),)))
        self.contexts = [Context(function.module)]
        given = Arguments.of(Instance(receiver), COMM)
        results = wrapped.call(given, self._name_of(function), State(({},)), self)
        return [Flow(state, "return", value) for state, value in results]

    def _name_of(self, function: FunctionInfo) -> cst.CSTNode:
        return function.node.name if isinstance(function.node, cst.FunctionDef) else function.node

    def _check_decorators(self, function: FunctionInfo) -> None:
        if self.decorated(function) is not None:
            return
        for name in self.decorators(function):
            if not is_transparent(name):
                self.report(
                    "MUP030",
                    f"the decorator {name!r} may change what {function.qualname!r} does",
                    self._name_of(function),
                    "call a helper function instead",
                )

    # What expressions need.

    def run_body(self, function: FunctionInfo, state: State) -> list[Flow]:
        """Run the body of a function whose frame and context are in place."""
        assert isinstance(function.node, cst.FunctionDef)  # noqa: S101  (lambdas are expressions)
        block = self._lowered.get(function.node)
        if block is None:
            block = self._lowered[function.node] = lower(function.node.body)
        if not self.factoring:
            return self._block(block, [state])
        with self.liveness.during(len(self.contexts) - 1, self.liveness.nested(function.node)):
            return self._block(block, [state])

    @property
    def is_protected(self) -> bool:
        """Whether the code being walked is inside a ``try``."""
        return bool(self._tries)

    def may_fail(self, state: State, kind: Failure) -> None:
        """Note that an exception can occur here."""
        if self._tries:
            self._tries[-1].add(kind, state)

    @contextmanager
    def watched(self) -> Iterator[Points]:
        """Collect where exceptions can occur in a piece of code instead of noting them."""
        points = Points()
        if not self._tries:
            # Outside of every `try` a failure ends the request: nobody wants to know.
            yield points
            return
        with self.collected() as points:
            yield points

    @contextmanager
    def collected(self) -> Iterator[Points]:
        """Collect where exceptions can occur in a piece of code, in a ``try`` or not."""
        points = Points()
        self._tries.append(points)
        try:
            yield points
        finally:
            self._tries.pop()

    def run_block(self, block: Block, states: list[State]) -> list[Flow]:
        """Run statements from states."""
        return self._block(block, states)

    # Statements.

    def _block(self, block: Block, states: list[State]) -> list[Flow]:
        done: list[Flow] = []
        roots = states
        behind = self.liveness.behind(block) if self.factoring else [frozenset[str]()] * (len(block) + 1)
        for number, node in enumerate(block):
            self.spend(len(states))
            following: list[State] = []
            for state in states:
                outer, self.raised = self.raised, []
                for flow in [*self._walked(node, state, behind[number + 1]), *self.raised]:
                    if flow.kind == "next":
                        following.append(flow.state)
                    else:
                        done.append(flow)
                self.raised = outer
            states = merge(following)
            done = merge_flows(done)
            if self.factoring and len(states) > 1:
                with self.liveness.during(len(self.contexts) - 1, behind[number + 1]):
                    states = self._folded_block(states, roots, node)
            if len(states) + len(done) > self.limit:
                raise TooManyPathsError
            if not states:
                break
        return [*done, *(Flow(s) for s in states)]

    def _walked(self, node: Node, state: State, behind: frozenset[str]) -> list[Flow]:
        """Walk a node, knowing what is read in it and behind it."""
        if not self.factoring:
            return self._node(node, state)
        with self.liveness.during(len(self.contexts) - 1, behind | self.liveness.own(node)):
            return self._node(node, state)

    def _folded_block(self, states: list[State], roots: list[State], node: Node) -> list[State]:
        """Fold the states behind a node of a block that was entered in the same state."""
        entered = {root.operations for root in roots}
        lengths = sorted({len(root) for root in entered}, reverse=True)
        families: dict[int, list[State]] = {}
        for state in states:
            done = state.operations
            base = next((n for n in lengths if done[:n] in entered), 0)
            families.setdefault(base, []).append(state)
        return merge(
            state
            for base, family in families.items()
            for state in self._folded_states(family, base, node.node)
        )

    def _folded_states(self, states: Iterable[State], base: int, node: cst.CSTNode) -> list[State]:
        return merge(flow.state for flow in self.folded([Flow(s) for s in states], base, node))

    def _node(self, node: Node, state: State) -> list[Flow]:
        if isinstance(node, Step):
            return [Flow(s) for s in self._step(node, state)]
        if isinstance(node, Branch):
            return self._branch(node, state)
        if isinstance(node, Loop):
            return self._loop(node, state)
        if isinstance(node, Protected):
            return self._protected(node, state)
        if isinstance(node, Managed):
            return self.managed(node, state)
        if isinstance(node, With):
            return self._with_block(node, state)
        if isinstance(node, Exit):
            return self._exit(node, state)
        if isinstance(node, Run):
            return node.action(state)
        if isinstance(node, Define):
            return [Flow(self._define(node, state))]
        return self._unsupported(node, state)

    def _step(self, node: Step, state: State) -> Iterator[State]:
        line = self.module.line(node.node)
        self.may_fail(state, "local")
        if node.value is None:
            for target in node.targets:
                state = self.delete(target, state)
            yield state.at_local_work(line)
            return
        for evaluated, result in self.evaluate(node.value, state):
            after, value = evaluated, result
            if isinstance(node.node, cst.Assert) and node.node.msg is not None:
                self._check_message(node.node.msg, evaluated)
            if isinstance(node.node, cst.Assert) or not all(isinstance(t, cst.Name) for t in node.targets):
                self.may_fail_behind(state, evaluated)
            for target in node.targets:
                if node.augmented:
                    after, value = self._augment(node, target, value, after)
                else:
                    after = self.assign(target, value, after, node.node)
            # A statement without operations is local work of its own; one with operations is what they are.
            yield after if after.operations != state.operations else after.at_local_work(line)

    def _check_message(self, message: cst.BaseExpression, state: State) -> None:
        """Report a message of an assertion that communicates; it is only made when the assertion fails."""
        outer, self.raised = self.raised, []
        with self.collected():
            results = self.evaluate(message, state)
        self.raised = outer
        if any(after.operations != state.operations for after, _ in results):
            self.report(
                "MUP030",
                "the message of an assertion communicates: not analysed yet",
                message,
                "raise AssertionError(...) in an `if`",
            )

    def _augment(
        self, node: Step, target: cst.BaseExpression, value: Value, state: State
    ) -> tuple[State, Value]:
        for after, old in self.evaluate(target, state)[:1]:
            state = after
            self.operated([old], node.node, state)
            changed = old.extended(node.augmented, value, state, self)
            if changed is not None:
                return changed, value
            combined = binary(node.augmented, old, value)
            if combined == UNKNOWN:
                combined = state.content_of([old, value])
            return self.assign(target, combined, state, node.node), value
        return state, value

    def _define(self, node: Define, state: State) -> State:
        definition = node.node
        if isinstance(definition, cst.FunctionDef):
            name = definition.name.value
            made: Value = self.closure(definition, f"{self._qualname()}{name}", state)
            if definition.decorators:
                made = self._decorated_closure(definition, made, state)
            return self.bind(name, made, state)
        if isinstance(definition, cst.ClassDef):
            for used in sorted(_communicating(definition, state)):
                self.report(
                    "MUP041",
                    f"the local class {definition.name.value!r} uses {used!r}, which communicates",
                    definition.name,
                    "use a function instead",
                )
            return state.bind(definition.name.value, UNKNOWN)
        for name, value in self.names.imported(self.module, definition):
            known = self._global(*value) if isinstance(value, tuple) else value
            state = self.bind(name, known, state)
        return state

    def _decorated_closure(self, definition: cst.FunctionDef, made: Value, state: State) -> Value:
        """Return a nested function with its decorators; those that wrap it are not followed."""
        assert isinstance(made, Closure)  # noqa: S101  (what the caller has made)
        own = [name for name in self.decorators(made.info) if not is_transparent(name)]
        if not own:
            return made
        if self.captures(made, state):
            self.report(
                "MUP030",
                f"the decorator {own[0]!r} may change what {made.info.qualname!r} communicates",
                definition.name,
                "call an undecorated function",
            )
        return UNKNOWN

    def _unsupported(self, node: Unsupported, state: State) -> list[Flow]:
        self.report("MUP030", f"{node.what} is not analysed yet", node.node)
        return [Flow(state)]

    def _exit(self, node: Exit, state: State) -> list[Flow]:
        if node.kind in ("break", "continue"):
            return [Flow(state, node.kind)]
        line = self.module.line(node.node)
        if node.kind == "raise":
            if node.value is None:
                return [Flow(state, "raise", state.frames[-1].get(HANDLED, UNKNOWN), line)]
            return [Flow(s, "raise", _exception(v), line) for s, v in self._raised_value(node.value, state)]
        if node.value is None:
            return [Flow(state, "return", NONE)]
        self.may_fail(state, "local")
        return [Flow(s, "return", value) for s, value in self.evaluate(node.value, state)]

    def _raised_value(self, value: cst.BaseExpression, state: State) -> list[tuple[State, Value]]:
        """Evaluate ``raise X(...)`` without losing what X is."""
        if not isinstance(value, cst.Call):
            return self.evaluate(value, state)
        kinds = self.evaluate(value.func, state)
        if not all(isinstance(kind, External | ClassValue) for _, kind in kinds):
            return self.evaluate(value, state)
        arguments = [a.value for a in value.args]
        results = []
        for before, kind in kinds:
            for after, values in self.evaluate_all(arguments, before):
                self.release(values, after, value, "an exception")
                results.append((after, kind))
        return results

    # Branches.

    def _branch(self, node: Branch, state: State) -> list[Flow]:
        line = self.module.line(node.node)
        states = [state]
        if node.subject is not None:
            states = [s.bind(SUBJECT, v) for s, v in self.evaluate(node.subject, state)]
        self.may_fail(state, "local")
        flows: list[Flow] = []
        for arm in node.arms:
            entered, states = self._arm(arm, states, line)
            if entered:
                flows += self._block(arm.body, merge(entered))
            states = merge(states)
        flows += [Flow(s) for s in states]
        if node.subject is not None:
            flows = [replace(flow, state=flow.state.unbind(SUBJECT)) for flow in flows]
        return flows

    def _arm(self, arm: Arm, states: list[State], line: int) -> tuple[list[State], list[State]]:
        """Return the states that enter an arm and those that go on to the next."""
        entered: list[State] = []
        passed: list[State] = []
        for state in states:
            matching, missed = self._matching(arm, state)
            passed += [s.at_local_work(line) for s in missed]
            for start in matching:
                if arm.test is None:
                    entered.append(start)
                    continue
                for after, holds in self.test(arm.test, start):
                    if after.operations == start.operations:
                        after = after.at_local_work(line)  # noqa: PLW2901
                    (entered if holds else passed).append(after)
        return entered, passed

    def _matching(self, arm: Arm, state: State) -> tuple[list[State], list[State]]:
        """Return the state if the subject may match the arm's pattern, and if it may not."""
        if arm.pattern is None:
            return [state], ([state] if arm.test is None and not arm.certain else [])
        match = self.match(arm.pattern, state.frames[-1].get(SUBJECT, UNKNOWN), state)
        missed = [] if match.holds is True else [state]
        if match.holds is False:
            return [], missed
        for name, value in match.captured.items():
            state = self.bind(name, value, state)
        return [state], missed

    # Loops.

    def _loop(self, node: Loop, state: State) -> list[Flow]:
        if node.iterable is None:
            counted = self._counted(node, state)
            return self._unbounded(node, state, UNKNOWN) if counted is None else counted
        flows: list[Flow] = []
        self.may_fail(state, "local")
        for before, iterable in self.iterables(node.iterable, state):
            self.may_fail_behind(state, before)
            for one in alternatives(iterable):
                if isinstance(one, Generator):
                    flows += self._over_generator(node, before, one)
                    continue
                items = self.items(one, before)
                if items is None:
                    flows += self._unbounded(node, before, one)
                    continue
                if self.width * len(items) <= SHORT_SEQUENCE:
                    found = self._unrolled(node, before, items)
                else:
                    found = self._long(node, before, one, items)
                if any(self.items(one, flow.state) != items for flow in found):
                    # What is changed while somebody goes through it yields nobody knows what.
                    found = self._unbounded(node, before, one)
                flows += found
        return flows

    def _counted(self, node: Loop, state: State) -> list[Flow] | None:
        """Unroll a ``while`` whose every test has a known answer; None if there is one that has not."""
        assert node.test is not None  # noqa: S101  (only `while` has no iterable)
        if _constant(node.test).truth({}) is not None:
            return None
        saved = self.diagnostics, self._tries, self.raised
        self.diagnostics, self.raised = Diagnostics(), []
        self._tries = [Points({k: list(v) for k, v in p.states.items()}) for p in self._tries]
        flows = None
        try:
            flows = self._tested(node, node.test, state)
        except TooManyPathsError:
            pass
        finally:
            trial = self.diagnostics, self._tries, self.raised
            self.diagnostics, self._tries, self.raised = saved
        if flows is not None:
            self.diagnostics.extend(trial[0])
            for points, seen in zip(self._tries, trial[1], strict=True):
                points.states.update(seen.states)
            self.raised += trial[2]
        return flows

    def _tested(self, node: Loop, test: cst.BaseExpression, state: State) -> list[Flow] | None:
        states, finished, done = [state], list[State](), list[Flow]()
        for _ in range(SHORT_SEQUENCE + 1):
            inside: list[State] = []
            for before in states:
                answers = self.test(test, before)
                if len({holds for _, holds in answers}) > 1:
                    return None
                for after, holds in answers:
                    (inside if holds else finished).append(after)
            if not inside:
                rest = self._block(node.orelse, merge(finished)) if finished else []
                line = self.module.line(node.node)
                return [_marked(f, state, line) for f in merge_flows([*done, *rest])]
            following: list[State] = []
            for flow in self._block(node.body, merge(inside)):
                if flow.kind in ("next", "continue"):
                    following.append(flow.state)
                else:
                    done.append(replace(flow, kind="next") if flow.kind == "break" else flow)
            states = merge(following)
        return None

    def _over_generator(self, node: Loop, state: State, generator: Generator) -> list[Flow]:
        """Walk a loop that takes the items of a generator."""

        def each(inner: State, item: Value) -> list[Flow]:
            assert node.target is not None  # noqa: S101  (only `for` has an iterable)
            return self._block(node.body, [self.assign(node.target, item, inner, node.node)])

        done: list[Flow] = []
        finished: list[State] = []
        for flow in self.consume(generator, state, node.node, each):
            if flow.kind == "next":
                finished.append(flow.state)
            else:
                done.append(replace(flow, kind="next") if flow.kind == "break" else flow)
        rest = self._block(node.orelse, merge(finished)) if finished else []
        line = self.module.line(node.node)
        return [_marked(f, state, line) for f in merge_flows([*done, *rest])]

    def _long(self, node: Loop, state: State, iterable: Value, items: tuple[Value, ...]) -> list[Flow]:
        """Unroll a long loop only if it has to be: if iterations that others follow communicate."""
        if not self.unrolls(items):
            return self._unbounded(node, state, iterable)
        loops, saved = self.loops, (self.diagnostics, self._tries)
        self.diagnostics = Diagnostics()
        self._tries = [Points({k: list(v) for k, v in p.states.items()}) for p in self._tries]
        try:
            flows = self._unbounded(node, state, iterable)
        finally:
            trial = self.diagnostics, self._tries
            self.diagnostics, self._tries = saved
        if self.loops == loops and not any(d.code in ("MUP031", "MUP040") for d in trial[0].all()):
            self._tries = trial[1]
            self.diagnostics.extend(trial[0])
            return flows
        return self._unrolled(node, state, items)

    def _unrolled(self, node: Loop, state: State, items: tuple[Value, ...]) -> list[Flow]:
        assert node.target is not None  # noqa: S101  (only `for` has items)
        states, done, left = [state], [], []
        outer, self.width = self.width, self.width * max(len(items), 1)
        for item in items:
            following = []
            states = [self.assign(node.target, item, s, node.node) for s in states]
            for flow in self._block(node.body, states) if states else ():
                if flow.kind in ("next", "continue"):
                    following.append(flow.state)
                elif flow.kind == "break":
                    left.append(Flow(flow.state))
                else:
                    done.append(flow)
            states = self._folded_states(merge(following), len(state.operations), node.node)
            if len(states) + len(done) + len(left) > self.limit:
                raise TooManyPathsError
        self.width = outer
        rest = self._block(node.orelse, states) if states else []
        flows = merge_flows([*done, *left, *rest])
        line = self.module.line(node.node)
        return [_marked(f, state, line) for f in flows]

    def _unbounded(self, node: Loop, state: State, iterable: Value) -> list[Flow]:
        """Walk one iteration, knowing nothing that an earlier one may have changed."""
        line = self.module.line(node.node)
        before = state
        names = assigned_names(getattr(node.node, "body", node.node))
        if node.target is not None:
            names |= target_names(node.target)
        for name in sorted(names & set(before.frames[-1])):
            # An answer that is already there is nothing special.
            value = mapped(before.frames[-1][name], lambda f: UNKNOWN if f.index in state.joined else LOST)
            before = before.bind(name, LOST if before.holds_tracked(value) else UNKNOWN)
        last: list[State] = []

        def iteration(start: State) -> list[Flow]:
            inside, last[:] = self._next(node, start, iterable)
            return self._block(node.body, merge(inside)) if inside else []

        loop, _, flows = self.repeated(node.node, before, iteration)
        endless = node.test is not None and _constant(node.test).truth({}) is True
        asks = any(s.operations != before.operations for s in last)
        around = [f for f in flows if f.kind in ("next", "continue")]
        finished = [loop.leave(Flow(_adopted(s, around) if asks else s)).state for s in last]
        done: list[Flow] = []
        for flow in flows:
            if flow.kind == "break":
                done.append(replace(loop.leave(flow), kind="next"))
            elif flow not in around:
                done.append(loop.leave(flow))
            elif not endless and not asks:
                finished.append(loop.end(flow).state)
        rest = self._block(node.orelse, merge(finished)) if finished else []
        return [_marked(f, state, line) for f in merge_flows([*done, *rest])]

    def _next(self, node: Loop, start: State, iterable: Value) -> tuple[list[State], list[State]]:
        """Return the states in which another iteration begins, and those in which none does."""
        if node.target is not None:
            item = LOST if start.holds_tracked(iterable) else UNKNOWN
            return [self.assign(node.target, item, start, node.node)], [start]
        assert node.test is not None  # noqa: S101  (a loop has a target or a test)
        answers = self.test(node.test, start)
        return [s for s, holds in answers if holds], [s for s, holds in answers if not holds]

    # Exceptions.

    def _protected(self, node: Protected, state: State) -> list[Flow]:
        depth = len(state.frames)
        points = Points()
        self._tries.append(points)
        flows = self._block(node.body, [state])
        self._tries.pop()
        done: list[Flow] = []
        passed: list[State] = []
        entered: dict[int, list[State]] = {}
        for flow in flows:
            if flow.kind == "next":
                passed.append(flow.state)
            elif flow.kind != "raise" or self._catch(node.handlers, flow.value, flow.state, entered):
                done.append(flow)
        escaped: list[tuple[Failure, State]] = []
        for kind, place in points.merged(depth):
            if self._catch(node.handlers, kind, place, entered):
                escaped.append((kind, place))
        # What goes wrong from here on passes ``finally``, but none of the handlers.
        later = Points()
        if node.final:
            self._tries.append(later)
        for index, handler in enumerate(node.handlers):
            states = entered.get(index, [])
            if states:
                handling = merge(self._handling(handler, s) for s in states)
                handling = self._folded_states(handling, len(state.operations), node.node)
                handled = self._block(handler.body, handling)
                # From here on a bare `raise` means what it meant before.
                around = state.frames[-1].get(HANDLED, UNKNOWN)
                done += [replace(flow, state=flow.state.bind(HANDLED, around)) for flow in handled]
        if passed:
            done += self._block(node.orelse, passed)
        if node.final:
            self._tries.pop()
        escaped += later.merged(depth)
        return self._finally(node, merge_flows(done), escaped)

    def _finally(
        self, node: Protected, flows: list[Flow], escaped: list[tuple[Failure, State]]
    ) -> list[Flow]:
        if not node.final:
            for kind, state in escaped:
                self.may_fail(state, kind)
            return flows
        done: list[Flow] = []
        for flow in flows:
            ends = self._block(node.final, [flow.state])
            done += [replace(flow, state=end.state) if end.kind == "next" else end for end in ends]
        for kind, state in escaped:
            for end in self._block(node.final, [state]):
                if end.kind != "next":
                    done.append(end)
                elif end.state.operations != state.operations:
                    # What `finally` communicates happens even when the exception goes on to end the request.
                    done.append(Flow(end.state, "raise", Const.of(kind), self.module.line(node.node)))
                else:
                    self.may_fail(end.state, kind)
        return merge_flows(done)

    def _handling(self, handler: Handler, state: State) -> State:
        return state.bind(handler.name, UNKNOWN) if handler.name else state

    def _catch(
        self,
        handlers: tuple[Handler, ...],
        raised: Failure | Value,
        state: State,
        entered: dict[int, list[State]],
    ) -> bool:
        """Send a state to the handlers that may catch what was raised; tell whether it may pass them."""
        if isinstance(raised, Leaving):
            return True
        kinds = alternatives(raised) if isinstance(raised, Value) else (Const.of(raised),)
        passed = [self._catch_one(handlers, kind, state.bind(HANDLED, kind), entered) for kind in kinds]
        return any(passed)

    def _catch_one(
        self, handlers: tuple[Handler, ...], kind: Value, state: State, entered: dict[int, list[State]]
    ) -> bool:
        raised: Failure | Value = kind.value if isinstance(kind, Const) else kind
        for index, handler in enumerate(handlers):
            types = [UNKNOWN] if handler.types is None else self._types(handler.types)
            certainty = [True if handler.types is None else self._matches(raised, kind) for kind in types]
            if any(c is not False for c in certainty):
                entered.setdefault(index, []).append(state)
            if any(c is True for c in certainty):
                return False
        return True

    def _types(self, node: cst.BaseExpression) -> list[Value]:
        if isinstance(node, cst.Tuple):
            return [kind for element in node.elements for kind in self._types(element.value)] or [UNKNOWN]
        outer, self.raised = self.raised, []
        results = self.evaluate(node, State(({},)))
        self.raised = outer
        value = results[0][1] if results else UNKNOWN
        return list(value.values) if isinstance(value, TupleValue) else [value]

    def _matches(self, raised: Failure | Value, kind: Value) -> bool | None:
        """Return whether a handler catches something; None = perhaps."""
        name = _class_name(kind)
        if raised in ASYNCIO:
            # `except*` may catch a group by what is in it.
            return True if name in ASYNCIO[raised] else None if not name or raised == "group" else False
        if name in CATCH_ALL:
            return True
        builtin = isinstance(kind, External) and kind.name.startswith("builtins.")
        framework = name in ANCESTORS and bool(mup_name(kind))
        if isinstance(raised, str):
            if raised == "local":
                return False if framework else None
            if framework:
                caught = [r == name or name in ANCESTORS[r] for r in RAISES[raised]]
                return True if all(caught) else None if any(caught) else False
            return False if builtin or isinstance(kind, ClassValue) else None
        if not _class_name(raised):
            return None
        lineage = self._lineage(raised)
        if name in lineage:
            return True
        return False if builtin or isinstance(kind, ClassValue) or framework else None

    def _lineage(self, raised: Value) -> set[str]:
        """Return the names of an exception class and all its bases."""
        found: set[str] = set()
        bases = self.names.mro(raised.info) if isinstance(raised, ClassValue) else (raised,)
        for base in bases:
            name = _class_name(ClassValue(base) if isinstance(base, ClassInfo) else base)
            found.add(name)
            kind = getattr(builtins, name, None)
            if isinstance(kind, type):
                found |= {k.__name__ for k in kind.__mro__}
            found.update(ANCESTORS.get(name, ()))
        return found


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


def _size(paths: Iterable[Path]) -> int:
    return sum(path.size for path in paths)


def _paths(flows: Iterable[Flow]) -> tuple[Path, ...]:
    """Return the paths that a method can end with."""
    flows = merge_flows(f if f.kind == "raise" else Flow(f.state, "return") for f in flows)
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


HANDLED = "<handled>"
"""Local variable that holds what is being handled; no Python name looks like it.

The class of what was raised, or as a constant the kind of operation that has failed.
"""


SUBJECT = "<subject>"
"""Local variable that holds what a ``match`` is about."""


def _class_name(value: Value) -> str:
    if isinstance(value, External):
        return value.name.rsplit(".", 1)[-1]
    return value.info.node.name.value if isinstance(value, ClassValue) else ""


def _exception(value: Value) -> Value:
    if isinstance(value, ObjectRef | SharedObject):
        return ClassValue(value.info)
    return value if isinstance(value, External | ClassValue) else UNKNOWN


def _constant(node: cst.BaseExpression) -> Value:
    if isinstance(node, cst.Name) and node.value == "True":
        return Const.of(value=True)
    if isinstance(node, cst.Integer):
        return Const.of(node.evaluated_value)
    return UNKNOWN


def _marked(flow: Flow, before: State, line: int) -> Flow:
    """Return the flow of a loop that only computed as local work; one that communicated speaks for itself."""
    if flow.kind != "next" or flow.state.operations != before.operations:
        return flow
    return Flow(flow.state.at_local_work(line))


def _adopted(state: State, around: Sequence[Flow]) -> State:
    """Return the state behind the last test of a loop with the names that only its iterations bind."""
    for flow in around:
        for name, value in flow.state.frames[-1].items():
            if name not in state.frames[-1]:
                state = state.bind(name, LOST if flow.state.holds_tracked(value) else UNKNOWN)
    return state


def _communicating(node: cst.CSTNode, state: State) -> set[str]:
    """Return the names in a piece of code that hold communication or futures."""
    frame = state.frames[-1]
    return {name for name in names_in(node) if name in frame and state.holds_tracked(frame[name])}
