"""See ``convolution`` and ``fixed_point``: closed networks, for every number of customers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mup.native.binding import compiled_sums, internal
from mup.native.shapes import Floats1
from simulator.analytic.approximations.convolution import ROOT, TINY
from simulator.analytic.approximations.shared_station import SEQUENTIAL
from simulator.analytic.compiled.loads import ANYWHERE, HERE, TIME, VISITS, WORK
from simulator.analytic.compiled.queues import interpolated
from simulator.analytic.compiled.records import LONGEST, Layout, Numbers, Point
from simulator.analytic.compiled.views import make_view, room
from simulator.analytic.fixed_point import LEAST_THETA

__all__ = ["marginal", "multiply", "solve_network"]


@internal
def solve_network(lay: Layout, num: Numbers, st: Point, c: int) -> None:
    """Solve the network of customers for every number of them."""
    own = -1
    if c >= len(lay.roots):
        own = lay.pools[c - len(lay.roots)]
    size = st.population[c] + 1
    first = st.counts[4]
    count = 0
    for at in range(len(lay.shared)):
        visits, work = st.profile[c, VISITS, at], st.profile[c, WORK, at]
        if visits <= 0:
            continue
        theta = min(st.profile[c, TIME, at] / work, 1.0) if work > 0 else 1.0
        theta = max(theta, LEAST_THETA)
        v = first + count
        make_view(
            lay, num, st, v, at, st.rate[c] * visits, st.rate[c] * work, st.population[c], theta, own, c
        )
        st.view_numbers[v, 2] = visits * theta * st.view_numbers[v, 1]
        count += 1
    st.view_first[c] = first
    st.view_end[c] = first + count
    st.counts[4] = first + count
    every = room(st, (2 + 2 * count) * size)
    # Rates go where the numbers of all but one station come later.
    rates = every + 2 * size + count * size
    if st.counts[3] == 1:
        return
    st.view_all[c] = every
    area = st.area
    guess = math.inf
    slow, quick = 0.0, math.inf
    for i in range(count):
        v = first + i
        _rates_of(st, c, v, area[rates + i * size : rates + (i + 1) * size], size - 1)
        visits = st.view_numbers[v, 2]
        highest = 0.0
        for n in range(st.view[v, 9]):
            highest = max(highest, area[rates + i * size + n])
        guess = min(guess, highest / visits)
        slow += visits / area[rates + i * size]
        quick = min(quick, area[rates + i * size + st.view[v, 9] - 1] / visits)
    delay = st.profile[c, TIME, len(lay.shared)]
    if own < 0:
        if count == 0:
            guess = st.rate[c]
    elif st.solved[c] == 1:
        guess = st.throughput[c, size - 2]
    else:
        guess = min(float(size - 1) / (delay + slow), quick)
    _convolve(st, c, every, count, size, delay, guess, delay + slow)
    st.solved[c] = 1


@internal
def _rates_of(st: Point, c: int, v: int, rates: Any, count: int) -> None:
    """Write the rates of a station for so many customers, also if they have parallel jobs there."""
    at, known, first = st.view[v, 0], st.view[v, 1], st.view[v, 3]
    theta = st.view_numbers[v, 0]
    if theta > SEQUENTIAL:
        for n in range(count):
            rates[n] = st.area[first + min(n, known - 1)]
        st.view[v, 9] = known
        if known > count:
            st.view[v, 9] = count
        return
    anywhere = st.profile[c, ANYWHERE, at]
    here = st.profile[c, HERE, at] / anywhere if anywhere > 0 else 0.0
    own = st.area[first : first + known]
    company = 1.0 + (1.0 / theta - 1.0) * here
    alone = interpolated(own, known, company) / company
    most = min(count, LONGEST)
    slowest = theta * interpolated(own, known, 1.0 / theta)
    for n in range(count):
        number = float(min(n, most - 1) + 1)
        rates[n] = theta * interpolated(own, known, number / theta) * (1.0 + (alone / slowest - 1.0) / number)
    st.view[v, 9] = most


@compiled_sums
def multiply(a: Floats1, b: Floats1, out: Floats1) -> None:
    """Write the convolution of two sequences, relative to its largest number."""
    size = len(out)
    for n in range(size):
        out[n] = 0.0
    # Whatever would underflow does not matter, but arithmetic with denormal numbers is slow.
    first, last, end = size, -1, -1
    for n in range(size):
        if a[n] > ROOT:
            first, last = min(first, n), n
        if b[n] > ROOT:
            end = n
        else:
            b[n] = 0.0
    i = first
    while i + 3 <= last:
        # Four at once: the sums are read and written a quarter as often.
        a0 = a[i] if a[i] > ROOT else 0.0
        a1 = a[i + 1] if a[i + 1] > ROOT else 0.0
        a2 = a[i + 2] if a[i + 2] > ROOT else 0.0
        a3 = a[i + 3] if a[i + 3] > ROOT else 0.0
        for k in range(min(3, size - i)):
            out[i + k] += a0 * b[k]
            if k > 0:
                out[i + k] += a1 * b[k - 1]
            if k > 1:
                out[i + k] += a2 * b[k - 2]
        most = min(end, size - 1 - i)
        for k in range(3, most + 1):
            out[i + k] += a0 * b[k] + a1 * b[k - 1] + a2 * b[k - 2] + a3 * b[k - 3]
        for k in range(max(most + 1, 3), min(most + 4, size - i)):
            if k - 1 <= end:
                out[i + k] += a1 * b[k - 1]
            if k - 2 <= end:
                out[i + k] += a2 * b[k - 2]
            if k - 3 <= end:
                out[i + k] += a3 * b[k - 3]
        i += 4
    while i <= last:
        if a[i] > ROOT:
            for k in range(min(end, size - 1 - i) + 1):
                out[i + k] += a[i] * b[k]
        i += 1
    top = 0.0
    for n in range(size):
        top = max(top, out[n])
    if top > 0:
        for n in range(size):
            out[n] /= top


@internal
def _weights(rates: Any, factor: float, out: Any) -> None:
    """Write 1, r1, r1 r2, ... relative to the largest, with r = factor / rate."""
    size = len(out)
    logs = np.zeros(size)
    top = 0.0
    for n in range(1, size):
        logs[n] = logs[n - 1] + math.log(max(factor / rates[n - 1], TINY))
        top = max(top, logs[n])
    for n in range(size):
        out[n] = math.exp(logs[n] - top)


@internal
def _convolve(
    st: Point,
    c: int,
    every: int,
    count: int,
    size: int,
    delay: float,
    guess: float,
    lightest: float,
) -> None:
    """Find throughput, and the weights of all stations, of each, and of all but each.

    In ``area`` from ``every`` on: all; the delay; every station; all but every station.
    """
    area, first = st.area, st.view_first[c]
    stations, without = every + 2 * size, every + 2 * size + count * size
    for i in range(count):
        # Rates are where those without this station will be.
        rates = area[without + i * size : without + (i + 1) * size]
        _weights(
            rates,
            guess * st.view_numbers[first + i, 2],
            area[stations + i * size : stations + (i + 1) * size],
        )
    own = area[every + size : every + 2 * size]
    if delay > 0:
        for n in range(size - 1):
            own[n] = (n + 1.0) / (guess * delay)
        own[size - 1] = 1.0
        _delay_weights(own)
    else:
        own[0] = 1.0
        for n in range(1, size):
            own[n] = 0.0
    # Products of all before go to where they leave the station out; then those of all behind are multiplied.
    whole, made, behind = area[every : every + size], np.zeros(size), np.zeros(size)
    for n in range(size):
        whole[n] = own[n]
    for i in range(count):
        before = area[without + i * size : without + (i + 1) * size]
        for n in range(size):
            before[n] = whole[n]
        multiply(before, area[stations + i * size : stations + (i + 1) * size], whole)
    for i in range(count - 1, -1, -1):
        before = area[without + i * size : without + (i + 1) * size]
        station = area[stations + i * size : stations + (i + 1) * size]
        if i == count - 1:
            for n in range(size):
                behind[n] = station[n]
        else:
            multiply(before, behind, made)
            for n in range(size):
                before[n] = made[n]
            if i > 0:
                multiply(behind, station, made)
                for n in range(size):
                    behind[n] = made[n]
    for n in range(size - 1):
        if whole[n] > TINY and whole[n + 1] > TINY:
            st.throughput[c, n] = guess * whole[n] / whole[n + 1]
        else:
            st.throughput[c, n] = (n + 1.0) / lightest


@internal
def _delay_weights(own: Any) -> None:
    """Turn rates of a delay into its weights."""
    size = len(own)
    rates = np.zeros(size)
    for n in range(size):
        rates[n] = own[n]
    logs = np.zeros(size)
    top = 0.0
    for n in range(1, size):
        logs[n] = logs[n - 1] - math.log(rates[n - 1])
        top = max(top, logs[n])
    for n in range(size):
        own[n] = math.exp(logs[n] - top)


@internal
def marginal(st: Point, c: int, v: int, there: Any) -> None:
    """Write how likely 0, 1, ... customers of a network are at one of its stations."""
    size, count = st.population[c] + 1, st.view_end[c] - st.view_first[c]
    every, i = st.view_all[c], v - st.view_first[c]
    whole = st.area[every : every + size]
    first = every + 2 * size + i * size
    station = st.area[first : first + size]
    first += count * size
    without = st.area[first : first + size]
    scaled = np.zeros(size)
    lowest, highest = size, -1
    for n in range(size):
        if st.busy_customers[c, n] > 0.0 and whole[n] > TINY:
            scaled[n] = st.busy_customers[c, n] / whole[n]
            lowest, highest = min(lowest, n), n
    total = 0.0
    for k in range(size):
        others = 0.0
        for n in range(max(lowest, k), highest + 1):
            others += scaled[n] * without[n - k]
        there[k] = station[k] * others
        total += there[k]
    if total <= 0:
        there[0] = 1.0
        total = 1.0
    for k in range(size):
        there[k] /= total
