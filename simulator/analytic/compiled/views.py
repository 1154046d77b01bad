"""See ``shared_station``, ``interlock`` and ``aggregation``: stations as their users see them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mup.native.binding import inlined, internal
from simulator.analytic.approximations.convolution import LEFT_OVER, ROUNDING, TINY
from simulator.analytic.approximations.interlock import LEAST_FREE, LEAST_PAUSE, PARALLEL, UNBOUNDED
from simulator.analytic.approximations.shared_station import SEQUENTIAL
from simulator.analytic.compiled.loads import TIME, VISITS, WORK
from simulator.analytic.compiled.queues import interpolated
from simulator.analytic.compiled.records import Layout, Numbers, Point

__all__ = [
    "add_total",
    "hold",
    "job_rates",
    "make_view",
    "rise",
    "room",
    "servers_of",
    "waiting_of",
]


@inlined
def servers_of(num: Numbers, at: int) -> float:
    """Return how many servers a station has, all replicas together."""
    return float(num.servers[at] * num.replicas[at])


@internal
def room(st: Point, count: int) -> int:
    """Return where there is room for so many numbers; if there is none, what is found counts for nothing."""
    at = st.counts[2]
    if at + count > len(st.area):
        st.counts[3] = 1
        return 0
    st.counts[2] = at + count
    return int(at)


@internal
def hold(lay: Layout, st: Point, at: int) -> float:
    """Return the mean time a server of a pool is held, per visit."""
    if lay.parent[at] >= 0:
        return float(st.total[WORK, at] / st.total[VISITS, at])
    time, cycles = 0.0, 0.0
    for i in range(lay.plans_at_first[at], lay.plans_at_first[at + 1]):
        p = lay.plans_at[i]
        time += st.rates[p] * st.hold[p, 0]
        cycles += st.rates[p] * (1.0 + lay.releases[p])
    return time / cycles


@internal
def rise(values: Any, weights: Any, count: int, weighted: bool, out: Any) -> None:
    """Write the nearest sequence that never falls (least squares, by the weights)."""
    rising = True
    for n in range(1, count):
        rising = rising and values[n] >= values[n - 1]
    if rising:
        for n in range(count):
            out[n] = values[n]
        return
    means, masses, sizes = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    blocks = 0
    for n in range(count):
        mean, mass, size = values[n], max(weights[n + 1], TINY) if weighted else 1.0, 1
        while blocks > 0 and means[max(blocks - 1, 0)] > mean:
            blocks -= 1
            mean = (mean * mass + means[blocks] * masses[blocks]) / (mass + masses[blocks])
            mass += masses[blocks]
            size += sizes[blocks]
        means[blocks], masses[blocks], sizes[blocks] = mean, mass, size
        blocks += 1
    n = 0
    for b in range(blocks):
        for _i in range(sizes[b]):
            out[n] = means[b]
            n += 1


@internal
def job_rates(lay: Layout, st: Point, at: int, pace: Any, out: Any) -> None:
    """Write the jobs per second that a station completes with 1, 2, ... jobs there."""
    mean = st.total[WORK, at] / st.total[VISITS, at]
    length = st.length_of[at]
    c = len(lay.roots) + lay.pool_of[at]
    if lay.pool_of[at] < 0 or st.solved[c] == 0:
        for n in range(length):
            out[n] = pace[n] / mean
        return
    held, top = hold(lay, st, at), st.population[c]
    reached = np.zeros(top)
    rise(st.throughput[c], st.busy_customers[c], top, st.busy_known[c] == 1, reached)
    for n in range(length):
        if pace[n] > top:
            out[n] = reached[top - 1] * held * pace[n] / top / mean
        else:
            out[n] = interpolated(reached, top, pace[n]) * held / mean


@internal
def has_parallel_jobs(st: Point, c: int, at: int) -> bool:
    """Tell whether customers have several jobs at a station at once."""
    return bool(st.profile[c, TIME, at] < SEQUENTIAL * st.profile[c, WORK, at])


@inlined
def _free(most: float, elsewhere: float) -> float:
    return max(most - elsewhere, LEAST_FREE * min(most, 1.0))


@inlined
def _count(most: float, elsewhere: float, full: float, everyone: float) -> float:
    """Return how many sources customers are like: they while all are busy, else the clients behind them."""
    free = _free(most, elsewhere)
    return 1.0 / (full / free + (1.0 - full) / max(everyone - elsewhere, free))


@inlined
def _share(st: Point, c: int, at: int) -> float:
    """Return which part of the requests to a pool comes from customers of a network, directly or not."""
    return float(min(st.rate[c] * st.reached[c, at] / max(st.total[VISITS, at], TINY), 1.0))


@internal
def make_view(
    lay: Layout,
    num: Numbers,
    st: Point,
    v: int,
    at: int,
    rate: float,
    work: float,
    population: int,
    theta: float,
    own: int,
    user: int,
) -> None:
    """Make a station as one of its users sees it.

    View v of station ``at``, for a user who comes at a rate with so much work per second and has so many
    customers, theta of them per job: servers of the station ``own`` (below 0: clients), and the customers
    ``user`` (below 0: of no network).
    """
    everything, all_work = st.total[VISITS, at], st.total[WORK, at]
    mean = all_work / everything
    others, other_work = max(everything - rate, 0.0), max(all_work - work, 0.0)
    shared = lay.shared[at] == 1
    waited = 0.0 if shared else st.wait[at]
    relative = 1.0
    if rate > 0 and waited + mean > 0:
        relative = (waited + work / rate) / (waited + mean)
    length = st.length_of[at]
    customers = population
    if theta <= SEQUENTIAL:
        customers = -math.floor(-(population / theta))
    customers = min(customers, length)
    st.view[v, 0], st.view[v, 1], st.view[v, 2] = at, customers, 0
    st.view_numbers[v, 0], st.view_numbers[v, 1] = theta, relative
    rates = np.zeros(length)
    job_rates(lay, st, at, st.pace[at], rates)
    behind = st.second_rate[at]
    if not (others + behind > LEFT_OVER * everything and other_work > 0):
        first = room(st, 2 * customers)
        st.view[v, 3], st.view[v, 4] = first, first + customers
        for n in range(customers):
            st.area[first + n] = rates[n]
            st.area[first + customers + n] = n + 1.0 - st.busy[at, n]
        return
    stretch = st.stretch[at] if shared else 1.0
    inside = others * waited + other_work * stretch
    mine = rate * waited + work * stretch
    callers = 0.0
    if own >= 0:
        some = 0.0
        c = len(lay.roots) + lay.pool_of[own]
        if st.busy_known[c] == 1:
            for n in range(1, st.population[c] + 1):
                some += st.busy_customers[c, n]
        callers = st.jobs[own] / some if some > ROUNDING else 0.0
    # The others as sources: see ``Interlock._sources``.
    usual, here, limit, callees = 0.0, 0.0, 0.0, 0.0
    skipped = False
    everyone = min(st.flows[0], UNBOUNDED + UNBOUNDED * inside)
    roots = len(lay.roots)
    for c in range(len(st.rate)):
        if st.visited[c] == 0 or st.profile[c, VISITS, at] <= 0:
            continue
        flow = st.rate[c] * st.profile[c, VISITS, at]
        if flow <= 0:
            continue
        if not skipped and abs(flow - rate) <= ROUNDING * max(flow, rate):
            skipped = True
            continue
        most = float(st.population[c] * (PARALLEL if has_parallel_jobs(st, c, at) else 1))
        full = st.busy_customers[c, st.population[c]] if st.busy_known[c] == 1 else 0.0
        share, away = 0.0, 0.0
        if own >= 0:
            share = _share(st, c, own)
            away = share * st.jobs[own]
        usual += _count(most, away, full, everyone)
        count = _count(most, share * callers, full, everyone)
        here += count
        if user >= 0 and c >= roots:
            number = lay.pools[c - roots]
            awaited = 1.0 - st.second_work[number] / st.total[WORK, number]
            callees += count * awaited * _share(st, user, number)
        limit += max(-math.floor(-_free(most, share * callers)), 1)
    more = 0.0
    if st.unawaited_visits[at] > 0:
        more = UNBOUNDED + UNBOUNDED * inside
    elif behind > 0:
        more = servers_of(num, at)
    usual, here, limit = usual + more, here + more, limit + more
    callees = min(callees, here)
    bound = st.flows[0] if more == 0 else math.inf
    queued = 0.0 if own < 0 else max(st.jobs[own] - 1.0, 0.0)
    most = max(min(usual, bound - queued - mine), 0.0)
    bound -= max(callers - 1.0, 0.0)
    pause = max(most - inside, LEAST_PAUSE * inside) / (others + behind)
    relative_work = inside / (others + behind) / (stretch * (waited + mean))
    ratio = others / inside * (waited + work / rate) if rate > 0 else 1.0
    _with_background(
        lay, st, v, rates, customers, here, limit, pause, relative_work, bound, ratio, callees,
        population / theta,
    )  # fmt: skip


@internal
def _with_background(
    lay: Layout,
    st: Point,
    v: int,
    rates: Any,
    customers: int,
    sources: float,
    limit: float,
    pause: float,
    relative_work: float,
    population: float,
    waiting_ratio: float,
    callees: float,
    callers: float,
) -> None:
    """See ``SharedView``: others in equilibrium, given the number of own customers."""
    at, length = st.view[v, 0], len(rates)
    width = 1 + int(max(min(limit, population, float(length)), 0.0))
    places, rows = lay.grids[customers], lay.grid_rows[customers]
    first = room(st, 2 * customers + rows + (rows + 1) * width)
    if st.counts[3] == 1:
        return
    area = st.area
    own_rates, queued, grid = first, first + customers, first + 2 * customers
    weights = grid + rows
    st.view[v, 2], st.view[v, 3], st.view[v, 4], st.view[v, 5] = 1, own_rates, queued, grid
    st.view[v, 6], st.view[v, 7], st.view[v, 8] = rows, width, weights
    fastest = 0.0
    for n in range(length):
        fastest = max(fastest, rates[n])
    means, waits = np.zeros(rows + 1), np.zeros(rows + 1)
    row = np.zeros(width)
    for g in range(rows + 1):
        whole = 0 if g == 0 else places[g - 1]
        own = float(whole)
        working = min(callees, max(callers - own, 0.0))
        there = max(min(sources - callees + working, population - own), 0.0)
        row[0] = 0.0
        top = 0.0
        for k in range(1, width):
            left = max(there - (k - 1.0), 0.0)
            speed = max(rates[max(min(whole + k, length) - 1, 0)], ROUNDING * fastest)
            jobs = max(own + k, 1.0)
            ratio = left / pause * relative_work * jobs / (speed * k)
            row[k] = row[k - 1] + math.log(max(ratio, TINY))
            top = max(top, row[k])
        total = 0.0
        for k in range(width):
            row[k] = math.exp(row[k] - top)
            total += row[k]
        rate, wait = 0.0, 0.0
        # Row 0, with no own customer, is behind the others.
        spot = weights + (rows if g == 0 else g - 1) * width
        for k in range(width):
            weight = row[k] / total
            area[spot + k] = weight
            index = max(min(whole + k, length) - 1, 0)
            rate += weight * own / max(own + k, 1.0) * rates[index]
            if g > 0:
                share = own / (own + waiting_ratio * k)
                wait += weight * share * (index + 1.0 - st.busy[at, index])
        means[g], waits[g] = rate, wait
    for g in range(rows):
        area[grid + g] = float(places[g])
    g = 1
    for n in range(1, customers + 1):
        while g < rows and places[g - 1] < n:
            g += 1
        if places[g - 1] <= n or g == 1:
            area[own_rates + n - 1] = means[g]
            area[queued + n - 1] = waits[g]
        else:
            part = float(n - places[g - 2]) / float(places[g - 1] - places[g - 2])
            area[own_rates + n - 1] = means[g - 1] + (means[g] - means[g - 1]) * part
            area[queued + n - 1] = waits[g - 1] + (waits[g] - waits[g - 1]) * part


@internal
def waiting_of(st: Point, v: int, there: Any, size: int) -> float:
    """Return the mean number of own jobs that wait, given how likely 0, 1, ... customers are there."""
    customers, queued = st.view[v, 1], st.view[v, 4]
    values = st.area[queued : queued + customers]
    total = 0.0
    for n in range(1, size):
        total += there[n] * interpolated(values, customers, n / st.view_numbers[v, 0])
    return total


@internal
def add_total(st: Point, v: int, there: Any, size: int, totals: Any, factor: float) -> None:
    """Add ``factor`` times the probability of 0, 1, ... jobs, all others' included, to ``totals``."""
    length = st.length_of[st.view[v, 0]]
    theta = st.view_numbers[v, 0]
    if theta <= SEQUENTIAL:
        # A smooth distribution of n / theta: half of those with n are below n.
        count = length + 1
        own = np.zeros(count)
        before, n = 0.0, 0
        total, place, value = there[0], 0.0, 0.0
        for k in range(count):
            edge = max((k + 0.5) * theta, 0.5) if k < length else float(size)
            while n < size and n + 0.5 < edge:
                place, value = n + 0.5, total
                n += 1
                if n < size:
                    total += there[n]
            at = value
            if n < size and n + 0.5 > place:
                at += (total - value) * (edge - place) / (n + 0.5 - place)
            own[k] = at - before
            before = at
    else:
        count = min(size, length + 1)
        own = np.zeros(count)
        for n in range(count):
            own[n] = there[n]
        for n in range(count, size):
            own[count - 1] += there[n]
    if st.view[v, 2] == 0:
        for n in range(count):
            totals[n] += factor * own[n]
        return
    grid, rows, width, weights = st.view[v, 5], st.view[v, 6], st.view[v, 7], st.view[v, 8]
    start = 1
    for g in range(rows + 1):
        row = weights + min(g, rows - 1) * width
        end = count - 1
        if g < rows:
            end = min(int(st.area[grid + g]), count - 1)
        for n in range(start, end + 1):
            if own[n] != 0.0:
                for k in range(width):
                    totals[min(n + k, length)] += factor * own[n] * st.area[row + k]
        start = max(start, end + 1)
    alone = weights + rows * width
    for k in range(min(width, length + 1)):
        totals[k] += factor * own[0] * st.area[alone + k]
