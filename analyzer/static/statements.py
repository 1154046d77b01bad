"""What does a statement do, in every state that can reach it?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import libcst as cst

from analyzer.static.control import (
    Arm,
    Block,
    Branch,
    Define,
    Exit,
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
from analyzer.static.exceptions import HANDLED
from analyzer.static.names import FunctionInfo
from analyzer.static.own_exceptions import CREATING
from analyzer.static.patterns import captures
from analyzer.static.raising import only_waits, raises_nothing
from analyzer.static.state import Failure, Flow, Results, State, merge, merge_flows
from analyzer.static.syntax import applied, name_of
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    External,
    Generator,
    Value,
    alternatives,
    join,
)
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part, TooManyPathsError, Walk
from analyzer.static.walking import names_in

__all__ = ["Statements"]

ASSERTION = External("builtins.AssertionError")

SUBJECT = "<subject>"
"""Local variable that holds what a ``match`` is about."""

NAME = "<subject name>"
"""Local variable that holds the name of the variable that a ``match`` is about, or ""."""


class Statements(Part):
    """Walks blocks of statements."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._lowered: dict[cst.CSTNode, Block] = {}

    def run_body(self, function: FunctionInfo, state: State) -> list[Flow]:
        """Run the body of a function whose frame and context are in place."""
        assert type(function.node) is cst.FunctionDef  # noqa: S101  (lambdas are expressions)
        block = self._lowered.get(function.node)
        if block is None:
            block = self._lowered[function.node] = lower(function.node.body)
        if not self.walk.factoring:
            return self.block(block, [state])
        with self.walk.liveness.during(len(self.walk.contexts) - 1, self.walk.liveness.nested(function.node)):
            return self.block(block, [state])

    def block(self, block: Block, states: list[State]) -> list[Flow]:
        """Walk statements, one after the other, in every state."""
        done: list[Flow] = []
        roots = states
        behind = (
            self.walk.liveness.behind(block) if self.walk.factoring else [frozenset[str]()] * (len(block) + 1)
        )
        for number, node in enumerate(block):
            self.walk.spend(len(states))
            following: list[State] = []
            for state in states:
                with self.walk.catching() as raised:
                    flows = self._walked(node, state, behind[number + 1])
                for flow in [*flows, *raised]:
                    if flow.kind == "next":
                        following.append(flow.state)
                    else:
                        done.append(flow)
            states = merge(following)
            done = merge_flows(done)
            if self.walk.factoring and len(states) > 1:
                with self.walk.liveness.during(len(self.walk.contexts) - 1, behind[number + 1]):
                    states = self._folded_block(states, roots, node)
            if len(states) + len(done) > self.walk.limit:
                raise TooManyPathsError
            if not states:
                break
        return [*done, *(Flow(s) for s in states)]

    def _walked(self, node: Node, state: State, behind: frozenset[str]) -> list[Flow]:
        """Walk a node, knowing what is read in it and behind it."""
        if not self.walk.factoring:
            return self._node(node, state)
        with self.walk.liveness.during(len(self.walk.contexts) - 1, behind | self.walk.liveness.own(node)):
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
            for state in self.folded_states(family, base, node.node)
        )

    def folded_states(self, states: Iterable[State], base: int, node: cst.CSTNode) -> list[State]:
        """Return states that came from one place with those folded that nothing can tell apart later."""
        return merge(flow.state for flow in self.walk.folded([Flow(s) for s in states], base, node))

    def _node(self, node: Node, state: State) -> list[Flow]:
        return self._nodes[type(node)](node, state)

    @cached_property
    def _nodes(self) -> dict[type, Callable[[Any, State], list[Flow]]]:
        """What walks which node of the control flow."""
        walk = self.walk
        return {
            Branch: self._branch,
            Define: lambda node, state: [Flow(self._define(node, state))],
            Exit: self._exit,
            Loop: walk.loops.loop,
            Managed: walk.waiting.managed,
            Protected: walk.exceptions.protected,
            Run: lambda node, state: node.action(state),
            Step: lambda node, state: [Flow(after) for after in self._step(node, state)],
            Unsupported: self._unsupported,
            With: walk.managers.with_block,
        }

    def _step(self, node: Step, state: State) -> Iterator[State]:
        line = self.walk.module.line(node.node)
        plain = not node.augmented and all(type(t) is cst.Name for t in node.targets)
        quiet = self._raises_nothing(node.value, state)
        failure: Failure = "local"
        if not (quiet and plain):
            failure = self.walk.own_exceptions.failure(state, node.value, *node.targets)
        if not quiet:
            self.walk.may_fail(state, failure)
        if node.value is None:
            for target in node.targets:
                state = self.walk.assignment.delete(target, state)
            yield state.at_local_work(line)
            return
        if type(node.node) is cst.Assert:
            yield from self._assertion(node.node, state, line)
            return
        for evaluated, result in self._assigned(node, node.value, state):
            if not plain:
                self.walk.may_fail(evaluated, failure)
            self.walk.mistakes.dropped(node.node, result, evaluated)
            outcomes: Results = [(evaluated, result)]
            for target in node.targets:
                outcomes = [
                    one for after, value in outcomes for one in self._bound(node, target, value, after)
                ]
            # A statement without operations is local work of its own; one with operations is what they are.
            for after, _ in outcomes:
                yield after if after.operations != state.operations else after.at_local_work(line)

    def _bound(self, node: Step, target: cst.BaseExpression, value: Value, state: State) -> Results:
        """Return what binding a value to one of the targets of a statement does."""
        if node.augmented:
            return self.walk.assignment.augment(node, target, value, state)
        return [(after, value) for after in self.walk.assignment.ways(target, value, state, node.node)]

    def _assigned(self, node: Step, value: cst.BaseExpression, state: State) -> Results:
        """Return what a statement evaluates; a generator that is unpacked or added runs here."""
        results = self.walk.expressions.evaluate(value, state)
        if not node.augmented and not any(isinstance(t, cst.Tuple | cst.List) for t in node.targets):
            return results
        # Which method adds an object, the place it is added to says.
        for before, one in results if node.augmented else ():
            self.walk.overloading.unfollowed_iteration(one, node.node, before)
        whole = [not node.augmented or isinstance(one, Generator) for _, one in results]
        return [
            (after, listed[0] if listed else one)
            for (before, one), taken in zip(results, whole, strict=True)
            for after, listed in self.walk.generators.listed([one] if taken else [], node.node, before)
        ]

    def _assertion(self, node: cst.Assert, state: State, line: int) -> Iterator[State]:
        """Yield the states in which an assertion may hold; one that cannot raises."""
        answers = self.walk.conditions.test(node.test, state)
        may_hold = any(holds for _, holds in answers)
        for after, holds in answers:
            marked = after if after.operations != state.operations else after.at_local_work(line)
            if node.msg is not None:
                self._check_message(node.msg, after)
            self.walk.may_fail_behind(state, after)
            if holds:
                yield marked
            elif not may_hold:
                self.walk.raised.append(Flow(marked, "raise", ASSERTION, line))

    def _check_message(self, message: cst.BaseExpression, state: State) -> None:
        """Report a message of an assertion that communicates; it is only made when the assertion fails."""
        with self.walk.catching(), self.walk.collected():
            results = self.walk.expressions.evaluate(message, state)
        if any(after.operations != state.operations for after, _ in results):
            what, hint = "the message of an assertion communicates", "raise AssertionError(...) in an `if`"
            self.walk.refuse(what, message, hint)

    def _define(self, node: Define, state: State) -> State:
        match node.node:
            case cst.FunctionDef(name=cst.Name(value=name)) as function:
                closure = self.walk.variables.closure(function, f"{self.walk.qualname}{name}", state)
                state, made = self._decorated_closure(function, closure, state)
                return self.walk.variables.bind(name, made, state)
            case cst.ClassDef(name=cst.Name(value=name)) as definition:
                for used in sorted(_communicating(definition, state)):
                    what = f"the local class {name!r} uses {used!r}, which communicates"
                    self.walk.report("MUP041", what, definition.name, "use a function instead")
                local: Value = UNKNOWN
                if self.walk.attaching.active:
                    state, local = self.walk.making.local_class(definition, state)
                return state.bind(name, local)
            case cst.Import() | cst.ImportFrom() as statement:
                for name, value in self.walk.names.imported(self.walk.module, statement):
                    known = self.walk.lookups.global_value(*value) if isinstance(value, tuple) else value
                    state = self.walk.variables.bind(name, known, state)
        return state

    def _decorated_closure(
        self, definition: cst.FunctionDef, made: Closure, state: State
    ) -> tuple[State, Value]:
        """Return what the decorators of a nested function make of it."""
        if not definition.decorators:
            return state, made
        if self.walk.attaching.active:
            return self.walk.decorators.of_nested(made, state)
        known = self.walk.decorators.transparent
        own = [name for name in self.walk.lookups.decorators(made.info) if not known(name)]
        if not own:
            return state, made
        with self.walk.trying() as trial:
            after, wrapped = self.walk.decorators.of_nested(made, state)
            trial.kept = wrapped != UNKNOWN
        if wrapped != UNKNOWN:
            return after, wrapped
        if self.walk.variables.captures(made, state):
            self.walk.decorators.may_change(own[0], made.info, definition.name)
        return state, UNKNOWN

    def _unsupported(self, node: Unsupported, state: State) -> list[Flow]:
        self.walk.report("MUP030", f"{node.what} is not analysed yet", node.node)
        return [Flow(state)]

    def _exit(self, node: Exit, state: State) -> list[Flow]:
        if node.kind in ("break", "continue"):
            return [Flow(state, node.kind)]
        line = self.walk.module.line(node.node)
        if node.kind == "raise":
            if node.value is None:
                return [Flow(state, "raise", state.frames[-1].get(HANDLED, UNKNOWN), line)]
            return [Flow(s, "raise", _exception(v), line) for s, v in self._raised_value(node.value, state)]
        if node.value is None:
            return [Flow(state, "return", NONE)]
        if not self._raises_nothing(node.value, state):
            self.walk.may_fail(state, self.walk.own_exceptions.failure(state, node.value))
        return [Flow(s, "return", value) for s, value in self.walk.expressions.evaluate(node.value, state)]

    def _raises_nothing(self, value: cst.BaseExpression | None, state: State) -> bool:
        """Return whether it needs no look, or evaluating this raises nothing."""
        if not self.walk.tries or value is None:
            return not self.walk.tries
        if self.walk.copies.waiting and only_waits(value, state.frames[-1], self._only_keeps):
            return True
        return raises_nothing(value, state.frames[-1], self.walk.module, self.walk.names)

    def _only_keeps(self, function: cst.BaseExpression) -> bool:
        """Return whether this is a data class that only keeps what its objects are made of."""
        match self.walk.names.dotted(self.walk.module, function):
            case ClassValue(info) if self.walk.making.is_data_class(info):
                return all(self.walk.names.method(info, name) is None for name in CREATING)
        return False

    def _raised_value(self, value: cst.BaseExpression, state: State) -> list[tuple[State, Value]]:
        """Evaluate ``raise X(...)`` without losing what X is."""
        kinds = self.walk.expressions.evaluate(applied(value), state)
        if type(value) is not cst.Call:
            return kinds
        if not all(kind.class_name for _, kind in kinds):
            return self.walk.expressions.evaluate(value, state)
        arguments = [a.value for a in value.args]
        results = []
        for before, kind in kinds:
            for after, values in self.walk.expressions.evaluate_all(arguments, before):
                self.walk.calls.release(values, after, value, "an exception")
                results.append((after, kind))
        return results

    def _branch(self, node: Branch, state: State) -> list[Flow]:
        line = self.walk.module.line(node.node)
        states = [state]
        if node.subject is not None:
            name = Const.of(name_of(node.subject))
            results = self.walk.expressions.evaluate(node.subject, state)
            states = [s.bind(SUBJECT, value).bind(NAME, name) for s, value in results]
        tests = [node.subject, *(arm.test for arm in node.arms)]
        kinds = {
            self.walk.own_exceptions.failure(state, test)
            for test in tests
            if test is not None and not self._raises_nothing(test, state)
        }
        if kinds:
            self.walk.may_fail(state, "local" if "local" in kinds else "builtin")
        flows: list[Flow] = []
        for arm in node.arms:
            entered, states = self._arm(arm, states, line)
            if entered:
                flows += self.block(arm.body, merge(entered))
            states = merge(states)
        flows += [Flow(s) for s in states]
        if node.subject is not None:
            flows = [replace(flow, state=flow.state.unbind(SUBJECT).unbind(NAME)) for flow in flows]
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
                for after, holds in self.walk.conditions.test(arm.test, start):
                    if after.operations == start.operations:
                        after = after.at_local_work(line)  # noqa: PLW2901
                    (entered if holds else passed).append(after)
        return entered, passed

    def _matching(self, arm: Arm, state: State) -> tuple[list[State], list[State]]:
        """Return the state if the subject may match the arm's pattern, and if it may not."""
        if arm.pattern is None:
            return [state], ([state] if arm.test is None and not arm.certain else [])
        subject = state.frames[-1].get(SUBJECT, UNKNOWN)
        answers = [(one, self.walk.patterns.match(arm.pattern, one, state)) for one in alternatives(subject)]
        missing = [one for one, match in answers if match.holds is not True]
        missed = [self._narrowed(subject, join(missing), state)] if missing else []
        matching = [(one, match) for one, match in answers if match.holds is not False]
        if not matching:
            return [], missed
        state = self._narrowed(subject, join(one for one, _ in matching), state)
        for name, value in captures(match for _, match in matching).items():
            state = self.walk.variables.bind(name, value, state)
        return [state], missed

    def _narrowed(self, subject: Value, left: Value, state: State) -> State:
        """Return the state in which a pattern has told what of the subject is left, also under its name."""
        if left == subject:
            return state
        name = state.frames[-1].get(NAME, NONE).text
        if name and state.frames[-1].get(name) == subject:
            state = state.bind(name, left)
        return state.bind(SUBJECT, left)


def _exception(value: Value) -> Value:
    match value:
        case MadeObject(info=info):
            return ClassValue(info)
    return value if value.class_name else UNKNOWN


def _communicating(node: cst.CSTNode, state: State) -> set[str]:
    """Return the names in a piece of code that hold communication or futures."""
    frame = state.frames[-1]
    return {name for name in names_in(node) if name in frame and state.holds_tracked(frame[name])}
