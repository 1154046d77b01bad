"""What does the compiled engine do, step by step? The interpreter of programs, in one compiled function.

It executes the same instructions as ``simulator.reference`` with the same randomness in the same order, so
that both engines go through the same states at the same moments, bit for bit. What is different:

- State lives in arrays (``State``); flows, requests and jobs are rows. ``simulator.machine`` lays them out.
- *Look-ahead*: after a timed step a flow goes on at once, in its own local time, as long as it only does
  what no other flow can notice, and not beyond the moment the caller wants to see. It comes back into the
  order of events where it next touches something shared. Sums do not mind the order of their terms.
- *Inline branches* (FORK_JOIN): a plain fork-join is executed by one flow that uses the branch's stream and key
  in between, unless other flows that have been created at the same instant must start before.

Events are kept in a 4-ary heap ordered by (time, key of the flow).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.compiling import compiled
from simulator.program import (
    ACQUIRES,
    ADMIT,
    BEGIN,
    BRANCH_END,
    BY_FRONT,
    CALL,
    CHOICE,
    COUNT,
    CYCLE,
    DELAY,
    END,
    FCFS,
    FINISH,
    FORK,
    FORK_JOIN,
    FORWARD,
    FRONT_GIVE,
    FRONT_TAKE,
    GOTO,
    JOIN,
    LATE,
    LOOP,
    PREEMPTIVE,
    PRIORITY,
    RANDOM,
    REACQUIRE,
    RELEASE,
    RELEASES,
    REPLY,
    RETURN,
    SEND,
    SERVED,
    SHARED,
    SPLIT,
    STICKY,
    THINK,
    THOUGHT,
    USE,
)
from simulator.variates import draw, exponential, mix, split, uniform

__all__ = ["State", "advance", "create_first_flows", "link_free_flows", "link_free_frames", "server_accounts"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

INFINITE: Final = np.inf

# How ``advance`` ends.
DONE: Final = 0
MORE_FLOWS: Final = 1
MORE_FRAMES: Final = 2
MORE_JOBS: Final = 3
DEADLOCK: Final = 4
JOIN_STUCK: Final = 5
SPINNING: Final = 6
TOKEN_OVERFLOW: Final = 7
ENDLESS: Final = 8

MAX_EMPTY_CYCLES: Final = 10_000
MAX_STANDSTILL: Final = 50_000_000

UNLIMITED: Final = 1 << 60
HALF_UNLIMITED: Final = 1 << 59

# ``State.scalars``.
EVENTS: Final = 0
HEAP_SIZE: Final = 1
FREE_FLOW: Final = 2
FREE_FRAME: Final = 3
URGENT_HEAD: Final = 4
URGENT_TAIL: Final = 5
READY_HEAD: Final = 6
READY_TAIL: Final = 7
CURRENT: Final = 8
AHEAD: Final = 9
STANDSTILL: Final = 10
CULPRIT: Final = 11
LOOK_AHEAD: Final = 12
TRACING: Final = 13
TRACED: Final = 14
SCALARS: Final = 16

# ``State.times``.
NOW: Final = 0
LOCAL: Final = 1

# Columns of flows.
AT: Final = 0
FRAME: Final = 1
NEXT: Final = 2
SERVER: Final = 3
OWN_CORE: Final = 4
SEAT_USED: Final = 5
EMPTY: Final = 6
COUNTED: Final = 7
FLOW_INTS: Final = 8
SINCE: Final = 0
DEMAND: Final = 1
LEFT_OVER: Final = 2
FLOW_FLOATS: Final = 4
STREAM: Final = 0
KEY: Final = 1
TURN: Final = 2

# Columns of frames (requests).
ENTRY: Final = 0
STATION: Final = 1
CALLER: Final = 2
RETURN_TO: Final = 3
SITE: Final = 4
CARRIER: Final = 5
ACTIVE: Final = 6
REFERENCES: Final = 7
PARKED: Final = 8
PARKED_AT: Final = 9
ENDED: Final = 10
RELEASED: Final = 11
REPLIED: Final = 12
POPULATION: Final = 13
SEAT: Final = 14
INLINE: Final = 15
SAVED_CORE: Final = 16
CARRIED: Final = 17
FRAME_INTS: Final = 20
ARRIVED: Final = 0
ASKED: Final = 1
ADMITTED: Final = 2
THOUGHT_TIME: Final = 3

NOBODY: Final = -1
"""No flow carries the request (any more)."""
AWAY: Final = -2
"""The flow that carries the request has made a call; whichever flow brings the reply carries on."""

# Columns of stations.
S_FREE: Final = 0
S_CAPACITY: Final = 1
S_ADMISSION: Final = 2
S_WAITING: Final = 3
S_WAITING_LEVEL: Final = 4
S_BUSY_LEVEL: Final = 5
S_FRONT_FREE: Final = 6
S_SEATS: Final = 7
S_SEATED: Final = 8
S_FRONT_SEAT: Final = 9
STATION_INTS: Final = 10

# Columns of servers.
V_KIND: Final = 0
V_ROOT: Final = 1
V_NODE: Final = 2
V_NODES: Final = 3
V_OWN_NODE: Final = 4
V_CORES: Final = 5
V_FREE: Final = 6
V_BY_PRIORITY: Final = 7
V_ARRIVALS: Final = 8
V_NEXT_NODE: Final = 9
SERVER_INTS: Final = 10
V_SPEED: Final = 0
V_PACE: Final = 1
V_NEXT: Final = 2
V_LAST: Final = 3
V_BUSY: Final = 4
V_DONE: Final = 5
V_STARTS: Final = 6
V_WAKE: Final = 7
V_STEAL: Final = 8
V_BALANCE: Final = 9
V_BALANCE_AT: Final = 10
SERVER_FLOATS: Final = 12

NOTICED_BY_BRANCHES: Final = (THINK, THOUGHT, CALL, FORWARD, COUNT, LOOP, SPLIT, BEGIN, FINISH)
"""What a flow may not do ahead of time while other branches of its request are at work."""

# Columns of nodes.
N_SERVER: Final = 0
N_PARENT: Final = 1
N_QUEUES: Final = 2
N_JOBS: Final = 3
N_CORES: Final = 0
N_SPEED: Final = 1
N_PACE: Final = 2
N_VIRTUAL: Final = 3
N_RATE: Final = 4
N_BUSY: Final = 5
N_DONE: Final = 6
N_LOAD: Final = 7

# Columns of levels.
L_ENTERED: Final = 0
L_LEFT: Final = 1
L_CONTENT: Final = 2
L_AREA: Final = 3
L_SINCE: Final = 4
L_TIME: Final = 5
L_LAST: Final = 6


class State(NamedTuple):
    """All arrays the interpreter works on; the column names above say what is where."""

    scalars: Longs
    times: Floats
    code: Ints
    kinds: Longs
    parameters: Floats
    data: Floats
    choice_bounds: Ints
    choice_odds: Floats
    choice_addresses: Ints
    joins: Ints
    entries: Ints
    tasks: Ints
    sites: Ints
    populations: Ints
    station_ints: Longs
    station_bits: Bits
    station_heads: Ints
    station_tails: Ints
    front_heads: Ints
    seat_cores: Ints
    seat_stack: Ints
    server_ints: Longs
    server_floats: Floats
    server_bits: Bits
    server_heads: Ints
    server_tails: Ints
    running_ends: Floats
    running_ints: Any
    node_ints: Longs
    node_floats: Floats
    job_ends: Floats
    job_numbers: Longs
    job_flows: Ints
    levels: Floats
    cycles: Floats
    site_sums: Floats
    join_sums: Floats
    activity_sums: Floats
    cycle_samples: Any
    cycle_counts: Longs
    entry_samples: Any
    entry_counts: Longs
    flow_ints: Ints
    flow_floats: Floats
    flow_bits: Bits
    heap_times: Floats
    heap_flows: Ints
    frame_ints: Ints
    frame_floats: Floats
    frame_bits: Bits
    frame_clocks: Floats
    frame_registers: Longs
    frame_slots: Ints
    scratch: Floats
    trace_times: Floats
    trace_keys: Bits


# Rows that are free are linked.


@compiled
def link_free_flows(s: State, first: int) -> None:
    """Put the flows from row ``first`` on into the list of free ones."""
    for row in range(len(s.flow_ints) - 1, first - 1, -1):
        s.flow_ints[row, NEXT] = s.scalars[FREE_FLOW]
        s.scalars[FREE_FLOW] = row


@compiled
def link_free_frames(s: State, first: int) -> None:
    """Put the frames from row ``first`` on into the list of free ones."""
    for row in range(len(s.frame_ints) - 1, first - 1, -1):
        s.frame_ints[row, CALLER] = s.scalars[FREE_FRAME]
        s.scalars[FREE_FRAME] = row


@compiled
def new_flow(scalars: Longs, flow_ints: Ints, flow_bits: Bits, stream: Any, frame: int, at: int) -> int:
    """Take a free flow (there must be one); it is not in any queue yet."""
    flow: int = scalars[FREE_FLOW]
    scalars[FREE_FLOW] = flow_ints[flow, NEXT]
    flow_ints[flow, AT] = at
    flow_ints[flow, FRAME] = frame
    flow_ints[flow, SERVER] = -1
    flow_ints[flow, OWN_CORE] = -1
    flow_ints[flow, EMPTY] = 0
    flow_bits[flow, STREAM] = stream
    flow_bits[flow, KEY] = stream
    flow_bits[flow, TURN] = stream
    return flow


@compiled
def free_flow(scalars: Longs, flow_ints: Ints, flow: int) -> None:
    """Give a flow's row back."""
    flow_ints[flow, NEXT] = scalars[FREE_FLOW]
    scalars[FREE_FLOW] = flow


@compiled
def new_frame(
    scalars: Longs,
    frame_ints: Ints,
    frame_floats: Floats,
    frame_slots: Ints,
    entry: int,
    caller: int,
    return_to: int,
    site: int,
    carrier: int,
    now: float,
) -> int:
    """Take a free frame (there must be one) for a request."""
    frame: int = scalars[FREE_FRAME]
    scalars[FREE_FRAME] = frame_ints[frame, CALLER]
    frame_ints[frame, ENTRY] = entry
    frame_ints[frame, STATION] = -1
    frame_ints[frame, CALLER] = caller
    frame_ints[frame, RETURN_TO] = return_to
    frame_ints[frame, SITE] = site
    frame_ints[frame, CARRIER] = carrier
    frame_ints[frame, ACTIVE] = 1
    frame_ints[frame, REFERENCES] = 1
    frame_ints[frame, PARKED] = -1
    frame_ints[frame, PARKED_AT] = -1
    frame_ints[frame, ENDED] = 0
    frame_ints[frame, RELEASED] = 0
    frame_ints[frame, REPLIED] = 0
    frame_ints[frame, POPULATION] = -1
    frame_ints[frame, SEAT] = -1
    frame_ints[frame, INLINE] = 0
    frame_ints[frame, CARRIED] = 0
    frame_floats[frame, ARRIVED] = now
    frame_floats[frame, ASKED] = now
    frame_floats[frame, ADMITTED] = now
    frame_floats[frame, THOUGHT_TIME] = 0.0
    for slot in range(frame_slots.shape[1]):
        frame_slots[frame, slot] = 0
    return frame


@compiled
def drop_frame(scalars: Longs, frame_ints: Ints, frame: int) -> None:
    """One flow less refers to a request; the last one frees its row."""
    frame_ints[frame, REFERENCES] -= 1
    if frame_ints[frame, REFERENCES] == 0:
        frame_ints[frame, CALLER] = scalars[FREE_FRAME]
        scalars[FREE_FRAME] = frame


# Two queues of flows that go on at the present instant.


@compiled
def push_urgent(scalars: Longs, flow_ints: Ints, flow: int) -> None:
    """A flow has been created."""
    flow_ints[flow, NEXT] = -1
    if scalars[URGENT_HEAD] < 0:
        scalars[URGENT_HEAD] = flow
    else:
        flow_ints[scalars[URGENT_TAIL], NEXT] = flow
    scalars[URGENT_TAIL] = flow


@compiled
def push_ready(scalars: Longs, flow_ints: Ints, flow: int) -> None:
    """A flow may go on."""
    flow_ints[flow, NEXT] = -1
    if scalars[READY_HEAD] < 0:
        scalars[READY_HEAD] = flow
    else:
        flow_ints[scalars[READY_TAIL], NEXT] = flow
    scalars[READY_TAIL] = flow


# The heap of events.


@compiled
def sift_up(times: Floats, flows: Ints, bits: Bits, at: int, time: float, flow: int) -> None:
    """Insert an event, coming from the vacant place ``at``."""
    while at > 0:
        above = (at - 1) >> 2
        other = times[above]
        if time < other or (time == other and bits[flow, TURN] < bits[flows[above], TURN]):
            times[at] = other
            flows[at] = flows[above]
            at = above
        else:
            break
    times[at] = time
    flows[at] = flow


@compiled
def sift_down(times: Floats, flows: Ints, bits: Bits, size: int, time: float, flow: int) -> None:
    """Insert an event where the root of a heap of this size (the root included) is vacant."""
    at = 0
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        best = first
        soonest = times[first]
        last = min(first + 4, size)
        for child in range(first + 1, last):
            candidate = times[child]
            if candidate < soonest or (
                candidate == soonest and bits[flows[child], TURN] < bits[flows[best], TURN]
            ):
                best = child
                soonest = candidate
        if soonest < time or (soonest == time and bits[flows[best], TURN] < bits[flow, TURN]):
            times[at] = soonest
            flows[at] = flows[best]
            at = best
        else:
            break
    times[at] = time
    flows[at] = flow


# Levels, tallies, samples.


@compiled
def enter(levels: Floats, level: int, now: float) -> None:
    """Count one that comes in (see ``simulator.recording.Level``)."""
    content = levels[level, L_CONTENT]
    levels[level, L_AREA] += content * (now - levels[level, L_LAST])
    levels[level, L_LAST] = now
    levels[level, L_CONTENT] = content + 1.0
    levels[level, L_ENTERED] += 1.0
    levels[level, L_SINCE] += now


@compiled
def leave(levels: Floats, level: int, now: float, since: float) -> None:
    """Count one that goes out."""
    content = levels[level, L_CONTENT]
    levels[level, L_AREA] += content * (now - levels[level, L_LAST])
    levels[level, L_LAST] = now
    levels[level, L_CONTENT] = content - 1.0
    levels[level, L_LEFT] += 1.0
    levels[level, L_TIME] += now - since
    if content == 1.0:
        levels[level, L_SINCE] = 0.0
    else:
        levels[level, L_SINCE] -= since


@compiled
def sample(values: Any, counts: Longs, which: int, end: float, value: float, bits_of: Floats) -> None:
    """Keep a single time, or not (see ``simulator.recording.Samples``)."""
    mask = counts[which, 1]
    if mask:
        bits_of[0] = end
        if mix(bits_of.view(np.uint64)[0]) & np.uint64(mask):
            return
    count = counts[which, 0]
    values[which, count, 0] = end
    values[which, count, 1] = value
    count += 1
    while count >= values.shape[1]:
        mask = 2 * mask + 1
        kept = 0
        for i in range(count):
            bits_of[0] = values[which, i, 0]
            if not mix(bits_of.view(np.uint64)[0]) & np.uint64(mask):
                values[which, kept, 0] = values[which, i, 0]
                values[which, kept, 1] = values[which, i, 1]
                kept += 1
        count = kept
    counts[which, 0] = count
    counts[which, 1] = mask


# Jobs on nodes: binary heaps by (virtual end, number).


@compiled
def job_push(
    ends: Floats, numbers: Longs, flows: Ints, node: int, size: int, end: float, number: int, flow: int
) -> None:
    """Insert a job into the heap of a node that holds ``size`` jobs."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if end < ends[node, above] or (end == ends[node, above] and number < numbers[node, above]):
            ends[node, at] = ends[node, above]
            numbers[node, at] = numbers[node, above]
            flows[node, at] = flows[node, above]
            at = above
        else:
            break
    ends[node, at] = end
    numbers[node, at] = number
    flows[node, at] = flow


@compiled
def job_remove(ends: Floats, numbers: Longs, flows: Ints, node: int, size: int, at: int) -> None:
    """Remove the job at a position of the heap of a node that holds ``size`` jobs."""
    last = size - 1
    if at == last:
        return
    end, number, flow = ends[node, last], numbers[node, last], flows[node, last]
    # The last job may belong above the gap or below it.
    while at > 0:
        above = (at - 1) >> 1
        if end < ends[node, above] or (end == ends[node, above] and number < numbers[node, above]):
            ends[node, at] = ends[node, above]
            numbers[node, at] = numbers[node, above]
            flows[node, at] = flows[node, above]
            at = above
        else:
            break
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (
            ends[node, other] < ends[node, child]
            or (ends[node, other] == ends[node, child] and numbers[node, other] < numbers[node, child])
        ):
            child = other
        if ends[node, child] < end or (ends[node, child] == end and numbers[node, child] < number):
            ends[node, at] = ends[node, child]
            numbers[node, at] = numbers[node, child]
            flows[node, at] = flows[node, child]
            at = child
        else:
            break
    ends[node, at] = end
    numbers[node, at] = number
    flows[node, at] = flow


# Trees of processors that share (see ``simulator.servers.SharedServers``).


@compiled
def tree_advance(
    server_ints: Longs, server_floats: Floats, node_ints: Longs, node_floats: Floats, root: int, now: float
) -> None:
    """Bring virtual time and the busy accounts up to now."""
    elapsed = now - server_floats[root, V_LAST]
    first = server_ints[root, V_NODE]
    for node in range(first, first + server_ints[root, V_NODES]):
        jobs = node_ints[node, N_JOBS]
        if jobs > 0:
            rate = node_floats[node, N_RATE]
            node_floats[node, N_BUSY] += jobs * rate / node_floats[node, N_PACE] * elapsed
            node_floats[node, N_VIRTUAL] += elapsed * rate
    server_floats[root, V_LAST] = now


@compiled
def tree_schedule(
    server_ints: Longs,
    server_floats: Floats,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    root: int,
    now: float,
) -> None:
    """Set all rates, and the moment of the first job that will be done at these rates."""
    first = server_ints[root, V_NODE]
    behind = first + server_ints[root, V_NODES]
    for node in range(first, behind):
        node_floats[node, N_LOAD] = float(node_ints[node, N_JOBS])
    for node in range(behind - 1, first, -1):
        parent = node_ints[node, N_PARENT]
        node_floats[parent, N_LOAD] += min(node_floats[node, N_LOAD], node_floats[node, N_CORES])
    soonest = INFINITE
    for node in range(first, behind):
        share = 1.0
        if node_floats[node, N_LOAD] > node_floats[node, N_CORES]:
            share = node_floats[node, N_CORES] / node_floats[node, N_LOAD]
        rate = node_floats[node, N_SPEED] * share
        if node > first:
            rate = rate * node_floats[node_ints[node, N_PARENT], N_RATE]
        node_floats[node, N_RATE] = rate
        if node_ints[node, N_JOBS] > 0:
            left = max(0.0, job_ends[node, 0] - node_floats[node, N_VIRTUAL]) / rate
            if left < soonest:
                soonest = left
                server_ints[root, V_NEXT_NODE] = node
    server_floats[root, V_NEXT] = now + soonest


@compiled
def tree_use(
    server_ints: Longs,
    server_floats: Floats,
    server_heads: Ints,
    server_tails: Ints,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    server: int,
    flow: int,
    demand: float,
    now: float,
) -> None:
    """Start a job, or queue it at a node that takes only as many as it has cores."""
    root = server_ints[server, V_ROOT]
    tree_advance(server_ints, server_floats, node_ints, node_floats, root, now)
    node = server_ints[server, V_OWN_NODE]
    jobs = node_ints[node, N_JOBS]
    if node_ints[node, N_QUEUES] and jobs >= node_floats[node, N_CORES]:
        append_to_server(server_heads, server_tails, flow_ints, server, 0, flow)
        return
    if jobs == 0:
        node_floats[node, N_VIRTUAL] = 0.0
    server_ints[root, V_ARRIVALS] += 1
    job_push(
        job_ends,
        job_numbers,
        job_flows,
        node,
        jobs,
        node_floats[node, N_VIRTUAL] + demand,
        server_ints[root, V_ARRIVALS],
        flow,
    )
    node_ints[node, N_JOBS] = jobs + 1
    tree_schedule(server_ints, server_floats, node_ints, node_floats, job_ends, root, now)


@compiled
def tree_finish(
    scalars: Longs,
    server_ints: Longs,
    server_floats: Floats,
    server_heads: Ints,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    flow_floats: Floats,
    root: int,
    now: float,
) -> None:
    """The first job of a tree is done, and whatever ends with it."""
    tree_advance(server_ints, server_floats, node_ints, node_floats, root, now)
    node = server_ints[root, V_NEXT_NODE]
    virtual = job_ends[node, 0]
    node_floats[node, N_VIRTUAL] = virtual
    jobs = node_ints[node, N_JOBS]
    while jobs > 0 and job_ends[node, 0] <= virtual:
        flow = job_flows[node, 0]
        job_remove(job_ends, job_numbers, job_flows, node, jobs, 0)
        jobs -= 1
        node_floats[node, N_DONE] += flow_floats[flow, DEMAND]
        push_ready(scalars, flow_ints, flow)
    if node_ints[node, N_QUEUES]:
        server = node_ints[node, N_SERVER]
        while jobs < node_floats[node, N_CORES] and server_heads[server, 0] >= 0:
            flow = take_from_server(server_heads, flow_ints, server, 0)
            server_ints[root, V_ARRIVALS] += 1
            job_push(
                job_ends,
                job_numbers,
                job_flows,
                node,
                jobs,
                virtual + flow_floats[flow, DEMAND],
                server_ints[root, V_ARRIVALS],
                flow,
            )
            jobs += 1
    node_ints[node, N_JOBS] = jobs
    tree_schedule(server_ints, server_floats, node_ints, node_floats, job_ends, root, now)


@compiled
def append_to_server(heads: Ints, tails: Ints, flow_ints: Ints, server: int, rank: int, flow: int) -> None:
    """Queue a flow at a processor."""
    flow_ints[flow, NEXT] = -1
    if heads[server, rank] < 0:
        heads[server, rank] = flow
    else:
        flow_ints[tails[server, rank], NEXT] = flow
    tails[server, rank] = flow


@compiled
def take_from_server(heads: Ints, flow_ints: Ints, server: int, rank: int) -> int:
    """Return the first of a queue that is not empty, removed."""
    flow: int = heads[server, rank]
    heads[server, rank] = flow_ints[flow, NEXT]
    return flow


# Preemptive priorities (see ``simulator.servers.PreemptiveServer``).


@compiled
def preemptive_start(
    server_ints: Longs,
    server_floats: Floats,
    running_ends: Floats,
    running_ints: Any,
    server: int,
    flow: int,
    left: float,
    rank: int,
    now: float,
) -> None:
    """Give a free core to a flow."""
    server_ints[server, V_ARRIVALS] += 1
    at = server_ints[server, V_CORES] - server_ints[server, V_FREE]
    running_ends[server, at] = now + left / server_floats[server, V_SPEED]
    running_ints[server, at, 0] = server_ints[server, V_ARRIVALS]
    running_ints[server, at, 1] = rank
    running_ints[server, at, 2] = flow
    server_ints[server, V_FREE] -= 1


@compiled
def preemptive_remove(
    server_ints: Longs, running_ends: Floats, running_ints: Any, server: int, at: int
) -> None:
    """Take the core from a running flow."""
    server_ints[server, V_FREE] += 1
    last = server_ints[server, V_CORES] - server_ints[server, V_FREE]
    running_ends[server, at] = running_ends[server, last]
    for column in range(3):
        running_ints[server, at, column] = running_ints[server, last, column]


@compiled
def preemptive_schedule(server_ints: Longs, server_floats: Floats, running_ends: Floats, server: int) -> None:
    """Find the first flow that will be done."""
    soonest = INFINITE
    for at in range(server_ints[server, V_CORES] - server_ints[server, V_FREE]):
        soonest = min(soonest, running_ends[server, at])
    server_floats[server, V_NEXT] = soonest


@compiled
def running_account(server_ints: Longs, server_floats: Floats, server: int, now: float) -> None:
    """Bring the busy account of a processor with single jobs per core up to now."""
    running = server_ints[server, V_CORES] - server_ints[server, V_FREE]
    server_floats[server, V_BUSY] += running * (now - server_floats[server, V_LAST])
    server_floats[server, V_LAST] = now


@compiled
def preemptive_use(
    server_ints: Longs,
    server_floats: Floats,
    server_heads: Ints,
    server_tails: Ints,
    running_ends: Floats,
    running_ints: Any,
    flow_ints: Ints,
    flow_floats: Floats,
    server: int,
    flow: int,
    demand: float,
    rank: int,
    now: float,
) -> None:
    """Start a flow, perhaps in place of a less urgent one, or queue it."""
    running_account(server_ints, server_floats, server, now)
    server_floats[server, V_DONE] += demand
    running = server_ints[server, V_CORES] - server_ints[server, V_FREE]
    if server_ints[server, V_FREE] > 0:
        preemptive_start(
            server_ints, server_floats, running_ends, running_ints, server, flow, demand, rank, now
        )
    else:
        worst = 0
        for at in range(1, running):
            if running_ints[server, at, 1] > running_ints[server, worst, 1] or (
                running_ints[server, at, 1] == running_ints[server, worst, 1]
                and running_ints[server, at, 0] > running_ints[server, worst, 0]
            ):
                worst = at
        loser = running_ints[server, worst, 1]
        if loser > rank:
            other = running_ints[server, worst, 2]
            left = (running_ends[server, worst] - now) * server_floats[server, V_SPEED]
            flow_floats[other, LEFT_OVER] = left
            if server_heads[server, loser] < 0:
                server_tails[server, loser] = other
            flow_ints[other, NEXT] = server_heads[server, loser]
            server_heads[server, loser] = other
            preemptive_remove(server_ints, running_ends, running_ints, server, worst)
            preemptive_start(
                server_ints, server_floats, running_ends, running_ints, server, flow, demand, rank, now
            )
        else:
            flow_floats[flow, LEFT_OVER] = demand
            append_to_server(server_heads, server_tails, flow_ints, server, rank, flow)
    preemptive_schedule(server_ints, server_floats, running_ends, server)


@compiled
def preemptive_finish(
    scalars: Longs,
    server_ints: Longs,
    server_floats: Floats,
    server_heads: Ints,
    running_ends: Floats,
    running_ints: Any,
    flow_ints: Ints,
    flow_floats: Floats,
    server: int,
    now: float,
) -> None:
    """A running flow is done; the most urgent waiting one goes on."""
    running_account(server_ints, server_floats, server, now)
    first = 0
    for at in range(1, server_ints[server, V_CORES] - server_ints[server, V_FREE]):
        if running_ends[server, at] < running_ends[server, first] or (
            running_ends[server, at] == running_ends[server, first]
            and running_ints[server, at, 0] < running_ints[server, first, 0]
        ):
            first = at
    flow = running_ints[server, first, 2]
    preemptive_remove(server_ints, running_ends, running_ints, server, first)
    push_ready(scalars, flow_ints, flow)
    for rank in range(server_heads.shape[1]):
        if server_heads[server, rank] >= 0:
            other = take_from_server(server_heads, flow_ints, server, rank)
            preemptive_start(
                server_ints,
                server_floats,
                running_ends,
                running_ints,
                server,
                other,
                flow_floats[other, LEFT_OVER],
                rank,
                now,
            )
            break
    preemptive_schedule(server_ints, server_floats, running_ends, server)


# Sticky threads (see ``simulator.servers.StickyServer``).


@compiled
def sticky_extreme(node_ints: Longs, first: int, cores: int, sign: int) -> int:
    """Return the first of the cores with the most (sign 1) or fewest (sign -1) flows."""
    best = 0
    for core in range(1, cores):
        if sign * node_ints[first + core, N_JOBS] > sign * node_ints[first + best, N_JOBS]:
            best = core
    return best


@compiled
def sticky_advance(
    server_ints: Longs, server_floats: Floats, node_ints: Longs, node_floats: Floats, server: int, now: float
) -> None:
    """Bring virtual times and the busy account up to now."""
    elapsed = now - server_floats[server, V_LAST]
    first = server_ints[server, V_NODE]
    speed = server_floats[server, V_SPEED]
    for node in range(first, first + server_ints[server, V_NODES]):
        jobs = node_ints[node, N_JOBS]
        if jobs > 0:
            server_floats[server, V_BUSY] += elapsed
            node_floats[node, N_VIRTUAL] += elapsed * (speed / jobs)
    server_floats[server, V_LAST] = now


@compiled
def sticky_put(
    seat_cores: Ints,
    node_ints: Longs,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    node: int,
    end: float,
    number: int,
    flow: int,
    core: int,
) -> None:
    """Put a job on a core, and note that its thread is there now."""
    jobs = node_ints[node, N_JOBS]
    job_push(job_ends, job_numbers, job_flows, node, jobs, end, number, flow)
    node_ints[node, N_JOBS] = jobs + 1
    seat = flow_ints[flow, SEAT_USED]
    if seat >= 0:
        seat_cores[seat] = core
    else:
        flow_ints[flow, OWN_CORE] = core


@compiled
def sticky_move(
    seat_cores: Ints,
    server_ints: Longs,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    server: int,
    source: int,
    target: int,
) -> None:
    """Move the flow that came last from one core to another."""
    first = server_ints[server, V_NODE]
    there, here = first + source, first + target
    jobs = node_ints[there, N_JOBS]
    latest = 0
    for at in range(1, jobs):
        if job_numbers[there, at] > job_numbers[there, latest]:
            latest = at
    left = job_ends[there, latest] - node_floats[there, N_VIRTUAL]
    number, flow = job_numbers[there, latest], job_flows[there, latest]
    job_remove(job_ends, job_numbers, job_flows, there, jobs, latest)
    node_ints[there, N_JOBS] = jobs - 1
    if node_ints[here, N_JOBS] == 0:
        node_floats[here, N_VIRTUAL] = 0.0
    sticky_put(
        seat_cores,
        node_ints,
        job_ends,
        job_numbers,
        job_flows,
        flow_ints,
        here,
        node_floats[here, N_VIRTUAL] + left,
        number,
        flow,
        target,
    )


@compiled
def sticky_settle(
    server_ints: Longs,
    server_floats: Floats,
    server_bits: Bits,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    server: int,
    now: float,
) -> None:
    """After every change: is there something to balance, and what is the next thing to happen?"""
    first, cores = server_ints[server, V_NODE], server_ints[server, V_NODES]
    floats, speed = server_floats, server_floats[server, V_SPEED]
    if floats[server, V_BALANCE] > 0.0:
        most = node_ints[first + sticky_extreme(node_ints, first, cores, 1), N_JOBS]
        least = node_ints[first + sticky_extreme(node_ints, first, cores, -1), N_JOBS]
        if most - least < 2:
            floats[server, V_BALANCE_AT] = INFINITE
        elif floats[server, V_BALANCE_AT] == INFINITE:
            state, wait = exponential(1.0 / floats[server, V_BALANCE], server_bits[server])
            server_bits[server] = state
            floats[server, V_BALANCE_AT] = now + wait
    soonest = floats[server, V_BALANCE_AT]
    server_ints[server, V_NEXT_NODE] = -1
    for node in range(first, first + cores):
        jobs = node_ints[node, N_JOBS]
        if jobs > 0:
            left = max(0.0, job_ends[node, 0] - node_floats[node, N_VIRTUAL]) / (speed / jobs)
            if now + left < soonest:
                soonest = now + left
                server_ints[server, V_NEXT_NODE] = node
    floats[server, V_NEXT] = soonest


@compiled
def sticky_use(
    seat_cores: Ints,
    server_ints: Longs,
    server_floats: Floats,
    server_bits: Bits,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    server: int,
    flow: int,
    demand: float,
    seat: int,
    now: float,
) -> None:
    """Start a flow on the core it chooses."""
    sticky_advance(server_ints, server_floats, node_ints, node_floats, server, now)
    first, cores = server_ints[server, V_NODE], server_ints[server, V_NODES]
    core = seat_cores[seat] if seat >= 0 else flow_ints[flow, OWN_CORE]
    if core < 0 or core >= cores:
        core = sticky_extreme(node_ints, first, cores, -1)
    elif node_ints[first + core, N_JOBS] > 0 and server_floats[server, V_WAKE] > 0.0:
        idle = sticky_extreme(node_ints, first, cores, -1)
        if node_ints[first + idle, N_JOBS] == 0:
            state, u = uniform(server_bits[server])
            server_bits[server] = state
            if u < server_floats[server, V_WAKE]:
                core = idle
    if node_ints[first + core, N_JOBS] == 0:
        node_floats[first + core, N_VIRTUAL] = 0.0
    server_ints[server, V_ARRIVALS] += 1
    flow_ints[flow, SEAT_USED] = seat
    end = node_floats[first + core, N_VIRTUAL] + demand
    sticky_put(
        seat_cores,
        node_ints,
        job_ends,
        job_numbers,
        job_flows,
        flow_ints,
        first + core,
        end,
        server_ints[server, V_ARRIVALS],
        flow,
        core,
    )
    sticky_settle(server_ints, server_floats, server_bits, node_ints, node_floats, job_ends, server, now)


@compiled
def sticky_act(
    scalars: Longs,
    seat_cores: Ints,
    server_ints: Longs,
    server_floats: Floats,
    server_bits: Bits,
    node_ints: Longs,
    node_floats: Floats,
    job_ends: Floats,
    job_numbers: Longs,
    job_flows: Ints,
    flow_ints: Ints,
    flow_floats: Floats,
    server: int,
    now: float,
) -> None:
    """A job is done, or it is time to balance."""
    sticky_advance(server_ints, server_floats, node_ints, node_floats, server, now)
    first, cores = server_ints[server, V_NODE], server_ints[server, V_NODES]
    node = server_ints[server, V_NEXT_NODE]
    if node < 0:
        server_floats[server, V_BALANCE_AT] = INFINITE
        source = sticky_extreme(node_ints, first, cores, 1)
        sticky_move(
            seat_cores,
            server_ints,
            node_ints,
            node_floats,
            job_ends,
            job_numbers,
            job_flows,
            flow_ints,
            server,
            source,
            sticky_extreme(node_ints, first, cores, -1),
        )
    else:
        virtual = job_ends[node, 0]
        node_floats[node, N_VIRTUAL] = virtual
        jobs = node_ints[node, N_JOBS]
        while jobs > 0 and job_ends[node, 0] <= virtual:
            flow = job_flows[node, 0]
            job_remove(job_ends, job_numbers, job_flows, node, jobs, 0)
            jobs -= 1
            server_floats[server, V_DONE] += flow_floats[flow, DEMAND]
            push_ready(scalars, flow_ints, flow)
        node_ints[node, N_JOBS] = jobs
        if jobs == 0 and server_floats[server, V_STEAL] > 0.0:
            source = sticky_extreme(node_ints, first, cores, 1)
            if node_ints[first + source, N_JOBS] >= 2:
                state, u = uniform(server_bits[server])
                server_bits[server] = state
                if u < server_floats[server, V_STEAL]:
                    sticky_move(
                        seat_cores,
                        server_ints,
                        node_ints,
                        node_floats,
                        job_ends,
                        job_numbers,
                        job_flows,
                        flow_ints,
                        server,
                        source,
                        node - first,
                    )
    sticky_settle(server_ints, server_floats, server_bits, node_ints, node_floats, job_ends, server, now)


# Stations.


@compiled
def give_thread(
    scalars: Longs,
    station_ints: Longs,
    station_bits: Bits,
    station_heads: Ints,
    station_tails: Ints,
    seat_stack: Ints,
    levels: Floats,
    site_sums: Floats,
    flow_ints: Ints,
    frame_ints: Ints,
    frame_floats: Floats,
    station: int,
    seat: int,
    now: float,
) -> None:
    """A thread is free: somebody who waits has it from this moment on, or nobody."""
    ints = station_ints
    if ints[station, S_WAITING] > 0:
        ints[station, S_WAITING] -= 1
        for rank in range(station_heads.shape[1]):
            flow = station_heads[station, rank]
            if flow < 0:
                continue
            before = -1
            if ints[station, S_ADMISSION] == RANDOM and ints[station, S_WAITING] > 0:
                state, u = uniform(station_bits[station])
                station_bits[station] = state
                for _ in range(int(u * (ints[station, S_WAITING] + 1))):
                    before = flow
                    flow = flow_ints[flow, NEXT]
            following = flow_ints[flow, NEXT]
            if before < 0:
                station_heads[station, rank] = following
            else:
                flow_ints[before, NEXT] = following
            if following < 0:
                station_tails[station, rank] = before
            frame = flow_ints[flow, FRAME]
            asked = frame_floats[frame, ASKED]
            leave(levels, ints[station, S_WAITING_LEVEL], now, asked)
            enter(levels, ints[station, S_BUSY_LEVEL], now)
            frame_ints[frame, SEAT] = seat
            frame_floats[frame, ADMITTED] = now
            if flow_ints[flow, COUNTED]:
                site_sums[frame_ints[frame, SITE], 0] += 1.0
                site_sums[frame_ints[frame, SITE], 1] += now - asked
            push_ready(scalars, flow_ints, flow)
            return
    ints[station, S_FREE] += 1
    if seat >= 0:
        seat_stack[ints[station, S_SEATS] + ints[station, S_SEATED]] = seat
        ints[station, S_SEATED] += 1


@compiled
def create_first_flows(s: State, starters: Bits) -> None:
    """Create the flows of time 0; columns: stream, population, entry, address, whether it is a source."""
    for row in range(len(starters)):
        flow = new_flow(s.scalars, s.flow_ints, s.flow_bits, starters[row, 0], -1, int(starters[row, 3]))
        is_source = starters[row, 4] != np.uint64(0)
        carrier = NOBODY if is_source else flow
        frame = new_frame(
            s.scalars, s.frame_ints, s.frame_floats, s.frame_slots,
            int(starters[row, 2]), -1, int(starters[row, 3]), -1, carrier, 0.0,
        )  # fmt: skip
        s.frame_ints[frame, POPULATION] = -1 if is_source else int(starters[row, 1])
        s.flow_ints[flow, FRAME] = frame
        push_urgent(s.scalars, s.flow_ints, flow)


@compiled
def cycle_done(
    cycles: Floats,
    cycle_samples: Any,
    cycle_counts: Longs,
    frame_ints: Ints,
    frame_floats: Floats,
    frame: int,
    now: float,
    scratch: Floats,
) -> float:
    """Record a cycle; return its duration."""
    population = frame_ints[frame, POPULATION]
    duration: float = now - frame_floats[frame, ARRIVED]
    response = max(0.0, duration - frame_floats[frame, THOUGHT_TIME])
    cycles[population, 0] += 1.0
    cycles[population, 1] += response
    cycles[population, 2] += duration
    sample(cycle_samples, cycle_counts, population, now, response, scratch)
    return duration


@compiled
def soonest_server(server_floats: Floats) -> int:
    """Return the processor whose next event comes first; of several the first."""
    best = 0
    for server in range(1, len(server_floats)):
        if server_floats[server, V_NEXT] < server_floats[best, V_NEXT]:
            best = server
    return best


@compiled
def advance(s: State, until: float) -> int:  # one interpreter loop, told top to bottom
    """Execute everything that happens before ``until`` (seconds); return how that ended."""
    scalars = s.scalars
    times = s.times
    code = s.code
    kinds = s.kinds
    parameters = s.parameters
    data = s.data
    choice_bounds = s.choice_bounds
    choice_odds = s.choice_odds
    choice_addresses = s.choice_addresses
    joins = s.joins
    entries = s.entries
    tasks = s.tasks
    sites = s.sites
    populations = s.populations
    station_ints = s.station_ints
    station_bits = s.station_bits
    station_heads = s.station_heads
    station_tails = s.station_tails
    front_heads = s.front_heads
    seat_cores = s.seat_cores
    seat_stack = s.seat_stack
    server_ints = s.server_ints
    server_floats = s.server_floats
    server_bits = s.server_bits
    server_heads = s.server_heads
    server_tails = s.server_tails
    running_ends = s.running_ends
    running_ints = s.running_ints
    node_ints = s.node_ints
    node_floats = s.node_floats
    job_ends = s.job_ends
    job_numbers = s.job_numbers
    job_flows = s.job_flows
    levels = s.levels
    cycles = s.cycles
    site_sums = s.site_sums
    join_sums = s.join_sums
    activity_sums = s.activity_sums
    cycle_samples = s.cycle_samples
    cycle_counts = s.cycle_counts
    entry_samples = s.entry_samples
    entry_counts = s.entry_counts
    flow_ints = s.flow_ints
    flow_floats = s.flow_floats
    flow_bits = s.flow_bits
    heap_times = s.heap_times
    heap_flows = s.heap_flows
    frame_ints = s.frame_ints
    frame_floats = s.frame_floats
    frame_bits = s.frame_bits
    frame_clocks = s.frame_clocks
    frame_registers = s.frame_registers
    frame_slots = s.frame_slots
    trace_times = s.trace_times
    trace_keys = s.trace_keys
    scratch = s.scratch

    look_ahead = scalars[LOOK_AHEAD] != 0
    tracing = scalars[TRACING] != 0
    now = times[NOW]
    size = scalars[HEAP_SIZE]
    events = scalars[EVENTS]
    hole = False  # the root of the heap is vacant
    server_next = soonest_server(server_floats)
    status = DONE

    while True:
        # Who is next? Created flows, flows that may go on, processors, flows whose timed step ends.
        ahead = False
        if scalars[CURRENT] >= 0:  # interrupted for want of room
            flow = scalars[CURRENT]
            scalars[CURRENT] = -1
            ahead = scalars[AHEAD] != 0
            t = times[LOCAL]
        elif scalars[URGENT_HEAD] >= 0:
            flow = scalars[URGENT_HEAD]
            scalars[URGENT_HEAD] = flow_ints[flow, NEXT]
            scalars[STANDSTILL] += 1
            t = now
        elif scalars[READY_HEAD] >= 0:
            flow = scalars[READY_HEAD]
            scalars[READY_HEAD] = flow_ints[flow, NEXT]
            scalars[STANDSTILL] += 1
            t = now
        else:
            if hole:
                hole = False
                size -= 1
                if size > 0:
                    sift_down(heap_times, heap_flows, flow_bits, size, heap_times[size], heap_flows[size])
            upcoming = heap_times[0] if size > 0 else INFINITE
            of_server = server_floats[server_next, V_NEXT]
            if of_server <= upcoming and of_server < INFINITE:
                if of_server >= until:
                    break
                if of_server > now:
                    scalars[STANDSTILL] = 0
                now = of_server
                server = server_next
                if server_ints[server, V_KIND] == SHARED:
                    tree_finish(
                        scalars,
                        server_ints,
                        server_floats,
                        server_heads,
                        node_ints,
                        node_floats,
                        job_ends,
                        job_numbers,
                        job_flows,
                        flow_ints,
                        flow_floats,
                        server,
                        now,
                    )
                elif server_ints[server, V_KIND] == PREEMPTIVE:
                    preemptive_finish(
                        scalars,
                        server_ints,
                        server_floats,
                        server_heads,
                        running_ends,
                        running_ints,
                        flow_ints,
                        flow_floats,
                        server,
                        now,
                    )
                else:
                    sticky_act(
                        scalars,
                        seat_cores,
                        server_ints,
                        server_floats,
                        server_bits,
                        node_ints,
                        node_floats,
                        job_ends,
                        job_numbers,
                        job_flows,
                        flow_ints,
                        flow_floats,
                        server,
                        now,
                    )
                server_next = soonest_server(server_floats)
                scalars[STANDSTILL] += 1
                continue
            if upcoming >= until:
                if upcoming == INFINITE:
                    status = DEADLOCK
                break
            if upcoming > now:
                scalars[STANDSTILL] = 0
            now = upcoming
            flow = heap_flows[0]
            hole = True
            t = now
            server = flow_ints[flow, SERVER]
            if server >= 0:
                # It leaves a core to the next in line.
                flow_ints[flow, SERVER] = -1
                running_account(server_ints, server_floats, server, now)
                server_floats[server, V_DONE] += flow_floats[flow, DEMAND]
                server_floats[server, V_STARTS] -= (
                    now - flow_floats[flow, DEMAND] / server_floats[server, V_SPEED]
                )
                following = -1
                for rank in range(server_heads.shape[1]):
                    if server_heads[server, rank] >= 0:
                        following = take_from_server(server_heads, flow_ints, server, rank)
                        break
                if following >= 0:
                    server_floats[server, V_STARTS] += now
                    flow_ints[following, SERVER] = server
                    end = now + flow_floats[following, DEMAND] / server_floats[server, V_SPEED]
                    hole = False
                    sift_down(heap_times, heap_flows, flow_bits, size, end, following)
                else:
                    server_ints[server, V_FREE] += 1
        if scalars[STANDSTILL] > MAX_STANDSTILL:
            status = ENDLESS
            break

        frame = flow_ints[flow, FRAME]
        at = flow_ints[flow, AT]
        stream = flow_bits[flow, STREAM]
        push = False  # the flow's timed step goes into the heap
        interrupted = DONE

        while True:
            operation = code[at, 0]
            a = code[at, 1]
            b = code[at, 2]
            at += 1
            if ahead and frame_ints[frame, ACTIVE] > 1 and operation in NOTICED_BY_BRANCHES:
                push = True
                at -= 1
                break

            if operation == DELAY or operation == THINK:
                stream, time = draw(kinds, parameters, data, b, stream)
                events += 1
                flow_bits[flow, TURN] = flow_bits[flow, KEY]
                if tracing and scalars[TRACED] < len(trace_times):
                    trace_times[scalars[TRACED]] = t
                    trace_keys[scalars[TRACED]] = flow_bits[flow, KEY]
                    scalars[TRACED] += 1
                if operation == THINK:
                    flow_floats[flow, SINCE] = t
                    if frame_ints[frame, CARRIER] == flow and frame_ints[frame, POPULATION] >= 0:
                        enter(levels, populations[frame_ints[frame, POPULATION], 0], t)
                t = t + time
                ahead = True
                if t >= until or not look_ahead:
                    push = True
                    break

            elif operation == CALL or operation == FORWARD:
                if scalars[FREE_FRAME] < 0:
                    interrupted = MORE_FRAMES
                    break
                task = entries[a, 0]
                if operation == CALL:
                    caller, back = frame, at
                    carried = frame_ints[frame, CARRIER] == flow
                    if carried:
                        frame_ints[frame, CARRIER] = AWAY
                else:
                    leave(levels, entries[frame_ints[frame, ENTRY], 6], t, frame_floats[frame, ARRIVED])
                    sample(
                        entry_samples,
                        entry_counts,
                        frame_ints[frame, ENTRY],
                        t,
                        t - frame_floats[frame, ARRIVED],
                        scratch,
                    )
                    caller, back = frame_ints[frame, CALLER], frame_ints[frame, RETURN_TO]
                    carried = frame_ints[frame, CARRIED] != 0
                    drop_frame(scalars, frame_ints, frame)
                frame = new_frame(scalars, frame_ints, frame_floats, frame_slots, a, caller, back, b, flow, t)
                frame_ints[frame, CARRIED] = carried
                station = tasks[task, 0]
                copies = tasks[task, 1]
                if copies > 1:
                    stream, u = uniform(stream)
                    station += int(u * copies)
                frame_ints[frame, STATION] = station
                enter(levels, entries[a, 6], t)
                at = entries[a, 1]

            elif operation == ADMIT or operation == REACQUIRE:
                station = frame_ints[frame, STATION]
                if a == 0 and station_ints[station, S_FREE] < HALF_UNLIMITED:
                    if ahead:
                        push = True
                        at -= 1
                        break
                    frame_floats[frame, ASKED] = t
                    if station_ints[station, S_FREE] == 0:
                        enter(levels, station_ints[station, S_WAITING_LEVEL], t)
                        station_ints[station, S_WAITING] += 1
                        rank = (
                            sites[frame_ints[frame, SITE], 1]
                            if station_ints[station, S_ADMISSION] == PRIORITY
                            else 0
                        )
                        flow_ints[flow, NEXT] = -1
                        if station_heads[station, rank] < 0:
                            station_heads[station, rank] = flow
                        else:
                            flow_ints[station_tails[station, rank], NEXT] = flow
                        station_tails[station, rank] = flow
                        flow_ints[flow, COUNTED] = operation == ADMIT
                        break  # whoever gives it a thread does the rest
                    station_ints[station, S_FREE] -= 1
                    if station_ints[station, S_SEATED] > 0:
                        station_ints[station, S_SEATED] -= 1
                        seat = station_ints[station, S_SEATS] + station_ints[station, S_SEATED]
                        frame_ints[frame, SEAT] = seat_stack[seat]
                frame_floats[frame, ADMITTED] = t
                enter(levels, station_ints[station, S_BUSY_LEVEL], t)
                if operation == ADMIT:
                    site_sums[frame_ints[frame, SITE], 0] += 1.0

            elif operation == RETURN:
                entry = frame_ints[frame, ENTRY]
                caller = frame_ints[frame, CALLER]
                if ahead and frame_ints[caller, ACTIVE] > 1:
                    push = True
                    at -= 1
                    break
                leave(levels, entries[entry, 6], t, frame_floats[frame, ARRIVED])
                sample(
                    entry_samples,
                    entry_counts,
                    entry,
                    t,
                    t - frame_floats[frame, ARRIVED],
                    scratch,
                )
                at = frame_ints[frame, RETURN_TO]
                if frame_ints[frame, CARRIED] and frame_ints[caller, CARRIER] == AWAY:
                    frame_ints[caller, CARRIER] = flow
                drop_frame(scalars, frame_ints, frame)
                frame = caller

            elif operation == END:
                entry = frame_ints[frame, ENTRY]
                station = frame_ints[frame, STATION]
                site = frame_ints[frame, SITE]
                token = entries[entry, 5]
                if ahead and (
                    frame_ints[frame, ACTIVE] > 1
                    or (site >= 0 and (token != 0 or station_ints[station, S_FREE] < HALF_UNLIMITED))
                ):
                    push = True
                    at -= 1
                    break
                frame_ints[frame, ACTIVE] -= 1
                if frame_ints[frame, CARRIER] == flow:
                    frame_ints[frame, ENDED] = 1
                    frame_ints[frame, CARRIER] = NOBODY
                elif frame_ints[frame, ACTIVE] == 0 and frame_ints[frame, PARKED_AT] >= 0:
                    scalars[CULPRIT] = frame_ints[frame, PARKED_AT]
                    interrupted = JOIN_STUCK
                    break
                if (
                    frame_ints[frame, ENDED]
                    and not frame_ints[frame, RELEASED]
                    and (not entries[entry, 4] or frame_ints[frame, ACTIVE] == 0)
                ):
                    frame_ints[frame, RELEASED] = 1
                    if site >= 0:
                        leave(levels, station_ints[station, S_BUSY_LEVEL], t, frame_floats[frame, ADMITTED])
                        if token != ACQUIRES:
                            if (
                                token == RELEASES
                                and station_ints[station, S_FREE] >= station_ints[station, S_CAPACITY]
                            ):
                                scalars[CULPRIT] = entries[entry, 0]
                                interrupted = TOKEN_OVERFLOW
                                break
                            if station_ints[station, S_FREE] < HALF_UNLIMITED:
                                seat = frame_ints[frame, SEAT]
                                frame_ints[frame, SEAT] = -1
                                give_thread(
                                    scalars,
                                    station_ints,
                                    station_bits,
                                    station_heads,
                                    station_tails,
                                    seat_stack,
                                    levels,
                                    site_sums,
                                    flow_ints,
                                    frame_ints,
                                    frame_floats,
                                    station,
                                    seat,
                                    t,
                                )
                if (
                    frame_ints[frame, REPLIED]
                    or not frame_ints[frame, RELEASED]
                    or (entries[entry, 3] and frame_ints[frame, ACTIVE] > 0)
                ):
                    drop_frame(scalars, frame_ints, frame)
                    free_flow(scalars, flow_ints, flow)
                    flow = -1
                    break
                frame_ints[frame, REPLIED] = 1
                if site >= 0 and frame_ints[frame, CALLER] < 0:
                    leave(levels, entries[entry, 6], t, frame_floats[frame, ARRIVED])
                    sample(entry_samples, entry_counts, entry, t, t - frame_floats[frame, ARRIVED], scratch)
                    if frame_ints[frame, POPULATION] >= 0:
                        cycle_done(
                            cycles, cycle_samples, cycle_counts, frame_ints, frame_floats, frame, t, scratch
                        )
                    drop_frame(scalars, frame_ints, frame)
                    free_flow(scalars, flow_ints, flow)
                    flow = -1
                    break
                at = entries[entry, 2]

            elif operation == CHOICE:
                stream, u = uniform(stream)
                first = choice_bounds[a, 0]
                option = first
                last = first + choice_bounds[a, 1] - 1
                while option < last and u >= choice_odds[option]:
                    option += 1
                at = choice_addresses[option]

            elif operation == GOTO:
                at = a

            elif operation == THOUGHT:
                if frame_ints[frame, CARRIER] == flow and frame_ints[frame, POPULATION] >= 0:
                    since = flow_floats[flow, SINCE]
                    leave(levels, populations[frame_ints[frame, POPULATION], 0], t, since)
                    frame_floats[frame, THOUGHT_TIME] += t - since

            elif operation == FORK_JOIN and (
                frame_ints[frame, CARRIER] == flow and (ahead or scalars[URGENT_HEAD] < 0)
            ):
                # The branch would start next; the forking flow becomes it, as it would wait at the join.
                frame_bits[frame, 1] = flow_bits[flow, KEY]
                stream, child = split(stream)
                frame_bits[frame, 0] = stream
                stream = child
                flow_bits[flow, KEY] = child
                frame_ints[frame, CARRIER] = NOBODY
                frame_ints[frame, INLINE] = 1
                frame_ints[frame, SAVED_CORE] = flow_ints[flow, OWN_CORE]
                flow_ints[flow, OWN_CORE] = -1
                at = a

            elif operation == BRANCH_END and frame_ints[frame, INLINE]:
                frame_ints[frame, INLINE] = 0
                frame_ints[frame, CARRIER] = flow
                flow_ints[flow, OWN_CORE] = frame_ints[frame, SAVED_CORE]
                stream = frame_bits[frame, 0]
                flow_bits[flow, KEY] = frame_bits[frame, 1]
                if joins[a, 3] >= 0:
                    join_sums[a, 0] += 1.0
                    join_sums[a, 1] += t - frame_clocks[frame, joins[a, 3]]
                if not ahead and (scalars[URGENT_HEAD] >= 0 or scalars[READY_HEAD] >= 0):
                    flow_ints[flow, AT] = at  # the flow that waited goes on after those
                    push_ready(scalars, flow_ints, flow)
                    break

            elif operation == COUNT:
                stream, count = draw(kinds, parameters, data, b, stream)
                frame_registers[frame, a] = int(count)

            elif operation == LOOP:
                if frame_registers[frame, a] == 0:
                    at = b
                else:
                    frame_registers[frame, a] -= 1

            elif operation == SPLIT:
                frame_clocks[frame, a] = t

            elif operation == BEGIN:
                frame_clocks[frame, b] = t

            elif operation == FINISH:
                activity_sums[a, 0] += 1.0
                activity_sums[a, 1] += t - frame_clocks[frame, b]

            elif operation == SERVED:
                waited = (t - flow_floats[flow, SINCE]) - flow_floats[flow, DEMAND] / server_floats[b, V_PACE]
                activity_sums[a, 2] += waited

            elif operation == CYCLE:
                if scalars[FREE_FRAME] < 0:
                    interrupted = MORE_FRAMES
                    break
                if (
                    cycle_done(
                        cycles, cycle_samples, cycle_counts, frame_ints, frame_floats, frame, t, scratch
                    )
                    > 0.0
                ):
                    flow_ints[flow, EMPTY] = 0
                else:
                    flow_ints[flow, EMPTY] += 1
                    if flow_ints[flow, EMPTY] > MAX_EMPTY_CYCLES:
                        scalars[CULPRIT] = frame_ints[frame, POPULATION]
                        interrupted = SPINNING
                        break
                at = frame_ints[frame, RETURN_TO]
                population = frame_ints[frame, POPULATION]
                entry = frame_ints[frame, ENTRY]
                drop_frame(scalars, frame_ints, frame)
                frame = new_frame(scalars, frame_ints, frame_floats, frame_slots, entry, -1, at, -1, flow, t)
                frame_ints[frame, POPULATION] = population

            else:
                # Everything else meets other flows, so it must wait for its turn.
                if ahead:
                    push = True
                    at -= 1
                    break

                if operation == USE:
                    server = a
                    kind = server_ints[server, V_KIND]
                    if kind == SHARED:
                        node = server_ints[server, V_OWN_NODE]
                        if node_ints[node, N_JOBS] >= job_ends.shape[1]:
                            interrupted = MORE_JOBS
                            break
                    elif kind == STICKY:
                        total = 0
                        for node in range(
                            server_ints[server, V_NODE],
                            server_ints[server, V_NODE] + server_ints[server, V_NODES],
                        ):
                            total += node_ints[node, N_JOBS]
                        if total >= job_ends.shape[1]:
                            interrupted = MORE_JOBS
                            break
                    stream, time = draw(kinds, parameters, data, b, stream)
                    flow_floats[flow, SINCE] = t
                    flow_floats[flow, DEMAND] = time
                    if time <= 0.0:
                        continue
                    events += 1
                    flow_bits[flow, TURN] = flow_bits[flow, KEY]
                    if tracing and scalars[TRACED] < len(trace_times):
                        trace_times[scalars[TRACED]] = t
                        trace_keys[scalars[TRACED]] = flow_bits[flow, KEY]
                        scalars[TRACED] += 1
                    if kind == SHARED:
                        tree_use(
                            server_ints,
                            server_floats,
                            server_heads,
                            server_tails,
                            node_ints,
                            node_floats,
                            job_ends,
                            job_numbers,
                            job_flows,
                            flow_ints,
                            server,
                            flow,
                            time,
                            t,
                        )
                        server_next = soonest_server(server_floats)
                    elif kind == FCFS:
                        if server_ints[server, V_FREE] > 0:
                            running_account(server_ints, server_floats, server, t)
                            if server_ints[server, V_FREE] == server_ints[server, V_CORES]:
                                server_floats[server, V_STARTS] = 0.0
                            server_ints[server, V_FREE] -= 1
                            server_floats[server, V_STARTS] += t
                            flow_ints[flow, SERVER] = server
                            t = t + time / server_floats[server, V_SPEED]
                            push = True
                        else:
                            rank = (
                                tasks[entries[frame_ints[frame, ENTRY], 0], 2]
                                if server_ints[server, V_BY_PRIORITY]
                                else 0
                            )
                            append_to_server(server_heads, server_tails, flow_ints, server, rank, flow)
                    elif kind == PREEMPTIVE:
                        rank = tasks[entries[frame_ints[frame, ENTRY], 0], 2]
                        preemptive_use(
                            server_ints,
                            server_floats,
                            server_heads,
                            server_tails,
                            running_ends,
                            running_ints,
                            flow_ints,
                            flow_floats,
                            server,
                            flow,
                            time,
                            rank,
                            t,
                        )
                        server_next = soonest_server(server_floats)
                    else:
                        seat = -1
                        if code[at - 1, 3] == BY_FRONT:
                            seat = station_ints[frame_ints[frame, STATION], S_FRONT_SEAT]
                        elif frame_ints[frame, CARRIER] == flow:
                            seat = frame_ints[frame, SEAT]
                        sticky_use(
                            seat_cores,
                            server_ints,
                            server_floats,
                            server_bits,
                            node_ints,
                            node_floats,
                            job_ends,
                            job_numbers,
                            job_flows,
                            flow_ints,
                            server,
                            flow,
                            time,
                            seat,
                            t,
                        )
                        server_next = soonest_server(server_floats)
                    break

                if operation == JOIN or operation == BRANCH_END:
                    slot = joins[a, 0]
                    arrived = frame_slots[frame, slot] + 1
                    frame_slots[frame, slot] = 0 if arrived == joins[a, 2] else arrived
                    carries = frame_ints[frame, CARRIER] == flow
                    if arrived > joins[a, 1]:
                        at = LATE
                        continue
                    if arrived == joins[a, 1]:
                        if joins[a, 3] >= 0:
                            join_sums[a, 0] += 1.0
                            join_sums[a, 1] += t - frame_clocks[frame, joins[a, 3]]
                        if frame_ints[frame, PARKED_AT] != a:
                            if joins[a, 1] < joins[a, 2] and joins[a, 4]:
                                frame_ints[frame, CARRIER] = flow
                            continue
                        push_ready(scalars, flow_ints, frame_ints[frame, PARKED])
                        frame_ints[frame, PARKED] = -1
                        frame_ints[frame, PARKED_AT] = -1
                    else:
                        frame_ints[frame, ACTIVE] -= 1
                        if carries:
                            frame_ints[frame, PARKED] = flow
                            frame_ints[frame, PARKED_AT] = a
                        if frame_ints[frame, ACTIVE] == 0 and frame_ints[frame, PARKED_AT] >= 0:
                            scalars[CULPRIT] = frame_ints[frame, PARKED_AT]
                            interrupted = JOIN_STUCK
                            break
                        if carries:
                            break
                    drop_frame(scalars, frame_ints, frame)
                    free_flow(scalars, flow_ints, flow)
                    flow = -1
                    break

                if operation == FORK or operation == FORK_JOIN:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    frame_ints[frame, ACTIVE] += 1
                    frame_ints[frame, REFERENCES] += 1
                    stream, child = split(stream)
                    push_urgent(scalars, flow_ints, new_flow(scalars, flow_ints, flow_bits, child, frame, a))

                elif operation == SEND:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    if scalars[FREE_FRAME] < 0:
                        interrupted = MORE_FRAMES
                        break
                    stream, child = split(stream)
                    sent = new_flow(scalars, flow_ints, flow_bits, child, -1, entries[a, 1])
                    request = new_frame(scalars, frame_ints, frame_floats, frame_slots, a, -1, -1, b, sent, t)
                    frame_ints[request, POPULATION] = sites[b, 2]
                    station = tasks[entries[a, 0], 0]
                    copies = tasks[entries[a, 0], 1]
                    if copies > 1:
                        child, u = uniform(child)
                        flow_bits[sent, STREAM] = child
                        station += int(u * copies)
                    frame_ints[request, STATION] = station
                    flow_ints[sent, FRAME] = request
                    enter(levels, entries[a, 6], t)
                    push_urgent(scalars, flow_ints, sent)

                elif operation == REPLY:
                    if frame_ints[frame, REPLIED]:
                        continue
                    if frame_ints[frame, CALLER] < 0:
                        frame_ints[frame, REPLIED] = 1
                        entry = frame_ints[frame, ENTRY]
                        leave(levels, entries[entry, 6], t, frame_floats[frame, ARRIVED])
                        sample(
                            entry_samples,
                            entry_counts,
                            entry,
                            t,
                            t - frame_floats[frame, ARRIVED],
                            scratch,
                        )
                        if frame_ints[frame, POPULATION] >= 0:
                            cycle_done(
                                cycles,
                                cycle_samples,
                                cycle_counts,
                                frame_ints,
                                frame_floats,
                                frame,
                                t,
                                scratch,
                            )
                        continue
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    frame_ints[frame, REPLIED] = 1
                    frame_ints[frame, REFERENCES] += 1
                    stream, child = split(stream)
                    second = new_flow(scalars, flow_ints, flow_bits, child, frame, at)
                    if frame_ints[frame, CARRIER] == flow:
                        frame_ints[frame, CARRIER] = second
                    push_urgent(scalars, flow_ints, second)
                    at = entries[frame_ints[frame, ENTRY], 2]

                elif operation == RELEASE:
                    station = frame_ints[frame, STATION]
                    leave(levels, station_ints[station, S_BUSY_LEVEL], t, frame_floats[frame, ADMITTED])
                    seat = frame_ints[frame, SEAT]
                    frame_ints[frame, SEAT] = -1
                    if station_ints[station, S_FREE] < HALF_UNLIMITED:
                        give_thread(
                            scalars,
                            station_ints,
                            station_bits,
                            station_heads,
                            station_tails,
                            seat_stack,
                            levels,
                            site_sums,
                            flow_ints,
                            frame_ints,
                            frame_floats,
                            station,
                            seat,
                            t,
                        )

                elif operation == FRONT_TAKE:
                    station = frame_ints[frame, STATION]
                    if station_ints[station, S_FRONT_FREE] == 0:
                        flow_ints[flow, NEXT] = -1
                        if front_heads[station, 0] < 0:
                            front_heads[station, 0] = flow
                        else:
                            flow_ints[front_heads[station, 1], NEXT] = flow
                        front_heads[station, 1] = flow
                        break
                    station_ints[station, S_FRONT_FREE] = 0

                elif operation == FRONT_GIVE:
                    station = frame_ints[frame, STATION]
                    waiting = front_heads[station, 0]
                    if waiting >= 0:
                        front_heads[station, 0] = flow_ints[waiting, NEXT]
                        push_ready(scalars, flow_ints, waiting)
                    else:
                        station_ints[station, S_FRONT_FREE] = 1

        if flow >= 0:
            if interrupted != DONE:
                at -= 1  # that instruction again, once there is room
            flow_ints[flow, AT] = at
            flow_ints[flow, FRAME] = frame
            flow_bits[flow, STREAM] = stream
            if push:
                if hole:
                    hole = False
                    sift_down(heap_times, heap_flows, flow_bits, size, t, flow)
                else:
                    sift_up(heap_times, heap_flows, flow_bits, size, t, flow)
                    size += 1
        if interrupted != DONE:
            status = interrupted
            scalars[CURRENT] = flow
            scalars[AHEAD] = ahead
            times[LOCAL] = t
            break

    if hole:
        size -= 1
        if size > 0:
            sift_down(heap_times, heap_flows, flow_bits, size, heap_times[size], heap_flows[size])
    scalars[HEAP_SIZE] = size
    scalars[EVENTS] = events
    times[NOW] = now
    return status


@compiled
def server_accounts(s: State, server: int, now: float) -> tuple[float, float]:
    """Return busy core-seconds and service given in core-seconds of a processor, its parts included."""
    ints, floats = s.server_ints, s.server_floats
    kind, root = ints[server, V_KIND], ints[server, V_ROOT]
    elapsed = now - floats[root, V_LAST]
    if kind == FCFS or kind == PREEMPTIVE:
        running = ints[server, V_CORES] - ints[server, V_FREE]
        busy = floats[server, V_BUSY] + running * elapsed
        if kind == FCFS:
            underway = running * now - floats[server, V_STARTS] if running > 0 else 0.0
            return busy, floats[server, V_DONE] / floats[server, V_SPEED] + underway
        left = 0.0
        for at in range(running):
            left += (s.running_ends[server, at] - now) * floats[server, V_SPEED]
        for rank in range(s.server_heads.shape[1]):
            flow = s.server_heads[server, rank]
            while flow >= 0:
                left += s.flow_floats[flow, LEFT_OVER]
                flow = s.flow_ints[flow, NEXT]
        return busy, (floats[server, V_DONE] - left) / floats[server, V_SPEED]
    busy = floats[server, V_BUSY]
    given = floats[server, V_DONE] / floats[server, V_PACE]
    own = ints[server, V_OWN_NODE]
    for node in range(ints[root, V_NODE], ints[root, V_NODE] + ints[root, V_NODES]):
        jobs = s.node_ints[node, N_JOBS]
        if kind == SHARED:
            above = node
            while above >= 0 and above != own:
                above = s.node_ints[above, N_PARENT]
            if above != own:
                continue
            busy += s.node_floats[node, N_BUSY]
            given += s.node_floats[node, N_DONE] / s.node_floats[node, N_PACE]
        if jobs == 0:
            continue
        if kind == SHARED:
            rate = s.node_floats[node, N_RATE]
            busy += jobs * rate / s.node_floats[node, N_PACE] * elapsed
        else:
            rate = floats[server, V_SPEED] / jobs
            busy += elapsed
        virtual = s.node_floats[node, N_VIRTUAL] + elapsed * rate
        for at in range(jobs):
            flow = s.job_flows[node, at]
            underway = s.flow_floats[flow, DEMAND] - (s.job_ends[node, at] - virtual)
            given += underway / s.node_floats[node, N_PACE]
    return busy, given
