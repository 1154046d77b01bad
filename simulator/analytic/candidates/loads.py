"""At which load does a model run? Found within milliseconds once one of its structure was asked about."""

from __future__ import annotations

import threading
from typing import Final

from mup.errors import MupError
from mup.lqn.model import Model
from simulator.analytic.candidates.estimator import Estimator
from simulator.preparing import Load

__all__ = ["load_of"]

KEPT: Final = 4
"""Structures that a thread remembers: those of a baseline and of changes to how its requests flow."""


class _Estimators(threading.local):
    """Estimators are not for several threads at once."""

    def __init__(self) -> None:
        self.known: list[Estimator] = []


_estimators = _Estimators()


def load_of(model: Model) -> Load | None:
    """Return the load at which the processor times of a model are taken, as estimates find it.

    Args:
        model: It has times that depend on the load.

    Returns:
        None if there is no quick estimate, or none at all: ``simulator.preparing.prepared`` then says why.
    """
    known = _estimators.known
    try:
        estimator = next((each for each in known if each.takes(model)), None)
        if estimator is None:
            estimator = Estimator(model, compiling=False)
            if not estimator.takes(model):
                return None
            known.insert(0, estimator)
            del known[KEPT:]
        return estimator.load(model)
    except MupError:
        return None
