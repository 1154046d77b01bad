"""Observations of a run, window by window.

Windows are the batches of everything that is calibrated: a number is a weighted sum over windows divided by a
weighted count, and drawing other weights is a bootstrap (``analyzer.calibration.bootstrap``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.calibration.executions import Execution, collect
from analyzer.calibration.overlapping import give_own_clocks
from analyzer.calibration.rundir import Part, Run, Window
from mup.lqn import Processor

__all__ = ["FloatArray", "Observed", "Sample", "idling_of", "observe"]

FloatArray = npt.NDArray[np.float64]


class Sample:
    """Values of one quantity, each with the window it was seen in, and the request it is of (0: unknown)."""

    __slots__ = ("_totals", "requests", "values", "windows")

    def __init__(self) -> None:
        self.values: list[float] = []
        self.windows: list[int] = []
        self.requests: list[int] = []
        self._totals: tuple[FloatArray, FloatArray] | None = None

    def add(self, value: float, window: int, request: int = 0) -> None:
        """Note a value."""
        self.values.append(value)
        self.windows.append(window)
        self.requests.append(request)
        self._totals = None

    def keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Forget all values but the chosen ones; one truth value per value."""
        self.values = [value for value, stays in zip(self.values, chosen, strict=True) if stays]
        self.windows = [window for window, stays in zip(self.windows, chosen, strict=True) if stays]
        self.requests = [request for request, stays in zip(self.requests, chosen, strict=True) if stays]
        self._totals = None

    def __len__(self) -> int:
        return len(self.values)

    def mean(self, weights: FloatArray) -> float | None:
        """Return the mean over windows of these weights; None if nothing was seen in any of them."""
        sums, counts = self._by_window(len(weights))
        total = float(weights @ counts)
        return float(weights @ sums) / total if total > 0 else None

    def count(self, weights: FloatArray) -> float:
        """Return the weighted number of values."""
        return float(weights @ self._by_window(len(weights))[1])

    def cv(self, weights: FloatArray, shift: float = 0.0) -> float | None:
        """Return the coefficient of variation of the values less ``shift``; None if they are 0."""
        windows = np.asarray(self.windows, dtype=np.int64)
        values = (np.asarray(self.values, dtype=float) - shift).clip(min=0.0)
        of_value = weights[windows]
        total = float(of_value.sum())
        mean = float(of_value @ values) / total if total > 0 else 0.0
        if mean <= 0:
            return None
        return math.sqrt(max(0.0, float(of_value @ values**2) / total / mean**2 - 1))

    def mean_of(self, per_window: FloatArray, weights: FloatArray) -> float | None:
        """Return the mean over the values of what is known per window; None if nothing was seen."""
        counts = weights * self._by_window(len(weights))[1]
        total = float(counts.sum())
        return float(counts @ per_window) / total if total > 0 else None

    def error(self, weights: FloatArray) -> float:
        """Return the standard error of the mean over windows of positive weight.

        The larger one of two estimates: from the means of the windows, and from the single values.
        """
        values = self.inside(weights)
        if values.size < 2:
            return float("inf")
        alone = float(values.std(ddof=1)) / math.sqrt(values.size)
        sums, counts = self._by_window(len(weights))
        seen = (weights > 0) & (counts > 0)
        batches = int(seen.sum())
        if batches < 2:
            return alone
        residuals = (sums[seen] - float(values.mean()) * counts[seen]) / counts[seen].mean()
        return max(alone, math.sqrt(float((residuals**2).sum()) / (batches - 1) / batches))

    def inside(self, weights: FloatArray) -> FloatArray:
        """Return the values seen in windows of positive weight."""
        values = np.asarray(self.values, dtype=float)
        return values[weights[np.asarray(self.windows, dtype=np.int64)] > 0]

    def _by_window(self, windows: int) -> tuple[FloatArray, FloatArray]:
        if self._totals is None:
            where = np.asarray(self.windows, dtype=np.int64)
            counts = np.bincount(where, minlength=windows).astype(np.float64)
            sums = np.bincount(where, weights=np.asarray(self.values), minlength=windows).astype(np.float64)
            self._totals = sums, counts
        return self._totals


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that happened inside the windows of a run.

    Attributes:
        windows: Of all parts; windows are known by their position here.
        parts: The part of each window.
        executions: All that began and ended inside a window.
        window_of: Position of the window of each of them, by request id.
        by_request: All executions, also those outside.
        slowness: Per window, how much longer work took than on a busy machine of the run's mean speed: the
            factor on processor times that makes up for it is ``1 / slowness``.
        speed: Mean speed over the windows, in units of ``mup.workload.speed`` per second; None if unknown.
        monitored: The same in units of ``mup.workload.speed_monitor``, as it would be on a busy machine.
        logged: The executions of each part of the run, also those outside of windows.
    """

    windows: tuple[Window, ...]
    parts: tuple[Part, ...]
    executions: tuple[Execution, ...]
    window_of: Mapping[int, int]
    by_request: Mapping[int, Execution]
    slowness: FloatArray
    speed: float | None = None
    monitored: float | None = None
    logged: tuple[tuple[Execution, ...], ...] = ()

    def phase(self, *names: str) -> FloatArray:
        """Return weights: 1 for the windows of these phases, 0 for the others."""
        return np.array([1.0 if w.phase in names else 0.0 for w in self.windows])

    @property
    def single(self) -> FloatArray:
        """Weights: 1 for the windows with one client."""
        chosen = self.phase("hot", "cold")
        return chosen if chosen.any() else np.ones(len(self.windows))

    def seconds(self, weights: FloatArray) -> float:
        """Return the weighted length of the windows."""
        return float(weights @ np.array([w.seconds for w in self.windows]))


def observe(
    run: Run, *, scaled: bool = True, host: Processor | None = None, loops: Collection[str] = ()
) -> Observed:
    """Sort the executions of a run into its windows.

    Args:
        run: With at least one window, or logs alone (older or foreign ones), which then are one window.
        scaled: Take notice of how fast the machine was in each window.
        host: The machine: says how much slower it is while mostly idle. Processor times are those it would
            have taken busy.
        loops: Services with an event loop: executions that overlap there get clocks of their own.
    """
    windows: list[Window] = []
    parts: list[Part] = []
    inside: list[Execution] = []
    window_of: dict[int, int] = {}
    by_request: dict[int, Execution] = {}
    logged: list[tuple[Execution, ...]] = []
    for part in run.parts:
        found = collect(part.logs)
        give_own_clocks(found, loops)
        logged.append(tuple(found))
        by_request.update((e.request, e) for e in found)
        mine = part.windows or ((_everything(found),) if found else ())
        first = len(windows)
        windows += mine
        parts += [part] * len(mine)
        _sort_in(found, mine, first, inside, window_of)
    idling = idling_of(windows, host)
    # A monitor sees what idling does to work, too; two speeds can be compared as those of a busy machine.
    monitored = [
        None if w.monitored is None else w.monitored * f for w, f in zip(windows, idling, strict=True)
    ]
    return Observed(
        tuple(windows),
        tuple(parts),
        tuple(inside),
        window_of,
        by_request,
        _slowness(windows, monitored, scaled=scaled) * idling,
        _mean_speed(windows, [w.speed for w in windows]),
        _mean_speed(windows, monitored),
        tuple(logged),
    )


def _everything(executions: Sequence[Execution]) -> Window:
    ends = [e.done or e.end or e.begin for e in executions]
    return Window(min(e.begin.time for e in executions), max(m.time for m in ends))


def _sort_in(
    executions: Sequence[Execution],
    windows: Sequence[Window],
    first: int,
    inside: list[Execution],
    window_of: dict[int, int],
) -> None:
    """Note which executions lie inside which window of one part."""
    order = sorted(range(len(windows)), key=lambda i: windows[i].start)
    starts = np.array([windows[i].start for i in order], dtype=np.int64)
    begins = np.array([e.begin.time for e in executions], dtype=np.int64)
    place = (np.searchsorted(starts, begins, side="right") - 1).tolist()
    for execution, at in zip(executions, place, strict=True):
        last = execution.done or execution.end
        if at >= 0 and last is not None and last.time <= windows[order[at]].end:
            inside.append(execution)
            window_of[execution.request] = first + order[at]


def idling_of(windows: Sequence[Window], host: Processor | None) -> FloatArray:
    """Return per window how much longer work took because the machine was not busy."""
    if host is None or not host.idling:
        return np.ones(len(windows))

    def utilization(window: Window) -> float:
        busy = sum(window.cpu.values()) / (window.seconds * host.cores) if window.seconds > 0 else 0.0
        return min(1.0, busy + (window.foreign or 0.0))

    return np.array([host.slowness(utilization(w)) for w in windows])


def _slowness(windows: Sequence[Window], monitored: Sequence[float | None], *, scaled: bool) -> FloatArray:
    """Return per window how much longer work took than on average.

    What a monitor saw while the window lasted counts, else the probes around it.
    """
    if not scaled:
        return np.ones(len(windows))
    for speeds in (monitored, [w.speed for w in windows]):
        mean = _mean_speed(windows, speeds)
        if mean is not None and all(speeds):
            return np.array([mean / speed for speed in speeds if speed])
    return np.ones(len(windows))


def _mean_speed(windows: Sequence[Window], speeds: Sequence[float | None]) -> float | None:
    known = [(w.seconds, speed) for w, speed in zip(windows, speeds, strict=True) if speed]
    if not known:
        return None
    # The mean time of a unit of work is what averages; speeds do not.
    return sum(seconds for seconds, _ in known) / sum(seconds / speed for seconds, speed in known)
