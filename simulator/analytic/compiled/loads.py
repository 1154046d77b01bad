"""See ``simulator.analytic.entries.loads`` and ``evaluation``: what a request asks of the stations."""

from __future__ import annotations

import math
from typing import Any, Final

from mup.native.binding import internal
from simulator.analytic.approximations.convolution import ROUNDING
from simulator.analytic.compiled.records import MEETING, RELEASING, SYNCHRONOUS, Layout, Numbers, Point

__all__ = [
    "ANYWHERE",
    "DELAYED",
    "HERE",
    "OWN_ROWS",
    "ROWS",
    "SQUARES",
    "TIME",
    "VISITS",
    "WORK",
    "add_up",
    "overtaken",
]

VISITS: Final = 0
WORK: Final = 1
SQUARES: Final = 2
TIME: Final = 3
HERE: Final = 4
ANYWHERE: Final = 5
DELAYED: Final = 6
ROWS: Final = 7
"""Of loads, as in ``operating_point``."""
OWN_ROWS: Final = 4


@internal
def add_up(lay: Layout, num: Numbers, st: Point, p: int) -> None:
    """Add up what a request asks: while the thread is held, for the caller, at all."""
    base, steps = lay.step_first[p], lay.step_first[p + 1] - lay.step_first[p]
    first = lay.own_first[p]
    width = lay.own_first[p + 1] - first
    row = ROWS * width
    load = st.load
    delays = st.total.shape[1] - 1
    here = lay.processor[p] if lay.processor[p] >= 0 else delays
    spot = lay.place[p, here]
    station = lay.station[p]
    for i in range(steps * row):
        load[i] = 0.0
    for r in range(ROWS):
        for k in range(width):
            st.local[p, r, lay.own_columns[first + k]] = 0.0
        if station >= 0:
            st.local[p, r, station] = 0.0
        for k in range(lay.called_first[p], lay.called_first[p + 1]):
            st.as_called[p, r, lay.called_columns[k]] = 0.0
    for i in range(steps):
        s = base + i
        often, slices, mean = lay.visits[s], num.slices[s], num.demand[s]
        at = i * row + spot
        square = slices * (mean**2 + num.demand_variance[s])
        load[at + VISITS * width] = slices * often
        load[at + WORK * width] = slices * mean * often
        load[at + SQUARES * width] = square * often
        load[at + TIME * width] = slices * mean * often
        st.local[p, VISITS, here] += slices * often
        st.local[p, WORK, here] += slices * mean * often
        st.local[p, SQUARES, here] += square * often
        st.local[p, TIME, here] += slices * mean * often
        load[i * row + TIME * width + width - 1] += often * num.delay[s]
        for k in range(lay.call_first[s], lay.call_first[s + 1]):
            target, times = lay.call_target[k], often * lay.call_mean[k]
            if lay.call_kind[k] == SYNCHRONOUS:
                for q in range(lay.called_first[target], lay.called_first[target + 1]):
                    column = lay.called_columns[q]
                    at = i * row + lay.place[p, column]
                    for r in range(ROWS):
                        load[at + r * width] += times * st.as_called[target, r, column]
            elif lay.call_kind[k] == RELEASING:
                for q in range(lay.called_first[target], lay.called_first[target + 1]):
                    column = lay.called_columns[q]
                    for r in range(ROWS):
                        st.as_called[p, r, column] += times * st.as_called[target, r, column]
    for b in range(st.feedback_first[p], st.feedback_end[p]):
        waited = overtaken(lay, num, st, b)
        if waited != 0.0:
            load[(st.feedback_step[b] - base) * row + TIME * width + width - 1] += waited
    _meet(lay, st, p, steps, width)
    _close(lay, st, p, steps, width)


@internal
def _close(lay: Layout, st: Point, p: int, steps: int, width: int) -> None:
    """Sum over the steps, and stretch times such that their sums are those of the plan."""
    base, first, row = lay.step_first[p], lay.own_first[p], ROWS * width
    load, station = st.load, lay.station[p]
    for k in range(row):
        load[steps * row + k] = 0.0
    for r in range(ROWS):
        for k in range(width):
            st.held[p, r, lay.own_columns[first + k]] = 0.0
    thread_time, caller_time = 0.0, 0.0
    for i in range(steps):
        s = base + i
        held, awaited, share = lay.held[s], lay.awaited[s], st.share[s]
        spent = share * lay.visits[s] * st.step_mean[s]
        thread_time += held * spent
        caller_time += awaited * spent
        for k in range(width):
            load[i * row + TIME * width + k] *= share
            st.local[p, DELAYED, lay.own_columns[first + k]] += load[i * row + DELAYED * width + k]
        if held != 0.0:
            for r in range(ROWS):
                for k in range(width):
                    st.held[p, r, lay.own_columns[first + k]] += held * load[i * row + r * width + k]
        if station < 0 and awaited != 0.0:
            for r in range(ROWS):
                for k in range(width):
                    load[steps * row + r * width + k] += awaited * load[i * row + r * width + k]
    if thread_time > 0:
        for k in range(width):
            st.held[p, TIME, lay.own_columns[first + k]] *= st.hold[p, 0] / thread_time
    if station < 0:
        if caller_time > 0:
            for k in range(width):
                load[steps * row + TIME * width + k] *= st.reply[p, 0] / caller_time
        for r in range(ROWS):
            for k in range(width):
                column = lay.own_columns[first + k]
                st.as_called[p, r, column] += load[steps * row + r * width + k]
    else:
        _at_pool(lay, st, p, station)
    _add_called(lay, st, p, lay.before[p], 1.0)
    _add_called(lay, st, p, lay.behind[p], 1.0)
    for k in range(lay.forward_first[p], lay.forward_first[p + 1]):
        _add_called(lay, st, p, lay.forward_target[k], lay.forward_chance[k])


@internal
def _add_called(lay: Layout, st: Point, p: int, target: int, times: float) -> None:
    if target >= 0:
        for k in range(lay.called_first[target], lay.called_first[target + 1]):
            column = lay.called_columns[k]
            for r in range(ROWS):
                st.as_called[p, r, column] += times * st.as_called[target, r, column]


@internal
def _at_pool(lay: Layout, st: Point, p: int, station: int) -> None:
    """Add what a request asks of its pool: while its caller waits, and in total."""
    mean, variance, visits = st.reply[p, 0], st.reply[p, 1], 1.0 + lay.releases[p]
    hold, noise = st.hold[p, 0], st.hold[p, 1]
    square = (mean**2 + variance) / visits
    st.as_called[p, VISITS, station] += visits
    st.as_called[p, WORK, station] += mean
    st.as_called[p, SQUARES, station] += square
    st.as_called[p, TIME, station] += mean
    st.local[p, VISITS, station] += visits
    st.local[p, WORK, station] += hold
    st.local[p, SQUARES, station] += square + (hold**2 + noise - mean**2 - variance) / visits
    st.local[p, TIME, station] += mean
    st.length[p] = max(hold - mean, 0.0)


@internal
def overtaken(lay: Layout, num: Numbers, st: Point, r: int) -> float:
    """Return how long one waits who comes straight back and meets the second phase before."""
    by, station = st.feedback_plan[r], st.feedback_station[r]
    if by < 0 or st.feedback_numbers[r, 2] != 0.0 or lay.station[by] != station:
        return 0.0
    if lay.second[by] == 0 or num.servers[station] != 1.0:
        return 0.0
    places = num.servers[station] * num.replicas[station]
    idle = max(1.0 - st.second_work[station] / places, 0.0)
    return float(st.feedback_numbers[r, 0] * st.length[by] * idle / num.replicas[station])


@internal
def _meet(lay: Layout, st: Point, p: int, steps: int, width: int) -> None:
    """Find out how long parallel branches delay each other where they meet."""
    first, last = lay.overlap_first[p], lay.overlap_first[p + 1]
    some = False
    for o in range(first, last):
        some = some or st.overlaps[o, 0] != 0.0
    if not some:
        return
    base, own, row = lay.step_first[p], lay.own_first[p], ROWS * width
    load = st.load
    size = steps * width
    there = st.beside[0:size]
    plain = st.beside[size : 2 * size]
    company = st.beside[2 * size : 3 * size]
    near = st.beside[3 * size : 4 * size]
    paired = st.beside[4 * size : 4 * size + steps]
    for i in range(steps):
        total = 0.0
        for k in range(width):
            at, column = i * row + k, lay.own_columns[own + k]
            found = load[at + VISITS * width] * st.plain_wait[column]
            found += load[at + WORK * width] * st.plain_stretch[column]
            plain[i * width + k] = found
            total += found
        extra = st.extra[base + i] * lay.visits[base + i]
        factor = 1.0 + extra / total if total > 0 else 1.0
        for k in range(width):
            there[i * width + k] = plain[i * width + k] * factor if k < width - 1 else 0.0
            company[i * width + k] = 0.0
            near[i * width + k] = 0.0
        paired[i] = 0.0
    side = st.beside[4 * size + steps : 4 * size + steps + 2 * width]
    for o in range(first, last):
        if st.overlaps[o, 0] != 0.0:
            often = st.overlaps[o, 3] / (lay.overlap_forks[o] * st.overlaps[o, 1] * st.overlaps[o, 2])
            _beside(
                lay, load, there, company, near, side, lay.overlap_one[o], lay.overlap_other[o], often, width
            )
            _beside(
                lay, load, there, company, near, side, lay.overlap_other[o], lay.overlap_one[o], often, width
            )
            _pair(lay, paired, lay.overlap_one[o])
            _pair(lay, paired, lay.overlap_other[o])
    for i in range(steps):
        around = 0.0
        for k in range(width):
            around += near[i * width + k]
        found = 0.0
        for k in range(width):
            at, column = i * row + k, lay.own_columns[own + k]
            work = load[at + WORK * width]
            load[at + HERE * width] += work * near[i * width + k]
            load[at + ANYWHERE * width] += work * around
            if k < width - 1:
                many = min(company[i * width + k], MEETING - 1 - ROUNDING)
                low = math.floor(many)
                part = st.lost[low, column] * (1.0 - many + low) + st.lost[low + 1, column] * (many - low)
                load[at + DELAYED * width] += st.scale[column] * plain[i * width + k] * part / (1.0 - part)
            found += load[at + DELAYED * width]
        st.extra[base + i] = found / lay.visits[base + i] if paired[i] != 0.0 and found > 0 else 0.0


@internal
def _pair(lay: Layout, paired: Any, branch: int) -> None:
    for i in range(lay.branch_first[branch], lay.branch_first[branch + 1]):
        paired[lay.branch_steps[i]] = 1.0


@internal
def _beside(
    lay: Layout,
    load: Any,
    there: Any,
    company: Any,
    near: Any,
    side: Any,
    one: int,
    other: int,
    often: float,
    width: int,
) -> None:
    """Give every step of a branch what runs in another one meanwhile."""
    for k in range(2 * width):
        side[k] = 0.0
    for i in range(lay.branch_first[other], lay.branch_first[other + 1]):
        step = lay.branch_steps[i]
        for k in range(width):
            side[k] += often * there[step * width + k]
            side[width + k] += load[step * ROWS * width + TIME * width + k]
    for i in range(lay.branch_first[one], lay.branch_first[one + 1]):
        step = lay.branch_steps[i]
        for k in range(width):
            company[step * width + k] += side[k]
            near[step * width + k] += side[width + k]
