"""What a model's parts are called changes no figure, whatever the names hold."""

from __future__ import annotations

from typing import Any

import pytest
from random_models import random_model
from renaming import Renaming

from mup.errors import MupError
from mup.lqn import Model, model_from_json, model_to_json
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid

GROUPS = ("tasks", "entries", "calls", "joins", "activities")


def simulated(model: Model, engine: str, events: int) -> dict[str, Any]:
    """Return the figures of a short run."""
    result = simulate(
        model, engine=engine, precision=1e-9, max_events=events, activities=True, may_pile_up=True
    )
    return {"cycle": result.cycle} | {group: getattr(result, group) for group in GROUPS}


def renamed(found: dict[str, Any] | str, labels: dict[str, dict[str, str]]) -> dict[str, Any] | str:
    """Return the same figures under the texts of a renamed model."""
    if isinstance(found, str):
        return found
    return {
        group: {labels[group][text]: figure for text, figure in figures.items()}
        if group in labels
        else figures
        for group, figures in found.items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_simulation_does_not_depend_on_names(seed: int) -> None:
    """Every figure is found again, bit for bit, under the text of what it belongs to; files keep them all."""
    model = random_model(seed)
    renaming = Renaming.of(model, seed)
    other, labels = model_from_json(model_to_json(renaming.model(model))), renaming.labels(model)
    assert renamed(simulated(model, "compiled", 20_000), labels) == simulated(other, "compiled", 20_000)


@pytest.mark.parametrize("seed", range(6))
def test_the_reference_engine_does_not_depend_on_names(seed: int) -> None:
    """Both engines have the same texts for the same figures."""
    model = random_model(seed, small=True)
    renaming = Renaming.of(model, seed)
    other, labels = renaming.model(model), renaming.labels(model)
    assert renamed(simulated(model, "reference", 3000), labels) == simulated(other, "reference", 3000)


def estimated(model: Model, how: Any) -> dict[str, Any] | str:
    try:
        found: dict[str, Any] = how(model).to_json()
    except MupError as error:
        return type(error).__name__
    return {group: found[group] for group in ("cycle", "tasks", "entries", "processors")}


@pytest.mark.parametrize("how", [estimate, fluid])
@pytest.mark.parametrize("seed", range(12))
def test_estimates_do_not_depend_on_names(seed: int, how: Any) -> None:
    """Neither queueing formulas nor differential equations know names."""
    model = random_model(seed, small=True)
    renaming = Renaming.of(model, seed)
    before, after = estimated(model, how), estimated(renaming.model(model), how)
    assert renamed(before, renaming.labels(model)) == after
