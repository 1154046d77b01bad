"""Control variates: sums of known mean that explain part of the noise of a run.

A *control variate* is a sum per batch whose true mean is 0 and that varies with what is to be estimated:
think time drawn beyond its mean, service given beyond its mean demand. The batches get *weights* under which
every chosen control has its mean of 0 exactly; a figure is the ratio of two weighted sums. Those are the
weights of the regression estimator: the ratio moves by its least-squares coefficients times the means of the
controls, and its interval comes from the residuals of that regression, with a degree of freedom less per
control and the factor for controls that were far from their means (Lavenberg and Welch, "A perspective on the
use of control variables to increase the efficiency of Monte Carlo simulations", 1981). Every batch is
corrected by the coefficients of all others, so that coefficients and means are independent: else what bends
with a control would be biased (Avramidis and Wilson, "A splitting scheme for control variates", 1993). One
set of weights for all figures of a run keeps every linear law between them, Little's and that of utilization.

Controls are chosen forwards, by their effect. The more there are to choose from, the more likely is one that
only seems to have an effect, so what a control must explain grows with their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mup.statistics.batches import ratio_of_sums
from mup.statistics.series import widening
from mup.statistics.student import near_t_quantile, t_quantile

__all__ = ["UNCONTROLLED", "Controls", "choose_controls"]

FloatArray = npt.NDArray[np.float64]

CHANCE: Final = 0.05
"""Probability that any control without an effect is chosen, at every step."""
BATCHES_PER_CONTROL: Final = 8
FAR: Final = 6.0
"""Standard errors from 0 beyond which a sum does not have the mean that it should have. To leave out one that
has it would be bad: it is needed most where it is far from its mean."""
CONSTANT: Final = 1e-9
"""Relative variation below which a series does not vary but for rounding."""
MOST_LEVERAGE: Final = 0.8
"""Share of a batch in its own correction beyond which it alone would decide about a control."""
COLLINEAR: Final = 1e-6
"""Share of the variation of a control that those chosen before must leave unexplained."""


@dataclass(frozen=True, slots=True)
class Controls:
    """The controls that figures are estimated with.

    Attributes:
        chosen: Their indices among the candidates, those of most effect first.
        basis: Their deviations from their averages over the batches, made orthonormal: a column each.
        averages: What the sums in the columns of ``basis`` would be on average over the batches; truly 0.
    """

    chosen: tuple[int, ...] = ()
    basis: FloatArray | None = None
    averages: FloatArray | None = None

    def weights(self, batches: int) -> FloatArray:
        """Return the weights of the batches: they sum to 1, and the weighted controls to 0."""
        weights = np.full(batches, 1 / batches)
        if self.basis is not None and self.averages is not None:
            weights -= self.basis @ self.averages
            # The difference it makes to a batch that it has no part in its own coefficients.
            own = (self.basis**2).sum(axis=1)
            weights += self.residuals((own + self.basis @ self.averages) / (1 - 1 / batches - own)) / batches
        return weights

    def residuals(self, rest: FloatArray) -> FloatArray:
        """Return what the controls leave unexplained of the deviations of a ratio's batches."""
        if self.basis is None:
            return rest
        centred = rest - rest.mean()
        left: FloatArray = centred - self.basis @ (self.basis.T @ centred)
        return left

    def ratio_of_sums(self, numerator: FloatArray, denominator: FloatArray) -> tuple[float, float]:
        """Return a ratio and its 95 % half-width; the denominators must not sum to 0.

        Where controls are far from their means a batch may have a negative weight. Then what happens in few
        batches alone could become less than nothing; that is estimated without controls.
        """
        count = len(numerator)
        weights = self.weights(count)
        total, value = float(weights @ denominator), float(weights @ numerator)
        if self.basis is None or total <= 0 or value < 0 <= numerator.min():
            return ratio_of_sums(numerator, denominator)
        mean = value / total
        rest = self.residuals(numerator - mean * denominator)
        freedom = count - 1 - len(self.chosen)
        variance = float(rest @ rest) / freedom * widening(rest) * float(weights @ weights)
        return mean, t_quantile(freedom) * math.sqrt(variance) / total


UNCONTROLLED: Final = Controls()
"""Every batch counts alike."""


def choose_controls(targets: FloatArray, candidates: FloatArray) -> Controls:
    """Choose controls by how much of the noise of some ratios they explain.

    What is constant but for one batch, explained by those chosen before, or evidently not of mean 0 is left
    out.

    Args:
        targets: Residuals of the ratios in question, shape (batches, ratios).
        candidates: Sums of mean 0, shape (batches, candidates).
    """
    batches = len(targets)
    found = np.flatnonzero(np.isfinite(candidates).all(axis=0))
    means = candidates[:, found].mean(axis=0)
    left = candidates[:, found] - means
    sizes = np.sqrt((left**2).sum(axis=0))
    varies = sizes > CONSTANT * math.sqrt(batches) * np.abs(candidates[:, found]).max(axis=0, initial=0.0)
    errors = sizes / math.sqrt(batches * (batches - 1))
    true = np.abs(means) <= FAR * errors * np.sqrt([widening(column) for column in left.T])
    kept = varies & true
    found, means, left = found[kept], means[kept] / sizes[kept], left[:, kept] / sizes[kept]
    wanted = targets - targets.mean(axis=0)
    basis: list[FloatArray] = []
    chosen: list[int] = []
    offsets: list[float] = []
    own = np.zeros(batches)
    while len(found) and len(chosen) < batches // BATCHES_PER_CONTROL:
        powers = (left**2).sum(axis=0)
        fresh = powers > COLLINEAR
        shares = left**2 / np.where(fresh, powers, 1.0) + own[:, None]
        fresh &= shares.max(axis=0) <= MOST_LEVERAGE
        noise = (wanted**2).sum(axis=0)
        noisy = noise > 0
        if not fresh.any() or not noisy.any():
            break
        explained = np.zeros((len(found), int(noisy.sum())))
        explained[fresh] = (left[:, fresh].T @ wanted[:, noisy]) ** 2 / np.outer(powers[fresh], noise[noisy])
        explained = np.minimum(explained, 1 - CONSTANT)
        best = int(np.argmax(-np.log1p(-explained).sum(axis=1)))
        freedom = batches - 2 - len(chosen)
        bound = near_t_quantile(freedom, 1 - CHANCE / int(fresh.sum())) ** 2
        share = float(explained[best].max())
        if share * freedom <= bound * (1 - share):
            break
        size = math.sqrt(float(powers[best]))
        column, offset = left[:, best] / size, float(means[best]) / size
        chosen.append(int(found[best]))
        basis.append(column)
        own += column**2
        offsets.append(offset)
        parts = column @ left
        left = left - np.outer(column, parts)
        means = means - offset * parts
        wanted = wanted - np.outer(column, column @ wanted)
    if not chosen:
        return UNCONTROLLED
    return Controls(tuple(chosen), np.column_stack(basis), np.array(offsets))
