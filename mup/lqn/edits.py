"""Edits of clients, threads, replicas and cores. They return a new model and leave theirs alone.

Every edit sets a value (it does not multiply the old one), so the order of edits of different elements
does not matter and repeating one changes nothing. How requests flow inside an entry is edited in
``routing_edits``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast, get_args

from mup.errors import UncalibratedError, UsageError, did_you_mean
from mup.lqn.distributions import Constant, Distribution, Exponential, rescaled
from mup.lqn.model import Activity, Admission, Entry, Model, Processor, Task
from mup.lqn.refs import EntryRef, Names
from mup.lqn.visits import activity_visits

__all__ = [
    "with_admission",
    "with_arrivals",
    "with_clients",
    "with_cores",
    "with_faster_machines",
    "with_placement",
    "with_pool",
    "with_replicas",
    "with_speed",
    "with_think",
]


def with_clients(model: Model, clients: int, task: str | None = None) -> Model:
    """Return the model with another number of clients.

    Args:
        model: The model to change.
        clients: Whole number >= 1.
        task: Which reference task; needed only if there are several.

    Raises:
        UsageError: The number is out of range, there is no such reference task, or several to choose from.
    """
    count = _whole(clients, "clients")
    names = [t.name for t in model.reference_tasks]
    if task is None:
        if len(names) != 1:
            raise UsageError(
                f"the model has {len(names)} reference tasks; say which one gets {count} clients",
                hint=f"for instance {names[0]}={count} (known: {', '.join(names)})" if names else "",
            )
        task = names[0]
    if task not in names:
        raise UsageError(f"no reference task {task!r}; {did_you_mean(task, names)}")
    found = model.task(task)
    if found.is_open:
        raise UsageError(
            f"{task!r} has no clients: its scenario starts at arrivals from outside",
            hint="change the arrival rate instead",
        )
    return model.with_task(replace(found, threads=count))


def with_arrivals(model: Model, rate: float, name: str | None = None) -> Model:
    """Return the model with requests arriving from outside at another rate.

    A reference task whose clients cycle becomes an open source: its scenario starts at exponential
    intervals, also while earlier ones are under way, and the think time before each cycle is gone (think
    steps inside the scenario stay). Intervals that were known before keep their distribution.

    Args:
        model: The model to change.
        rate: Arrivals per second.
        name: A reference task, or an entry with arrivals of its own as results name it (``A/epA/``,
            ``db.qry``); needed only if there are several.

    Raises:
        UsageError: The rate is no number > 0, there is no such source, or several to choose from.
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise UsageError(f"the arrival rate must be a number per second > 0, got {rate!r}")
    if not 0 < 1 / rate < math.inf:
        raise UsageError(f"the arrival rate is out of range, got {rate!r}")
    sources = {t.name: (t, t.entries[0]) for t in model.reference_tasks}
    names = Names(model.tasks)
    places = {}
    for task in model.tasks:
        for entry in task.entries:
            if entry.arrivals is not None and not task.is_reference:
                ref = EntryRef(task.name, entry.name)
                sources[names.source(ref)] = places[ref] = (task, entry)
    if name is None:
        if len(sources) != 1:
            raise UsageError(
                f"the model has {len(sources)} sources of load; say which one gets {rate:g} arrivals/s",
                hint=f"for instance {next(iter(sources))}={rate:g} (known: {', '.join(sources)})"
                if sources
                else "",
            )
        (name,) = sources
    found = sources.get(name) or places.get(names.spoken_entry(name) or EntryRef("", ""))
    if found is None:
        raise UsageError(f"nothing arrives at {name!r} from outside; {did_you_mean(name, list(sources))}")
    task, entry = found
    if entry.arrivals is None:
        arrivals: Distribution = Exponential(1 / rate)
    else:
        arrivals = entry.arrivals.scaled(1 / rate / entry.arrivals.mean)
    entries = tuple(replace(e, arrivals=arrivals) if e.name == entry.name else e for e in task.entries)
    if task.is_reference:
        task = replace(task, threads=math.inf, think=None, entries=entries)
    return model.with_task(replace(task, entries=entries))


def with_pool(model: Model, task: str, threads: float) -> Model:
    """Return the model with another number of threads per replica (``math.inf``: no limit).

    Raises:
        UsageError: The number is out of range, or the task is unknown or a reference task.
    """
    found = _service(model, task, "pool")
    if threads != math.inf:
        threads = _whole(threads, f"pool of {task!r}")
    return model.with_task(replace(found, threads=threads))


def with_admission(model: Model, task: str, order: str) -> Model:
    """Return the model with requests that wait for a thread of a task admitted in another order.

    Raises:
        UsageError: The order is not ``fifo``, ``random`` or ``hol``, or the task is unknown or a reference
            task.
    """
    found = _service(model, task, "order of admission")
    if order not in get_args(Admission):
        known = ", ".join(get_args(Admission))
        raise UsageError(f"admission of {task!r} must be one of {known}, got {order!r}")
    return model.with_task(replace(found, admission=cast("Admission", order)))


def with_replicas(model: Model, task: str, replicas: int) -> Model:
    """Return the model with another number of replicas.

    Replicas of threads, or with an event loop, bring the core they share with them: the part of a processor
    that this task alone has grows with it. So do semaphores and locks that this task alone takes.

    Raises:
        UsageError: The number is out of range, or the task is unknown or a reference task.
    """
    found = _service(model, task, "replicas")
    changed = model.with_task(replace(found, replicas=_whole(replicas, f"replicas of {task!r}")))
    for semaphore in _semaphores_of(model, task):
        permits, rest = divmod(semaphore.threads, found.replicas)
        if not rest:
            changed = changed.with_task(replace(semaphore, threads=permits * replicas))
    own = next((p for p in model.processors if p.name == found.processor and p.parent is not None), None)
    if own is None or any(t.processor == own.name for t in model.tasks if t.name != task):
        return changed
    whole = model.processor(own.parent) if own.parent is not None else None
    # Two replicas are pinned to two cores: together they are on the machine, no longer on one core of it.
    parent = whole.parent if whole is not None and whole.parent is not None and replicas > 1 else own.parent
    return changed.with_processor(replace(own, cores=own.cores * replicas / found.replicas, parent=parent))


def with_cores(model: Model, processor: str, cores: float) -> Model:
    """Return the model with another number of cores of a processor (``math.inf``: one for every thread).

    A processor that had a core for every thread becomes a processor-sharing one.

    Raises:
        UsageError: The number is out of range or the processor unknown.
    """
    found = _processor(model, processor)
    if cores != math.inf:
        cores = _whole(cores, f"cores of {processor!r}")
    discipline = "ps" if found.discipline == "infinite" else found.discipline
    return model.with_processor(replace(found, cores=cores, discipline=discipline))


def with_speed(model: Model, processor: str, speed: float) -> Model:
    """Return the model with cores of another speed; a demand of d seconds then takes d / speed.

    Raises:
        UsageError: The factor is not a number > 0 or the processor is unknown.
    """
    found = _processor(model, processor)
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 < speed < math.inf:
        raise UsageError(f"speed of {processor!r} must be a factor > 0, got {speed!r}")
    return model.with_processor(replace(found, speed=float(speed)))


def with_faster_machines(model: Model, factor: float) -> Model:
    """Return the model on machines that are faster by a factor; parts of a processor share its speed.

    Raises:
        UsageError: The factor is not a number > 0.
    """
    for processor in model.processors:
        if processor.parent is None:
            model = with_speed(model, processor.name, processor.speed * factor)
    return model


def with_placement(model: Model, task: str, processor: str | None) -> Model:
    """Return the model with a task placed on another of its processors.

    Args:
        model: The model to change.
        task: Any task, the clients too.
        processor: Its name; None, ``"none"`` or ``"inf"``: as many cores as the task can use.

    Raises:
        UsageError: The task or the processor is unknown.
    """
    names = [t.name for t in model.tasks]
    if task not in names:
        raise UsageError(f"no task {task!r}; {did_you_mean(task, names)}")
    if processor in ("none", "inf") and all(p.name != processor for p in model.processors):
        processor = None
    if processor is not None:
        _processor(model, processor)
    return model.with_task(replace(model.task(task), processor=processor))


def with_think(model: Model, seconds: float) -> Model:
    """Return the model with another mean think time per cycle, of every reference task with clients.

    All think times of a cycle are scaled by the same factor and keep their distributions. Clients that
    did not think so far get an exponential think time before each cycle; a single think step whose time
    was never measured gets an exponential one.

    Raises:
        UsageError: The time is not a number of seconds >= 0, or everything arrives from outside.
        UncalibratedError: All of several think times, or the probability of getting to one, were never
            measured.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise UsageError(f"think time must be a number of seconds >= 0, got {seconds!r}")
    clients = [t for t in model.reference_tasks if not t.is_open]
    if not clients and model.reference_tasks:
        raise UsageError(
            "no client thinks: all requests arrive from outside", hint="change the arrival rate instead"
        )
    for task in clients:
        model = model.with_task(_think(task, seconds))
    return model


def _think(task: Task, seconds: float) -> Task:
    entry = task.entries[0]
    visits = activity_visits(entry)
    pauses = [a for a in entry.activities if a.kind == "think" and visits[a.name] > 0]
    unknown = [a for a in pauses if a.delay is None]
    now = task.think.mean if task.think is not None else 0.0
    now += sum(visits[a.name] * a.delay.mean for a in pauses if a.delay is not None)
    if now == 0 and unknown:
        return replace(task, entries=(_with_pauses(task, unknown, visits, seconds),))
    if now == 0:
        return replace(task, think=Exponential(seconds) if seconds > 0 else None)

    factor = seconds / now

    def scaled(activity: Activity) -> Activity:
        if activity.kind != "think" or activity.delay is None:
            return activity
        return replace(activity, delay=rescaled(activity.delay, factor))

    changed: Entry = replace(entry, activities=tuple(scaled(a) for a in entry.activities))
    think = None if task.think is None else rescaled(task.think, factor)
    return replace(task, think=think, entries=(changed,))


def _with_pauses(
    task: Task, unknown: Sequence[Activity], visits: Mapping[str, float], seconds: float
) -> Entry:
    """Return the scenario of a task whose think steps, all of them unknown so far, take so long together."""
    entry = task.entries[0]
    if len(unknown) > 1 and seconds > 0:
        raise UncalibratedError(
            f"which part of {seconds:g} s of think time is its own was never measured: it is one of"
            f" {len(unknown)} think steps without a time",
            where=f"tasks[{task.name!r}].entries[{entry.name!r}].activities[{unknown[0].name!r}].delay",
            hint="set them in the model file",
        )
    times = {a.name: Exponential(seconds / visits[a.name]) if seconds > 0 else Constant(0.0) for a in unknown}
    return replace(
        entry,
        activities=tuple(replace(a, delay=times[a.name]) if a.name in times else a for a in entry.activities),
    )


def _service(model: Model, name: str, what: str) -> Task:
    known = [t.name for t in model.tasks if not t.is_reference]
    for task in model.tasks:
        if task.name == name and task.is_reference:
            raise UsageError(
                f"{name!r} stands for clients and has no {what}", hint="change the number of clients instead"
            )
        if task.name == name:
            return task
    raise UsageError(f"no task {name!r}; {did_you_mean(name, known)}")


def _semaphores_of(model: Model, task: str) -> list[Task]:
    """Return the semaphores that no other task takes: each replica has its own."""
    callers: dict[str, set[str]] = {}
    for caller in model.tasks:
        for called in (c.task for e in caller.entries for a in e.activities for c in a.calls):
            callers.setdefault(called, set()).add(caller.name)
    return [t for t in model.tasks if t.is_semaphore and callers.get(t.name) == {task}]


def _processor(model: Model, name: str) -> Processor:
    known = [p.name for p in model.processors]
    for processor in model.processors:
        if processor.name == name:
            return processor
    raise UsageError(f"no processor {name!r}; {did_you_mean(name, known)}")


def _whole(value: float, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{what} must be a whole number >= 1, got {value!r}")
    if value < 1 or value != int(value):
        raise UsageError(f"{what} must be a whole number >= 1, got {value!r}")
    return int(value)
