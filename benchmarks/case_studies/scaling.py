"""Think times of the clients of a study."""

from __future__ import annotations

from mup.lqn import Model
from mup.lqn.edits import with_think
from simulator.api import compiled

__all__ = ["scaled"]


def scaled(model: Model, factor: float) -> Model:
    """Return a model whose clients think so many times as long."""
    if factor == 1:
        return model
    (clients,) = compiled(model).populations
    return with_think(model, factor * clients.nominal.think)
