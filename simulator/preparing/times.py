"""What does ``at_load`` make of the times of a model, as numbers? For many models of one structure.

All activities stand one behind the other, in the order of the model; behind those of a task are the two
halves of its front. A time that was never measured counts as 0: those load gets to have been checked before.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mup.lqn.distributions import Distribution
from mup.lqn.model import (
    LOAD_DEPENDENCE_BELOW,
    LOAD_DEPENDENCE_EXPONENT,
    LoadDependence,
    Processor,
    Task,
)
from mup.lqn.refs import WorkNames
from simulator.preparing.load_dependence import LEAST, Load, at_utilization, requests_of_thread

__all__ = ["Times", "TimesAtLoad", "processors_at"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Times:
    """Means and variances of demands and delays, in seconds and seconds squared."""

    demand: FloatArray
    demand_variance: FloatArray
    delay: FloatArray
    delay_variance: FloatArray

    def pattern(self) -> bytes:
        """Return which of the times are more than 0."""
        return np.packbits(np.concatenate((self.demand > 0, self.delay > 0))).tobytes()


@dataclass(frozen=True, slots=True)
class _Extra:
    """What the load adds to some times.

    Attributes:
        places: Of the times.
        rows: Whose rate matters: twice the index of the task, and one more if it is the rate of its front.
        seconds: At each of the rates of a task, 0 beyond; shape (places, rates).
    """

    places: IntArray
    rows: IntArray
    seconds: FloatArray


class TimesAtLoad:
    """The times of models that have the same tasks, entries and activities.

    Args:
        tasks: Of one of these models.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.places: dict[tuple[str, str, str], int] = {}
        self.fronts: dict[str, int] = {}
        self._first: dict[str, int] = {}
        count = 0
        for task in tasks:
            self._first[task.name] = count
            for entry in task.entries:
                for activity in entry.activities:
                    self.places[task.name, entry.name, activity.name] = count
                    count += 1
            self.fronts[task.name] = count
            count += 2
        self._count = count
        self._load_dependence: tuple[LoadDependence | None, ...] = ()
        self._extras: tuple[_Extra, _Extra] | None = None
        self._base = self._read(tasks, Times(*(np.zeros(count) for _ in range(4))))
        self._tasks = {task.name: task for task in tasks}

    def base(self, tasks: Sequence[Task]) -> Times:
        """Return the times as the tasks have them."""
        changed = [
            task
            for task in tasks
            if task.entries is not self._tasks[task.name].entries
            or task.front is not self._tasks[task.name].front
        ]
        if not changed:
            return self._base
        known = self._base
        copy = Times(
            known.demand.copy(), known.demand_variance.copy(), known.delay.copy(), known.delay_variance.copy()
        )
        return self._read(changed, copy)

    def _read(self, tasks: Sequence[Task], times: Times) -> Times:
        for task in tasks:
            at = self._first[task.name]
            for entry in task.entries:
                for activity in entry.activities:
                    times.demand[at], times.demand_variance[at] = _moments(activity.demand)
                    times.delay[at], times.delay_variance[at] = _moments(activity.delay)
                    at += 1
            if task.front is not None:
                for k, half in enumerate((task.front.request, task.front.reply)):
                    times.demand[at + k], times.demand_variance[at + k] = _moments(half)
        return times

    def at(self, base: Times, tasks: Sequence[Task], load: Load) -> Times:
        """Return the times at a load, as ``at_load`` says, but for set-up after sleep.

        Args:
            base: What ``base`` returns for the tasks.
            tasks: Whose load dependence says how the load changes them.
            load: The load.
        """
        times = Times(
            base.demand.copy(), base.demand_variance.copy(), base.delay.copy(), base.delay_variance.copy()
        )
        demands, delays = self._added(tasks)
        weights = np.zeros((2 * len(tasks), demands.seconds.shape[1]))
        for index, task in enumerate(tasks):
            rate = load.rates.get(task.name, 0.0)
            if task.load_dependence is not None and rate > 0:
                own = requests_of_thread(task, load, rate) if task.load_dependence.by_thread else rate
                _weigh(weights[2 * index], task.load_dependence, own)
                _weigh(weights[2 * index + 1], task.load_dependence, rate)
        _lengthen(times.demand, times.demand_variance, demands, weights)
        _lengthen(times.delay, times.delay_variance, delays, weights)
        return times

    def _added(self, tasks: Sequence[Task]) -> tuple[_Extra, _Extra]:
        """Return what the load adds to demands and to delays."""
        load_dependence = tuple(task.load_dependence for task in tasks)
        same = len(load_dependence) == len(self._load_dependence) and all(
            map(operator.is_, load_dependence, self._load_dependence)
        )
        if self._extras is None or not same:
            self._load_dependence = load_dependence
            self._extras = self._extra(tasks, "demands"), self._extra(tasks, "delays")
        return self._extras

    def _extra(self, tasks: Sequence[Task], what: str) -> _Extra:
        width = max(
            (len(task.load_dependence.rates) for task in tasks if task.load_dependence is not None), default=1
        )
        found: list[tuple[int, int, tuple[float, ...]]] = []
        for index, task in enumerate(tasks):
            values: Mapping[str, tuple[float, ...]] = (
                {} if task.load_dependence is None else getattr(task.load_dependence, what)
            )
            keys = WorkNames(task.entries).texts
            for entry in task.entries:
                for activity in entry.activities:
                    key = keys[entry.name, activity.name]
                    if key in values:
                        place = self.places[task.name, entry.name, activity.name]
                        found.append((place, 2 * index, values[key]))
            if what == "demands" and "front" in values and task.front is not None:
                halves = (task.front.request, task.front.reply)
                half = tuple(v / 2 for v in values["front"])
                found += [
                    (self.fronts[task.name] + k, 2 * index + 1, half)
                    for k, time in enumerate(halves)
                    if time is not None
                ]
        seconds = np.zeros((len(found), width))
        for row, (_, _, each) in enumerate(found):
            seconds[row, : len(each)] = each
        places = np.array([place for place, _, _ in found], dtype=np.intp)
        return _Extra(places, np.array([row for _, row, _ in found], dtype=np.intp), seconds)


def processors_at(processors: Sequence[Processor], load: Load) -> tuple[Processor, ...]:
    """Return processors with their speeds at a load; those of unknown utilization are taken to be busy."""
    return tuple(at_utilization(p, load.utilization) for p in processors)


def _moments(time: Distribution | None) -> tuple[float, float]:
    return (0.0, 0.0) if time is None else (time.mean, time.variance)


def _weigh(weights: FloatArray, load_dependence: LoadDependence, rate: float) -> None:
    """Write the weights of the values at the rates of a load dependence; see ``LoadDependence.at``."""
    rates = load_dependence.rates
    known = [r**-LOAD_DEPENDENCE_EXPONENT for r in rates]
    lowest, highest = rates[0] / LOAD_DEPENDENCE_BELOW, rates[-1] * load_dependence.above
    x = min(max(rate, lowest), highest) ** -LOAD_DEPENDENCE_EXPONENT
    right = next((i for i in range(1, len(known)) if x >= known[i]), len(known) - 1)
    share = (known[right - 1] - x) / (known[right - 1] - known[right])
    weights[right - 1], weights[right] = 1 - share, share


def _lengthen(mean: FloatArray, variance: FloatArray, extra: _Extra, weights: FloatArray) -> None:
    """Give times other means; their shapes stay."""
    seconds = (extra.seconds * weights[extra.rows]).sum(axis=1)
    known = mean[extra.places]
    some = known > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(some, np.maximum(LEAST, 1 + seconds / known), 1.0)
    mean[extra.places] = np.where(some, known * factor, np.maximum(seconds, 0.0))
    variance[extra.places] *= factor**2
