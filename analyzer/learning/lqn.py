"""Queue lengths over time and an uncalibrated layered queueing network in, a calibrated one out.

Garbi's thesis, chapter 4: inlining, fluid, learned service demands; but second-order, with the bias of the
fluid taken off by simulation, and with stages where exponential times do not explain the traces.
``docs/explanation/learning-lqn.md`` says how well that works, and when not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.goodness import GoodnessOfFit
from analyzer.learning.lqn_beginnings import corners, fit_beginnings, start_uncertainty
from analyzer.learning.lqn_columns import beginnings, match_columns, require_clients
from analyzer.learning.lqn_correction import correct, misplaced
from analyzer.learning.lqn_fit import (
    FluidFit,
    column_weights,
    jackknife_spread,
    linear_start,
    vague_groups,
)
from analyzer.learning.lqn_goodness import lqn_goodness
from analyzer.learning.lqn_services import OnProgress, ShapedTimes, learn_variation
from analyzer.learning.lqn_unknowns import find_unknowns, with_means, with_times
from analyzer.learning.one_thread import on_one_thread
from analyzer.learning.search_bounds import times_at_bound
from analyzer.learning.service_families import ServiceKind, shape_of
from analyzer.learning.traces import Traces
from analyzer.learning.units import check_seconds
from mup.errors import SimulationError, UsageError
from mup.lqn.model import Model
from mup.lqn.refs import Names
from mup.statistics.student import t_quantile
from simulator.networks.inlined import TimeKey, inline

__all__ = ["LearnedLqn", "LearnedTime", "learn_lqn"]

FloatArray = npt.NDArray[np.float64]

TRAINING: Final = 0.8
FEWEST_TRACES: Final = 5
FEWEST_LEFT_OUT: Final = 8
"""Traces to learn from; of fewer, the jackknife knows its own scatter too badly."""
RANDOM_STARTS: Final = 2
SHAKY: Final = 0.1
"""Change of a logarithm with where traces begin that makes it unknown."""


@dataclass(frozen=True, slots=True)
class LearnedTime:
    """One learned time.

    Attributes:
        mean: Seconds.
        ci95: Half-width of its 95 % interval, from leaving out traces; None if there were too few of them. It
            knows the scatter of the traces and that of the simulation in a correction, not the bias of a
            wrong model.
        uncorrected: What the fluid alone said.
        known: False if the traces do not tell it.
        scv: Squared coefficient of variation; that of the learned times of a task is the same.
        scv_ci95: Half-width of its 95 % interval; None as for ``ci95``, and if it is taken to be exponential.
    """

    mean: float
    ci95: float | None
    uncorrected: float
    known: bool
    scv: float = 1.0
    scv_ci95: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedLqn:
    """A calibrated model, and how good it is.

    Errors are mean absolute differences of the columns, summed over the columns and divided by the number of
    clients: the part of the requests that the model puts in the wrong place.

    Attributes:
        model: The calibrated model.
        times: What was learned.
        err_train, err_validation: Of the fluid with the times it was fitted with, on the traces to learn from
            and on those held back.
        simulated_validation, corrected_validation: Of the simulated model on the traces held back, without
            and with correction of the fluid's bias; None if nothing was corrected.
        goodness: Of the corrected model on the traces held back; None if nothing was corrected, or if the
            columns do not tell in which state the runs of a trace begin.
        agreeing_starts: Part of the starts of the search that led to the same place.
        warnings: What cannot be known, and why.
        seconds, correction_seconds: Processor time.
    """

    model: Model
    times: Mapping[TimeKey, LearnedTime]
    err_train: float
    err_validation: float
    simulated_validation: float | None
    corrected_validation: float | None
    goodness: GoodnessOfFit | None
    agreeing_starts: float
    warnings: tuple[str, ...]
    seconds: float = field(compare=False)
    correction_seconds: float = field(compare=False)

    @property
    def alarm(self) -> str | None:
        """What to say if the model does not explain the traces."""
        if self.goodness is None:
            return None
        return self.goodness.alarm("times", exponential=self.exponential)

    @property
    def exponential(self) -> bool:
        """Whether the learned times are exponential."""
        return all(time.scv == 1 for time in self.times.values())

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup learn lqn --json``."""
        names = Names(self.model.tasks)
        texts = {key.text(names): time for key, time in self.times.items()}
        return {
            "rates": {text: 1.0 / t.mean for text, t in texts.items()},
            "times": {
                text: {
                    "mean": t.mean,
                    "ci95": t.ci95,
                    "uncorrected": t.uncorrected,
                    "known": t.known,
                    "scv": t.scv,
                    "scv_ci95": t.scv_ci95,
                }
                for text, t in texts.items()
            },
            "err_train": self.err_train,
            "err_validation": self.err_validation,
            "simulated": {
                "err_validation": self.simulated_validation,
                "err_validation_corrected": self.corrected_validation,
            },
            "goodness": None if self.goodness is None else self.goodness.to_json(),
            "alarm": self.alarm,
            "agreeing_starts": self.agreeing_starts,
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "correction_seconds": self.correction_seconds,
        }


@on_one_thread
def learn_lqn(
    model: Model,
    traces: Traces,
    *,
    seed: int = 0,
    correction: bool = True,
    services: ServiceKind = "auto",
    on_progress: OnProgress | None = None,
) -> LearnedLqn:
    """Learn the unknown times of a model.

    Args:
        model: Unknown times are null; if there are none, all positive times are learned.
        traces: Mean queue lengths; their names are explained in ``analyzer.learning.lqn_columns``.
        seed: Of the split into training and validation, of random starts and of simulations.
        correction: Whether to take the bias of the fluid off by simulation.
        services: ``auto`` = with a variation of the times of each task where exponential ones do not explain
            the traces; that needs a correction, and columns that tell where traces begin.
        on_progress: Called with what is being done where that takes long.

    Raises:
        UncalibratedError: The model lacks numbers that cannot be learned: probabilities, counts.
        UsageError: The traces do not fit the model, or there are too few of them.
        SimulationError: The model cannot be inlined.
    """
    began = time.process_time()
    unknowns = find_unknowns(model)
    lqn = inline(unknowns.model)
    _check(traces)
    learned = np.array([i for i, k in enumerate(lqn.times) if k in unknowns.keys], dtype=np.int64)
    if not len(learned):
        raise UsageError("load reaches none of the unknown times", where=model.name)
    columns = match_columns(lqn, traces.names)
    begun = beginnings(lqn, columns, traces.x[:, 0], traces.start)
    starts, determined = begun.states, begun.determined
    possible = None if determined else corners(begun.equations, begun.solutions, lqn.system.size)
    if possible is not None:
        starts = possible.mean(axis=1)
    require_clients(lqn, columns, traces.x)
    warnings = _structure_warnings(determined=determined)
    order = np.random.default_rng(seed).permutation(len(traces.x))
    cut = min(len(order) - 1, max(1, round(TRAINING * len(order))))
    training, held_back = np.sort(order[:cut]), np.sort(order[cut:])
    everything = FluidFit(
        lqn, learned, columns, starts, traces.x, traces.dt, column_weights(traces.x[training])
    )
    train = everything.select(training)
    check_seconds(train)
    guess = linear_start(train)
    around = np.full(len(learned), np.log(traces.dt)) if guess is None else guess
    fit = train.search([around, *train.random_starts(around, RANDOM_STARTS, seed)])
    if possible is not None:
        everything, fit = fit_beginnings(everything, training, possible, fit)
        train = everything.select(training)
    clients = lqn.clients
    values = everything.predict(fit.logs)[0]
    residuals, slopes = train.linearised(fit.logs)
    groups = vague_groups(residuals, slopes)
    vague = {i for group in groups for i in group}
    known = Names(model.tasks)
    names = [lqn.times[i].text(known) for i in learned]
    warnings += [
        f"the traces do not tell {' from '.join(names[i] for i in group)}"
        if len(group) > 1
        else f"the traces do not tell how long {names[group[0]]} is"
        for group in groups
        if group
    ]
    seconds = time.process_time() - began
    began = time.process_time()
    logs, before, after, response = fit.logs, None, None, None
    goodness: GoodnessOfFit | None = None
    shaped: ShapedTimes | None = None
    if correction:
        corrected = correct(everything, training, fit.logs, seed=seed)
        logs = corrected.logs
        data = traces.x[held_back]
        before = misplaced(corrected.simulated_before[held_back], data, clients)
        after = misplaced(corrected.simulated[held_back], data, clients)
        # What is fitted in the end is the simulated model, and it scatters, too.
        residuals, slopes, response = corrected.residuals, corrected.slopes, corrected.response
        if determined:
            runs = None if traces.runs is None else traces.runs[held_back]
            goodness = lqn_goodness(train, everything.select(held_back), logs, runs=runs, seed=seed)
            if services == "auto" and goodness is not None and not goodness.holds:
                try:
                    shaped = learn_variation(
                        unknowns.model,
                        everything,
                        training,
                        corrected,
                        seed=seed,
                        on_progress=on_progress or (lambda _: None),
                    )
                except SimulationError as error:
                    warnings.append(f"times are taken to be exponential: with stages, {error.message}")
            if shaped is not None:
                everything, corrected = shaped.everything, shaped.corrected
                train, logs = everything.select(training), corrected.logs
                after = misplaced(corrected.simulated[held_back], data, clients)
                residuals, slopes, response = shaped.residuals, shaped.slopes, shaped.response
                goodness = lqn_goodness(train, everything.select(held_back), logs, runs=runs, seed=seed)
                warnings += shaped.ambiguities()
    at_bound = times_at_bound(names, logs, train.bounds)
    warnings += at_bound.values()
    widths = _intervals(residuals, slopes, response)
    scv: Mapping[str, float] = {} if shaped is None else shaped.scv
    scv_half: Mapping[str, float] = {}
    if shaped is not None and widths is not None:
        widths, scv_widths = shaped.widened(widths)
        scv_half = {task: scv[task] * width for task, width in scv_widths.items()}
    shaky: set[int] = set()
    if possible is not None and widths is not None:
        left = start_uncertainty(train, logs, possible[training], residuals, slopes)
        wider = _intervals(left.residuals, left.slopes, response)
        wider = left.wider * np.maximum(widths, widths if wider is None else wider)
        # Fits of beginnings and times taken in turns may end too early, so times are believed only if they
        # hardly depend on beginnings.
        wider = np.hypot(wider, left.change)
        shaky = {i for i in range(len(learned)) if left.change[i] > SHAKY}
        widths = wider
        warnings += [
            f"{names[i]} changes with where the traces begin, which the columns do not tell: add columns of"
            " activities, or say it (start)"
            for i in sorted(shaky)
        ]
    times = {
        lqn.times[index]: LearnedTime(
            mean=float(np.exp(logs[i])),
            ci95=None if widths is None else float(np.exp(logs[i]) * widths[i]),
            uncorrected=float(np.exp(fit.logs[i])),
            known=i not in vague and i not in at_bound and i not in shaky,
            scv=scv.get(lqn.times[index].task, 1.0),
            scv_ci95=scv_half.get(lqn.times[index].task),
        )
        for i, index in enumerate(learned)
    }
    if shaped is None:
        calibrated = with_means(model, {k: t.mean for k, t in times.items()})
    else:
        shapes = {k: shape_of(shaped.family, t.scv).scaled(t.mean) for k, t in times.items()}
        calibrated = with_times(model, shapes)
    return LearnedLqn(
        model=calibrated,
        times=times,
        err_train=misplaced(values[training], traces.x[training], clients),
        err_validation=misplaced(values[held_back], traces.x[held_back], clients),
        simulated_validation=before,
        corrected_validation=after,
        goodness=goodness,
        agreeing_starts=fit.agreeing,
        warnings=tuple(warnings),
        seconds=seconds,
        correction_seconds=time.process_time() - began,
    )


def _check(traces: Traces) -> None:
    if len(traces.x) < FEWEST_TRACES:
        raise UsageError(
            f"x: {len(traces.x)} traces are too few: at least {FEWEST_TRACES} from different beginnings are"
            " needed (a fifth is held back to judge the result), some dozens give good results"
        )
    if (np.ptp(traces.x, axis=1) < 1e-9).all():
        raise UsageError(
            "x: nothing moves in any trace; how long things take shows only while queue lengths change",
            hint="begin from states far from the mean",
        )


def _structure_warnings(*, determined: bool) -> list[str]:
    if determined:
        return []
    return ["the columns do not tell all states apart: where traces begin is fitted, too; say it (start)"]


def _intervals(residuals: FloatArray, slopes: FloatArray, response: FloatArray | None) -> FloatArray | None:
    """Return relative half-widths of 95 % intervals; arguments as in ``jackknife_spread``."""
    many = len(residuals)
    if many < FEWEST_LEFT_OUT:
        return None
    return np.asarray(t_quantile(many - 1) * jackknife_spread(residuals, slopes, response))
