"""MLPS and MINPS: likelihood of a response time if the requests seen on admission come and go.

For each sample, a chain follows how many of the other requests seen on admission are in process; it ends when
the sampled request completes. The density of its time is that of a phase-type distribution. The vector
exp(T x) t is computed by uniformisation: a Poisson mixture of powers of one stochastic matrix applied to t.
The powers are shared by all samples of a group, and each sample mixes them with its own weights. Where that
takes many powers, as in a pool that is nearly always full, the chain is projected instead (``krylov``).
"""

from __future__ import annotations

import math

import numpy as np

from analyzer.estimation.fit import Fit
from analyzer.estimation.krylov import FEWER, MOST_DIMENSIONS, projected_densities
from analyzer.estimation.likelihood import LEAST_DENSITY, Groups, climbed, fitted, start_of, think_rates
from analyzer.estimation.regression import rps
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray
from mup.native.binding import compiled
from mup.native.shapes import Floats1, Longs1, Longs2

__all__ = ["MOST_WORK", "Chains", "minps", "mlps"]

MOST_WORK = 3e8
"""State updates one evaluation of the likelihood may need, some seconds per estimate."""

CHEAP = 1.5e3
"""State updates per group up to which uniformisation is as quick as projection."""

NEGLIGIBLE = 1e-12
"""Share of a density that may be missing from it."""

FIRST_GUESS = 6
"""Dimensions of a projection that are tried first, and least."""

UNKNOWN = -1
"""Stands for dimensions that were not found out yet."""

PLANS = 3
"""So often they may be found out, should the search have led to rates that need more."""

FURTHER = 6
"""Dimensions more that must not change anything where a search has ended."""

SAME = 1e-4
"""Logarithms of densities that differ by less are the same: a sample tells about 1."""

SPREAD = math.log(30.0)
"""Rates are searched within this factor (its logarithm) of where they start."""

FEW = 30
"""Samples with which a search begins, or somewhat more."""

CLOSE = math.log(4.0)
"""How far that leads at most, as ``SPREAD``: what fits a few samples may be far from everything."""


@compiled
def _uniformised(
    k: int,
    other: Longs1,
    rates: Floats1,
    think: Floats1,
    cores: float,
    times: Floats1,
    most: float,
    density: Floats1,
) -> float:
    """Write the density of the response times of one group, if it takes at most so many updates of states.

    Arguments as of ``krylov.projected_densities``. Returns how many updates it takes; more than ``most`` are
    not made.
    """
    kinds = len(rates)
    at = np.zeros(kinds, dtype=np.int64)
    stride = np.empty(kinds, dtype=np.int64)
    states = 1
    for r in range(kinds):
        stride[r] = states
        states *= other[r] + 1
    if states > most:
        return float(states)
    # Rates out of every state, from the one in which all others are away to that in which all are here.
    down = np.zeros((kinds, states))
    up = np.zeros((kinds, states))
    stay = np.zeros(states)
    here = np.empty(states)
    there = np.empty(states)
    fastest = 0.0
    for s in range(states):
        inside = 1
        for r in range(kinds):
            inside += at[r]
        share = min(1.0, cores / inside)
        here[s] = rates[k] * share
        stay[s] = here[s]
        for r in range(kinds):
            down[r, s] = rates[r] * at[r] * share
            up[r, s] = think[r] * (other[r] - at[r])
            stay[s] += down[r, s] + up[r, s]
        fastest = max(fastest, stay[s])
        for r in range(kinds):
            at[r] += 1
            if at[r] <= other[r]:
                break
            at[r] = 0
    longest = fastest * times[-1]
    steps = int(longest + 8.0 * math.sqrt(longest) + 20.0)
    work = float(states) * steps
    if work > most:
        return work
    for s in range(states):
        stay[s] = 1.0 - stay[s] / fastest
        for r in range(kinds):
            down[r, s] /= fastest
            up[r, s] /= fastest
    # value[j]: in the initial state, rate of completion after j steps of the uniformised chain.
    value = np.empty(steps)
    top = 0.0
    for j in range(steps):
        value[j] = here[states - 1]
        top = max(top, value[j])
        for s in range(states):
            there[s] = stay[s] * here[s]
        for r in range(kinds):
            for s in range(stride[r], states):
                there[s] += down[r, s] * here[s - stride[r]]
            for s in range(states - stride[r]):
                there[s] += up[r, s] * here[s + stride[r]]
        here, there = there, here
    for i in range(len(times)):
        mean = fastest * times[i]
        mode = int(mean)
        heaviest = math.exp(mode * math.log(mean) - mean - math.lgamma(mode + 1.0)) if mean > 0 else 1.0
        total, weight, j = 0.0, heaviest, mode
        while j < steps and j <= mean + 8.0 * math.sqrt(mean) + 10.0:
            total += weight * value[j]
            j += 1
            weight *= mean / j
        # In the far tail of a density, hardly any step was taken: until those left cannot matter.
        weight, j = heaviest * mode / mean if mode > 0 else 0.0, mode - 1
        while j >= 0 and weight * top * (j + 1) > NEGLIGIBLE * total:
            total += weight * value[j]
            weight *= j / mean
            j -= 1
        density[i] = total
    return work


@compiled
def _densities(
    kind: Longs1,
    seen: Longs2,
    first: Longs1,
    times: Floats1,
    rates: Floats1,
    think: Floats1,
    cores: float,
    cheap: float,
    most: float,
    more: int,
    dimensions: Longs1,
    density: Floats1,
) -> float:
    """Write the density of every response time; arrays as in ``Groups``, rates and think of shape (R,).

    Groups of up to ``cheap`` updates of states are uniformised. ``dimensions`` has those of each group, 0 if
    it is uniformised, and ``more`` are added; what is ``UNKNOWN`` is found out, and written; shape (G,).

    Returns how many states were updated, or more than ``most`` if that many do not do.
    """
    other = np.empty(len(rates), dtype=np.int64)
    work, guess = 0.0, FIRST_GUESS
    for g in range(len(kind)):
        k = kind[g]
        for r in range(len(rates)):
            other[r] = seen[g, r] - (1 if r == k else 0)
        own, found = times[first[g] : first[g + 1]], density[first[g] : first[g + 1]]
        planned = dimensions[g]
        size = planned + more if planned > 0 else MOST_DIMENSIONS
        needed = 0.0
        # Uniformised if that is cheap, else projected, else uniformised. Compiled code has every function
        # once per place it is called from, and that takes long.
        for attempt in range(3):
            if attempt == 1:
                if planned == 0:
                    continue
                taken, effort = projected_densities(
                    k, other, rates, think, cores, own, guess, size, planned > 0, found
                )
                needed += effort
                if planned == UNKNOWN:
                    dimensions[g] = taken
                if taken > 0:
                    # The next group saw about the same. Two looks are the least, and fewer may do.
                    guess = max(taken - 2 * FEWER, FIRST_GUESS)
                    break
            elif attempt == 2 or planned == UNKNOWN:
                limit = cheap if attempt == 0 else most - work
                effort = _uniformised(k, other, rates, think, cores, own, limit, found)
                if attempt == 2:
                    needed += effort
                elif effort <= cheap:
                    needed, dimensions[g] = effort, 0
                    break
        work += needed
        if work > most:
            break
    return work


class Chains:
    """The chains of all samples, and how each of them is computed.

    How many dimensions a projection takes is found out once, for some rates. Then they stay, lest densities
    jump where a search takes their derivatives by differences.

    Attributes:
        groups: The samples.
        think: Rate at which a request that has left comes back, per class, 1/s; shape (R,).
        cores: Cores the requests share.
        cheap: State updates per group up to which uniformisation is preferred; infinite = always, 0 = never.
    """

    def __init__(self, groups: Groups, think: FloatArray, cores: float, cheap: float) -> None:
        self.groups, self.think, self.cores, self.cheap = groups, think, float(cores), float(cheap)
        self._dimensions: IntArray = np.full(len(groups.kind), UNKNOWN, dtype=np.int64)

    def plan(self, rates: FloatArray, *, most: float = math.inf) -> None:
        """Find out how many dimensions each group needs at some rates; those it has already, it keeps.

        Args:
            rates: Service rate of each class, 1/s; shape (R,).
            most: State updates of all groups in one evaluation.

        Raises:
            ValueError: It would take more.
        """
        before = self._dimensions
        self._dimensions = np.full(len(before), UNKNOWN, dtype=np.int64)
        self.densities(rates, most=most)
        self._dimensions = np.where(self._dimensions > 0, np.maximum(self._dimensions, before), 0)

    def densities(self, rates: FloatArray, *, more: int = 0, most: float = math.inf) -> FloatArray:
        """Return the density of every response time, in the order of the samples; shape (I,).

        Args:
            rates: Service rate of each class, 1/s; shape (R,).
            more: Dimensions beyond those planned.
            most: State updates of all groups.

        Raises:
            ValueError: It would take more.

        Source: Perez, Casale, Pacheco-Sanchez, sections 6.3 and 6.4.
        """
        groups = self.groups
        sorted_ = np.empty(len(groups.times))
        arrays = groups.kind, groups.seen, groups.first, groups.times, rates, self.think
        limits = self.cores, self.cheap, float(most), more
        if (work := _densities(*arrays, *limits, self._dimensions, sorted_)) > most:
            raise ValueError(
                f"the Markov chains of these samples need {work:.0e} steps per evaluation: too many requests "
                "were seen, or the classes differ too much in speed; ldps and fmlps do not mind"
            )
        result = np.empty_like(sorted_)
        result[groups.order] = sorted_
        return result

    def log_densities(self, rates: FloatArray, *, more: int = 0) -> FloatArray:
        """Return the logarithms of ``densities``."""
        logarithms: FloatArray = np.log(np.maximum(self.densities(rates, more=more), LEAST_DENSITY))
        return logarithms

    def enough(self, rates: FloatArray) -> bool:
        """Tell whether the dimensions planned are enough at these rates as well."""
        moved = self.log_densities(rates, more=FURTHER) - self.log_densities(rates)
        return float(np.abs(moved).max()) <= SAME


def mlps(samples: ArrivalSamples, cores: float, threads: float) -> Fit:
    """Estimate demands by maximum likelihood under a Markov chain (method MLPS).

    Right under light load; too high under heavy load, for it knows no request that comes after admission
    but those seen then. The work grows with how far the chain gets from where it starts.

    Args:
        samples: I samples of R classes.
        cores: Cores the requests share.
        threads: Of the pool.

    Raises:
        ValueError: One evaluation would take more than ``MOST_WORK`` updates of states, or all times are 0.

    Source: Perez, Casale, Pacheco-Sanchez, section 6.
    """
    think, start = think_rates(samples, threads), start_of(samples, cores)
    best, curvature = start, None
    groups = Groups(samples)
    if (every := len(samples.kind) // FEW) > 1:
        # Under heavy load the start is far off, and a few samples show the way.
        few = Chains(Groups(samples.chosen(groups.order[::every])), think, cores, CHEAP)
        few.plan(np.exp(start), most=MOST_WORK)
        near, far = start - CLOSE, start + CLOSE
        best, curvature = climbed(lambda p: few.log_densities(np.exp(p)), start, near, far)
        curvature *= every
    chains = Chains(groups, think, cores, CHEAP)

    def log_density(parameters: FloatArray) -> FloatArray:
        return chains.log_densities(np.exp(parameters))

    for _ in range(PLANS):
        chains.plan(np.exp(best), most=MOST_WORK)
        best, curvature = climbed(log_density, best, start - SPREAD, start + SPREAD, curvature)
        if chains.enough(np.exp(best)):
            break
    observed = samples.counts > 0
    return fitted(log_density, best, lambda p: np.where(observed, np.exp(-p), np.nan))


def minps(samples: ArrivalSamples, cores: float, threads: float) -> Fit:
    """Estimate each demand as the smaller of those of RPS and MLPS (method MINPS): they err upwards.

    Arguments and errors as for ``mlps``.

    Source: Perez, Casale, Pacheco-Sanchez, section 6.7.
    """
    light, heavy = mlps(samples, cores, threads), rps(samples, cores)
    return Fit(
        np.fmin(light.demand, heavy.demand),
        lambda counts: np.fmin(light.resampled(counts), heavy.resampled(counts)),
    )
