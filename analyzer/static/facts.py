"""Facts about unknown values that conditions have told, and when they cease to hold.

After ``if words:`` it is known that ``words`` is not empty - until something may have changed it, under this
name or any other. Then every such fact is forgotten: which names share an object is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from analyzer.static.state import Frame, State
from analyzer.static.values import UNKNOWN, Unknown, Value, alternatives, join

__all__ = ["changed_in_loop", "holding", "without_facts"]


def holding(value: Value, holds: bool) -> Value:
    """Return a value of which a condition has told whether it counts as true."""
    options = [one for one in alternatives(value) if one.truth({}) in (None, holds)]
    return join(Unknown(holds) if v.is_unknown else v for v in options) if options else value


def without_facts(state: State) -> State:
    """Return the state in which nothing is known about the truth of unknown values."""
    frames = tuple({n: UNKNOWN if v.is_unknown else v for n, v in frame.items()} for frame in state.frames)
    return state if frames == state.frames else replace(state, frames=frames)


def changed_in_loop(start: State, ends: Iterable[State]) -> State:
    """Return a state every iteration can start in: without the facts that one of these ends does not have."""
    ends = tuple(ends)
    frames = tuple(
        _agreed(frame, [end.frames[depth] for end in ends]) for depth, frame in enumerate(start.frames)
    )
    return start if frames == start.frames else replace(start, frames=frames)


def _agreed(frame: Frame, ends: Sequence[Frame]) -> Frame:
    return {
        name: UNKNOWN if value.is_unknown and any(end.get(name, value) != value for end in ends) else value
        for name, value in frame.items()
    }
