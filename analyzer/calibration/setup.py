"""Set-up cost of work after sleep, and what remains of work where nothing slept.

Processor time per request is the smallest where work is waiting, and grows with how long the worker had
slept: by the same curve for everything on a machine (caches and predictors forget, whatever they knew), by
another amount for each activity. So there is one *shape* per run, from all segments of local work of which
single requests are known, and an amount per activity. Times without sleep, and the amounts, are lines through
the means of the phases of the run: hot rounds with short sleeps, cold ones with long ones, bursts with both.
Framework work is known per round only; as all of a phase together is what counts, that is enough.

What rounds do not show is not guessed: below the shortest sleep seen costs are those at that one, beyond the
longest those at that one. Where sleep does not explain how phases differ, or the run cannot tell, times
depend on the rate of requests instead (``analyzer.calibration.load_dependence``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzer.calibration.observed import FloatArray, Observed, Sample
from analyzer.calibration.sleeping import Sleeps
from analyzer.calibration.terms import Key, Kind, Term

__all__ = ["Line", "Place", "Setups", "Shape", "fit_shape", "line"]

APART = 0.2
"""Of the shape, by which phases must differ on average: on less a line has nothing to stand on."""
EXPLAINED = 0.5
"""Of a difference between phases, the part that sleep has to explain at least."""
SURE = 2.5
"""Standard errors by which work has to depend on sleep within phases."""
SCATTERED = 0.5
"""Sum of squares of the shares within phases that a line through them needs at least."""
FEWEST = 20
"""Sleeps per knot of the shape."""
PER_DECADE = 4
"""Knots of the shape, at most."""
SHORTEST = 1e-4
"""Seconds of sleep below which all are alike: a message between two processes takes that long."""
ITERATIONS = 30
LEAST = 1e-6
"""Seconds below which a set-up is not worth a number."""

Place = tuple[str, str]
"""Whose sleep: ``("entry", "A/epA/")``, ``("front", "A")``, ``("database", "db")``."""


@dataclass(frozen=True, slots=True)
class Shape:
    """By how much of its amount a set-up has grown after a sleep.

    Attributes:
        gaps: Seconds, ascending.
        shares: 0 at the first gap, 1 at the last one, never falling; linear in the logarithm in between.
    """

    gaps: tuple[float, ...]
    shares: tuple[float, ...]

    def at(self, gaps: FloatArray) -> FloatArray:
        """Return the shares at some gaps in seconds; 0 where nothing slept."""
        known = np.maximum(gaps, self.gaps[0])
        return np.interp(np.log(known), np.log(self.gaps), self.shares)


@dataclass(frozen=True, slots=True)
class Line:
    """A time without sleep, and what is on top after a long one; seconds."""

    base: float
    amount: float

    def at(self, share: float) -> float:
        """Return the time at a share of the shape."""
        return self.base + self.amount * share


def fit_shape(groups: Iterable[tuple[FloatArray, FloatArray]]) -> Shape | None:
    """Return the curve that explains best how times grow with sleep; None if they do not.

    Every group has a time of its own without sleep and an amount of its own on top, and counts by how sure
    both are (alternating least squares; the shares are made to never fall by pooling neighbours).

    Args:
        groups: Sleeps and times of each kind of work, seconds.
    """
    usable = [(gaps, times) for gaps, times in groups if len(gaps) >= FEWEST]
    if not usable:
        return None
    everything = np.concatenate([gaps for gaps, _ in usable])
    knots, edges = _knots(np.maximum(everything[everything > 0], SHORTEST))
    if len(knots) < 2:
        return None
    counts, means, weights = [], [], []
    for gaps, times in usable:
        place = np.searchsorted(edges, gaps, side="right").clip(max=len(knots) - 1)
        number = np.bincount(place, minlength=len(knots)).astype(float)
        total = np.bincount(place, weights=times, minlength=len(knots))
        mean = np.divide(total, number, out=np.zeros(len(knots)), where=number > 0)
        spread = float(np.mean((times - mean[place]) ** 2))
        counts.append(number)
        means.append(mean)
        weights.append(1 / max(spread, LEAST**2))
    shares = np.linspace(0.0, 1.0, len(knots))
    for _ in range(ITERATIONS):
        above, below = np.zeros(len(knots)), np.zeros(len(knots))
        for number, mean, weight in zip(counts, means, weights, strict=True):
            base, amount = _regression(shares, mean, number)
            if amount > 0:
                above += weight * number * amount * (mean - base)
                below += weight * number * amount**2
        if not below.any():
            return None
        wanted = np.divide(above, below, out=shares.copy(), where=below > 0)
        rising = _rising(wanted, np.maximum(below, below.max() * 1e-9))
        if rising[-1] - rising[0] <= 0:
            return None
        shares = (rising - rising[0]) / (rising[-1] - rising[0])
    return _plain(knots, shares)


def _knots(gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots with enough sleeps around each, and the borders between them."""
    steps = np.floor(np.log10(gaps) * PER_DECADE).astype(int) if len(gaps) else np.zeros(0, dtype=int)
    logs = np.log(gaps)
    knots: list[float] = []
    edges: list[float] = []
    pending: list[FloatArray] = []
    for step in np.unique(steps):
        pending.append(logs[steps == step])
        if sum(map(len, pending)) >= FEWEST:
            knots.append(float(np.concatenate(pending).mean()))
            edges.append(float(10 ** ((step + 1) / PER_DECADE)))
            pending = []
    if edges:
        edges.pop()  # what is left over at the end belongs to the last knot
    return np.exp(knots), np.array(edges)


def _regression(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return intercept and slope, which is at least 0, of a weighted line."""
    total = weights.sum()
    if total <= 0:
        return 0.0, 0.0
    middle, height = float(weights @ x / total), float(weights @ y / total)
    square = float(weights @ (x - middle) ** 2)
    slope = max(0.0, float(weights @ ((x - middle) * (y - height))) / square) if square > 0 else 0.0
    return height - slope * middle, slope


def _rising(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the never falling values nearest to some (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            before = blocks.pop()
            both = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / both, both, before[2] + block[2])
        blocks.append(block)
    return np.concatenate([np.full(number, value) for value, _, number in blocks])


def _plain(knots: FloatArray, shares: FloatArray) -> Shape:
    """Return the shape without knots that a line between their neighbours goes through."""
    kept = [
        i
        for i in range(len(knots))
        if i in (0, len(knots) - 1) or not (shares[i - 1] == shares[i] == shares[i + 1])
    ]
    # Where it has long stopped rising, the last knots say nothing; where it has not begun to, the first.
    low = max((i for i in kept if shares[i] <= 0), default=kept[0])
    high = min((i for i in kept if shares[i] >= 1), default=kept[-1])
    used = [i for i in kept if low <= i <= high]
    return Shape(
        tuple(float(f"{knots[i]:.4g}") for i in used), tuple(float(f"{shares[i]:.4g}") for i in used)
    )


def line(points: Sequence[tuple[float, float]]) -> Line:
    """Return the line through (share, seconds) of several phases, each of which counts the same.

    Sleep never makes work shorter: where it seems so, the first phase alone counts.
    """
    shares = np.array([share for share, _ in points])
    seconds = np.array([value for _, value in points])
    base, amount = _regression(shares, seconds, np.ones(len(points)))
    if amount <= 0 or base < 0:
        base, amount = float(seconds[0]), 0.0
    return Line(base, amount)


@dataclass(slots=True)
class Setups:
    """What sleep explains of the times of a run.

    Attributes:
        observed: The run.
        sleeps: How long each sleep was.
        loops: Services with an event loop: what a log says of executions that overlap there is not their own.
        shape: Of everything.
        shares: Per place, the share of the shape before each request.
    """

    observed: Observed
    sleeps: Sleeps
    loops: Collection[str]
    shape: Shape | None = None
    shares: dict[Place, Sample] = field(default_factory=dict)
    _lines: dict[tuple[Kind, Key], Line] = field(default_factory=dict)
    _overlapping: set[Place] = field(default_factory=set)

    def find_shape(self, times: Mapping[tuple[Kind, Key], Term], services: Collection[str]) -> None:
        """Fit the shape to all times of which single requests are known, and note the share of each request.

        Args:
            times: The terms of the model.
            services: Whose times count: a load generator with several clients is a crowd of its own.
        """
        groups = []
        several = self.observed.phase("burst")
        for (kind, key), term in times.items():
            sample = term.sample
            if kind != "demand" or key[0] not in services or not term.phased:
                continue
            if sample is None or term.computed is not None:
                continue
            pairs = [
                (self.sleeps.workers[request], value)
                for value, request, window in zip(sample.values, sample.requests, sample.windows, strict=True)
                if request in self.sleeps.workers and not (key[0] in self.loops and several[window])
            ]
            if pairs:
                both = np.array(pairs)
                groups.append((both[:, 0], both[:, 1]))
        self.shape = fit_shape(groups)
        if self.shape is None:
            return
        window_of = self.observed.window_of
        slept: dict[Place, list[tuple[float, int]]] = defaultdict(list)
        for execution in self.observed.executions:
            request = execution.request
            window = window_of[request]
            before = self.sleeps.workers.get(request)
            if execution.service in self.loops:
                self._overlapping.add(("entry", execution.endpoint))
            if before is not None:
                slept["entry", execution.endpoint].append((before, window))
            for half in self.sleeps.fronts.get(request, ()):
                slept["front", execution.service].append((half, window))
        for name, found in self.sleeps.databases.items():
            for request, before in found:
                if request in window_of:
                    slept["database", name].append((before, window_of[request]))
        for place, several_of_it in slept.items():
            sample = self.shares[place] = Sample()
            gaps = np.array([gap for gap, _ in several_of_it])
            for share, (_, window) in zip(self.shape.at(gaps).tolist(), several_of_it, strict=True):
                sample.add(share, window)

    def bend(self, places: Iterable[Place], curve: Callable[[FloatArray], FloatArray]) -> None:
        """Replace the shares at some places by other ones, as a function of those of the shape."""
        for place in places:
            before, after = self.shares[place], Sample()
            for share, window in zip(curve(np.array(before.values)).tolist(), before.windows, strict=True):
                after.add(share, window)
            self.shares[place] = after
        self._lines.clear()

    def apart(self, place: Place) -> bool:
        """Return whether the sleeps at a place differ enough between phases to tell what they cost."""
        sample = self.shares.get(place)
        if sample is None:
            return False
        phases = [self.observed.phase(name) for name in ("hot", "cold")]
        if any(sample.count(phase) < FEWEST for phase in phases):
            return False
        hot, cold = (sample.mean(phase) or 0.0 for phase in phases)
        return cold - hot >= APART

    def line(
        self, kind: Kind, key: Key, term: Term, place: Place, drawn: FloatArray | None = None
    ) -> Line | None:
        """Return what a time is without sleep and what is on top.

        Args:
            kind: Demand or delay.
            key: Of the time.
            term: Of the time.
            place: Whose sleep counts.
            drawn: How often each window counts; None = once.
        """
        if drawn is None and (kind, key) in self._lines:
            return self._lines[kind, key]
        points = self.points(kind, term, place, drawn)
        if not points:
            return None
        found = line(points)
        if drawn is None:
            self._lines[kind, key] = found
        return found

    def points(
        self, kind: Kind, term: Term, place: Place, drawn: FloatArray | None = None
    ) -> list[tuple[float, float]]:
        """Return mean share and mean seconds of a time in every phase, hot rounds first."""
        weights = np.ones(len(self.observed.windows)) if drawn is None else drawn
        steady = self.observed.single * weights
        names = ["hot", "cold"]
        # With several users a delay holds waiting for cores, and an event loop counts the work of others.
        if kind == "demand" and place not in self._overlapping:
            names.append("burst")
        points = []
        for name in names:
            phase = self.observed.phase(name) * weights
            share = self.shares[place].mean(phase)
            unseen = term.phased and term.sample is not None and term.sample.count(phase) <= 0
            seconds = None if unseen else term.mean(phase, steady)
            if share is not None and seconds is not None:
                points.append((share, seconds))
        return points

    def within(self, key: Key, term: Term) -> tuple[float, float]:
        """Return the amount of a time by what differs inside of phases, and its variance (infinite: unknown).

        What else differs between phases has no part in it.
        """
        sample, workers = term.sample, self.sleeps.workers
        if sample is None or self.shape is None:
            return 0.0, math.inf
        several = self.observed.phase("burst")
        rows = [
            (self.observed.windows[window].phase, workers[request], value)
            for value, request, window in zip(sample.values, sample.requests, sample.windows, strict=True)
            if request in workers and not (key[0] in self.loops and several[window])
        ]
        above = below = 0.0
        parts = []
        for phase in ("hot", "cold", "burst"):
            shares = self.shape.at(np.array([gap for name, gap, _ in rows if name == phase]))
            times = np.array([value for name, _, value in rows if name == phase])
            if len(times) >= FEWEST:
                shares, times = shares - shares.mean(), times - times.mean()
                above += float(shares @ times)
                below += float(shares @ shares)
                parts.append((shares, times))
        if below < SCATTERED:
            return 0.0, math.inf
        slope = above / below
        # Times vary more after long sleeps than after short ones, so no common variance will do.
        return slope, sum(float(s**2 @ (t - slope * s) ** 2) for s, t in parts) / below**2
