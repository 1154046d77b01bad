"""What do ``with`` statements do, when the class of the context manager is known?"""

from __future__ import annotations

from analyzer.static.arguments import Arguments
from analyzer.static.control import With
from analyzer.static.generators import Each
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Flow, Results, State, merge_flows
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    Const,
    Coroutine,
    FunctionValue,
    Generator,
    ObjectRef,
    SharedObject,
    Value,
    alternatives,
)
from analyzer.static.walk import Part, Points

__all__ = ["Managers"]


class Managers(Part):
    """Enters and leaves context managers."""

    def with_block(self, node: With, state: State) -> list[Flow]:
        """Walk a ``with`` statement."""
        line = self.walk.module.line(node.node)
        self.walk.may_fail(state, "local")
        flows: list[Flow] = []
        for after, manager in self.walk.expressions.evaluate(node.value, state):
            if after.operations == state.operations:
                after = after.at_local_work(line)  # noqa: PLW2901
            for one in alternatives(manager):
                if isinstance(one, Generator):
                    flows += self.walk.generators.consume(
                        one, after, node.node, self._body_of(node), manager=True
                    )
                elif isinstance(one, ObjectRef | SharedObject) and self._method_of(one, node, "exit"):
                    flows += self._entered(node, one, after)
                else:
                    # Nothing is known about it: a file, a lock.
                    flows += self._body_of(node)(after, after.content_of([one]))
        return merge_flows(flows)

    def _body_of(self, node: With) -> Each:
        """Return what walks the block, given what the manager hands out."""

        def body(state: State, value: Value) -> list[Flow]:
            if node.target is not None:
                state = self.walk.assignment.assign(node.target, value, state, node.node)
            return self.walk.statements.block(node.body, [state])

        return body

    def _method_of(self, owner: ObjectRef | SharedObject, node: With, name: str) -> FunctionValue | None:
        found = self.walk.names.attribute(owner.info, f"__a{name}__" if node.asynchronous else f"__{name}__")
        if found is None or not isinstance(found[1], FunctionInfo):
            return None
        return FunctionValue(found[1], owner)

    def _entered(self, node: With, manager: ObjectRef | SharedObject, state: State) -> list[Flow]:
        depth = len(state.frames)
        entered: Results = [(state, UNKNOWN)]
        enter = self._method_of(manager, node, "enter")
        if enter is not None:
            entered = self._run_method(enter, Arguments((), ()), node, state)
        flows: list[Flow] = []
        points = Points()
        for after, value in entered:
            with self.walk.collected(points), self.walk.catching() as raised:
                flows += self._body_of(node)(after, value)
            flows += raised
        done: list[Flow] = []
        for flow in merge_flows(flows):
            failed = flow.kind == "raise"
            for after, answer in self._left_by(manager, node, flow.state, failed=failed):
                known = answer.truth({})
                if failed and known is not False:
                    done.append(Flow(after))  # the exception is swallowed
                if not failed or known is not True:
                    done.append(Flow(after, flow.kind, flow.value, flow.line))
        for kind, place in points.merged(depth):
            for after, answer in self._left_by(manager, node, place, failed=True):
                known = answer.truth({})
                if known is not False:
                    done.append(Flow(after))
                if known is not True and after.operations != place.operations:
                    # What happens on the way out happens even when the exception goes on to end the request.
                    done.append(Flow(after, "raise", Const.of(kind), self.walk.module.line(node.node)))
                elif known is not True:
                    self.walk.may_fail(after, kind)
        return merge_flows(done)

    def _left_by(
        self, manager: ObjectRef | SharedObject, node: With, state: State, *, failed: bool
    ) -> Results:
        leave = self._method_of(manager, node, "exit")
        assert leave is not None  # noqa: S101  (what the caller has seen)
        return self._run_method(leave, Arguments.of(*(UNKNOWN if failed else NONE,) * 3), node, state)

    def _run_method(self, method: FunctionValue, given: Arguments, node: With, state: State) -> Results:
        results: Results = []
        for after, value in self.walk.functions.call_function(method, given, node.node, state, follow=True):
            if isinstance(value, Coroutine):
                results += self.walk.functions.inline(value.function, dict(value.arguments), node.node, after)
            else:
                results.append((after, value))
        return results
