"""Folder of results: one file per thing that must not be done twice.

    RESULTS/host.json                     the profile of the machine
    RESULTS/systems/NAME/project/         the sources
                         run/             the exploratory run, with all its logs
                         explored.json    when, how long, how fast the machine was
                         points.json      the loads, chosen before anything was measured
                         repeats/POINT.K.json     one measured repeat
    RESULTS/predictions/SET/NAME.json     figures of every point
                            NAME.model.json       the calibrated model behind them

``first`` is the set that was written before the first measurement; it is never overwritten. Every file is
written under another name and then renamed, so a killed campaign leaves no half of one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mup.errors import UsageError

__all__ = ["FIRST", "Results", "SystemFolder", "read_json", "write_json"]

FIRST = "first"


def write_json(path: Path, data: Any, *, indent: int | None = 1) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(data, indent=indent) + "\n", encoding="utf-8")
    new.replace(path)


def read_json(path: Path) -> Any:
    """Read a file of results.

    Raises:
        UsageError: It is missing or broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read: {error}", where=str(path), hint="run the campaign first") from error


@dataclass(frozen=True, slots=True)
class SystemFolder:
    """What is known about one system."""

    path: Path

    @property
    def name(self) -> str:
        """Of the system."""
        return self.path.name

    @property
    def project(self) -> Path:
        """The sources."""
        return self.path / "project"

    @property
    def run(self) -> Path:
        """The exploratory run."""
        return self.path / "run"

    @property
    def explored(self) -> Path:
        """Circumstances of the exploratory run; it is complete if this file is there."""
        return self.path / "explored.json"

    @property
    def points(self) -> Path:
        """The loads."""
        return self.path / "points.json"

    def repeat(self, point: str, number: int) -> Path:
        """Return the file of one repeat."""
        return self.path / "repeats" / f"{point}.{number}.json"

    def repeats(self, point: str) -> list[dict[str, Any]]:
        """Return the measured repeats of a point, void ones too, in the order they were made."""
        files = (self.path / "repeats").glob(f"{point}.*.json")
        return [read_json(f) for f in sorted(files, key=lambda f: int(f.name.split(".")[-2]))]


@dataclass(frozen=True, slots=True)
class Results:
    """The folder of a campaign."""

    path: Path

    @property
    def host(self) -> Path:
        """The profile of the machine."""
        return self.path / "host.json"

    def system(self, name: str) -> SystemFolder:
        """Return the folder of a system."""
        return SystemFolder(self.path / "systems" / name)

    def systems(self) -> list[SystemFolder]:
        """Return the systems that were explored, generated ones by seed, others behind them."""
        found = (SystemFolder(p.parent) for p in self.path.glob("systems/*/explored.json"))
        return sorted(found, key=lambda s: (not re.fullmatch(r"s\d+", s.name), len(s.name), s.name))

    def prediction(self, kind: str, system: str) -> Path:
        """Return the file of a system's predictions in a set."""
        return self.path / "predictions" / kind / f"{system}.json"

    def model(self, kind: str, system: str) -> Path:
        """Return the file of the model behind them."""
        return self.path / "predictions" / kind / f"{system}.model.json"

    def kinds(self) -> list[str]:
        """Return the sets of predictions, in the order they were begun."""
        folders = [p for p in self.path.glob("predictions/*") if p.is_dir() and any(p.glob("*.json"))]
        return [
            p.name for p in sorted(folders, key=lambda p: min(f.stat().st_mtime for f in p.glob("*.json")))
        ]
