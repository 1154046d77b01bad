"""See ``simulator.analytic.fixed_point``: networks bottom-up, and top-down how full they are."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from mup.native.binding import compiled, internal
from simulator.analytic.approximations.convolution import LEFT_OVER, ROUNDING
from simulator.analytic.approximations.parallel_branches import LEAST_SCALE, MOST_DELAY
from simulator.analytic.compiled.evaluation import evaluate
from simulator.analytic.compiled.feedback import find_feedback
from simulator.analytic.compiled.loads import DELAYED, ROWS, SQUARES, TIME, VISITS, WORK
from simulator.analytic.compiled.networks import marginal, solve_network
from simulator.analytic.compiled.queues import adapt, begin_queue
from simulator.analytic.compiled.records import LONGEST, MEETING, SENT, Layout, Numbers, Point
from simulator.analytic.compiled.views import (
    add_total,
    has_parallel_jobs,
    job_rates,
    make_view,
    servers_of,
    waiting_of,
)
from simulator.analytic.fixed_point import (
    ADAPTIVE,
    GAIN,
    MAX_ITERATIONS,
    OPEN_JOBS,
    PARALLEL_JOBS,
    SATURATED,
    SHIFT,
    SHORT,
    START,
    TOLERANCE,
    UNDAMPED,
)

__all__ = ["BROKEN", "CONVERGED", "CROWDED", "NO_ROOM", "TIMELESS", "UNCONVERGED", "solve"]

CONVERGED: Final = 0
UNCONVERGED: Final = 1
TIMELESS: Final = 2
CROWDED: Final = 3
BROKEN: Final = 4
NO_ROOM: Final = 5
"""How it ended: a cycle takes no time, arrivals are too many, what is no number, no room for all."""


VISITED: Final = 0
WAITING: Final = 1
PRESENT: Final = 2
WORKED: Final = 3
"""Sums over all users of a station."""


@compiled
def solve(lay: Layout, num: Numbers, st: Point, tolerance: float, rates_only: bool) -> int:
    """Iterate to the fixed point, from an empty system; return how that ended."""
    if not find_feedback(lay, num, st):
        return NO_ROOM
    status = _begin(lay, num, st)
    if status != CONVERGED:
        return status
    roots = len(lay.roots)
    stations = len(lay.shared)
    count = roots if rates_only else roots + 2 * stations
    before, now = np.zeros(roots + 2 * stations), np.zeros(roots + 2 * stations)
    for iteration in range(1, MAX_ITERATIONS + 1):
        st.counts[0] = iteration
        st.counts[2] = 0
        st.counts[4] = 1
        for i in range(len(lay.pools) - 1, -1, -1):
            solve_network(lay, num, st, roots + st.pool_order[i])
        for c in range(roots):
            if num.is_open[c] == 0:
                solve_network(lay, num, st, c)
        if st.counts[3] == 1:
            return NO_ROOM
        _operate(lay, num, st, 1.0 if iteration <= UNDAMPED else GAIN)
        if st.counts[3] == 1:
            return NO_ROOM
        evaluate(lay, num, st)
        _flow(lay, num, st)
        _profiles(lay, num, st)
        scale = math.inf
        for c in range(roots):
            now[c] = st.hold[lay.roots[c], 0]
            if num.is_open[c] == 0:
                now[c] = st.population[c] / st.rate[c]
            scale = min(scale, now[c])
        for at in range(stations):
            now[roots + at] = st.wait[at]
            now[roots + stations + at] = st.stretch[at]
        for i in range(roots + 2 * stations):
            if now[i] != now[i]:
                return BROKEN
        if roots == 0:
            scale = 0.0
        close = iteration > 1
        # Without clients there are no cycle times to go by.
        for i in range(count if roots > 0 else 2 * stations):
            close = close and abs(now[i] - before[i]) <= tolerance * max(abs(now[i]), SHORT * scale)
            before[i] = now[i]
        if close:
            _bound(lay, num, st)
            return CONVERGED
    _bound(lay, num, st)
    return UNCONVERGED


@internal
def _begin(lay: Layout, num: Numbers, st: Point) -> int:
    """Start from an empty system, as fast as its slowest station allows."""
    roots, stations = len(lay.roots), len(lay.shared)
    _clear(lay, st)
    evaluate(lay, num, st)
    for c in range(roots):
        st.population[c] = num.population[c]
        st.visited[c] = 1
        if num.is_open[c] == 1:
            st.rate[c] = num.arrivals[lay.roots[c]]
            continue
        _think(lay, num, st, c)
        if _spent(st, c) <= 0:
            return TIMELESS
        st.rate[c] = 0.0
    _flow(lay, num, st)
    for at in range(stations):
        if st.total[WORK, at] / servers_of(num, at) >= 1.0 - SATURATED:
            return CROWDED
    for c in range(roots):
        if num.is_open[c] == 0:
            st.rate[c] = st.population[c] / _spent(st, c)
    _flow(lay, num, st)
    full = 0.0
    for at in range(stations):
        full = max(full, st.total[WORK, at] / servers_of(num, at))
    if full > START:
        for c in range(roots):
            if num.is_open[c] == 0:
                st.rate[c] *= START / full
        _flow(lay, num, st)
    for i in range(len(lay.pools)):
        st.population[roots + i] = int(min(servers_of(num, lay.pools[i]), float(LONGEST)))
    _profiles(lay, num, st)
    _arrange(lay, st)
    for at in range(stations):
        most = 0.0
        for c in range(len(st.rate)):
            if st.visited[c] == 1 and st.profile[c, VISITS, at] > 0:
                most += st.population[c] * (PARALLEL_JOBS if has_parallel_jobs(st, c, at) else 1)
        if st.second_rate[at] > 0:
            most += servers_of(num, at)
        if st.unawaited_visits[at] > 0:
            most += OPEN_JOBS
        begin_queue(num, st, at, max(most, 1.0))
        st.jobs[at] = st.total[WORK, at]
    return CONVERGED


@internal
def _clear(lay: Layout, st: Point) -> None:
    """Forget what was found before."""
    st.counts[0] = 0
    st.counts[1] = 0
    st.counts[3] = 0
    for s in range(len(st.step_mean)):
        st.extra[s] = 0.0
        st.last_mean[s] = 0.0
        st.last_variance[s] = 0.0
    for p in range(len(lay.order)):
        st.version[p] = 0
        st.below[p] = -1
        st.length[p] = 0.0
        st.rates[p] = 0.0
        for k in range(2):
            st.called[p, k] = 0.0
            st.reply[p, k] = 0.0
            st.hold[p, k] = 0.0
        for r in range(ROWS):
            for w in range(st.total.shape[1]):
                st.held[p, r, w] = 0.0
                st.as_called[p, r, w] = 0.0
                st.local[p, r, w] = 0.0
    for w in range(st.total.shape[1]):
        st.plain_wait[w] = 0.0
        st.plain_stretch[w] = 1.0
        st.scale[w] = 1.0
        for k in range(MEETING):
            st.lost[k, w] = 0.0
        for r in range(ROWS):
            st.total[r, w] = 0.0
    for at in range(len(lay.shared)):
        st.wait[at] = 0.0
        st.stretch[at] = 1.0
        st.jobs[at] = 0.0
        st.second_rate[at] = 0.0
        st.second_work[at] = 0.0
        st.unawaited_visits[at] = 0.0
        st.unawaited_work[at] = 0.0
    for c in range(len(st.rate)):
        st.rate[c] = 0.0
        st.visited[c] = 0
        st.solved[c] = 0
        st.busy_known[c] = 0
        for r in range(ROWS):
            for w in range(st.total.shape[1]):
                st.profile[c, r, w] = 0.0


@internal
def _think(lay: Layout, num: Numbers, st: Point, c: int) -> None:
    """Give clients the load of a cycle, its think time included."""
    for r in range(ROWS):
        for w in range(st.total.shape[1]):
            st.profile[c, r, w] = st.held[lay.roots[c], r, w]
    st.profile[c, TIME, st.total.shape[1] - 1] += num.think[c]


@internal
def _spent(st: Point, c: int) -> float:
    total = 0.0
    for w in range(st.total.shape[1]):
        total += st.profile[c, TIME, w]
    return total


@internal
def _flow(lay: Layout, num: Numbers, st: Point) -> None:
    """Propagate the rates of the roots to all they call, and add up the loads."""
    for p in range(len(lay.order)):
        st.rates[p] = 0.0
        st.waited[p] = 0.0
        st.arriving[p] = num.arrivals[p]
    for c in range(len(lay.roots)):
        st.arriving[lay.roots[c]] = st.rate[c]
    for i in range(len(lay.order)):
        p = lay.order[i]
        st.rates[p] += st.arriving[p]
        for s in range(lay.step_first[p], lay.step_first[p + 1]):
            for k in range(lay.call_first[s], lay.call_first[s + 1]):
                more = st.rates[p] * lay.visits[s] * lay.call_mean[k]
                st.rates[lay.call_target[k]] += more
                if lay.call_kind[k] != SENT:
                    st.waited[lay.call_target[k]] += more
        if lay.before[p] >= 0:
            st.rates[lay.before[p]] += st.rates[p]
        if lay.behind[p] >= 0:
            st.rates[lay.behind[p]] += st.rates[p]
        for k in range(lay.forward_first[p], lay.forward_first[p + 1]):
            more = st.waited[p] * lay.forward_chance[k]
            st.rates[lay.forward_target[k]] += more
            st.waited[lay.forward_target[k]] += more
    width = st.total.shape[1]
    for r in range(ROWS):
        for w in range(width):
            st.total[r, w] = 0.0
    for p in range(len(lay.order)):
        rate = st.rates[p]
        if rate != 0.0:
            for r in range(ROWS):
                for w in range(width):
                    st.total[r, w] += rate * st.local[p, r, w]
    for at in range(len(lay.shared) - 1, -1, -1):
        if lay.parent[at] >= 0:
            for r in range(ROWS):
                st.total[r, lay.parent[at]] += st.total[r, at]
    for at in range(len(lay.shared)):
        st.second_rate[at] = 0.0
        st.second_work[at] = 0.0
    for p in range(len(lay.order)):
        if lay.station[p] >= 0 and st.length[p] > ROUNDING * st.hold[p, 0]:
            st.second_rate[lay.station[p]] += st.rates[p]
            st.second_work[lay.station[p]] += st.rates[p] * st.length[p]


@internal
def _profiles(lay: Layout, num: Numbers, st: Point) -> None:
    """Give all customers their load per cycle; find what no customer waits for, and the flows of clients."""
    roots, width = len(lay.roots), st.total.shape[1]
    stations = width - 1
    for c in range(roots):
        if num.is_open[c] == 0:
            _think(lay, num, st, c)
    for q in range(len(lay.pools)):
        at, c = lay.pools[q], roots + q
        rate = 0.0
        if lay.parent[at] >= 0:
            if st.total[VISITS, at] <= 0:
                continue
            rate = st.total[VISITS, at]
            for r in range(ROWS):
                st.profile[c, r, lay.parent[at]] = st.total[r, at] / rate
        else:
            for i in range(lay.plans_at_first[at], lay.plans_at_first[at + 1]):
                rate += st.rates[lay.plans_at[i]] * (1.0 + lay.releases[lay.plans_at[i]])
            if rate <= 0:
                continue
            for r in range(ROWS):
                for w in range(width):
                    st.profile[c, r, w] = 0.0
            for i in range(lay.plans_at_first[at], lay.plans_at_first[at + 1]):
                p = lay.plans_at[i]
                part = st.rates[p] / rate
                if part > 0:
                    for r in range(ROWS):
                        for w in range(width):
                            st.profile[c, r, w] += part * st.held[p, r, w]
        st.rate[c] = rate
        st.visited[c] = 1
    for c in range(len(st.rate)):
        for at in range(stations):
            st.reached[c, at] = st.profile[c, VISITS, at]
    for c in range(len(st.rate)):
        for q in range(len(lay.pools)):
            pool, other = lay.pools[q], roots + q
            often = st.profile[c, VISITS, pool]
            if often > 0 and other != c:
                for at in range(stations):
                    if at != pool:
                        st.reached[c, at] += often * max(st.profile[other, VISITS, at], 0.0)
    for at in range(stations):
        visits, work = st.total[VISITS, at], st.total[WORK, at]
        for c in range(len(st.rate)):
            if st.visited[c] == 1 and st.profile[c, VISITS, at] > 0:
                visits -= st.rate[c] * st.profile[c, VISITS, at]
                work -= st.rate[c] * st.profile[c, WORK, at]
        work -= st.second_work[at]
        some = visits > LEFT_OVER * st.total[VISITS, at] and work > LEFT_OVER * st.total[WORK, at]
        st.unawaited_visits[at] = visits if some else 0.0
        st.unawaited_work[at] = work if some else 0.0
    st.flows[0] = math.inf
    if lay.unbounded[0] == 1:
        return
    flows = 0.0
    for c in range(roots):
        work, spent = 0.0, 0.0
        for at in range(stations):
            work += st.profile[c, WORK, at]
            spent += st.profile[c, TIME, at]
        flows += st.population[c] * (max(work / spent, 1.0) if spent > 0 else 1.0)
    st.flows[0] = flows


@internal
def _arrange(lay: Layout, st: Point) -> None:
    """Order pools such that each comes before those it visits."""
    roots, count, stations = len(lay.roots), len(lay.pools), len(lay.shared)
    done = np.zeros(count + 1, dtype=np.int64)
    stack, following = np.zeros(count + 2, dtype=np.int64), np.zeros(count + 2, dtype=np.int64)
    place = count
    for start in range(roots + count):
        own = start - roots
        if own >= 0:
            if done[own] == 1:
                continue
            done[own] = 1
        depth = 0
        stack[0], following[0] = start, 0
        while depth >= 0:
            c, at = stack[depth], following[depth]
            if at >= stations:
                if c >= roots:
                    place -= 1
                    st.pool_order[place] = c - roots
                depth -= 1
                continue
            following[depth] = at + 1
            q = lay.pool_of[at]
            if q >= 0 and st.profile[c, VISITS, at] > 0 and done[q] == 0:
                done[q] = 1
                depth += 1
                stack[depth], following[depth] = roots + q, 0


@internal
def _bound(lay: Layout, num: Numbers, st: Point) -> None:
    """Keep to what processors can do at most, which approximations may miss by a little."""
    full = 0.0
    for at in range(len(lay.shared)):
        if lay.pool_of[at] < 0 or lay.parent[at] >= 0:
            full = max(full, st.total[WORK, at] / servers_of(num, at))
    if full > 1.0:
        for c in range(len(lay.roots)):
            if num.is_open[c] == 0:
                st.rate[c] /= full
        _flow(lay, num, st)


@internal
def _operate(lay: Layout, num: Numbers, st: Point, gain: float) -> None:
    """Find out how full everything is, from the clients down."""
    roots = len(lay.roots)
    for at in range(len(lay.shared)):
        for k in range(4):
            st.sums[k, at] = 0.0
        for n in range(st.length_of[at] + 1):
            st.occupancy[at, n] = 0.0
    for c in range(roots):
        if num.is_open[c] == 0 and st.solved[c] == 1:
            last = st.population[c]
            st.rate[c] += gain * (st.throughput[c, last - 1] - st.rate[c])
            for n in range(last):
                st.busy_customers[c, n] = 0.0
            st.busy_customers[c, last] = 1.0
            st.busy_known[c] = 1
            _add(st, c)
    for i in range(len(lay.pools)):
        q = st.pool_order[i]
        at, c = lay.pools[q], roots + q
        if st.visited[c] == 0:
            continue
        _add_unawaited(lay, num, st, at)
        _busy_servers(st, c, at)
        if st.solved[c] == 1:
            _add(st, c)
    for at in range(len(lay.shared)):
        if lay.pool_of[at] < 0 or st.visited[roots + lay.pool_of[at]] == 0:
            _add_unawaited(lay, num, st, at)
        if st.sums[VISITED, at] <= 0:
            continue
        _station(lay, num, st, at, gain)


@internal
def _station(lay: Layout, num: Numbers, st: Point, at: int, gain: float) -> None:
    """Take note of how full a station is."""
    occupancy = st.occupancy[at]
    length = st.length_of[at]
    total = 0.0
    for n in range(length + 1):
        total += occupancy[n]
    for n in range(length + 1):
        occupancy[n] /= total
    adaptive = st.counts[0] <= ADAPTIVE
    if lay.shared[at] == 1:
        stretch = max(st.sums[PRESENT, at] / st.sums[WORKED, at], 1.0)
        st.stretch[at] += gain * (stretch - st.stretch[at])
    else:
        wait = max(st.sums[WAITING, at] / st.sums[VISITED, at], 0.0)
        st.wait[at] += gain * (wait - st.wait[at])
        if adaptive:
            adapt(num, st, at, _felt_variability(lay, num, st, at), occupancy)
    st.jobs[at] = st.sums[PRESENT, at]
    meeting = st.total[DELAYED, at]
    if meeting <= 0 and st.counts[0] > 1:
        st.plain_wait[at] = st.wait[at]
        st.plain_stretch[at] = st.stretch[at]
        return
    if lay.shared[at] == 1:
        st.plain_stretch[at] = max(st.stretch[at] - meeting / st.total[WORK, at], 1.0)
    else:
        st.plain_wait[at] = max(st.wait[at] - meeting / st.total[VISITS, at], 0.0)
    if not adaptive:
        return
    old = st.scale[at]
    if meeting > 0:
        most = MOST_DELAY * st.wait[at] * st.total[VISITS, at]
        if lay.shared[at] == 1:
            most = MOST_DELAY * (st.stretch[at] - 1.0) * st.total[WORK, at]
        st.scale[at] = min(old * max(most / meeting, LEAST_SCALE), 1.0)
    _note_lost(lay, num, st, at, occupancy)


@internal
def _note_lost(lay: Layout, num: Numbers, st: Point, at: int, occupancy: Any) -> None:
    """Find what one more job takes from another with so many others there, waiting or slowed down."""
    length = st.length_of[at]
    each = np.zeros(length + MEETING)
    job_rates(lay, st, at, st.busy[at], each)
    for n in range(length, length + MEETING - 1):
        each[n] = each[length - 1]
    for n in range(length + MEETING - 1):
        each[n] /= n + 1.0
    population = 0.0
    for c in range(len(lay.roots)):
        population += math.inf if num.is_open[c] == 1 else float(num.population[c])
    if population == 0.0:
        population = math.inf
    change = 0.0
    for more in range(1, MEETING):
        usual = 0.0
        for n in range(length):
            usual += occupancy[n] * (1.0 - each[more + n] / each[n])
        found = (1.0 - each[more] / each[0]) / population + (1.0 - 1.0 / population) * usual
        change = max(change, abs((found - st.lost[more, at]) * st.scale[at]))
        st.lost[more, at] = found
    if change > SHIFT * TOLERANCE:
        st.counts[1] += 1


@internal
def _add(st: Point, c: int) -> None:
    """Add what the customers of a network have at its stations."""
    size = st.population[c] + 1
    cycles = 0.0
    for n in range(1, size):
        cycles += st.busy_customers[c, n] * st.throughput[c, n - 1]
    there = np.zeros(size)
    for v in range(st.view_first[c], st.view_end[c]):
        at, theta = st.view[v, 0], st.view_numbers[v, 0]
        marginal(st, c, v, there)
        visited = cycles * st.profile[c, VISITS, at]
        present = 0.0
        for n in range(1, size):
            present += n * there[n]
        st.sums[VISITED, at] += visited
        st.sums[WORKED, at] += cycles * st.profile[c, WORK, at]
        st.sums[PRESENT, at] += present / theta
        st.sums[WAITING, at] += waiting_of(st, v, there, size)
        add_total(st, v, there, size, st.occupancy[at], visited)


@internal
def _add_unawaited(lay: Layout, num: Numbers, st: Point, at: int) -> None:
    """Account for the jobs of a station that no customer waits for (and open arrivals)."""
    rate = st.unawaited_visits[at]
    if rate <= 0:
        return
    length = st.length_of[at]
    make_view(lay, num, st, 0, at, rate, st.unawaited_work[at], length, 1.0, -1, -1)
    if st.counts[3] == 1:
        return
    known, first = st.view[0, 1], st.view[0, 3]
    there = np.zeros(known + 1)
    top = 0.0
    for n in range(known):
        there[n + 1] = there[n] + math.log(rate * st.view_numbers[0, 1] / st.area[first + n])
        top = max(top, there[n + 1])
    total = 0.0
    for n in range(known + 1):
        there[n] = math.exp(there[n] - top)
        total += there[n]
    present = 0.0
    for n in range(known + 1):
        there[n] /= total
        present += n * there[n]
    st.sums[VISITED, at] += rate
    st.sums[WORKED, at] += st.unawaited_work[at]
    st.sums[PRESENT, at] += present
    st.sums[WAITING, at] += waiting_of(st, 0, there, known + 1)
    add_total(st, 0, there, known + 1, st.occupancy[at], rate)


@internal
def _busy_servers(st: Point, c: int, at: int) -> None:
    """Find how likely 0, 1, ... servers of a pool are busy, from how many requests are there."""
    most = st.population[c]
    for n in range(most + 1):
        st.busy_customers[c, n] = 0.0
    st.busy_known[c] = 1
    total = 0.0
    for n in range(st.length_of[at] + 1):
        total += st.occupancy[at, n]
    if total <= 0:
        st.busy_customers[c, 0] = 1.0
        return
    st.busy_customers[c, 0] = st.occupancy[at, 0] / total
    for n in range(1, st.length_of[at] + 1):
        share = st.occupancy[at, n] / total
        busy = min(st.busy[at, n - 1], float(most))
        low = math.floor(busy)
        st.busy_customers[c, low] += share * (1.0 - (busy - low))
        st.busy_customers[c, min(low + 1, most)] += share * (busy - low)


@internal
def _felt_variability(lay: Layout, num: Numbers, st: Point, at: int) -> float:
    """Return the squared coefficient of variation of services as the queue of a station feels it."""
    visits = st.total[VISITS, at]
    mean = st.total[WORK, at] / visits
    scv = st.total[SQUARES, at] / visits / mean**2 - 1.0 if mean > 0 else 1.0
    scv = max(scv, 0.0)
    coming, before = 0.0, 0.0
    for p in range(len(lay.order)):
        for r in range(st.feedback_first[p], st.feedback_end[p]):
            gap = st.feedback_numbers[r, 2]
            if st.feedback_station[r] == at and gap < mean:
                last = st.feedback_numbers[r, 1]
                if last < 0.0:
                    last = st.reply[st.feedback_plan[r], 0]
                soon = st.rates[p] * st.feedback_numbers[r, 0] * (1.0 - gap / mean)
                coming += soon
                before += soon * last
    share = min(coming / visits / num.replicas[at], 1.0)
    alone = 1.0
    if st.wait[at] > 0:
        alone = max(1.0 - st.total[DELAYED, at] / visits / st.wait[at], 0.0)
    felt = 1.0 + (1.0 - share) * alone * _elasticity(lay, num, st, at) * (scv - 1.0)
    if share <= 0:
        return float(felt)
    waited = st.wait[at]
    less = (waited + before / coming) / (waited + mean)
    return float((1.0 + felt) * (1.0 - share + share * less) - 1.0)


@internal
def _elasticity(lay: Layout, num: Numbers, st: Point, at: int) -> float:
    """Return how far the servers themselves limit a station, 0 to 1: not if what they visit is full."""
    c = len(lay.roots) + lay.pool_of[at]
    if lay.pool_of[at] < 0 or st.solved[c] == 0 or st.population[c] == 1:
        return 1.0
    busy = num.servers[at] + (num.replicas[at] - 1.0) * st.total[WORK, at] / num.replicas[at]
    # Growth at 1, 2, ... customers; in between it is interpolated.
    most = st.population[c]
    where = min(max(busy, 1.0), float(most))
    low = math.floor(where)
    found = _growth(st, c, low)
    if low < most:
        found += (_growth(st, c, low + 1) - found) * (where - low)
    return min(max(found, 0.0), 1.0)


@internal
def _growth(st: Point, c: int, n: int) -> float:
    """Return the relative growth of a throughput per relative growth of the population, at n customers."""
    before = 0.0 if n == 1 else st.throughput[c, n - 2]
    return float((st.throughput[c, n - 1] - before) / st.throughput[c, n - 1] * n)
