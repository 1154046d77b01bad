"""A controlled ratio is the regression estimator, with its interval; bad controls are left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mup.statistics.batches import ratio_of_sums
from mup.statistics.controls import UNCONTROLLED, choose_controls
from mup.statistics.series import widening
from mup.statistics.student import t_quantile

BATCHES = 40
ONES = np.ones(BATCHES)


def drawn(seed: int, *, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Return batches around 5 and two sums of mean 0 that most of their variation comes from."""
    generator = np.random.default_rng(seed)
    controls = generator.normal(size=(BATCHES, 2)) * [1.0, 1e-4]
    values = 5 + controls @ [1.0, -2e4] + noise * generator.normal(size=BATCHES)
    return values, controls


def test_every_batch_is_corrected_by_the_coefficients_of_the_others() -> None:
    """The mean is that of the batches minus controls times coefficients in which the batch has no part."""
    values, candidates = drawn(1)
    controls = choose_controls((values - values.mean())[:, None], candidates)
    assert set(controls.chosen) == {0, 1}
    corrected = []
    for batch in range(BATCHES):
        others = np.arange(BATCHES) != batch
        design = np.column_stack([ONES, candidates])[others]
        slopes = np.linalg.lstsq(design, values[others], rcond=None)[0][1:]
        corrected.append(values[batch] - candidates[batch] @ slopes)
    mean, half = controls.ratio_of_sums(values, ONES)
    assert mean == pytest.approx(np.mean(corrected), rel=1e-12)
    design = np.column_stack([ONES, candidates])
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    error = math.sqrt(rest @ rest / (BATCHES - 3) * widening(rest) * np.linalg.inv(design.T @ design)[0, 0])
    assert half == pytest.approx(t_quantile(BATCHES - 3) * error, rel=0.02)


def test_what_bends_with_a_control_is_not_biased() -> None:
    """The mean of 1 + c + c^2 / 2 is 1.5, in 3000 samples of 20 batches, to a few standard errors."""
    means = []
    for seed in range(3000):
        control = np.random.default_rng(seed).normal(size=(20, 1))
        values = 1 + control[:, 0] + control[:, 0] ** 2 / 2
        controls = choose_controls((values - values.mean())[:, None], control)
        means.append(controls.ratio_of_sums(values, np.ones(20))[0])
    # The plain regression is off by 0.05, twenty standard errors.
    assert abs(np.mean(means) - 1.5) <= 4 * np.std(means) / math.sqrt(3000) + 0.005


def test_weighted_controls_have_their_means() -> None:
    """The weights sum to 1 and bring every chosen control to 0."""
    values, candidates = drawn(2)
    controls = choose_controls((values - values.mean())[:, None], candidates)
    weights = controls.weights(BATCHES)
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ candidates == pytest.approx([0.0, 0.0], abs=1e-12)


def test_what_cannot_be_a_control_is_left_out() -> None:
    """Constant, copied, unbounded and biased sums are not chosen, whatever their number; nothing is too few."""
    values, candidates = drawn(3)
    targets = (values - values.mean())[:, None]
    honest = choose_controls(targets, candidates)
    bad = np.column_stack(
        [
            np.zeros(BATCHES),
            np.full(BATCHES, 0.1),
            np.full(BATCHES, np.inf),
            np.full(BATCHES, np.nan),
            values,
            3 * candidates[:, 0],
            candidates @ [1.0, 1.0],
            ONES - 40 * (np.arange(BATCHES) == int(np.argmax(np.abs(targets)))),
        ]
    )
    found = choose_controls(targets, np.column_stack([candidates, bad]))
    assert len(found.chosen) == 2
    assert not {6, 9} & set(found.chosen)
    assert found.ratio_of_sums(values, ONES) == pytest.approx(honest.ratio_of_sums(values, ONES), rel=1e-9)
    assert choose_controls(targets, bad[:, :5]) == UNCONTROLLED
    assert choose_controls(targets, np.empty((BATCHES, 0))) == UNCONTROLLED
    assert choose_controls(np.zeros((BATCHES, 2)), candidates) == UNCONTROLLED
    assert UNCONTROLLED.ratio_of_sums(values, ONES) == ratio_of_sums(values, ONES)


def test_nothing_becomes_less_than_nothing() -> None:
    """What happens in the one batch of a negative weight alone is estimated without controls."""
    candidates = np.random.default_rng(5).normal(size=(BATCHES, 1)) + 0.8
    values = 5 + candidates[:, 0]
    controls = choose_controls((values - values.mean())[:, None], candidates)
    weights = controls.weights(BATCHES)
    assert weights.min() < 0
    rare = np.where(weights == weights.min(), 1.0, 0.0)
    assert controls.ratio_of_sums(rare, ONES) == ratio_of_sums(rare, ONES)
    assert controls.ratio_of_sums(ONES, rare) == ratio_of_sums(ONES, rare)
    assert controls.ratio_of_sums(values, ONES)[0] == pytest.approx(5.0)


def test_no_more_controls_than_the_batches_can_bear() -> None:
    """Of many that have an effect an eighth of the number of batches is used."""
    generator = np.random.default_rng(4)
    candidates = generator.normal(size=(20, 6))
    values = candidates.sum(axis=1)
    assert len(choose_controls((values - values.mean())[:, None], candidates).chosen) <= 2


def test_noise_is_seldom_taken_for_an_effect() -> None:
    """With twenty sums that explain nothing, one is chosen about as often as it may be."""
    chosen = 0
    for seed in range(400):
        generator = np.random.default_rng(seed)
        values = generator.normal(size=BATCHES)
        controls = choose_controls((values - values.mean())[:, None], generator.normal(size=(BATCHES, 20)))
        chosen += bool(controls.chosen)
    assert chosen <= 0.05 * 400 + 4 * math.sqrt(0.05 * 0.95 * 400)


@pytest.mark.slow
@pytest.mark.parametrize("idle", [0, 20])
def test_intervals_cover_with_a_choice_of_controls(idle: int) -> None:
    """Of 2000 intervals 93.8 to 96.5 % contain the mean, also where two of 22 controls have an effect."""
    inside, width = 0, 0.0
    for seed in range(2000):
        values, candidates = drawn(seed)
        more = np.random.default_rng(10_000 + seed).normal(size=(BATCHES, idle))
        controls = choose_controls((values - values.mean())[:, None], np.column_stack([candidates, more]))
        mean, half = controls.ratio_of_sums(values, ONES)
        inside += abs(mean - 5) <= half
        width += half / 2000
    assert 0.938 <= inside / 2000 <= 0.965
    assert width < 0.12  # 0.74 without them
