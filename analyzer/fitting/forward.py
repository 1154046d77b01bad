"""Predictions of a model for every trial at given parameter values, with their derivatives.

Two forward models with one interface: the exact one for networks of queues without layers (microseconds,
exact derivatives), and the layered estimate for everything else (tens of milliseconds per trial, derivatives
by finite differences).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from analyzer.fitting.measures import long_name, value_of
from analyzer.fitting.parameters import Parameter
from mup.errors import SimulationError, UsageError
from mup.lqn.model import Model
from mup.lqn.refs import FigureRef
from simulator.analytic import estimate
from simulator.analytic.product_form import Means, ProductForm, mean_values, product_form

__all__ = ["AnalyticForward", "ExactForward", "Forward", "Settings", "forward_of", "with_settings"]

FloatArray = npt.NDArray[np.float64]

Settings = tuple[tuple[Parameter, float], ...]
"""The configuration of a trial: what was set to which value."""

STEP: Final = 0.01
"""Of a finite difference, relative to the value (or to its scale where that is larger). The estimate iterates
to 1e-4, so a smaller one would show rounding; its curvature over 1 % is far below what data can tell."""

LEAST: Final = 1e-6
"""Share of a parameter's scale that it may not fall below, for rates and times are above 0."""

REMEMBERED: Final = 4
"""So many points the layered estimate remembers."""
DIGITS: Final = 10
"""To so many digits, relative to their scales, values are the same."""


class Forward(Protocol):
    """Predictions of all trials for given values of the parameters."""

    exact: bool
    """The predictions are those a long simulation would have."""

    def means(self, values: FloatArray) -> FloatArray:
        """Return the figures, shape (trials, measures), for values of shape (parameters,).

        All are NaN where the model cannot be solved.
        """
        ...

    def sensitivities(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the figures and their derivatives, shape (trials, measures, parameters)."""
        ...


def with_settings(model: Model, settings: Settings) -> Model:
    """Return the model configured as in a trial."""
    for setting, value in settings:
        model = setting.apply(model, value)
    return model


def forward_of(
    model: Model,
    parameters: Sequence[Parameter],
    scales: FloatArray,
    trials: Sequence[Settings],
    measures: Sequence[str],
) -> Forward:
    """Return the fastest forward model there is.

    Args:
        model: With every parameter at some value.
        parameters: What varies; whole numbers do not.
        scales: Typical values of the parameters, > 0, shape (parameters,).
        trials: Their configurations.
        measures: Names of the figures.

    Raises:
        UsageError: The model has no such parameter or figure, or a setting is out of range.
    """
    for measure in measures:
        if FigureRef.parse(long_name(measure)).figure in ("p50", "p90", "p95", "p99"):
            raise UsageError(
                f"{measure!r} is a percentile; fitted are means",
                hint="leave the column out, or begin it with '#'",
            )
    exact = ExactForward.of(model, parameters, scales, trials, measures)
    return exact or AnalyticForward(model, parameters, scales, trials, measures)


class AnalyticForward:
    """Predictions by ``simulator.analytic``, derivatives by differences of 1 %, as the paper's."""

    exact = False

    def __init__(
        self,
        model: Model,
        parameters: Sequence[Parameter],
        scales: FloatArray,
        trials: Sequence[Settings],
        measures: Sequence[str],
    ) -> None:
        self._models = [with_settings(model, trial) for trial in trials]
        self._parameters, self._scales, self._measures = parameters, scales, measures
        self._known: dict[bytes, FloatArray] = {}
        self._slopes: dict[bytes, FloatArray] = {}

    def means(self, values: FloatArray) -> FloatArray:  # noqa: D102
        return self._remembered(self._known, values, lambda: self._evaluate(values))

    def _remembered(
        self, memory: dict[bytes, FloatArray], values: FloatArray, find: Callable[[], FloatArray]
    ) -> FloatArray:
        """Return what was found for the same values, up to rounding, or find it.

        A search asks for the same again and again: at its end, for the covariance there, and where the next
        search starts.
        """
        key = np.round(values / self._scales, DIGITS).tobytes()
        if key not in memory:
            if len(memory) >= REMEMBERED:
                del memory[next(iter(memory))]
            memory[key] = find()
        return memory[key]

    def _evaluate(self, values: FloatArray) -> FloatArray:
        rows = []
        for model in self._models:
            changed = model
            for parameter, scale, value in zip(self._parameters, self._scales, values, strict=True):
                # A queue without work is nothing the estimate could solve.
                least = LEAST * scale if parameter.linear else parameter.low
                changed = parameter.apply(changed, float(max(value, least)))
            try:
                document = estimate(changed).to_json()
            except SimulationError:
                return np.full((len(self._models), len(self._measures)), math.nan)
            rows.append([value_of(document, measure) for measure in self._measures])
        return np.array(rows)

    def sensitivities(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        return self.means(values), self._remembered(self._slopes, values, lambda: self._differences(values))

    def _differences(self, values: FloatArray) -> FloatArray:
        here = self.means(values)
        slopes = np.empty((*here.shape, len(values)))
        for k, parameter in enumerate(self._parameters):
            step = STEP * max(abs(values[k]), 0.1 * self._scales[k])
            if values[k] + step > parameter.high:
                step = -step
            slopes[..., k] = self._difference(values, here, k, step)
        return slopes

    def _difference(self, values: FloatArray, here: FloatArray, k: int, step: float) -> FloatArray:
        for signed in (step, -step):
            moved = values.copy()
            moved[k] += signed
            slope = (self._evaluate(moved) - here) / signed
            if np.isfinite(slope).all():
                return slope
        return np.zeros_like(here)  # neighbours that cannot be solved: no direction to go from here


class _Group:
    """Trials that differ in the number of clients only: one recursion answers all of them.

    All times are linear in the parameters, so they are known everywhere once they are known at a point and
    at one more per parameter.
    """

    def __init__(self, forms: Sequence[ProductForm], base: FloatArray, steps: FloatArray) -> None:
        first = forms[0]
        self.form = first

        def slope(read: Callable[[ProductForm], FloatArray]) -> tuple[FloatArray, FloatArray]:
            here = read(first)
            if len(forms) == 1:
                return here, np.zeros((*here.shape, 0))
            rises = [(read(f) - here) / s for f, s in zip(forms[1:], steps, strict=True)]
            rise = np.stack(rises, axis=-1)
            return here - rise @ base, rise

        self.demands = slope(lambda f: f.demands)
        self.beside = slope(lambda f: np.array([f.think, f.delay]))
        self.work = slope(lambda f: f.work)
        self.delays = slope(lambda f: f.delays)
        self.own = slope(lambda f: f.own)


class ExactForward:
    """Predictions by mean value analysis, with exact derivatives; see ``simulator.analytic.product_form``."""

    exact = True

    def __init__(
        self,
        groups: Sequence[tuple[_Group, dict[int, int]]],
        model: Model,
        measures: Sequence[str],
        size: int,
    ) -> None:
        self._groups, self._model = groups, model
        self._measures = [self._reader(long_name(m)) for m in measures]
        self._size = size
        self._known: tuple[bytes, tuple[FloatArray, FloatArray]] | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        parameters: Sequence[Parameter],
        scales: FloatArray,
        trials: Sequence[Settings],
        measures: Sequence[str],
    ) -> ExactForward | None:
        """Return the forward model; None if the model or a figure of it has no exact solution here."""
        simple = all(s.linear or s.path == "clients" for trial in trials for s, _ in trial)
        if not simple or not all(p.linear for p in parameters):
            return None
        sharing: dict[Settings, list[int]] = defaultdict(list)
        for index, trial in enumerate(trials):
            sharing[tuple(s for s in trial if s[0].path != "clients")].append(index)
        groups = []
        for settings, members in sharing.items():
            configured = with_settings(model, settings)
            if len(configured.reference_tasks) != 1:
                return None
            now = configured.reference_tasks[0].threads
            clients = {i: {s.path: v for s, v in trials[i]}.get("clients", now) for i in members}
            most = max(clients.values())
            if not most < float("inf"):
                return None
            configured = Parameter("clients", "", 1, most).apply(configured, most)
            points = [scales, *(scales + scales * unit for unit in np.eye(len(scales)))]
            forms = [_at(configured, parameters, point) for point in points]
            solid = [f for f in forms if f is not None]
            if len(solid) < len(forms) or not all(solid[0].same_shape(f) for f in solid):
                return None
            groups.append((_Group(solid, scales, scales), {i: int(n) for i, n in clients.items()}))
        try:
            return cls(groups, model, measures, len(trials))
        except LookupError:
            return None  # a figure the layered estimate may know

    def means(self, values: FloatArray) -> FloatArray:  # noqa: D102
        return self.sensitivities(values)[0]

    def sensitivities(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        key = values.tobytes()
        if self._known is None or self._known[0] != key:
            self._known = key, self._evaluate(values)  # asked for again at once, by the derivatives
        return self._known[1]

    def _evaluate(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        means = np.empty((self._size, len(self._measures)))
        slopes = np.empty((*means.shape, len(values)))
        for group, clients in self._groups:
            point = _Point(group, values)
            if point.demands.sum() + point.beside.sum() <= 0:
                return np.full_like(means, math.nan), np.full_like(slopes, math.nan)
            solved = mean_values(
                point.demands, group.demands[1], float(point.beside.sum()), group.beside[1].sum(axis=0),
                tuple(clients.values()),
            )  # fmt: skip
            trials = list(clients)
            for column, read in enumerate(self._measures):
                means[trials, column], slopes[trials, column] = read(point, solved)
        return means, slopes

    def _reader(self, measure: str) -> _Reader:
        """Return the function that reads off a figure.

        Raises:
            LookupError: There is none.
        """
        group, name, figure = FigureRef.parse(measure)
        if group == "cycle":
            return {"throughput": _throughput, "response_time": _response, "cycle_time": _cycle}[figure]
        labels, tasks = self._groups[0][0].form.labels, self._groups[0][0].form.tasks
        if group == "entries":
            plan = labels.index(name) if name in labels else -1
            if plan < 0:
                raise LookupError(measure)
            return {"response_time": _entry_time(plan), "throughput": _rate([plan])}[figure]
        if group == "tasks":
            plans = [i for i, task in enumerate(tasks) if task == name]
            places = self._model.task(name).threads * self._model.task(name).replicas if plans else 0
            if not 0 < places < float("inf") or self._model.task(name).is_reference:
                raise LookupError(measure)
            readers = {"throughput": _rate(plans), "utilization": _load(plans, places, _held)}
            return (readers | {"busy": _load(plans, 1.0, _held)})[figure]
        on = [i for i, t in enumerate(tasks) if self._model.task(t).processor == name]
        processor = self._model.processor(name) if on else None
        if figure != "utilization" or processor is None or not processor.cores < float("inf"):
            raise LookupError(measure)
        if processor.discipline == "infinite":
            raise LookupError(measure)
        return _load(on, processor.cores, _own)


def _at(model: Model, parameters: Sequence[Parameter], values: FloatArray) -> ProductForm | None:
    for parameter, value in zip(parameters, values, strict=True):
        model = parameter.apply(model, float(value))
    return product_form(model)


class _Point:
    """The times of a group at some values of the parameters.

    Figures are arrays with one element per number of clients (n), derivatives have the shape (n, k).
    """

    def __init__(self, group: _Group, values: FloatArray) -> None:
        self.group, self.values = group, values
        self.demands: FloatArray = group.demands[0] + group.demands[1] @ values
        self.beside: FloatArray = group.beside[0] + group.beside[1] @ values

    def entry(self, plan: int, means: Means) -> tuple[FloatArray, FloatArray]:
        """Return the mean response time of an entry, from arrival to reply, and its derivatives."""
        rise, drift = self.group.work[1][plan], self.group.delays[1][plan]
        work = self.group.work[0][plan] + rise @ self.values
        delay = self.group.delays[0][plan] + drift @ self.values
        return means.stretch @ work + delay, means.stretch @ rise + work @ means.dstretch + drift

    def held(self, plan: int, means: Means) -> tuple[FloatArray, FloatArray]:
        """Return how long an entry holds its thread, and the derivatives."""
        at = self.group.form.queues[plan]
        if at < 0:
            return self.entry(plan, means)
        rise = self.group.work[1][plan, at]
        time = self.group.work[0][plan, at] + rise @ self.values
        return np.full_like(means.throughput, time), np.broadcast_to(rise, means.dthroughput.shape)

    def own(self, plan: int, means: Means) -> tuple[FloatArray, FloatArray]:
        """Return the processor seconds of an entry itself, and their derivatives."""
        rise = self.group.own[1][plan]
        time = self.group.own[0][plan] + rise @ self.values
        return np.full_like(means.throughput, time), np.broadcast_to(rise, means.dthroughput.shape)


_Reader = Callable[[_Point, Means], tuple[FloatArray, FloatArray]]


def _throughput(point: _Point, means: Means) -> tuple[FloatArray, FloatArray]:  # noqa: ARG001
    return means.throughput, means.dthroughput


def _response(point: _Point, means: Means) -> tuple[FloatArray, FloatArray]:
    drift = point.group.beside[1][1]
    slope = means.stretch @ point.group.demands[1] + point.demands @ means.dstretch + drift
    return means.stretch @ point.demands + point.beside[1], slope


def _cycle(point: _Point, means: Means) -> tuple[FloatArray, FloatArray]:
    response, slope = _response(point, means)
    return response + point.beside[0], slope + point.group.beside[1][0]


def _entry_time(plan: int) -> _Reader:
    return lambda point, means: point.entry(plan, means)


def _rate(plans: Sequence[int]) -> _Reader:
    def read(point: _Point, means: Means) -> tuple[FloatArray, FloatArray]:
        visits = float(point.group.form.visits[list(plans)].sum())
        return visits * means.throughput, visits * means.dthroughput

    return read


def _load(
    plans: Sequence[int],
    places: float,
    time_of: Callable[[_Point, int, Means], tuple[FloatArray, FloatArray]],
) -> _Reader:
    """Return the reader of the mean number of requests in some time, divided by the places they are in."""

    def read(point: _Point, means: Means) -> tuple[FloatArray, FloatArray]:
        time, slope = np.zeros_like(means.throughput), np.zeros_like(means.dthroughput)
        for plan in plans:
            visits = float(point.group.form.visits[plan])
            spent, rise = time_of(point, plan, means)
            time, slope = time + visits * spent, slope + visits * rise
        rate = means.throughput
        return time * rate / places, (slope * rate[:, None] + time[:, None] * means.dthroughput) / places

    return read


def _held(point: _Point, plan: int, means: Means) -> tuple[FloatArray, FloatArray]:
    return point.held(plan, means)


def _own(point: _Point, plan: int, means: Means) -> tuple[FloatArray, FloatArray]:
    return point.own(plan, means)
