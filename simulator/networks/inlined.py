"""Inlined model, in which all calls are inlined: its states, its events, and their dynamics.

The flat form that a stochastic process (``simulator.networks.inlined_process``) and a recurrent fluid cell
(``simulator.networks.inlined_fluid``) work on. Every time is exponential with its mean, as in Garbi's thesis,
section 4.1.2, or a sequence of exponential stages; nodes that take no time (release, OR, AND) are followed
through when they are reached, so an event is a joint jump: all branches of a fork begin at once, and what is
released is taken in the same moment.

A state is what one client is doing, so branches know their siblings (``join="siblings"``, as in the model
itself), or what one branch is doing (``anonymous``: the join and wait nodes of equation 4.6).

Positions
---------
What can be counted from outside is not the state but where its flows are. A *position* is a path of calls,
``client.cycle:ask>B.serve:work``: activity ``work`` of entry ``B.serve``, called by ``ask``. In place of an
activity stands ``(waiting)`` for a thread, ``(x waiting)`` for it again, behind a call of x that released it,
``(thinking)``, ``(front)``, ``(joining)`` (done, while a branch of the same request is not) or ``(x joined)``
(the branch that ended with x, anonymous joins only). Work no client waits for begins with ``>``.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mup.errors import SimulationError
from mup.lqn.model import Model
from mup.lqn.refs import ActivityRef, EntryRef, Names
from simulator.fluid.code import Do, JoinRule, compile_code
from simulator.fluid.ode import FluidSystem
from simulator.fluid.states import (
    CLIENT,
    MAX_INLINED,
    NEGLIGIBLE,
    Effects,
    Outcomes,
    Request,
    State,
    StateSpace,
    _Explorer,
    _TooManyError,
    engaged,
)

__all__ = ["InlinedLqn", "TimeKey", "inline"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_WORLDS: Final = 20_000
FRONT: Final = {"front.request": "request", "front.reply": "reply"}
"""Times of a front, and its fields."""


class TimeKey(NamedTuple):
    """A time of the model: of an activity (``demand``, ``delay``), or of an entry as a whole.

    ``time`` is ``demand``, ``delay``, ``think``, ``front.request`` or ``front.reply``; ``activity`` is "" for
    the last three.
    """

    task: str
    entry: str
    activity: str
    time: str

    def __str__(self) -> str:
        """Return ``TASK.entry:activity demand``; the time alone where there is no activity."""
        place = ActivityRef(self.task, self.entry, self.activity) if self.activity else self._owner
        return f"{place.label} {self.time}"

    def text(self, names: Names) -> str:
        """Return the same, with the texts of a model."""
        if self.activity:
            return f"{names.activity(ActivityRef(self.task, self.entry, self.activity))} {self.time}"
        return f"{names.entries[self._owner]} {self.time}"

    @property
    def _owner(self) -> EntryRef:
        return EntryRef(self.task, self.entry)


class Position(NamedTuple):
    """Where a flow is: tasks and labels of the entries it went through, ``path`` of their activities."""

    tasks: tuple[str, ...]
    entries: tuple[str, ...]
    path: tuple[str, ...]

    def __str__(self) -> str:
        """Return the path as one text."""
        return ">".join(self.path)


@dataclass(frozen=True, slots=True)
class InlinedLqn:
    """n states, L moves (ends of exponential stages), A admissions, T times, S pools, Q processors.

    Attributes:
        model: What was inlined.
        space: The states and events themselves.
        times: What the rates depend on; means[T] belong to them.
        means: As in the model, seconds; shape (T,).
        time_of: Time of every move; shape (L,).
        factor: rate = factor / mean, per second; shape (L,).
        system: Matrices of the events' expected effects, capacities, processors.
        positions: Where flows can be.
        counts: Flows per position and state; shape (positions, n).
    """

    model: Model
    space: StateSpace
    times: tuple[TimeKey, ...]
    means: FloatArray
    time_of: IntArray
    factor: FloatArray
    system: FluidSystem
    positions: tuple[Position, ...]
    counts: FloatArray

    @property
    def clients(self) -> float:
        """All clients of all reference tasks."""
        return sum(p.clients for p in self.space.code.populations)

    @property
    def client_states(self) -> npt.NDArray[np.bool_]:
        """Which states are those of clients; shape (n,)."""
        return np.array([s.kind == CLIENT for s in self.space.states])


def inline(model: Model, *, join: JoinRule = "siblings", stages: int = 1) -> InlinedLqn:
    """Inline all calls of a closed model.

    Args:
        model: Closed, with all its numbers.
        join: Which branches a join takes.
        stages: At most so many exponential stages stand for one time; with 1, all times up to a variation of
            1 are exponential.

    Raises:
        UncalibratedError: The model lacks numbers.
        SimulationError: It has open arrivals, or too many states.
        UsageError: It has elements without a fluid.
    """
    code = compile_code(model, stages=stages, join=join)
    if any(p.source >= 0 for p in code.populations):
        raise SimulationError(
            "requests arrive from outside, and an inlined model is closed",
            where=model.name,
            hint="give it a reference task with clients and a think time instead of arrivals",
        )
    try:
        space = _JointExplorer(code, limit=MAX_INLINED, inline=True).explore()
    except _TooManyError:
        raise SimulationError(
            f"the inlined model has more than {MAX_INLINED} states: too many calls or parallel branches",
            where=model.name,
        ) from None
    system = FluidSystem(space)
    entries = [(t, e) for t in model.tasks for e in t.entries]
    keys: dict[TimeKey, int] = {}
    for move in space.moves:
        task, entry = entries[move.entry]
        keys.setdefault(TimeKey(task.name, entry.name, move.op.activity, move.op.time), len(keys))
    means = np.array([_mean(model, key) for key in keys])
    time_of = np.array(
        [
            keys[TimeKey(entries[m.entry][0].name, entries[m.entry][1].name, m.op.activity, m.op.time)]
            for m in space.moves
        ],
        dtype=np.int64,
    )
    positions: dict[Position, int] = {}
    cells: list[tuple[int, int]] = []
    for s, state in enumerate(space.states):
        cells += [(positions.setdefault(p, len(positions)), s) for p in _positions(space, state)]
    counts = np.zeros((len(positions), len(space.states)))
    for row, column in cells:
        counts[row, column] += 1
    return InlinedLqn(
        model=model,
        space=space,
        times=tuple(keys),
        means=means,
        time_of=time_of,
        factor=system.rate * means[time_of],
        system=system,
        positions=tuple(positions),
        counts=counts,
    )


def _mean(model: Model, key: TimeKey) -> float:
    task = model.task(key.task)
    if key.time == "think":
        found = task.think
    elif key.time in FRONT:
        found = None if task.front is None else getattr(task.front, FRONT[key.time])
    else:
        found = getattr(task.entry(key.entry).activity(key.activity), key.time)
    assert found is not None  # noqa: S101 - compile_code refuses unknown times
    return float(found.mean)


def _positions(space: StateSpace, state: State) -> list[Position]:
    """Return where the flows of a state are, one per flow without a call under way."""
    code = space.code
    if state.request is None:
        joined = code.pools[state.owner].joined
        assert joined is not None  # noqa: S101 - only branches at an anonymous join have no request
        label = Names(code.model.tasks).entries[joined.owner]
        return [Position((joined.task,), (label,), (f"{label}:({joined.activity} joined)",))]
    found: list[Position] = []

    def walk(request: Request, above: Position) -> None:
        spec = code.entries[request.entry]
        task = code.model.tasks[spec.task].name
        for flow in request.flows:
            if flow.address < 0:
                what = "(joining)"
            else:
                op = code.ops[flow.address]
                what = op.activity
                if op.do == Do.ADMIT:
                    what = f"({what} waiting)" if what else "(waiting)"  # after a call that released
                elif op.do == Do.AWAIT:
                    what = "(joining)"
                elif not what:
                    what = "(thinking)" if op.think else "(front)"
            here = Position(
                (*above.tasks, task), (*above.entries, spec.label), (*above.path, f"{spec.label}:{what}")
            )
            if isinstance(flow.child, Request):
                walk(flow.child, here)
            else:
                found.append(here)

    # What no client waits for has a root of its own: its path must not be the end of another one.
    walk(state.request, Position((), (), () if state.kind == CLIENT else ("",)))
    return found


class _World(NamedTuple):
    """What has happened so far at an event: states to follow, states where time passes, notes."""

    open: tuple[State, ...]
    timed: tuple[int, ...]
    notes: tuple[tuple[str, int], ...]


class _JointExplorer(_Explorer):
    """Follows whole outcomes of an event, not their expected numbers."""

    def follow(self, begin: list[tuple[float, State]], effects: Effects) -> None:
        mass: dict[_World, float] = {}
        todo: deque[_World] = deque()
        final: dict[_World, float] = {}

        def push(probability: float, world: _World) -> None:
            target = mass if world.open else final
            if world not in target and world.open:
                todo.append(world)
            target[world] = target.get(world, 0.0) + probability

        def branch(weight: float, options: list[tuple[float, State]], before: _World) -> None:
            """Continue a world with one of several states, and with what was spawned on the way."""
            spawned = tuple(self.take_spawned())
            notes = tuple(sorted((*before.notes, *self.notes)))
            self.notes.clear()
            for probability, state in options:
                push(weight * probability, _World((*before.open, *spawned, state), before.timed, notes))
            gone = 1.0 - sum(p for p, _ in options)  # the request has ended
            if gone > NEGLIGIBLE:
                push(weight * gone, _World((*before.open, *spawned), before.timed, notes))

        branch(1.0, begin, _World((), (), ()))
        for _ in itertools.repeat(None, MAX_WORLDS):
            if not todo:
                break
            world = todo.popleft()
            weight = mass.pop(world)
            if weight < NEGLIGIBLE:
                continue
            state = world.open[-1]
            rest = world._replace(open=world.open[:-1])
            path = None if state.request is None else self.at_once(state.request)
            if path is None:
                push(weight, rest._replace(timed=tuple(sorted((*rest.timed, self.number(state))))))
            else:
                branch(weight, self.step(state, path), rest)
        else:
            raise SimulationError(
                "too much can happen at once: a cycle that takes no time, or too many branches in no time",
                where=self.code.model.name,
                hint="give what is repeated a demand or a delay",
            )
        for world, probability in final.items():
            released = tuple(pool for kind, pool in world.notes if kind == "released")
            effects.outcomes.append(Outcomes(probability, world.timed, released))
            for state_index in world.timed:
                effects.targets[state_index] = effects.targets.get(state_index, 0.0) + probability
            for kind, which in world.notes:
                totals: dict[int, float] = getattr(effects, kind)
                totals[which] = totals.get(which, 0.0) + probability


def held_pools(lqn: InlinedLqn) -> FloatArray:
    """Return the places every state holds; shape (S, n). Parked branches of anonymous joins count -1."""
    return np.asarray(lqn.system.held.toarray())


def requests_of(lqn: InlinedLqn, state: int) -> list[Request]:
    """Return all requests a state is engaged in."""
    return engaged(lqn.space.states[state].request)
