"""Traces in a wrong unit: counts that are tenfold, columns in thousandths, milliseconds for seconds.

Each is told by what cannot be otherwise. Means of n runs are multiples of 1/n and of nothing larger; clients
neither appear nor vanish; and where a model states some of its times, the others have to be of a size that
makes queues move as fast as they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.learning.lqn_fit import FluidFit

__all__ = ["check_seconds", "odd_column", "odd_traces", "too_coarse"]

FloatArray = npt.NDArray[np.float64]

COARSE: Final = 5
"""Times what one client in one run makes; a smaller factor may be a wrong number of runs."""
DIFFERENT: Final = 20
"""Different counts at least, of which one would be no multiple by chance."""
FACTORS: Final = (10.0, 100.0, 1000.0)
STEP: Final = 300.0
"""Populations that differ by so much are not of one system: a thousandfold, less what loads differ by."""
FAR: Final = 10.0
"""Worth a look: so many times the longest time that the model states from sample to sample, or so many
times the length of a trace in it."""
FEW_TRACES: Final = 4
FEW_SAMPLES: Final = 11
BETTER: Final = 0.1
"""Sum of squares in the other unit, relative to that in the one stated, of which one is certain."""


def too_coarse(x: FloatArray, runs: FloatArray | None) -> str | None:
    """Return what to say of queue lengths that are all multiples of too large a number.

    Args:
        x: Shape (R, H, M).
        runs: Averaged in each trace, shape (R,); None if that is not known.
    """
    # Whole numbers are also means of runs that are all alike, as services without variation make them.
    alike = float(np.abs(x - np.round(x)).max()) < 1e-9
    many = np.ones(len(x)) if runs is None or alike else runs
    counts = x * many[:, None, None]
    whole = np.round(counts)
    if np.abs(counts - whole).max() > 1e-6 * many.max() or whole.max() > 2**52:
        return None
    values = np.unique(whole.astype(np.int64))
    step = int(np.gcd.reduce(values))
    if step < COARSE or len(values) < DIFFERENT:
        return None
    what = "" if runs is None else " divided by the number of runs"
    return (
        f"x: every queue length is a multiple of {step}{what}, and single clients make multiples of 1: are"
        f" they {step} times what they should be" + ("?" if runs is None else ", or are there fewer runs?")
    )


def odd_column(x: FloatArray, names: Sequence[str], conserved: float) -> str | None:
    """Return which column is in another unit, if its clients vanish otherwise and would not in that one.

    Args:
        x: Queue lengths; shape (R, H, M).
        names: Of the columns; M.
        conserved: Part of the clients of a trace that may appear or vanish.
    """
    total = x.sum(axis=2)
    for column, name in enumerate(names):
        for factor in (*FACTORS, *(1 / f for f in FACTORS)):
            other = total + (factor - 1) * x[:, :, column]
            moved = np.abs(other - other[:, :1]).max(axis=1)
            if (moved <= conserved * np.maximum(other[:, 0], 1.0)).all() and other[:, 0].max() > 0:
                return f"column {name!r} times {factor:g} makes the sum the same throughout: another unit?"
    return None


def odd_traces(x: FloatArray) -> str | None:
    """Return which traces have a thousand times the clients of the others, or a thousandth.

    Args:
        x: Queue lengths; shape (R, H, M).
    """
    clients = x[:, 0].sum(axis=1)
    usual = float(np.median(clients))
    off = np.flatnonzero((clients > STEP * usual) | (clients * STEP < usual))
    if usual <= 0 or not len(off):
        return None
    listed = ", ".join(f"{r} ({clients[r]:g})" for r in off[:3]) + ("" if len(off) <= 3 else " and more")
    return f"x: clients in trace {listed}; the others have about {usual:g}: is their unit another?"


def check_seconds(fit: FluidFit) -> None:
    """Check that samples are so far apart as they are said to be, by the times that the model states.

    Where those are far from the time between samples, or from the length of a trace, a few samples are also
    fitted as if they were a thousand times closer together, or farther apart.

    Raises:
        UsageError: Milliseconds explain the traces, seconds do not; or the other way round.
    """
    known_times = np.delete(fit.lqn.means, fit.learned)
    longest = float(known_times.max(initial=0.0))
    length = fit.dt * (fit.data.shape[1] - 1)
    if longest > 0 and longest * FAR < fit.dt:
        factor, says = 1e-3, "milliseconds taken for seconds"
    elif longest > FAR * length:
        factor, says = 1e3, "seconds taken for milliseconds"
    else:
        return
    few = fit.few(FEW_TRACES, FEW_SAMPLES)
    logs = np.full(len(fit.learned), np.log(few.dt))
    other = few.at(few.dt * factor)
    there = other.run(logs + np.log(factor))
    # The costly one comes last, and only if the other one explains what moves.
    moved = float((((few.data - few.data[:, :1]) * few.weights) ** 2).sum()) / 2
    if there.cost < BETTER * moved and there.cost < BETTER * few.run(logs).cost:
        raise UsageError(
            f"dt: {fit.dt:g} s from sample to sample, but the longest time that the model states is"
            f" {longest:g} s, and samples every {fit.dt * factor:g} s explain the traces far better:"
            f" {says}?",
            hint="write dt in seconds",
        )
