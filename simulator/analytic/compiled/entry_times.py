"""See ``simulator.analytic.entries.entry_times``: how long an entry holds its thread and its caller.

The graph of an entry is a tape: operations on slots, which hold mean and variance of a time since the start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mup.native.binding import inlined, internal
from simulator.analytic.compiled.records import ADD, BEGIN, JOIN, LOOPED, MIX, Layout, Point
from simulator.analytic.compiled.special import lower_gamma, regular_beta
from simulator.analytic.entries.entry_times import CERTAIN, INTEGRATED

__all__ = ["run_tape"]


@internal
def run_tape(lay: Layout, st: Point, p: int) -> None:
    """Find ``reply`` and ``hold`` of a plan, shares of its steps and overlaps of its branches."""
    base, end = lay.step_first[p], lay.step_first[p + 1]
    for s in range(base, end):
        st.share[s] = 1.0
    for o in range(lay.overlap_first[p], lay.overlap_first[p + 1]):
        st.overlaps[o, 0] = 0.0
    if lay.single[p] == 1:
        st.reply[p, 0] = st.step_mean[base]
        st.reply[p, 1] = st.step_variance[base]
        st.hold[p, 0] = st.step_mean[base]
        st.hold[p, 1] = st.step_variance[base]
        return
    for o in range(lay.op_first[p], lay.op_first[p + 1]):
        code, out, first, many = lay.ops[o, 0], lay.ops[o, 1], lay.ops[o, 2], lay.ops[o, 3]
        if code == BEGIN:
            st.slot_mean[out] = st.step_mean[base + first]
            st.slot_variance[out] = st.step_variance[base + first]
        elif code == ADD:
            st.slot_mean[out] = st.slot_mean[first] + st.step_mean[base + many]
            st.slot_variance[out] = st.slot_variance[first] + st.step_variance[base + many]
        elif code == MIX:
            weights = lay.ops[o, 4]
            mean, second = 0.0, 0.0
            for i in range(many):
                slot, weight = lay.arguments[first + i], lay.weights[weights + i]
                mean += weight * st.slot_mean[slot]
                second += weight * (st.slot_variance[slot] + st.slot_mean[slot] ** 2)
            st.slot_mean[out] = mean
            st.slot_variance[out] = max(second - mean * mean, 0.0)
        elif code == LOOPED:
            before, weights = lay.ops[o, 4], lay.ops[o, 5]
            mean, variance = st.slot_mean[before], st.slot_variance[before]
            for i in range(many):
                slot = lay.arguments[first + i]
                times, spread = lay.weights[weights + 2 * i], lay.weights[weights + 2 * i + 1]
                mean += times * st.slot_mean[slot]
                variance += times * st.slot_variance[slot] + spread * st.slot_mean[slot] ** 2
            st.slot_mean[out] = mean
            st.slot_variance[out] = variance
        elif code == JOIN:
            _join(lay, st, p, o)
    slot = lay.reply_slot[p]
    st.reply[p, 0] = st.slot_mean[slot]
    st.reply[p, 1] = st.slot_variance[slot]
    slot = lay.hold_slot[p]
    st.hold[p, 0] = st.slot_mean[slot]
    st.hold[p, 1] = st.slot_variance[slot]


@internal
def _join(lay: Layout, st: Point, p: int, o: int) -> None:
    """Wait for some of the branches; note how those that meet here share the time until then."""
    out, first, many = lay.ops[o, 1], lay.ops[o, 2], lay.ops[o, 3]
    fork, needed, quorum, overlap, branch = (
        lay.ops[o, 4],
        lay.ops[o, 5],
        lay.ops[o, 6],
        lay.ops[o, 7],
        lay.ops[o, 8],
    )
    start, noise = 0.0, 0.0
    if fork >= 0:
        start, noise = st.slot_mean[fork], st.slot_variance[fork]
    if many == 2:
        one, other = lay.arguments[first], lay.arguments[first + 1]
        a, va = st.slot_mean[one] - start, st.slot_variance[one] - noise
        b, vb = st.slot_mean[other] - start, st.slot_variance[other] - noise
        mean, variance = _latest_of_two(a, va, b, vb, needed)
        if overlap >= 0 and min(a, b) > 0:
            last = mean
            if quorum == 1:
                last, _ = _latest_of_two(a, va, b, vb, 2)
            both = min(max(a + b - last, 0.0), a, b)
            _note_pair(st, overlap, a, b, both)
            scale = mean / (a + b - both)
            _note_share(lay, st, p, branch, (a - both / 2.0) * scale / a)
            _note_share(lay, st, p, branch + 1, (b - both / 2.0) * scale / b)
    else:
        means, variances = np.zeros(many), np.zeros(many)
        least = math.inf
        for i in range(many):
            slot = lay.arguments[first + i]
            means[i] = st.slot_mean[slot] - start
            variances[i] = st.slot_variance[slot] - noise
            least = min(least, means[i])
        mean, variance = _latest(lay, means, variances, needed)
        if overlap >= 0 and least > 0:
            _share_among(lay, st, p, o, means, variances, mean)
    st.slot_mean[out] = start + mean
    st.slot_variance[out] = noise + variance


@internal
def _note_pair(st: Point, overlap: int, one: float, other: float, together: float) -> None:
    st.overlaps[overlap, 0] = 1.0
    st.overlaps[overlap, 1] = one
    st.overlaps[overlap, 2] = other
    st.overlaps[overlap, 3] = together


@internal
def _note_share(lay: Layout, st: Point, p: int, branch: int, share: float) -> None:
    """Let this part of the time of the steps of a branch count."""
    for i in range(lay.branch_first[branch], lay.branch_first[branch + 1]):
        st.share[lay.step_first[p] + lay.branch_steps[i]] *= min(share, 1.0)


@internal
def _latest_of_two(a: float, va: float, b: float, vb: float, needed: int) -> tuple[float, float]:
    """Return the moments of the later of two times, or of the earlier one."""
    a, va, b, vb = max(a, 0.0), max(va, 0.0), max(b, 0.0), max(vb, 0.0)
    if va <= CERTAIN * a * a and vb <= CERTAIN * b * b:
        if (a < b or (a == b and va <= vb)) == (needed == 1):
            return a, va
        return b, vb
    first = a * _outlasts(a, va, b, vb, 1.0) + b * _outlasts(b, vb, a, va, 1.0)
    second = (va + a * a) * _outlasts(a, va, b, vb, 2.0) + (vb + b * b) * _outlasts(b, vb, a, va, 2.0)
    if needed == 1:
        first = a + b - first
        second = va + a * a + vb + b * b - second
    return first, max(second - first * first, 0.0)


@internal
def _outlasts(mean: float, variance: float, limit: float, noise: float, more: float) -> float:
    """Return how likely a time whose gamma shape is raised by so much is later than another one."""
    if variance <= CERTAIN * mean * mean:
        return lower_gamma(limit * limit / noise, mean * limit / noise)
    shape = mean * mean / variance + more
    if noise <= CERTAIN * limit * limit:
        return 1.0 - lower_gamma(shape, limit * mean / variance)
    scale, other = variance / mean, noise / limit
    return regular_beta(limit * limit / noise, shape, scale / (scale + other), other / (scale + other))


@inlined
def _over(mean: float, variance: float, at: float) -> float:
    """Return how likely a gamma time of these moments is over at some instant."""
    if variance <= CERTAIN * mean * mean:
        return 1.0 if at >= mean else 0.0
    return lower_gamma(mean * mean / variance, at * (mean / variance))


@internal
def _latest(lay: Layout, given: Any, noises: Any, needed: int) -> tuple[float, float]:
    """Return the moments of the time at which some of several independent times are over."""
    many = len(given)
    means, variances = np.zeros(many), np.zeros(many)
    certain = True
    top = 0.0
    for i in range(many):
        means[i], variances[i] = max(given[i], 0.0), max(noises[i], 0.0)
        certain = certain and variances[i] <= CERTAIN * means[i] * means[i]
        top = max(top, means[i] + INTEGRATED * math.sqrt(variances[i]))
    if many == 1:
        return means[0], variances[0]
    if certain:
        return _ranked(means, variances, needed)
    points = len(lay.grid)
    over = np.zeros(many + 1)
    first, second = 0.0, 0.0
    for g in range(points):
        at = lay.grid[g] * top
        over[0] = 1.0
        for k in range(1, many + 1):
            over[k] = 0.0
        for i in range(many):
            done = _over(means[i], variances[i], at)
            for k in range(many, 0, -1):
                over[k] = over[k] * (1.0 - done) + over[k - 1] * done
            over[0] = over[0] * (1.0 - done)
        tail = 0.0
        for k in range(needed):
            tail += over[k]
        first += lay.grid_weights[g] * tail
        second += lay.grid_weights[g] * at * tail
    first = top * first
    second = 2.0 * top * second
    return first, max(second - first * first, 0.0)


@internal
def _ranked(means: Any, variances: Any, needed: int) -> tuple[float, float]:
    """Return the moments of the time that is over as the so many-th, of times that are certain."""
    for i in range(len(means)):
        before = 0
        for j in range(len(means)):
            less = means[j] < means[i] or (means[j] == means[i] and variances[j] < variances[i])
            same = means[j] == means[i] and variances[j] == variances[i] and j < i
            before += int(less or same)
        if before == needed - 1:
            return means[i], variances[i]
    return means[0], variances[0]


@internal
def _share_among(lay: Layout, st: Point, p: int, o: int, means: Any, variances: Any, mean: float) -> None:
    """Note how more than two branches share the time until all are over."""
    many, overlap, branch = lay.ops[o, 3], lay.ops[o, 7], lay.ops[o, 8]
    points = len(lay.grid)
    top = 0.0
    for i in range(many):
        top = max(top, means[i] + INTEGRATED * math.sqrt(max(variances[i], 0.0)))
    left = np.zeros((many, points))
    for i in range(many):
        for g in range(points):
            left[i, g] = 1.0 - _over(means[i], variances[i], lay.grid[g] * top)
    counted = np.zeros(many)
    for k in range(len(lay.nodes)):
        for g in range(points):
            product = 1.0
            for i in range(many):
                product *= 1.0 - left[i, g] + left[i, g] * lay.nodes[k]
            weight = lay.node_weights[k] * lay.grid_weights[g] * product
            for i in range(many):
                counted[i] += weight * left[i, g] / (1.0 - left[i, g] + left[i, g] * lay.nodes[k])
    total = 0.0
    for i in range(many):
        counted[i] *= top
        total += counted[i]
    scale = mean / total
    for i in range(many):
        _note_share(lay, st, p, branch + i, counted[i] * scale / means[i])
        for j in range(i + 1, many):
            together = 0.0
            for g in range(points):
                together += left[i, g] * lay.grid_weights[g] * left[j, g]
            _note_pair(st, overlap, means[i], means[j], top * together)
            overlap += 1
