"""Is an estimate of many candidates of one structure that of each by itself, whatever was asked before?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_models import random_model
from scipy import special

from mup.errors import MupError, SimulationError, UncalibratedError, UsageError
from mup.lqn import Activity, Call, Entry, Exponential, Model, Processor, Task
from mup.lqn.edits import with_clients
from mup.lqn.files import read_model
from simulator.analytic import Estimate, Estimator, estimate
from simulator.analytic.compiled.networks import multiply
from simulator.analytic.compiled.special import lower_gamma, regular_beta
from simulator.studies.whatif import Change

EXAMPLES = Path(__file__).parents[3] / "examples"
ZERO = Exponential(0.0)


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the relative differences of all numbers of two documents; infinite where they are not alike."""
    if isinstance(one, dict):
        if one.keys() != other.keys():
            yield path, math.inf
            return
        for key in one.keys() - {"wall_seconds"}:
            yield from differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, float):
        # What is next to nothing is rounding, as a queue of a pool that is never full.
        yield path, abs(one - other) / max(abs(one), 1e-6)
    elif one != other:
        yield path, math.inf


def assert_same(found: Estimate, expected: Estimate) -> None:
    """Demand that all figures are equal to a millionth, and all else exactly."""
    worst = max(differences(expected.to_json(), found.to_json()), key=lambda pair: pair[1])
    assert worst[1] < 1e-6, worst


def numbers(model: Model) -> list[tuple[Change, ...]]:
    """Return some changes of numbers that are possible in a model."""
    asked: list[tuple[Change, ...]] = [()]
    clients = [t for t in model.reference_tasks if not t.is_open]
    asked += [(Change("clients", t.name, count),) for t in clients for count in (1, int(t.threads) + 3)]
    if clients:
        asked.append((Change("think", "", 0.75),))
    services = [t for t in model.tasks if not t.is_reference]
    for task in services[:2]:
        asked.append((Change("pool", task.name, 2), Change("replicas", task.name, 2)))
        asked.append((Change("pool", task.name, math.inf),))
    asked += [(Change("cores", p.name, 3), Change("speed", p.name, 1.5)) for p in model.processors[:2]]
    return asked


def check(model: Model, unchanged: Estimate | None = None) -> int:
    """Compare all of these changes, with the estimate of the model if that is known; return how many have one."""
    estimator, answered = Estimator(model), 0
    for changes in numbers(model):
        try:
            changed = model
            for change in changes:
                changed = change.apply(changed)
            expected = estimate(changed) if changes or unchanged is None else unchanged
        except MupError as error:
            with pytest.raises(type(error)):
                estimator.at(changes)
            continue
        assert_same(estimator.at(changes), expected)
        answered += 1
    return answered


def shop(clients: int = 4, demand: float = 0.1) -> Model:
    """Return a model of two layers, both on one processor."""
    call = Call(task="B", entry="b")
    ask = Activity(name="ask", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="a"),))
    work = Activity(name="work", demand=Exponential(demand), delay=ZERO, calls=(call,))
    more = Activity(name="more", demand=Exponential(0.05), delay=Exponential(0.02))
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=2, discipline="ps"),),
        tasks=(
            Task(
                name="users",
                role="reference",
                threads=clients,
                think=Exponential(1.0),
                entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
            ),
            Task(
                name="A",
                threads=2,
                processor="host",
                entries=(Entry(name="a", start="work", activities=(work,)),),
            ),
            Task(
                name="B",
                threads=1,
                processor="host",
                entries=(Entry(name="b", start="more", activities=(more,)),),
            ),
        ),
    )


def seeds(first: int, last: int) -> Iterator[tuple[Model, Estimate]]:
    """Yield random models that have an estimate, with that."""
    for seed in range(first, last):
        model = random_model(seed)
        try:
            found = estimate(model)
        except MupError:
            continue
        yield model, found


@pytest.mark.slow
def test_random_models_have_the_same_estimate() -> None:
    """Whatever a model may contain, and whichever of its numbers change: each figure is that of `estimate`."""
    assert sum(check(model, found) for model, found in seeds(0, 30)) > 75


@pytest.mark.slow
@pytest.mark.parametrize("name", ["teastore", "tms", "facedetect"])
def test_examples_have_the_same_estimate(name: str) -> None:
    """Times that depend on the load are found in the same rounds, for every number of clients."""
    model = read_model(str(EXAMPLES / name / "model.json"))
    estimator = Estimator(model)
    service = next(t.name for t in model.tasks if not t.is_reference and t.threads != math.inf)
    for changes in (
        (Change("clients", "", 3),),
        (Change("clients", "", 96), Change("pool", service, 4)),
        (Change("clients", "", 200), Change("replicas", service, 2), Change("think", "", 3.0)),
        (Change("clients", "", 64), Change("cores", "host", 4), Change("speed", "host", 1.3)),
    ):
        changed = model
        for change in changes:
            changed = change.apply(changed)
        assert_same(estimator.at(changes), estimate(changed))


def test_an_answer_does_not_depend_on_what_was_asked_before() -> None:
    """Candidates have the same figures to the last bit in any order."""
    asked = [*numbers(shop()), (Change("clients", "", 40),), (Change("pool", "B", 8),)]
    one, other = Estimator(shop()), Estimator(shop())
    there = [one.at(changes) for changes in asked]
    back = [other.at(changes) for changes in reversed(asked)]
    assert there == back[::-1]
    assert [one.at(changes) for changes in asked] == there


def test_small_models_have_the_same_estimate() -> None:
    """So do a model of two layers, and candidates whose pools run out elsewhere."""
    assert check(shop()) == len(numbers(shop()))
    assert check(shop(clients=1)) == len(numbers(shop()))


def test_many_clients_are_estimated_too() -> None:
    """Beyond what compiled code tells apart the answer comes from the plain one."""
    assert_same(Estimator(shop()).at([Change("clients", "", 5000)]), estimate(with_clients(shop(), 5000)))


def test_whole_models_can_be_asked_for() -> None:
    """A model with other demands, or another structure altogether, has its own estimate."""
    estimator = Estimator(shop())
    other = shop(demand=0.3)
    assert_same(estimator.of(other), estimate(other))
    assert_same(estimator.of(random_model(3)), estimate(random_model(3)))
    silent = replace(shop(), tasks=tuple(replace(t, think=None) for t in shop().tasks))
    assert_same(estimator.of(silent), estimate(silent))


def test_without_compiled_code_estimates_are_plain(uncompiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled where that is not wanted, and without a compiler nothing can be."""
    assert not Estimator(shop(), compiling=False).takes(shop())
    assert not list(uncompiled.rglob("*.so"))
    monkeypatch.setattr("mup.native.building.compilers", lambda: iter(()))
    estimator = Estimator(shop())
    assert not estimator.takes(shop())
    assert estimator.at([Change("clients", "", 7)]) == estimate(with_clients(shop(), 7))


@pytest.mark.slow
def test_code_is_compiled_where_that_is_wanted(uncompiled: Path) -> None:
    """By default, as it pays for many estimates."""
    assert Estimator(shop()).takes(shop())
    assert list(uncompiled.rglob("analytic-*.so"))


def test_changes_of_the_flow_are_possible() -> None:
    """More calls per request are no change of numbers of tasks; the answer is right all the same."""
    change = Change("calls", "A/a:work->B/b", 3)
    assert_same(Estimator(shop()).at([change]), estimate(change.apply(shop())))


def test_wrong_changes_are_refused() -> None:
    """Names and values are checked as in edits of the whole model."""
    estimator = Estimator(shop())
    with pytest.raises(UsageError, match=r"no task 'C'"):
        estimator.at([Change("pool", "C", 2)])
    with pytest.raises(UsageError, match="whole number"):
        estimator.at([Change("clients", "", 0)])


def test_models_without_an_estimate_are_refused() -> None:
    """What was never measured is named when the estimator is made; what cannot go on, when it is asked for."""
    unknown = shop()
    entry = unknown.tasks[2].entries[0]
    unmeasured = replace(entry, activities=(replace(entry.activities[0], demand=None),))
    with pytest.raises(UncalibratedError, match="more"):
        Estimator(unknown.with_task(replace(unknown.tasks[2], entries=(unmeasured,))))
    timeless = replace(
        shop().tasks[1],
        entries=(Entry(name="a", start="x", activities=(Activity(name="x", demand=ZERO, delay=ZERO),)),),
    )
    users = replace(shop().tasks[0], think=None)
    model = replace(shop(), tasks=(users, timeless, shop().tasks[2]))
    with pytest.raises(SimulationError, match="no time at all"):
        Estimator(model).at()


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.5, 400.0])
def test_incomplete_gamma(shape: float) -> None:
    """The series and the continued fraction agree with scipy on both sides of the mean."""
    for x in (0.0, 0.1 * shape, 0.9 * shape, 1.1 * shape + 1, 3 * shape + 2):
        assert lower_gamma(shape, x) == pytest.approx(float(special.gammainc(shape, x)), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1.0, 2.0), (12.0, 3.0), (300.0, 200.0)])
def test_incomplete_beta(a: float, b: float) -> None:
    """The continued fraction agrees with scipy from end to end."""
    for x in (0.0, 0.01, 0.3, 0.6, 0.99, 1.0):
        assert regular_beta(a, b, x, 1 - x) == pytest.approx(float(special.betainc(a, b, x)), abs=1e-11)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 40])
def test_products_are_convolutions(size: int) -> None:
    """Four rows at once, with ends of every length and numbers that would underflow in between."""
    random = np.random.default_rng(size)
    for end in range(size):
        a, b = random.random(size), random.random(size)
        a[random.random(size) < 0.3] = 1e-200
        b[end + 1 :] = 0.0
        out = np.empty(size)
        expected = np.convolve(np.where(a > 1e-145, a, 0.0), b)[:size]
        multiply(a, b.copy(), out)
        top = expected.max()
        np.testing.assert_allclose(out, expected / top if top > 0 else expected, rtol=1e-12, atol=1e-15)
