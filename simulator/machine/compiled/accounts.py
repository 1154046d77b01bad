"""Two accounts of the work of a processor of the compiled engine, which must agree."""

from __future__ import annotations

from mup.native.binding import internal
from simulator.machine.compiled.state import (
    DEMAND,
    LEFT_OVER,
    N_BUSY,
    N_DONE,
    N_HEAD,
    N_JOBS,
    N_PACE,
    N_PARENT,
    N_RATE,
    N_SLOTS,
    N_VIRTUAL,
    NEXT,
    V_BUSY,
    V_CORES,
    V_DONE,
    V_FREE,
    V_KIND,
    V_LAST,
    V_NODE,
    V_NODES,
    V_OWN_NODE,
    V_PACE,
    V_PARTS,
    V_QUANTUM,
    V_ROOT,
    V_SPEED,
    V_STARTS,
    Flows,
    Servers,
)
from simulator.program import FCFS, PREEMPTIVE, SHARED

__all__ = ["server_accounts", "taken_at", "tree_accounts", "underway_at"]


@internal
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
    if kind == SHARED:
        return tree_accounts(v, f, ints[server, V_OWN_NODE], ints[root, V_NODE], ints[root, V_NODES], elapsed)
    first = ints[root, V_NODE] + ints[root, V_NODES]
    if root != server:
        return tree_accounts(v, f, ints[server, V_OWN_NODE], first, ints[root, V_PARTS], elapsed)
    busy = floats[server, V_BUSY]
    given = floats[server, V_DONE] / floats[server, V_PACE]
    for node in range(ints[root, V_NODE], first):
        slots = v.node_ints[node, N_SLOTS]
        if slots > 0:
            busy += elapsed
            if floats[server, V_QUANTUM] > 0.0:
                given += taken_at(v, f, node, elapsed * floats[server, V_SPEED])
            else:
                given += underway_at(v, f, node, elapsed * (floats[server, V_SPEED] / slots))
    for node in range(first, first + ints[root, V_PARTS]):
        given += v.node_floats[node, N_DONE] / v.node_floats[node, N_PACE]
        given += underway_at(v, f, node, elapsed * v.node_floats[node, N_RATE])
    return busy, given


@internal
def tree_accounts(
    v: Servers, f: Flows, own: int, first: int, nodes: int, elapsed: float
) -> tuple[float, float]:
    """Return the same of a node and those below it, of the nodes of a tree."""
    busy = given = 0.0
    for node in range(first, first + nodes):
        above = node
        while above >= 0 and above != own:
            above = v.node_ints[above, N_PARENT]
        if above != own:
            continue
        rate = v.node_floats[node, N_RATE]
        busy += v.node_floats[node, N_BUSY]
        busy += v.node_ints[node, N_JOBS] * rate / v.node_floats[node, N_PACE] * elapsed
        given += v.node_floats[node, N_DONE] / v.node_floats[node, N_PACE]
        given += underway_at(v, f, node, elapsed * rate)
    return busy, given


@internal
def underway_at(v: Servers, f: Flows, node: int, served: float) -> float:
    """Return the core-seconds of service given to the jobs of a node so far."""
    given = 0.0
    virtual = v.node_floats[node, N_VIRTUAL] + served
    for at in range(v.node_ints[node, N_JOBS]):
        underway = f.floats[v.job_flows[node, at], DEMAND] - (v.job_ends[node, at] - virtual)
        given += underway / v.node_floats[node, N_PACE]
    return given


@internal
def taken_at(v: Servers, f: Flows, node: int, served: float) -> float:
    """Return the same of a core on which threads take turns, where who runs has been served since."""
    jobs = v.node_ints[node, N_JOBS]
    pace = v.node_floats[node, N_PACE]
    given = served / pace if jobs > 0 and v.node_ints[node, N_HEAD] < 0 else 0.0
    for at in range(jobs):
        flow = v.job_flows[node, at]
        given += (f.floats[flow, DEMAND] - f.floats[flow, LEFT_OVER]) / pace
    return given
