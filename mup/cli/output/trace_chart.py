"""Chart of a predicted trace beside the observed one, a panel per station, as the papers do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mup.whole_file import write_whole

if TYPE_CHECKING:
    from analyzer.learning.network_learning import LearnedNetwork

POINTS = 20
"""Moments drawn of a trace."""


def draw_worst_trace(path: str, learned: LearnedNetwork) -> None:
    """Draw the held-back trace that was predicted worst.

    Args:
        path: An SVG file.
        learned: With its predictions.

    Raises:
        UsageError: The file cannot be written.
    """
    import numpy as np

    from analyzer.learning.misplaced import misplaced
    from mup.cli.output.chart import Curve, Panel, draw_panels

    observed, predicted = learned.judged.x, learned.predicted.x
    errors = misplaced(observed, predicted)
    worst = int(np.argmax(errors))
    moments = np.unique(np.linspace(0, observed.shape[1] - 1, POINTS).round().astype(int))
    positions = list(range(len(moments)))
    panels = []
    for i, name in enumerate(learned.network.names):
        means = predicted[worst, moments, i]
        half = learned.predicted.half[worst, moments, i]
        seen = observed[worst, moments, i].tolist()
        empty = [None] * len(seen)
        curves = {
            "predicted, 95 %": Curve(
                positions, means.tolist(), (means - half).tolist(), (means + half).tolist()
            ),
            "observed": Curve(positions, seen, empty, empty),
        }
        panels.append(Panel(f"clients at {name}", curves))
    times = [f"{m * learned.judged.dt:.3g}" for m in moments]
    title = f"Held back, predicted worst: {errors[worst]:.2f} % of the clients misplaced"
    text = draw_panels(title, "seconds", times, panels)
    write_whole(path, text, what="the picture")
