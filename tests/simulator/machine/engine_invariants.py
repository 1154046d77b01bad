"""Check the invariants of the compiled engine's state, as ``simulator.machine.compiled.state`` states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mup.errors import SimulationError
from mup.lqn import Model
from simulator.machine.compiled import state as run
from simulator.machine.compiled.engine import CompiledEngine
from simulator.program import FCFS, LOCKED, SHARED, STICKY, compile_model

__all__ = ["violations", "violations_on_the_way"]

STOPS = 30


def _linked(head: int, links: Any) -> Iterator[int]:
    """Yield the rows of a list, from its head on; a list with a cycle ends as too long."""
    seen = 0
    while head >= 0:
        yield head
        seen += 1
        assert seen <= len(links), "a list of rows runs in a circle"
        head = int(links[head])


def violations_on_the_way(tested: Model, seed: int, *, optimised: bool) -> list[str]:
    """Return what is violated at some moments of a run, and where the engine asks for more room."""
    program = compile_model(tested)
    # All clients come at time 0: then most happens at the same moments.
    program = replace(program, populations=tuple(replace(p, first=p.start) for p in program.populations))
    times = [1 / p.rate if p.is_open else p.nominal.total for p in program.populations]
    engine = CompiledEngine(program, seed, optimised=optimised)
    found: list[str] = []
    enlarge = engine._enlarge

    def examined(what: int) -> None:
        found.extend(violations(engine._state))
        enlarge(what)
        found.extend(violations(engine._state))

    engine._enlarge = examined  # type: ignore[method-assign]
    for _ in range(STOPS):
        try:
            engine.run_until(engine.now + sum(times) / len(times) / 7)
        except SimulationError:
            break
        found += violations(engine._state)
    return found


def violations(state: run.State) -> list[str]:
    """Return every invariant that does not hold between two calls of ``advance``."""
    return [*_flows(state), *_frames(state), *_stations(state), *_heap(state), *_servers(state)]


def _links(s: run.State) -> Any:
    return s.flows.ints[:, run.NEXT]


def _free_flow(s: run.State) -> int:
    return int(s.scalars[run.FREE_FLOW])


def _flows(s: run.State) -> Iterator[str]:
    """Every flow is in exactly one place."""
    links = _links(s)
    places: dict[str, list[int]] = {
        "free": [*_linked(_free_flow(s), links)],
        "created": [*_linked(int(s.scalars[run.URGENT_HEAD]), links)],
        "ready": [*_linked(int(s.scalars[run.READY_HEAD]), links)],
        "heap": s.heap_flows[: s.scalars[run.HEAP_SIZE]].tolist(),
        "current": [int(s.scalars[run.CURRENT])] if s.scalars[run.CURRENT] >= 0 else [],
        "parked": [int(flow) for flow in s.frames.ints[_used_frames(s), run.PARKED] if flow >= 0],
        "stations": [flow for head in s.stations.heads.flat for flow in _linked(int(head), links)],
        "fronts": [
            flow for head in s.stations.front_heads[:, run.F_HEAD] for flow in _linked(int(head), links)
        ],
        "processors": [flow for head in s.servers.heads.flat for flow in _linked(int(head), links)],
        "jobs": [
            int(flow)
            for node, row in enumerate(s.servers.node_ints)
            for flow in s.servers.job_flows[node, : row[run.N_JOBS]]
        ],
        "preemptive": [int(flow) for server in range(len(s.servers.ints)) for flow in _preemptive(s, server)],
    }
    found = sorted(flow for flows in places.values() for flow in flows)
    if found != [*range(len(links))]:
        counts = {name: len(flows) for name, flows in places.items()}
        twice = {flow for flow in found if found.count(flow) > 1}
        lost = set(range(len(links))) - set(found)
        yield f"flows are not in exactly one place each: twice {twice}, nowhere {lost}; {counts}"


def _preemptive(s: run.State, server: int) -> list[int]:
    row = s.servers.ints[server]
    if row[run.V_KIND] in (SHARED, STICKY, FCFS):
        return []
    running = row[run.V_CORES] - row[run.V_FREE]
    flows: list[int] = s.servers.running_ints[server, :running, run.R_FLOW].tolist()
    return flows


def _used_frames(s: run.State) -> list[int]:
    free = set(_linked(int(s.scalars[run.FREE_FRAME]), s.frames.ints[:, run.CALLER]))
    return [frame for frame in range(len(s.frames.ints)) if frame not in free]


def _frames(s: run.State) -> Iterator[str]:
    """References are flows at work, a parked one, and one that brings the reply home."""
    for frame in _used_frames(s):
        row = s.frames.ints[frame]
        bringing = row[run.REFERENCES] - row[run.ACTIVE] - (row[run.PARKED] >= 0)
        if bringing not in (0, 1) or row[run.REFERENCES] < 1:
            yield f"request {frame} has {row[run.REFERENCES]} references, {row[run.ACTIVE]} flows at work"
        if (row[run.PARKED] >= 0) != (row[run.PARKED_AT] >= 0):
            yield f"request {frame}: flow {row[run.PARKED]} is parked at join {row[run.PARKED_AT]}"
        if row[run.INLINE] and row[run.CARRIER] != run.NO_FLOW:
            yield f"request {frame} has a carrier beside the flow that runs a branch inline"
        if row[run.RELEASED] and not row[run.ENDED]:
            yield f"request {frame} has given its thread back before its end"


def _stations(s: run.State) -> Iterator[str]:
    """Requests wait only while no place is free."""
    links = _links(s)
    waiting = np.zeros(len(s.records.levels))
    for station, row in enumerate(s.stations.ints):
        queues = [len([*_linked(int(head), links)]) for head in s.stations.heads[station]]
        if sum(queues) != row[run.S_WAITING]:
            yield f"station {station}: {queues} in queues, {row[run.S_WAITING]} counted"
        waiting[row[run.S_WAITING_LEVEL]] += row[run.S_WAITING]
        least = 0 if row[run.S_CAPACITY] < run.HALF_UNLIMITED else row[run.S_CAPACITY]
        if not least <= row[run.S_FREE] <= row[run.S_CAPACITY]:
            yield f"station {station}: {row[run.S_FREE]} of {row[run.S_CAPACITY]} places are free"
        if row[run.S_ADMISSION] != LOCKED and row[run.S_WAITING] and row[run.S_FREE]:
            yield f"station {station}: {row[run.S_WAITING]} wait, {row[run.S_FREE]} places are free"
        if row[run.S_ADMISSION] == LOCKED:
            if row[run.S_LET_IN] and row[run.S_FREE]:
                yield f"lock {station}: {row[run.S_LET_IN]} readers let in wait for a place that is free"
            if row[run.S_LET_IN] > queues[run.READERS] or row[run.S_WRITERS] < queues[run.WRITERS]:
                yield f"lock {station}: {queues} wait, {row[run.S_LET_IN]} let in, {row[run.S_WRITERS]} writers"
        if s.stations.front_heads[station, run.F_HEAD] >= 0 and row[run.S_FRONT_FREE]:
            yield f"front {station}: flows wait although it is free"
    for level in {int(row[run.S_WAITING_LEVEL]) for row in s.stations.ints}:
        if waiting[level] != s.records.levels[level, run.L_CONTENT]:
            yield f"level {level}: {waiting[level]} wait, {s.records.levels[level, run.L_CONTENT]} counted"


def _heap(s: run.State) -> Iterator[str]:
    """The heap is one by time and turn, with nothing before now."""
    size = int(s.scalars[run.HEAP_SIZE])
    keys = [(s.heap_times[i], s.flows.bits[s.heap_flows[i], run.TURN]) for i in range(size)]
    if any(keys[(i - 1) // 4] > keys[i] for i in range(1, size)):
        yield "the heap of events is out of order"
    if size and keys[0][0] < s.times[run.NOW]:
        yield f"an event at {keys[0][0]} is overdue at {s.times[run.NOW]}"


def _servers(s: run.State) -> Iterator[str]:
    """Flows queue at a processor only while all its cores are busy."""
    timed = s.heap_flows[: s.scalars[run.HEAP_SIZE]]
    on_cores = s.flows.ints[timed, run.SERVER]
    elsewhere = np.setdiff1d(np.arange(len(s.flows.ints)), [*timed, *_linked(_free_flow(s), _links(s))])
    if (s.flows.ints[elsewhere, run.SERVER] >= 0).any():
        yield "a flow that is not in the heap has a core of its own"
    for server, row in enumerate(s.servers.ints):
        queued = (s.servers.heads[server] >= 0).any()
        if row[run.V_KIND] == FCFS:
            if row[run.V_CORES] - row[run.V_FREE] != np.count_nonzero(on_cores == server):
                yield f"processor {server}: {row[run.V_FREE]} of {row[run.V_CORES]} cores are free"
            if queued and row[run.V_FREE]:
                yield f"processor {server}: flows queue although {row[run.V_FREE]} cores are free"
        if row[run.V_KIND] not in (FCFS, SHARED, STICKY) and queued and row[run.V_FREE]:
            yield f"processor {server}: flows queue although {row[run.V_FREE]} cores are free"
        if row[run.V_KIND] == STICKY and row[run.V_ROOT] == server:
            yield from _cores(s, server)
    winner = min((s.servers.floats[k, run.V_NEXT], k) for k in range(len(s.servers.winners) // 2))
    if s.servers.winners[1] != winner[1]:
        yield f"processor {s.servers.winners[1]} is said to be next; it is {winner[1]}"


def _cores(s: run.State, server: int) -> Iterator[str]:
    """The slots of every core are its jobs and the seats that run on it."""
    first, cores = s.servers.ints[server, [run.V_NODE, run.V_NODES]]
    owner = s.servers.ints[s.servers.node_ints[s.servers.part_seats[:, run.P_NODE], run.N_SERVER], run.V_ROOT]
    running = s.servers.part_seats[(owner == server) & (s.servers.part_seats[:, run.P_NUMBER] > 0)]
    for core in range(cores):
        jobs, slots = s.servers.node_ints[first + core, [run.N_JOBS, run.N_SLOTS]]
        seats = np.count_nonzero(running[:, run.P_CORE] == core)
        if slots != jobs + seats:
            yield f"core {core} of processor {server}: {slots} slots for {jobs} jobs and {seats} seats"
