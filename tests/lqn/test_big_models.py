"""Models of twice the size take twice the work to read, check, export, count and compare, not four times."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from executed_lines import executed_lines

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Model,
    Processor,
    Task,
    model_from_json,
    model_to_json,
)
from mup.lqn.comparison import compare
from mup.lqn.lqnx import load_lqnx, model_to_lqnx
from mup.lqn.lqnx.losses import Losses
from mup.lqn.statistics import statistics

SMALL = 60
LINEAR = 2.2
"""Times as much for twice the size; 4 would be quadratic."""


def row(services: int) -> Model:
    """Services on processors of their own, each called by the one before; every second entry of the same name."""

    def entry(name: str, to: str) -> Entry:
        calls = (Call(task=to, entry="e"),) if to else ()
        work = Activity(name="w", demand=Exponential(0.01), delay=Constant(0.0), calls=calls)
        return Entry(name=name, start="w", activities=(work,))

    tasks = [
        Task(
            name=f"S{i}",
            threads=4,
            processor=f"p{i}" if i % 2 else None,
            entries=(entry("e", f"S{i + 1}" if i + 1 < services else ""), entry(f"own{i}", "")),
        )
        for i in range(services)
    ]
    clients = Task(
        name="U", role="reference", threads=3, think=Exponential(1.0), entries=(entry("cycle", "S0"),)
    )
    processors = tuple(Processor(name=f"p{i}", cores=2) for i in range(services))
    return Model(name="row", processors=processors, tasks=(clients, *tasks))


def lookups(model: Model) -> None:
    for task in model.tasks:
        model.task(task.name)
        model.front_processor(task)


def work_on(name: str, model: Model, folder: Path) -> Callable[[], object]:
    """Return a work on a model; what it needs is there."""
    file = folder / f"{len(model.tasks)}.lqnx"
    file.write_text(model_to_lqnx(model, approximate=True).text)
    data, other = model_to_json(model), row(len(model.processors))
    works: dict[str, Callable[[], object]] = {
        "checking": lambda: Model(name="m", processors=model.processors, tasks=model.tasks),
        "looking up": lambda: lookups(model),
        "writing": lambda: model_to_json(model),
        "reading": lambda: model_from_json(data),
        "writing lqnx": lambda: model_to_lqnx(model, approximate=True),
        "reading lqnx": lambda: load_lqnx(file),
        "counting": lambda: statistics(model),
        "comparing": lambda: compare(model, other),
    }
    return works[name]


@pytest.mark.parametrize(
    "name",
    [
        "checking",
        "looking up",
        "writing",
        "reading",
        "writing lqnx",
        "reading lqnx",
        "counting",
        "comparing",
    ],
)
def test_twice_the_size_is_twice_the_work(name: str, tmp_path: Path) -> None:
    """Every line of Python that the work executes counts."""
    small, large = (
        executed_lines(work_on(name, row(size), tmp_path), "/mup/lqn/") for size in (SMALL, 2 * SMALL)
    )
    assert small > SMALL
    assert large < LINEAR * small


def test_notes_are_found_at_once() -> None:
    """A note of an export is looked up in a table, however many there are; each comes once, in order."""
    losses = Losses(approximate=True, reached=set())
    for text in ("b", "a", "b", "c"):
        losses.note(text)
    assert losses.notes == ("b", "a", "c")


def test_lookup_follows_changes() -> None:
    """The index of names belongs to one model: a changed copy has its own, and equals and pickles as before."""
    model = row(5)
    assert model.task("S3").threads == 4
    assert model.processor("p3").cores == 2
    changed = model.with_task(replace(model.task("S3"), threads=9))
    assert changed.task("S3").threads == 9
    assert model.task("S3").threads == 4
    for same in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert same == model
        assert same.task("S4").name == "S4"
