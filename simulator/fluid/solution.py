"""Mean numbers of requests over time, if a model is treated as a fluid.

The fluid replaces random numbers of requests by their means and lets them flow (Garbi's thesis, chapter
4). It is exact where no request waits, right in the limit of many clients and threads, and too optimistic
where a resource is nearly saturated. It takes milliseconds, and it is the only engine here that shows how
a system gets from one state to another.

``docs/explanation/fluid.md`` says how each element of a model is treated and how large the bias is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy import sparse

from mup.errors import UsageError
from mup.lqn.model import Model
from simulator.api import prepared_model
from simulator.fluid.code import Do, JoinRule, compile_code
from simulator.fluid.ode import FloatArray, FluidSystem, Matrix
from simulator.fluid.states import (
    ANSWERED,
    CLIENT,
    SCENARIO,
    Request,
    State,
    StateSpace,
    build_states,
    engaged,
)

__all__ = ["DEFAULT_STAGES", "FluidResult", "Trajectory", "fluid"]

DEFAULT_STAGES: Final = 4
DEFAULT_TIMES: Final = 201
NO_FLOW: Final = 1e-12
"""Flows below this part of the largest one are rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Figures over time; every array has one value per time.

    Throughputs are those of the moment, per second; response times are the number of requests present
    divided by the throughput (Little's law), which is the mean time of a request only where the system
    changes slowly. NaN where a figure does not exist.

    Attributes:
        times: Seconds.
        throughput, response_time: Of client cycles.
        tasks: ``throughput``, ``utilization``, ``busy``, ``queue`` per task, as in the result.
        entries: ``throughput``, ``response_time`` per entry.
        processors: ``utilization`` per processor.
    """

    times: FloatArray
    throughput: FloatArray
    response_time: FloatArray
    tasks: Mapping[str, Mapping[str, FloatArray]]
    entries: Mapping[str, Mapping[str, FloatArray]]
    processors: Mapping[str, Mapping[str, FloatArray]]

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``trajectory``; what does not exist is null."""

        def plain(values: FloatArray) -> list[float | None]:
            return [float(v) if math.isfinite(v) else None for v in values]

        def nested(group: Mapping[str, Mapping[str, FloatArray]]) -> dict[str, dict[str, list[float | None]]]:
            return {name: {k: plain(v) for k, v in figures.items()} for name, figures in group.items()}

        return {
            "times": plain(self.times),
            "cycle": {"throughput": plain(self.throughput), "response_time": plain(self.response_time)},
            "tasks": nested(self.tasks),
            "entries": nested(self.entries),
            "processors": nested(self.processors),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidResult:
    """Means at rest, or at the end of a trajectory.

    Attributes:
        time: Seconds after the beginning; None if the figures are those of the state of rest.
        states: Number of states of the fluid.
        cycle: ``throughput``, ``response_time``, ``cycle_time`` of all reference tasks together.
        tasks, entries, processors: Figures by name, as in a simulation's result; None where a figure
            does not exist.
        trajectory: If times were asked for.
        masses: Requests per state: where a later call can start from (``initial``).
        warnings: Which elements were approximated.
        wall_seconds: How long it took.
    """

    time: float | None
    states: int
    cycle: Mapping[str, float | None]
    tasks: Mapping[str, Mapping[str, float | None]]
    entries: Mapping[str, Mapping[str, float | None]]
    processors: Mapping[str, Mapping[str, float | None]]
    trajectory: Trajectory | None
    masses: Mapping[State, float] = field(repr=False)
    warnings: tuple[str, ...]
    wall_seconds: float = field(compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return a document of the shape of ``mup simulate --json``; a mean has no interval here."""

        def figures(group: Mapping[str, float | None]) -> dict[str, Any]:
            return {k: None if v is None else {"mean": v, "ci95": None} for k, v in group.items()}

        data: dict[str, Any] = {
            "engine": "fluid",
            "estimate": True,
            "time": self.time,
            "states": self.states,
            "wall_seconds": self.wall_seconds,
            "cycle": figures(self.cycle),
            "tasks": {name: figures(f) for name, f in self.tasks.items()},
            "entries": {name: figures(f) for name, f in self.entries.items()},
            "processors": {name: figures(f) for name, f in self.processors.items()},
            "warnings": list(self.warnings),
        }
        if self.trajectory is not None:
            data["trajectory"] = self.trajectory.to_json()
        return data


def fluid(
    model: Model,
    *,
    until: float | None = None,
    times: Sequence[float] | None = None,
    initial: FluidResult | None = None,
    join: JoinRule = "siblings",
    stages: int = DEFAULT_STAGES,
) -> FluidResult:
    """Solve the fluid approximation of a model.

    Args:
        model: Calibrated at least where load can get to.
        until: Follow the means from the beginning for so many seconds.
        times: Ascending moments at which to show them (default: 201 up to ``until``). Without both, the
            result is the state of rest.
        initial: Begin where another result of a model of the same structure ended; clients there are
            more of begin a cycle. Default: all clients begin a cycle, nothing else is under way.
        join: ``siblings`` (of one request), or ``anonymous`` (any branches; equation 4.6 of the thesis).
        stages: At most so many exponential stages stand for one time.

    Raises:
        UsageError: An argument is out of range, or the fluid has no meaning for an element of the model.
        UncalibratedError: The model lacks numbers.
        SimulationError: There are too many states, or the fluid does not come to rest.
    """
    began = time.perf_counter()
    model = prepared_model(model, awake=True).model
    moments = _moments(until, times)
    if stages < 1:
        raise UsageError(f"stages must be a whole number >= 1, got {stages!r}")
    if join not in ("siblings", "anonymous"):
        raise UsageError(f"join must be 'siblings' or 'anonymous', got {join!r}")
    code = compile_code(model, stages=stages, join=join)
    space = build_states(code)
    system = FluidSystem(space)
    begin = system.x0 if initial is None else _carry_over(space, initial)
    measures = _Measures(system, len(model.processors))
    trajectory = None
    if moments is None:
        end = system.rest(begin)
    else:
        masses = system.trajectory(begin, moments)
        trajectory = measures.trajectory(moments, masses)
        end = masses[:, -1]
    warnings = list(code.warnings)
    if space.shared:
        warnings.append("too many states to tell callers apart: replies go to waiting callers in proportion")
    return FluidResult(
        time=None if moments is None else float(moments[-1]),
        states=system.size,
        **measures.figures(end),
        trajectory=trajectory,
        masses={s: float(m) for s, m in zip(space.states, end, strict=True)},
        warnings=tuple(warnings),
        wall_seconds=time.perf_counter() - began,
    )


def _moments(until: float | None, times: Sequence[float] | None) -> FloatArray | None:
    if until is not None and not 0 < until < math.inf:
        raise UsageError(f"until must be a number of seconds > 0, got {until!r}")
    if times is None:
        return None if until is None else np.linspace(0.0, until, DEFAULT_TIMES)
    moments = np.asarray(times, dtype=float)
    if not len(moments) or moments[0] < 0 or (np.diff(moments) <= 0).any() or not np.isfinite(moments).all():
        raise UsageError(f"times must be ascending numbers of seconds >= 0, got {list(times)!r}")
    if until is not None and moments[-1] > until:
        raise UsageError(f"times must not be later than until = {until!r}, got {moments[-1]!r}")
    return moments if until is None or moments[-1] == until else np.append(moments, until)


def _carry_over(space: StateSpace, initial: FluidResult) -> FloatArray:
    """Return the masses of another result in the states of this model, with the right number of clients."""
    x = np.zeros(len(space.states))
    for state, mass in initial.masses.items():
        if state in space.index:
            x[space.index[state]] = max(0.0, mass)
        elif mass > 1e-9:
            raise UsageError(
                "the initial result is of a model with other activities or calls than this one",
                hint="start from a result of a model that differs in numbers only",
            )
    for number, population in enumerate(space.code.populations):
        start = space.start[number]
        if population.source >= 0:
            continue
        mine = [i for i, s in enumerate(space.states) if s.kind == CLIENT and s.owner == number]
        present = float(x[mine].sum())
        if present > population.clients:
            x[mine] *= population.clients / present
        else:
            for index, mass in start.items():
                x[index] += mass / population.clients * (population.clients - present)
    return x


class _Measures:
    """Linear functions of masses and flows that are the figures of a result."""

    def __init__(self, system: FluidSystem, processors: int) -> None:
        self.system = system
        self.processors = processors  # of the model; cores that several parts are pinned to come behind them
        self.code = system.space.code
        model = self.code.model
        entries = len(self.code.labels)
        self.done = system.counts(len(model.tasks), "done")
        self.replied = system.counts(entries, "replied")
        self.cycles = system.counts(len(self.code.populations), "cycles")
        self.entry_task = [t for t, task in enumerate(model.tasks) for _ in task.entries]
        cells: dict[str, list[tuple[int, int]]] = {
            k: [] for k in ("busy", "queue", "inside", "client", "think")
        }
        for s, state in enumerate(system.space.states):
            if state.kind in (CLIENT, SCENARIO):
                cells["client"].append((state.owner, s))
                if state.request is not None and self._thinks(state.request):
                    cells["think"].append((state.owner, s))
            for request in engaged(state.request):
                spec = self.code.entries[request.entry]
                if spec.client:
                    continue
                if request.held:
                    cells["busy"].append((spec.task, s))
                if request.reply != ANSWERED:
                    cells["inside"].append((request.entry, s))
                cells["queue"] += [
                    (spec.task, s)
                    for f in request.flows
                    if f.child is None and f.address >= 0 and self.code.ops[f.address].do == Do.ADMIT
                ]
        rows = {
            "busy": len(model.tasks),
            "queue": len(model.tasks),
            "inside": entries,
            "client": len(self.code.populations),
            "think": len(self.code.populations),
        }
        self.mass = {k: _ones(rows[k], system.size, v) for k, v in cells.items()}

    def _thinks(self, request: Request) -> bool:
        return any(f.carries and f.address >= 0 and self.code.ops[f.address].think for f in request.flows)

    def figures(self, x: FloatArray) -> dict[str, Any]:
        """Return the figures of one state, by the names of the result's fields."""
        system, code, model = self.system, self.code, self.code.model
        q, offers, g, sigma = system.flows(x)
        alpha = g[system.pool] * offers
        least = NO_FLOW * max(1e-300, float(q.sum()))

        def flow(pair: tuple[Matrix, Matrix]) -> FloatArray:
            total: FloatArray = pair[0] @ q + pair[1] @ alpha
            return np.where(np.abs(total) < least, 0.0, total)

        mass = {k: np.maximum(m @ x, 0.0) for k, m in self.mass.items()}
        done, replied, cycles = flow(self.done), flow(self.replied), flow(self.cycles)
        busy_cores = (system.running @ x) * sigma
        for i in reversed(system.parents_first):  # a part keeps cores of the whole busy
            if system.parent[i] >= 0:
                busy_cores[system.parent[i]] += busy_cores[i]
        cycle = _cycle(float(cycles.sum()), float(mass["client"].sum()), float(mass["think"].sum()))
        tasks: dict[str, dict[str, float | None]] = {}
        for t, task in enumerate(model.tasks):
            throughput, busy = float(done[t]), float(mass["busy"][t])
            if not task.is_reference:
                places = task.threads * task.replicas
                used = busy / places if places < math.inf else None
                tasks[task.name] = {
                    "throughput": throughput,
                    "utilization": used,
                    "busy": busy,
                    "queue": float(mass["queue"][t]),
                }
                continue
            own = [i for i, p in enumerate(code.populations) if p.task == t]
            inside, think = float(mass["client"][own].sum()), float(mass["think"][own].sum())
            throughput = float(cycles[own].sum())
            tasks[task.name] = {
                "throughput": throughput,
                "utilization": None,
                "busy": inside - think,
                "queue": None,
            } | {k: v for k, v in _cycle(throughput, inside, think).items() if k != "throughput"}
        entries: dict[str, dict[str, float | None]] = {}
        for e, label in enumerate(code.labels):
            if not model.tasks[self.entry_task[e]].is_reference:
                rate = float(replied[e])
                spent = float(mass["inside"][e]) / rate if rate > 0 else None
                entries[label] = {"throughput": rate, "response_time": spent}
        processors: dict[str, dict[str, float | None]] = {}
        for i, processor in enumerate(model.processors[: self.processors]):
            finite = processor.discipline != "infinite" and processor.cores < math.inf
            background = 1 - processor.available
            used = min(1.0, float(busy_cores[i]) / processor.cores + background) if finite else None
            processors[processor.name] = {"utilization": used}
        return {"cycle": cycle, "tasks": tasks, "entries": entries, "processors": processors}

    def trajectory(self, times: FloatArray, masses: FloatArray) -> Trajectory:
        rows = [self.figures(masses[:, i]) for i in range(len(times))]

        def series(*path: str) -> FloatArray:
            values = []
            for row in rows:
                value: Any = row
                for name in path:
                    value = value[name]
                values.append(math.nan if value is None else value)
            return np.array(values, dtype=float)

        def group(kind: str) -> dict[str, dict[str, FloatArray]]:
            return {n: {k: series(kind, n, k) for k in figures} for n, figures in rows[0][kind].items()}

        return Trajectory(
            times=times,
            throughput=series("cycle", "throughput"),
            response_time=series("cycle", "response_time"),
            tasks=group("tasks"),
            entries=group("entries"),
            processors=group("processors"),
        )


def _cycle(throughput: float, present: float, thinking: float) -> dict[str, float | None]:
    """Return the times of a cycle by Little's law."""
    flows = throughput > 0
    return {
        "throughput": throughput,
        "response_time": max(0.0, present - thinking) / throughput if flows else None,
        "cycle_time": present / throughput if flows else None,
    }


def _ones(rows: int, columns: int, cells: Sequence[tuple[int, int]]) -> Matrix:
    where = np.array(cells, dtype=int).reshape(-1, 2)
    return sparse.csr_matrix((np.ones(len(where)), (where[:, 0], where[:, 1])), shape=(rows, columns))
