"""See ``simulator.analytic.entries.feedback``: requests that come straight back to a station they have left.

What a flow gets to from a step on is found for all steps of a plan at once, one step ahead after the other.
``reach`` of a plan lists the stations it gets to; per station a chance (below 0: none), a gap and a step.
"""

from __future__ import annotations

from typing import Any, Final

from mup.native.binding import internal
from simulator.analytic.compiled.entry_times import run_tape
from simulator.analytic.compiled.records import SENT, Layout, Numbers, Point
from simulator.analytic.entries.feedback import AHEAD, SOON

__all__ = ["AHEAD", "find_feedback"]

CHANCE: Final = 0
SERVICE: Final = 0
GAP: Final = 1
STEP: Final = 2
PLAN: Final = 2
"""Of what is reached, and of what is left: its gap as well, a service below 0 for none, and the plan."""


@internal
def find_feedback(lay: Layout, num: Numbers, st: Point) -> bool:
    """Note the returns that a request of every plan adds; False if there is no room for them."""
    horizon = SOON * _longest_service(lay, num, st)
    st.counts[4] = 0
    for p in range(len(lay.order)):
        st.time[p] = 0.0
        for m in range(len(lay.shared)):
            st.first_reach[p, m, CHANCE] = -1.0
            st.last_left[p, m, GAP] = -1.0
    for i in range(len(lay.order) - 1, -1, -1):
        p = lay.order[i]
        for s in range(lay.step_first[p], lay.step_first[p + 1]):
            st.step_mean[s] = _step_time(lay, num, st, s)
            st.step_variance[s] = 0.0
        run_tape(lay, st, p)
        time = st.reply[p, 0]
        _look_ahead(lay, num, st, p, horizon)
        if not _collect(lay, num, st, p, horizon):
            return False
        _note_first(lay, st, p)
        _note_last(lay, num, st, p, horizon)
        st.time[p] = time
    return True


@internal
def _longest_service(lay: Layout, num: Numbers, st: Point) -> float:
    """Return the mean seconds of the longest use of a station without waiting."""
    longest = 0.0
    work = st.rates
    for p in range(len(lay.order)):
        work[p] = 0.0
    for i in range(len(lay.order) - 1, -1, -1):
        p = lay.order[i]
        total = 0.0
        for s in range(lay.step_first[p], lay.step_first[p + 1]):
            own = num.slices[s] * num.demand[s] + num.delay[s]
            for k in range(lay.call_first[s], lay.call_first[s + 1]):
                if lay.call_kind[k] != SENT:
                    own += lay.call_mean[k] * work[lay.call_target[k]]
            total += lay.visits[s] * own
            if lay.processor[p] >= 0:
                longest = max(longest, num.demand[s])
        work[p] = total
        if lay.station[p] >= 0:
            longest = max(longest, total)
    return longest


@internal
def _step_time(lay: Layout, num: Numbers, st: Point, s: int) -> float:
    time = num.slices[s] * num.demand[s] + num.delay[s]
    for k in range(lay.call_first[s], lay.call_first[s + 1]):
        if lay.call_kind[k] != SENT:
            time += lay.call_mean[k] * st.time[lay.call_target[k]]
    return float(time)


@internal
def _continue(found: Any, at: int, chance: float, gap: float, step: float) -> None:
    """Add that a station is reached, by those who have not been there yet."""
    before = found[at, CHANCE]
    if before < 0.0:
        found[at, CHANCE] = chance
        found[at, GAP] = gap
        found[at, STEP] = step
    elif before < 1.0:
        rest = (1.0 - before) * chance
        total = before + rest
        found[at, GAP] = (before * found[at, GAP] + rest * gap) / total if total > 0 else 0.0
        found[at, CHANCE] = min(total, 1.0)


@internal
def _follow(
    lay: Layout, num: Numbers, st: Point, p: int, s: int, part: int, left: int, horizon: float, found: Any
) -> None:
    """Find which stations a flow gets to after a part of a step, ``left`` steps ahead at most.

    Parts: 0 is the work, 1 the delay, 2 and more are the calls, in order.
    """
    many = lay.reach_first[p + 1] - lay.reach_first[p]
    for k in range(many):
        found[k, CHANCE] = -1.0
    gap = 0.0
    calls = lay.call_first[s + 1] - lay.call_first[s]
    for number in range(part + 1, 2 + calls):
        if number == 0:
            if num.slices[s] != 0.0:
                if lay.processor[p] >= 0:
                    _continue(found, _spot(lay, p, lay.processor[p]), 1.0, gap, float(s))
                gap += num.slices[s] * num.demand[s]
        elif number == 1:
            gap += num.delay[s]
        else:
            k = lay.call_first[s] + number - 2
            if lay.call_kind[k] == SENT:
                continue
            target, often = lay.call_target[k], min(lay.call_mean[k], 1.0)
            for q in range(lay.reach_first[target], lay.reach_first[target + 1]):
                m = lay.reach[q]
                chance = st.first_reach[target, m, CHANCE]
                if chance >= 0.0:
                    later = st.first_reach[target, m, GAP] + gap
                    _continue(found, _spot(lay, p, m), often * chance, later, float(s))
            gap += lay.call_mean[k] * st.time[target]
        if gap > 0 and gap >= horizon:
            return
    if left <= 0:
        return
    steps = lay.step_first[p + 1] - lay.step_first[p]
    for k in range(many):
        total, weighted, step = 0.0, 0.0, -1.0
        some = False
        for link in range(lay.link_first[s], lay.link_first[s + 1]):
            to = lay.link_to[link]
            level = min(left - 1, lay.height[to])
            at = ((level * steps + to - lay.step_first[p]) * many + k) * 3
            chance = st.walk[at + CHANCE]
            if chance >= 0.0:
                late = 0.0
                for b in range(lay.beside_first[link], lay.beside_first[link + 1]):
                    late = max(late, st.step_mean[lay.beside[b]] - st.step_mean[s])
                one = lay.link_often[link] * chance
                total += one
                weighted += one * (late + st.walk[at + GAP])
                if not some:
                    step = st.walk[at + STEP]
                some = True
        if some:
            mean = weighted / total if total > 0 else 0.0
            _continue(found, k, min(total, 1.0), mean + gap, step)


@internal
def _spot(lay: Layout, p: int, m: int) -> int:
    """Return the place of a station among those a plan gets to."""
    for k in range(lay.reach_first[p], lay.reach_first[p + 1]):
        if lay.reach[k] == m:
            return int(k - lay.reach_first[p])
    return 0


@internal
def _look_ahead(lay: Layout, num: Numbers, st: Point, p: int, horizon: float) -> None:
    """Find what is reached from the beginning of every step, one step ahead, two steps ahead, ..."""
    base, steps = lay.step_first[p], lay.step_first[p + 1] - lay.step_first[p]
    many = lay.reach_first[p + 1] - lay.reach_first[p]
    found = st.walk_found
    for left in range(AHEAD + 1):
        for i in range(steps):
            if lay.height[base + i] >= left:
                _follow(lay, num, st, p, base + i, -1, left, horizon, found)
                for k in range(many):
                    at = ((left * steps + i) * many + k) * 3
                    st.walk[at + CHANCE] = found[k, CHANCE]
                    st.walk[at + GAP] = found[k, GAP]
                    st.walk[at + STEP] = found[k, STEP]


@internal
def _note_first(lay: Layout, st: Point, p: int) -> None:
    """Note which stations a request gets to."""
    steps = lay.step_first[p + 1] - lay.step_first[p]
    many = lay.reach_first[p + 1] - lay.reach_first[p]
    start = lay.start[p]
    level = min(AHEAD, lay.height[start])
    for k in range(many):
        m = lay.reach[lay.reach_first[p] + k]
        at = ((level * steps + start - lay.step_first[p]) * many + k) * 3
        st.first_reach[p, m, CHANCE] = st.walk[at + CHANCE]
        st.first_reach[p, m, GAP] = st.walk[at + GAP]
        st.first_reach[p, m, STEP] = st.walk[at + STEP]
    if lay.station[p] >= 0:
        st.first_reach[p, lay.station[p], CHANCE] = 1.0
        st.first_reach[p, lay.station[p], GAP] = 0.0
        st.first_reach[p, lay.station[p], STEP] = -1.0


@internal
def _left_by(lay: Layout, num: Numbers, st: Point, p: int, s: int, horizon: float, found: Any) -> None:
    """Find which stations a step leaves, and how long before its end."""
    for k in range(lay.reach_first[p + 1] - lay.reach_first[p]):
        found[k, GAP] = -1.0
    gap = 0.0
    calls = lay.call_first[s + 1] - lay.call_first[s]
    for number in range(1 + calls, -1, -1):
        if number >= 2:
            k = lay.call_first[s] + number - 2
            if lay.call_kind[k] == SENT:
                continue
            target = lay.call_target[k]
            for q in range(lay.reach_first[target], lay.reach_first[target + 1]):
                m = lay.reach[q]
                if st.last_left[target, m, GAP] >= 0.0:
                    spot = _spot(lay, p, m)
                    if found[spot, GAP] < 0.0:
                        found[spot, GAP] = st.last_left[target, m, GAP] + gap
                        found[spot, SERVICE] = st.last_left[target, m, SERVICE]
                        found[spot, PLAN] = st.last_left[target, m, PLAN]
            gap += lay.call_mean[k] * st.time[target]
        elif number == 1:
            gap += num.delay[s]
        elif num.slices[s] != 0.0:
            if lay.processor[p] >= 0:
                spot = _spot(lay, p, lay.processor[p])
                if found[spot, GAP] < 0.0:
                    found[spot, GAP] = gap
                    found[spot, SERVICE] = num.demand[s]
                    found[spot, PLAN] = -1.0
            gap += num.slices[s] * num.demand[s]
        if gap > 0 and gap >= horizon:
            return


@internal
def _note_last(lay: Layout, num: Numbers, st: Point, p: int, horizon: float) -> None:
    """Note which stations a request leaves at its end, whichever way it took."""
    found = st.walk_found
    many = lay.reach_first[p + 1] - lay.reach_first[p]
    for e in range(lay.end_first[p], lay.end_first[p + 1]):
        _left_by(lay, num, st, p, lay.ends[e], horizon, found)
        for k in range(many):
            m = lay.reach[lay.reach_first[p] + k]
            if e == lay.end_first[p]:
                st.last_left[p, m, SERVICE] = found[k, SERVICE]
                st.last_left[p, m, GAP] = found[k, GAP]
                st.last_left[p, m, PLAN] = found[k, PLAN]
            elif found[k, GAP] < 0.0:
                st.last_left[p, m, GAP] = -1.0
    if lay.station[p] >= 0:
        m = lay.station[p]
        st.last_left[p, m, SERVICE] = -1.0
        st.last_left[p, m, GAP] = 0.0
        st.last_left[p, m, PLAN] = float(p)


@internal
def _note(st: Point, station: int, by: int, step: int, times: float, service: float, gap: float) -> bool:
    at = st.counts[4]
    if at >= len(st.feedback_station):
        return False
    st.feedback_station[at] = station
    st.feedback_plan[at] = by
    st.feedback_step[at] = step
    st.feedback_numbers[at, 0] = times
    st.feedback_numbers[at, 1] = service
    st.feedback_numbers[at, 2] = gap
    st.counts[4] = at + 1
    return True


@internal
def _collect(lay: Layout, num: Numbers, st: Point, p: int, horizon: float) -> bool:
    """Note all returns within a plan but those within what it calls."""
    found = st.walk_found
    st.feedback_first[p] = st.counts[4]
    for s in range(lay.step_first[p], lay.step_first[p + 1]):
        often = lay.visits[s]
        if num.slices[s] != 0.0 and lay.processor[p] >= 0:
            _follow(lay, num, st, p, s, 0, AHEAD, horizon, found)
            spot = _spot(lay, p, lay.processor[p])
            gap = found[spot, GAP]
            if found[spot, CHANCE] >= 0.0 and (gap == 0.0 or gap < horizon):
                times, step = often * found[spot, CHANCE], int(found[spot, STEP])
                if not _note(st, lay.processor[p], -1, step, times, num.demand[s], gap):
                    return False
        for k in range(lay.call_first[s], lay.call_first[s + 1]):
            if lay.call_kind[k] == SENT:
                continue
            target, count = lay.call_target[k], lay.call_mean[k]
            _follow(lay, num, st, p, s, 2 + k - lay.call_first[s], AHEAD, horizon, found)
            for q in range(lay.reach_first[target], lay.reach_first[target + 1]):
                m = lay.reach[q]
                before = st.last_left[target, m, GAP]
                if before < 0.0:
                    continue
                service, by = st.last_left[target, m, SERVICE], int(st.last_left[target, m, PLAN])
                spot = _spot(lay, p, m)
                if found[spot, CHANCE] >= 0.0:
                    gap = before + found[spot, GAP]
                    times = often * min(count, 1.0) * found[spot, CHANCE]
                    if (gap == 0.0 or gap < horizon) and not _note(
                        st, m, by, int(found[spot, STEP]), times, service, gap
                    ):
                        return False
                chance = st.first_reach[target, m, CHANCE]
                if count > 1.0 and chance >= 0.0:
                    gap = before + st.first_reach[target, m, GAP]
                    times = often * (count - 1.0) * min(count, 1.0) * chance
                    if (gap == 0.0 or gap < horizon) and not _note(st, m, by, s, times, service, gap):
                        return False
    st.feedback_end[p] = st.counts[4]
    return True
