"""Flows, requests, threads, events and counts of the compiled engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from mup.native.binding import inlined, internal
from simulator.machine.compiled.sleep import goes_to_sleep
from simulator.machine.compiled.state import (
    ACTIVE,
    ADMITTED,
    ARRIVED,
    AT,
    CALLER,
    CARRIED,
    CARRIER,
    COUNTED,
    CYCLE_TIMES,
    CYCLES,
    EMPTY,
    ENDED,
    ENTRY,
    FRAME,
    FREE_FLOW,
    FREE_FRAME,
    INLINE,
    JOINED,
    KEEPS,
    KEPT,
    KEY,
    L_AREA,
    L_CONTENT,
    L_ENTERED,
    L_LAST,
    L_LEFT,
    L_SINCE,
    L_TIME,
    LAST_JOINED,
    MASK,
    NEXT,
    OWN_CORE,
    PARKED,
    PARKED_AT,
    POPULATION,
    READERS,
    READY_HEAD,
    READY_TAIL,
    REFERENCES,
    RELEASED,
    REPLIED,
    REQUESTS,
    RESPONSE_TIMES,
    RETURN_TO,
    S_ADMISSION,
    S_BUSY_LEVEL,
    S_CAPACITY,
    S_FREE,
    S_LET_IN,
    S_REST,
    S_SEATED,
    S_SEATS,
    S_WAITING,
    S_WAITING_LEVEL,
    S_WRITERS,
    SAMPLE_END,
    SAMPLE_VALUE,
    SEAT,
    SERVER,
    SITE,
    SLEPT,
    STATION,
    STOPPED,
    STREAM,
    THOUGHT_TIME,
    TURN,
    URGENT_HEAD,
    URGENT_TAIL,
    WAITED,
    WAITING_SINCE,
    WRITERS,
    Bits,
    Floats,
    Flows,
    Frames,
    Ints,
    Longs,
    Records,
    Stations,
)
from simulator.machine.variates import (
    mix,
    uniform,
)
from simulator.program import (
    FOR_WRITING,
    RANDOM,
    UNWRITES,
)

__all__ = [
    "cycle_done",
    "drop_frame",
    "enter",
    "free_flow",
    "give_thread",
    "leave",
    "lock",
    "mean_since",
    "new_flow",
    "new_frame",
    "push_ready",
    "push_urgent",
    "sample",
    "sift_down",
    "sift_up",
    "stays",
    "thin_out",
    "unlock",
]


@inlined
def new_flow(scalars: Longs, f: Flows, stream: Any, frame: int, at: int) -> int:
    """Take a free flow (there must be one); it is not in any queue yet."""
    flow: int = scalars[FREE_FLOW]
    scalars[FREE_FLOW] = f.ints[flow, NEXT]
    f.ints[flow, AT] = at
    f.ints[flow, FRAME] = frame
    f.ints[flow, SERVER] = -1
    f.ints[flow, OWN_CORE] = -1
    f.ints[flow, KEEPS] = -1
    f.floats[flow, STOPPED] = -1.0
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
    m.floats[frame, WAITING_SINCE] = now
    m.floats[frame, ADMITTED] = now
    m.floats[frame, THOUGHT_TIME] = 0.0
    m.floats[frame, LAST_JOINED] = -1.0
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


@inlined
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
    """Count one that comes in (see ``simulator.machine.recording.Level``)."""
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


@inlined
def mean_since(levels: Floats, level: int, now: float) -> float:
    """Return when those that are inside have come, on average (see ``Level.leave_any``)."""
    content = levels[level, L_CONTENT]
    return levels[level, L_SINCE] / content if content > 0.0 else now


@internal
def sample(values: Any, counts: Longs, which: int, end: float, value: float, scratch: Floats) -> None:
    """Keep a single time, or not (see ``simulator.machine.recording.Samples``)."""
    mask = counts[which, MASK]
    if mask and not stays(end, mask, scratch):
        return
    count = counts[which, KEPT]
    values[which, count, SAMPLE_END] = end
    values[which, count, SAMPLE_VALUE] = value
    counts[which, KEPT] = count + 1
    if count + 1 >= values.shape[1]:
        thin_out(values, counts, which, scratch)


@internal
def stays(moment: float, mask: int, scratch: Floats) -> bool:
    """Tell whether the times that ended at a moment are kept under a mask other than 0.

    See ``simulator.machine.recording.stays``: the hash of 0 is 0, which no mask would thin out.
    """
    scratch[0] = moment
    return moment > 0.0 and mix(scratch.view(np.uint64)[0]) & np.uint64(mask) == 0


@internal
def thin_out(values: Any, counts: Longs, which: int, scratch: Floats) -> None:
    """Keep half of the single times, or a quarter, ..., so that there is room again."""
    while counts[which, KEPT] >= values.shape[1]:
        mask = 2 * counts[which, MASK] + 1
        kept = 0
        for i in range(counts[which, KEPT]):
            if stays(values[which, i, SAMPLE_END], mask, scratch):
                values[which, kept, SAMPLE_END] = values[which, i, SAMPLE_END]
                values[which, kept, SAMPLE_VALUE] = values[which, i, SAMPLE_VALUE]
                kept += 1
        counts[which, KEPT] = kept
        counts[which, MASK] = mask


# Stations.


@internal
def give_thread(
    scalars: Longs, f: Flows, m: Frames, q: Stations, r: Records, station: int, seat: int, now: float
) -> None:
    """Free a thread: if a request waits, the next one has it from this moment on."""
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
            let_go_on(scalars, f, m, q, r, station, flow, seat, now)
            return
    ints[station, S_FREE] += 1
    if ints[station, S_REST] >= 0:
        goes_to_sleep(q, station, now)
    if seat >= 0:
        q.seat_stack[ints[station, S_SEATS] + ints[station, S_SEATED]] = seat
        ints[station, S_SEATED] += 1


@inlined
def let_go_on(
    scalars: Longs,
    f: Flows,
    m: Frames,
    q: Stations,
    r: Records,
    station: int,
    flow: int,
    seat: int,
    now: float,
) -> None:
    """A flow that has waited for a station, and has left its queue, is admitted."""
    frame = f.ints[flow, FRAME]
    since = m.floats[frame, WAITING_SINCE]
    leave(r.levels, q.ints[station, S_WAITING_LEVEL], now, since)
    enter(r.levels, q.ints[station, S_BUSY_LEVEL], now)
    m.ints[frame, SEAT] = seat
    m.floats[frame, ADMITTED] = now
    f.floats[flow, SLEPT] = 0.0
    f.ints[flow, KEEPS] = -1
    if f.ints[flow, COUNTED]:
        r.site_sums[m.ints[frame, SITE], REQUESTS] += 1.0
        r.site_sums[m.ints[frame, SITE], WAITED] += now - since
    push_ready(scalars, f, flow)


# Locks (see ``simulator.machine.reference.servers.Lock``): readers are in the first queue of a station,
# writers in the second.


@internal
def lock(q: Stations, station: int, purpose: int) -> bool:
    """Take a place for reading, or the whole station for writing; return False if the flow has to wait."""
    ints = q.ints
    if purpose == FOR_WRITING:
        ints[station, S_WRITERS] += 1
        return bool(ints[station, S_WRITERS] == 1 and ints[station, S_FREE] == ints[station, S_CAPACITY])
    if ints[station, S_WRITERS] > 0:
        return False
    if ints[station, S_FREE] > 0:
        ints[station, S_FREE] -= 1
        return True
    ints[station, S_LET_IN] += 1
    return False


@internal
def unlock(
    scalars: Longs, f: Flows, m: Frames, q: Stations, r: Records, station: int, token: int, now: float
) -> bool:
    """Give back what ``lock`` took, and admit the next in the queue; False if the lock is not held so."""
    ints = q.ints
    if token == UNWRITES:
        if ints[station, S_WRITERS] == 0 or ints[station, S_FREE] < ints[station, S_CAPACITY]:
            return False
        ints[station, S_WRITERS] -= 1
        if ints[station, S_WRITERS] == 0:
            ints[station, S_LET_IN] = ints[station, S_WAITING]
    else:
        if ints[station, S_FREE] == ints[station, S_CAPACITY]:
            return False
        ints[station, S_FREE] += 1
    while ints[station, S_LET_IN] > 0 and ints[station, S_FREE] > 0:
        ints[station, S_LET_IN] -= 1
        ints[station, S_FREE] -= 1
        first_goes_on(scalars, f, m, q, r, station, READERS, now)
    if ints[station, S_WRITERS] > 0 and ints[station, S_FREE] == ints[station, S_CAPACITY]:
        first_goes_on(scalars, f, m, q, r, station, WRITERS, now)
    return True


@internal
def first_goes_on(
    scalars: Longs, f: Flows, m: Frames, q: Stations, r: Records, station: int, queue: int, now: float
) -> None:
    """Admit the first flow of a queue of a lock."""
    flow = q.heads[station, queue]
    q.heads[station, queue] = f.ints[flow, NEXT]
    if f.ints[flow, NEXT] < 0:
        q.tails[station, queue] = -1
    q.ints[station, S_WAITING] -= 1
    let_go_on(scalars, f, m, q, r, station, flow, -1, now)


@internal
def cycle_done(m: Frames, r: Records, frame: int, now: float) -> float:
    """Record a cycle; return its duration."""
    population = m.ints[frame, POPULATION]
    duration: float = now - m.floats[frame, ARRIVED]
    response = max(0.0, duration - m.floats[frame, THOUGHT_TIME])
    r.cycles[population, CYCLES] += 1.0
    r.cycles[population, RESPONSE_TIMES] += response
    r.cycles[population, CYCLE_TIMES] += duration
    sample(r.cycle_samples, r.cycle_counts, population, now, response, r.scratch)
    return duration
