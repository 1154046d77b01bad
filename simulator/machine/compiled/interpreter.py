"""Interpreter of programs of the compiled engine, in one compiled function.

It executes the same instructions as ``simulator.machine.reference.engine`` with the same randomness in the
same order, so that both engines go through the same states at the same moments, bit for bit. What is
different:

- State lives in arrays (``simulator.machine.compiled.state``), which ``simulator.machine.compiled.engine``
  creates.
- *Look-ahead*: after a timed step a flow goes on at once, in its own local time, as long as it only does
  what no other flow can notice, and not beyond the moment the caller wants to see. It comes back into the
  order of events where it next touches something shared. Sums do not mind the order of their terms.
- *Inline branches* (FORK_JOIN): a plain fork-join is executed by one flow that uses the branch's stream and
  key in between, unless other flows that have been created at the same instant must start before.

Events are kept in a 4-ary heap ordered by (time, key of the flow).
"""

from __future__ import annotations

from typing import Final

from mup.native.binding import compiled
from simulator.machine.compiled.parts import (
    cycle_done,
    drop_frame,
    enter,
    free_flow,
    give_thread,
    leave,
    lock,
    mean_since,
    new_flow,
    new_frame,
    push_ready,
    push_urgent,
    sample,
    sift_down,
    sift_up,
    unlock,
)
from simulator.machine.compiled.servers import (
    append_to_server,
    preemptive_finish,
    preemptive_use,
    running_account,
    soonest_after,
    soonest_server,
    take_from_server,
    tree_finish,
    tree_use,
)
from simulator.machine.compiled.sleep import (
    client_rests,
    client_wakes,
    core_falls_idle,
    setup_of,
    slept,
    wake,
)
from simulator.machine.compiled.state import (
    ACTIVE,
    ADMITTED,
    AHEAD,
    ARRIVED,
    AT,
    AWAKE,
    AWAY,
    BEGUN,
    BY_CARRIER,
    BY_INLINE_BRANCH,
    C_POPULATION,
    C_RANK,
    CALLER,
    CARRIED,
    CARRIER,
    COMPLETIONS,
    CORE_SHARE,
    COUNTED,
    CULPRIT,
    CURRENT,
    DEADLOCK,
    DELAYED,
    DEMAND,
    DONE,
    E_EPILOGUE,
    E_LEVEL,
    E_REPLIES_ELSEWHERE,
    E_START,
    E_TASK,
    E_TOKEN,
    E_WAITS,
    EMPTY,
    ENDED,
    ENDLESS,
    ENTRY,
    EVENTS,
    EXECUTIONS,
    F_HEAD,
    F_TAIL,
    FRAME,
    FREE_FLOW,
    FREE_FRAME,
    HALF_UNLIMITED,
    HEAP_SIZE,
    I_FIRST,
    I_OPERATION,
    I_SECOND,
    I_WHERE,
    INFINITE,
    INLINE,
    J_ARRIVALS,
    J_CARRIED,
    J_NEEDED,
    J_SLOT,
    J_TIMER,
    JOIN_STUCK,
    JOINED,
    KEEPS,
    KEY,
    LAST_END,
    LAST_JOINED,
    LASTED,
    LOCAL,
    LOOK_AHEAD,
    MORE_FLOWS,
    MORE_FRAMES,
    MORE_JOBS,
    N_JOBS,
    NEXT,
    NO_FLOW,
    NOW,
    O_FIRST,
    O_OPTIONS,
    OWN_CORE,
    PARKED,
    PARKED_AT,
    PAUSE_STEPS,
    PAUSED,
    POPULATION,
    READY_HEAD,
    REFERENCES,
    RELEASED,
    REPLIED,
    REQUESTS,
    RETURN_TO,
    S_ADMISSION,
    S_BUSY_LEVEL,
    S_CAPACITY,
    S_FREE,
    S_FRONT_FREE,
    S_FRONT_SEAT,
    S_REST,
    S_SEATED,
    S_SEATS,
    S_WAITING,
    S_WAITING_LEVEL,
    SAVED_CORE,
    SAVED_KEY,
    SAVED_STREAM,
    SEAT,
    SERVER,
    SINCE,
    SITE,
    SLEPT,
    SPINNING,
    STANDSTILL,
    STATION,
    STOPPED,
    STREAM,
    T_RANK,
    T_REPLICAS,
    T_STATION,
    THOUGHT_TIME,
    TOKEN_OVERFLOW,
    TRACED,
    TRACING,
    TURN,
    U_LEVEL,
    URGENT_HEAD,
    V_BY_PRIORITY,
    V_CORES,
    V_DONE,
    V_FREE,
    V_KIND,
    V_NEXT,
    V_NODE,
    V_NODES,
    V_OWN_NODE,
    V_PACE,
    V_ROOT,
    V_SPEED,
    V_STARTS,
    WAITED_FOR_CORE,
    WAITING_SINCE,
    WORKER_SHARE,
    State,
)
from simulator.machine.compiled.sticky import sticky_act, sticky_use
from simulator.machine.variates import (
    draw,
    quick_draw,
    split,
    uniform,
)
from simulator.program import (
    ACQUIRES,
    ADMIT,
    BEGIN,
    BRANCH,
    BRANCH_END,
    BY_FRONT,
    BY_REPLICA,
    CALL,
    CHOICE,
    COUNT,
    CYCLE,
    DELAY,
    END,
    FAN_OUT,
    FCFS,
    FINISH,
    FOR_NOTHING,
    FOR_THREAD,
    FOR_WRITING,
    FORK,
    FORK_JOIN,
    FORWARD,
    FRONT_GIVE,
    FRONT_TAKE,
    GOTO,
    JOIN,
    LATE,
    LEAVE,
    LOOP,
    MAX_EMPTY_CYCLES,
    MAX_STANDSTILL,
    PLAIN,
    PREEMPTIVE,
    PRIORITY,
    REACQUIRE,
    RELEASE,
    RELEASES,
    REPLY,
    REST,
    RETURN,
    SEND,
    SERVED,
    SETUP_STEP,
    SHARED,
    SPLIT,
    STICKY,
    TAKE,
    THINK,
    THOUGHT,
    USE,
    WAKE,
)

__all__ = ["advance"]

NOTICED: Final = (
    (1 << THINK)
    | (1 << CALL)
    | (1 << FORWARD)
    | (1 << THOUGHT)
    | (1 << COUNT)
    | (1 << LOOP)
    | (1 << SPLIT)
    | (1 << BEGIN)
    | (1 << FINISH)
)
"""Set of instructions, one bit each, that other branches of the same request could notice: a flow that has
run ahead waits for its turn before them, unless it is the only one of its request. (RETURN and END need to
know more, and decide by themselves.)"""


@compiled
def advance(s: State, until: float) -> int:
    """Execute everything that happens before ``until`` (seconds); return how that ended.

    It comes back as ``PAUSED`` now and then: the next call goes on as if there had been no pause.
    """
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
    rests = q.rests
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
    steps = 0

    while True:
        steps += 1
        if steps > PAUSE_STEPS:
            status = PAUSED
            break
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
                server_next = soonest_after(v, server)
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
                    core_falls_idle(v, server, now)
        if scalars[STANDSTILL] > MAX_STANDSTILL:
            status = ENDLESS
            break

        frame = flow_ints[flow, FRAME]
        at = flow_ints[flow, AT]
        stream = flow_bits[flow, STREAM]
        push = False  # the flow's timed step goes into the heap
        interrupted = DONE

        while True:
            operation = code[at, I_OPERATION]
            a = code[at, I_FIRST]
            b = code[at, I_SECOND]
            if ahead and (NOTICED >> operation) & 1 and frame_ints[frame, ACTIVE] > 1:
                push = True
                break
            at += 1

            if operation == DELAY or operation == THINK:
                setup = code[at - 1, I_WHERE] - 1
                if setup >= 0 and ahead:
                    push = True
                    at -= 1
                    break
                stream, time = quick_draw(kinds, parameters, data, b, stream)
                if setup >= 0:
                    time += setup_of(s.sleeps, v, f, m, flow, frame, setup, -1, -1, t)
                events += 1
                flow_ints[flow, KEEPS] = -1
                flow_bits[flow, TURN] = flow_bits[flow, KEY]
                if tracing and scalars[TRACED] < len(trace_times):
                    trace_times[scalars[TRACED]] = t
                    trace_keys[scalars[TRACED]] = flow_bits[flow, KEY]
                    scalars[TRACED] += 1
                if operation == THINK:
                    flow_floats[flow, SINCE] = t
                    if frame_ints[frame, CARRIER] == flow and frame_ints[frame, POPULATION] >= 0:
                        enter(levels, populations[frame_ints[frame, POPULATION], U_LEVEL], t)
                t = t + time
                ahead = True
                if t >= until or not look_ahead:
                    push = True
                    break

            elif operation == CALL or operation == FORWARD:
                if scalars[FREE_FRAME] < 0:
                    interrupted = MORE_FRAMES
                    break
                steps += 1
                if steps > PAUSE_STEPS:
                    interrupted = PAUSED
                    break
                task = entries[a, E_TASK]
                if operation == CALL:
                    caller, back = frame, at
                    carried = 0
                    if frame_ints[frame, CARRIER] == flow:
                        carried = BY_CARRIER
                        frame_ints[frame, CARRIER] = AWAY
                    elif frame_ints[frame, INLINE] == flow + 1:
                        carried = BY_INLINE_BRANCH
                        frame_ints[frame, INLINE] = 0
                else:
                    leave(levels, entries[frame_ints[frame, ENTRY], E_LEVEL], t, frame_floats[frame, ARRIVED])
                    sample(
                        entry_samples,
                        entry_counts,
                        frame_ints[frame, ENTRY],
                        t,
                        t - frame_floats[frame, ARRIVED],
                        scratch,
                    )
                    caller, back = frame_ints[frame, CALLER], frame_ints[frame, RETURN_TO]
                    carried = frame_ints[frame, CARRIED]
                    drop_frame(scalars, m, frame)
                frame = new_frame(scalars, m, a, caller, back, b, flow, t)
                frame_ints[frame, CARRIED] = carried
                station = tasks[task, T_STATION]
                copies = tasks[task, T_REPLICAS]
                if copies > 1:
                    stream, u = uniform(stream)
                    station += int(u * copies)
                frame_ints[frame, STATION] = station
                enter(levels, entries[a, E_LEVEL], t)
                at = entries[a, E_START]

            elif operation == ADMIT or operation == REACQUIRE:
                station = frame_ints[frame, STATION]
                if a != FOR_NOTHING and station_ints[station, S_FREE] < HALF_UNLIMITED:
                    if ahead:
                        push = True
                        at -= 1
                        break
                    frame_floats[frame, WAITING_SINCE] = t
                    taken = station_ints[station, S_FREE] > 0
                    if a != FOR_THREAD:
                        taken = lock(q, station, a)
                    elif taken:
                        station_ints[station, S_FREE] -= 1
                    if not taken:
                        enter(levels, station_ints[station, S_WAITING_LEVEL], t)
                        station_ints[station, S_WAITING] += 1
                        rank = (
                            sites[frame_ints[frame, SITE], C_RANK]
                            if station_ints[station, S_ADMISSION] == PRIORITY
                            else int(a == FOR_WRITING)
                        )
                        flow_ints[flow, NEXT] = -1
                        if station_heads[station, rank] < 0:
                            station_heads[station, rank] = flow
                        else:
                            flow_ints[station_tails[station, rank], NEXT] = flow
                        station_tails[station, rank] = flow
                        flow_ints[flow, COUNTED] = operation == ADMIT
                        break  # what gives it a thread does the rest
                    if station_ints[station, S_SEATED] > 0:
                        station_ints[station, S_SEATED] -= 1
                        seat = station_ints[station, S_SEATS] + station_ints[station, S_SEATED]
                        frame_ints[frame, SEAT] = seat_stack[seat]
                    if station_ints[station, S_REST] >= 0:
                        flow_floats[flow, SLEPT] = slept(q, station, t)
                frame_floats[frame, ADMITTED] = t
                if entries[frame_ints[frame, ENTRY], E_TOKEN] != RELEASES:
                    enter(levels, station_ints[station, S_BUSY_LEVEL], t)
                if operation == ADMIT:
                    site_sums[frame_ints[frame, SITE], REQUESTS] += 1.0

            elif operation == RETURN:
                entry = frame_ints[frame, ENTRY]
                caller = frame_ints[frame, CALLER]
                if ahead and frame_ints[caller, ACTIVE] > 1:
                    push = True
                    at -= 1
                    break
                leave(levels, entries[entry, E_LEVEL], t, frame_floats[frame, ARRIVED])
                sample(
                    entry_samples,
                    entry_counts,
                    entry,
                    t,
                    t - frame_floats[frame, ARRIVED],
                    scratch,
                )
                at = frame_ints[frame, RETURN_TO]
                if frame_ints[frame, CARRIED] == BY_CARRIER and frame_ints[caller, CARRIER] == AWAY:
                    frame_ints[caller, CARRIER] = flow
                elif frame_ints[frame, CARRIED] == BY_INLINE_BRANCH:
                    frame_ints[caller, INLINE] = flow + 1
                drop_frame(scalars, m, frame)
                frame = caller

            elif operation == END:
                entry = frame_ints[frame, ENTRY]
                station = frame_ints[frame, STATION]
                site = frame_ints[frame, SITE]
                token = entries[entry, E_TOKEN]
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
                    frame_ints[frame, CARRIER] = NO_FLOW
                elif frame_ints[frame, ACTIVE] == 0 and frame_ints[frame, PARKED_AT] >= 0:
                    scalars[CULPRIT] = frame_ints[frame, PARKED_AT]
                    interrupted = JOIN_STUCK
                    break
                if (
                    frame_ints[frame, ENDED]
                    and not frame_ints[frame, RELEASED]
                    and (not entries[entry, E_WAITS] or frame_ints[frame, ACTIVE] == 0)
                ):
                    frame_ints[frame, RELEASED] = 1
                    if site >= 0:
                        since = frame_floats[frame, ADMITTED]
                        if token == RELEASES:
                            since = mean_since(levels, station_ints[station, S_BUSY_LEVEL], t)
                        if token != ACQUIRES:
                            leave(levels, station_ints[station, S_BUSY_LEVEL], t, since)
                        if token > RELEASES:
                            if not unlock(scalars, f, m, q, r, station, token, t):
                                scalars[CULPRIT] = entries[entry, E_TASK]
                                interrupted = TOKEN_OVERFLOW
                                break
                        elif token == PLAIN or token == RELEASES:
                            if (
                                token == RELEASES
                                and station_ints[station, S_FREE] >= station_ints[station, S_CAPACITY]
                            ):
                                scalars[CULPRIT] = entries[entry, E_TASK]
                                interrupted = TOKEN_OVERFLOW
                                break
                            if station_ints[station, S_FREE] < HALF_UNLIMITED:
                                seat = frame_ints[frame, SEAT]
                                frame_ints[frame, SEAT] = -1
                                give_thread(scalars, f, m, q, r, station, seat, t)
                if (
                    frame_ints[frame, REPLIED]
                    or not frame_ints[frame, RELEASED]
                    or (entries[entry, E_REPLIES_ELSEWHERE] and frame_ints[frame, ACTIVE] > 0)
                ):
                    drop_frame(scalars, m, frame)
                    free_flow(scalars, f, flow)
                    flow = -1
                    break
                frame_ints[frame, REPLIED] = 1
                if site >= 0 and frame_ints[frame, CALLER] < 0:
                    leave(levels, entries[entry, E_LEVEL], t, frame_floats[frame, ARRIVED])
                    sample(entry_samples, entry_counts, entry, t, t - frame_floats[frame, ARRIVED], scratch)
                    if frame_ints[frame, POPULATION] >= 0:
                        cycle_done(m, r, frame, t)
                    drop_frame(scalars, m, frame)
                    free_flow(scalars, f, flow)
                    flow = -1
                    break
                at = entries[entry, E_EPILOGUE]

            elif operation == CHOICE:
                stream, u = uniform(stream)
                first = choice_bounds[a, O_FIRST]
                option = first
                last = first + choice_bounds[a, O_OPTIONS] - 1
                while option < last and u >= choice_odds[option]:
                    option += 1
                at = choice_addresses[option]

            elif operation == GOTO:
                steps += 1
                if steps > PAUSE_STEPS:
                    interrupted = PAUSED
                    break
                at = a

            elif operation == THOUGHT:
                if frame_ints[frame, CARRIER] == flow and frame_ints[frame, POPULATION] >= 0:
                    since = flow_floats[flow, SINCE]
                    leave(levels, populations[frame_ints[frame, POPULATION], U_LEVEL], t, since)
                    frame_floats[frame, THOUGHT_TIME] += t - since

            elif operation == FORK_JOIN and (
                frame_ints[frame, CARRIER] == flow and (ahead or scalars[URGENT_HEAD] < 0)
            ):
                # The branch would start next; the forking flow becomes it, as it would wait at the join.
                frame_bits[frame, SAVED_KEY] = flow_bits[flow, KEY]
                stream, child = split(stream)
                frame_bits[frame, SAVED_STREAM] = stream
                stream = child
                flow_bits[flow, KEY] = child
                frame_ints[frame, CARRIER] = NO_FLOW
                frame_ints[frame, INLINE] = flow + 1
                frame_ints[frame, SAVED_CORE] = flow_ints[flow, OWN_CORE]
                if frame_ints[frame, SEAT] >= 0:
                    flow_ints[flow, OWN_CORE] = v.seat_cores[frame_ints[frame, SEAT]]
                flow_floats[flow, STOPPED] = -1.0
                flow_ints[flow, KEEPS] = -1
                at = a

            elif operation == BRANCH_END and frame_ints[frame, INLINE] == flow + 1:
                frame_ints[frame, INLINE] = 0
                frame_ints[frame, CARRIER] = flow
                flow_ints[flow, OWN_CORE] = frame_ints[frame, SAVED_CORE]
                flow_floats[flow, STOPPED] = -1.0
                flow_ints[flow, KEEPS] = -1
                stream = frame_bits[frame, SAVED_STREAM]
                flow_bits[flow, KEY] = frame_bits[frame, SAVED_KEY]
                if joins[a, J_TIMER] >= 0:
                    join_sums[a, COMPLETIONS] += 1.0
                    join_sums[a, DELAYED] += t - frame_clocks[frame, joins[a, J_TIMER]]
                if not ahead and (scalars[URGENT_HEAD] >= 0 or scalars[READY_HEAD] >= 0):
                    flow_ints[flow, AT] = at  # the flow that waited goes on after those
                    push_ready(scalars, f, flow)
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
                activity_sums[a, EXECUTIONS] += 1.0
                activity_sums[a, LASTED] += t - frame_clocks[frame, b]

            elif operation == SERVED:
                waited = (t - flow_floats[flow, SINCE]) - flow_floats[flow, DEMAND] / server_floats[b, V_PACE]
                activity_sums[a, WAITED_FOR_CORE] += waited

            elif operation == CYCLE:
                if scalars[FREE_FRAME] < 0:
                    interrupted = MORE_FRAMES
                    break
                steps += 1
                if steps > PAUSE_STEPS:
                    interrupted = PAUSED
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
                    setup = code[at - 1, I_WHERE] // SETUP_STEP - 1
                    by = code[at - 1, I_WHERE] % SETUP_STEP
                    if by == BY_REPLICA:
                        server += (
                            frame_ints[frame, STATION]
                            - tasks[entries[frame_ints[frame, ENTRY], E_TASK], T_STATION]
                        )
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
                    if setup >= 0:
                        home = -1
                        if by == BY_FRONT and station_ints[frame_ints[frame, STATION], S_FRONT_SEAT] >= 0:
                            home = v.seat_cores[station_ints[frame_ints[frame, STATION], S_FRONT_SEAT]]
                        time += setup_of(s.sleeps, v, f, m, flow, frame, setup, server, home, t)
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
                    keeps = flow_ints[flow, KEEPS] == server
                    flow_ints[flow, KEEPS] = server
                    if kind == SHARED:
                        tree_use(v, f, server, flow, time, keeps, t)
                        server_next = soonest_after(v, server_ints[server, V_ROOT])
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
                                tasks[entries[frame_ints[frame, ENTRY], E_TASK], T_RANK]
                                if server_ints[server, V_BY_PRIORITY]
                                else 0
                            )
                            append_to_server(v, f, server, rank, flow)
                    elif kind == PREEMPTIVE:
                        rank = tasks[entries[frame_ints[frame, ENTRY], E_TASK], T_RANK]
                        preemptive_use(v, f, server, flow, time, rank, t)
                        server_next = soonest_after(v, server_ints[server, V_ROOT])
                    else:
                        seat = -1
                        if by == BY_FRONT:
                            seat = station_ints[frame_ints[frame, STATION], S_FRONT_SEAT]
                        elif frame_ints[frame, CARRIER] == flow:
                            seat = frame_ints[frame, SEAT]
                        sticky_use(v, f, server, flow, time, seat, keeps, t)
                        server_next = soonest_after(v, server_ints[server, V_ROOT])
                    break

                if operation == JOIN or operation == BRANCH_END:
                    slot = joins[a, J_SLOT]
                    frame_ints[frame, JOINED] = 1
                    arrived = frame_slots[frame, slot] + 1
                    frame_slots[frame, slot] = 0 if arrived == joins[a, J_ARRIVALS] else arrived
                    carries = frame_ints[frame, CARRIER] == flow
                    if arrived > joins[a, J_NEEDED]:
                        at = LATE
                        continue
                    if arrived == joins[a, J_NEEDED]:
                        if joins[a, J_TIMER] >= 0:
                            join_sums[a, COMPLETIONS] += 1.0
                            join_sums[a, DELAYED] += t - frame_clocks[frame, joins[a, J_TIMER]]
                        if frame_ints[frame, PARKED_AT] != a:
                            if joins[a, J_NEEDED] < joins[a, J_ARRIVALS] and joins[a, J_CARRIED]:
                                frame_ints[frame, CARRIER] = flow
                            if frame_floats[frame, LAST_JOINED] > flow_floats[flow, BEGUN]:
                                flow_ints[flow, KEEPS] = -1
                            continue
                        push_ready(scalars, f, frame_ints[frame, PARKED])
                        frame_ints[frame, PARKED] = -1
                        frame_ints[frame, PARKED_AT] = -1
                    else:
                        frame_ints[frame, ACTIVE] -= 1
                        if carries:
                            frame_ints[frame, PARKED] = flow
                            frame_ints[frame, PARKED_AT] = a
                            flow_ints[flow, KEEPS] = -1
                        else:
                            frame_floats[frame, LAST_JOINED] = t
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
                    branch = new_flow(scalars, f, child, frame, a)
                    flow_ints[branch, OWN_CORE] = flow_ints[flow, OWN_CORE]
                    if frame_ints[frame, CARRIER] == flow and frame_ints[frame, SEAT] >= 0:
                        flow_ints[branch, OWN_CORE] = v.seat_cores[frame_ints[frame, SEAT]]
                    push_urgent(scalars, f, branch)

                elif operation == FAN_OUT:
                    width = frame_registers[frame, b]
                    most = code[at - 1, I_WHERE]
                    frame_registers[frame, b + 1] = min(width, most) if most > 0 else width
                    slot = joins[a, J_SLOT]
                    frame_ints[frame, JOINED] = 1
                    frame_slots[frame, slot] = -frame_registers[frame, b + 1]
                    if most < 0:
                        frame_slots[frame, slot] = -min(width, -1 - most)

                elif operation == BRANCH:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    if scalars[FREE_FRAME] < 0:
                        interrupted = MORE_FRAMES
                        break
                    frame_ints[frame, ACTIVE] += 1
                    frame_ints[frame, REFERENCES] += 1
                    stream, child = split(stream)
                    branch = new_flow(scalars, f, child, -1, a)
                    flow_ints[branch, OWN_CORE] = flow_ints[flow, OWN_CORE]
                    if frame_ints[frame, CARRIER] == flow and frame_ints[frame, SEAT] >= 0:
                        flow_ints[branch, OWN_CORE] = v.seat_cores[frame_ints[frame, SEAT]]
                    request = new_frame(scalars, m, frame_ints[frame, ENTRY], frame, -1, -1, branch, t)
                    frame_ints[request, STATION] = frame_ints[frame, STATION]
                    frame_floats[request, WORKER_SHARE] = frame_floats[frame, WORKER_SHARE]
                    frame_floats[request, CORE_SHARE] = frame_floats[frame, CORE_SHARE]
                    flow_ints[branch, FRAME] = request
                    push_urgent(scalars, f, branch)

                elif operation == TAKE:
                    around = frame_ints[frame, CALLER]
                    if frame_registers[around, a] == 0:
                        at = b
                    else:
                        frame_registers[around, a] -= 1

                elif operation == LEAVE:
                    around = frame_ints[frame, CALLER]
                    drop_frame(scalars, m, frame)
                    frame = around

                elif operation == SEND:
                    if scalars[FREE_FLOW] < 0:
                        interrupted = MORE_FLOWS
                        break
                    if scalars[FREE_FRAME] < 0:
                        interrupted = MORE_FRAMES
                        break
                    stream, child = split(stream)
                    sent = new_flow(scalars, f, child, -1, entries[a, E_START])
                    request = new_frame(scalars, m, a, -1, -1, b, sent, t)
                    frame_ints[request, POPULATION] = sites[b, C_POPULATION]
                    station = tasks[entries[a, E_TASK], T_STATION]
                    copies = tasks[entries[a, E_TASK], T_REPLICAS]
                    if copies > 1:
                        child, u = uniform(child)
                        flow_bits[sent, STREAM] = child
                        station += int(u * copies)
                    frame_ints[request, STATION] = station
                    flow_ints[sent, FRAME] = request
                    enter(levels, entries[a, E_LEVEL], t)
                    push_urgent(scalars, f, sent)

                elif operation == REPLY:
                    if frame_ints[frame, REPLIED]:
                        continue
                    if frame_ints[frame, CALLER] < 0:
                        frame_ints[frame, REPLIED] = 1
                        entry = frame_ints[frame, ENTRY]
                        leave(levels, entries[entry, E_LEVEL], t, frame_floats[frame, ARRIVED])
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
                    flow_ints[second, KEEPS] = flow_ints[flow, KEEPS]
                    flow_floats[second, BEGUN] = flow_floats[flow, BEGUN]
                    flow_ints[flow, KEEPS] = -1
                    if frame_ints[frame, CARRIER] == flow:
                        frame_ints[frame, CARRIER] = second
                    push_urgent(scalars, f, second)
                    at = entries[frame_ints[frame, ENTRY], E_EPILOGUE]

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
                        if front_heads[station, F_HEAD] < 0:
                            front_heads[station, F_HEAD] = flow
                        else:
                            flow_ints[front_heads[station, F_TAIL], NEXT] = flow
                        front_heads[station, F_TAIL] = flow
                        break
                    station_ints[station, S_FRONT_FREE] = 0
                    if station_ints[station, S_REST] >= 0:
                        flow_floats[flow, SLEPT] = t - rests[station_ints[station, S_REST]]

                elif operation == FRONT_GIVE:
                    station = frame_ints[frame, STATION]
                    waiting = front_heads[station, F_HEAD]
                    if waiting >= 0:
                        front_heads[station, F_HEAD] = flow_ints[waiting, NEXT]
                        flow_floats[waiting, SLEPT] = 0.0
                        flow_ints[waiting, KEEPS] = -1
                        push_ready(scalars, f, waiting)
                    else:
                        station_ints[station, S_FRONT_FREE] = 1
                        if station_ints[station, S_REST] >= 0:
                            rests[station_ints[station, S_REST]] = t

                elif operation == WAKE:
                    gap = flow_floats[flow, SLEPT]
                    server = b
                    if frame_ints[frame, STATION] < 0:
                        if frame_ints[frame, AWAKE] or frame_ints[frame, ENDED]:
                            continue
                        gap = client_wakes(s.sleeps, m, frame, t)
                    elif code[at - 1, I_WHERE] == BY_REPLICA:
                        server += (
                            frame_ints[frame, STATION]
                            - tasks[entries[frame_ints[frame, ENTRY], E_TASK], T_STATION]
                        )
                    home = flow_ints[flow, OWN_CORE]
                    if frame_ints[frame, CARRIER] == flow and frame_ints[frame, SEAT] >= 0:
                        home = v.seat_cores[frame_ints[frame, SEAT]]
                    wake(s.sleeps, v, m, frame, a, gap, server, home, t)

                elif operation == REST:
                    client_rests(s.sleeps, m, frame, t)

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
        elif t > times[LAST_END]:
            times[LAST_END] = t
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
    if status == DEADLOCK and times[LAST_END] > now:
        now = times[LAST_END]  # until then something happened
    times[NOW] = now
    return status
