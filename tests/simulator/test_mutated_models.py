"""Whatever a model file says, all that read it end in a result or in one message.

Models of every element, written as JSON, with one to three values replaced by others that are wrong, extreme
or of another type, or with fields and items left out or repeated.
"""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from random_models import random_model

from mup.errors import MupError
from mup.lqn import load_model
from mup.lqn.json_io import model_to_json
from simulator import simulate
from simulator.analytic import estimate

NUMBERS = (0, 1, 2, 3, 7, 0.25, 1e-300, 1e-30, 1e-9, 1e9, 1e18, 1e30, 1.7e308)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 0.5, 1e-300, 1e-30, 1e18, 1e30, 1e300, 1.7e308, 10**18, 10**400, "", "inf", "x", [], {},
    [None], {"family": "exponential", "mean": 1e-300}, {"family": "constant", "mean": None},
    {"family": "pareto", "mean": 1.0, "alpha": 1e-300}, {"family": "hyperexponential", "probabilities": [1e-300, 1.0], "means": [1e300, 1.0]},
    {"family": "weibull", "mean": 1.0, "shape": 1e-3}, {"family": "lognormal", "mean": 1.0, "scv": 1e300},
)  # fmt: skip


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with every key or index of it."""
    keys = data.keys() if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in list(keys):
        yield data, key
        yield from places(data[key])


def mutated(seed: int) -> str:
    """Return the text of a mutated model."""
    draw = random.Random(seed)
    data = model_to_json(random_model(draw.randrange(200)))
    numbers = draw.random() < 0.5
    for _ in range(draw.randint(1, 3)):
        found = list(places(data))
        if numbers:
            found = [(c, k) for c, k in found if type(c[k]) in (int, float)]
        container, key = draw.choice(found)
        kind = draw.random()
        if numbers:
            container[key] = draw.choice((container[key] * 10.0 ** draw.randint(-320, 308), *NUMBERS))
        elif kind < 0.75:
            container[key] = copy.deepcopy(draw.choice(VALUES))
        elif kind < 0.9 or isinstance(container, dict):
            del container[key]
        else:
            container.append(copy.deepcopy(container[key]))
    return json.dumps(data).replace("Infinity", "1e999")


def use(path: Path) -> None:
    """Read a model, and predict with it what can be predicted in a moment."""
    model = load_model(path)
    with suppress(MupError):
        simulate(model, precision=0.3, max_events=2000, max_seconds=5.0)
    with suppress(MupError):
        estimate(model)


def check(seeds: range, folder: Path) -> None:
    file = folder / "model.json"
    accepted = 0
    for seed in seeds:
        file.write_text(mutated(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                use(file)
                accepted += 1
            except MupError as error:
                told = str(error)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
            else:
                continue
        assert told.startswith(str(file)), seed
    assert 0.1 * len(seeds) < accepted < 0.9 * len(seeds)


@pytest.mark.slow
def test_many_mutated_models_end_in_a_message(tmp_path: Path) -> None:
    """Many of them."""
    check(range(1000, 1250), tmp_path)
