"""How do processors share their cores in the compiled engine? As in ``simulator.servers``, on arrays."""

from __future__ import annotations

from simulator.compiling import compiled, inlined, internal
from simulator.engine_parts import push_ready
from simulator.engine_state import (
    DEMAND,
    INFINITE,
    LEFT_OVER,
    N_BUSY,
    N_CORES,
    N_DONE,
    N_JOBS,
    N_LOAD,
    N_PACE,
    N_PARENT,
    N_QUEUES,
    N_RATE,
    N_SERVER,
    N_SPEED,
    N_VIRTUAL,
    NEXT,
    OWN_CORE,
    SEAT_USED,
    V_ARRIVALS,
    V_BALANCE,
    V_BALANCE_AT,
    V_BUSY,
    V_CORES,
    V_DONE,
    V_FREE,
    V_KIND,
    V_LAST,
    V_NEXT,
    V_NEXT_NODE,
    V_NODE,
    V_NODES,
    V_OWN_NODE,
    V_PACE,
    V_ROOT,
    V_SPEED,
    V_STARTS,
    V_STEAL,
    V_WAKE,
    Flows,
    Longs,
    Servers,
)
from simulator.program import (
    FCFS,
    PREEMPTIVE,
    SHARED,
)
from simulator.variates import (
    exponential,
    uniform,
)

__all__ = [
    "append_to_server",
    "job_push",
    "job_remove",
    "preemptive_finish",
    "preemptive_remove",
    "preemptive_schedule",
    "preemptive_start",
    "preemptive_use",
    "running_account",
    "server_accounts",
    "soonest_server",
    "sticky_act",
    "sticky_advance",
    "sticky_extreme",
    "sticky_move",
    "sticky_put",
    "sticky_settle",
    "sticky_use",
    "take_from_server",
    "tree_advance",
    "tree_finish",
    "tree_schedule",
    "tree_use",
]

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


@internal
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


@internal
def preemptive_start(v: Servers, server: int, flow: int, left: float, rank: int, now: float) -> None:
    """Give a free core to a flow."""
    v.ints[server, V_ARRIVALS] += 1
    at = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = now + left / v.floats[server, V_SPEED]
    v.running_ints[server, at, 0] = v.ints[server, V_ARRIVALS]
    v.running_ints[server, at, 1] = rank
    v.running_ints[server, at, 2] = flow
    v.ints[server, V_FREE] -= 1


@internal
def preemptive_remove(v: Servers, server: int, at: int) -> None:
    """Take the core from a running flow."""
    v.ints[server, V_FREE] += 1
    last = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = v.running_ends[server, last]
    for column in range(3):
        v.running_ints[server, at, column] = v.running_ints[server, last, column]


@internal
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


@internal
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


@internal
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


@internal
def sticky_extreme(v: Servers, first: int, cores: int, sign: int) -> int:
    """Return the first of the cores with the most (sign 1) or fewest (sign -1) flows."""
    best = 0
    for core in range(1, cores):
        if sign * v.node_ints[first + core, N_JOBS] > sign * v.node_ints[first + best, N_JOBS]:
            best = core
    return best


@internal
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


@internal
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


@internal
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


@internal
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


@internal
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


@internal
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


@inlined
def soonest_server(v: Servers) -> int:
    """Return the processor whose next event comes first; of several the first."""
    best = 0
    for server in range(1, len(v.floats)):
        if v.floats[server, V_NEXT] < v.floats[best, V_NEXT]:
            best = server
    return best


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
