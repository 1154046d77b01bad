"""Threads that stick to cores in the compiled engine, as in the reference engine.

The nodes of such a processor are its cores and, behind them, its parts and theirs, parents first. The seats
of a part are consecutive rows of ``Servers.part_seats``.
"""

from __future__ import annotations

from mup.native.binding import internal
from simulator.machine.compiled.parts import push_ready
from simulator.machine.compiled.servers import begins, job_push, job_remove, next_begin
from simulator.machine.compiled.state import (
    DEMAND,
    INFINITE,
    LEFT_OVER,
    M_STOPPED,
    M_UNTIL,
    N_BUSY,
    N_CORES,
    N_DONE,
    N_FIRST,
    N_HEAD,
    N_JOBS,
    N_LOAD,
    N_LOWEST,
    N_PACE,
    N_PARENT,
    N_RATE,
    N_SEAT,
    N_SEATS_END,
    N_SLOTS,
    N_SPEED,
    N_UNTIL,
    N_VIRTUAL,
    OWN_CORE,
    P_CORE,
    P_NUMBER,
    P_PINNED,
    P_PLACE,
    SEAT_USED,
    STOPPED,
    STOPPED_ON,
    STOPPED_UNTIL,
    V_ARRIVALS,
    V_BALANCE,
    V_BALANCE_AT,
    V_BUSY,
    V_DONE,
    V_EXPIRES,
    V_FALLS,
    V_LAST,
    V_NEXT,
    V_NEXT_NODE,
    V_NODE,
    V_NODES,
    V_PARTS,
    V_PREEMPT,
    V_QUANTUM,
    V_ROOT,
    V_SPEED,
    V_STEAL,
    V_WAKE,
    Flows,
    Longs,
    Servers,
)
from simulator.machine.variates import exponential, uniform
from simulator.program.instructions import HAD_TURN

__all__ = [
    "end_of_turn",
    "first_seat",
    "next_turn",
    "part_finish",
    "part_use",
    "place_of_running",
    "place_of_woken",
    "seat_parts",
    "sticky_act",
    "sticky_advance",
    "sticky_choose",
    "sticky_emptiest",
    "sticky_fullest",
    "sticky_move",
    "sticky_pace",
    "sticky_put",
    "sticky_settle",
    "sticky_steal",
    "sticky_turns",
    "sticky_use",
]


@internal
def sticky_emptiest(v: Servers, server: int) -> int:
    """Return the first of the cores with the fewest slots."""
    first, best = v.ints[server, V_NODE], 0
    for core in range(1, v.ints[server, V_NODES]):
        if v.node_ints[first + core, N_SLOTS] < v.node_ints[first + best, N_SLOTS]:
            best = core
    return best


@internal
def sticky_fullest(v: Servers, server: int) -> int:
    """Return the first of the cores with the most slots, of those something can be moved from, or -1."""
    first, cores, best = v.ints[server, V_NODE], v.ints[server, V_NODES], -1
    parts = first + cores
    behind = parts + v.ints[server, V_PARTS]
    for core in range(cores):
        slots = v.node_ints[first + core, N_SLOTS]
        if best >= 0 and slots <= v.node_ints[first + best, N_SLOTS]:
            continue
        movable = v.node_ints[first + core, N_JOBS] > 0
        head = -1
        if v.floats[server, V_QUANTUM] > 0.0:
            # Who runs stays.
            head = first_seat(v, server, core)
            running = 1 if head < 0 else 0
            movable = v.node_ints[first + core, N_JOBS] > running
        if not movable and slots > 0 and v.ints[server, V_PARTS] > 0:
            for seat in range(v.node_ints[parts, N_SEAT], v.node_ints[behind - 1, N_SEATS_END]):
                if v.part_seats[seat, P_CORE] == core and v.part_seats[seat, P_NUMBER] > 0 and seat != head:
                    movable = movable or v.part_seats[seat, P_PINNED] == 0
        if movable:
            best = core
    return best


@internal
def first_seat(v: Servers, server: int, core: int) -> int:
    """Return the seat whose turn it is on a core; -1 if it is that of the first job, or nobody's."""
    first = v.ints[server, V_NODE]
    parts = first + v.ints[server, V_NODES]
    place, head = 0, -1
    if v.node_ints[first + core, N_JOBS] > 0:
        place = int(v.job_ends[first + core, 0])
    if v.ints[server, V_PARTS] > 0:
        behind = parts + v.ints[server, V_PARTS]
        for seat in range(v.node_ints[parts, N_SEAT], v.node_ints[behind - 1, N_SEATS_END]):
            there_now = v.part_seats[seat, P_NUMBER] > 0 and v.part_seats[seat, P_CORE] == core
            if there_now and (place == 0 or v.part_seats[seat, P_PLACE] < place):
                place, head = v.part_seats[seat, P_PLACE], seat
    return head


@internal
def place_of_woken(v: Servers, server: int, core: int) -> int:
    """Return the place on a core of a thread that wakes up there, the last one that has got a number."""
    place: int = v.ints[server, V_ARRIVALS]
    if v.node_ints[v.ints[server, V_NODE] + core, N_SLOTS] > 0 and v.floats[server, V_PREEMPT] > 0.0:
        state, u = uniform(v.bits[server])
        v.bits[server] = state
        if u < v.floats[server, V_PREEMPT]:
            place = place_of_running(v, v.ints[server, V_NODE] + core)
    return place


@internal
def place_of_running(v: Servers, node: int) -> int:
    """Return a place on a core before all others."""
    v.node_ints[node, N_LOWEST] -= 1
    place: int = v.node_ints[node, N_LOWEST]
    return place


@internal
def sticky_choose(v: Servers, server: int, home: int) -> int:
    """Return the core on which a thread wakes up."""
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    if home < 0 or home >= cores:
        return sticky_emptiest(v, server)
    if v.node_ints[first + home, N_SLOTS] > 0 and v.floats[server, V_WAKE] > 0.0:
        idle = sticky_emptiest(v, server)
        if v.node_ints[first + idle, N_SLOTS] == 0:
            state, u = uniform(v.bits[server])
            v.bits[server] = state
            if u < v.floats[server, V_WAKE]:
                return idle
    return home


@internal
def sticky_advance(v: Servers, f: Flows, server: int, now: float) -> None:
    """Bring virtual times, the work of those whose turn it is, and the busy accounts up to now."""
    elapsed = now - v.floats[server, V_LAST]
    first = v.ints[server, V_NODE]
    parts = first + v.ints[server, V_NODES]
    speed = v.floats[server, V_SPEED]
    for node in range(first, parts):
        slots = v.node_ints[node, N_SLOTS]
        if slots > 0:
            v.floats[server, V_BUSY] += elapsed
            if v.floats[server, V_QUANTUM] == 0.0:
                v.node_floats[node, N_VIRTUAL] += elapsed * (speed / slots)
            elif v.node_ints[node, N_HEAD] < 0:
                f.floats[v.job_flows[node, 0], LEFT_OVER] -= elapsed * speed
    for node in range(parts, parts + v.ints[server, V_PARTS]):
        jobs = v.node_ints[node, N_JOBS]
        if jobs > 0:
            rate = v.node_floats[node, N_RATE]
            v.node_floats[node, N_BUSY] += jobs * rate / v.node_floats[node, N_PACE] * elapsed
            v.node_floats[node, N_VIRTUAL] += elapsed * rate
    v.floats[server, V_LAST] = now


@internal
def sticky_put(v: Servers, f: Flows, node: int, end: float, number: int, flow: int, core: int) -> None:
    """Put a job on a core, and note that its thread is there now."""
    jobs = v.node_ints[node, N_JOBS]
    job_push(v, node, jobs, end, number, flow)
    v.node_ints[node, N_JOBS] = jobs + 1
    v.node_ints[node, N_SLOTS] += 1
    seat = f.ints[flow, SEAT_USED]
    if seat >= 0:
        v.seat_cores[seat] = core
    else:
        f.ints[flow, OWN_CORE] = core


@internal
def sticky_move(v: Servers, f: Flows, server: int, source: int, target: int) -> None:
    """Move the thread that came last, of those that may be moved, from one core to another."""
    first = v.ints[server, V_NODE]
    there, here = first + source, first + target
    jobs = v.node_ints[there, N_JOBS]
    turns = v.floats[server, V_QUANTUM] > 0.0
    head = first_seat(v, server, source) if turns else -1
    waiting = 1 if turns and head < 0 else 0
    latest, number = 0, 0
    for at in range(waiting, jobs):
        if v.job_numbers[there, at] > number:
            latest, number = at, v.job_numbers[there, at]
    parts = first + v.ints[server, V_NODES]
    behind = parts + v.ints[server, V_PARTS]
    mover = -1
    if v.ints[server, V_PARTS] > 0:
        for seat in range(v.node_ints[parts, N_SEAT], v.node_ints[behind - 1, N_SEATS_END]):
            there_now = v.part_seats[seat, P_CORE] == source and v.part_seats[seat, P_PINNED] == 0
            if there_now and v.part_seats[seat, P_NUMBER] > number and seat != head:
                mover, number = seat, v.part_seats[seat, P_NUMBER]
    v.node_ints[there, N_SLOTS] -= 1
    if turns:
        v.ints[server, V_ARRIVALS] += 1
    if mover >= 0:
        v.part_seats[mover, P_CORE] = target
        v.part_seats[mover, P_PLACE] = v.ints[server, V_ARRIVALS] + HAD_TURN
        v.node_ints[here, N_SLOTS] += 1
        return
    left = v.job_ends[there, latest] - v.node_floats[there, N_VIRTUAL]
    flow = v.job_flows[there, latest]
    job_remove(v, there, jobs, latest)
    v.node_ints[there, N_JOBS] = jobs - 1
    if v.node_ints[here, N_JOBS] == 0:
        v.node_floats[here, N_VIRTUAL] = 0.0
    end = v.node_floats[here, N_VIRTUAL] + left
    if turns:
        end = float(v.ints[server, V_ARRIVALS] + HAD_TURN)
    sticky_put(v, f, here, end, number, flow, target)


@internal
def sticky_steal(v: Servers, f: Flows, server: int, thief: int) -> None:
    """Let a core that may have fallen idle take a thread from the fullest one."""
    first = v.ints[server, V_NODE]
    if v.node_ints[first + thief, N_SLOTS] > 0 or v.floats[server, V_STEAL] <= 0.0:
        return
    source = sticky_fullest(v, server)
    if source >= 0 and v.node_ints[first + source, N_SLOTS] >= 2:
        state, u = uniform(v.bits[server])
        v.bits[server] = state
        if u < v.floats[server, V_STEAL]:
            sticky_move(v, f, server, source, thief)


# Parts.


@internal
def seat_parts(v: Servers, f: Flows, server: int) -> None:
    """Wake seats of parts, or let them go to sleep, until as many run as there is work for."""
    cores = v.ints[server, V_NODE]
    first = cores + v.ints[server, V_NODES]
    last = first + v.ints[server, V_PARTS]
    for node in range(first, last):
        v.node_floats[node, N_LOAD] = float(v.node_ints[node, N_JOBS])
    for node in range(last - 1, first - 1, -1):
        parent = v.node_ints[node, N_PARENT]
        if parent >= 0:
            v.node_floats[parent, N_LOAD] += min(v.node_floats[node, N_LOAD], v.node_floats[node, N_CORES])
    for node in range(first, last):
        if v.node_ints[node, N_PARENT] >= 0:
            continue
        seats, behind = v.node_ints[node, N_SEAT], v.node_ints[node, N_SEATS_END]
        wanted = min(v.node_floats[node, N_LOAD], v.node_floats[node, N_CORES])
        running = 0
        for seat in range(seats, behind):
            running += v.part_seats[seat, P_NUMBER] > 0
        while running != wanted:
            wakes = running < wanted
            eligible = behind - seats - running if wakes else running
            skipped = 0
            if eligible > 1:
                state, u = uniform(v.bits[server])
                v.bits[server] = state
                skipped = int(u * eligible)
            chosen = seats
            for seat in range(seats, behind):
                if (v.part_seats[seat, P_NUMBER] == 0) == wakes:
                    chosen = seat
                    skipped -= 1
                    if skipped < 0:
                        break
            core = v.part_seats[chosen, P_CORE]
            if wakes:
                goes_on = v.part_marks[chosen, M_STOPPED] == v.floats[server, V_LAST]
                if v.part_seats[chosen, P_PINNED] == 0 and not goes_on:
                    core = sticky_choose(v, server, core)
                v.ints[server, V_ARRIVALS] += 1
                v.part_seats[chosen, P_CORE] = core
                v.part_seats[chosen, P_NUMBER] = v.ints[server, V_ARRIVALS]
                if goes_on:
                    v.part_seats[chosen, P_PLACE] = place_of_running(v, cores + core)
                    v.node_floats[cores + core, N_FIRST] = float(v.part_seats[chosen, P_PLACE])
                    v.node_floats[cores + core, N_UNTIL] = v.part_marks[chosen, M_UNTIL]
                else:
                    v.part_seats[chosen, P_PLACE] = place_of_woken(v, server, core)
                v.node_ints[cores + core, N_SLOTS] += 1
                running += 1
            else:
                v.part_seats[chosen, P_NUMBER] = 0
                v.node_ints[cores + core, N_SLOTS] -= 1
                if v.floats[server, V_QUANTUM] > 0.0:
                    v.part_marks[chosen, M_STOPPED] = v.floats[server, V_LAST]
                    v.part_marks[chosen, M_UNTIL] = v.node_floats[cores + core, N_UNTIL]
                running -= 1
                sticky_steal(v, f, server, core)


@internal
def sticky_pace(v: Servers, server: int) -> None:
    """Set the rate at which each job of every part is served, by the loads ``seat_parts`` has found."""
    cores = v.ints[server, V_NODE]
    first = cores + v.ints[server, V_NODES]
    for node in range(first, first + v.ints[server, V_PARTS]):
        load = v.node_floats[node, N_LOAD]
        parent = v.node_ints[node, N_PARENT]
        rate = 0.0
        if parent >= 0:
            share = 1.0
            if load > v.node_floats[node, N_CORES]:
                share = v.node_floats[node, N_CORES] / load
            rate = v.node_floats[node, N_SPEED] * share * v.node_floats[parent, N_RATE]
        elif load > 0.0:
            total = 0.0
            for seat in range(v.node_ints[node, N_SEAT], v.node_ints[node, N_SEATS_END]):
                if v.part_seats[seat, P_NUMBER] > 0:
                    core = cores + v.part_seats[seat, P_CORE]
                    if v.floats[server, V_QUANTUM] == 0.0:
                        total += v.floats[server, V_SPEED] / v.node_ints[core, N_SLOTS]
                    elif v.node_ints[core, N_HEAD] == seat:
                        total += v.floats[server, V_SPEED]
            rate = v.node_floats[node, N_SPEED] * (total / load)
        v.node_floats[node, N_RATE] = rate


@internal
def part_use(v: Servers, f: Flows, part: int, flow: int, demand: float, keeps: bool, now: float) -> None:
    """Start a job in a part, or queue it there."""
    server = v.ints[part, V_ROOT]
    sticky_advance(v, f, server, now)
    if begins(v, f, server, part, flow, demand, keeps, now):
        seat_parts(v, f, server)
        sticky_settle(v, f, server, now)


@internal
def part_finish(v: Servers, f: Flows, scalars: Longs, server: int, node: int) -> None:
    """The first job of a part is done, and whatever ends with it; those that wait come next."""
    virtual = v.job_ends[node, 0]
    v.node_floats[node, N_VIRTUAL] = virtual
    jobs = v.node_ints[node, N_JOBS]
    while jobs > 0 and v.job_ends[node, 0] <= virtual:
        flow = v.job_flows[node, 0]
        job_remove(v, node, jobs, 0)
        jobs -= 1
        v.node_floats[node, N_DONE] += f.floats[flow, DEMAND]
        push_ready(scalars, f, flow)
    next_begin(v, f, server, node, jobs, v.floats[server, V_LAST])
    seat_parts(v, f, server)


# Events.


@internal
def sticky_settle(v: Servers, f: Flows, server: int, now: float) -> None:
    """Balance after a change, if there is cause, and schedule the next event."""
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    floats, speed = v.floats, v.floats[server, V_SPEED]
    if floats[server, V_BALANCE] > 0.0:
        most = sticky_fullest(v, server)
        least = v.node_ints[first + sticky_emptiest(v, server), N_SLOTS]
        if most < 0 or v.node_ints[first + most, N_SLOTS] - least < 2:
            floats[server, V_BALANCE_AT] = INFINITE
        elif floats[server, V_BALANCE_AT] == INFINITE:
            state, wait = exponential(1.0 / floats[server, V_BALANCE], v.bits[server])
            v.bits[server] = state
            floats[server, V_BALANCE_AT] = now + wait
    if floats[server, V_QUANTUM] > 0.0:
        sticky_turns(v, server, now)
    if v.ints[server, V_PARTS] > 0:
        sticky_pace(v, server)
    falls = v.ints[server, V_FALLS]
    if falls >= 0:
        for core in range(cores):
            if v.node_ints[first + core, N_SLOTS] > 0:
                v.falls[falls + core] = INFINITE
            elif v.falls[falls + core] == INFINITE:
                v.falls[falls + core] = now
    soonest = floats[server, V_BALANCE_AT]
    v.ints[server, V_NEXT_NODE] = -1
    sharing = first
    if floats[server, V_QUANTUM] > 0.0:
        sharing = first + cores
        for node in range(first, sharing):
            end, expires = end_of_turn(v, f, server, node, now)
            if end < soonest:
                soonest = end
                v.ints[server, V_NEXT_NODE] = node
                v.ints[server, V_EXPIRES] = expires
    for node in range(sharing, first + cores + v.ints[server, V_PARTS]):
        if v.node_ints[node, N_JOBS] > 0:
            rate = speed / v.node_ints[node, N_SLOTS] if node < first + cores else v.node_floats[node, N_RATE]
            if rate > 0.0:
                left = max(0.0, v.job_ends[node, 0] - v.node_floats[node, N_VIRTUAL]) / rate
                if now + left < soonest:
                    soonest = now + left
                    v.ints[server, V_NEXT_NODE] = node
    floats[server, V_NEXT] = soonest


@internal
def sticky_turns(v: Servers, server: int, now: float) -> None:
    """Let who is the first on every core run; a turn begins where that is another one than before."""
    first = v.ints[server, V_NODE]
    for core in range(v.ints[server, V_NODES]):
        node = first + core
        head = first_seat(v, server, core)
        place = 0.0
        if head >= 0:
            place = float(v.part_seats[head, P_PLACE])
        elif v.node_ints[node, N_JOBS] > 0:
            place = v.job_ends[node, 0]
        v.node_ints[node, N_HEAD] = head
        if place != v.node_floats[node, N_FIRST]:
            if place > 0.0:
                # Who wakes up does not push this one aside any more.
                place = float(place_of_running(v, node))
                if head >= 0:
                    v.part_seats[head, P_PLACE] = int(place)
                else:
                    v.job_ends[node, 0] = place
            v.node_floats[node, N_FIRST] = place
            v.node_floats[node, N_UNTIL] = now + v.floats[server, V_QUANTUM]


@internal
def end_of_turn(v: Servers, f: Flows, server: int, node: int, now: float) -> tuple[float, int]:
    """Return when who runs on a core has done its job, and 0; or has to let another one run, and 1."""
    end = INFINITE
    if v.node_ints[node, N_JOBS] > 0 and v.node_ints[node, N_HEAD] < 0:
        left = f.floats[v.job_flows[node, 0], LEFT_OVER]
        end = now + max(0.0, left) / v.floats[server, V_SPEED]
    if v.node_ints[node, N_SLOTS] > 1 and max(now, v.node_floats[node, N_UNTIL]) < end:
        return max(now, v.node_floats[node, N_UNTIL]), 1
    return end, 0


@internal
def next_turn(v: Servers, server: int, node: int) -> None:
    """Make who runs on a core the last of those that wait for it."""
    v.ints[server, V_ARRIVALS] += 1
    last = v.ints[server, V_ARRIVALS] + HAD_TURN
    if v.node_ints[node, N_HEAD] >= 0:
        v.part_seats[v.node_ints[node, N_HEAD], P_PLACE] = last
        return
    jobs, number, flow = v.node_ints[node, N_JOBS], v.job_numbers[node, 0], v.job_flows[node, 0]
    job_remove(v, node, jobs, 0)
    job_push(v, node, jobs - 1, float(last), number, flow)


@internal
def sticky_use(
    v: Servers, f: Flows, server: int, flow: int, demand: float, seat: int, keeps: bool, now: float
) -> None:
    """Start a flow on the core it chooses, or in the part of the processor that it runs on."""
    if v.ints[server, V_ROOT] != server:
        part_use(v, f, server, flow, demand, keeps, now)
        return
    sticky_advance(v, f, server, now)
    core = v.seat_cores[seat] if seat >= 0 else f.ints[flow, OWN_CORE]
    turns = v.floats[server, V_QUANTUM] > 0.0
    # The same request on the same thread, without sleep: its turn goes on.
    goes_on = turns and f.floats[flow, STOPPED] == now and f.floats[flow, STOPPED_ON] == server
    goes_on = goes_on and f.ints[flow, SEAT_USED] == seat
    if not goes_on:
        core = sticky_choose(v, server, core)
    node = v.ints[server, V_NODE] + core
    if v.node_ints[node, N_JOBS] == 0:
        v.node_floats[node, N_VIRTUAL] = 0.0
    v.ints[server, V_ARRIVALS] += 1
    f.ints[flow, SEAT_USED] = seat
    end = v.node_floats[node, N_VIRTUAL] + demand
    if goes_on:
        end = float(place_of_running(v, node))
        v.node_floats[node, N_FIRST] = end
        v.node_floats[node, N_UNTIL] = f.floats[flow, STOPPED_UNTIL]
    elif turns:
        end = float(place_of_woken(v, server, core))
    if turns:
        f.floats[flow, LEFT_OVER] = demand
    sticky_put(v, f, node, end, v.ints[server, V_ARRIVALS], flow, core)
    sticky_settle(v, f, server, now)


@internal
def sticky_act(v: Servers, f: Flows, scalars: Longs, server: int, now: float) -> None:
    """A job is done, a turn is over, or it is time to balance."""
    sticky_advance(v, f, server, now)
    first, cores = v.ints[server, V_NODE], v.ints[server, V_NODES]
    node = v.ints[server, V_NEXT_NODE]
    if node < 0:
        v.floats[server, V_BALANCE_AT] = INFINITE
        sticky_move(v, f, server, sticky_fullest(v, server), sticky_emptiest(v, server))
    elif node >= first + cores:
        part_finish(v, f, scalars, server, node)
    elif v.floats[server, V_QUANTUM] > 0.0 and v.ints[server, V_EXPIRES]:
        next_turn(v, server, node)
    elif v.floats[server, V_QUANTUM] > 0.0:
        flow, jobs = v.job_flows[node, 0], v.node_ints[node, N_JOBS]
        f.floats[flow, STOPPED] = now
        f.floats[flow, STOPPED_UNTIL] = v.node_floats[node, N_UNTIL]
        f.floats[flow, STOPPED_ON] = float(server)
        job_remove(v, node, jobs, 0)
        v.node_ints[node, N_JOBS] = jobs - 1
        v.node_ints[node, N_SLOTS] -= 1
        v.floats[server, V_DONE] += f.floats[flow, DEMAND]
        push_ready(scalars, f, flow)
        sticky_steal(v, f, server, node - first)
    else:
        virtual = v.job_ends[node, 0]
        v.node_floats[node, N_VIRTUAL] = virtual
        jobs = v.node_ints[node, N_JOBS]
        before = jobs
        while jobs > 0 and v.job_ends[node, 0] <= virtual:
            flow = v.job_flows[node, 0]
            job_remove(v, node, jobs, 0)
            jobs -= 1
            v.floats[server, V_DONE] += f.floats[flow, DEMAND]
            push_ready(scalars, f, flow)
        v.node_ints[node, N_JOBS] = jobs
        v.node_ints[node, N_SLOTS] -= before - jobs
        sticky_steal(v, f, server, node - first)
    sticky_settle(v, f, server, now)
