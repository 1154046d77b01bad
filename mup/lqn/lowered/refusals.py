"""Refuse a model that lacks numbers: all of them are listed at once, with their paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from mup.errors import UncalibratedError
from mup.lqn.distributions import Distribution
from mup.lqn.model import Model

__all__ = ["MAX_LISTED", "measured", "refuse_unmeasured"]

MAX_LISTED: Final = 20
"""Paths that are written out."""


def refuse_unmeasured(model: Model, paths: Sequence[str]) -> NoReturn:
    """Raise an error that lists numbers of a model that were never measured."""
    shown = [f"  {path}" for path in paths[:MAX_LISTED]]
    if len(paths) > MAX_LISTED:
        shown.append(f"  ... and {len(paths) - MAX_LISTED} more")
    listing = "\n".join(shown)
    raise UncalibratedError(
        f"{len(paths)} numbers that clients can reach were never measured\n{listing}",
        where=model.name,
        hint="run 'mup explore' and 'mup model' to measure them, or set them in the model file",
    )


def measured(number: Distribution | None) -> Distribution:
    """Return a number of a model that was found to lack none."""
    if number is None:
        raise UncalibratedError("a number was never measured")
    return number
