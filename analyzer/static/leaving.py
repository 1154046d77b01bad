"""Loops that wait for one call after the other, and are left before all have been waited for.

``for future in futures: if not future.get()["ok"]: return ...``, or ``any(f.get()["ok"] for f in futures)``.
The calls have all begun, and some of them, the first, are waited for. On a way that leaves, these are the
copies of the fan-out; the others are a loop behind it, `LEFT`, whose calls nothing waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analyzer.static.application import LEFT, Operation, Path
from analyzer.static.state import Flow, State, held_in
from analyzer.static.values import LOST, UNKNOWN, Future, Leaving, Value, mapped

__all__ = ["Left", "is_begun_by_the_flow"]


@dataclass(frozen=True, slots=True)
class Left:
    """A loop that waits for copies, and may be left.

    Attributes:
        place: Where in the path the copies have begun.
        base: Where the loop that waits is.
        fan_out: The copies; each does nothing but wait for what it has begun.
        begun: The loop that has begun them.
        join: The wait for them.
        bare: Whether an iteration may have nothing to wait for.
    """

    place: int
    base: int
    fan_out: Operation
    begun: Operation
    join: Operation
    bare: bool

    def behind(self, flow: Flow) -> Flow | None:
        """Return a way out of the loop; None if it is not followed.

        Args:
            flow: The same with the loop as an operation, and behind it what the last iteration has done.
        """
        size = self._waited(flow.state.operations[self.base + 1 :])
        if size is None or (isinstance(flow.value, Leaving) and flow.value.failure):
            return None
        state = flow.state
        first = self.base + 1 + size  # of what follows
        between, rest = state.operations[self.place + 1 : self.base], state.operations[first:]
        again = any(o.of is not None and self.base < o.of < first for o in rest)
        # Tasks count from where they are to what they wait for.
        outward = any(True for o in (*between, *rest) for _ in o.outward())
        if again or outward:
            return None

        def moved(index: int) -> int:
            if index <= self.place:
                return index
            return index + 1 if index < self.base else index - size + 1

        def one(future: Future) -> Value:
            if future.index == self.place:
                return LOST
            if self.base <= future.index < first:
                return UNKNOWN if future.index in state.joined else LOST
            return Future(moved(future.index))

        def renumbered(operations: Sequence[Operation]) -> list[Operation]:
            return [o if o.of is None else replace(o, of=moved(o.of)) for o in operations]

        lines = state.local_lines
        after = replace(
            self._without_copies(state).with_futures(one),
            operations=(
                *state.operations[: self.place],
                self.fan_out,
                replace(self.begun, target=LEFT),
                *renumbered(between),
                self.join,
                *renumbered(rest),
            ),
            local_lines=(*lines[: self.place + 1], 0, *lines[self.place + 1 : self.base + 1], *lines[first:]),
            joined=frozenset(
                {self.place, *(moved(i) for i in state.joined if i < self.base or i >= first)},
            ),
        )
        return replace(flow, state=after, value=mapped(flow.value, one))

    def _waited(self, tail: Sequence[Operation]) -> int | None:
        """Return how many operations of the last iteration are those of its copy; None if it has another."""
        start = self.base + 1
        own = [o if o.of is None else replace(o, of=o.of - start) for o in tail]
        sizes = [0] if self.bare or not tail else []
        for body in (*self.fan_out.bodies, *self.begun.bodies):
            size = len(body.operations)
            sizes += [size] if tuple(own[:size]) == body.operations else []
        return max(sizes, default=None)

    def _without_copies(self, state: State) -> State:
        """Return the state in which nothing can be said of a container of them: some were waited for."""
        for number, content in state.heap.items():
            if any(self.place in one.futures() for one in held_in(content)):
                state = state.store(number, LOST)
        return state


def is_begun_by_the_flow(begun: Operation, fan_out: Operation) -> bool:
    """Return whether copies are calls and queries that the flow itself has begun, one after the other."""
    return fan_out.target == "flow" and all(map(_asks, begun.bodies))


def _asks(body: Path) -> bool:
    return all(o.op in ("call", "query") for o in body.operations)
