"""Sleep of threads, fronts, clients and cores in the compiled engine, and set-ups after it.

Moments only matter where a task has a set-up (``mup.lqn.Setup``); nothing is noted elsewhere.
"""

from __future__ import annotations

from mup.native.binding import inlined, internal
from simulator.machine.compiled.state import (
    ADDED,
    ADDITIONS,
    AWAKE,
    CORE_SHARE,
    INFINITE,
    N_CORES,
    N_IDLE_SINCE,
    N_JOBS,
    N_PARENT,
    N_QUEUES,
    N_SEAT,
    N_SEATS_END,
    N_SLOTS,
    P_CORE,
    P_NUMBER,
    POPULATION,
    S_CAPACITY,
    S_FREE,
    S_REST,
    S_RESTED,
    SLEPT,
    V_AWAKE,
    V_CORES,
    V_FALLS,
    V_FREE,
    V_KIND,
    V_NODE,
    V_NODES,
    V_OWN_NODE,
    V_ROOT,
    V_WAKE,
    WORKER_SHARE,
    Flows,
    Frames,
    Servers,
    Sleeps,
    Stations,
)
from simulator.machine.setups import (
    K_CORE,
    K_WORKER,
    LIKELY,
    X_BY_FRONT,
    X_SLEEP,
    share_after,
    with_setup,
)
from simulator.program import SHARED, STICKY

__all__ = [
    "client_rests",
    "client_wakes",
    "core_falls_idle",
    "core_slept",
    "goes_to_sleep",
    "levels_fall",
    "loop_slept",
    "setup_of",
    "slept",
    "wake",
]

# Threads.


@internal
def goes_to_sleep(q: Stations, station: int, now: float) -> None:
    """Note that a thread has nothing to do, or that its replica has not."""
    ints = q.ints
    first = ints[station, S_REST] + 1
    rested = ints[station, S_RESTED]
    if rested >= 0:
        q.rests[first + rested] = now
        ints[station, S_RESTED] = rested + 1
    elif ints[station, S_FREE] == ints[station, S_CAPACITY]:
        q.rests[first] = now


@internal
def slept(q: Stations, station: int, now: float) -> float:
    """Return how long the thread that has just been taken had slept: of idle ones the last that was busy.

    Of a replica that sleeps as a whole, it is how long that did: not at all if it has another request.
    """
    ints = q.ints
    first = ints[station, S_REST] + 1
    rested = ints[station, S_RESTED]
    if rested > 0:
        ints[station, S_RESTED] = rested - 1
        return float(now - q.rests[first + rested - 1])
    if rested == 0:
        return INFINITE  # it has not worked before
    if ints[station, S_FREE] == ints[station, S_CAPACITY] - 1:
        return float(now - q.rests[first])
    return 0.0


# Clients.


@internal
def client_wakes(x: Sleeps, m: Frames, frame: int, now: float) -> float:
    """Note that a client has something to do; return how long all of its kind had nothing."""
    population = m.ints[frame, POPULATION]
    m.ints[frame, AWAKE] = 1
    x.clients_awake[population] += 1
    return float(now - x.client_rests[population]) if x.clients_awake[population] == 1 else 0.0


@internal
def client_rests(x: Sleeps, m: Frames, frame: int, now: float) -> None:
    """Note that a client has nothing to do, if it had."""
    if m.ints[frame, AWAKE]:
        population = m.ints[frame, POPULATION]
        m.ints[frame, AWAKE] = 0
        x.clients_awake[population] -= 1
        if x.clients_awake[population] == 0:
            x.client_rests[population] = now


# Cores.


@internal
def levels_fall(v: Servers, root: int, busy: float, now: float) -> None:
    """Note since when no more cores of a tree are busy than now."""
    for level in range(int(busy), int(v.floats[root, V_AWAKE])):
        v.falls[v.ints[root, V_FALLS] + level] = now
    v.floats[root, V_AWAKE] = busy


@inlined
def core_falls_idle(v: Servers, server: int, now: float) -> None:
    """Note that one core less is busy, of a processor with single jobs per core."""
    if v.ints[server, V_FALLS] >= 0:
        v.falls[v.ints[server, V_FALLS] + v.ints[server, V_CORES] - v.ints[server, V_FREE]] = now


@internal
def core_slept(v: Servers, server: int, home: int, now: float, otherwise: float) -> float:
    """Return how long the core has slept that work gets which begins now on a server (-1: none).

    ``home`` is the core that its thread ran on last, if they stick to cores; ``otherwise`` is returned where
    there is a core for every thread.
    """
    if server < 0:
        return otherwise
    root = v.ints[server, V_ROOT]
    falls = v.ints[root, V_FALLS]
    if falls < 0:
        return otherwise
    if v.ints[root, V_KIND] == STICKY:
        return sticky_slept(v, root, server, home, now)
    if v.ints[root, V_KIND] == SHARED:
        busy = int(v.floats[root, V_AWAKE])
        cores = int(v.node_floats[v.ints[root, V_NODE], N_CORES])
    else:
        cores = v.ints[root, V_CORES]
        busy = cores - v.ints[root, V_FREE]
    return float(now - v.falls[falls + busy]) if busy < cores else 0.0


@internal
def sticky_slept(v: Servers, root: int, server: int, home: int, now: float) -> float:
    """Return the same where threads stick to cores: of the one at home, or of the idle one they move to."""
    first, cores = v.ints[root, V_NODE], v.ints[root, V_NODES]
    if server != root:
        node = v.ints[server, V_OWN_NODE]
        while v.node_ints[node, N_PARENT] >= 0:
            node = v.node_ints[node, N_PARENT]
        home = -1
        for seat in range(v.node_ints[node, N_SEATS_END] - 1, v.node_ints[node, N_SEAT] - 1, -1):
            if v.part_seats[seat, P_NUMBER] == 0:
                home = v.part_seats[seat, P_CORE]
        if home < 0:
            return 0.0  # as many of its threads run as ever do
    moves = home < 0 or home >= cores
    if not moves and v.node_ints[first + home, N_SLOTS] > 0 and v.floats[root, V_WAKE] >= LIKELY:
        moves = True
    if moves:
        home = 0
        for core in range(1, cores):
            if v.node_ints[first + core, N_SLOTS] < v.node_ints[first + home, N_SLOTS]:
                home = core
    if v.node_ints[first + home, N_SLOTS] > 0:
        return 0.0
    return float(now - v.falls[v.ints[root, V_FALLS] + home])


@internal
def loop_slept(v: Servers, server: int, gap: float, now: float) -> float:
    """Return how long an event loop has slept (0: something works on it); ``gap`` if a server is none."""
    if server < 0 or v.ints[server, V_ROOT] == server:
        return gap
    node = v.ints[server, V_OWN_NODE]
    if not v.node_ints[node, N_QUEUES]:
        return gap
    return 0.0 if v.node_ints[node, N_JOBS] > 0 else float(now - v.node_floats[node, N_IDLE_SINCE])


# What is added.


@internal
def wake(
    x: Sleeps, v: Servers, m: Frames, frame: int, sleep: int, gap: float, server: int, home: int, now: float
) -> None:
    """Note the shares of the set-ups of a request that begins its work."""
    gap = loop_slept(v, server, gap, now)
    core = core_slept(v, server, home, now, gap)
    m.floats[frame, WORKER_SHARE] = share_after(x.knots, x.bounds, sleep, K_WORKER, gap)
    m.floats[frame, CORE_SHARE] = share_after(x.knots, x.bounds, sleep, K_CORE, core)


@internal
def setup_of(
    x: Sleeps,
    v: Servers,
    f: Flows,
    m: Frames,
    flow: int,
    frame: int,
    setup: int,
    server: int,
    home: int,
    now: float,
) -> float:
    """Return the seconds that a use or delay gets after sleep, and count them.

    Where the front works, and which core is its own, only matters if it is the front's.
    """
    if x.kinds[setup, X_BY_FRONT]:
        gap = f.floats[flow, SLEPT]
        idle = core_slept(v, server, home, now, gap)
        worker = share_after(x.knots, x.bounds, x.kinds[setup, X_SLEEP], K_WORKER, gap)
        core = share_after(x.knots, x.bounds, x.kinds[setup, X_SLEEP], K_CORE, idle)
    else:
        worker, core = m.floats[frame, WORKER_SHARE], m.floats[frame, CORE_SHARE]
    seconds = with_setup(x.seconds, setup, worker, core)
    x.sums[setup, ADDITIONS] += 1.0
    x.sums[setup, ADDED] += seconds
    return float(seconds)
