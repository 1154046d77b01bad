"""Advice on what to measure next to narrow a prediction interval.

The largest part of the variance says what kind of measurement. If it is calibration error, the replicates say
which number: for each entry the work it causes per cycle is computed in every replicate, as if only this
entry's demands (or delays, or probabilities, or counts) had changed; what varies together with the
simulated response times carries the error. Work in seconds per cycle is to first order what a response time
is made of, so these covariances add up and can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mup.lqn.lowered import Graph, check_graph, is_awaited, onward, requests_of
from mup.lqn.model import Entry, Model
from mup.lqn.refs import EntryRef, Names
from mup.lqn.uncertainty import Replicate, apply
from mup.lqn.visits import EntryKey, entry_rates
from mup.statistics.student import t_quantile
from simulator.figures.result import Result
from simulator.studies.calibration_spread import SpeedEffect, Spread

__all__ = ["KINDS", "Advice", "Suspect", "advise", "suspects"]

KINDS: Final = {
    "demands": "demand",
    "delays": "delay",
    "fronts": "front",
    "probabilities": "path probabilities",
    "counts": "loop count",
}

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Advice:
    """What narrows an interval most.

    Attributes:
        part: The largest part of the variance; "" if nothing varies.
        text: What to do about it, one line.
    """

    part: str
    text: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """One kind of number of one entry (or front) that calibration found.

    Attributes:
        label: The entry, or the task of a front.
        kind: A field of ``mup.lqn.uncertainty.Replicate``.
        effects: By how many seconds of work per cycle each replicate differs from the model.
        amount: Seconds of work per cycle that these numbers stand for.
        freedom: Degrees of freedom of the effects.
    """

    label: str
    kind: str
    effects: FloatArray
    amount: float
    freedom: int

    def __str__(self) -> str:
        known = math.inf
        if self.amount > 0:
            known = t_quantile(self.freedom) * float(self.effects.std(ddof=1)) / self.amount
        what = KINDS[self.kind]
        if self.kind in ("probabilities", "counts"):
            return f"{self.label} ({what}: its mean time is known to +- {_percentage(known)})"
        return f"{self.label} ({what} known to +- {_percentage(known)})"


def _percentage(part: float) -> str:
    """Return a part without an exponent; beyond a hundred percent as good as nothing is known."""
    return "over 100 %" if part > 1 else f"{100 * part:.2g} %" if part < 0.1 else f"{100 * part:.0f} %"


def suspects(model: Model) -> list[Suspect]:
    """Return what the replicates of a model change, by entry and kind."""
    if model.uncertainty is None or not model.uncertainty.replicates:
        return []
    work = _Work(model)
    replicates = model.uncertainty.replicates
    names = Names(model.tasks)
    found: dict[tuple[EntryRef | str, str], FloatArray] = {}
    for kind in KINDS:
        for number, replicate in enumerate(replicates):
            changed = getattr(replicate, kind)
            if changed:
                for of, effect in work.effects(Replicate(**{kind: changed})).items():
                    row = found.setdefault((of, kind), np.zeros(len(replicates)))
                    row[number] = effect
    freedom = model.uncertainty.freedom
    return [
        Suspect(of if isinstance(of, str) else names.entries[of], kind, row, work.amount(of, kind), freedom)
        for (of, kind), row in found.items()
    ]


class _Work:
    """Mean work per cycle of all sources together: processor time and delays, think times left out."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._entries = {(t.name, e.name): e for t in model.tasks for e in t.entries}
        self._rates: dict[EntryKey, float] = {}
        for rates in entry_rates(model).values():
            for key, rate in rates.items():
                self._rates[key] = self._rates.get(key, 0.0) + rate
        self._costs: dict[EntryKey, float] = {}

    def effects(self, replicate: Replicate) -> dict[EntryRef | str, float]:
        """Return by how much work each entry, or the front of a task, makes a cycle longer.

        Callees stay as they are.
        """
        changed = apply(self._model, replicate)
        found: dict[EntryRef | str, float] = {}
        for old, new in zip(self._model.tasks, changed.tasks, strict=True):
            if new is old:
                continue
            if new.front is not old.front:
                found[old.name] = self._front(new.name, changed) - self._front(old.name, self._model)
            for before, after in zip(old.entries, new.entries, strict=True):
                rate = self._rates.get((old.name, before.name), 0.0)
                if after is not before and rate > 0:
                    effect = rate * (self._own(after) - self._own(before))
                    found[EntryRef(old.name, before.name)] = effect
        return found

    def amount(self, of: EntryRef | str, kind: str) -> float:
        """Return the work per cycle that one kind of numbers of an entry, or a front, stands for."""
        if isinstance(of, str):
            return self._front(of, self._model)
        rate, entry = self._rates.get(of, 0.0), self._entries[of]
        if kind in ("demands", "delays"):
            return rate * self._own(entry, calls=False, only=kind)
        return rate * self._own(entry)

    def _front(self, task: str, model: Model) -> float:
        front = model.task(task).front
        requests = math.fsum(rate for (name, _), rate in self._rates.items() if name == task)
        times = () if front is None else (front.request, front.reply)
        return requests * math.fsum(time.mean for time in times if time is not None)

    def _own(self, entry: Entry, *, calls: bool = True, only: str = "") -> float:
        """Return the work of one request, with that of the calls it waits for."""
        graph = Graph(entry)
        check_graph(graph)
        total = 0.0
        for activity in entry.activities:
            often = graph.visits.get(activity.name, 0.0)
            if often == 0:
                continue
            if activity.demand is not None and only != "delays":
                total += often * activity.demand.mean
            if activity.delay is not None and only != "demands" and activity.kind != "think":
                total += often * activity.delay.mean
            if calls:
                for request in requests_of(activity):
                    call = request.call
                    if is_awaited(call.kind):
                        total += often * request.count.mean * self._cost((call.task, call.entry))
        if calls:
            total += math.fsum(f.probability * self._cost((f.task, f.entry)) for f in onward(entry))
        return total

    def _cost(self, key: EntryKey) -> float:
        if key not in self._costs:
            self._costs[key] = 0.0  # who comes here again on a cycle adds nothing
            self._costs[key] = self._own(self._entries[key])
        return self._costs[key]


def advise(
    variances: Mapping[str, float],
    result: Result,
    run_seconds: float,
    run_repeats: int,
    spread: Spread | None,
    known: Sequence[Suspect],
    speed: SpeedEffect | None = None,
) -> Advice:
    """Return what to measure next.

    Args:
        variances: Of the parts of the mean response time.
        result: Of the scenario.
        run_seconds: Length of the real run.
        run_repeats: How many of it.
        spread: What calibration error does to the scenario.
        known: The ``suspects`` of the model.
        speed: What the speeds of its machine do to the scenario.
    """
    total = math.fsum(variances.values())
    if total == 0:
        return Advice("", "nothing varies")
    part = max(variances, key=lambda name: variances[name])
    rest = total - variances[part]
    if part == "calibration":
        return Advice(part, _explore(spread, known))
    if part == "simulation":
        factor = min(0.5, max(0.1, math.sqrt(rest / (SMALL * variances[part]))))
        return Advice(part, f"simulate longer: --precision {_rounded(result.precision.reached * factor)}")
    if part == "measurement":
        factor = min(MAX_LONGER, max(2.0, 3 * variances[part] / rest if rest > 0 else 4.0))
        if result.replications > 1:
            factor = math.ceil(factor)
        narrower = math.sqrt((rest + variances[part] / factor) / total)
        if result.replications > 1:
            return Advice(
                part,
                "measure more often: clients keep the rhythm in which they begin, which a longer run does not"
                f" change; {run_repeats * factor:g} runs of {run_seconds:g} s (--repeats) have an interval"
                f" {100 * (1 - narrower):.0f} % narrower",
            )
        each = f" ({run_repeats} times)" if run_repeats > 1 else ""
        return Advice(
            part,
            f"measure longer: runs of {_rounded(run_seconds * factor)} s{each} instead of {run_seconds:g} s"
            f" have an interval {100 * (1 - narrower):.0f} % narrower",
        )
    if speed is not None and part == "machine_speed":
        return Advice(part, _steadier(speed))
    return Advice(
        part, "compare with reality: the model's own error dominates; run 'mup validate' on this system"
    )


def _steadier(speed: SpeedEffect) -> str:
    if speed.machine.reach:
        return "ask about a narrower range of speeds"
    if speed.machine.probed:
        return (
            "the machine changes after it has been probed: a longer run (--duration) meets more of its"
            " average, a steadier machine has narrower intervals"
        )
    return (
        "'mup whatif --machine-speed now' predicts for the machine as it is; a steadier machine, or one with"
        " a history of its own, has narrower intervals"
    )


SMALL: Final = 10.0
"""By what factor the variance of the simulation should be below the rest."""
MAX_LONGER: Final = 10.0
"""A run ten times as long is the most that is worth advising."""


def _explore(spread: Spread | None, known: Sequence[Suspect]) -> str:
    if spread is None or not known:
        return "explore longer"
    times = np.array(spread.response_times)
    times -= times.mean()
    blamed = max(known, key=lambda s: float(s.effects[list(spread.kept)] @ times))
    if float(blamed.effects[list(spread.kept)] @ times) <= 0:
        return "explore longer"
    return f"explore longer: {blamed}"


def _rounded(value: float) -> str:
    """Return a number with two digits, without an exponent."""
    digits = max(0, 1 - math.floor(math.log10(value)))
    scale = 10.0 ** math.floor(math.log10(value) - 1)
    return f"{round(value / scale) * scale:.{digits}f}"
