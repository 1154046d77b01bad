"""Figures from the counts of a run: warm-up, batch means, intervals, percentiles.

Warm-up deletion: MSER-5 (``mup.statistics.series``). Intervals: batch means of ratios of two sums, with
Student's t (``mup.statistics.batches``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mup.errors import SimulationError
from mup.statistics.batches import ratio_of_sums, residuals
from mup.statistics.controls import UNCONTROLLED, Controls, choose_controls
from mup.statistics.series import lag1, mser5
from simulator.figures.controls import known_sums
from simulator.figures.result import (
    ActivityResult,
    CallResult,
    ControlVariates,
    CycleResult,
    EntryResult,
    Figure,
    JoinResult,
    ProcessorResult,
    ReplicaResult,
    ResponseTime,
    TaskResult,
)
from simulator.machine.recording import AREA, COMPLETED_TIME, LEFT, Bins, FloatArray, Layout, Samples
from simulator.program import GIVE_BACK, Program, processor_servers

IntArray = npt.NDArray[np.int64]

__all__ = ["Window", "open_window", "ratio"]

BATCHES = (40, 32, 25, 20)
"""Numbers of batches to try: the first whose batches look independent, or else the last."""

COMING = 2
"""So many cycles without any waiting are warm-up at least where control variates are used."""


def ratio(numerator: FloatArray, denominator: FloatArray) -> Figure:
    """Estimate the ratio of two sums from their batches; the denominators must not sum to 0."""
    return Figure(*ratio_of_sums(numerator, denominator))


@dataclass(frozen=True)
class Window:
    """The measured part of a run: after the warm-up, cut into batches of equal length.

    Attributes:
        begin, end: Simulated seconds.
        sums: Differences of the snapshot columns per batch, shape (batches, columns).
        independent: The batches of cycle response time and throughput show no correlation to speak of.
        warmed_up: The warm-up ended well before half of the run.
        controls: Control variates that every figure is estimated with.
        control_names: What they are.
        replicated: Every batch is a run with a beginning of its own.
    """

    program: Program
    layout: Layout
    begin: float
    end: float
    sums: FloatArray
    independent: bool
    warmed_up: bool
    controls: Controls = UNCONTROLLED
    control_names: tuple[str, ...] = ()
    replicated: bool = False

    @property
    def batch_seconds(self) -> FloatArray:
        """The length of every batch."""
        return np.full(len(self.sums), (self.end - self.begin) / len(self.sums))

    def cycle_sums(self, offset: int) -> FloatArray:
        """Per batch: cycles (0), their response times (1) or cycle times (2), of all clients."""
        columns = [self.layout.cycles(p) + offset for p in range(len(self.program.populations))]
        result: FloatArray = self.sums[:, columns].sum(axis=1)
        return result

    def ratio(self, numerator: FloatArray, denominator: FloatArray) -> Figure:
        """Estimate the ratio of two sums from their batches; the denominators must not sum to 0."""
        plain = ratio(numerator, denominator)
        if not self.controls.chosen:
            return plain
        return Figure(*self.controls.ratio_of_sums(numerator, denominator), uncontrolled=plain.ci95)

    def gained(self) -> ControlVariates:
        """Return what the control variates have done for the figures that end a run."""
        cycles = self.cycle_sums(0)
        throughput, response = self.ratio(cycles, self.batch_seconds), self.ratio(self.cycle_sums(1), cycles)
        return ControlVariates(self.control_names, throughput.variance_ratio, response.variance_ratio)

    def rate(self, *columns: int, divisor: float = 1.0) -> Figure:
        """Return the growth of some columns per second, divided by a constant."""
        return self.ratio(self.sums[:, columns].sum(axis=1), self.batch_seconds * divisor)

    def mean(self, total: int, count: int) -> Figure | None:
        """Return the ratio of two columns; None if nothing was counted."""
        if not self.sums[:, count].any():
            return None
        return self.ratio(self.sums[:, total], self.sums[:, count])

    def precision(self) -> float:
        """Return the larger relative half-width of cycle response time and throughput.

        Where response times do not vary, as in sources that only send messages, controls may know the
        throughput exactly and nothing else: then it counts as it is without them.
        """
        cycles = self.cycle_sums(0)
        if not cycles.any():
            return math.inf
        throughput, response = self.ratio(cycles, self.batch_seconds), self.ratio(self.cycle_sums(1), cycles)
        if response.ci95 == 0:
            throughput = ratio(cycles, self.batch_seconds)
        return max(throughput.relative, response.relative)

    def precision_of_chance(self) -> float:
        """Return the same without control variates."""
        return replace(self, controls=UNCONTROLLED).precision()

    def cycle(self, samples: list[Samples]) -> CycleResult:
        """Return the figures of all cycles together, of clients and of arrivals.

        Raises:
            SimulationError: No cycle was completed.
        """
        cycles = self.cycle_sums(0)
        response = self.response(self.cycle_sums(1), cycles, samples)
        if response is None:
            raise SimulationError(
                f"no cycle was completed between {self.begin:g} and {self.end:g} simulated seconds",
                where=self.program.name,
                hint="simulate longer",
            )
        return CycleResult(
            throughput=self.ratio(cycles, self.batch_seconds),
            response_time=response,
            cycle_time=self.ratio(self.cycle_sums(2), cycles),
        )

    def tasks(self, samples: list[Samples]) -> dict[str, TaskResult]:
        """Return the figures of every task."""
        result: dict[str, TaskResult] = {}
        populations = {p.task: i for i, p in enumerate(self.program.populations)}
        answered: list[list[int]] = [[] for _ in self.program.tasks]
        for index, entry in enumerate(self.program.entries):
            if entry.token not in GIVE_BACK:  # what counts is how often a semaphore or lock is acquired
                answered[entry.task].append(self.layout.inside(index) + LEFT)
        setups = self.setups()
        for index, task in enumerate(self.program.tasks):
            if index in populations:
                result[task.name] = self.population(populations[index], samples, setups.get(index))
                continue
            places = self.layout.places_of[index]
            threads = task.threads * task.replicas
            busy = [self.layout.busy(p) + AREA for p in places]
            result[task.name] = TaskResult(
                throughput=self.rate(*answered[index]),
                utilization=None if threads == math.inf else self.rate(*busy, divisor=threads),
                busy=self.rate(*busy),
                queue=self.rate(*(self.layout.waiting(p) + AREA for p in places)),
                setup=self.setup(setups.get(index), self.sums[:, answered[index]].sum(axis=1)),
                replicas=tuple(self.replica(p, task.threads) for p in places) if len(places) > 1 else (),
            )
        return result

    def setups(self) -> dict[int, list[int]]:
        """Return, of every task that has a set-up, the columns with the seconds that it added."""
        result: dict[int, list[int]] = {i: [] for i, task in enumerate(self.program.tasks) if task.sleep >= 0}
        for index, setup in enumerate(self.program.setups):
            task = self.program.sleeps[setup.sleep].task
            if task in result and not setup.pause:
                result[task].append(self.layout.setup(index) + 1)
        return result

    def setup(self, columns: list[int] | None, requests: FloatArray) -> Figure | None:
        """Return the processor time that sleep added to a request of a task; None if it has no set-up."""
        if columns is None or not requests.any():
            return None
        return self.ratio(self.sums[:, columns].sum(axis=1), requests)

    def replica(self, place: int, threads: float) -> ReplicaResult:
        """Return the figures of one replica."""
        busy = self.layout.busy(place) + AREA
        return ReplicaResult(
            utilization=None if threads == math.inf else self.rate(busy, divisor=threads),
            busy=self.rate(busy),
            queue=self.rate(self.layout.waiting(place) + AREA),
        )

    def population(self, index: int, samples: list[Samples], setups: list[int] | None) -> TaskResult:
        """Return the figures of one reference task."""
        at = self.layout.cycles(index)
        population = self.program.populations[index]
        present = population.clients * self.batch_seconds
        if population.is_open:
            present = self.sums[:, self.layout.inside(population.entry) + AREA]
        thinking = self.sums[:, self.layout.thinking(index) + AREA]
        cycles, responses, durations = (self.sums[:, at + i] for i in range(3))
        response = self.response(responses, cycles, [samples[index]])
        return TaskResult(
            throughput=self.rate(at),
            utilization=None,
            busy=self.ratio(present - thinking, self.batch_seconds),
            queue=None,
            setup=self.setup(setups, cycles),
            response_time=response,
            cycle_time=None if response is None else self.ratio(durations, cycles),
        )

    def entries(self, samples: list[Samples]) -> dict[str, EntryResult]:
        """Return the figures of every entry that can be called."""
        result = {}
        clients = {p.task for p in self.program.populations}
        for index, entry in enumerate(self.program.entries):
            if entry.task in clients:
                continue
            inside = self.layout.inside(index)
            answered = self.sums[:, inside + LEFT]
            response = self.response(self.sums[:, inside + COMPLETED_TIME], answered, [samples[index]])
            result[entry.label] = EntryResult(throughput=self.rate(inside + LEFT), response_time=response)
        return result

    def processors(self) -> dict[str, ProcessorResult]:
        """Return the figures of every processor that can be full."""
        return {
            server.name: ProcessorResult(
                utilization=self.rate(
                    *(self.layout.server(i) for i in indices), divisor=server.cores * len(indices)
                ),
                cores=int(server.cores) * len(indices),
            )
            for server, indices in processor_servers(self.program)
            if server.cores < math.inf
        }

    def calls(self) -> dict[str, CallResult]:
        """Return the figures of every call site; those of the same label are counted together."""
        columns: dict[str, list[int]] = {}
        for index, site in enumerate(self.program.sites):
            columns.setdefault(site.label, []).append(self.layout.site(index))
        result = {}
        for label, first in columns.items():
            requests = self.sums[:, first].sum(axis=1)
            waited = self.sums[:, [c + 1 for c in first]].sum(axis=1)
            waiting = self.ratio(waited, requests) if requests.any() else None
            result[label] = CallResult(throughput=self.ratio(requests, self.batch_seconds), waiting=waiting)
        return result

    def joins(self) -> dict[str, JoinResult]:
        """Return the figures of every join."""
        return {
            join.label: JoinResult(
                throughput=self.rate(self.layout.join(index)),
                delay=self.mean(self.layout.join(index) + 1, self.layout.join(index)),
            )
            for index, join in enumerate(self.program.joins)
            if join.timer >= 0
        }

    def activities(self) -> dict[str, ActivityResult]:
        """Return the figures of every timed activity."""
        result = {}
        for index, activity in enumerate(self.program.activities):
            at = self.layout.activity(index)
            result[activity.label] = ActivityResult(
                throughput=self.rate(at),
                service_time=self.mean(at + 1, at),
                processor_waiting=self.mean(at + 2, at),
            )
        return result

    def response(self, times: FloatArray, counts: FloatArray, samples: list[Samples]) -> ResponseTime | None:
        """Return a mean time with percentiles; None if nothing completed."""
        ends, values = merged(samples)
        inside = (ends >= self.begin) & (ends < self.end)
        ends, values = ends[inside], values[inside]
        if not counts.any() or not len(values):
            return None
        mean = self.ratio(times, counts)
        batch = ((ends - self.begin) * (len(self.sums) / (self.end - self.begin))).astype(np.int64)
        batch = np.minimum(batch, len(self.sums) - 1)
        levels = (0.5, 0.9, 0.95, 0.99)
        ordered = np.sort(values)
        p50, p90, p95, p99 = (self.percentile(values, ordered, batch, level) for level in levels)
        return ResponseTime(
            mean.mean, mean.ci95, p50, p90, p95, p99, float(values.std()), uncontrolled=mean.uncontrolled
        )

    def percentile(self, values: FloatArray, ordered: FloatArray, batch: IntArray, level: float) -> Figure:
        """Return a percentile; its interval comes from how the share of values below it varies.

        The share has a mean and an interval like any ratio; the percentiles at the two ends of that
        interval bound this one. So batches need not be large enough to have a percentile of their own. Where
        control variates move the share, the percentile is that of a level moved as far the other way.

        Args:
            values: Single times, in seconds.
            ordered: The same, ascending.
            batch: In which batch each of them ended.
            level: Between 0 and 1.
        """
        point = _quantile(ordered, level)
        count = np.bincount(batch, minlength=len(self.sums)).astype(np.float64)
        below = np.bincount(batch[values <= point], minlength=len(self.sums)).astype(np.float64)
        share = self.ratio(below, count)
        if share.uncontrolled is None:
            of_runs = _spread_of_quantiles(values, batch, level) if self.replicated else None
            return Figure(point, _reach(ordered, level, share.ci95), of_runs=of_runs)
        level = min(1.0, max(0.0, level + float(below.sum() / count.sum()) - share.mean))
        return Figure(
            _quantile(ordered, level),
            _reach(ordered, level, share.ci95),
            uncontrolled=_reach(ordered, level, share.uncontrolled),
        )


def _spread_of_quantiles(values: FloatArray, batch: IntArray, level: float) -> float | None:
    """Return the standard deviation of the logarithms of all batches' quantiles; None if one of them is 0."""
    order = np.lexsort((values, batch))
    counts = np.bincount(batch)
    counts = counts[counts > 0]
    first = np.cumsum(counts) - counts
    quantiles = values[order][first + np.rint(level * (counts - 1)).astype(np.int64)]
    if len(quantiles) < 2 or not (quantiles > 0).all():
        return None
    return float(np.log(quantiles).std(ddof=1))


def _reach(ordered: FloatArray, level: float, half: float) -> float:
    """Return how far the percentile of a level may be off if its share may be by ``half``."""
    point = _quantile(ordered, level)
    low, high = _quantile(ordered, max(0.0, level - half)), _quantile(ordered, min(1.0, level + half))
    return max(high - point, point - low)


def _quantile(ordered: FloatArray, level: float) -> float:
    """Return what numpy calls the linear quantile, of values that are in order already."""
    place = (len(ordered) - 1) * level
    at = min(int(place), len(ordered) - 1)
    low, high = float(ordered[at]), float(ordered[min(at + 1, len(ordered) - 1)])
    beyond = place - at
    return low + (high - low) * beyond if beyond < 0.5 else high - (high - low) * (1 - beyond)


def merged(samples: list[Samples]) -> tuple[FloatArray, FloatArray]:
    """Return the ends and values of several sets of samples, all thinned out to the same share."""
    share = max(s.mask for s in samples)
    parts = [s.unordered(share) for s in samples]
    return np.concatenate([ends for ends, _ in parts]), np.concatenate([values for _, values in parts])


def open_window(program: Program, layout: Layout, bins: Bins, *, controlled: bool = False) -> Window:
    """Delete the warm-up and cut the rest into batches.

    Args:
        program: What ran.
        layout: Of the columns of the bins.
        bins: What was counted.
        controlled: Use control variates where there are any.

    Raises:
        SimulationError: The run is too short for that.
    """
    rows = bins.rows
    if len(rows) < BATCHES[-1]:
        raise SimulationError(
            f"{bins.end:g} simulated seconds are too short to say anything about",
            where=program.name,
            hint="simulate longer",
        )
    columns = [layout.cycles(p) for p in range(len(program.populations))]
    cycles = rows[:, columns].sum(axis=1)
    times = rows[:, [c + 1 for c in columns]].sum(axis=1)
    series = np.divide(times, cycles, out=np.full(len(cycles), np.nan), where=cycles > 0)
    warmup = mser5(series)
    if controlled:
        # Clients who are just coming do not think as long as they will: that is no matter of chance.
        coming = max((p.nominal.total for p in program.populations if not p.is_open), default=0.0)
        warmup = max(warmup, math.ceil(COMING * coming / bins.width))
    warmed_up = warmup < 0.45 * len(rows)
    warmup = min(warmup, len(rows) - BATCHES[-1])
    independent = False
    begin, count, size = 0.0, 0, 0
    controls, names = UNCONTROLLED, tuple[str, ...]()
    for count in BATCHES:
        if len(rows) - warmup < count:
            continue
        size = (len(rows) - warmup) // count
        begin = (len(rows) - size * count) * bins.width
        seconds = np.full(count, (bins.end - begin) / count)
        # Only of the columns that decide.
        counts, responses = (
            _in_batches(rows, count, size, [c + offset for c in columns]).sum(axis=1) for offset in (0, 1)
        )
        noise = [residuals(counts, seconds), residuals(responses, counts)]
        if controlled:
            sums = _in_batches(rows, count, size, slice(None))
            known = known_sums(program, layout, sums, float(seconds[0]))
            controls = choose_controls(np.column_stack(noise), known.columns)
            names = tuple(known.names[number] for number in controls.chosen)
            noise = [controls.residuals(rest) for rest in noise]
        independent = max(map(lag1, noise)) <= 1.96 / math.sqrt(count)
        if independent:
            break
    sums = _in_batches(rows, count, size, slice(None))
    return Window(program, layout, begin, bins.end, sums, independent, warmed_up, controls, names)


def _in_batches(rows: FloatArray, count: int, size: int, columns: slice | list[int]) -> FloatArray:
    """Return the sums of some columns over the last bins, so many of them to a batch.

    Where a bin is a batch, these are the bins themselves: of big models, there is no room for a copy.
    """
    last = rows[len(rows) - size * count :, columns]
    if size == 1:
        return last
    result: FloatArray = last.reshape(count, size, -1).sum(axis=1)
    return result
