"""What does ``at_load`` make of the times of a model, as numbers? For many models of one structure.

All activities stand one behind the other, in the order of the model; behind those of a task are the two halves of
its front. A time that was never measured counts as 0: who is reached by load has been checked before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mup.lqn.distributions import Distribution
from mup.lqn.model import WARMTH_ABOVE, WARMTH_BELOW, WARMTH_EXPONENT, Processor, Task, Warmth
from mup.lqn.refs import WorkNames
from simulator.preparing.settling import LEAST, Load, at_utilization, requests_of_thread

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
    """What a warmth adds: places of times, and seconds at each of its rates, shape (places, rates)."""

    places: IntArray
    seconds: FloatArray


@dataclass(frozen=True, slots=True)
class _Warm:
    """The warmth of a task: its rates as they are interpolated, and what it adds."""

    warmth: Warmth
    known: FloatArray
    demands: _Extra
    delays: _Extra
    front: tuple[float, ...]


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
        self._warm: dict[str, _Warm] = {}
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
            tasks: Whose warmth says how the load changes them.
            load: The load.
        """
        times = Times(
            base.demand.copy(), base.demand_variance.copy(), base.delay.copy(), base.delay_variance.copy()
        )
        for task in tasks:
            rate = load.rates.get(task.name, 0.0)
            if task.warmth is None or rate <= 0:
                continue
            warm = self._warmth(task, task.warmth)
            weights = _weights(warm, _own_rate(task, task.warmth, load, rate))
            _lengthen(times.demand, times.demand_variance, warm.demands, weights)
            _lengthen(times.delay, times.delay_variance, warm.delays, weights)
            if warm.front and task.front is not None:
                at = self.fronts[task.name]
                seconds = np.array([warm.front, warm.front]) / 2
                halves = task.front.request, task.front.reply
                places = np.array([at + k for k, half in enumerate(halves) if half is not None], dtype=np.intp)
                extra = _Extra(places, seconds[: len(places)])
                _lengthen(times.demand, times.demand_variance, extra, _weights(warm, rate))
        return times

    def _warmth(self, task: Task, warmth: Warmth) -> _Warm:
        known = self._warm.get(task.name)
        if known is None or known.warmth is not warmth:
            known = self._warm[task.name] = _Warm(
                warmth,
                np.array([r**-WARMTH_EXPONENT for r in warmth.rates]),
                self._extra(task, warmth.demands),
                self._extra(task, warmth.delays),
                warmth.demands.get("front", ()),
            )
        return known

    def _extra(self, task: Task, values: Mapping[str, tuple[float, ...]]) -> _Extra:
        found = []
        keys = WorkNames(task.entries).texts
        for entry in task.entries:
            for activity in entry.activities:
                key = keys[entry.name, activity.name]
                if key in values:
                    found.append((self.places[task.name, entry.name, activity.name], values[key]))
        width = len(found[0][1]) if found else 0
        seconds = np.array([each for _, each in found], dtype=float).reshape(len(found), width)
        return _Extra(np.array([place for place, _ in found], dtype=np.intp), seconds)


def processors_at(processors: Sequence[Processor], load: Load) -> tuple[Processor, ...]:
    """Return processors whose speeds are those at a load; of unknown utilization they are taken to be busy."""
    return tuple(at_utilization(p, load.utilization) for p in processors)


def _moments(time: Distribution | None) -> tuple[float, float]:
    return (0.0, 0.0) if time is None else (time.mean, time.variance)


def _own_rate(task: Task, warmth: Warmth, load: Load, rate: float) -> float:
    """Return the rate of requests that matters to the work of a task, rather than to its front."""
    return requests_of_thread(task, load, rate) if warmth.by_thread else rate


def _weights(warm: _Warm, rate: float) -> FloatArray:
    """Return the weights of the values at the rates of a warmth; see ``Warmth.at``."""
    rates, known = warm.warmth.rates, warm.known
    x = min(max(rate, rates[0] / WARMTH_BELOW), rates[-1] * WARMTH_ABOVE) ** -WARMTH_EXPONENT
    right = next((i for i in range(1, len(known)) if x >= known[i]), len(known) - 1)
    share = (known[right - 1] - x) / (known[right - 1] - known[right])
    weights = np.zeros(len(known))
    weights[right - 1], weights[right] = 1 - share, share
    return weights


def _lengthen(mean: FloatArray, variance: FloatArray, extra: _Extra, weights: FloatArray) -> None:
    """Give times other means; their shapes stay."""
    if not len(extra.places):
        return
    seconds = extra.seconds @ weights
    known = mean[extra.places]
    some = known > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(some, np.maximum(LEAST, 1 + seconds / known), 1.0)
    mean[extra.places] = np.where(some, known * factor, np.maximum(seconds, 0.0))
    variance[extra.places] *= factor**2
