"""``simulate``: the prediction of a model, which everything else is built on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from mup.errors import LimitError, ModelError, SimulationError, UsageError, did_you_mean
from mup.lqn.model import Model
from simulator.figures.operational_laws import check_identities, check_stability, law_warnings
from simulator.figures.output import BATCHES, Window, open_window
from simulator.figures.relaxation import least_seconds
from simulator.figures.result import Precision, Result
from simulator.machine.budget import MAX_SECONDS, Budget, Reached, limit_error
from simulator.machine.recording import MAX_BINS, Bins, Layout, Samples, most_bins
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
DEFAULT_ENGINE: Final = "compiled"
ENGINES: Final = ("compiled", "reference")
MAX_EVENTS: Final = {"compiled": 250_000_000, "reference": 20_000_000}
"""Timed steps after which a run ends in any case: a minute or two."""
UNFINISHED: Final = 2
"""So many times its limit of events may a run need for the part of a window that is not over then."""

BINS_PER_CYCLE = 5
FIRST_CHECK = 1000
"""So many bins, 200 of the shortest cycles, are simulated before a run can end. Intervals of runs that
precision ends much earlier are too narrow (``benchmarks/interval_coverage.py`` prints how many hold)."""
CHECK_GROWTH = 1.25
"""Precision is looked at again after a quarter more: no run is longer than necessary by more than that."""
MIN_CYCLES = 200
MIN_CYCLES_OF_EACH = 20
MIN_CYCLES_CONTROLLED: Final = 8000
"""As ``MIN_CYCLES``, with control variates. In short batches near saturation figures do not move in step with
the controls, so that residuals are too small: of forks and joins at utilization 0.95 that ended after 3500
cycles, 90 % of the intervals of throughput held, after 8000 95 % (``benchmarks/interval_coverage.py``)."""
MOST_GAIN: Final = 4.0
"""So many times wider than requested may the intervals of cycle figures be without control variates: what the
controls do not explain, of other figures, would be too rough."""

# Of a simulation that only tells the load.
ROUGH_PRECISION = 0.05
ROUGH_EVENTS = 300_000
ROUGH_SECONDS = 60.0
"""Wall time; its figures so far are used then."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running simulation stands.

    Attributes:
        simulated_seconds, events: So far.
        precision: Relative half-width reached; infinite while there is too little to tell.
    """

    simulated_seconds: float
    events: int
    precision: float


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
    control_variates: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Predict one scenario.

    The run ends as soon as the 95 % half-widths of cycle response time and throughput are within
    ``precision`` of their means, and within four times that without control variates, from at least 20
    batches that show no correlation to speak of and contain 200 cycles, with control variates 8000. Under
    open load it lasts at least 3000 relaxation times of the fullest queue (`simulator.figures.relaxation`).

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
    reached_limit: Reached | None = None
    started = time.perf_counter()
    ready = prepared_model(model)
    program = compile_model(ready.model, activities=activities)
    layout = Layout(program)
    machine = _engine(engine, program, seed)
    bins = Bins(layout.width, _bin_width(program, horizon, most_bins(layout.width)))
    next_check = FIRST_CHECK * bins.width
    last = math.inf if horizon is None else horizon * (1 - 1e-9)
    least = 0.0 if precision is None or may_pile_up else least_seconds(program)

    def precise_enough(window: Window, reached: float) -> bool:
        """Tell whether precision ends the run."""
        if precision is None or reached > precision or bins.end < least:
            return False
        return _sufficient(window, precision)

    while True:
        try:
            machine.record(bins, min(next_check, last), limit, own)
        except LimitError as error:
            reached_limit = _own_limit(own, error.reached, budget)
        else:
            reached_limit = _own_limit(own, own.reached(), budget)
        if machine.events >= limit:
            reached_limit = Reached(own.study, "events", limit)
        if reached_limit is not None and bins.count < BATCHES[-1]:
            raise limit_error(reached_limit, where=model.name)
        finished = bins.end >= last
        over = finished or reached_limit is not None
        if not over and bins.end < next_check:
            continue
        next_check = bins.end * CHECK_GROWTH
        window = open_window(program, layout, bins, controlled=control_variates and not may_pile_up)
        reached = window.precision()
        if not may_pile_up:
            check_stability(window)
        if progress is not None:
            progress(Progress(bins.end, machine.events, reached))
        if over or precise_enough(window, reached):
            break
    if finished or precise_enough(window, reached):
        reached_limit = None
    _check_alive(program, layout, bins)
    check_identities(window)
    return Result(
        engine=engine,
        seed=seed,
        simulated_seconds=bins.end,
        warmup_seconds=window.begin,
        events=machine.events,
        batches=len(window.sums),
        precision=Precision(requested=precision, reached=reached),
        cycle=window.cycle(machine.population_samples),
        tasks=window.tasks(machine.population_samples),
        entries=window.entries(machine.entry_samples),
        processors=window.processors(),
        calls=window.calls(),
        joins=window.joins(),
        activities=window.activities(),
        limit=reached_limit,
        demands_at=ready.load,
        warnings=tuple(_warnings(window, precision, reached, reached_limit, horizon)),
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
    return prepared(model, observed_load, awake=awake, finder=_estimated_load)


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
        rough = simulate(
            model,
            precision=ROUGH_PRECISION,
            max_events=ROUGH_EVENTS,
            max_seconds=ROUGH_SECONDS,
            may_pile_up=True,
        )
        return Observed(
            {t.name: rough.tasks[t.name].throughput.mean for t in model.reference_tasks if not t.is_open},
            {name: p.utilization.mean for name, p in rough.processors.items()},
            {name: task.busy.mean for name, task in rough.tasks.items()},
        )


def _own_limit(own: Budget, reached: Reached | None, outer: Budget | None) -> Reached | None:
    """Return the limit of a run that has been reached.

    Raises:
        LimitError: It is one of the study that the run is part of.
    """
    if reached is not None and outer is not None and reached.study != own.study:
        raise limit_error(reached)
    return reached


class _Engine(Protocol):
    """What a run needs of an engine."""

    @property
    def events(self) -> int: ...

    @property
    def population_samples(self) -> list[Samples]: ...

    @property
    def entry_samples(self) -> list[Samples]: ...

    def record(self, bins: Bins, end: float, most_events: int, budget: Budget | None = None) -> None: ...


def _engine(name: str, program: Program, seed: int) -> _Engine:
    # Each engine brings libraries that take a while to import: only those of the one in use.
    if name == "reference":
        from simulator.machine.reference.engine import ReferenceEngine  # noqa: PLC0415

        return ReferenceEngine(program, seed)
    from simulator.machine.compiled.engine import CompiledEngine  # noqa: PLC0415

    return CompiledEngine(program, seed)


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


def _bin_width(program: Program, horizon: float | None, most: int = MAX_BINS) -> float:
    """Return a first bin width: a fraction of the shortest cycle, and such that bins end at the horizon."""
    cycles = [p.nominal.total if not p.is_open else 1 / p.rate for p in program.populations]
    width = min(cycles) / BINS_PER_CYCLE
    if horizon is None:
        return width
    # So few that none are ever added up: then the last one ends at the horizon.
    return horizon / min(max(FIRST_CHECK, math.ceil(horizon / width)), MAX_BINS // 2, most - 1)


def _sufficient(window: Window, precision: float) -> bool:
    """Tell whether the intervals of a window can be believed, and other figures are not much rougher."""
    cycles = [
        float(window.sums[:, window.layout.cycles(p)].sum()) for p in range(len(window.program.populations))
    ]
    least = MIN_CYCLES_CONTROLLED if window.controls.chosen else MIN_CYCLES
    enough = sum(cycles) >= least and min(cycles) >= MIN_CYCLES_OF_EACH
    sound = enough and window.independent and window.warmed_up
    return sound and window.precision_of_chance() <= MOST_GAIN * precision


def _check_alive(program: Program, layout: Layout, bins: Bins) -> None:
    """Refuse a run in which one population stands still while others go on (a partial deadlock)."""
    half = bins.rows[bins.count // 2 :]
    # All other clients served first, one after the other, would still be faster than this.
    patience = 10 * sum(p.clients * p.nominal.total for p in program.populations)
    if any(p.is_open for p in program.populations):
        return  # a request that waits for ever makes others wait, and that shows
    for index, population in enumerate(program.populations):
        if half[:, layout.cycles(index)].sum() == 0 and len(half) * bins.width > patience:
            name = program.tasks[population.task].name
            raise SimulationError(
                f"no client of {name!r} completed a cycle in the last {len(half) * bins.width:g} s of the "
                "run although others did: its requests wait for threads that they hold themselves",
                where=f"tasks[{name!r}]",
                hint="a service that is called back while its caller's thread is held needs more threads",
            )


def _warnings(
    window: Window, precision: float | None, reached: float, limit: Reached | None, horizon: float | None
) -> list[str]:
    found = law_warnings(window)
    why = "" if limit is None else f" ({limit})"
    if precision is not None and reached > precision:
        found.append(
            f"stopped before the requested precision: intervals reach {100 * reached:.3g} % of the mean "
            f"instead of {100 * precision:.3g} %{why}"
        )
    elif limit is not None:
        found.append(f"stopped after {window.end:.4g} simulated seconds{why}")
    if not window.warmed_up:
        what = "run" if horizon is None else f"horizon of {horizon:g} s"
        found.append(f"the warm-up took half of the {what} or more: simulate longer")
    elif not window.independent:
        found.append("batches are still correlated, so intervals may be too narrow: simulate longer")
    return found
