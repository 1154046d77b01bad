"""Compiled engine: how it keeps its state, and how it is driven.

The interpreter itself is ``simulator.machine.compiled.interpreter.advance``: one compiled function that works
on arrays. This module creates the arrays, enlarges them when the interpreter asks for more room, and turns
sums into the snapshots that ``simulator.machine.recording`` describes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.native.binding import held
from simulator.machine.budget import Budget
from simulator.machine.compiled import state as run
from simulator.machine.compiled.interpreter import advance
from simulator.machine.compiled.snapshot import record_bins, write_snapshot
from simulator.machine.failures import (
    MAX_INSIDE,
    deadlock,
    endless_instant,
    impossible_join,
    spinning_client,
    token_overflow,
    too_many,
)
from simulator.machine.recording import LEVEL_WIDTH, Bins, FloatArray, Layout, Samples, sample_capacities
from simulator.machine.setups import sleep_tables
from simulator.machine.variates import client_streams, resource_stream, tables
from simulator.program import (
    FCFS,
    LOCKED,
    PREEMPTIVE,
    SHARED,
    STICKY,
    Program,
    optimise,
    server_trees,
    sticky_parts,
)

__all__ = ["CompiledEngine"]

FIRST_ROOM = 256
"""Flows; the arrays are doubled when they are full."""
MAX_TRACE = 1 << 22
"""Steps that a trace of both engines is compared over."""


class CompiledEngine:
    """A program being executed by compiled code. Time starts at 0 with every client about to think.

    Args:
        program: What to execute.
        seed: Same seed, same run; the same as in every other engine.
        optimised: Execute plain fork-joins like subroutines.
        look_ahead: Let a flow run ahead of the others through steps in which they cannot meet.
        traced: Record every timed step, for comparisons.
    """

    name = "compiled"

    def __init__(
        self,
        program: Program,
        seed: int,
        *,
        optimised: bool = True,
        look_ahead: bool = True,
        traced: bool = False,
    ) -> None:
        self.program = program
        self.now = 0.0
        """How far the run has got, in simulated seconds."""
        self._layout = Layout(program)
        self._keep(
            _build(optimise(program) if optimised else program, self._layout, seed, look_ahead, traced)
        )
        self._clients = sum(p.clients for p in program.populations)
        layout = self._layout
        sizes = layout.levels, layout.servers, layout.sites, layout.joins, layout.activities, layout.setups
        self._sizes = np.array(sizes, dtype=np.int64)
        self._finished = np.zeros(1, dtype=np.int64)

    @property
    def events(self) -> int:
        """Timed steps begun so far (thinks, delays, uses of a processor)."""
        return int(self._state.scalars[run.EVENTS])

    @property
    def trace(self) -> list[tuple[float, int]]:
        """Moment and key of the flow of every timed step, in the order of the moments."""
        count = int(self._state.scalars[run.TRACED])
        moments, keys = self._state.trace_times[:count], self._state.trace_keys[:count]
        return sorted(zip(moments.tolist(), keys.tolist(), strict=True))

    def run_until(self, time: float, budget: Budget | None = None) -> None:
        """Execute everything that happens before ``time`` (seconds).

        Args:
            time: Simulated seconds since the beginning.
            budget: Of the study; what this takes is taken from it.

        Raises:
            LimitError: The budget is used up; the run can go on from there.
            SimulationError: Nothing can happen any more, a join cannot complete, or a client spins.
        """
        noted = self.events
        while True:
            status = advance(self._passed, time)
            noted = self._note(status, noted, budget)
            if status == run.DONE:
                break
        self.now = time

    def record(self, bins: Bins, end: float, most_events: int, budget: Budget | None = None) -> None:
        """Add bins until one ends at ``end`` (seconds) or later, they are full, or so many events have begun.

        Args:
            bins: Those of this run from its beginning.
            end: Simulated seconds since the beginning.
            most_events: Events of the whole run.
            budget: As for `run_until`.

        Raises:
            LimitError, SimulationError: As `run_until`; bins that were finished have been added.
        """
        noted = self.events
        rows = bins.room(end)
        while len(rows):
            # Now and then the limits of the budget are looked at.
            most = min(most_events, noted + min(run.PAUSE_STEPS, inf if budget is None else budget.left))
            status = record_bins(
                self._passed,
                bins.count,
                bins.width,
                int(most),
                self._sizes,
                self._finished,
                bins.previous,
                rows,
            )
            done = int(self._finished[0])
            if done:
                self.now = (bins.count + done) * bins.width
                bins.finish(done)
            noted = self._note(status, noted, budget)
            rows = rows[done:]
            if self.events >= most_events or (budget is not None and budget.reached() is not None):
                return

    def _note(self, status: int, noted: int, budget: Budget | None) -> int:
        """Take note of how compiled code came back, make room if it needs some; return the events noted."""
        events = self.events
        if budget is not None and status in (run.DONE, run.PAUSED):
            if status == run.PAUSED:
                budget.use(events - noted)
            else:
                budget.note(events - noted)
            noted = events
        if status in (run.MORE_FLOWS, run.MORE_FRAMES, run.MORE_JOBS):
            self._enlarge(status)
        elif status not in (run.DONE, run.PAUSED):
            self._fail(status)
        return noted

    def snapshot(self) -> FloatArray:
        """Return all sums as of now; the columns are those of ``Layout``."""
        layout = self._layout
        row = np.empty(layout.width)
        write_snapshot(
            self._passed,
            self.now,
            layout.levels,
            layout.servers,
            layout.sites,
            layout.joins,
            layout.activities,
            layout.setups,
            row,
        )
        return row

    @property
    def population_samples(self) -> list[Samples]:
        """The single cycle times of every population."""
        s = self._state.records
        return [
            _samples(s.cycle_samples[i, :n], int(s.cycle_counts[i, run.MASK]))
            for i, n in enumerate(s.cycle_counts[:, run.KEPT])
        ]

    @property
    def entry_samples(self) -> list[Samples]:
        """The single response times of every entry."""
        s = self._state.records
        return [
            _samples(s.entry_samples[i, :n], int(s.entry_counts[i, run.MASK]))
            for i, n in enumerate(s.entry_counts[:, run.KEPT])
        ]

    def _keep(self, state: run.State) -> None:
        """Work on these arrays from now on."""
        self._state = state
        self._passed = held(state)

    def _enlarge(self, what: int) -> None:
        """Double the room for flows, requests, or jobs of a processor."""
        s = self._state
        if what == run.MORE_FLOWS:
            old = len(s.flows.ints)
            if old > MAX_INSIDE + 2 * self._clients:
                raise too_many(self.program, float(s.times[run.NOW]))
            self._keep(
                s._replace(
                    flows=run.Flows(*(_doubled(array) for array in s.flows)),
                    heap_times=_doubled(s.heap_times),
                    heap_flows=_doubled(s.heap_flows),
                )
            )
            _link_free(self._state.flows.ints[:, run.NEXT], s.scalars, run.FREE_FLOW, old)
        elif what == run.MORE_FRAMES:
            old = len(s.frames.ints)
            self._keep(s._replace(frames=run.Frames(*(_doubled(array) for array in s.frames))))
            _link_free(self._state.frames.ints[:, run.CALLER], s.scalars, run.FREE_FRAME, old)
        else:
            jobs = {
                name: _doubled(getattr(s.servers, name), axis=1)
                for name in ("job_ends", "job_numbers", "job_flows")
            }
            self._keep(s._replace(servers=s.servers._replace(**jobs)))

    def _fail(self, status: int) -> None:
        program, scalars = self.program, self._state.scalars
        now = float(self._state.times[run.NOW])
        if status == run.JOIN_STUCK:
            raise impossible_join(program.joins[scalars[run.CULPRIT]].where)
        if status == run.SPINNING:
            raise spinning_client(program.populations[scalars[run.CULPRIT]].name, now)
        if status == run.TOKEN_OVERFLOW:
            raise token_overflow(program.tasks[scalars[run.CULPRIT]].name, now)
        if status == run.ENDLESS:
            raise endless_instant(program, now)
        waiting = [int(i) for i in np.flatnonzero(self._state.stations.ints[:, run.S_WAITING])]
        raise deadlock(program, self._layout, now, waiting)


def _samples(rows: FloatArray, mask: int) -> Samples:
    return Samples.of(rows[:, run.SAMPLE_END], rows[:, run.SAMPLE_VALUE], mask)


def _doubled(array: npt.NDArray[Any], axis: int = 0) -> npt.NDArray[Any]:
    shape = list(array.shape)
    shape[axis] *= 2
    result = np.zeros(shape, dtype=array.dtype)
    if axis == 0:
        result[: array.shape[0]] = array
    else:
        result[:, : array.shape[1]] = array
    return result


def _link_free(links: npt.NDArray[np.int32], scalars: npt.NDArray[np.int64], head: int, first: int) -> None:
    """Put the rows from ``first`` on into a list of free ones, before those it has."""
    links[first:-1] = np.arange(first + 1, len(links))
    links[-1] = scalars[head]
    scalars[head] = first


def _build(program: Program, layout: Layout, seed: int, look_ahead: bool, traced: bool) -> run.State:
    """Lay out all arrays and create the flows that exist at time 0."""
    bits = np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    source = tables(program.distributions)
    starters = sum(max(1, p.clients) for p in program.populations) + len(program.background)
    room = 1 << (starters + FIRST_ROOM).bit_length()
    firsts = np.cumsum([0] + [len(c.addresses) for c in program.choices])
    state = run.State(
        scalars=np.zeros(run.SCALARS, dtype=np.int64),
        times=np.zeros(4),
        code=_array(program.code, run.INSTRUCTION_INTS, np.int32),
        kinds=source.kinds,
        parameters=source.parameters,
        data=source.data,
        choice_bounds=_table(
            run.CHOICE_INTS,
            [
                {run.O_FIRST: first, run.O_OPTIONS: len(choice.addresses)}
                for first, choice in zip(firsts, program.choices, strict=False)
            ],
        ),
        choice_odds=np.array([p for c in program.choices for p in c.cumulative] or [0.0], dtype=np.float64),
        choice_addresses=np.array([a for c in program.choices for a in c.addresses] or [0], dtype=np.int32),
        **_tables(program, layout),
        servers=_servers(program, layout, bits),
        flows=run.Flows(
            ints=np.zeros((room, run.FLOW_INTS), dtype=np.int32),
            floats=np.zeros((room, run.FLOW_FLOATS)),
            bits=np.zeros((room, run.FLOW_BITS), dtype=np.uint64),
        ),
        frames=run.Frames(
            ints=np.zeros((room, run.FRAME_INTS), dtype=np.int32),
            floats=np.zeros((room, run.FRAME_FLOATS)),
            bits=np.zeros((room, run.FRAME_BITS), dtype=np.uint64),
            clocks=np.zeros((room, max(1, program.timers))),
            registers=np.zeros((room, max(1, program.registers)), dtype=np.int64),
            slots=np.zeros((room, max(1, program.slots)), dtype=np.int32),
        ),
        stations=_stations(program, layout, bits),
        records=_records(program, layout),
        sleeps=_sleeps(program, layout),
        heap_times=np.empty(room),
        heap_flows=np.empty(room, dtype=np.int32),
        trace_times=np.empty(MAX_TRACE if traced else 1),
        trace_keys=np.empty(MAX_TRACE if traced else 1, dtype=np.uint64),
    )
    state.scalars[run.LOOK_AHEAD] = look_ahead
    state.scalars[run.TRACING] = traced
    for name in (run.CURRENT, run.READY_HEAD, run.READY_TAIL, run.FREE_FLOW, run.FREE_FRAME):
        state.scalars[name] = -1
    _create_starters(program, state, bits)
    _link_free(state.flows.ints[:, run.NEXT], state.scalars, run.FREE_FLOW, starters)
    _link_free(state.frames.ints[:, run.CALLER], state.scalars, run.FREE_FRAME, starters)
    return state


def _tables(program: Program, layout: Layout) -> dict[str, npt.NDArray[np.int32]]:
    """Return what the interpreter looks up about joins, entries, tasks, call sites and populations."""
    return {
        "joins": _table(
            run.JOIN_INTS,
            [
                {
                    run.J_SLOT: join.slot,
                    run.J_NEEDED: join.needed,
                    run.J_ARRIVALS: join.arrivals,
                    run.J_TIMER: join.timer,
                    run.J_CARRIED: join.carried,
                }
                for join in program.joins
            ],
        ),
        "entries": _table(
            run.ENTRY_INTS,
            [
                {
                    run.E_TASK: entry.task,
                    run.E_START: entry.start,
                    run.E_EPILOGUE: entry.epilogue,
                    run.E_REPLIES_ELSEWHERE: entry.replies_elsewhere,
                    run.E_WAITS: entry.waits,
                    run.E_TOKEN: entry.token,
                    run.E_LEVEL: layout.inside(index) // LEVEL_WIDTH,
                }
                for index, entry in enumerate(program.entries)
            ],
        ),
        "tasks": _table(
            run.TASK_INTS,
            [
                {
                    run.T_STATION: layout.first_station[index],
                    run.T_REPLICAS: layout.first_station[index + 1] - layout.first_station[index],
                    run.T_RANK: task.rank,
                }
                for index, task in enumerate(program.tasks)
            ],
        ),
        "sites": _table(
            run.SITE_INTS,
            [
                {run.C_ENTRY: site.entry, run.C_RANK: site.rank, run.C_POPULATION: site.population}
                for site in program.sites
            ],
        ),
        "populations": _table(
            run.POPULATION_INTS,
            [{run.U_LEVEL: layout.thinking(i) // LEVEL_WIDTH} for i in range(len(program.populations))],
        ),
    }


def _create_starters(program: Program, state: run.State, bits: np.uint64) -> None:
    """Create clients, sources and what works in the background, all of them about to start."""
    flows, frames = state.flows, state.frames
    first = 0
    kinds = [(p.first, p.start, p.entry, p.clients) for p in program.populations]
    # Work in the background belongs to no entry, but every frame names one.
    kinds += [(at, at, 0, 0) for at in program.background]
    for index, (at, start, entry, clients) in enumerate(kinds):
        count = max(1, clients)
        rows = np.arange(first, first + count)
        own, cycle = flows.ints[first : first + count], frames.ints[first : first + count]
        own[:, run.AT] = at
        own[:, run.FRAME] = rows
        own[:, run.NEXT] = rows + 1
        own[:, (run.SERVER, run.OWN_CORE, run.KEEPS)] = -1
        flows.floats[first : first + count, run.STOPPED] = -1.0
        for column in (run.STREAM, run.KEY, run.TURN):
            flows.bits[first : first + count, column] = client_streams(bits, index, count)
        cycle[:, run.ENTRY] = entry
        cycle[:, run.RETURN_TO] = start
        cycle[:, run.CARRIER] = rows if clients else run.NO_FLOW
        cycle[:, (run.ACTIVE, run.REFERENCES)] = 1
        cycle[:, (run.STATION, run.CALLER, run.SITE, run.PARKED, run.PARKED_AT, run.SEAT)] = -1
        cycle[:, run.POPULATION] = index if clients else -1
        first += count
    flows.ints[first - 1, run.NEXT] = -1
    state.scalars[run.URGENT_HEAD] = 0
    state.scalars[run.URGENT_TAIL] = first - 1


def _sleeps(program: Program, layout: Layout) -> run.Sleeps:
    """What sleep costs; no client has done anything yet."""
    found = sleep_tables(program)
    return run.Sleeps(
        knots=found.knots,
        bounds=found.bounds,
        seconds=found.seconds,
        kinds=found.kinds,
        sums=np.zeros((max(1, layout.setups), run.SETUP_SUMS)),
        clients_awake=np.zeros(layout.populations, dtype=np.int64),
        client_rests=np.full(layout.populations, -inf),
    )


def _records(program: Program, layout: Layout) -> run.Records:
    capacities = sample_capacities(program)
    populations, entries = len(program.populations), len(program.entries)
    return run.Records(
        levels=np.zeros((max(1, layout.levels), run.LEVEL_FLOATS)),
        cycles=np.zeros((populations, run.CYCLE_SUMS)),
        site_sums=np.zeros((max(1, layout.sites), run.SITE_SUMS)),
        join_sums=np.zeros((max(1, layout.joins), run.JOIN_SUMS)),
        activity_sums=np.zeros((max(1, layout.activities), run.ACTIVITY_SUMS)),
        cycle_samples=np.empty((populations, capacities.population, run.SAMPLE_FLOATS)),
        cycle_counts=np.zeros((populations, run.COUNT_INTS), dtype=np.int64),
        entry_samples=np.empty((entries, capacities.entry, run.SAMPLE_FLOATS)),
        entry_counts=np.zeros((entries, run.COUNT_INTS), dtype=np.int64),
        scratch=np.zeros(1),
    )


def _array(rows: Any, width: int, kind: Any) -> npt.NDArray[Any]:
    if not len(rows):
        return np.zeros((1, width), dtype=kind)
    # One number after the other: programs can have millions of instructions.
    numbers = map(int, itertools.chain.from_iterable(rows))
    return np.fromiter(numbers, dtype=kind, count=width * len(rows)).reshape(len(rows), width)


def _table(width: int, rows: Sequence[Mapping[int, int]]) -> npt.NDArray[np.int32]:
    """Return rows of columns by their names; one row of zeros if there are none."""
    result = np.zeros((max(1, len(rows)), width), dtype=np.int32)
    for row, columns in zip(result, rows, strict=False):
        for column, value in columns.items():
            row[column] = int(value)
    return result


def _stations(program: Program, layout: Layout, bits: np.uint64) -> run.Stations:
    """Threads and fronts of every replica; seats where threads stick to cores."""
    count = max(1, layout.stations)
    ints = np.zeros((count, run.STATION_INTS), dtype=np.int64)
    states = np.zeros(count, dtype=np.uint64)
    seats = 0
    stack: list[int] = []
    rests = 0
    for index, task in enumerate(program.tasks):
        for station in range(layout.first_station[index], layout.first_station[index + 1]):
            row = ints[station]
            threads = int(task.threads) if isfinite(task.threads) else run.UNLIMITED
            row[run.S_REST] = row[run.S_RESTED] = -1
            if task.sleep >= 0:
                # So many threads that none is ever waited for, but counted like others.
                threads = min(threads, run.HALF_UNLIMITED - 1)
                row[run.S_REST] = rests
                rests += 2
                if program.sleeps[task.sleep].by_thread:
                    row[run.S_RESTED] = 0
                    rests += threads - 1
            row[run.S_FREE] = row[run.S_CAPACITY] = threads
            row[run.S_ADMISSION] = task.admission
            row[run.S_WAITING_LEVEL] = layout.waiting(layout.place_of[station]) // 6
            row[run.S_BUSY_LEVEL] = layout.busy(layout.place_of[station]) // 6
            row[run.S_FRONT_FREE] = 1
            row[run.S_SEATS] = len(stack)
            row[run.S_FRONT_SEAT] = -1
            states[station] = resource_stream(bits, np.uint64(1), np.uint64(station))
            for _, count_seated in task.seated:
                stack.extend(range(seats, seats + count_seated))
                seats += count_seated
            if task.front and task.front_server >= 0:
                row[run.S_FRONT_SEAT] = stack.pop()
            row[run.S_SEATED] = len(stack) - row[run.S_SEATS]
    # Queues by rank; those of a lock are one of readers and one of writers.
    queues = max(program.ranks, 2 if any(t.admission == LOCKED for t in program.tasks) else 1)
    return run.Stations(
        ints=ints,
        bits=states,
        heads=np.full((count, queues), -1, dtype=np.int32),
        tails=np.full((count, queues), -1, dtype=np.int32),
        front_heads=np.full((count, run.FRONT_INTS), -1, dtype=np.int32),
        seat_stack=np.array(stack or [0], dtype=np.int32),
        rests=np.full(max(1, rests), -inf),
    )


def _servers(program: Program, layout: Layout, bits: np.uint64) -> run.Servers:
    """Processors and their nodes: one per processor that shares, one per core where threads stick."""
    count = max(1, len(program.servers))
    ints = np.zeros((count, run.SERVER_INTS), dtype=np.int64)
    floats = np.zeros((count, run.SERVER_FLOATS))
    floats[:, run.V_NEXT] = inf
    states = np.zeros(count, dtype=np.uint64)
    nodes: list[tuple[int, int, int, int]] = []  # server, parent node, queues up, seats
    paces: list[tuple[float, float, float]] = []  # cores, speed, speed with parents
    part_seats: list[tuple[int, int, int, int, int]] = []  # node, core, number, pinned, place
    most_cores = 1
    for root, members in server_trees(program).items():
        ints[root, run.V_NODE], ints[root, run.V_NODES] = len(nodes), len(members)
        first = len(nodes)
        for index in members:
            spec = program.servers[index]
            parent = -1 if spec.parent < 0 else first + members.index(spec.parent)
            ints[index, run.V_OWN_NODE] = len(nodes)
            ints[index, run.V_KIND], ints[index, run.V_ROOT] = SHARED, root
            nodes.append((index, parent, spec.kind == FCFS, 0))
            paces.append((spec.cores, spec.speed, spec.pace))
    parts = sticky_parts(program)
    for index, spec in enumerate(program.servers):
        states[index] = resource_stream(bits, np.uint64(0), np.uint64(index))
        floats[index, run.V_SPEED], floats[index, run.V_PACE] = spec.speed, spec.pace
        floats[index, run.V_NEXT] = floats[index, run.V_BALANCE_AT] = inf
        floats[index, run.V_WAKE] = spec.migration.wake
        floats[index, run.V_STEAL] = spec.migration.steal
        floats[index, run.V_BALANCE] = spec.migration.balance
        if spec.turns is not None:
            floats[index, run.V_QUANTUM] = spec.turns.quantum
            floats[index, run.V_PREEMPT] = spec.turns.preempt
        if spec.kind == SHARED or (spec.nested and spec.kind != STICKY):
            continue
        cores = int(spec.cores)
        ints[index, run.V_KIND], ints[index, run.V_ROOT] = spec.kind, index
        ints[index, run.V_CORES] = ints[index, run.V_FREE] = cores
        ints[index, run.V_BY_PRIORITY] = spec.by_priority
        if spec.kind == STICKY:
            ints[index, run.V_NODE], ints[index, run.V_NODES] = len(nodes), cores
            nodes.extend((index, -1, 0, 0) for _ in range(cores))
            paces.extend((1.0, spec.speed, spec.speed) for _ in range(cores))
            members, first = parts[index], len(nodes)
            ints[index, run.V_PARTS] = len(members)
            for part in members:
                own, parent = program.servers[part], -1
                if own.parent != index:
                    parent = first + members.index(own.parent)
                ints[part, (run.V_NODE, run.V_OWN_NODE)] = len(nodes)
                ints[part, run.V_KIND], ints[part, run.V_ROOT], ints[part, run.V_NODES] = STICKY, index, 1
                part_seats.extend((len(nodes), core, 0, own.pinned, 0) for core in own.seats)
                nodes.append((part, parent, own.kind == FCFS, len(own.seats)))
                paces.append((own.cores, own.speed, own.pace))
        elif spec.kind == PREEMPTIVE:
            most_cores = max(most_cores, cores)
    falls = _falls(program, ints)
    preemptive = count if any(s.kind == PREEMPTIVE for s in program.servers) else 1
    return run.Servers(
        ints=ints,
        floats=floats,
        bits=states,
        heads=np.full((count, program.ranks), -1, dtype=np.int32),
        tails=np.full((count, program.ranks), -1, dtype=np.int32),
        running_ends=np.zeros((preemptive, most_cores)),
        running_ints=np.zeros((preemptive, most_cores, run.RUNNING_INTS), dtype=np.int64),
        node_ints=_array(
            [
                (*node[:3], 0, 0, end - node[3], end, -1, 0)
                for node, end in zip(nodes, np.cumsum([node[3] for node in nodes]), strict=True)
            ],
            run.NODE_INTS,
            np.int64,
        ),
        node_floats=np.array(
            [(*pace, *(0.0,) * (run.NODE_FLOATS - 3)) for pace in paces] or [(0.0,) * run.NODE_FLOATS]
        ),
        job_ends=np.empty((max(1, len(nodes)), 64)),
        job_numbers=np.empty((max(1, len(nodes)), 64), dtype=np.int64),
        job_flows=np.empty((max(1, len(nodes)), 64), dtype=np.int32),
        seat_cores=np.array(_seats(program, layout) or [0], dtype=np.int32),
        part_seats=_array(part_seats, run.PART_INTS, np.int64),
        part_marks=np.full((max(1, len(part_seats)), run.MARK_FLOATS), -1.0),
        falls=falls,
        winners=_winners(ints),
    )


def _winners(ints: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return who wins the tournament of processors while none of them has an event: the first of any two.

    Parts of processors, which come behind all others, do not take part.
    """
    own = ints[:, run.V_ROOT] == np.arange(len(ints))
    entrants = len(ints) if own.all() else int(np.argmin(own))
    winners = np.zeros(2 * entrants, dtype=np.int32)
    winners[entrants:] = np.arange(entrants)
    for at in range(entrants - 1, 0, -1):
        winners[at] = min(winners[2 * at], winners[2 * at + 1])
    return winners


def _falls(program: Program, ints: npt.NDArray[np.int64]) -> FloatArray:
    """Return since when cores sleep, of every processor that is no part, if it matters; note where."""
    ints[:, run.V_FALLS] = -1
    size = 0
    for index, spec in enumerate(program.servers):
        if program.sleeps and spec.parent < 0 and spec.cores < inf:
            ints[index, run.V_FALLS] = size
            size += int(spec.cores)
    return np.full(max(1, size), -inf)


def _seats(program: Program, layout: Layout) -> list[int]:
    """Return the first core of every thread that sticks to one, in the order in which stations count them."""
    seats: list[int] = []
    seated = [0] * len(program.servers)
    for index, task in enumerate(program.tasks):
        replicas = layout.first_station[index + 1] - layout.first_station[index]
        for _ in range(replicas):
            for server, count in task.seated:
                cores = int(program.servers[server].cores)
                seats.extend((seated[server] + k) % cores for k in range(count))
                seated[server] += count
    return seats
