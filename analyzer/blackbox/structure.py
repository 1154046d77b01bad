"""Is the target one station at all? Structures compared by their likelihood over all load steps.

What requests of a load show is told by a few statistics: how long they take, how many overtake, how much
longer those take that find others there. Every structure is simulated with the arrivals as they were; the
statistics of its replays are about normal, and the density of the measured ones is its likelihood (Wood,
"Statistical inference for noisy nonlinear ecological dynamic systems", Nature 2010: synthetic likelihood).
Parameters are those that fit best, and count against a structure as in Schwarz's criterion (BIC). Where one
station and two in series are left, the likelihoods of all departures decide between them (``series``).

Three verdicts speak against one station. *Rejected*: what was identified, with the service times as they
were inferred, hardly ever shows such statistics. *Other*: some other structure is more likely beyond chance.
*Cannot tell*: another one of another capacity is nearly as likely. Trends of service times over the loads
are in all, for the statistics of every load are compared with one and the same structure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincc

from analyzer.blackbox.alternatives import NAMES, Kind, Structure, candidates
from analyzer.blackbox.departures import served
from analyzer.blackbox.inversion import FloatArray, Trace, service_times
from analyzer.blackbox.search import least
from analyzer.blackbox.series import advantage_of_series
from analyzer.blackbox.servers import NOISE
from analyzer.blackbox.station import LoadStep, Station

__all__ = ["Verdict", "judge_structure", "statistics"]

MOST = 700
"""Requests of a step that are simulated, from its first on."""
FEWEST_STEPS = 3
REPLAYS, FITTING = 80, 5
"""With every structure at its best parameters, and while these are searched."""
EVALUATIONS = 70
FLOOR = 0.05
"""Standard deviation that is added to every statistic: no service time is Weibull, no link without noise."""
LINK = 5 * NOISE
"""Seconds by which a request may seem to leave before another one that left before it."""
BETTER = 10.0
"""Difference of the criterion from which on it is decisive (Kass and Raftery, "Bayes factors", 1995)."""
STRONG = 6.0
"""Difference of the criterion below which neither is ruled out ("strong" there)."""
DIFFERENT = 0.1
"""Relative difference of capacities that matters to who predicts."""
REJECTED = 0.001
"""Of replays as far off: their covariances are estimated from few."""
FASTER = 1.1
"""Times the largest rate of departures seen that a target may be able to do."""
LIGHT = 0.6
"""Share of the capacity below which requests hardly meet others."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the structures say.

    Attributes:
        kind: The most likely structure: ``one`` unless another one is better beyond chance.
        servers, values: Of the best candidate of that kind.
        scores: Criterion (-2 log-likelihood and what parameters cost) of the best candidate of each kind.
        p_value: How often the station that was identified shows statistics as far off.
        capacity: Requests per second that the best candidate can do.
        rival: A kind that cannot be told from one station, although its capacity is another; None = none.
    """

    kind: Kind
    servers: tuple[int, ...]
    values: tuple[float, ...]
    scores: dict[Kind, float]
    p_value: float
    capacity: float
    rival: tuple[Kind, float] | None = None

    @property
    def one(self) -> bool | None:
        """Whether it is a single station; None = that cannot be told."""
        if self.kind != "one" or self.p_value < REJECTED:
            return False
        return True if self.rival is None else None

    @property
    def text(self) -> str:
        """The finding in words."""
        if self.kind != "one":
            apart = self.scores["one"] - self.scores[self.kind]
            return (
                f"{NAMES[self.kind]} explains the responses better than one station (BIC {apart:.0f} lower; "
                f"it can do {self.capacity:.3g} requests/s)"
            )
        if self.p_value < REJECTED:
            return (
                f"one station hardly shows responses like these (p = {self.p_value:.2g}), and no other "
                "structure explains them better"
            )
        if self.rival is not None:
            kind, capacity = self.rival
            return (
                f"cannot tell one station from {NAMES[kind]} that can do {capacity:.3g} requests/s; "
                "raise --max-seconds"
            )
        return "nothing speaks against one station"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "kind": self.kind,
            "name": NAMES[self.kind],
            "one_station": self.one,
            "servers": list(self.servers),
            "scores": {k: round(v, 2) for k, v in self.scores.items()},
            "p_value": self.p_value,
            "capacity": self.capacity,
            "rival": None if self.rival is None else {"kind": self.rival[0], "capacity": self.rival[1]},
        }


def judge_structure(station: Station, steps: Sequence[LoadStep], *, seed: int = 0) -> Verdict | None:
    """Compare the station that was identified with other structures.

    Args:
        station: From these steps.
        steps: Of the ramp.
        seed: Of the simulations.

    Returns:
        The verdict; None where there are too few loads to see anything change with them.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    traces = [(s.trace.arrivals[:MOST], s.trace.responses[:MOST]) for s in steps]
    measured = np.array([statistics(a, r) for a, r in traces])
    largest = max(s.rate for s in station.steps)
    loads = [s.rate / largest for s in station.steps]
    comparison = _Comparison([a for a, _ in traces], loads, measured, seed)
    own = _own_replays(station, steps, [a for a, _ in traces], seed)
    p_value = _p_value(measured, own)
    light = [r for s, (_, r) in zip(station.steps, traces, strict=True) if s.rate < LIGHT * station.capacity]
    alone = np.concatenate(light[:2] or [traces[0][1]])
    first = traces[0][1]
    # The first load has few requests; those that met hardly any others are at the lower half of all.
    mean = min(float(first.mean()), float(alone.mean()))
    # Where everything overtakes, a station seems to have any number of servers: what left says how many.
    left = max((len(a) - 1) / float((a + r).max() - a[0]) for a, r in traces)
    capacity = min(station.capacity, FASTER * left)
    found = candidates(
        mean, float(alone.std() / alone.mean()), float(np.quantile(alone, 0.1)),
        capacity, min(station.servers.count, max(1, round(2 * mean * capacity))),
    )  # fmt: skip
    scores: dict[Kind, float] = {}
    best: dict[Kind, tuple[Structure, FloatArray]] = {}
    scale = _spread(own)
    for structure in found:
        values = comparison.fitted(structure, scale)
        score = comparison.score(structure, values)
        if score < scores.get(structure.kind, math.inf):
            scores[structure.kind], best[structure.kind] = score, (structure, values)
    # The service times as inferred have no family, which costs no more than a shape does.
    scores["one"] = min(scores["one"], _criterion(measured, own, 3))
    kind = _likeliest(scores, BETTER)
    if kind in ("series", "delay") or (kind == "one" and p_value >= REJECTED):
        # Summaries hardly tell these apart; every single departure does.
        compared = advantage_of_series(station, [Trace(a, r) for a, r in traces], seed=seed)
        if compared is not None:
            advantage, series = compared
            scores["series"] = scores["one"] - advantage
            values = np.array([*series.means, series.shape])
            best["series"] = Structure("series", series.servers, (*series.means, series.shape)), values
            # This likelihood is of all requests, not of summaries: less of a difference decides.
            kind = _likeliest(scores, STRONG)
    structure, values = best[kind]
    capacities = {k: s.capacity(v.tolist()) for k, (s, v) in best.items()} | {"one": station.capacity}
    close = [
        k
        for k, score in scores.items()
        if score - scores["one"] < STRONG and abs(capacities[k] / station.capacity - 1) > DIFFERENT
    ]
    rival = min(close, key=lambda k: scores[k], default=None)
    return Verdict(
        kind,
        structure.servers,
        tuple(values.tolist()),
        scores,
        p_value,
        capacities[kind],
        None if rival is None else (rival, capacities[rival]),
    )


def _likeliest(scores: Mapping[Kind, float], series: float) -> Kind:
    """Return the kind that is better than one station beyond chance: two in series by ``series``."""
    margins: dict[Kind, float] = {"one": 0.0, "series": series}
    return min(scores, key=lambda k: scores[k] + margins.get(k, BETTER))


def statistics(arrivals: FloatArray, responses: FloatArray) -> FloatArray:
    """Return what the requests of a load show; shape (..., 7).

    Logarithms of the mean and of three quantiles of the response times; how many overtake; how much longer
    those take that find more than half of all others do; correlation of neighbours.

    Args:
        arrivals: Seconds, ascending; shape (n,).
        responses: Seconds; shape (..., n).
    """
    low, middle, high = np.quantile(responses, (0.1, 0.5, 0.9), axis=-1)
    leave = arrivals + responses
    latest = np.maximum.accumulate(leave, axis=-1)
    # Of two that leave at about the same time, a link decides which is answered first.
    overtaking = (leave[..., 1:] < latest[..., :-1] - LINK).mean(axis=-1)
    n = len(arrivals)
    gone = [np.searchsorted(row, arrivals, side="right") for row in np.sort(leave).reshape(-1, n)]
    there = np.arange(n) - np.reshape(gone, responses.shape)
    few = there <= np.median(there, axis=-1, keepdims=True)
    alone = few.sum(axis=-1)
    quick = np.where(few, responses, 0.0).sum(axis=-1)
    # Where all find at most the median, they differ in nothing.
    slow = np.where(alone < n, (responses.sum(axis=-1) - quick) / np.maximum(n - alone, 1), quick / alone)
    mean = responses.mean(axis=-1)
    deviation = responses - mean[..., None]
    power = np.square(deviation).sum(axis=-1)
    neighbours = (deviation[..., 1:] * deviation[..., :-1]).sum(axis=-1) / np.where(power > 0, power, 1.0)
    return np.stack((
        np.log(mean), np.log(low), np.log(middle), np.log(high),
        2 * np.arcsin(np.sqrt(overtaking)), np.log(slow * alone / quick), neighbours,
    ), axis=-1)  # fmt: skip


class _Comparison:
    def __init__(
        self, arrivals: Sequence[FloatArray], loads: Sequence[float], measured: FloatArray, seed: int
    ) -> None:
        self.arrivals, self.loads, self.measured = arrivals, loads, measured
        random = np.random.default_rng([seed, 4])
        # The same numbers for all structures and parameters: differences are not those of luck.
        self.drawn = [random.uniform(1e-12, 1.0, (REPLAYS, 3, len(a))).swapaxes(0, 1) for a in arrivals]

    def replays(self, structure: Structure, values: Sequence[float], count: int) -> FloatArray:
        """Return statistics of replays, shape (steps, count, statistics)."""
        return np.array([
            statistics(a, np.maximum(structure.responses(values, a, load, drawn[:, :count]), 1e-9))
            for a, load, drawn in zip(self.arrivals, self.loads, self.drawn, strict=True)
        ])  # fmt: skip

    def fitted(self, structure: Structure, scale: FloatArray) -> FloatArray:
        """Return the parameters whose mean statistics are nearest to those measured."""

        def distance(values: list[float]) -> float:
            means = self.replays(structure, values, FITTING).mean(axis=1)
            return float((((means - self.measured) / scale) ** 2).sum())

        best, _ = least(
            distance, structure.start, evaluations=EVALUATIONS, step=0.25, furthest=3.0, tolerance=0.05
        )
        return np.array(best)

    def score(self, structure: Structure, values: FloatArray) -> float:
        """Return the criterion of a structure at its parameters."""
        replays = self.replays(structure, values.tolist(), REPLAYS)
        return _criterion(self.measured, replays, len(values) + len(structure.servers))


def _spread(replays: FloatArray) -> FloatArray:
    found: FloatArray = np.sqrt(replays.var(axis=1, ddof=1) + FLOOR**2)
    return found


def _criterion(measured: FloatArray, replays: FloatArray, parameters: int) -> float:
    total = 0.0
    for own, step in zip(measured, replays, strict=True):
        covariance = np.cov(step.T) + FLOOR**2 * np.eye(len(own))
        away = own - step.mean(axis=0)
        total += float(away @ np.linalg.solve(covariance, away)) + float(np.linalg.slogdet(covariance)[1])
    return total + parameters * math.log(measured.size)


def _own_replays(
    station: Station, steps: Sequence[LoadStep], arrivals: Sequence[FloatArray], seed: int
) -> FloatArray:
    """Return statistics of replays of the station with the service times as they were inferred."""
    random = np.random.default_rng([seed, 5])
    servers, latency = station.servers.count, station.servers.latency
    pool = np.concatenate([np.maximum(service_times(s.trace, servers, latency)[0], 1e-9) for s in steps])
    # How well the mean is known is part of what may be seen.
    unsure = station.half_width / 1.96 / pool.mean()
    found = []
    for at in arrivals:
        rows = []
        for _ in range(REPLAYS):
            service = random.choice(pool, len(at))
            rows.append(service * max(1 + random.standard_normal() * unsure, 0.1))
        leave = served(at + latency, np.array(rows), servers)
        found.append(statistics(at, leave - at))
    return np.array(found)


def _p_value(measured: FloatArray, replays: FloatArray) -> float:
    """Return how often replays are as far from the others as what was measured; never 0."""
    distances = np.zeros(replays.shape[1])
    own = 0.0
    for row, step in zip(measured, replays, strict=True):
        inverse = np.linalg.inv(np.cov(step.T) + FLOOR**2 * np.eye(len(row)))
        centre = step.mean(axis=0)
        distances += np.einsum("ri,ij,rj->r", step - centre, inverse, step - centre)
        own += float((row - centre) @ inverse @ (row - centre))
    # Sums of squares of many: the tail is that of a gamma distribution of the same moments.
    shape = float(distances.mean() ** 2 / distances.var(ddof=1))
    return float(gammaincc(shape, own * shape / float(distances.mean())))
