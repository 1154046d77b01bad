"""``simulate``: the prediction of a model, which everything else is built on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from mup.errors import LimitError, ModelError, SimulationError, UsageError, did_you_mean
from mup.lqn.model import Model
from simulator.figures.operational_laws import check_identities, law_warnings
from simulator.figures.relaxation import least_seconds
from simulator.figures.result import Precision, Result
from simulator.figures.runs.engines import DEFAULT_ENGINE, ENGINES, engine_of
from simulator.figures.runs.replicated import Need, need_of, run_replicated
from simulator.figures.runs.run import Progress, Run
from simulator.figures.runs.single import run_once
from simulator.machine.budget import MAX_SECONDS, Budget
from simulator.preparing import Load, Observed, Prepared, prepared
from simulator.program import Program, compile_model

__all__ = [
    "DEFAULT_ENGINE",
    "DEFAULT_PRECISION",
    "ENGINES",
    "MAX_EVENTS",
    "MAX_SECONDS",
    "Progress",
    "Result",
    "compiled",
    "observed_load",
    "prepared_model",
    "simulate",
]

DEFAULT_PRECISION: Final = 0.01
MAX_EVENTS: Final = {"compiled": 250_000_000, "reference": 20_000_000}
"""Timed steps after which a run ends in any case: a minute or two."""
UNFINISHED: Final = 2
"""So many times its limit of events may a run need for the part of a window that is not over then."""

FEWEST_BEGINNINGS: Final = 2
"""In a horizon: one of them has no interval."""

# Of a simulation that only tells the load.
ROUGH_PRECISION = 0.05
TRIAL_PRECISION = 0.03
ROUGH_EVENTS = 300_000
ROUGH_SECONDS = 60.0
"""Wall time; its figures so far are used then."""


def simulate(
    model: Model,
    *,
    precision: float | None = None,
    horizon: float | None = None,
    seed: int = 0,
    engine: str = DEFAULT_ENGINE,
    activities: bool = False,
    max_events: int | None = None,
    max_seconds: float = MAX_SECONDS,
    budget: Budget | None = None,
    may_pile_up: bool = False,
    many_beginnings: bool = False,
    control_variates: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Predict one scenario.

    The run ends as soon as the 95 % half-widths of cycle response time and throughput are within
    ``precision`` of their means, and within four times that without control variates, from at least 20
    batches that show no correlation to speak of and contain 200 cycles, with control variates 8000. Under
    open load it lasts at least 3000 relaxation times of the fullest queue (`simulator.figures.relaxation`).

    Clients who think equally long, and whose cycles hardly vary, keep the rhythm in which they begin. Without
    a horizon, what is simulated then are many runs of about a minute, each from a beginning of its own, at
    least 16, or 8 from a precision of 5 % on (`simulator.figures.runs.replicated`).

    Args:
        model: Calibrated at least where clients can get to.
        precision: Relative half-width to reach. Default: 0.01, or none if there is a ``horizon``, which
            then is simulated in full.
        horizon: Simulated seconds (warm-up included) after which the run ends in any case.
        seed: Same seed, same numbers; scenarios with equal seeds share their luck.
        engine: ``compiled``, or ``reference`` (the same numbers, about a hundred times slower).
        activities: Also measure every activity, and what fronts do for each entry.
        max_events: Timed steps after which the run ends in any case. Default: see ``MAX_EVENTS``.
        max_seconds: Wall time after which it does.
        budget: Of the study this run is part of.
        may_pile_up: Do not refuse load that grows for ever; figures then depend on the length of the run.
        many_beginnings: Where clients keep the rhythm in which they begin, simulate as many beginnings as
            the horizon has room for instead of one run (`simulator.figures.runs.rhythm`).
        control_variates: Estimate figures with the help of what is known exactly, such as mean think times
            and demands: narrower intervals, so a precision is reached sooner, while figures that no control
            explains stay rougher. Runs of the same seed resemble each other less then: differences of two of
            them need equal horizons. Load that may pile up has none.
        progress: Called now and then.

    Returns:
        All figures with their intervals; ``warnings`` says what is doubtful about them.

    Raises:
        UsageError: An argument is out of range.
        UncalibratedError: The model lacks numbers.
        LimitError: The budget of the study is used up, or a limit was reached too soon for any figure.
        SimulationError: The scenario deadlocks, cannot make progress, or a check of the run failed.
    """
    _check_arguments(precision, horizon, seed, engine, max_events)
    if precision is None and horizon is None:
        precision = DEFAULT_PRECISION
    limit = max_events or MAX_EVENTS[engine]
    # Bins end at the limit of events, but for those that take for ever.
    own = Budget("the simulation", events=UNFINISHED * limit, seconds=max_seconds, outer=budget)
    started = time.perf_counter()
    ready = prepared_model(model)
    program = compile_model(ready.model, activities=activities)

    def compiled_within(seconds: float) -> Program:
        return compile_model(ready.model, activities=activities, arrive_within=seconds)

    single = horizon is not None and not many_beginnings
    need = need_of(program, compiled_within, single=single, seed=seed, limit=limit, budget=own)
    count = None
    if need.replication is not None and horizon is not None:
        count = int(horizon * (1 + 1e-9) / need.replication.total)
    if need.replication is not None and (count is None or count >= FEWEST_BEGINNINGS):
        program = compiled_within(need.replication.warmup)
        run = run_replicated(
            program,
            lambda each: engine_of(engine, program, each),
            need.replication,
            seed=seed,
            precision=precision,
            count=count,
            limit=limit,
            own=own,
            outer=budget,
            may_pile_up=may_pile_up,
            progress=progress,
        )
    else:
        stable = precision is not None and not may_pile_up
        run = run_once(
            program,
            engine_of(engine, program, seed),
            precision=precision,
            horizon=horizon,
            least=max(need.least, least_seconds(program)) if stable else 0.0,
            limit=limit,
            own=own,
            outer=budget,
            may_pile_up=may_pile_up,
            control_variates=control_variates,
            progress=progress,
        )
    window = run.window
    check_identities(window)
    reached = window.precision()
    return Result(
        engine=engine,
        seed=seed,
        simulated_seconds=run.simulated_seconds,
        warmup_seconds=run.warmup_seconds,
        events=run.events,
        batches=len(window.sums),
        replications=run.replications,
        precision=Precision(requested=precision, reached=reached),
        cycle=window.cycle(run.population_samples),
        tasks=window.tasks(run.population_samples),
        entries=window.entries(run.entry_samples),
        processors=window.processors(),
        calls=window.calls(),
        joins=window.joins(),
        activities=window.activities(),
        limit=run.limit,
        demands_at=ready.load,
        warnings=tuple(_warnings(run, precision, reached, horizon, need)),
        control_variates=window.gained(),
        wall_seconds=time.perf_counter() - started,
    )


def compiled(model: Model, *, arrive_within: float | None = None) -> Program:
    """Compile a model with the processor times of its own load.

    Args:
        model: Calibrated at least where clients can get to.
        arrive_within: As for `simulator.program.compile_model`.

    Raises:
        UncalibratedError: The model lacks numbers.
        SimulationError: It cannot run.
    """
    return compile_model(prepared_model(model).model, arrive_within=arrive_within)


def prepared_model(model: Model, *, awake: bool = False) -> Prepared:
    """Return a model with the processor times of its own load.

    Args:
        model: Calibrated at least where clients can get to.
        awake: As for `simulator.preparing.prepared`.

    Raises:
        UncalibratedError: The model lacks numbers.
        SimulationError: It cannot run.
    """
    trial = None if awake else _trial
    return prepared(model, observed_load, awake=awake, finder=_estimated_load, trial=trial)


def _estimated_load(model: Model) -> Load | None:
    # Imported here: most models need no load.
    from simulator.analytic.candidates.loads import load_of  # noqa: PLC0415

    return load_of(model)


def observed_load(model: Model) -> Observed:
    """Return the load of a prepared model, roughly: estimated, or where there is no estimate, simulated.

    Raises:
        UncalibratedError: The model lacks numbers.
        SimulationError: It cannot run.
    """
    # Imported here: most models need no load.
    from simulator.analytic.solver import observed  # noqa: PLC0415

    try:
        return observed(model)
    except (ModelError, SimulationError):
        # What has no estimate, or breaks down under open load, can be run for a moment.
        return _seen(model, ROUGH_PRECISION)


def _trial(model: Model) -> Observed | None:
    try:
        return _seen(model, TRIAL_PRECISION)
    except LimitError:
        return None  # cycles are too rare to be seen in a moment


def _seen(model: Model, precision: float) -> Observed:
    run = simulate(
        model, precision=precision, max_events=ROUGH_EVENTS, max_seconds=ROUGH_SECONDS, may_pile_up=True
    )
    return Observed(
        {t.name: run.tasks[t.name].throughput.mean for t in model.reference_tasks if not t.is_open},
        {name: p.utilization.mean for name, p in run.processors.items()},
        {name: task.busy.mean for name, task in run.tasks.items()},
    )


def _check_arguments(
    precision: float | None, horizon: float | None, seed: int, engine: str, max_events: int | None
) -> None:
    if precision is not None and not 0 < precision < 1:
        raise UsageError(f"precision must be a fraction between 0 and 1, got {precision!r}")
    if horizon is not None and not 0 < horizon < math.inf:
        raise UsageError(f"horizon must be a number of seconds > 0, got {horizon!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number, got {seed!r}")
    if engine not in ENGINES:
        raise UsageError(f"no engine {engine!r}; {did_you_mean(engine, list(ENGINES))}")
    if max_events is not None and max_events < 1:
        raise UsageError(f"max_events must be >= 1, got {max_events!r}")


def _warnings(
    run: Run,
    precision: float | None,
    reached: float,
    horizon: float | None,
    need: Need,
) -> list[str]:
    window, limit = run.window, run.limit
    found = law_warnings(window)
    why = "" if limit is None else f" ({limit})"
    if precision is not None and reached > precision:
        found.append(
            f"stopped before the requested precision: intervals reach {100 * reached:.3g} % of the mean "
            f"instead of {100 * precision:.3g} %{why}"
        )
    elif limit is not None:
        found.append(f"stopped after {run.simulated_seconds:.4g} simulated seconds{why}")
    if not window.warmed_up:
        what = "run" if horizon is None else f"horizon of {horizon:g} s"
        found.append(f"the warm-up took half of the {what} or more: simulate longer")
    elif not window.independent:
        found.append("batches are still correlated, so intervals may be too narrow: simulate longer")
    if run.bunched_after is not None:
        found.append(
            "response times go on growing when all clients have come: those who waited for each other stay "
            f"together. Figures are of windows that open {run.bunched_after:.3g} s after the beginning; a "
            "measured run whose window opens sooner shows others"
        )
    if need.keeps_rhythm and run.replications == 1:
        found.append(
            "clients keep the rhythm in which they began: another seed may show other figures than the "
            "intervals say; without a horizon, many beginnings are simulated"
        )
    return found
