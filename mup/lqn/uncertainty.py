"""Uncertainty of the numbers of a model, as known from calibration and the test bed.

Two things travel with a calibrated model:

- *replicates*: what the same calibration would have found on other draws of the batches of the exploratory
  run (a bootstrap), as factors on the means of the model's numbers. Simulating all of them shows how far
  the calibration error carries through to a prediction.
- *discrepancy*: by how much predictions were off on other systems, beyond what calibration and measurement
  explain, as a function of the load.
- *one user*: by how much the model is off this very system at one user, beyond what chance explains, and how
  well the shape of its times is known.

Nothing here draws random numbers or simulates; ``simulator.studies.prediction`` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from mup.errors import ModelError
from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    rescaled,
    with_scv,
)
from mup.lqn.model import Activity, Entry, Model, Precedence, Setup, Task
from mup.lqn.refs import ActivityRef, EntryRef, Names

__all__ = [
    "FIGURES",
    "Discrepancy",
    "LoadPoint",
    "OneUser",
    "Replicate",
    "Uncertainty",
    "apply",
    "uncertainty_from_json",
    "uncertainty_problems",
    "uncertainty_to_json",
]

FIGURES: Final = ("response_time", "p95", "throughput", "utilization")
"""What a discrepancy is stated for. The first three are relative, utilization is absolute."""

FACTORS: Final = ("demands", "delays", "demand_spreads", "delay_spreads", "fronts", "counts")
KINDS: Final = (*FACTORS, "probabilities", "setups")
DIGITS: Final = 6
"""Significant digits kept of a factor: more of a resampled mean say nothing, and make the file large."""

ODDS_TOLERANCE: Final = 1e-3
"""What rounding in a file may make of a sum of 1."""

ONE_USER: Final = ("response_time", "p95", "p95_shape", "p95_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One re-calibration from resampled batches, relative to the model; what is missing has not changed.

    Activities go by their text (``mup.lqn.refs.Names.activity``), as in results: ``A/epA/:comp_8``.

    Attributes:
        demands, delays: Factor on the mean of an activity's demand or delay, by activity.
        demand_spreads, delay_spreads: Factor on its coefficient of variation, as far as its family can have
            others.
        fronts: Factor on both times of the front, by task.
        probabilities: Those of the OR that follows an activity (one per ``post``, in its order), by that
            activity; they replace the model's.
        counts: Factor on the mean number of repetitions of a loop's body, by the first activity of the body.
        setups: Factors on all times of a task's set-up, on those of its workers and on those of the core, by
            task.

    Numbers are kept to six significant digits.
    """

    demands: Mapping[str, float] = field(default_factory=dict)
    delays: Mapping[str, float] = field(default_factory=dict)
    demand_spreads: Mapping[str, float] = field(default_factory=dict)
    delay_spreads: Mapping[str, float] = field(default_factory=dict)
    fronts: Mapping[str, float] = field(default_factory=dict)
    probabilities: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    setups: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in FACTORS:
            factors = getattr(self, name)
            for key, factor in factors.items():
                if not _number(factor) or factor < 0:
                    raise ModelError(f"must be a factor >= 0, got {factor!r}", where=f"{name}[{key!r}]")
            object.__setattr__(self, name, {key: _short(factor) for key, factor in factors.items()})
        for key, odds in self.probabilities.items():
            good = all(_number(p) and 0 <= p <= 1 for p in odds)
            if not good or abs(math.fsum(odds) - 1) > ODDS_TOLERANCE:
                raise ModelError(
                    f"must be probabilities that sum to 1, got {list(odds)!r}",
                    where=f"probabilities[{key!r}]",
                )
        for key, both in self.setups.items():
            if len(both) != 2 or not all(_number(f) and f >= 0 for f in both):
                raise ModelError(
                    f"must be two factors >= 0, of the worker and of the core, got {list(both)!r}",
                    where=f"setups[{key!r}]",
                )
        for name in ("probabilities", "setups"):
            short = {key: tuple(map(_short, values)) for key, values in getattr(self, name).items()}
            object.__setattr__(self, name, short)


LoadPoint = tuple[float, float, float]
"""Load (0 to 1), standard deviation, bias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """How far off predictions are although everything was calibrated: what the test bed showed.

    The error is (predicted - measured) / measured, for utilization predicted - measured. Load is the
    utilization of the most utilized processor or pool of the predicted scenario. Between two points the
    figures change linearly, outside of all they stay.

    Attributes:
        points: Per figure of ``FIGURES``: (load, standard deviation, bias) by ascending load. A figure that
            is missing was not examined.
        source: Where this comes from, for people.
        systems: How many systems were examined, none of which is the one being predicted.
        points_used: How many comparisons of a prediction with a real run.
    """

    points: Mapping[str, tuple[LoadPoint, ...]]
    source: str = ""
    systems: int
    points_used: int

    def __post_init__(self) -> None:
        for figure, points in self.points.items():
            where = f"discrepancy[{figure!r}]"
            if figure not in FIGURES:
                raise ModelError(f"unknown figure; known: {', '.join(FIGURES)}", where=where)
            if not points:
                raise ModelError("must hold at least one (load, sd, bias)", where=where)
            for point in points:
                good = len(point) == 3 and all(map(_number, point))
                if not good or not 0 <= point[0] <= 1 or point[1] < 0 or point[2] <= -1:
                    raise ModelError(
                        f"must be (load 0 to 1, sd >= 0, bias > -1), got {list(point)!r}", where=where
                    )
            if any(a[0] >= b[0] for a, b in pairwise(points)):
                raise ModelError("loads must ascend", where=where)
        for name in ("systems", "points_used"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ModelError(f"must be a whole number >= 1, got {count!r}", where=f"discrepancy.{name}")

    def at(self, figure: str, load: float) -> tuple[float, float] | None:
        """Return standard deviation and bias of a figure at a load; None if it was not examined."""
        points = self.points.get(figure)
        if points is None:
            return None
        before = max((p for p in points if p[0] <= load), default=points[0])
        after = min((p for p in points if p[0] >= load), default=points[-1])
        if after[0] == before[0]:
            return before[1], before[2]
        share = (load - before[0]) / (after[0] - before[0])
        return before[1] + share * (after[1] - before[1]), before[2] + share * (after[2] - before[2])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object: the figures, ``source``, ``systems``, ``points_used``."""
        data: dict[str, Any] = {figure: [list(p) for p in points] for figure, points in self.points.items()}
        return data | {"source": self.source, "systems": self.systems, "points_used": self.points_used}

    @classmethod
    def from_json(cls, data: Any) -> Discrepancy:
        """Build it from its JSON object.

        Raises:
            ModelError: Something is missing, unknown or out of range.
        """
        fields = _fields(
            data, "discrepancy", required=("systems", "points_used"), optional=("source", *FIGURES)
        )
        points: dict[str, Any] = {}
        for figure in FIGURES:
            if figure in fields:
                rows = fields[figure]
                if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
                    raise ModelError(
                        f"must be a list of [load, sd, bias], got {rows!r}", where=f"discrepancy.{figure}"
                    )
                points[figure] = tuple(tuple(row) for row in rows)
        source = fields.get("source", "")
        if not isinstance(source, str):
            raise ModelError(f"must be a text, got {source!r}", where="discrepancy.source")
        return cls(points=points, source=source, systems=fields["systems"], points_used=fields["points_used"])


@dataclass(frozen=True, slots=True, kw_only=True)
class OneUser:
    """How far the model is from its own log at one user; parts of the figure but for the last, all >= 0.

    Attributes:
        response_time, p95: By how much the figure of a cycle differs from the log's, where that is more than
            chance explains; else 0.
        p95_shape: Standard deviation of the percentile that comes from what is known of the shape of times,
            beyond their means and coefficients of variation, which replicates change.
        p95_seconds: The percentile that the last two are parts of.
    """

    response_time: float = 0.0
    p95: float = 0.0
    p95_shape: float = 0.0
    p95_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ONE_USER:
            value = getattr(self, name)
            if not _number(value) or value < 0:
                raise ModelError(f"must be a number >= 0, got {value!r}", where=f"one_user.{name}")

    def share_of(self, p95: float) -> float:
        """Return which part of a percentile in seconds the percentile at one user is, at most 1.

        What is wrong with the shape of a time is so many seconds; waiting does not make it more.
        """
        return min(1.0, self.p95_seconds / p95) if p95 > 0 else 0.0

    def to_json(self) -> dict[str, float]:
        """Return the JSON object: its attributes."""
        return {name: getattr(self, name) for name in ONE_USER}

    @classmethod
    def from_json(cls, data: Any) -> OneUser:
        """Build it from its JSON object.

        Raises:
            ModelError: Something is unknown or out of range.
        """
        return cls(**_fields(data, "one_user", required=(), optional=ONE_USER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """What is known about how sure a model is.

    Attributes:
        replicates: Equally likely alternatives to the model; none if calibration error is not known.
        discrepancy: None if the model's error on other systems is not known.
        batches: How many independent batches of data the replicates were drawn from, at least 2; None if that
            is not known, and taken to be enough. However many replicates there are, three batches tell their
            spread no better than three values would.
        one_user: None if the model was not compared with a log of one user.
    """

    replicates: tuple[Replicate, ...] = ()
    discrepancy: Discrepancy | None = None
    batches: int | None = None
    one_user: OneUser | None = None

    def __post_init__(self) -> None:
        batches = self.batches
        if batches is not None and (isinstance(batches, bool) or not isinstance(batches, int) or batches < 2):
            raise ModelError(f"must be a whole number >= 2, got {batches!r}", where="batches")

    @property
    def freedom(self) -> int:
        """Degrees of freedom of what the spread of the replicates says about calibration error."""
        known = len(self.replicates) if self.batches is None else min(len(self.replicates), self.batches)
        return max(1, known - 1)


def apply(model: Model, replicate: Replicate, changed: dict[int, tuple[Task, Task]] | None = None) -> Model:
    """Return the model with the numbers of a replicate, and without uncertainty of its own.

    Means and coefficients of variation change, the families of distributions stay but for the simplest; a
    constant or empirical count stays a whole number, so its shape changes as much as it must. Unchanged
    elements are shared with the model.

    Args:
        model: The model the replicate belongs to, or one edited from it.
        replicate: What to change.
        changed: Keeps each changed task beside the task it was, by the identity of that: given again with
            another edit of the same model, what both share is changed once.
    """
    names = Names(model.tasks)
    memory = {} if changed is None else changed
    for task in model.tasks:
        if id(task) not in memory:
            memory[id(task)] = (task, _task(task, replicate, names))
    tasks = tuple(memory[id(task)][1] for task in model.tasks)
    return model.with_numbers(tasks, model.processors, None)


def _kinds(replicate: Replicate) -> tuple[Mapping[str, Any], ...]:
    """Return the mappings whose keys are activities."""
    return (
        replicate.demands,
        replicate.delays,
        replicate.demand_spreads,
        replicate.delay_spreads,
        replicate.probabilities,
        replicate.counts,
    )


def _task(task: Task, replicate: Replicate, names: Names) -> Task:
    entries = tuple(_entry(task, entry, replicate, names) for entry in task.entries)
    front, factor = task.front, replicate.fronts.get(task.name, 1.0)
    if front is not None and factor != 1:
        front = replace(front, request=_scaled(front.request, factor), reply=_scaled(front.reply, factor))
    setup, factors = task.setup, replicate.setups.get(task.name, (1.0, 1.0))
    if setup is not None and factors != (1.0, 1.0):
        setup = _scaled_setup(setup, *factors)
    same = front is task.front and setup is task.setup
    if same and all(new is old for new, old in zip(entries, task.entries, strict=True)):
        return task
    return replace(task, entries=entries, front=front, setup=setup)


def _scaled_setup(setup: Setup, worker: float, core: float) -> Setup:
    def times(old: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        return {key: (worker * own, core * place) for key, (own, place) in old.items()}

    return replace(setup, demands=times(setup.demands), delays=times(setup.delays))


def _entry(task: Task, entry: Entry, replicate: Replicate, names: Names) -> Entry:
    keys = {a.name: names.activity(ActivityRef(task.name, entry.name, a.name)) for a in entry.activities}
    if not any(key in kind for kind in _kinds(replicate) for key in keys.values()):
        return entry

    def activity(old: Activity) -> Activity:
        key = keys[old.name]
        demand, delay = (
            _spread(_scaled(time, factors.get(key, 1.0)), spreads.get(key, 1.0))
            for time, factors, spreads in (
                (old.demand, replicate.demands, replicate.demand_spreads),
                (old.delay, replicate.delays, replicate.delay_spreads),
            )
        )
        if demand is old.demand and delay is old.delay:
            return old
        return replace(old, demand=demand, delay=delay)

    def arc(old: Precedence) -> Precedence:
        if old.fork == "or":
            odds = next((o for p in old.pre if (o := replicate.probabilities.get(keys[p]))), None)
            if odds is not None:
                total = math.fsum(odds)  # they were rounded
                return replace(old, probabilities=tuple(p / total for p in odds))
        if old.repeats:
            factors = [replicate.counts.get(keys[body], 1.0) for body in old.bodies]
            if any(f != 1 for f in factors):
                counts = (_recounted(c, f) for c, f in zip(old.counts, factors, strict=True))
                return replace(old, counts=tuple(counts))
        return old

    return replace(
        entry,
        activities=tuple(map(activity, entry.activities)),
        precedences=tuple(map(arc, entry.precedences)),
    )


def _scaled(time: Distribution | None, factor: float) -> Distribution | None:
    return time if time is None or factor == 1 else rescaled(time, factor)


def _spread(time: Distribution | None, factor: float) -> Distribution | None:
    """Return a time with another coefficient of variation and the same mean, if its family lets it."""
    if time is None or factor == 1 or time.mean <= 0:
        return time
    scv = time.scv * factor**2
    if isinstance(time, Empirical):
        apart = [max(0.0, time.mean + factor * (value - time.mean)) for value in time.values]
        again = time.mean * len(apart) / math.fsum(apart)
        return Empirical(tuple(value * again for value in apart))
    if isinstance(time, Lognormal) and scv > 0:
        return Lognormal(time.mean, scv)
    if isinstance(time, Hyperexponential):
        # Means of the phases keep their probabilities, and come as much nearer or farther as it takes.
        least = min(time.means)
        most = time.mean / (time.mean - least) if least < time.mean else math.inf
        apart_by = min(math.sqrt(max(scv - 1, 0.0) / (time.scv - 1)), LESS * most) if time.scv > 1 else 1.0
        means = tuple(time.mean + apart_by * (mean - time.mean) for mean in time.means)
        return Hyperexponential(time.probabilities, means)
    return with_scv(time.mean, scv) if isinstance(time, Exponential | Erlang | Gamma) else time


LESS: Final = 0.999
"""Phases keep a mean above 0."""
FINER: Final = 20
"""Values of a changed whole number per value of the old one: its mean is right to 1 / (2 x 20 x values)."""


def _recounted(count: Distribution | None, factor: float) -> Distribution | None:
    """Return a count with another mean; whole numbers stay whole."""
    if count is None or factor == 1:
        return count
    if isinstance(count, Constant):
        values: Sequence[float] = (count.value,)
    elif isinstance(count, Empirical):
        values = count.values
    else:
        return count.scaled(factor)
    result: list[float] = []
    carried = 0.5
    for value in values:
        target = value * factor
        low = math.floor(target)
        for _ in range(FINER):
            # What rounding down leaves over is carried on until it makes a whole one.
            carried += target - low
            extra = carried >= 1
            result.append(float(low + extra))
            carried -= extra
    return Empirical(tuple(sorted(result)))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


# Does it fit its model?


def uncertainty_problems(uncertainty: Uncertainty, tasks: Iterable[Task]) -> Iterator[ModelError]:
    """Yield what replicates name that their model does not have."""
    named: dict[str, dict[str, int]] = {name: {} for name in KINDS}
    tasks = tuple(tasks)
    names = Names(tasks)
    for task in tasks:
        if task.front is not None:
            named["fronts"][task.name] = 0
        if task.setup is not None:
            named["setups"][task.name] = 0
        for entry in task.entries:
            owner = EntryRef(task.name, entry.name)
            keys = {a.name: names.activity(ActivityRef(*owner, a.name)) for a in entry.activities}
            named["demands"].update((key, 0) for key in keys.values())
            for arc in entry.precedences:
                if arc.fork == "or":
                    named["probabilities"].update((keys[pre], len(arc.post)) for pre in arc.pre)
                named["counts"].update((keys[body], 0) for body in arc.bodies)
    named["delays"] = named["demand_spreads"] = named["delay_spreads"] = named["demands"]
    seen = set()
    for kind, known in named.items():
        for replicate in uncertainty.replicates:
            values = getattr(replicate, kind)
            for key in values:
                wrong = key not in known
                if not wrong and kind == "probabilities":
                    wrong = len(values[key]) != known[key]
                if wrong and (kind, key) not in seen:
                    seen.add((kind, key))
                    what = (
                        "has another number of branches here" if key in known else "has nothing of this name"
                    )
                    yield ModelError(
                        f"the model {what}",
                        where=f"uncertainty.{kind}[{key!r}]",
                        hint="a model whose structure was edited needs no 'uncertainty': remove the field",
                    )


# JSON: one line per number of the model, with its values in all replicates.


def uncertainty_to_json(uncertainty: Uncertainty) -> dict[str, Any]:
    """Return the JSON object: per number of the model its list of factors, one per replicate.

    A replicate that lacks a number has null there.
    """
    replicates = uncertainty.replicates
    data: dict[str, Any] = {"replicates": len(replicates)}
    if uncertainty.batches is not None:
        data["batches"] = uncertainty.batches
    for kind in KINDS:
        keys = dict.fromkeys(key for r in replicates for key in getattr(r, kind))
        if keys:
            data[kind] = {key: [_plain(getattr(r, kind).get(key)) for r in replicates] for key in keys}
    if uncertainty.discrepancy is not None:
        data["discrepancy"] = uncertainty.discrepancy.to_json()
    if uncertainty.one_user is not None:
        data["one_user"] = uncertainty.one_user.to_json()
    return data


def _plain(value: float | tuple[float, ...] | None) -> Any:
    return list(value) if isinstance(value, tuple) else value


def uncertainty_from_json(data: Any) -> Uncertainty:
    """Build it from its JSON object.

    Raises:
        ModelError: Something is missing, unknown or out of range; ``where`` says what.
    """
    fields = _fields(
        data, "uncertainty", required=("replicates",), optional=(*KINDS, "batches", "discrepancy", "one_user")
    )
    count = fields["replicates"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ModelError(f"must be a whole number >= 0, got {count!r}", where="uncertainty.replicates")
    columns: list[dict[str, dict[str, Any]]] = [{kind: {} for kind in KINDS} for _ in range(count)]
    for kind in KINDS:
        where = f"uncertainty.{kind}"
        rows = fields.get(kind, {})
        if not isinstance(rows, dict):
            raise ModelError(f"must be an object, got {type(rows).__name__}", where=where)
        for key, values in rows.items():
            if not isinstance(values, list) or len(values) != count:
                raise ModelError(f"must be a list of {count}, one per replicate", where=f"{where}[{key!r}]")
            for column, value in zip(columns, values, strict=True):
                if value is not None:
                    column[kind][key] = value if kind in FACTORS else _several(kind, value, key)
    found, own = fields.get("discrepancy"), fields.get("one_user")
    try:
        return Uncertainty(
            replicates=tuple(Replicate(**column) for column in columns),
            discrepancy=None if found is None else Discrepancy.from_json(found),
            batches=fields.get("batches"),
            one_user=None if own is None else OneUser.from_json(own),
        )
    except ModelError as error:
        error.where = f"uncertainty.{error.where}"
        raise


def _several(kind: str, value: Any, key: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        what = "probabilities" if kind == "probabilities" else "two factors"
        raise ModelError(f"must be a list of {what}, got {value!r}", where=f"uncertainty.{kind}[{key!r}]")
    return tuple(value)


def _fields(data: Any, where: str, *, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of an object that has all required and no unknown ones."""
    if not isinstance(data, dict):
        raise ModelError(f"must be an object, got {type(data).__name__}", where=where)
    for key in required:
        if key not in data:
            raise ModelError(f"field {key!r} is missing", where=where)
    for key in data:
        if key not in required and key not in optional:
            raise ModelError(
                f"unknown field {key!r}; known: {', '.join((*required, *optional))}", where=where
            )
    return data
