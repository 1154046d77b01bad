"""Random models have the promised features, and failing ones shrink to readable ones."""

from __future__ import annotations

import math

import pytest
from random_models import ELEMENTS, describe, elements_used, random_model, shrink

from mup.lqn import Model, model_from_json, model_to_json

ALWAYS = {"think", "delay", "ps"}
"""What a model may contain although it was not asked for: loads are bounded by think times, cycles take time."""


@pytest.mark.slow
def test_every_element_occurs_and_seeds_decide() -> None:
    """A few hundred seeds cover every element; the same seed gives the same model."""
    seen: set[str] = set()
    for seed in range(300):
        model = random_model(seed)
        assert model == random_model(seed)
        seen |= elements_used(model)
    assert seen == ELEMENTS


@pytest.mark.parametrize(
    "elements",
    [set(), {"fcfs", "pool", "quorum", "and"}, {"loop-geometric", "semaphore", "open-entry", "pareto"}],
)
def test_elements_can_be_restricted(elements: set[str]) -> None:
    """Only the elements asked for occur, and each of them does in some model."""
    seen: set[str] = set()
    for seed in range(60):
        seen |= elements_used(random_model(seed, elements=elements, small=True))
    assert elements <= seen <= elements | ALWAYS


def test_unknown_elements_are_named() -> None:
    """A misspelt element must not silently mean a fuzz without it."""
    with pytest.raises(ValueError, match="quorom"):
        random_model(1, elements={"quorom"})


def test_models_survive_their_files() -> None:
    """Random models hold every element, so files must, too."""
    for seed in range(100):
        model = random_model(seed)
        assert model_from_json(model_to_json(model)) == model


@pytest.mark.parametrize(
    "element", ["quorum", "loop-bodies", "semaphore", "releasing", "grandparent", "migration"]
)
def test_shrinking_keeps_the_cause_and_little_else(element: str) -> None:
    """What fails because of one element shrinks to a few lines that still show it."""
    seed = next(s for s in range(500) if element in elements_used(random_model(s)))
    model = random_model(seed)
    small = shrink(model, lambda m: element in elements_used(m))
    assert element in elements_used(small)
    assert len(describe(small).splitlines()) <= 16, describe(small)
    assert len(describe(small)) < len(describe(model))


def test_shrinking_stops_where_nothing_can_go() -> None:
    """A property of the whole model leaves one client and one activity."""
    small = shrink(random_model(5), lambda m: any(t.is_reference for t in m.tasks))
    (task,) = small.tasks
    assert task.threads in (1, math.inf)
    assert len(task.entries[0].activities) == 1


def test_shrinking_respects_its_limit() -> None:
    """Candidates may be expensive to ask about: never more of them than allowed."""
    asked: list[Model] = []

    def fails(model: Model) -> bool:
        asked.append(model)
        return False

    shrink(random_model(7), fails, limit=10)
    assert len(asked) == 10


def test_description_names_every_part() -> None:
    """The text names all processors, tasks, entries and activities."""
    model = random_model(11)
    text = describe(model)
    for name in [*(p.name for p in model.processors), *(t.name for t in model.tasks)]:
        assert name in text
    for _, entry, activity in model.walk():
        assert f"entry {entry.name}:" in text
        assert f"{activity.name}: " in text
