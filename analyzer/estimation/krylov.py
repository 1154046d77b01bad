"""Completion time of a request in a stiff chain, by Lanczos' method: threads come back fast.

In a pool that is full, or nearly, a request that leaves is replaced soon: rates of return exceed those of
service, by orders of magnitude if it is full all the time, and uniformisation takes a step per return. But
most of these steps change nothing that matters, for the chain is in equilibrium but for what is slow. Two
facts make use of that:

- Requests in processor sharing that come back from a finite source are a reversible chain (up and down
  rates around any square of states have equal products), and completion of the sampled request only adds to
  the diagonal. So with W the diagonal matrix of the roots of its stationary weights, S = W T W^-1 is
  symmetric, and the density e' exp(T x) t is e' exp(S x) W t, where e is the initial state, of weight 1.
- The rate of completion t hardly differs between states that are near each other. So a few products with S,
  from W t on, span what exp(S x) W t consists of (Lanczos' method), and the exponential of a tridiagonal
  matrix as small as that gives the density at all times (by a Chebyshev series).

The chain starts where no thread is away, and never has more away (in distribution) than in equilibrium;
states that have no weight there are left out, and no transition leads to them.

Stationary weights are products: of a factor per class, which depends on how many of it are away, and one of
how many are away in all. So roots and divisions are taken along one dimension, and what is done per state is
multiplication.

Sources: Gallopoulos and Saad, "Efficient solution of parabolic equations by Krylov approximation methods",
SIAM J. Sci. Stat. Comput. 1992 (projection); Saad, "Analysis of some Krylov subspace approximations to the
matrix exponential operator", SIAM J. Numer. Anal. 1992 (how fast it converges);
Tal-Ezer and Kosloff, "An accurate and efficient scheme for propagating the time dependent Schroedinger
equation", J. Chem. Phys. 1984 (Chebyshev series of exponentials).
"""

from __future__ import annotations

import math

import numpy as np

from mup.native.binding import compiled, compiled_sums
from mup.native.shapes import Floats1, Longs1

__all__ = ["FEWER", "MOST_DIMENSIONS", "projected_densities"]

MOST_DIMENSIONS = 80
"""Dimensions at most: a chain that needs more is not stiff, or its times are very long."""

MOST_STATES = 100_000
"""States at most: arrays are that long."""

FEWER = 3
"""Dimensions between two looks at the densities."""

TOLERANCE = 1e-6
"""Relative change of a density with so many more dimensions at which they are enough. What is left is
smaller still (convergence is faster than linear), and smooth in the rates if dimensions are kept."""

HEAVIEST = 1e9
"""Largest root of the stationary weight of all states, that of the initial one being 1: it multiplies what
rounding does."""

NOTHING = 1e-10
"""Share of the stationary weight that may be left out per class."""

BISECTIONS = 50
"""Steps towards the slowest decay at most: far more than any times need."""

SMALLEST = 1e-13
"""A vector this much shorter than its matrix is long is 0: all dimensions there are have been found."""


@compiled_sums
def _accepted(
    alpha: Floats1,
    beta: Floats1,
    ends: Floats1,
    size: int,
    length: float,
    slowest: float,
    times: Floats1,
    density: Floats1,
) -> bool:
    """Write the densities that so many dimensions give; tell whether those of fewer were the same.

    With d a rate at which all of H decays, the exponential of the tridiagonal matrix H is exp(-d x) times a
    series of Chebyshev polynomials of 1 + (H + d) / h, with h half of the length of the spectrum beyond d,
    and weights exp(-z) I_j(z) with Bessel functions I_j of z = h x. The polynomials are shared by all times.
    Bessel functions come from their recurrence, downwards.

    What rounding does decays as exp(-d x), and densities as the slowest part of H. So d is nearly that: else
    densities in the far tail are nothing but rounding, on which any numbers of dimensions agree.

    Args:
        alpha: Diagonal of the matrix of Lanczos' method.
        beta: Next to it.
        ends: What its vectors have in the initial state.
        size: How many dimensions there are.
        length: Of the first vector before it was normalised.
        slowest: A rate at which all of H decays.
        times: Ascending; shape (I,).
        density: Of fewer dimensions; written; shape (I,).
    """
    # The smallest eigenvalue of -H, from below, so closely that the difference makes no more than a factor e.
    fastest, upper = slowest, -alpha[0]
    for j in range(size):
        radius = (beta[j] if j + 1 < size else 0.0) + (beta[j - 1] if j > 0 else 0.0)
        fastest = max(fastest, radius - alpha[j])
        upper = min(upper, -alpha[j])
    decay = slowest
    for _ in range(BISECTIONS):
        if (upper - decay) * times[-1] <= 1.0:
            break
        guess = 0.5 * (decay + upper)
        pivot, positive = 1.0, True
        for j in range(size):
            pivot = -alpha[j] - guess - (beta[j - 1] * beta[j - 1] / pivot if j > 0 else 0.0)
            if pivot <= 0.0:
                positive = False
                break
        if positive:
            decay = guess
        else:
            upper = guess
    half = max(0.5 * (fastest - decay), SMALLEST * fastest)
    main, beside = np.empty(size), np.zeros(size + 1)
    for j in range(size):
        main[j] = 1.0 + (alpha[j] + decay) / half
    for j in range(size - 1):
        beside[j + 1] = beta[j] / half
    most = _terms(half * times[-1])
    value = np.empty(most)
    before, now, after = np.zeros(size + 2), np.zeros(size + 2), np.zeros(size + 2)
    now[1] = 1.0
    factor = 1.0
    for j in range(most):
        here, left, right = now[1 : size + 1], now[0:size], now[2 : size + 2]
        new, past, low, high = after[1 : size + 1], before[1 : size + 1], beside[0:size], beside[1 : size + 1]
        inner = 0.0
        for i in range(size):
            inner += ends[i] * here[i]
        value[j] = inner
        for i in range(size):
            new[i] = factor * (main[i] * here[i] + low[i] * left[i] + high[i] * right[i]) - past[i]
        factor = 2.0
        before, now, after = now, after, before
    close = True
    for i in range(len(times)):
        z = half * times[i]
        found = value[0]
        if z > 0.0:
            above, weight, whole, found = 0.0, 1e-250, 0.0, 0.0
            for j in range(_terms(z) - 1, 0, -1):
                whole += 2.0 * weight
                found += 2.0 * weight * value[j]
                above, weight = weight, above + 2.0 * j / z * weight
                if weight > 1e200:
                    above, weight, whole, found = (
                        above * 1e-200,
                        weight * 1e-200,
                        whole * 1e-200,
                        found * 1e-200,
                    )
            found = (found + weight * value[0]) / (whole + weight)
        decayed = length * math.exp(-decay * times[i])
        found *= decayed
        close = close and abs(found - density[i]) <= TOLERANCE * found
        density[i] = found
    return close


@compiled
def _terms(z: float) -> int:
    """Return how many terms a Chebyshev series takes: exp(-z) I_j(z) falls as exp(-j^2 / (2 z)), to 1e-16."""
    return int(math.sqrt(72.0 * z)) + 25


@compiled
def _next(at: Longs1, size: Longs1) -> None:
    """Count on: the first place stays 0, for rows along it are worked on at once."""
    for r in range(1, len(at)):
        at[r] += 1
        if at[r] < size[r]:
            return
        at[r] = 0


@compiled_sums
def projected_densities(
    k: int,
    other: Longs1,
    rates: Floats1,
    think: Floats1,
    cores: float,
    times: Floats1,
    guess: int,
    most: int,
    fixed: bool,
    density: Floats1,
) -> tuple[int, float]:
    """Write the density of the response times of one group.

    Args:
        k: Class of the sampled requests.
        other: Requests of each class seen but that one; shape (R,).
        rates: Service rate of each class, 1/s; shape (R,).
        think: Rate at which a request that has left comes back, per class, 1/s; shape (R,).
        cores: Cores the requests share.
        times: Response times, ascending, s; shape (I,).
        guess: Dimensions to try first.
        most: Dimensions to try at most.
        fixed: Take that many dimensions, whether they are enough or not.
        density: Written; shape (I,).

    Returns:
        How many dimensions it took, 0 if that many are not enough or rounding would matter; and how many
        updates of states.
    """
    # Loops rather than expressions of arrays: they take a fraction of the time to compile. They begin at 0
    # and run over views, for only then they become vector instructions.
    kinds = len(rates)
    states, inside, widest = 1, 1, 1
    for r in range(kinds):
        if other[r] > 0 and not think[r] > 0.0:
            return 0, 0.0  # who never comes back: nothing is reversible
        states *= other[r] + 1
        inside += other[r]
        widest = max(widest, other[r] + 1)
        if states > MOST_STATES:
            return 0, 0.0
    # Stationary weights: of how many are away in all, and of how many of each class are. The share that all
    # have at first is moved from the one to the other, lest either leaves the range of numbers.
    share = np.empty(inside)
    joint = np.empty(inside)
    product = 1.0
    for a in range(inside):
        share[a] = min(1.0, cores / (inside - a))
        joint[a] = product
        product *= share[a] / share[0]
    own = np.zeros((kinds, widest))
    for r in range(kinds):
        own[r, 0] = 1.0
        for a in range(other[r]):
            own[r, a + 1] = own[r, a] * (rates[r] * share[0] * (other[r] - a) / (think[r] * (a + 1)))
    size = np.empty(kinds, dtype=np.int64)
    away = np.zeros(kinds, dtype=np.int64)
    for r in range(kinds):
        size[r] = other[r] + 1
    marginal = np.zeros((kinds, widest))
    total = 0.0
    for _ in range(states // size[0]):
        outer, factor, row = 0, 1.0, 0.0
        for r in range(1, kinds):
            outer += away[r]
            factor *= own[r, away[r]]
        jointly, mine, sums = joint[outer : outer + size[0]], own[0], marginal[0]
        for a in range(size[0]):
            weight = factor * jointly[a] * mine[a]
            sums[a] += weight
            row += weight
        for r in range(1, kinds):
            marginal[r, away[r]] += row
        total += row
        _next(away, size)
    work = float(states)
    if not total < HEAVIEST**2:
        return 0, work
    stride = np.empty(kinds, dtype=np.int64)
    cells = 1
    for r in range(kinds):
        tail = marginal[r, size[r] - 1]
        while size[r] > 2 and tail < NOTHING * total:
            size[r] -= 1
            tail += marginal[r, size[r] - 1]
        away[r] = 0
        stride[r] = cells
        cells *= size[r]
    # What is next to the diagonal is the root of a rate down times one up: of the class, and of all.
    pair = np.zeros((kinds, widest))
    leave = np.zeros((kinds, widest))
    for r in range(kinds):
        for a in range(size[r] - 1):
            leave[r, a] = rates[r] * (other[r] - a)
            pair[r, a] = math.sqrt(leave[r, a] * think[r] * (a + 1))
        for a in range(size[r]):
            own[r, a] = math.sqrt(own[r, a])
    root = np.empty(inside)
    for a in range(inside):
        joint[a] = math.sqrt(joint[a])
        root[a] = math.sqrt(share[a])
    # Zeros around the vectors, and couplings of 0 at the last state of each class, stand for no neighbour.
    pad = stride[kinds - 1]
    diagonal = np.empty(cells)
    couple = np.zeros((kinds, pad + cells))
    before = np.zeros(cells + 2 * pad)
    now = np.zeros(cells + 2 * pad)
    after = np.zeros(cells + 2 * pad)
    square, largest = 0.0, rates[k]
    for r in range(kinds):
        largest += rates[r] * other[r] + think[r] * size[r]
    for index in range(cells // size[0]):
        base = index * size[0]
        outer, factor, out, back = 0, 1.0, 0.0, 0.0
        for r in range(1, kinds):
            outer += away[r]
            factor *= own[r, away[r]]
            out += leave[r, away[r]]
            back += think[r] * away[r]
        begin, end = outer, outer + size[0]
        shares, roots, jointly = share[begin:end], root[begin:end], joint[begin:end]
        mine, leaving, vector = own[0], leave[0], now[pad + base : pad + base + size[0]]
        main = diagonal[base : base + size[0]]
        weight = factor * rates[k]
        for a in range(size[0]):
            vector[a] = weight * mine[a] * jointly[a] * shares[a]
        for a in range(size[0]):
            square += vector[a] * vector[a]
        gone = rates[k] + out
        for a in range(size[0]):
            main[a] = -((gone + leaving[a]) * shares[a] + back + think[0] * a)
        first, pairs = couple[0, pad + base : pad + base + size[0]], pair[0]
        for a in range(size[0]):
            first[a] = pairs[a] * roots[a]
        for r in range(1, kinds):
            beside, value = couple[r, pad + base : pad + base + size[0]], pair[r, away[r]]
            for a in range(size[0]):
                beside[a] = value * roots[a]
        _next(away, size)
    alpha = np.zeros(most)
    beta = np.zeros(most)
    ends = np.zeros(most)
    length = math.sqrt(square)
    slowest = rates[k] * share[0]
    here = now[pad : pad + cells]
    for s in range(cells):
        here[s] /= length
    for i in range(len(times)):
        density[i] = 0.0
    last, check = 0.0, max(2, min(guess, most))
    for j in range(most):
        here, past, new = now[pad : pad + cells], before[pad : pad + cells], after[pad : pad + cells]
        for s in range(cells):
            new[s] = diagonal[s] * here[s] - last * past[s]
        for r in range(kinds):
            if size[r] > 1:
                low, high = pad - stride[r], pad + stride[r]
                up, right = couple[r, pad : pad + cells], now[high : high + cells]
                down, left = couple[r, low : low + cells], now[low : low + cells]
                for s in range(cells):
                    new[s] += up[s] * right[s] + down[s] * left[s]
        inner, square = 0.0, 0.0
        for s in range(cells):
            inner += new[s] * here[s]
        for s in range(cells):
            new[s] -= inner * here[s]
            square += new[s] * new[s]
        work += cells
        last = math.sqrt(square)
        whole = j + 1 == cells or last <= SMALLEST * largest
        alpha[j], beta[j], ends[j] = inner, 0.0 if whole else last, here[0]
        final = whole or (fixed and j + 1 == most)
        if final or (not fixed and j + 1 >= check):
            if _accepted(alpha, beta, ends, j + 1, length, slowest, times, density) or final:
                return j + 1, work
            check += FEWER
        inverse = 1.0 / last
        for s in range(cells):
            new[s] *= inverse
        before, now, after = now, after, before
    return 0, work
