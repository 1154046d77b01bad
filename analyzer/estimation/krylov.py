"""When does a request complete if threads come back so fast that its chain is stiff? By Lanczos' method.

In a pool that is full all the time, whoever leaves is replaced at once: rates of return exceed those of
service by orders of magnitude, and uniformisation takes a step per return. But most of these steps change
nothing that matters, for the chain is in equilibrium but for what is slow. Two facts make use of that:

- Requests in processor sharing that come back from a finite source are a reversible chain (up and down
  rates around any square of states have equal products), and completion of the sampled request only adds to
  the diagonal. So with W the diagonal matrix of the roots of its stationary weights, S = W T W^-1 is
  symmetric, and the density e' exp(T x) t is e' exp(S x) W t, where e is the initial state, of weight 1.
- The rate of completion t hardly differs between states that are near each other. So a few products with S,
  from W t on, span what exp(S x) W t consists of (Lanczos' method), and the eigenvalues of a tridiagonal
  matrix as small as that give the density at all times.

The chain starts where nobody is away, and never has more away (in distribution) than in equilibrium; states
that have no weight there are left out.

Sources: Gallopoulos and Saad, "Efficient solution of parabolic equations by Krylov approximation methods",
SIAM J. Sci. Stat. Comput. 1992 (projection); Saad, "Analysis of some Krylov subspace approximations to the
matrix exponential operator", SIAM J. Numer. Anal. 1992 (how fast it converges);
Dubrulle, "A short note on the implicit QL algorithm for symmetric tridiagonal matrices", Numer. Math. 1970.
"""

from __future__ import annotations

import math

import numpy as np

from analyzer.estimation.compiling import compiled
from analyzer.estimation.samples import FloatArray, IntArray

__all__ = ["MOST_DIMENSIONS", "projected_densities"]

MOST_DIMENSIONS = 45
"""Dimensions at most: a chain that needs more is not stiff, or its times are very long."""

MOST_STATES = 100_000
"""States at most: arrays are that long."""

TOLERANCE = 3e-8
"""Relative change of a density with more dimensions at which they are enough: derivatives of its logarithm
are differences over steps of 1e-4, and average over the samples."""

HEAVIEST = 1e3
"""Largest root of the stationary weight of all states, that of the initial one being 1: it multiplies what
rounding does. Beyond it so many are away that projection takes as long as uniformisation."""

NOTHING = 1e-15
"""Share of the stationary weight that may be left out."""

SMALLEST = 1e-13
"""A vector this much shorter than its matrix is long is 0: all dimensions there are have been found."""


@compiled
def _diagonalised(d: FloatArray, e: FloatArray, rows: FloatArray) -> bool:
    """Make d the eigenvalues of a symmetric tridiagonal matrix, and rows (K, M) times its eigenvectors.

    Args:
        d: Diagonal; shape (M,).
        e: Next to it; shape (M,), the last one is not used.
        rows: Multiplied from the right by the matrix of eigenvectors.
    """
    size = len(d)
    e[size - 1] = 0.0
    for low in range(size):
        for _ in range(60):
            high = low
            while high < size - 1 and abs(e[high]) > 2.3e-16 * (abs(d[high]) + abs(d[high + 1])):
                high += 1
            if high == low:
                break
            # Wilkinson's shift, and one implicit QL step from the bottom of the block to its top.
            half = (d[low + 1] - d[low]) / (2.0 * e[low])
            root = math.sqrt(half * half + 1.0)
            g = d[high] - d[low] + e[low] / (half + (root if half >= 0 else -root))
            s, c, p = 1.0, 1.0, 0.0
            split = False
            for i in range(high - 1, low - 1, -1):
                f, b = s * e[i], c * e[i]
                root = math.sqrt(f * f + g * g)
                e[i + 1] = root
                if root == 0.0:
                    d[i + 1] -= p
                    e[high] = 0.0
                    split = True
                    break
                s, c = f / root, g / root
                g = d[i + 1] - p
                root = (d[i] - g) * s + 2.0 * c * b
                p = s * root
                d[i + 1] = g + p
                g = c * root - b
                for k in range(len(rows)):
                    f = rows[k, i + 1]
                    rows[k, i + 1] = s * rows[k, i] + c * f
                    rows[k, i] = c * rows[k, i] - s * f
            if not split:
                d[low] -= p
                e[low] = g
                e[high] = 0.0
        else:
            return False
    return True


@compiled
def _accepted(
    alpha: FloatArray,
    beta: FloatArray,
    ends: FloatArray,
    size: int,
    length: float,
    times: FloatArray,
    density: FloatArray,
) -> bool:
    """Write the densities that so many dimensions give; tell whether those of fewer were the same.

    Args:
        alpha: Diagonal of the matrix of Lanczos' method.
        beta: Next to it.
        ends: What its vectors have in the initial state.
        size: How many dimensions there are.
        length: Of the first vector before it was normalised.
        times: Ascending; shape (I,).
        density: Of fewer dimensions; written; shape (I,).
    """
    # Loops rather than expressions of arrays: they take a fraction of the time to compile.
    d, e = np.empty(size), np.empty(size)
    rows = np.zeros((2, size))
    rows[0, 0] = 1.0
    for j in range(size):
        d[j], e[j], rows[1, j] = alpha[j], beta[j], ends[j]
    if not _diagonalised(d, e, rows):
        return False
    close = True
    for i in range(len(times)):
        found = 0.0
        for j in range(size):
            found += rows[0, j] * rows[1, j] * math.exp(d[j] * times[i])
        found *= length
        close = close and abs(found - density[i]) <= TOLERANCE * found
        density[i] = found
    return close


@compiled
def projected_densities(
    k: int,
    other: IntArray,
    rates: FloatArray,
    think: FloatArray,
    cores: float,
    times: FloatArray,
    guess: int,
    density: FloatArray,
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
        density: Written; shape (I,).

    Returns:
        How many dimensions it took, 0 if that many are not enough or rounding would matter; and how many
        updates of states.
    """
    kinds = len(rates)
    states = 1
    strides = np.empty(kinds, dtype=np.int64)
    inside = 1
    for r in range(kinds):
        if other[r] > 0 and not think[r] > 0.0:
            return 0, 0.0  # who never comes back: nothing is reversible
        strides[r] = states
        states *= other[r] + 1
        inside += other[r]
        if states > MOST_STATES:
            return 0, 0.0
    # Stationary weights by how many of each class are away, and of all states in which so many are.
    away = np.zeros(kinds, dtype=np.int64)
    weight = np.empty(states)
    weight[0] = 1.0
    marginal = np.zeros((kinds, inside))
    total = 0.0
    for state in range(states):
        for r in range(kinds):
            if away[r] > 0:
                share = min(1.0, cores / (inside + 1))
                down = rates[r] * (other[r] - away[r] + 1) * share
                weight[state] = weight[state - strides[r]] * down / (think[r] * away[r])
                break
        total += weight[state]
        for r in range(kinds):
            marginal[r, away[r]] += weight[state]
        for r in range(kinds):
            away[r] += 1
            inside -= 1
            if away[r] <= other[r]:
                break
            inside += away[r]
            away[r] = 0
    if not total < HEAVIEST**2:
        return 0, float(states)
    size = np.empty(kinds, dtype=np.int64)
    stride = np.empty(kinds, dtype=np.int64)
    cells = 1
    for r in range(kinds):
        away[r] = 0
        size[r] = other[r] + 1
        tail = marginal[r, size[r] - 1]
        while size[r] > 2 and tail < NOTHING * total:
            size[r] -= 1
            tail += marginal[r, size[r] - 1]
        stride[r] = cells
        cells *= size[r]
    # The symmetric matrix: its diagonal, and next to it by class.
    diagonal = np.empty(cells)
    couple = np.zeros((kinds, cells))
    now = np.empty(cells)
    before = np.zeros(cells)
    after = np.empty(cells)
    square, largest = 0.0, 0.0
    for cell in range(cells):
        inside, state = 1, 0
        for r in range(kinds):
            inside += other[r] - away[r]
            state += away[r] * strides[r]
        share = min(1.0, cores / inside)
        value = rates[k] * share
        now[cell] = math.sqrt(weight[state]) * value
        square += now[cell] ** 2
        for r in range(kinds):
            down = rates[r] * (other[r] - away[r]) * share
            value += down + think[r] * away[r]
            if away[r] + 1 < size[r]:
                couple[r, cell] = math.sqrt(down * think[r] * (away[r] + 1))
        diagonal[cell] = -value
        largest = max(largest, value)
        for r in range(kinds):
            away[r] += 1
            if away[r] < size[r]:
                break
            away[r] = 0
    alpha = np.zeros(MOST_DIMENSIONS)
    beta = np.zeros(MOST_DIMENSIONS)
    ends = np.zeros(MOST_DIMENSIONS)
    length = math.sqrt(square)
    for s in range(cells):
        now[s] /= length
    last, work = 0.0, float(states + cells)
    for i in range(len(times)):
        density[i] = 0.0
    check = max(2, min(guess, MOST_DIMENSIONS))
    for j in range(MOST_DIMENSIONS):
        for s in range(cells):
            after[s] = diagonal[s] * now[s] - last * before[s]
        for r in range(kinds):
            step = stride[r]
            for s in range(cells - step):
                after[s] += couple[r, s] * now[s + step]
            for s in range(step, cells):
                after[s] += couple[r, s - step] * now[s - step]
        inner = 0.0
        for s in range(cells):
            inner += after[s] * now[s]
        square = 0.0
        for s in range(cells):
            after[s] -= inner * now[s]
            square += after[s] * after[s]
        work += cells
        last = math.sqrt(square)
        whole = j + 1 == cells or last <= SMALLEST * largest
        alpha[j], beta[j], ends[j] = inner, 0.0 if whole else last, now[0]
        if whole or j + 1 >= check:
            if _accepted(alpha, beta, ends, j + 1, length, times, density) or whole:
                return j + 1, work
            check += max(3, check // 5)
        for s in range(cells):
            after[s] /= last
        before, now, after = now, after, before
    return 0, work
