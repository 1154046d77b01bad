"""A horizon that ends before the system is in its usual state: figures with one warning, or one error."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.cli.main import main
from mup.errors import SimulationError
from mup.lqn import Constant, Model, save_model
from simulator import simulate


def slow_start() -> Model:
    """Hundreds of clients who all come within a second: their queue takes minutes to reach its usual length."""
    users = clients(400, Constant(1.0), "A.e")
    return model(
        users, service("A", entry("e", act("w", exp(0.5))), processor="cpu"), processors=(ps("cpu"),)
    )


def test_warm_up_longer_than_the_horizon() -> None:
    """The warning names the horizon and says what to do; nothing else is said about the same thing."""
    result = simulate(slow_start(), horizon=20.0, may_pile_up=True)
    found = [text for text in result.warnings if "simulate longer" in text]
    assert found == ["the warm-up took half of the horizon of 20 s or more: simulate longer"]


def test_warm_up_that_is_not_told_from_noise() -> None:
    """Where the warm-up is not found, its trend shows as correlation, in one warning."""
    result = simulate(slow_start(), horizon=60.0, may_pile_up=True)
    assert sum("simulate longer" in text for text in result.warnings) == 1


@pytest.mark.parametrize("horizon", [1e-9, 1e-3, 0.9])
def test_nothing_is_over_at_the_horizon(horizon: float) -> None:
    """Without a single cycle there is no figure."""
    with pytest.raises(SimulationError, match="no cycle was completed") as caught:
        simulate(slow_start(), horizon=horizon)
    assert caught.value.hint == "simulate longer"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one message, without a traceback."""
    file = tmp_path / "model.json"
    save_model(slow_start(), file)
    with pytest.raises(SystemExit) as caught:
        main(["simulate", str(file), "--horizon", "0.01"])
    assert caught.value.code == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert said.err.count("no cycle was completed") == 1
    assert said.err.count("simulate longer") == 1
