"""What does the compiled engine do, step by step? The interpreter of programs, in one compiled function.

It executes the same instructions as ``simulator.reference`` with the same randomness in the same order, so
that both engines go through the same states at the same moments, bit for bit. What is different:

- State lives in arrays (``State``); flows, requests and jobs are rows. ``simulator.machine`` lays them out.
- *Look-ahead*: after a timed step a flow goes on at once, in its own local time, as long as it only does
  what no other flow can notice, and not beyond the moment the caller wants to see. It comes back into the
  order of events where it next touches something shared. Sums do not mind the order of their terms.
- *Inline branches* (FORK_JOIN): a plain fork-join is executed by one flow that uses the branch's stream and
  key in between, unless other flows that have been created at the same instant must start before.

Events are kept in a 4-ary heap ordered by (time, key of the flow).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.compiling import compiled, inlined
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
from simulator.variates import draw, exponential, mix, quick_draw, split, uniform

__all__ = ["State", "advance", "server_accounts"]

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
JOINED: Final = 18
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


class Servers(NamedTuple):
    """Processors: one row each, nodes of those that share, and the jobs on the nodes."""

    ints: Longs
    floats: Floats
    bits: Bits
    heads: Ints
    tails: Ints
    running_ends: Floats
    running_ints: Any
    node_ints: Longs
    node_floats: Floats
    job_ends: Floats
    job_numbers: Longs
    job_flows: Ints
    seat_cores: Ints


class Flows(NamedTuple):
    """Flows: one row each."""

    ints: Ints
    floats: Floats
    bits: Bits


class Frames(NamedTuple):
    """Requests: one row each."""

    ints: Ints
    floats: Floats
    bits: Bits
    clocks: Floats
    registers: Longs
    slots: Ints


class Stations(NamedTuple):
    """Threads and fronts of every replica."""

    ints: Longs
    bits: Bits
    heads: Ints
    tails: Ints
    front_heads: Ints
    seat_stack: Ints


class Records(NamedTuple):
    """What is counted (see ``simulator.recording``)."""

    levels: Floats
    cycles: Floats
    site_sums: Floats
    join_sums: Floats
    activity_sums: Floats
    cycle_samples: Any
    cycle_counts: Longs
    entry_samples: Any
    entry_counts: Longs
    scratch: Floats


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
    servers: Servers
    flows: Flows
    frames: Frames
    stations: Stations
    records: Records
    heap_times: Floats
    heap_flows: Ints
    trace_times: Floats
    trace_keys: Bits


@inlined
def new_flow(scalars: Longs, f: Flows, stream: Any, frame: int, at: int) -> int:
    """Take a free flow (there must be one); it is not in any queue yet."""
    flow: int = scalars[FREE_FLOW]
    scalars[FREE_FLOW] = f.ints[flow, NEXT]
    f.ints[flow, AT] = at
    f.ints[flow, FRAME] = frame
    f.ints[flow, SERVER] = -1
    f.ints[flow, OWN_CORE] = -1
    f.ints[flow, EMPTY] = 0
    f.bits[flow, STREAM] = stream
    f.bits[flow, KEY] = stream
    f.bits[flow, TURN] = stream
    return flow


@inlined
def free_flow(scalars: Longs, f: Flows, flow: int) -> None:
    """Give a flow's row back."""
    f.ints[flow, NEXT] = scalars[FREE_FLOW]
    scalars[FREE_FLOW] = flow


@inlined
def new_frame(
    scalars: Longs, m: Frames, entry: int, caller: int, return_to: int, site: int, carrier: int, now: float
) -> int:
    """Take a free frame (there must be one) for a request."""
    frame: int = scalars[FREE_FRAME]
    scalars[FREE_FRAME] = m.ints[frame, CALLER]
    m.ints[frame, ENTRY] = entry
    m.ints[frame, STATION] = -1
    m.ints[frame, CALLER] = caller
    m.ints[frame, RETURN_TO] = return_to
    m.ints[frame, SITE] = site
    m.ints[frame, CARRIER] = carrier
    m.ints[frame, ACTIVE] = 1
    m.ints[frame, REFERENCES] = 1
    m.ints[frame, PARKED] = -1
    m.ints[frame, PARKED_AT] = -1
    m.ints[frame, ENDED] = 0
    m.ints[frame, RELEASED] = 0
    m.ints[frame, REPLIED] = 0
    m.ints[frame, POPULATION] = -1
    m.ints[frame, SEAT] = -1
    m.ints[frame, INLINE] = 0
    m.ints[frame, CARRIED] = 0
    m.floats[frame, ARRIVED] = now
    m.floats[frame, ASKED] = now
    m.floats[frame, ADMITTED] = now
    m.floats[frame, THOUGHT_TIME] = 0.0
    if m.ints[frame, JOINED]:
        m.ints[frame, JOINED] = 0
        for slot in range(m.slots.shape[1]):
            m.slots[frame, slot] = 0
    return frame


@inlined
def drop_frame(scalars: Longs, m: Frames, frame: int) -> None:
    """One flow less refers to a request; the last one frees its row."""
    m.ints[frame, REFERENCES] -= 1
    if m.ints[frame, REFERENCES] == 0:
        m.ints[frame, CALLER] = scalars[FREE_FRAME]
        scalars[FREE_FRAME] = frame


# Two queues of flows that go on at the present instant.


@inlined
def push_urgent(scalars: Longs, f: Flows, flow: int) -> None:
    """A flow has been created."""
    f.ints[flow, NEXT] = -1
    if scalars[URGENT_HEAD] < 0:
        scalars[URGENT_HEAD] = flow
    else:
        f.ints[scalars[URGENT_TAIL], NEXT] = flow
    scalars[URGENT_TAIL] = flow


@inlined
def push_ready(scalars: Longs, f: Flows, flow: int) -> None:
    """A flow may go on."""
    f.ints[flow, NEXT] = -1
    if scalars[READY_HEAD] < 0:
        scalars[READY_HEAD] = flow
    else:
        f.ints[scalars[READY_TAIL], NEXT] = flow
    scalars[READY_TAIL] = flow


# The heap of events.


@inlined
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


@inlined
def enter(levels: Floats, level: int, now: float) -> None:
    """Count one that comes in (see ``simulator.recording.Level``)."""
    content = levels[level, L_CONTENT]
    levels[level, L_AREA] += content * (now - levels[level, L_LAST])
    levels[level, L_LAST] = now
    levels[level, L_CONTENT] = content + 1.0
    levels[level, L_ENTERED] += 1.0
    levels[level, L_SINCE] += now


@inlined
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
def sample(values: Any, counts: Longs, which: int, end: float, value: float, scratch: Floats) -> None:
    """Keep a single time, or not (see ``simulator.recording.Samples``)."""
    mask = counts[which, 1]
    if mask:
        scratch[0] = end
        if mix(scratch.view(np.uint64)[0]) & np.uint64(mask):
            return
    count = counts[which, 0]
    values[which, count, 0] = end
    values[which, count, 1] = value
    counts[which, 0] = count + 1
    if count + 1 >= values.shape[1]:
        thin_out(values, counts, which, scratch)


@compiled
def thin_out(values: Any, counts: Longs, which: int, scratch: Floats) -> None:
    """Keep half of the single times, or a quarter, ..., so that there is room again."""
    while counts[which, 0] >= values.shape[1]:
        mask = 2 * counts[which, 1] + 1
        kept = 0
        for i in range(counts[which, 0]):
            scratch[0] = values[which, i, 0]
            if not mix(scratch.view(np.uint64)[0]) & np.uint64(mask):
                values[which, kept, 0] = values[which, i, 0]
                values[which, kept, 1] = values[which, i, 1]
                kept += 1
        counts[which, 0] = kept
        counts[which, 1] = mask


# Jobs on nodes: binary heaps by (virtual end, number).


@inlined
def job_push(v: Servers, node: int, size: int, end: float, number: int, flow: int) -> None:
    """Insert a job into the heap of a node that holds ``size`` jobs."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if end < v.job_ends[node, above] or (
            end == v.job_ends[node, above] and number < v.job_numbers[node, above]
        ):
            v.job_ends[node, at] = v.job_ends[node, above]
            v.job_numbers[node, at] = v.job_numbers[node, above]
            v.job_flows[node, at] = v.job_flows[node, above]
            at = above
        else:
            break
    v.job_ends[node, at] = end
    v.job_numbers[node, at] = number
    v.job_flows[node, at] = flow


@compiled
def job_remove(v: Servers, node: int, size: int, at: int) -> None:
    """Remove the job at a position of the heap of a node that holds ``size`` jobs."""
    last = size - 1
    if at == last:
        return
    end, number, flow = v.job_ends[node, last], v.job_numbers[node, last], v.job_flows[node, last]
    # The last job may belong above the gap or below it.
    while at > 0:
        above = (at - 1) >> 1
        if end < v.job_ends[node, above] or (
            end == v.job_ends[node, above] and number < v.job_numbers[node, above]
        ):
            v.job_ends[node, at] = v.job_ends[node, above]
            v.job_numbers[node, at] = v.job_numbers[node, above]
            v.job_flows[node, at] = v.job_flows[node, above]
            at = above
        else:
            break
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (
            v.job_ends[node, other] < v.job_ends[node, child]
            or (
                v.job_ends[node, other] == v.job_ends[node, child]
                and v.job_numbers[node, other] < v.job_numbers[node, child]
            )
        ):
            child = other
        if v.job_ends[node, child] < end or (
            v.job_ends[node, child] == end and v.job_numbers[node, child] < number
        ):
            v.job_ends[node, at] = v.job_ends[node, child]
            v.job_numbers[node, at] = v.job_numbers[node, child]
            v.job_flows[node, at] = v.job_flows[node, child]
            at = child
        else:
            break
    v.job_ends[node, at] = end
    v.job_numbers[node, at] = number
    v.job_flows[node, at] = flow


# Trees of processors that share (see ``simulator.servers.SharedServers``).


@inlined
def tree_advance(v: Servers, root: int, now: float) -> None:
    """Bring virtual time and the busy accounts up to now."""
    elapsed = now - v.floats[root, V_LAST]
    first = v.ints[root, V_NODE]
    for node in range(first, first + v.ints[root, V_NODES]):
        jobs = v.node_ints[node, N_JOBS]
        if jobs > 0:
            rate = v.node_floats[node, N_RATE]
            v.node_floats[node, N_BUSY] += jobs * rate / v.node_floats[node, N_PACE] * elapsed
            v.node_floats[node, N_VIRTUAL] += elapsed * rate
    v.floats[root, V_LAST] = now


@inlined
def tree_schedule(v: Servers, root: int, now: float) -> None:
    """Set all rates, and the moment of the first job that will be done at these rates."""
    first = v.ints[root, V_NODE]
    behind = first + v.ints[root, V_NODES]
    for node in range(first, behind):
        v.node_floats[node, N_LOAD] = float(v.node_ints[node, N_JOBS])
    for node in range(behind - 1, first, -1):
        parent = v.node_ints[node, N_PARENT]
        v.node_floats[parent, N_LOAD] += min(v.node_floats[node, N_LOAD], v.node_floats[node, N_CORES])
    soonest = INFINITE
    for node in range(first, behind):
        share = 1.0
        if v.node_floats[node, N_LOAD] > v.node_floats[node, N_CORES]:
            share = v.node_floats[node, N_CORES] / v.node_floats[node, N_LOAD]
        rate = v.node_floats[node, N_SPEED] * share
        if node > first:
            rate = rate * v.node_floats[v.node_ints[node, N_PARENT], N_RATE]
        v.node_floats[node, N_RATE] = rate
        if v.node_ints[node, N_JOBS] > 0:
            left = max(0.0, v.job_ends[node, 0] - v.node_floats[node, N_VIRTUAL]) / rate
            if left < soonest:
                soonest = left
                v.ints[root, V_NEXT_NODE] = node
    v.floats[root, V_NEXT] = now + soonest


@inlined
def tree_use(v: Servers, f: Flows, server: int, flow: int, demand: float, now: float) -> None:
    """Start a job, or queue it at a node that takes only as many as it has cores."""
    root = v.ints[server, V_ROOT]
    tree_advance(v, root, now)
    node = v.ints[server, V_OWN_NODE]
    jobs = v.node_ints[node, N_JOBS]
    if v.node_ints[node, N_QUEUES] and jobs >= v.node_floats[node, N_CORES]:
        append_to_server(v, f, server, 0, flow)
        return
    if jobs == 0:
        v.node_floats[node, N_VIRTUAL] = 0.0
    v.ints[root, V_ARRIVALS] += 1
    job_push(v, node, jobs, v.node_floats[node, N_VIRTUAL] + demand, v.ints[root, V_ARRIVALS], flow)
    v.node_ints[node, N_JOBS] = jobs + 1
    tree_schedule(v, root, now)


@inlined
def tree_finish(v: Servers, f: Flows, scalars: Longs, root: int, now: float) -> None:
    """The first job of a tree is done, and whatever ends with it."""
    tree_advance(v, root, now)
    node = v.ints[root, V_NEXT_NODE]
    virtual = v.job_ends[node, 0]
    v.node_floats[node, N_VIRTUAL] = virtual
    jobs = v.node_ints[node, N_JOBS]
    while jobs > 0 and v.job_ends[node, 0] <= virtual:
        flow = v.job_flows[node, 0]
        job_remove(v, node, jobs, 0)
        jobs -= 1
        v.node_floats[node, N_DONE] += f.floats[flow, DEMAND]
        push_ready(scalars, f, flow)
    if v.node_ints[node, N_QUEUES]:
        server = v.node_ints[node, N_SERVER]
        while jobs < v.node_floats[node, N_CORES] and v.heads[server, 0] >= 0:
            flow = take_from_server(v, f, server, 0)
            v.ints[root, V_ARRIVALS] += 1
            job_push(v, node, jobs, virtual + f.floats[flow, DEMAND], v.ints[root, V_ARRIVALS], flow)
            jobs += 1
    v.node_ints[node, N_JOBS] = jobs
    tree_schedule(v, root, now)


@inlined
def append_to_server(v: Servers, f: Flows, server: int, rank: int, flow: int) -> None:
    """Queue a flow at a processor."""
    f.ints[flow, NEXT] = -1
    if v.heads[server, rank] < 0:
        v.heads[server, rank] = flow
    else:
        f.ints[v.tails[server, rank], NEXT] = flow
    v.tails[server, rank] = flow


@inlined
def take_from_server(v: Servers, f: Flows, server: int, rank: int) -> int:
    """Return the first of a queue that is not empty, removed."""
    flow: int = v.heads[server, rank]
    v.heads[server, rank] = f.ints[flow, NEXT]
    return flow


# Preemptive priorities (see ``simulator.servers.PreemptiveServer``).


@compiled
def preemptive_start(v: Servers, server: int, flow: int, left: float, rank: int, now: float) -> None:
    """Give a free core to a flow."""
    v.ints[server, V_ARRIVALS] += 1
    at = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = now + left / v.floats[server, V_SPEED]
    v.running_ints[server, at, 0] = v.ints[server, V_ARRIVALS]
    v.running_ints[server, at, 1] = rank
    v.running_ints[server, at, 2] = flow
    v.ints[server, V_FREE] -= 1


@compiled
def preemptive_remove(v: Servers, server: int, at: int) -> None:
    """Take the core from a running flow."""
    v.ints[server, V_FREE] += 1
    last = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = v.running_ends[server, last]
    for column in range(3):
        v.running_ints[server, at, column] = v.running_ints[server, last, column]


@compiled
def preemptive_schedule(v: Servers, server: int) -> None:
    """Find the first flow that will be done."""
    soonest = INFINITE
    for at in range(v.ints[server, V_CORES] - v.ints[server, V_FREE]):
        soonest = min(soonest, v.running_ends[server, at])
    v.floats[server, V_NEXT] = soonest


@inlined
def running_account(v: Servers, server: int, now: float) -> None:
    """Bring the busy account of a processor with single jobs per core up to now."""
    running = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.floats[server, V_BUSY] += running * (now - v.floats[server, V_LAST])
    v.floats[server, V_LAST] = now


@compiled
def preemptive_use(
    v: Servers, f: Flows, server: int, flow: int, demand: float, rank: int, now: float
) -> None:
    """Start a flow, perhaps in place of a less urgent one, or queue it."""
    running_account(v, server, now)
    v.floats[server, V_DONE] += demand
    running = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    if v.ints[server, V_FREE] > 0:
        preemptive_start(v, server, flow, demand, rank, now)
    else:
        worst = 0
        for at in range(1, running):
            if v.running_ints[server, at, 1] > v.running_ints[server, worst, 1] or (
                v.running_ints[server, at, 1] == v.running_ints[server, worst, 1]
                and v.running_ints[server, at, 0] > v.running_ints[server, worst, 0]
            ):
                worst = at
        loser = v.running_ints[server, worst, 1]
        if loser > rank:
            other = v.running_ints[server, worst, 2]
            left = (v.running_ends[server, worst] - now) * v.floats[server, V_SPEED]
            f.floats[other, LEFT_OVER] = left
            if v.heads[server, loser] < 0:
                v.tails[server, loser] = other
            f.ints[other, NEXT] = v.heads[server, loser]
            v.heads[server, loser] = other
            preemptive_remove(v, server, worst)
            preemptive_start(v, server, flow, demand, rank, now)
        else:
            f.floats[flow, LEFT_OVER] = demand
            append_to_server(v, f, server, rank, flow)
    preemptive_schedule(v, server)


@compiled
def preemptive_finish(v: Servers, f: Flows, scalars: Longs, server: int, now: float) -> None:
    """A running flow is done; the most urgent waiting one goes on."""
    running_account(v, server, now)
    first = 0
    for at in range(1, v.ints[server, V_CORES] - v.ints[server, V_FREE]):
        if v.running_ends[server, at] < v.running_ends[server, first] or (
            v.running_ends[server, at] == v.running_ends[server, first]
            and v.running_ints[server, at, 0] < v.running_ints[server, first, 0]
        ):
            first = at
    flow = v.running_ints[server, first, 2]
    preemptive_remove(v, server, first)
    push_ready(scalars, f, flow)
    for rank in range(v.heads.shape[1]):
        if v.heads[server, rank] >= 0:
            other = take_from_server(v, f, server, rank)
            preemptive_start(v, server, other, f.floats[other, LEFT_OVER], rank, now)
            break
    preemptive_schedule(v, server)


# Sticky threads (see ``simulator.servers.StickyServer``).


@compiled
def sticky_extreme(v: Servers, first: int, cores: int, sign: int) -> int:
    """Return the first of the cores with the most (sign 1) or fewest (sign -1) flows."""
    best = 0
    for core in range(1, cores):
        if sign * v.node_ints[first + core, N_JOBS] > sign * v.node_ints[first + best, N_JOBS]:
            best = core
    return best


@compiled
def sticky_advance(v: Servers, server: int, now: float) -> None:
    """Bring virtual times and the busy account up to now."""
    elapsed = now - v.floats[server, V_LAST]
    first = v.ints[server, V_NODE]
    speed = v.floats[server, V_SPEED]
    for node in range(first, first + v.ints[server, V_NODES]):
        jobs = v.node_ints[node, N_JOBS]
        if jobs > 0:
            v.floats[server, V_BUSY] += elapsed
            v.node_floats[node, N_VIRTUAL] += elapsed * (speed / jobs)
    v.floats[server, V_LAST] = now


@compiled
def sticky_put(v: Servers, f: Flows, node: int, end: float, number: int, flow: int, core: int) -> None:
    """Put a job on a core, and note that its thread is there now."""
    jobs = v.node_ints[node, N_JOBS]
    job_push(v, node, jobs, end, number, flow)
    v.node_ints[node, N_JOBS] = jobs + 1
    seat = f.ints[flow, SEAT_USED]
    if seat >= 0:
        v.seat_cores[seat] = core
    else:
        f.ints[flow, OWN_CORE] = core


@compiled
def sticky_move(v: Servers, f: Flows, server: int, source: int, target: int) -> None:
    """Move the flow that came last from one core to another."""
    first = v.ints[server, V_NODE]
    there, here = first + source, first + target
    jobs = v.node_ints[there, N_JOBS]
    latest = 0
    for at in range(1, jobs):
        if v.job_numbers[there, at] > v.job_numbers[there, latest]:
            latest = at
    left = v.job_ends[there, latest] - v.node_floats[there, N_VIRTUAL]
    number, flow = v.job_numbers[there, latest], v.job_flows[there, latest]
    job_remove(v, there, jobs, latest)
    v.node_ints[there, N_JOBS] = jobs - 1
    if v.node_ints[here, N_JOBS] == 0:
        v.node_floats[here, N_VIRTUAL] = 0.0
    sticky_put(v, f, here, v.node_floats[here, N_VIRTUAL] + left, number, flow, target)


@compiled
def sticky_settle(v: Servers, server: int, now: float) -> None:
    """After every change: is there something to balance, and what is the next thing to happen?"""
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    floats, speed = v.floats, v.floats[server, V_SPEED]
    if floats[server, V_BALANCE] > 0.0:
        most = v.node_ints[first + sticky_extreme(v, first, cores, 1), N_JOBS]
        least = v.node_ints[first + sticky_extreme(v, first, cores, -1), N_JOBS]
        if most - least < 2:
            floats[server, V_BALANCE_AT] = INFINITE
        elif floats[server, V_BALANCE_AT] == INFINITE:
            state, wait = exponential(1.0 / floats[server, V_BALANCE], v.bits[server])
            v.bits[server] = state
            floats[server, V_BALANCE_AT] = now + wait
    soonest = floats[server, V_BALANCE_AT]
    v.ints[server, V_NEXT_NODE] = -1
    for node in range(first, first + cores):
        jobs = v.node_ints[node, N_JOBS]
        if jobs > 0:
            left = max(0.0, v.job_ends[node, 0] - v.node_floats[node, N_VIRTUAL]) / (speed / jobs)
            if now + left < soonest:
                soonest = now + left
                v.ints[server, V_NEXT_NODE] = node
    floats[server, V_NEXT] = soonest


@compiled
def sticky_use(v: Servers, f: Flows, server: int, flow: int, demand: float, seat: int, now: float) -> None:
    """Start a flow on the core it chooses."""
    sticky_advance(v, server, now)
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    core = v.seat_cores[seat] if seat >= 0 else f.ints[flow, OWN_CORE]
    if core < 0 or core >= cores:
        core = sticky_extreme(v, first, cores, -1)
    elif v.node_ints[first + core, N_JOBS] > 0 and v.floats[server, V_WAKE] > 0.0:
        idle = sticky_extreme(v, first, cores, -1)
        if v.node_ints[first + idle, N_JOBS] == 0:
            state, u = uniform(v.bits[server])
            v.bits[server] = state
            if u < v.floats[server, V_WAKE]:
                core = idle
    if v.node_ints[first + core, N_JOBS] == 0:
        v.node_floats[first + core, N_VIRTUAL] = 0.0
    v.ints[server, V_ARRIVALS] += 1
    f.ints[flow, SEAT_USED] = seat
    end = v.node_floats[first + core, N_VIRTUAL] + demand
    sticky_put(v, f, first + core, end, v.ints[server, V_ARRIVALS], flow, core)
    sticky_settle(v, server, now)


@compiled
def sticky_act(v: Servers, f: Flows, scalars: Longs, server: int, now: float) -> None:
    """A job is done, or it is time to balance."""
    sticky_advance(v, server, now)
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    node = v.ints[server, V_NEXT_NODE]
    if node < 0:
        v.floats[server, V_BALANCE_AT] = INFINITE
        source = sticky_extreme(v, first, cores, 1)
        sticky_move(v, f, server, source, sticky_extreme(v, first, cores, -1))
    else:
        virtual = v.job_ends[node, 0]
        v.node_floats[node, N_VIRTUAL] = virtual
        jobs = v.node_ints[node, N_JOBS]
        while jobs > 0 and v.job_ends[node, 0] <= virtual:
            flow = v.job_flows[node, 0]
            job_remove(v, node, jobs, 0)
            jobs -= 1
            v.floats[server, V_DONE] += f.floats[flow, DEMAND]
            push_ready(scalars, f, flow)
        v.node_ints[node, N_JOBS] = jobs
        if jobs == 0 and v.floats[server, V_STEAL] > 0.0:
            source = sticky_extreme(v, first, cores, 1)
            if v.node_ints[first + source, N_JOBS] >= 2:
                state, u = uniform(v.bits[server])
                v.bits[server] = state
                if u < v.floats[server, V_STEAL]:
                    sticky_move(v, f, server, source, node - first)
    sticky_settle(v, server, now)


# Stations.


@compiled
def give_thread(
    scalars: Longs, f: Flows, m: Frames, q: Stations, r: Records, station: int, seat: int, now: float
) -> None:
    """A thread is free: somebody who waits has it from this moment on, or nobody."""
    ints = q.ints
    if ints[station, S_WAITING] > 0:
        ints[station, S_WAITING] -= 1
        for rank in range(q.heads.shape[1]):
            flow = q.heads[station, rank]
            if flow < 0:
                continue
            before = -1
            if ints[station, S_ADMISSION] == RANDOM and ints[station, S_WAITING] > 0:
                state, u = uniform(q.bits[station])
                q.bits[station] = state
                for _ in range(int(u * (ints[station, S_WAITING] + 1))):
                    before = flow
                    flow = f.ints[flow, NEXT]
            following = f.ints[flow, NEXT]
            if before < 0:
                q.heads[station, rank] = following
            else:
                f.ints[before, NEXT] = following
            if following < 0:
                q.tails[station, rank] = before
            frame = f.ints[flow, FRAME]
            asked = m.floats[frame, ASKED]
            leave(r.levels, ints[station, S_WAITING_LEVEL], now, asked)
            enter(r.levels, ints[station, S_BUSY_LEVEL], now)
            m.ints[frame, SEAT] = seat
            m.floats[frame, ADMITTED] = now
            if f.ints[flow, COUNTED]:
                r.site_sums[m.ints[frame, SITE], 0] += 1.0
                r.site_sums[m.ints[frame, SITE], 1] += now - asked
            push_ready(scalars, f, flow)
            return
    ints[station, S_FREE] += 1
    if seat >= 0:
        q.seat_stack[ints[station, S_SEATS] + ints[station, S_SEATED]] = seat
        ints[station, S_SEATED] += 1


@compiled
def cycle_done(m: Frames, r: Records, frame: int, now: float) -> float:
    """Record a cycle; return its duration."""
    population = m.ints[frame, POPULATION]
    duration: float = now - m.floats[frame, ARRIVED]
    response = max(0.0, duration - m.floats[frame, THOUGHT_TIME])
    r.cycles[population, 0] += 1.0
    r.cycles[population, 1] += response
    r.cycles[population, 2] += duration
    sample(r.cycle_samples, r.cycle_counts, population, now, response, r.scratch)
    return duration


@inlined
def soonest_server(v: Servers) -> int:
    """Return the processor whose next event comes first; of several the first."""
    best = 0
    for server in range(1, len(v.floats)):
        if v.floats[server, V_NEXT] < v.floats[best, V_NEXT]:
            best = server
    return best


@compiled
def advance(s: State, until: float) -> int:
    """Execute everything that happens before ``until`` (seconds); return how that ended."""
    v, f, m, q, r = s.servers, s.flows, s.frames, s.stations, s.records
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
    station_ints = q.ints
    station_heads = q.heads
    station_tails = q.tails
    front_heads = q.front_heads
    seat_stack = q.seat_stack
    server_ints = v.ints
    server_floats = v.floats
    server_heads = v.heads
    node_ints = v.node_ints
    job_ends = v.job_ends
    levels = r.levels
    site_sums = r.site_sums
    join_sums = r.join_sums
    activity_sums = r.activity_sums
    entry_samples = r.entry_samples
    entry_counts = r.entry_counts
    flow_ints = f.ints
    flow_floats = f.floats
    flow_bits = f.bits
    heap_times = s.heap_times
    heap_flows = s.heap_flows
    frame_ints = m.ints
    frame_floats = m.floats
    frame_bits = m.bits
    frame_clocks = m.clocks
    frame_registers = m.registers
    frame_slots = m.slots
    trace_times = s.trace_times
    trace_keys = s.trace_keys
    scratch = r.scratch

    look_ahead = scalars[LOOK_AHEAD] != 0
    tracing = scalars[TRACING] != 0
    now = times[NOW]
    size = scalars[HEAP_SIZE]
    events = scalars[EVENTS]
    hole = False  # the root of the heap is vacant
    server_next = soonest_server(v)
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
                    tree_finish(v, f, scalars, server, now)
                elif server_ints[server, V_KIND] == PREEMPTIVE:
                    preemptive_finish(v, f, scalars, server, now)
                else:
                    sticky_act(v, f, scalars, server, now)
                server_next = soonest_server(v)
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
                running_account(v, server, now)
                server_floats[server, V_DONE] += flow_floats[flow, DEMAND]
                server_floats[server, V_STARTS] -= (
                    now - flow_floats[flow, DEMAND] / server_floats[server, V_SPEED]
                )
                following = -1
                for rank in range(server_heads.shape[1]):
                    if server_heads[server, rank] >= 0:
                        following = take_from_server(v, f, server, rank)
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

            if operation == DELAY or operation == THINK:
                if ahead and operation == THINK and frame_ints[frame, ACTIVE] > 1:
                    push = True
                    at -= 1
                    break
                stream, time = quick_draw(kinds, parameters, data, b, stream)
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
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
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
                    drop_frame(scalars, m, frame)
                frame = new_frame(scalars, m, a, caller, back, b, flow, t)
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
                drop_frame(scalars, m, frame)
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
                                give_thread(scalars, f, m, q, r, station, seat, t)
                if (
                    frame_ints[frame, REPLIED]
                    or not frame_ints[frame, RELEASED]
                    or (entries[entry, 3] and frame_ints[frame, ACTIVE] > 0)
                ):
                    drop_frame(scalars, m, frame)
                    free_flow(scalars, f, flow)
                    flow = -1
                    break
                frame_ints[frame, REPLIED] = 1
                if site >= 0 and frame_ints[frame, CALLER] < 0:
                    leave(levels, entries[entry, 6], t, frame_floats[frame, ARRIVED])
                    sample(entry_samples, entry_counts, entry, t, t - frame_floats[frame, ARRIVED], scratch)
                    if frame_ints[frame, POPULATION] >= 0:
                        cycle_done(m, r, frame, t)
                    drop_frame(scalars, m, frame)
                    free_flow(scalars, f, flow)
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
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
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
                    push_ready(scalars, f, flow)
                    break

            elif operation == COUNT:
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
                stream, count = draw(kinds, parameters, data, b, stream)
                frame_registers[frame, a] = int(count)

            elif operation == LOOP:
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
                if frame_registers[frame, a] == 0:
                    at = b
                else:
                    frame_registers[frame, a] -= 1

            elif operation == SPLIT:
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
                frame_clocks[frame, a] = t

            elif operation == BEGIN:
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
                frame_clocks[frame, b] = t

            elif operation == FINISH:
                if ahead and frame_ints[frame, ACTIVE] > 1:
                    push = True  # other branches of the request could notice
                    at -= 1
                    break
                activity_sums[a, 0] += 1.0
                activity_sums[a, 1] += t - frame_clocks[frame, b]

            elif operation == SERVED:
                waited = (t - flow_floats[flow, SINCE]) - flow_floats[flow, DEMAND] / server_floats[b, V_PACE]
                activity_sums[a, 2] += waited

            elif operation == CYCLE:
                if scalars[FREE_FRAME] < 0:
                    interrupted = MORE_FRAMES
                    break
                if cycle_done(m, r, frame, t) > 0.0:
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
                drop_frame(scalars, m, frame)
                frame = new_frame(scalars, m, entry, -1, at, -1, flow, t)
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
                    stream, time = quick_draw(kinds, parameters, data, b, stream)
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
                        tree_use(v, f, server, flow, time, t)
                        server_next = soonest_server(v)
                    elif kind == FCFS:
                        if server_ints[server, V_FREE] > 0:
                            running_account(v, server, t)
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
                            append_to_server(v, f, server, rank, flow)
                    elif kind == PREEMPTIVE:
                        rank = tasks[entries[frame_ints[frame, ENTRY], 0], 2]
                        preemptive_use(v, f, server, flow, time, rank, t)
                        server_next = soonest_server(v)
                    else:
                        seat = -1
                        if code[at - 1, 3] == BY_FRONT:
                            seat = station_ints[frame_ints[frame, STATION], S_FRONT_SEAT]
                        elif frame_ints[frame, CARRIER] == flow:
                            seat = frame_ints[frame, SEAT]
                        sticky_use(v, f, server, flow, time, seat, t)
                        server_next = soonest_server(v)
                    break

                if operation == JOIN or operation == BRANCH_END:
                    slot = joins[a, 0]
                    frame_ints[frame, JOINED] = 1
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
                        push_ready(scalars, f, frame_ints[frame, PARKED])
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
                    drop_frame(scalars, m, frame)
                    free_flow(scalars, f, flow)
                    flow = -1
                    break

                if operation == FORK or operation == FORK_JOIN:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    frame_ints[frame, ACTIVE] += 1
                    frame_ints[frame, REFERENCES] += 1
                    stream, child = split(stream)
                    push_urgent(scalars, f, new_flow(scalars, f, child, frame, a))

                elif operation == SEND:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    if scalars[FREE_FRAME] < 0:
                        interrupted = MORE_FRAMES
                        break
                    stream, child = split(stream)
                    sent = new_flow(scalars, f, child, -1, entries[a, 1])
                    request = new_frame(scalars, m, a, -1, -1, b, sent, t)
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
                    push_urgent(scalars, f, sent)

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
                            cycle_done(m, r, frame, t)
                        continue
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    frame_ints[frame, REPLIED] = 1
                    frame_ints[frame, REFERENCES] += 1
                    stream, child = split(stream)
                    second = new_flow(scalars, f, child, frame, at)
                    if frame_ints[frame, CARRIER] == flow:
                        frame_ints[frame, CARRIER] = second
                    push_urgent(scalars, f, second)
                    at = entries[frame_ints[frame, ENTRY], 2]

                elif operation == RELEASE:
                    station = frame_ints[frame, STATION]
                    leave(levels, station_ints[station, S_BUSY_LEVEL], t, frame_floats[frame, ADMITTED])
                    seat = frame_ints[frame, SEAT]
                    frame_ints[frame, SEAT] = -1
                    if station_ints[station, S_FREE] < HALF_UNLIMITED:
                        give_thread(scalars, f, m, q, r, station, seat, t)

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
                        push_ready(scalars, f, waiting)
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
def server_accounts(v: Servers, f: Flows, server: int, now: float) -> tuple[float, float]:
    """Return busy core-seconds and service given in core-seconds of a processor, its parts included."""
    ints, floats = v.ints, v.floats
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
            left += (v.running_ends[server, at] - now) * floats[server, V_SPEED]
        for rank in range(v.heads.shape[1]):
            flow = v.heads[server, rank]
            while flow >= 0:
                left += f.floats[flow, LEFT_OVER]
                flow = f.ints[flow, NEXT]
        return busy, (floats[server, V_DONE] - left) / floats[server, V_SPEED]
    busy = floats[server, V_BUSY]
    given = floats[server, V_DONE] / floats[server, V_PACE]
    own = ints[server, V_OWN_NODE]
    for node in range(ints[root, V_NODE], ints[root, V_NODE] + ints[root, V_NODES]):
        jobs = v.node_ints[node, N_JOBS]
        if kind == SHARED:
            above = node
            while above >= 0 and above != own:
                above = v.node_ints[above, N_PARENT]
            if above != own:
                continue
            busy += v.node_floats[node, N_BUSY]
            given += v.node_floats[node, N_DONE] / v.node_floats[node, N_PACE]
        if jobs == 0:
            continue
        if kind == SHARED:
            rate = v.node_floats[node, N_RATE]
            busy += jobs * rate / v.node_floats[node, N_PACE] * elapsed
        else:
            rate = floats[server, V_SPEED] / jobs
            busy += elapsed
        virtual = v.node_floats[node, N_VIRTUAL] + elapsed * rate
        for at in range(jobs):
            flow = v.job_flows[node, at]
            underway = f.floats[flow, DEMAND] - (v.job_ends[node, at] - virtual)
            given += underway / v.node_floats[node, N_PACE]
    return busy, given
