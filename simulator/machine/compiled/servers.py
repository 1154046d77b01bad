"""Processors of the compiled engine, as in the reference engine but on arrays."""

from __future__ import annotations

from mup.native.binding import inlined, internal
from simulator.machine.compiled.parts import push_ready
from simulator.machine.compiled.sleep import core_falls_idle, levels_fall
from simulator.machine.compiled.state import (
    BEGUN,
    DEMAND,
    INFINITE,
    LEFT_OVER,
    N_BUSY,
    N_CORES,
    N_DONE,
    N_IDLE_SINCE,
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
    R_ARRIVAL,
    R_FLOW,
    R_RANK,
    RUNNING_INTS,
    V_ARRIVALS,
    V_BUSY,
    V_CORES,
    V_DONE,
    V_FALLS,
    V_FREE,
    V_LAST,
    V_NEXT,
    V_NEXT_NODE,
    V_NODE,
    V_NODES,
    V_OWN_NODE,
    V_ROOT,
    V_SPEED,
    Flows,
    Longs,
    Servers,
)

__all__ = [
    "append_to_server",
    "begins",
    "job_push",
    "job_remove",
    "next_begin",
    "preemptive_finish",
    "preemptive_remove",
    "preemptive_schedule",
    "preemptive_start",
    "preemptive_use",
    "running_account",
    "soonest_after",
    "soonest_server",
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


# Trees of processors that share (see ``simulator.machine.reference.servers.SharedServers``).


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
    if v.ints[root, V_FALLS] >= 0:
        levels_fall(v, root, min(v.node_floats[first, N_LOAD], v.node_floats[first, N_CORES]), now)
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
def tree_use(v: Servers, f: Flows, server: int, flow: int, demand: float, keeps: bool, now: float) -> None:
    """Start a job, or queue it at a node that takes only as many as it has cores."""
    root = v.ints[server, V_ROOT]
    tree_advance(v, root, now)
    if begins(v, f, root, server, flow, demand, keeps, now):
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
    next_begin(v, f, root, node, jobs, now)
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


# Jobs of nodes, in trees and on processors whose threads stick to cores.


@inlined
def begins(
    v: Servers, f: Flows, root: int, server: int, flow: int, demand: float, keeps: bool, now: float
) -> bool:
    """Start a job on a node, or queue it where others have all places; return whether it was started.

    A flow that keeps its place begins instead of the one that began when it stopped.
    """
    node = v.ints[server, V_OWN_NODE]
    jobs = v.node_ints[node, N_JOBS]
    if v.node_ints[node, N_QUEUES] and jobs >= v.node_floats[node, N_CORES]:
        if not keeps:
            append_to_server(v, f, server, 0, flow)
            return False
        jobs = step_back(v, f, node, now)
    if not keeps:
        f.floats[flow, BEGUN] = now
    if jobs == 0:
        v.node_floats[node, N_VIRTUAL] = 0.0
    v.ints[root, V_ARRIVALS] += 1
    job_push(v, node, jobs, v.node_floats[node, N_VIRTUAL] + demand, v.ints[root, V_ARRIVALS], flow)
    v.node_ints[node, N_JOBS] = jobs + 1
    return True


@inlined
def next_begin(v: Servers, f: Flows, root: int, node: int, jobs: int, now: float) -> None:
    """Let those that wait for a node with so many jobs left have the places of the others."""
    if v.node_ints[node, N_QUEUES]:
        server = v.node_ints[node, N_SERVER]
        while jobs < v.node_floats[node, N_CORES] and v.heads[server, 0] >= 0:
            flow = take_from_server(v, f, server, 0)
            f.floats[flow, BEGUN] = now
            v.ints[root, V_ARRIVALS] += 1
            end = v.node_floats[node, N_VIRTUAL] + f.floats[flow, DEMAND]
            job_push(v, node, jobs, end, v.ints[root, V_ARRIVALS], flow)
            jobs += 1
    v.node_ints[node, N_JOBS] = jobs
    if jobs == 0:
        v.node_floats[node, N_IDLE_SINCE] = now


@internal
def step_back(v: Servers, f: Flows, node: int, now: float) -> int:
    """Make the job that began last, of those that began in this moment, the next to begin; count the rest."""
    jobs: int = v.node_ints[node, N_JOBS]
    latest = -1
    for at in range(jobs):
        begun = f.floats[v.job_flows[node, at], BEGUN] == now
        if begun and (latest < 0 or v.job_numbers[node, at] > v.job_numbers[node, latest]):
            latest = at
    flow, server = v.job_flows[node, latest], v.node_ints[node, N_SERVER]
    job_remove(v, node, jobs, latest)
    v.node_ints[node, N_JOBS] = jobs - 1
    f.ints[flow, NEXT] = v.heads[server, 0]
    if v.heads[server, 0] < 0:
        v.tails[server, 0] = flow
    v.heads[server, 0] = flow
    return jobs - 1


# Preemptive priorities (see ``simulator.machine.reference.servers.PreemptiveServer``).


@internal
def preemptive_start(v: Servers, server: int, flow: int, left: float, rank: int, now: float) -> None:
    """Give a free core to a flow."""
    v.ints[server, V_ARRIVALS] += 1
    at = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = now + left / v.floats[server, V_SPEED]
    v.running_ints[server, at, R_ARRIVAL] = v.ints[server, V_ARRIVALS]
    v.running_ints[server, at, R_RANK] = rank
    v.running_ints[server, at, R_FLOW] = flow
    v.ints[server, V_FREE] -= 1


@internal
def preemptive_remove(v: Servers, server: int, at: int) -> None:
    """Take the core from a running flow."""
    v.ints[server, V_FREE] += 1
    last = v.ints[server, V_CORES] - v.ints[server, V_FREE]
    v.running_ends[server, at] = v.running_ends[server, last]
    for column in range(RUNNING_INTS):
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
            if v.running_ints[server, at, R_RANK] > v.running_ints[server, worst, R_RANK] or (
                v.running_ints[server, at, R_RANK] == v.running_ints[server, worst, R_RANK]
                and v.running_ints[server, at, R_ARRIVAL] > v.running_ints[server, worst, R_ARRIVAL]
            ):
                worst = at
        loser = v.running_ints[server, worst, R_RANK]
        if loser > rank:
            other = v.running_ints[server, worst, R_FLOW]
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
            and v.running_ints[server, at, R_ARRIVAL] < v.running_ints[server, first, R_ARRIVAL]
        ):
            first = at
    flow = v.running_ints[server, first, R_FLOW]
    preemptive_remove(v, server, first)
    push_ready(scalars, f, flow)
    follows = False
    for rank in range(v.heads.shape[1]):
        if v.heads[server, rank] >= 0:
            other = take_from_server(v, f, server, rank)
            preemptive_start(v, server, other, f.floats[other, LEFT_OVER], rank, now)
            follows = True
            break
    if not follows:
        core_falls_idle(v, server, now)
    preemptive_schedule(v, server)


# Which processor is next? A tournament, so that a change costs the logarithm of their number. Processors
# that are not part of another one have events of their own; they are the first, and the leaves: of n of
# them, number k is at place n + k. A place says who wins below it: the earlier event, of several at the
# same moment that of the first processor. Place 1 is above all others.


@inlined
def soonest_server(v: Servers) -> int:
    """Return the processor whose next event comes first; of several the first."""
    winner: int = v.winners[1]
    return winner


@inlined
def soonest_after(v: Servers, server: int) -> int:
    """Return the same, now that the next event of a processor is at another moment."""
    at = (len(v.winners) >> 1) + server
    winner = server
    moment = v.floats[server, V_NEXT]
    while at > 1:
        other = v.winners[at ^ 1]
        other_moment = v.floats[other, V_NEXT]
        if other_moment < moment or (other_moment == moment and other < winner):
            winner = other
            moment = other_moment
        at >>= 1
        if winner != server and v.winners[at] == winner:
            break  # it has won here before, so nothing changes above
        v.winners[at] = winner
    first: int = v.winners[1]
    return first
