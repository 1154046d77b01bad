"""See ``general_service`` and ``replicas`` of the approximations: how fast queues are, at every length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mup.native.binding import inlined, internal
from simulator.analytic.approximations.convolution import ROUNDING, TINY
from simulator.analytic.approximations.general_service import (
    EXPONENTIAL,
    FIRST,
    LEAST_LIGHT,
    LONG,
    MOST,
    RELAXATION,
)
from simulator.analytic.approximations.replicas import SAFE
from simulator.analytic.compiled.records import LONGEST, Numbers, Point

__all__ = ["adapt", "begin_queue", "interpolated"]


@inlined
def interpolated(values: Any, count: int, at: float) -> float:
    """Return the value at some place between those at 0, 1, ..., which are 0 and the first ``count`` ones."""
    if at <= 0.0:
        return 0.0
    if at >= count:
        return float(values[count - 1])
    low = math.floor(at)
    before = 0.0 if low == 0 else values[low - 1]
    return float(before + (values[low] - before) * (at - low))


@internal
def begin_queue(num: Numbers, st: Point, at: int, most: float) -> None:
    """Begin with exponential services, and so many jobs at a station at most; longer queues are cut."""
    length = int(min(most, float(LONGEST)))
    st.length_of[at] = length
    st.cut[at] = int(most > LONGEST)
    st.level[at] = 1.0
    st.first[at] = 1.0
    for n in range(length):
        st.speeds[at, n] = min(n + 1.0, num.servers[at])
        st.forms[at, n] = 1.0
    _spread(num, st, at)
    for n in range(length):
        st.busy[at, n] = st.pace[at, n]


@internal
def _spread(num: Numbers, st: Point, at: int) -> None:
    """Find the pace of all replicas together from the speeds of one."""
    length, count = st.length_of[at], num.replicas[at]
    if count == 1:
        for n in range(length):
            st.pace[at, n] = st.speeds[at, n]
        return
    size = length + 1
    one, rest, every = st.spread_one[at], st.spread_rest[at], st.spread_all[at]
    one[0] = 0.0
    for n in range(length):
        one[n + 1] = one[n] - math.log(st.speeds[at, n])
    tilt = one[length] / length
    for n in range(size):
        one[n] -= tilt * n
    # By squaring: ``square`` is the convolution of 1, 2, 4, ... of them, ``rest`` of those so far.
    square, made = np.zeros(size), np.zeros(size)
    for n in range(size):
        square[n] = one[n]
    times, some = count - 1, False
    while times > 0:
        if times % 2 == 1:
            if some:
                _convolved(rest, square, made, size)
                for n in range(size):
                    rest[n] = made[n]
            else:
                for n in range(size):
                    rest[n] = square[n]
                some = True
        times = times // 2
        if times > 0:
            _convolved(square, square, made, size)
            for n in range(size):
                square[n] = made[n]
    _convolved(one, rest, every, size)
    for n in range(length):
        st.pace[at, n] = count * math.exp(every[n] - every[n + 1] - tilt)


@internal
def _range_of(logs: Any, size: int) -> tuple[float, float]:
    """Return the largest, and how far the smallest is below it."""
    low, high = logs[0], logs[0]
    for n in range(1, size):
        low, high = min(low, logs[n]), max(high, logs[n])
    return high, high - low


@internal
def _convolved(first: Any, second: Any, out: Any, size: int) -> None:
    """Write the logarithms of the convolution of what two arrays are logarithms of."""
    top, wide = _range_of(first, size)
    other, broad = _range_of(second, size)
    if max(wide, broad) <= SAFE:
        a, b = np.zeros(size), np.zeros(size)
        for n in range(size):
            a[n], b[n] = math.exp(first[n] - top), math.exp(second[n] - other)
        for n in range(size):
            total = 0.0
            for i in range(n + 1):
                total += a[i] * b[n - i]
            out[n] = math.log(total) + top + other
        return
    for n in range(size):
        top = first[0] + second[n]
        for i in range(1, n + 1):
            top = max(top, first[i] + second[n - i])
        total = 0.0
        for i in range(n + 1):
            total += math.exp(first[i] + second[n - i] - top)
        out[n] = math.log(total) + top


@internal
def _single(num: Numbers, st: Point, at: int, occupancy: Any, found: Any) -> None:
    """Find how likely 0, 1, ... requests are at one replica, for such probabilities of all together."""
    size = st.length_of[at] + 1
    if num.replicas[at] == 1:
        for n in range(size):
            found[n] = occupancy[n]
        return
    one, rest, every = st.spread_one[at], st.spread_rest[at], st.spread_all[at]
    for k in range(size):
        found[k] = 0.0
        for n in range(k, size):
            if occupancy[n] > 0.0:
                found[k] += occupancy[n] * math.exp(one[k] + rest[n - k] - every[n])
    total = 0.0
    for k in range(size):
        total += found[k]
    for k in range(size):
        found[k] /= total


@internal
def adapt(num: Numbers, st: Point, at: int, variability: float, occupancy: Any) -> None:
    """Correct the pace for service times whose squared coefficient of variation is not 1."""
    c, length = num.servers[at], st.length_of[at]
    if c >= length or abs(variability - 1.0) < EXPONENTIAL:
        return
    full = int(c)
    single = np.zeros(length + 1)
    _single(num, st, at, occupancy, single)
    count = length - full
    usable = 0
    load = np.zeros(count)
    # Between the lengths whose load is known it is interpolated, beyond them it stays.
    last = -1
    for k in range(count):
        if single[full + k] > TINY and single[full + k + 1] > TINY:
            load[k] = single[full + k + 1] * st.speeds[at, full + k] / single[full + k]
            for i in range(last + 1, k):
                part = float(i - last) / float(k - last)
                load[i] = load[k] if last < 0 else load[last] + (load[k] - load[last]) * part
            last = k
            usable += 1
    if usable == 0:
        return
    for i in range(last + 1, count):
        load[i] = load[last]
    light = max(1.0 + (variability - 1.0) / (c + 1.0), LEAST_LIGHT)
    heavy = (1.0 + variability) / 2.0
    power = 1.0
    if st.cut[at] == 1:
        long = 0.0
        for n in range(int(LONG * length), length + 1):
            long += single[n]
        power = 1.0 - long
    old = 1.0 - RELAXATION
    above, given = 0.0, 0.0
    for k in range(count):
        offered = min(load[k] / c, MOST)
        mix = min(offered, 1.0)
        excess = 1.0 / ((1.0 - mix) * light + mix * heavy) - 1.0
        factor = 1.0 + (1.0 - offered) * excess
        if offered > 1.0 and excess > 0.0:
            factor = 1.0 / (1.0 + (offered - 1.0) * excess)
        if st.cut[at] == 1:
            factor = factor**power
        st.forms[at, k] = st.forms[at, k] ** old * factor**RELAXATION
        above += single[full + 1 + k]
        given += single[full + 1 + k] * st.forms[at, k]
    exact = single[full]
    first = 1.0
    if exact > ROUNDING:
        first = min(max(1.0 + (above - given) / exact, 1.0 / FIRST), max(FIRST, heavy))
    st.first[at] = st.first[at] ** old * first**RELAXATION
    if given > ROUNDING:
        level = min(max((exact + above - first * exact) / given, 1.0 / MOST), MOST)
        new = min(RELAXATION, 1.0 / heavy)
        st.level[at] = st.level[at] ** (1.0 - new) * level**new
    for n in range(length):
        st.speeds[at, n] = min(n + 1.0, c)
    for k in range(count):
        st.speeds[at, full + k] = c * st.forms[at, k] * st.level[at]
    st.speeds[at, full - 1] = c * st.first[at]
    _spread(num, st, at)
