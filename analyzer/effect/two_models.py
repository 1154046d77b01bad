"""Calibrate two versions of a project from rounds of both.

An endpoint that a change does not touch is measured in the rounds of both versions together; one that it
touches, in those of its own version. Then the model of the new version gets everything that was not touched
exactly as the old one has it, so that no noise can make a difference where nothing changed.

How sure the numbers are is told by drawing whole starts of the services anew: within one start, rounds are
more alike than between two. The k-th draw is the same for both models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from analyzer.calibration.bootstrap import REPLICATES
from analyzer.calibration.calibrate import Calibration
from analyzer.calibration.components import ALL
from analyzer.calibration.observed import FloatArray, Observed
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.rounds import MIN_ROUNDS
from analyzer.calibration.rundir import Run, fingerprints, load_info, merge_runs
from analyzer.effect.interleaved import Side
from analyzer.effect.touched import Touched
from mup.errors import LogError, UsageError
from mup.lqn import Model, entry_label
from mup.lqn.mixture import in_common_names, mixture
from mup.lqn.refs import EntryRef

__all__ = ["FEWEST_STARTS", "TwoModels", "by_starts", "calibrate_both", "refs_of"]

COMPONENTS: Final = replace(ALL, variants=False)
"""An endpoint has one entry in both versions, whoever calls it."""
FEWEST_STARTS: Final = 3
"""With fewer, rounds are drawn instead: two starts tell next to nothing of how much starts differ."""


@dataclass(frozen=True, slots=True)
class TwoModels:
    """Two versions of a model in common names.

    Attributes:
        before: The old version.
        after: The new one; what no change touches is as in the old one.
        freedom: Degrees of freedom of what their replicates say.
        unseen: Paths of touched endpoints that no execution took, as texts.
    """

    before: Model
    after: Model
    freedom: int
    unseen: tuple[str, ...] = ()


def calibrate_both(base: Side, head: Side, runs: Mapping[str, Sequence[Path]], touched: Touched) -> TwoModels:
    """Return the calibrated models of two versions.

    Args:
        base: The old version, with fingerprints as stored with its runs.
        head: The new one.
        runs: Run directories by role, as from ``explore_in_turns``.
        touched: What may take another time than before.

    Raises:
        UsageError: What was logged of one of them cannot be used.
    """
    paths = [path for both in zip(*runs.values(), strict=True) for path in both]
    version_of = {path: role for role, several in runs.items() for path in several}
    before, after = (_calibrated(side, base, paths, version_of) for side in (base, head))
    old, new = before.model, in_common_names(before.model, after.model)
    mixed = mixture(
        old,
        new,
        entries=refs_of(new, touched.endpoints),
        deployed=[task.name for task in new.tasks if task.name not in touched.redeployed],
        running=touched.redeployed,
        gone=False,
    )
    unseen = tuple(
        text for text in after.uncovered if any(text.startswith(f"{label}:") for label in touched.endpoints)
    )
    return TwoModels(old, mixed, _freedom(runs), unseen)


def _freedom(runs: Mapping[str, Sequence[Path]]) -> int:
    """Return the degrees of freedom of a difference: of starts, or of rounds if those are drawn."""
    units = []
    for several in runs.values():
        rounds = [window.phase for path in several for window in load_info(path).windows]
        units.append(len(several) if len(several) >= FEWEST_STARTS else rounds.count("hot") or len(rounds))
    return max(1, sum(units) - len(units))


def refs_of(model: Model, labels: frozenset[str]) -> frozenset[EntryRef]:
    """Return the entries of a model that have these labels."""
    return frozenset(
        EntryRef(task.name, entry.name)
        for task in model.tasks
        for entry in task.entries
        if entry_label(task.name, entry.name) in labels
    )


def _calibrated(side: Side, base: Side, paths: Sequence[Path], version_of: Mapping[Path, str]) -> Calibration:
    try:
        run = _steady(merge_runs(paths, fingerprints(side.application)))
        return calibrate_project(
            replace(side.project, name=base.project.name),
            run,
            side.application,
            components=COMPONENTS,
            draw=by_starts(version_of),
        )
    except LogError as error:
        raise UsageError(
            f"{side.role} cannot be calibrated: {error.message}",
            where=side.name,
            hint=error.hint if "explore" not in error.hint else "give it more time: --budget",
        ) from error


def _steady(run: Run) -> Run:
    """Return a run without the rounds that were disturbed, if enough others are left."""
    every = [window for part in run.parts for window in part.windows]
    good = {
        phase: sum(1 for w in every if w.phase == phase and not w.flaw) for phase in {w.phase for w in every}
    }
    parts = tuple(
        replace(
            part,
            info=msgspec.structs.replace(
                part.info,
                windows=[w for w in part.windows if not w.flaw or good[w.phase] < 2 * MIN_ROUNDS],
            ),
        )
        for part in run.parts
    )
    parts = tuple(part for part in parts if part.windows)
    return replace(
        run, parts=parts, info=msgspec.structs.replace(run.info, parts=[part.info for part in parts])
    )


def by_starts(
    version_of: Mapping[Path, str], *, count: int = REPLICATES, seed: int = 0
) -> Callable[[Observed], tuple[FloatArray, ...]]:
    """Return what draws the starts of each version anew.

    Args:
        version_of: Version of each folder of logs.
        count: How many draws.
        seed: Of the draws.

    Returns:
        A function that returns weights of windows, one array per draw. With fewer than three starts of a
        version it draws their rounds, of each phase by itself.
    """

    def draw(observed: Observed) -> tuple[FloatArray, ...]:
        groups: dict[object, dict[object, list[int]]] = {}
        starts = {
            version: len({p.path for p in observed.parts if version_of[p.path] == version})
            for version in version_of.values()
        }
        for number, (window, part) in enumerate(zip(observed.windows, observed.parts, strict=True)):
            version = version_of[part.path]
            if starts[version] >= FEWEST_STARTS:
                groups.setdefault(version, {}).setdefault(part.path, []).append(number)
            else:
                groups.setdefault((version, window.phase), {})[number] = [number]
        generator = np.random.default_rng(seed)
        return tuple(_weights(groups, len(observed.windows), generator) for _ in range(count))

    return draw


def _weights(
    groups: Mapping[object, Mapping[object, Sequence[int]]], windows: int, generator: np.random.Generator
) -> FloatArray:
    """Return how often each window was drawn; stretched, for a resample of n varies less than n do."""
    weights = np.zeros(windows)
    for units in groups.values():
        size = len(units)
        drawn = generator.multinomial(size, np.full(size, 1 / size)).astype(float)
        stretch = np.sqrt(size / (size - 1)) if size > 1 else 1.0
        for members, often in zip(units.values(), drawn, strict=True):
            weights[list(members)] = max(0.0, 1.0 + stretch * (often - 1.0))
    return weights
