"""FMLPS: likelihood of a response time if the other threads are a fluid; hyperexponential form.

For each sample, differential equations follow the mean number of requests in process from what was seen on
admission; all threads of the pool take part. The sampled request is a class of its own that starts as one
request in process: the rate at which it drains is the density of the response time.

Notation: j counts phases (J of them); phase j of class c_j is entered with probability a_j and left at rate
mu_j. Plain FMLPS has one phase per class, the hyperexponential form two. With s = min(1, V / sum x) the
equations are

    x_j'   = lambda_c a_j (idle threads of class c_j) - mu_j s x_j
    tag'   = -mu s tag

Over a step in which s is frozen at its middle both are linear: their exact solution keeps fast and slow
classes together stable without small steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analyzer.estimation.fit import Fit
from analyzer.estimation.likelihood import (
    LEAST_DENSITY,
    Groups,
    admission_rates,
    fitted,
    maximum,
    start_of,
    think_rates,
)
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray
from mup.native.binding import compiled
from mup.native.shapes import Floats1, Floats2, Longs1

__all__ = ["Phases", "fluid_densities", "fmlps", "fmlps_hyperexponential"]

SPREAD = math.log(30.0)
"""Rates are searched within this factor (its logarithm) of where they start."""

STEP = 0.1
"""Longest step, in mean service times of the sampled request as it is served at that moment."""


@dataclass(frozen=True)
class Phases:
    """Phases of service.

    Attributes:
        kind: Class of each phase; shape (J,).
        rate: At which it is left, 1/s; shape (J,).
        entry: Probability that a request of the class is of this phase; shape (J,).
    """

    kind: IntArray
    rate: FloatArray
    entry: FloatArray


@compiled
def _advance(
    h: float,
    share: float,
    inside: Floats1,
    after: Floats1,
    tag: float,
    tag_rate: float,
    tag_kind: int,
    kind: Longs1,
    rate: Floats1,
    entry: Floats1,
    think: Floats1,
    population: Floats1,
) -> float:
    """Write the phases' requests after a step of frozen share; return what remains of the sampled request."""
    left = tag * math.exp(-tag_rate * share * h)
    for j in range(len(kind)):
        c = kind[j]
        idle = population[c] + inside[j]
        for other in range(len(kind)):
            if kind[other] == c:
                idle -= inside[other]
        if c == tag_kind:
            idle -= 0.5 * (tag + left)
        come = think[c] * entry[j]
        speed = rate[j] * share + come
        limit = come * max(0.0, idle) / speed if speed > 0 else 0.0
        after[j] = limit + (inside[j] - limit) * math.exp(-speed * h)
    return left


@compiled
def _densities(
    kind: Longs1,
    seen: Floats2,
    first: Longs1,
    times: Floats1,
    tag_kind: Longs1,
    tag_rate: float,
    phase_kind: Longs1,
    rate: Floats1,
    entry: Floats1,
    mix: Floats1,
    think: Floats1,
    admitted: Floats1,
    threads: float,
    cores: float,
    density: Floats1,
) -> None:
    """Write the density of every response time of the groups of one class; arrays as in ``Groups``."""
    phases, kinds = len(phase_kind), len(think)
    inside = np.empty(phases)
    middle = np.empty(phases)
    population = np.empty(kinds)
    for g in range(len(kind)):
        if kind[g] != tag_kind[0]:
            continue
        k = kind[g]
        total = 0.0
        for r in range(kinds):
            total += seen[g, r]
        for r in range(kinds):
            population[r] = seen[g, r] + max(0.0, threads - total) * admitted[r]
        for j in range(phases):
            inside[j] = mix[j] * (seen[g, phase_kind[j]] - (1.0 if phase_kind[j] == k else 0.0))
        tag, now, i = 1.0, 0.0, first[g]
        while i < first[g + 1]:
            busy = tag
            for j in range(phases):
                busy += inside[j]
            share = min(1.0, cores / busy)
            if now >= times[i]:
                density[i] = tag_rate * share * tag
                i += 1
                continue
            h = min(times[i] - now, STEP / (tag_rate * share))
            half = _advance(
                0.5 * h, share, inside, middle, tag, tag_rate, k, phase_kind, rate, entry, think, population
            )
            busy = half
            for j in range(phases):
                busy += middle[j]
            share = min(1.0, cores / busy)
            tag = _advance(
                h, share, inside, middle, tag, tag_rate, k, phase_kind, rate, entry, think, population
            )
            inside, middle = middle, inside
            now = times[i] if h == times[i] - now else now + h


def fluid_densities(
    groups: Groups,
    phases: Phases,
    think: FloatArray,
    admitted: FloatArray,
    threads: float,
    cores: float,
) -> FloatArray:
    """Return the density of every response time under the fluid, in the order of the samples; shape (I,).

    Requests in process on admission are in the phases in proportion to entry / rate: long ones are met more
    often. Idle threads belong to the classes in proportion to their admissions.

    Args:
        groups: The samples.
        phases: Of all classes.
        think: Rate at which an idle thread of each class comes back, 1/s; shape (R,).
        admitted: Share of each class in all admissions; shape (R,).
        threads: Of the pool.
        cores: Cores the requests share.

    Source: Perez, Casale, Pacheco-Sanchez, sections 7.1 and 8.3.1.
    """
    weight = phases.entry / phases.rate
    mix = weight / np.bincount(phases.kind, weight, minlength=len(think))[phases.kind]
    total = np.zeros(len(groups.times))
    seen = groups.seen.astype(float)
    threads = min(float(threads), 1e6)
    for j in range(len(phases.kind)):
        density = np.zeros(len(groups.times))
        _densities(
            groups.kind,
            seen,
            groups.first,
            groups.times,
            phases.kind[j : j + 1],
            float(phases.rate[j]),
            phases.kind,
            phases.rate,
            phases.entry,
            mix,
            think,
            admitted,
            threads,
            float(cores),
            density,
        )
        total += phases.entry[j] * density
    result = np.empty_like(total)
    result[groups.order] = total
    return result


def _admitted(samples: ArrivalSamples) -> FloatArray:
    rates = admission_rates(samples)
    return rates / rates.sum() if rates.sum() > 0 else np.full(len(rates), 1 / len(rates))


def fmlps(samples: ArrivalSamples, cores: float, threads: float) -> Fit:
    """Estimate demands by maximum likelihood under a fluid (method FMLPS).

    For pools of several tens of threads and more; small ones are no fluid.

    Args:
        samples: I samples of R classes.
        cores: Cores the requests share.
        threads: Of the pool.

    Raises:
        ValueError: All response times are 0.

    Source: Perez, Casale, Pacheco-Sanchez, section 7.
    """
    groups = Groups(samples)
    think, admitted = think_rates(samples, threads), _admitted(samples)
    kinds = len(samples.classes)
    ones = np.ones(kinds)

    def log_density(parameters: FloatArray) -> FloatArray:
        phases = Phases(np.arange(kinds), np.exp(parameters), ones)
        density = fluid_densities(groups, phases, think, admitted, threads, cores)
        return np.log(np.maximum(density, LEAST_DENSITY))

    start = start_of(samples, cores)
    best = maximum(log_density, start, start - SPREAD, start + SPREAD)
    observed = samples.counts > 0
    return fitted(log_density, best, lambda p: np.where(observed, np.exp(-p), np.nan))


def fmlps_hyperexponential(samples: ArrivalSamples, cores: float, threads: float) -> Fit:
    """Estimate demands by FMLPS with two phases per class, for demands that vary more than exponential ones.

    Parameters per class are the logarithms of both rates and the log odds of the first phase.

    Arguments and errors as for ``fmlps``.

    Source: Perez, Casale, Pacheco-Sanchez, section 8.3.1.
    """
    groups = Groups(samples)
    think, admitted = think_rates(samples, threads), _admitted(samples)
    kinds = len(samples.classes)
    phase_kind = np.repeat(np.arange(kinds), 2)

    def phases(parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates and entry probabilities, shape (..., R, 2), of parameters (..., 3 R)."""
        rows = parameters.reshape(*parameters.shape[:-1], kinds, 3)
        odds = 1 / (1 + np.exp(-rows[..., 2]))
        return np.exp(rows[..., :2]), np.stack([odds, 1 - odds], axis=-1)

    def log_density(parameters: FloatArray) -> FloatArray:
        rate, entry = phases(parameters)
        both = Phases(phase_kind, rate.reshape(-1), entry.reshape(-1))
        density = fluid_densities(groups, both, think, admitted, threads, cores)
        return np.log(np.maximum(density, LEAST_DENSITY))

    observed = samples.counts > 0

    def to_demand(parameters: FloatArray) -> FloatArray:
        rate, entry = phases(parameters)
        return np.where(observed, (entry / rate).sum(axis=-1), np.nan)

    # Balanced means at a squared coefficient of variation of 3: half of the work is in either phase.
    odds = 0.5 * (1 + math.sqrt(0.5))
    apart = np.array([math.log(2 * odds), math.log(2 * (1 - odds)), math.log(odds / (1 - odds))])
    base = np.repeat(start_of(samples, cores), 3) * np.tile([1.0, 1.0, 0.0], kinds)
    start = base + np.tile(apart, kinds)
    room = np.tile([SPREAD, SPREAD, 6.0], kinds)
    best = maximum(log_density, start, start - room, start + room)
    return fitted(log_density, best, to_demand)
