"""Folder of results: one file per thing that must not be done twice.

    RESULTS/host.json                       the profile of the machine
    RESULTS/APPLICATION-MODE/study.json     how it is calibrated and run; another study needs another folder
                             run/           the exploratory run of one user
                             model.json     calibrated from it
                             windows.json   how long windows may be, so that the first family fits
                             W1/steps.json         every step, predicted before any of them was run
                                measured/03.json   what a real run of the third one showed
                                corrected/03.json  what is predicted for the machine's speed meanwhile

Every file is written under another name and then renamed, so what is killed leaves no half of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuracy.store import read_json, write_json

from mup.errors import UsageError

__all__ = ["FamilyFolder", "StudyFolder", "agreed", "read_json", "studies", "write_json"]


@dataclass(frozen=True, slots=True)
class FamilyFolder:
    """One what-if family of a study."""

    path: Path

    @property
    def steps(self) -> Path:
        """The predictions."""
        return self.path / "steps.json"

    def measured(self, number: int) -> Path:
        """Return the file of one step's real run."""
        return self.path / "measured" / f"{number:02d}.json"

    def corrected(self, number: int) -> Path:
        """Return the file of one step's prediction for the speed of the machine in its real run."""
        return self.path / "corrected" / f"{number:02d}.json"


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """One application in one mode."""

    path: Path

    @property
    def study(self) -> Path:
        """Its settings."""
        return self.path / "study.json"

    @property
    def run(self) -> Path:
        """The exploratory run."""
        return self.path / "run"

    @property
    def model(self) -> Path:
        """The calibrated model."""
        return self.path / "model.json"

    @property
    def windows(self) -> Path:
        """The longest window of all families: what they have in common has to be the same."""
        return self.path / "windows.json"

    def family(self, name: str) -> FamilyFolder:
        """Return the folder of a family."""
        return FamilyFolder(self.path / name)


def studies(results: Path) -> list[StudyFolder]:
    """Return the studies there are, by name."""
    return [StudyFolder(path.parent) for path in sorted(results.glob("*/study.json"))]


def agreed(path: Path, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is stored, or None if there is nothing yet.

    Args:
        path: A file with ``settings``.
        wanted: The settings it has to have.

    Raises:
        UsageError: It was made with others.
    """
    if not path.exists():
        return None
    found: dict[str, Any] = read_json(path)
    other = [name for name, value in wanted.items() if found["settings"].get(name) != value]
    if other:
        texts = [f"{n} {found['settings'].get(n)!r}, not {wanted[n]!r}" for n in other]
        raise UsageError(
            f"this was begun with {'; '.join(texts)}",
            where=str(path),
            hint="use the same options to continue, or another folder (--results)",
        )
    return found
