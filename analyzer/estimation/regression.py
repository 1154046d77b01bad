"""RPS, ERPS and LDPS: response times proportional to the requests seen on admission.

All three say E[R_r] = E[D_r] * stretch, where the stretch follows from what was seen on admission, and differ
in the stretch and in how the ratio is taken. They cost microseconds.

LDPS is this project's own. With n requests in process each gets the share s(n) = min(1, V / n) of a core. If
a level n is entered by admissions as often as it is left by completions (which holds in processor sharing
whatever lets requests in, exactly for one class, and for several in product form), the rate X of admissions
that see n, X a(n), equals the rate of completions at n, p(n) n s(n) / E[D]. Sum n p(n) = X E[R] (Little),
hence

    E[R] = E[D] * sum a(n) / s(n) = E[D] * E[max(1, n / V)]

with the mean over admissions. It needs no think times, no thread pool and no distribution of demands.
"""

from __future__ import annotations

import numpy as np

from analyzer.estimation.fit import Fit
from analyzer.estimation.samples import ArrivalSamples, FloatArray

__all__ = ["erps", "ldps", "rps"]


def _by_class(samples: ArrivalSamples) -> FloatArray:
    """Return 1 where a request is of a class, shape (I, R)."""
    return np.eye(len(samples.classes))[samples.kind]


def _regression(samples: ArrivalSamples, busy: FloatArray) -> FloatArray:
    """Regress response times on seen / busy through the origin.

    Args:
        samples: The samples.
        busy: Cores that share the work, shape (I,) or broadcast to it.

    Returns:
        Demand of each class, shape (R,).
    """
    share = samples.total / busy
    with np.errstate(invalid="ignore", divide="ignore"):
        slope: FloatArray = samples.mean_per_class(samples.response_time * share)
        return slope / samples.mean_per_class(share * share)


def _resampled_regression(
    samples: ArrivalSamples, cores: float, counts: FloatArray, *, light: bool
) -> FloatArray:
    seen = samples.total.astype(float)
    mine = _by_class(samples)
    busy: FloatArray | float = cores
    if light:
        busy = np.minimum(cores, counts @ seen / counts.sum(axis=1))[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        result: FloatArray = (
            (counts @ (mine * (samples.response_time * seen)[:, None]))
            / (counts @ (mine * (seen * seen)[:, None]))
            * busy
        )
    return result


def rps(samples: ArrivalSamples, cores: float) -> Fit:
    """Estimate demands by regression on requests seen per core (method RPS).

    Right for one core, or when all cores are busy; too high otherwise.

    Args:
        samples: I samples of R classes.
        cores: Cores the requests share.

    Source: Perez, Casale, Pacheco-Sanchez, equation 3.
    """
    demand = _regression(samples, np.full(1, float(cores)))
    return Fit(demand, lambda counts: _resampled_regression(samples, cores, counts, light=False))


def erps(samples: ArrivalSamples, cores: float) -> Fit:
    """Estimate demands by regression on requests seen per busy core (method ERPS).

    The smaller of the cores and the mean of what was seen stands for the busy ones.

    Args:
        samples: I samples of R classes.
        cores: Cores the requests share.

    Source: Perez, Casale, Pacheco-Sanchez, section 5.1.
    """
    demand = _regression(samples, np.full(1, min(float(cores), float(samples.total.mean()))))
    return Fit(demand, lambda counts: _resampled_regression(samples, cores, counts, light=True))


def ldps(samples: ArrivalSamples, cores: float) -> Fit:
    """Estimate demands as mean response time over mean stretch, max(1, seen / cores) (method LDPS).

    Args:
        samples: I samples of R classes.
        cores: Cores the requests share.

    Source: the arrival theorem for a queue-dependent station (Reiser and Lavenberg, 1980); see the module.
    """
    stretch = np.maximum(1.0, samples.total / cores)
    times = samples.response_time
    mine = _by_class(samples)

    def resampled(counts: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: FloatArray = (counts @ (mine * times[:, None])) / (counts @ (mine * stretch[:, None]))
        return ratio

    return Fit(resampled(np.ones((1, len(times))))[0], resampled)
