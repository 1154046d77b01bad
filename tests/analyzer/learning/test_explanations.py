"""What traces cannot tell from the best explanation, and what they can."""

from __future__ import annotations

import numpy as np

from analyzer.learning.explanations import alike


def test_the_best_comes_first_and_what_misses_surely_more_is_left_out() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 40))
    misses = np.array([[1.2], [1.0], [1.0]]) + noise
    best = int(np.argmin(misses.mean(axis=1)))
    assert alike(misses) == [best, 3 - best]
    assert alike(misses[:2] + np.array([[0.0], [0.5]])) == [0]
