"""Learn a closed queueing network from traces of its queue lengths.

1. Regression on single steps: a start that is close.
2. The fluid, fitted to whole trajectories. This is what the papers do, and it bends the parameters to make
   up for what the fluid does not see.
3. Correction: regression with the time servers were really busy, observed if the traces have it, else
   simulated.
4. If that does not explain the traces: services of other shapes, fitted by simulation (``service_fit``).

Both models are judged by traces held back. Intervals are from leaving out independent groups of traces; the
curvature of the fit knows nothing of what is wrong with the fluid.

Source: Garbi's thesis, chapter 3. The correction is not in the papers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from analyzer.learning.adam import train
from analyzer.learning.goodness import GoodnessOfFit
from analyzer.learning.left_out import half_width, rows_kept
from analyzer.learning.misplaced import ErrorSummary, misplaced, summary
from analyzer.learning.network_correction import correct, whole_starts
from analyzer.learning.network_error_fit import fit_error
from analyzer.learning.network_fit import fit_fluid
from analyzer.learning.network_goodness import Learned, network_goodness
from analyzer.learning.network_identifiability import other_explanations, unknowns
from analyzer.learning.network_regression import FASTEST, fluid_busy, regress, resolvable
from analyzer.learning.one_thread import on_one_thread
from analyzer.learning.search_bounds import rates_at_bound
from analyzer.learning.service_families import ServiceKind
from analyzer.learning.service_fit import learn_services, variation_score
from analyzer.learning.traces import FloatArray, Traces, require_closed
from mup.errors import UsageError, did_you_mean
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs, fluid_means
from simulator.networks.prediction import Prediction, predicted_means

__all__ = [
    "CorrectionKind",
    "LearnedNetwork",
    "Method",
    "ServiceKind",
    "learn_network",
    "possible_flows",
]

Method = Literal["second-order", "worst-moment", "adam"]
CorrectionKind = Literal["auto", "busy", "simulation", "none"]

SPREAD = 0.5
"""Of the logarithms of flows where further starts begin."""
CORRECTION_EVENTS = 16e6
DOUBT_EVENTS = 4e6
DOUBTFUL = 3.5
"""Standard errors from the variation of exponential services at which others are tried."""
SERVICES = 10.0
"""So many times the events of a correction are simulated to learn services that are not exponential."""
JUDGING_EVENTS = 4e6
"""Simulated at most; about 0.1 s of processor time per million."""
JUDGED = 10
"""Traces held back are simulated; all of them are judged with the fluid."""
FEWEST_RUNS, MOST_RUNS = 20, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedNetwork:
    """A network learned from traces, and how good it is.

    Attributes:
        network: What to predict with.
        uncorrected: What the fluid alone leads to.
        correction: ``busy`` (times observed), ``simulation``, or ``none``.
        rates_half, routing_half: Half-widths of 95 % intervals of the network's parameters; shapes (M,) and
            (M, M). None if there are too few traces.
        scv_half: The same of the squared coefficients of variation of services; None if they are taken to be
            exponential, too.
        err_train, err_validation: Of the uncorrected network predicted by its fluid, percent of clients
            misplaced: the figures of the papers.
        held_back: Errors of simulated predictions of the ``uncorrected`` network, and of the ``corrected``
            one if there is one, on some of the traces held back.
        judged: These traces.
        predicted: What ``network`` predicts for them, simulated.
        goodness: Of the corrected network on traces held back; None without a correction, for then the fluid
            is known to be wrong, and if runs of a trace did not begin in the same state.
        unknown: What the traces cannot tell, one sentence each.
        seconds: Processor time by step: ``fit``, ``correction``, ``intervals``, ``judging``, ``goodness``,
            ``services``.
    """

    network: ClosedNetwork
    uncorrected: ClosedNetwork
    correction: str
    rates_half: FloatArray | None
    routing_half: FloatArray | None
    scv_half: FloatArray | None
    err_train: ErrorSummary
    err_validation: ErrorSummary
    held_back: dict[str, ErrorSummary]
    judged: Traces
    predicted: Prediction
    goodness: GoodnessOfFit | None
    unknown: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def alarm(self) -> str | None:
        """What to say if the network does not explain the traces."""
        if self.goodness is None:
            return None
        return self.goodness.alarm("rates", exponential=self.network.exponential)

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup learn qn --json``, without the name of the file."""
        plain = self.network.to_json()
        raw = self.uncorrected.to_json()
        return {
            **plain,
            "rates_ci95": None if self.rates_half is None else _numbers(self.rates_half),
            "routing_ci95": None
            if self.routing_half is None
            else [_numbers(row) for row in self.routing_half],
            "scv": self.network.scv.tolist(),
            "scv_ci95": None if self.scv_half is None else _numbers(self.scv_half),
            "correction": self.correction,
            "uncorrected": {"rates": raw["rates"], "routing": raw["routing"]},
            "err_train": self.err_train.mean,
            "err_validation": self.err_validation.mean,
            "errors": {
                "fluid": {
                    "train": self.err_train.to_json(),
                    "validation": self.err_validation.to_json(),
                },
                "simulated": {name: error.to_json() for name, error in self.held_back.items()},
            },
            "goodness": None if self.goodness is None else self.goodness.to_json(),
            "alarm": self.alarm,
            "unknown": list(self.unknown),
            "seconds": sum(self.seconds.values()),
            "seconds_by_step": self.seconds,
        }


def _numbers(values: FloatArray) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]


def possible_flows(names: tuple[str, ...], without: Collection[tuple[str, str]]) -> Pairs:
    """Return all pairs of different stations but those excluded; shape (P, 2).

    Raises:
        UsageError: A station is unknown, or nothing would leave one.
    """
    for ends in without:
        for name in ends:
            if name not in names:
                raise UsageError(f"no station {name!r}; {did_you_mean(name, list(names))}")
    pairs = [
        (i, j) for i, a in enumerate(names) for j, b in enumerate(names) if i != j and (a, b) not in without
    ]
    stuck = [name for i, name in enumerate(names) if not any(p[0] == i for p in pairs)]
    if stuck:
        raise UsageError(f"nothing would leave station {stuck[0]!r}: every way out is excluded")
    return np.array(pairs, dtype=np.int64)


@on_one_thread
def learn_network(
    traces: Traces,
    *,
    without: Collection[tuple[str, str]] = (),
    method: Method = "second-order",
    correction: CorrectionKind = "auto",
    services: ServiceKind = "auto",
    starts: int = 1,
    seed: int = 0,
    events: float = CORRECTION_EVENTS,
) -> LearnedNetwork:
    """Learn service rates and routing.

    Args:
        traces: With servers; half of them are held back.
        without: Pairs of stations (from, to) between which no client moves.
        method: How the fluid is fitted: ``second-order`` has the least squares over whole trajectories,
            ``worst-moment`` the least ``err_train``, which is what the papers ask for, and ``adam`` trains
            the papers' cell with the papers' settings. All but the first are for comparison.
        correction: ``auto`` = with busy times if the traces have them, else by simulation.
        services: ``auto`` = of other shapes where exponential ones do not explain the traces.
        starts: Fits from so many starting points; the best is kept. The first is the regression, the others
            are drawn around it.
        seed: Same seed, same result.
        events: To simulate for a correction, roughly, and ten times as many to learn services of other
            shapes; fewer are quicker, and make wider intervals.

    Raises:
        UsageError: The traces are none of a closed network, or something asked for is not in them.
    """
    if traces.servers is None:
        raise UsageError("servers: how many clients each station serves at once is not in the traces")
    require_closed(traces)
    if correction == "busy" and traces.busy is None:
        raise UsageError("the traces have no busy times to correct with")
    if correction == "auto":
        correction = "simulation" if traces.busy is None else "busy"
    servers = traces.servers
    pairs = possible_flows(traces.names, without)
    learn, held = traces.split(seed)
    watch = _Watch()

    linear = resolvable(regress(learn.x, fluid_busy(learn.x, servers, traces.dt), pairs), traces.dt)
    # Cells of a third of a step are stable for everything that is resolvable.
    pace = min(float(linear.sum(axis=1).max()), 1 / traces.dt)
    fit = fit_fluid(learn, servers, pairs, linear, pace=pace)
    generator = np.random.default_rng(seed)
    for _ in range(starts - 1):
        begin = linear * np.exp(generator.normal(0.0, SPREAD, linear.shape))
        fit = min(fit, fit_fluid(learn, servers, pairs, begin, pace=pace), key=lambda f: f.cost)
    flows = fit.flows
    if method == "worst-moment":
        flows = fit_error(learn, servers, pairs, fit.flows)
    elif method == "adam":
        flows = train(learn, held, pairs, seed=seed)
    uncorrected = ClosedNetwork.of_flows(flows, traces.names, servers)
    watch.lap("fit")

    busy = fluid_busy(learn.x, servers, traces.dt)
    # From the regression, not from the fit: that one has been bent further.
    begun = ClosedNetwork.of_flows(linear, traces.names, servers)
    instruments = fluid_busy(_fluid(begun, learn), servers, traces.dt)
    network = uncorrected
    if correction == "busy" and learn.busy is not None:
        busy = learn.busy
        network = ClosedNetwork.of_flows(regress(learn.x, busy, pairs, instruments), traces.names, servers)
    elif correction == "simulation":
        found = correct(learn, servers, pairs, linear, instruments, events=events, seed=seed)
        busy = found.busy
        network = ClosedNetwork.of_flows(found.flows, traces.names, servers)
    watch.lap("correction")

    rates_half, routing_half = _intervals(learn, busy, instruments, pairs, network, seed)
    watch.lap("intervals")

    goodness = shaped = None
    if correction != "none":
        how = Learned(
            network=network, traces=learn, pairs=pairs, instruments=instruments, observed=correction == "busy"
        )
        goodness = network_goodness(how, held, seed=seed)
        watch.lap("goodness")
        if services == "auto" and goodness is not None and _doubtful(goodness, learn, pairs, network, seed):
            shaped = learn_services(
                learn, held, servers, pairs, network, runs=goodness.runs, events=SERVICES * events, seed=seed
            )
            if shaped.better:
                network = shaped.network
                rates_half, routing_half = shaped.rates_half, shaped.routing_half
                goodness = network_goodness(
                    replace(how, network=network, likely=shaped.likely), held, seed=seed
                )
            watch.lap("services")

    err_train = summary(misplaced(learn.x, _fluid(uncorrected, learn)))
    err_validation = summary(misplaced(held.x, _fluid(uncorrected, held)))
    models = {"uncorrected": uncorrected}
    if correction != "none":
        models["corrected"] = network
    judged = held.select(np.arange(min(JUDGED, len(held.x))))
    predictions = simulated_predictions(models, judged, events=JUDGING_EVENTS, seed=seed)
    watch.lap("judging")
    return LearnedNetwork(
        network=network,
        uncorrected=uncorrected,
        correction=correction,
        rates_half=rates_half,
        routing_half=routing_half,
        scv_half=shaped.scv_half if shaped is not None and shaped.better else None,
        err_train=err_train,
        err_validation=err_validation,
        held_back={name: summary(misplaced(judged.x, p.x)) for name, p in predictions.items()},
        judged=judged,
        predicted=predictions["uncorrected" if correction == "none" else "corrected"],
        goodness=goodness,
        unknown=(
            *rates_at_bound(traces.names, uncorrected.rates, FASTEST / traces.dt),
            *unknowns(learn, servers, pairs, fit.information, network.rates, rates_half),
            *(other_explanations(network, shaped.others) if shaped is not None and shaped.better else ()),
        ),
        seconds=watch.laps,
    )


def _doubtful(
    goodness: GoodnessOfFit, learn: Traces, pairs: Pairs, network: ClosedNetwork, seed: int
) -> bool:
    """Whether services may not be exponential: the test of the network alone misses what is not far off."""
    if not goodness.holds:
        return True
    score = variation_score(learn, pairs, network, runs=goodness.runs, events=DOUBT_EVENTS, seed=seed)
    return score > DOUBTFUL


def simulated_predictions(
    models: dict[str, ClosedNetwork], held: Traces, *, events: float, seed: int
) -> dict[str, Prediction]:
    """Return simulated predictions of traces by some networks.

    Args:
        models: By name.
        held: Where to begin, and for how long.
        events: To simulate in all, roughly.
        seed: Same seed, same numbers.
    """
    starts = whole_starts(held)
    *_, last = models.values()
    per_run = float((fluid_busy(_fluid(last, held), last.servers, held.dt)[:, -1] * last.rates).sum())
    runs = int(np.clip(events / len(models) / max(per_run, 1.0), FEWEST_RUNS, MOST_RUNS))
    samples = held.x.shape[1]
    return {
        name: predicted_means(network, starts, dt=held.dt, samples=samples, runs=runs, seed=seed)
        for name, network in models.items()
    }


def _fluid(network: ClosedNetwork, traces: Traces) -> FloatArray:
    return fluid_means(network, traces.starts, dt=traces.dt, samples=traces.x.shape[1])


def _intervals(
    traces: Traces,
    busy: FloatArray,
    instruments: FloatArray,
    pairs: Pairs,
    network: ClosedNetwork,
    seed: int,
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return half-widths of the rates and of the routing by leaving out one group of traces at a time."""
    found = [
        ClosedNetwork.of_flows(
            regress(traces.x[k], busy[k], pairs, instruments[k]), network.names, network.servers
        )
        for k in rows_kept(len(traces.x), seed)
    ]
    if not found:
        return None, None
    return half_width([n.rates for n in found]), half_width([n.routing for n in found])


class _Watch:
    """Processor time per step."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.process_time()

    def lap(self, name: str) -> None:
        now = time.process_time()
        self.laps[name] = now - self._last
        self._last = now
