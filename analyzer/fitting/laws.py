"""Laws that measurements obey whatever the parameters are: what breaks one is refused before it is fitted.

A fit finds values for everything, also for milliseconds in a column of seconds: where errors are taken from
its residuals, the wrong figure merely counts for less. These laws hold in every steady state, whatever the
distributions:

- Little's law of a closed system: clients = throughput x (response time + think time);
- the utilization law: busy servers = throughput x work per cycle, and no more than there are;
- Little's law of an entry whose callers wait: clients are an upper bound of the requests in it;
- flow balance of an open system: throughput = arrivals.

Source: Lazowska, Zahorjan, Graham, Sevcik, "Quantitative System Performance", chapter 3 and section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from analyzer.data_checks.of_windows import check_trials
from analyzer.fitting.data import Data, Trial
from analyzer.fitting.forward import with_settings
from analyzer.fitting.measures import long_name
from analyzer.fitting.parameters import Parameter, parameter
from mup.errors import MupError, UsageError
from mup.lqn.model import Model, Task
from mup.lqn.refs import EntryRef, FigureRef, Names
from mup.lqn.visits import activity_visits, entry_rates

__all__ = ["check_laws"]

IMPOSSIBLE: Final = 2.0
"""Factor by which a law is missed that no error of measurement explains."""
NOTICED: Final = 0.2
"""Relative distance from a law that is worth a warning."""
FULL: Final = 1.05
"""A utilization may be this large by rounding and by the edges of its window."""
CROWDED: Final = 10.0
"""Times the clients that may be within an entry: calls side by side add up to a few times."""
SPARSE: Final = 0.01
"""Part of the clients in the system from which on it could be meant."""

_STRUCTURE: Final = ("calls", "probability", "speed")
"""Kinds of parameters that change the work of tasks they do not belong to."""


@dataclass(frozen=True, slots=True)
class _Broken:
    """A law that one trial breaks.

    Attributes:
        trial: Which.
        columns: The measured figures in it.
        ratio: What is measured relative to what the law says.
        text: Which law, with both sides.
        remedy: What to look at.
        bound: The law is one: less than it says is fine.
    """

    trial: Trial
    columns: tuple[str, ...]
    ratio: float
    text: str
    remedy: str
    bound: bool = False

    @property
    def off(self) -> float:
        """Factor by which it is missed, >= 1."""
        if self.bound:
            return max(self.ratio, 1.0)
        return max(self.ratio, 1 / self.ratio) if self.ratio > 0 else math.inf

    def said(self) -> str:
        """Where and what, in one sentence without a full stop."""
        columns = " and ".join(repr(c) for c in self.columns)
        lines = self.trial.lines
        where = f"line{'s' if len(lines) > 1 else ''} {_spans(lines)}, " if lines else ""
        settings = ", ".join(f"{s.path}={v:g}" for s, v in self.trial.settings)
        noun = "column" if len(self.columns) == 1 else "columns"
        return f"{where}{noun} {columns}{f' ({settings})' if settings and not lines else ''}: {self.text}"


def check_laws(model: Model, data: Data, fitted: Sequence[Parameter]) -> list[str]:
    """Check measurements against the laws that hold whatever the values of the fitted parameters are.

    Args:
        model: With what is not fitted at the values it has.
        data: The measurements.
        fitted: The parameters that are free.

    Returns:
        Warnings: what misses a law by more than errors of measurements usually do.

    Raises:
        UsageError: A law is missed by more than any error of measurement explains.
    """
    broken = [b for trial in data.trials for b in _broken(model, data, trial, fitted)]
    impossible = [b for b in broken if b.off > IMPOSSIBLE]
    if impossible:
        first, more = impossible[0], len({id(b.trial) for b in impossible}) - 1
        others = f"; so {'do' if more > 1 else 'does'} {more} more of {len(data.trials)} configurations"
        raise UsageError(f"{first.said()}{others if more else ''}", where=data.path, hint=first.remedy)
    said = [f"{b.said()}; {b.remedy}" for b in broken if b.off > 1 + NOTICED]
    if not said:
        # What configurations say about each other, where the model says nothing they could be held against.
        findings = check_trials(data, precision=0.05).findings
        said = [f.text for f in findings if f.state == "problem"]
    return said


def _broken(model: Model, data: Data, trial: Trial, fitted: Sequence[Parameter]) -> Iterator[_Broken]:
    configured = with_settings(model, trial.settings)
    means = {
        long_name(name): (name, float(mean))
        for name, mean in zip(data.measures, trial.means, strict=True)
        if math.isfinite(mean)
    }
    yield from _shares(configured, trial, means)
    sources = configured.reference_tasks
    alone = not any(e.arrivals is not None for t in configured.tasks if not t.is_reference for e in t.entries)
    if len(sources) != 1 or not alone:
        return  # figures per cycle are sums of several kinds of cycles
    if sources[0].is_open:
        yield from _flow(configured, trial, means, fitted)
    else:
        yield from _little(configured, sources[0], trial, means, fitted)
        yield from _inside_entries(configured, sources[0], trial, means, fitted)
    yield from _work(configured, sources[0], trial, means, fitted)


_Means = dict[str, tuple[str, float]]
"""Column and mean by the long name of a figure."""
T = TypeVar("T")


def _shares(model: Model, trial: Trial, means: _Means) -> Iterator[_Broken]:
    """A utilization is a share of what there is."""
    for figure, (column, value) in means.items():
        ref = FigureRef.parse(figure)
        if ref.figure != "utilization" or value <= FULL or ref.group not in ("tasks", "processors"):
            continue
        limit = _limit(model, ref.group, ref.name)
        if math.isfinite(limit):
            percent = 1.5 < value <= 100 * FULL
            remedy = "give shares from 0 to 1" + (": divide percentages by 100" if percent else "")
            yield _Broken(trial, (column,), math.inf, f"must be a share of 0 to 1, got {value:g}", remedy)


def _limit(model: Model, group: str, name: str) -> float:
    """Return how many servers a task or processor has; infinite if there is no such one."""
    if group == "tasks":
        return next((t.threads * t.replicas for t in model.tasks if t.name == name), math.inf)
    return next((float(p.cores) for p in model.processors if p.name == name), math.inf)


def _flow(model: Model, trial: Trial, means: _Means, fitted: Sequence[Parameter]) -> Iterator[_Broken]:
    """In a steady state as many requests leave as arrive."""
    if "cycle.throughput" not in means or _free(fitted, "arrivals"):
        return
    rate = _read(model, "arrivals")
    column, value = means["cycle.throughput"]
    if rate:
        text = f"{value:.4g} requests/s leave, but {rate:.4g} arrive"
        remedy = "rates are in 1/s; a system that cannot keep up has no steady state to fit"
        yield _Broken(trial, (column,), value / rate, text, remedy)


def _little(
    model: Model, source: Task, trial: Trial, means: _Means, fitted: Sequence[Parameter]
) -> Iterator[_Broken]:
    """Little's law of the whole system."""
    if "cycle.throughput" not in means or _free(fitted, "clients"):
        return
    clients = source.threads * source.replicas
    rate_column, rate = means["cycle.throughput"]
    if "cycle.cycle_time" in means:
        column, time = means["cycle.cycle_time"]
        yield _closed(trial, clients, (rate_column, column), rate, time, 0.0)
        return
    think = None if _free(fitted, "think", source.name) else _read(model, "think")
    if "cycle.response_time" in means:
        column, time = means["cycle.response_time"]
        yield _closed(trial, clients, (rate_column, column), rate, time, think)
    elif think:
        text = (
            f"{clients:g} clients that think for {think:.4g} s make at most {clients / think:.4g} "
            f"requests/s, got {rate:.4g}"
        )
        remedy = "is it a rate per second, and is the think time of the model right (--estimate think)?"
        yield _Broken(trial, (rate_column,), rate * think / clients, text, remedy, bound=True)


def _closed(
    trial: Trial, clients: float, columns: tuple[str, str], rate: float, time: float, think: float | None
) -> _Broken:
    inside = rate * (time + (think or 0.0))
    thinking = f" + {think:.4g} s of thinking" if think else ""
    text = (
        f"{clients:g} clients, but throughput x (response time{thinking}) = {rate:.4g}/s x "
        f"{time + (think or 0.0):.4g} s = {inside:.4g} are there at once (Little's law)"
    )
    ratio = inside / clients
    return _Broken(trial, columns, ratio, text, _remedy(ratio, clients, rate, time, think), think is None)


def _remedy(ratio: float, clients: float, rate: float, time: float, think: float | None) -> str:
    swapped = time * (rate + (think or 0.0)) / clients
    seconds = rate * (time / 1000 + (think or 0.0)) / clients
    if ratio > 1 + NOTICED and (
        abs(seconds - 1) <= NOTICED if think is not None else SPARSE < seconds < FULL
    ):
        return "times are in seconds: divide milliseconds by 1000"
    if abs(swapped - 1) <= NOTICED < abs(ratio - 1):
        return "throughput and response time may be exchanged"
    if ratio < 1 and rate > 0:
        missing = clients / rate - time
        return (
            f"a think time of {missing:.3g} s would explain it: set it in the model or a column 'think', or "
            "--estimate think; else check units (s and 1/s)"
        )
    return "check units (s and 1/s), which column is which, and clients and think time of the model"


def _inside_entries(
    model: Model, source: Task, trial: Trial, means: _Means, fitted: Sequence[Parameter]
) -> Iterator[_Broken]:
    """No more requests are in an entry than there are clients, if those that call it wait."""
    waited = all(
        call.kind == "synchronous"
        for task in model.tasks
        for entry in task.entries
        for activity in entry.activities
        for call in activity.calls
    )
    if not waited or "cycle.throughput" not in means or _free(fitted, "clients", *_STRUCTURE):
        return
    clients = source.threads * source.replicas
    rate = means["cycle.throughput"][1]
    names = Names(model.tasks)
    visits = {names.entries[EntryRef(*key)]: n for key, n in _visits(model, source).items()}
    for figure, (column, value) in means.items():
        ref = FigureRef.parse(figure)
        if ref.group != "entries" or ref.figure != "response_time" or ref.name not in visits:
            continue
        inside = rate * visits[ref.name] * value
        text = f"{inside:.4g} requests would be in {ref.name} at once, and there are {clients:g} clients"
        ratio = inside / clients * IMPOSSIBLE / CROWDED
        yield _Broken(
            trial, (column,), ratio, text, "times are in seconds: are these milliseconds?", bound=True
        )


def _work(
    model: Model, source: Task, trial: Trial, means: _Means, fitted: Sequence[Parameter]
) -> Iterator[_Broken]:
    """The utilization law: work that is known takes no more servers than there are."""
    if "cycle.throughput" not in means or any(p.kind in _STRUCTURE for p in fitted):
        return
    column, rate = means["cycle.throughput"]
    visits = _visits(model, source)
    free = {_owner(p, model) for p in fitted}
    per_task = {t.name: _demand(t, visits) for t in model.tasks if not t.is_reference and t.name not in free}
    for task in model.tasks:
        known = per_task.get(task.name, 0.0)
        places = task.threads * task.replicas
        # Its processor may be fast or slow, or its time depend on the load.
        if known > 0 and math.isfinite(places) and task.processor is None and task.load_dependence is None:
            yield _overloaded(trial, column, rate, task.name, known, places)
    for processor in model.processors:
        on = [t for t in model.tasks if t.processor == processor.name]
        known = sum(per_task.get(t.name, 0.0) for t in on) / processor.speed
        if processor.discipline == "infinite" or any(t.load_dependence is not None for t in on):
            continue
        if known > 0 and math.isfinite(processor.cores) and processor.name not in free:
            yield _overloaded(trial, column, rate, processor.name, known, float(processor.cores))


def _overloaded(trial: Trial, column: str, rate: float, name: str, demand: float, places: float) -> _Broken:
    text = (
        f"{rate:.4g}/s need {demand:.4g} s of {name} each: {rate * demand:.4g} servers of {places:g} "
        "(utilization law)"
    )
    remedy = f"is it a rate per second, and are the demands on {name} right that are not fitted?"
    return _Broken(trial, (column,), rate * demand / places, text, remedy, bound=True)


def _visits(model: Model, source: Task) -> dict[tuple[str, str], float]:
    """Return the requests per cycle to every entry; none if something they depend on was never measured."""
    found = _or_none(lambda: entry_rates(model))
    return {} if found is None else dict(found.get((source.name, source.entries[0].name), {}))


def _demand(task: Task, visits: dict[tuple[str, str], float]) -> float:
    """Return the processor seconds per cycle of a task, as far as they were measured."""
    total = 0.0
    for entry in task.entries:
        runs = _or_none(partial(activity_visits, entry)) or {}
        work = sum(runs.get(a.name, 0.0) * a.demand.mean for a in entry.activities if a.demand is not None)
        total += visits.get((task.name, entry.name), 0.0) * work
    return total


def _owner(free: Parameter, model: Model) -> str | None:
    return _or_none(lambda: free.owner(model))


def _free(fitted: Sequence[Parameter], *kinds: str) -> bool:
    return any(p.kind in kinds for p in fitted)


def _read(model: Model, path: str) -> float | None:
    return _or_none(lambda: parameter(path).read(model))


def _or_none(read: Callable[[], T]) -> T | None:
    """Return what is read; None if the model does not say it, which other parts of a fit tell."""
    try:
        return read()
    except MupError:
        return None


def _spans(lines: Sequence[int]) -> str:
    """Return line numbers, consecutive ones as spans."""
    spans: list[list[int]] = []
    for line in sorted(lines):
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in spans[:3]]
    return ", ".join(shown) + (" .." if len(spans) > 3 else "")
