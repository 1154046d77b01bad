"""The load that times depend on: found by compiled code, as by the plain estimate."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mup.lqn import load_model
from mup.lqn.edits import with_clients
from mup.native.libraries import ANALYTIC
from mup.native.loading import loaded
from simulator.analytic.candidates import loads
from simulator.analytic.candidates.loads import load_of
from simulator.api import observed_load, prepared_model
from simulator.preparing import prepared

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("example", ["tms", "acmeair"])
@pytest.mark.parametrize("clients", [1, 30])
def test_load_is_that_of_the_plain_estimate(example: str, clients: int) -> None:
    """Whatever was asked before: the thread remembers estimators of other models."""
    loaded(ANALYTIC)
    model = with_clients(load_model(EXAMPLES / example / "model.json"), clients)
    found = prepared_model(model)
    quick, plain = load_of(model), prepared(model, partial(observed_load)).load
    assert quick is not None
    assert plain is not None
    assert quick.rates == pytest.approx(dict(plain.rates), rel=1e-9)
    assert quick.utilization == pytest.approx(dict(plain.utilization), rel=1e-9)
    assert quick.busy == pytest.approx(dict(plain.busy), rel=1e-9)
    assert quick.clients == plain.clients
    assert found.load == quick
    assert all(task.load_dependence is None for task in found.model.tasks)


def test_what_compiled_code_does_not_take_is_left_to_the_plain_estimate() -> None:
    """Thousands of clients."""
    model = load_model(EXAMPLES / "tms" / "model.json")
    assert load_of(with_clients(model, 5000)) is None
    assert prepared_model(with_clients(model, 5000)).load is not None


def test_without_compiled_code_nothing_is_compiled(uncompiled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would take longer than the plain estimate; and what has no quick one is not remembered."""
    monkeypatch.setattr(loads, "_estimators", loads._Estimators())
    assert load_of(load_model(EXAMPLES / "tms" / "model.json")) is None
    assert loads._estimators.known == []
    assert not list(uncompiled.rglob("*.so"))
