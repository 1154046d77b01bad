"""Measurements over time of a network whose demands change: exact means with drawn errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from fitted_models import MEASURES, TRUE, loads, three_queues, true_means

from analyzer.fitting.data import Data, Series, Trial
from mup.lqn import Model

FloatArray = npt.NDArray[np.float64]


def walk(periods: int, drift: float, random: np.random.Generator) -> FloatArray:
    """Return demands that walk at random from the true ones, shape (periods, 3)."""
    steps = drift * random.standard_normal((periods, len(TRUE)))
    steps[0] = 0.0
    found: FloatArray = np.array(TRUE) * np.exp(np.cumsum(steps, axis=0))
    return found


def series(
    models: Sequence[Model], random: np.random.Generator, *, error: float = 0.03, stated: bool = False
) -> Series:
    """Return a period of each model, with 2 to 6 clients in turns."""
    trials = []
    for index, model in enumerate(models):
        (settings,) = loads([2 + index % 5])
        means = true_means(model, [settings], MEASURES)
        rows = means * (1 + error * random.standard_normal(means.shape))
        halves = 1.96 * error * means if stated else np.full_like(means, math.nan)
        trials.append(Trial(settings, rows, halves, np.ones_like(means)))
    return Series(Data(MEASURES, tuple(trials)), tuple(str(n) for n in range(1, len(models) + 1)))


def drifting(demands: FloatArray) -> list[Model]:
    """Return the network with the demands of each period."""
    return [three_queues(row) for row in demands.tolist()]
