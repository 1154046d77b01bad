"""Runs of a project: their worth, and which of them can be deleted."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from analyzer.calibration.run_lock import is_being_written
from analyzer.calibration.rundir import INFO_FILE, RunInfo, load_info, stale_endpoints
from mup.errors import LogError, UsageError

__all__ = ["Freshness", "RunEntry", "delete_runs", "list_runs", "prunable"]

Freshness = Literal["fresh", "stale", "unknown"]
DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One directory below ``.mup/runs``.

    Attributes:
        path: The directory.
        info: What ``run.json`` says; None if there is none that can be read.
        modified: When it was last written to; seconds since 1970.
        size: Bytes of all its files.
        source: Whether it was written by the source as it is now.
        stale: Endpoints whose source has changed since, and why.
        used_by: Models of the project that were calibrated from it.
        active: An exploration is writing to it right now.
    """

    path: Path
    info: RunInfo | None
    modified: float
    size: int
    source: Freshness
    stale: Mapping[str, str]
    used_by: tuple[str, ...]
    active: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        info = self.info
        return {
            "run": str(self.path),
            "kind": info.kind if info else "",
            "created": info.created if info else "",
            "observed_seconds": info.observed_seconds if info else 0.0,
            "parts": len(info.parts) if info else 0,
            "endpoints": len(info.widths) if info else 0,
            "complete": bool(info and info.complete),
            "stop": info.stop if info else "",
            "size": self.size,
            "source": self.source,
            "stale": dict(self.stale),
            "used_by": list(self.used_by),
            "active": self.active,
        }


def list_runs(state: Path, root: Path, current: Mapping[str, str] | None) -> list[RunEntry]:
    """Return the runs of a project, newest first.

    Args:
        state: The project's ``.mup``.
        root: The project's folder, where its models are.
        current: Fingerprints of the source as it is now; None = unknown.
    """
    folder = state / "runs"
    if not folder.is_dir():
        return []
    used = _used_runs(root)
    found = sorted((p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()), reverse=True)
    return [_entry(path, current, used) for path in found]


def _entry(path: Path, current: Mapping[str, str] | None, used: Mapping[str, list[str]]) -> RunEntry:
    try:
        info = load_info(path)
    except LogError:
        info = None
    files = [p.stat() for p in path.rglob("*") if p.is_file()]
    modified = max((f.st_mtime for f in files), default=path.stat().st_mtime)
    known = info is not None and current is not None and bool(info.fingerprints)
    stale = stale_endpoints(info.fingerprints, current) if info and current and known else {}
    return RunEntry(
        path=path,
        info=info,
        modified=modified,
        size=sum(f.st_size for f in files),
        source="unknown" if not known else "stale" if stale else "fresh",
        stale=stale,
        used_by=tuple(used.get(path.name, ())),
        active=is_being_written(path),
    )


def _used_runs(root: Path) -> dict[str, list[str]]:
    """Return, per name of a run directory, the models in the project's folder that name it."""
    used: dict[str, list[str]] = {}
    for file in sorted(root.glob("*.json")):
        try:
            provenance = json.loads(file.read_bytes()).get("provenance", {})
            names = {provenance.get("run", ""), *provenance.get("runs", ())}
        except (OSError, ValueError, AttributeError, TypeError):
            continue  # not a model
        for name in names:
            used.setdefault(str(name), []).append(file.name)
    return used


def prunable(
    runs: Sequence[RunEntry], *, keep: int, older_than: float | None, used_too: bool
) -> list[RunEntry]:
    """Return the runs that can go.

    Args:
        runs: Newest first.
        keep: So many of the newest runs that observed anything stay.
        older_than: Only runs last written to so many days ago; None = any.
        used_too: Also those a model was calibrated from.

    Raises:
        UsageError: A number is negative.
    """
    if keep < 0:
        raise UsageError(f"keep must be >= 0, got {keep}")
    if older_than is not None and not older_than >= 0:
        raise UsageError(f"older_than must be >= 0 days, got {older_than}")
    useful = [r.path for r in runs if r.info is not None and r.info.windows]
    spared = set(useful[:keep])
    limit = time.time() - (older_than or 0.0) * DAY
    going = [
        r
        for r in runs
        if not r.active
        and r.path not in spared
        and (used_too or not r.used_by)
        and (older_than is None or r.modified <= limit)
    ]
    # A run that only measured what had changed is of no use without those before it.
    needed = {name for r in runs if r not in going and r.info is not None for name in r.info.since}
    return [r for r in going if r.path.name not in needed]


def delete_runs(runs: Iterable[RunEntry]) -> None:
    """Delete run directories with everything in them.

    Raises:
        LogError: One cannot be deleted.
    """
    for run in runs:
        try:
            # The description goes first: what is left after a failure is no run any more.
            (run.path / INFO_FILE).unlink(missing_ok=True)
            shutil.rmtree(run.path)
        except OSError as error:
            raise LogError(f"cannot delete: {error.strerror}", where=str(run.path)) from error
