"""Agreement with reference figures of models of a real application's size.

``teastore-size`` is in the repository; the others are skipped where the reference material is absent.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from conformance_corpus import reference_directory
from neutral_models import load_reference_model

from mup.errors import ModelError
from simulator import Figure, simulate

OWN = Path(__file__).resolve().parents[3] / "benchmarks" / "teastore-size.json"
SEED = 1

ROWS = [
    ("teastore-size", 64, 500.0),
    ("teastore-size", 224, 200.0),
    ("teastore-size", 512, 200.0),
    ("teastore-size-ps", 64, 300.0),
    ("teastore-size-ps", 224, 150.0),
    ("teastore-size-ps", 512, 150.0),
    ("running-example", 1, 20000.0),
    ("running-example", 64, 1000.0),
    ("running-example", 112, 1000.0),
    ("running-example", 256, 500.0),
]


def agree(ours: Figure, reference: dict[str, float]) -> bool:
    """Tell whether figures differ by at most three joint half-widths and one percent."""
    margin = 3 * math.hypot(ours.ci95, reference["ci95"]) + 0.01 * reference["mean"]
    return abs(ours.mean - reference["mean"]) <= margin


@pytest.mark.parametrize(("name", "clients", "horizon"), ROWS)
def test_predictions_agree_with_the_reference(name: str, clients: int, horizon: float) -> None:
    """Throughput, response time and busy threads are those of the reference at this number of clients."""
    path = OWN if name == "teastore-size" else reference_directory() / "models" / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no reference model {name}: MUP_REFERENCE_DIR names the directory that contains models")
    reference = load_reference_model(path)
    row = next(r for r in reference.rows if r["clients"] == clients)
    result = simulate(reference.with_clients(clients), horizon=horizon, seed=SEED)
    assert agree(result.cycle.throughput, row["throughput"])
    assert agree(result.cycle.response_time, row["response_time"])
    for task, figures in row["tasks"].items():
        if figures["busy"] is not None:
            assert agree(result.tasks[task].busy, figures["busy"]), task


def test_a_single_client_of_the_running_example_never_waits() -> None:
    """Its response time is the sum of the mean times on its path: 43 ms."""
    path = reference_directory() / "models" / "running-example.json"
    if not path.exists():
        pytest.skip("no reference models: MUP_REFERENCE_DIR names the directory that contains them")
    found = simulate(
        load_reference_model(path).with_clients(1), horizon=20000.0, seed=SEED
    ).cycle.response_time
    assert abs(found.mean - 0.043) <= 3 * found.ci95
    assert found.relative < 0.01


def test_an_unknown_step_is_refused(tmp_path: Path) -> None:
    """A file with a step of no known kind is not read as if it were not there."""
    path = tmp_path / "model.json"
    text = OWN.read_text()
    path.write_text(text.replace('"cpu"', '"gpu"', 1))
    with pytest.raises(ModelError, match="gpu"):
        load_reference_model(path)
