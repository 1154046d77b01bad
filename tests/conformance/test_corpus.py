"""Do our figures agree with those of an independent simulator, model by model?

The reference corpus is not part of the repository; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import MAX_OUTSIDE, agreement
from conformance_corpus import Case, find_corpus, load_cases

from mup.errors import ModelError
from mup.lqn.files import read_model

pytestmark = pytest.mark.slow

SHARE = 1 / 8
"""Of the simulated time of the corpus: enough to see a percent, and seconds for all models."""

SEEDS = (1,)

REFUSED = {
    "reg-66-rwlock": "reader-writer lock",
    "reg-69-rwlock": "reader-writer lock",
    "reg-71-fair": "processor groups",
}

CORPUS = find_corpus()
CASES = load_cases(CORPUS) if CORPUS is not None else []
EXPRESSIBLE = [c for c in CASES if c.name not in REFUSED]


@pytest.fixture(autouse=True)
def _corpus_is_there() -> None:
    if CORPUS is None:
        pytest.skip("no reference corpus: MUP_REFERENCE_DIR names the directory that contains lqn-corpus")


def by_name(case: Case | None) -> str:
    return "absent" if case is None else case.name


@pytest.mark.parametrize("case", EXPRESSIBLE or [None], ids=by_name)
def test_every_figure_agrees_or_depends_on_a_rule_that_differs(case: Case) -> None:
    """Throughputs, utilizations, service and waiting times are those of lqsim unless a named rule differs."""
    found = agreement(read_model(case.file), case, SHARE, SEEDS)
    assert found.judged
    assert [f"{j.pair.what}: {j.pair.ours} for {j.pair.theirs}" for j in found.wrong] == []


def test_most_figures_are_within_one_joint_interval() -> None:
    """Of all figures that chance alone may change, about one in twenty lies outside one joint half-width."""
    names = ["reg-20-multiserver", "reg-44-activities", "mup-web-db-1", "mup-web-db-3", "drv-layered-model-det",
             "drv-ex1-1-taskhol", "reg-53-replication", "quo-two-layer-k-a-c-d", "usr-zhengtao_2"]  # fmt: skip
    pairs = [
        p for c in CASES if c.name in names for p in agreement(read_model(c.file), c, SHARE, SEEDS).plain
    ]  # fmt: skip
    assert len(pairs) > 200
    assert sum(p.outside for p in pairs) <= MAX_OUTSIDE * len(pairs)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_expressed_is_refused_by_name(name: str) -> None:
    """A model with an element that has no counterpart is refused, and the message names the element."""
    assert isinstance(CORPUS, Path)
    with pytest.raises(ModelError, match=REFUSED[name]):
        read_model(CORPUS / "models" / f"{name}.lqnx")
