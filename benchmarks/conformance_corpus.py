"""Models of the reference corpus, and their place.

The corpus holds models in lqnx and, as JSON, what ``lqsim`` (the discrete-event simulator of Carleton
University) says about them: means over independent replications with 95 % Student-t half-widths. It is not
part of this repository; the environment variable ``MUP_REFERENCE_DIR`` names the directory that contains it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CORPUS", "Case", "find_corpus", "load_cases", "reference_directory"]

CORPUS = "lqn-corpus"
"""Name of the corpus within the reference directory."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model of the corpus.

    Attributes:
        name: Of the model.
        file: The model, with replication if it has any.
        reference: What the other simulator says: per section and element its figures.
        precision: Largest relative half-width of a task's throughput it reached.
        cpu_seconds: User time it needed for that.
        simulated: Seconds it simulated, all replications together.
    """

    name: str
    file: Path
    reference: dict[str, Any]
    precision: float
    cpu_seconds: float
    simulated: float


def reference_directory() -> Path:
    """Return the directory of reference material: MUP_REFERENCE_DIR, or ../shared next to the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get("MUP_REFERENCE_DIR") or beside)


def find_corpus() -> Path | None:
    """Return the directory of the corpus, or None if it is not there."""
    found = reference_directory() / CORPUS
    return found if (found / "results").is_dir() else None


def load_cases(corpus: Path, only: list[str] | None = None) -> list[Case]:
    """Return the models of a corpus in the order of their names.

    Args:
        corpus: Its directory.
        only: Names to keep; None keeps all.
    """
    cases = []
    for path in sorted((corpus / "results").glob("*.json")):
        if only and path.stem not in only:
            continue
        data = json.loads(path.read_text())
        reference = data["lqsim"]
        cases.append(
            Case(
                name=data["name"],
                file=corpus / data["file"],
                reference=reference,
                precision=reference["max_relative_ci95_of_task_throughput"],
                cpu_seconds=reference["user_cpu_seconds_total"],
                simulated=reference["simulated_time_total"],
            )
        )
    return cases
