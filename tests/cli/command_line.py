"""Running commands of ``mup`` in this process, and small models to run them on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mup.cli.main import main
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Model,
    Precedence,
    Processor,
    Task,
)
from mup.lqn.json_io import model_to_json

ZERO = Constant(0.0)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def activity(name: str, demand: float | None, *calls: Call) -> Activity:
    """Return an activity with exponential demand (0: none; None: never measured) that makes calls."""
    time: Distribution | None = None if demand is None else Exponential(demand) if demand else ZERO
    return Activity(name=name, demand=time, delay=ZERO, calls=calls)


def entry(name: str, *activities: Activity, arcs: tuple[Precedence, ...] = (), **parts: Any) -> Entry:
    """Return an entry that starts with its first activity."""
    return Entry(name=name, start=activities[0].name, activities=activities, precedences=arcs, **parts)


def users(*calls: Call, clients: int = 2, think: float | None = 0.1) -> Task:
    """Return clients that think and call."""
    return Task(
        name="U",
        role="reference",
        threads=clients,
        think=None if think is None else Exponential(think),
        entries=(entry("cycle", activity("go", 0, *calls)),),
    )


def model(*tasks: Task, processors: tuple[Processor, ...] = ()) -> Model:
    """Return a model named m."""
    return Model(name="m", tasks=tasks, processors=processors)


def shop() -> Model:
    """Return 4 users of A on one host; half of its requests take a branch that calls B on another."""
    arcs = (Precedence(pre=("in",), post=("hit", "miss"), fork="or", probabilities=(0.5, 0.5)),)
    a = entry(
        "/a/",
        activity("in", 0.004),
        activity("hit", 0),
        activity("miss", 0, Call(task="B", entry="/b/")),
        arcs=arcs,
    )
    return model(
        users(Call(task="A", entry="/a/"), clients=4, think=0.05),
        Task(name="A", threads=2, processor="host", entries=(a,)),
        Task(name="B", threads=1, processor="other", entries=(entry("/b/", activity("w", 0.01)),)),
        processors=(Processor(name="host"), Processor(name="other")),
    )


def saved(folder: Path, data: Model | dict[str, Any] | str, name: str = "model.json") -> str:
    """Write a model, JSON that is none, or any text; return the path."""
    path = folder / name
    if isinstance(data, Model):
        data = model_to_json(data)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)
