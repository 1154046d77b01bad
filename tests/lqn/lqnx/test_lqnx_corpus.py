"""The models of the reference corpus are read, and survive being written.

The corpus is not part of the repository: ``MUP_REFERENCE_DIR`` names the folder that holds ``lqn-corpus``
(default: ``../shared`` beside the checkout).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from lqnx_samples import bare, there_and_back

from mup.errors import ModelError
from mup.lqn import Model
from mup.lqn.comparison import compare
from mup.lqn.lqnx import load_lqnx, model_to_lqnx

FOLDER = Path(os.environ.get("MUP_REFERENCE_DIR", Path(__file__).parents[4] / "shared")) / "lqn-corpus/models"
REFUSED = {
    "reg-71-fair": "processor groups are not supported",
}

needs_corpus = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no reference corpus: {FOLDER} does not exist (set MUP_REFERENCE_DIR)"
)
pytestmark = needs_corpus

FILES = sorted(FOLDER.glob("*.lqnx")) or [FOLDER / "missing.lqnx"]
EXPRESSIBLE = [f for f in FILES if f.stem not in REFUSED]
REPLICATED = [f for f in FILES if f.name.endswith(".flat.lqnx")]


@pytest.mark.parametrize("path", EXPRESSIBLE, ids=lambda p: p.stem)
def test_models_come_back_unchanged(path: Path) -> None:
    """Reading, writing and reading again gives the same model, with nothing lost on the way."""
    model = load_lqnx(path)
    assert model_to_lqnx(model).notes == ()
    assert there_and_back(model) == bare(model)


@pytest.mark.parametrize(("name", "reason"), REFUSED.items())
def test_what_no_model_can_express_is_named(name: str, reason: str) -> None:
    """Processor groups are refused by name."""
    with pytest.raises(ModelError, match=reason):
        load_lqnx(FOLDER / f"{name}.lqnx")


@pytest.mark.parametrize("flat", REPLICATED, ids=lambda p: p.stem)
def test_replication_is_written_out_as_the_tools_do(flat: Path) -> None:
    """The expansion of a file equals its flat form; only the names of phases differ between the two."""
    written_out = load_lqnx(flat.with_name(flat.name.replace(".flat", "")))
    assert compare(with_numbered_phases(written_out), with_numbered_phases(load_lqnx(flat))) == []


def with_numbered_phases(model: Model) -> Model:
    """Name the phases after their number (the replicated models have only one in an entry)."""
    phases = model.provenance["lqnx"]["phases"]
    tasks = []
    for task in model.tasks:
        entries = []
        for entry in task.entries:
            names = {name: f"phase {number}" for number, name in phases.get(entry.name, {}).items()}
            assert len(names) <= 1
            activities = tuple(replace(a, name=names.get(a.name, a.name)) for a in entry.activities)
            start = names.get(entry.start, entry.start)
            entries.append(replace(entry, activities=activities, start=start))
        tasks.append(replace(task, entries=tuple(entries)))
    return replace(model, tasks=tuple(tasks))
