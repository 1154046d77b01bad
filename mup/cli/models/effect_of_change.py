"""What does a change do to response times and capacity? For ``mup compare``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.errors import MupError, UncalibratedError, UsageError

if TYPE_CHECKING:
    from analyzer.effect.paired import Effect
    from analyzer.effect.shares import Share
    from analyzer.effect.touched import Touched
    from analyzer.effect.two_models import TwoModels
    from analyzer.static.project_version import Difference, Version
    from mup.cli.models.compare_sides import Side
    from mup.cli.models.fail_conditions import Condition, Judged
    from mup.lqn.lowered import Source
    from simulator.studies.whatif import Change

__all__ = ["EffectOfChange", "Question", "effect_between"]

LEAST_BUDGET = 20.0
"""Seconds that one turn of both versions takes, roughly."""


@dataclass(frozen=True, slots=True)
class EffectOfChange:
    """What is known about the effect of a change.

    Attributes:
        load: In words.
        measured: Whether both versions were measured; else the numbers are those of the base's model.
        effect: The figures; None if nothing changed, so that every figure is what it was.
        shares: What each changed thing does.
        judged: The conditions.
        remarks: Sentences for the user.
    """

    load: str
    measured: bool
    effect: Effect | None
    shares: Sequence[Share]
    judged: Sequence[Judged]
    remarks: Sequence[str] = ()

    @property
    def fails(self) -> bool:
        """Whether a condition fails."""
        return any(one.fails for one in self.judged)

    def to_json(self) -> dict[str, Any]:
        """Return the object ``effect`` of ``mup compare --json``; times in seconds."""
        figures: dict[str, dict[str, Any]] = {}
        for key, changed in self.effect.figures.items() if self.effect is not None else ():
            figures.setdefault(key.name, {})[key.figure] = changed.to_json()
        return {
            "load": self.load,
            "measured": self.measured,
            "cycle": figures.pop("", {}),
            "endpoints": figures,
            "shares": [share.to_json() for share in self.shares],
            "conditions": [one.to_json() for one in self.judged],
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about the effect of a change.

    Attributes:
        measure: Measure both versions; else take the numbers of the base's model.
        budget: Seconds of measuring.
        conditions: Changes that are not accepted.
        load: Changes of the project's own load.
        model: File of the base's model; None = that of the project.
        seed: Of clients and simulations.
    """

    measure: bool
    budget: float
    conditions: Sequence[Condition]
    load: Sequence[Change]
    model: str | None
    seed: int

    @classmethod
    def of(
        cls,
        *,
        measure: bool,
        budget: float,
        fail_if: Sequence[str],
        clients: str | None,
        arrivals: str | None,
        model: str | None,
        seed: int,
    ) -> Question | None:
        """Return what options ask; None if it is nothing.

        Raises:
            UsageError: One is spelt wrongly, or two exclude each other.
        """
        from mup.cli.models.fail_conditions import conditions
        from mup.cli.predictions.scenario_options import axes

        given = {"clients": clients, "arrivals": arrivals}
        wanted = conditions(fail_if)
        loads = axes({kind: (text,) for kind, text in given.items() if text is not None})
        for axis in loads:
            if len(axis) > 1:
                raise UsageError(
                    f"--{axis[0].kind}: versions are compared under one load, got {len(axis)} values",
                    hint="run the command once per load",
                )
        load = [axis[0] for axis in loads]
        if not (measure or wanted or load or model):
            return None
        if measure and model:
            raise UsageError(
                "--measure and --model exclude each other: what is measured is not taken from a model",
                hint="leave one of them out",
            )
        if not math.isfinite(budget) or budget < LEAST_BUDGET:
            raise UsageError(
                "--budget: starting and measuring both versions takes at least"
                f" {LEAST_BUDGET:g} s, got {budget:g}"
            )
        return cls(measure, budget, wanted, load, model, seed)


def effect_between(
    question: Question,
    sides: tuple[Side, Side],
    versions: tuple[Version, Version],
    found: Sequence[Difference],
) -> EffectOfChange:
    """Return the effect of a change.

    Raises:
        UsageError: The versions cannot be compared, or one of them does not start.
        SimulationError: One cannot be simulated under the load.
    """
    from analyzer.effect.paired import effect
    from analyzer.effect.shares import shares
    from analyzer.effect.touched import check_same_client, touched
    from mup.cli.models.fail_conditions import check_names, judged
    from mup.lqn.lowered import sources_of

    before, after = versions
    check_same_client(before, after, found)
    names = [[e.label for e in version.application.endpoints()] for version in versions]
    check_names(question.conditions, *names)
    if not found:
        held = judged(question.conditions, None)
        remark = "nothing changed in meaning, so no figure did; nothing was measured"
        return EffectOfChange("", measured=False, effect=None, shares=(), judged=held, remarks=(remark,))
    what = touched(before, after, found)
    if question.measure:
        models, remarks = _measured(question, sides, versions, what)
    else:
        models, remarks = _predicted(question, sides[0], versions, what, found)
    one, other = models.before, models.after
    for change in question.load:
        one, other = change.apply(one), change.apply(other)
    try:
        whole = effect(one, other, freedom=models.freedom, seed=question.seed)
        parts = shares(one, other, found, what, whole, freedom=models.freedom)
    except UncalibratedError as error:
        if question.measure:
            raise
        raise UsageError(
            f"the model of BASE does not know all that HEAD does: {error.message}",
            where=error.where,
            hint="--measure starts and measures both versions",
        ) from error
    return EffectOfChange(
        load=", ".join(_load(source) for source in sources_of(one)),
        measured=question.measure,
        effect=whole,
        shares=parts,
        judged=judged(question.conditions, whole),
        remarks=(*remarks, *(f"never seen in HEAD: {text}" for text in models.unseen)),
    )


def _load(source: Source) -> str:
    if source.is_open:
        return f"{source.rate:g} arrivals/s"
    count = source.task.threads
    return f"{count:g} client{'s' if count != 1 else ''}"


def _measured(
    question: Question, sides: tuple[Side, Side], versions: tuple[Version, Version], what: Touched
) -> tuple[TwoModels, list[str]]:
    """Measure both versions; return their models, and what to say about it.

    Raises:
        UsageError: One of them does not start, or cannot be measured.
    """
    from analyzer.effect import interleaved
    from analyzer.effect.touched import stamped
    from analyzer.effect.two_models import FEWEST_STARTS, calibrate_both
    from mup.cli.models.compare_sides import in_words_of

    both = []
    for side, version in zip(sides, versions, strict=True):
        assert version.project is not None  # noqa: S101 - else the client could not be compared
        application = stamped(version.application, what.endpoints, side.role.lower())
        both.append(interleaved.Side(side.role, side.name, version.project, application))
    base, head = both
    try:
        with tempfile.TemporaryDirectory(prefix="mup-compare-runs-") as folder:
            runs = interleaved.explore_in_turns(
                base,
                head,
                Path(folder),
                budget=question.budget,
                seed=question.seed,
                on_turn=lambda text: click.echo(f"mup: {text}", err=True),
            )
            models = calibrate_both(base, head, runs, what)
    except MupError as error:
        for side in sides:
            error.message = in_words_of(side, error.message)
            error.where = in_words_of(side, error.where)
        raise
    turns = len(runs["BASE"])
    remarks = [f"measured in {turns} turn{'s' if turns > 1 else ''} of either version"]
    if turns < FEWEST_STARTS:
        remarks.append(
            f"fewer than {FEWEST_STARTS} turns: the intervals do not contain how much starts of the services"
            " differ; a larger --budget does more turns"
        )
    return models, remarks


def _predicted(
    question: Question,
    base: Side,
    versions: tuple[Version, Version],
    what: Touched,
    found: Sequence[Difference],
) -> tuple[TwoModels, list[str]]:
    """Return the base's model and what it tells of the new version, and what to say about it.

    Raises:
        UsageError: There is no model, or it is one of another version.
    """
    from analyzer.calibration.rundir import stale_in_model
    from analyzer.effect.from_model import predicted_from
    from mup.cli.models.difference_formats import place, subjects
    from mup.cli.sources import read_model_of

    name = question.model or str(base.home)
    try:
        known = read_model_of(name)
    except UsageError as error:
        raise UsageError(
            f"without --measure the numbers come from the model of BASE: {error.message}",
            where=error.where,
            hint=f"--measure needs none; or {error.hint}" if error.hint else "--measure needs none",
        ) from error
    stale = stale_in_model(known, versions[0].application)
    if stale or not known.reference_tasks:
        listed = ", ".join(sorted(stale)) or "it has no clients"
        raise UsageError(
            f"the model is not one of BASE: {listed}",
            where=name,
            hint="name that of BASE with --model, or measure both versions with --measure",
        )
    unknown = [one for one in found if one.kind == "local work"]
    remarks = [f"not known, taken as it was: {subjects(one)}: {one.text} ({place(one)})" for one in unknown]
    if any(one.kind == "calls" for one in found):
        remarks.append("the endpoint's own work for calls that came or went is taken as it was")
    return predicted_from(known, versions[1], what), ["predicted from the model of BASE", *remarks]
