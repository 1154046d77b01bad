"""How likely is a response time if the requests seen on admission come and go? MLPS and MINPS.

For each sample, a chain follows how many of the other requests seen on admission are in process; it ends when
the sampled request completes. The density of its time is that of a phase-type distribution. The vector
exp(T x) t is computed by uniformisation: a Poisson mixture of powers of one stochastic matrix applied to t.
The powers are shared by all samples of a group, and each sample mixes them with its own weights. Where that
takes many powers, as in a pool that is always full, the chain is projected instead (``krylov``).
"""

from __future__ import annotations

import math

import numpy as np

from analyzer.estimation.compiling import compiled
from analyzer.estimation.fit import Fit
from analyzer.estimation.krylov import projected_densities
from analyzer.estimation.likelihood import LEAST_DENSITY, Groups, fitted, maximum, start_of, think_rates
from analyzer.estimation.regression import rps
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray

__all__ = ["MOST_WORK", "chain_densities", "minps", "mlps"]

MOST_WORK = 3e8
"""State updates one evaluation of the likelihood may need, some seconds per estimate."""

CHEAP = 2e4
"""State updates per group up to which uniformisation is about as quick as projection."""

FIRST_GUESS = 6
"""Dimensions of a projection that are tried first, and least."""

SPREAD = math.log(30.0)
"""Rates are searched within this factor (its logarithm) of where they start."""


@compiled
def _uniformised(
    k: int,
    other: IntArray,
    rates: FloatArray,
    think: FloatArray,
    cores: float,
    times: FloatArray,
    most: float,
    density: FloatArray,
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
    for j in range(steps):
        value[j] = here[states - 1]
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
        width = 8.0 * math.sqrt(mean) + 10.0
        j = max(0, int(mean - width))
        weight = math.exp(j * math.log(mean) - mean - math.lgamma(j + 1.0)) if mean > 0 else 1.0
        total = 0.0
        while j < steps and j <= mean + width:
            total += weight * value[j]
            j += 1
            weight *= mean / j
        density[i] = total
    return work


@compiled
def _densities(
    kind: IntArray,
    seen: IntArray,
    first: IntArray,
    times: FloatArray,
    rates: FloatArray,
    think: FloatArray,
    cores: float,
    cheap: float,
    most: float,
    density: FloatArray,
) -> float:
    """Write the density of every response time; arrays as in ``Groups``, rates and think of shape (R,).

    Returns how many states were updated, or more than ``most`` if that many do not do.
    """
    other = np.empty(len(rates), dtype=np.int64)
    work, guess = 0.0, FIRST_GUESS
    for g in range(len(kind)):
        k = kind[g]
        for r in range(len(rates)):
            other[r] = seen[g, r] - (1 if r == k else 0)
        own, found = times[first[g] : first[g + 1]], density[first[g] : first[g + 1]]
        needed = _uniformised(k, other, rates, think, cores, own, cheap, found)
        if needed > cheap:
            dimensions, effort = projected_densities(k, other, rates, think, cores, own, guess, found)
            if dimensions > 0:
                # The next group saw about the same.
                needed, guess = effort, max(dimensions - 4, FIRST_GUESS)
            else:
                needed = effort + _uniformised(k, other, rates, think, cores, own, most - work, found)
        work += needed
        if work > most:
            break
    return work


def chain_densities(
    groups: Groups,
    rates: FloatArray,
    think: FloatArray,
    cores: float,
    *,
    cheap: float = CHEAP,
    most: float = math.inf,
) -> FloatArray:
    """Return the density of every response time under the chain, in the order of the samples; shape (I,).

    Args:
        groups: The samples.
        rates: Service rate of each class, 1/s; shape (R,).
        think: Rate at which a request that has left comes back, per class, 1/s; shape (R,).
        cores: Cores the requests share.
        cheap: State updates per group up to which uniformisation is preferred; infinite = always, 0 = never.
        most: State updates of all groups.

    Raises:
        ValueError: It would take more.

    Source: Perez, Casale, Pacheco-Sanchez, sections 6.3 and 6.4.
    """
    sorted_ = np.empty(len(groups.times))
    arrays = groups.kind, groups.seen, groups.first, groups.times, rates, think
    if (work := _densities(*arrays, float(cores), float(cheap), float(most), sorted_)) > most:
        raise ValueError(
            f"the Markov chains of these samples need {work:.0e} steps per evaluation: too many requests "
            "were seen, or the classes differ too much in speed; ldps and fmlps do not mind"
        )
    result = np.empty_like(sorted_)
    result[groups.order] = sorted_
    return result


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
    groups = Groups(samples)
    think = think_rates(samples, threads)
    start = start_of(samples, cores)
    chain_densities(groups, np.exp(start), think, cores, most=MOST_WORK)

    def log_density(parameters: FloatArray) -> FloatArray:
        return np.log(np.maximum(chain_densities(groups, np.exp(parameters), think, cores), LEAST_DENSITY))

    best = maximum(log_density, start, start - SPREAD, start + SPREAD)
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
