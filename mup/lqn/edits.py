"""What if there were more clients, threads, replicas, cores? Edits return a new model and leave theirs alone.

Every edit sets a value (it does not multiply the old one), so the order of edits of different elements
does not matter and repeating one changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace

from mup.errors import UsageError, did_you_mean
from mup.lqn.distributions import Exponential
from mup.lqn.model import Activity, Entry, Model, Processor, Task
from mup.lqn.visits import activity_visits

__all__ = ["with_clients", "with_cores", "with_pool", "with_replicas", "with_speed", "with_think"]


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
    return model.with_task(replace(model.task(task), threads=count))


def with_pool(model: Model, task: str, threads: float) -> Model:
    """Return the model with another number of threads per replica (``math.inf``: no limit).

    Raises:
        UsageError: The number is out of range, or the task is unknown or a reference task.
    """
    found = _service(model, task, "pool")
    if threads != math.inf:
        threads = _whole(threads, f"pool of {task!r}")
    return model.with_task(replace(found, threads=threads))


def with_replicas(model: Model, task: str, replicas: int) -> Model:
    """Return the model with another number of replicas.

    Raises:
        UsageError: The number is out of range, or the task is unknown or a reference task.
    """
    found = _service(model, task, "replicas")
    return model.with_task(replace(found, replicas=_whole(replicas, f"replicas of {task!r}")))


def with_cores(model: Model, processor: str, cores: float) -> Model:
    """Return the model with another number of cores of a processor (``math.inf``: one for everybody).

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


def with_think(model: Model, seconds: float) -> Model:
    """Return the model with another mean think time per cycle, of every reference task.

    All think times of a cycle are scaled by the same factor and keep their distributions. Clients that
    did not think so far get an exponential think time before each cycle.

    Raises:
        UsageError: The time is not a number of seconds >= 0.
        UncalibratedError: A think time or the probability of getting to it was never measured.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise UsageError(f"think time must be a number of seconds >= 0, got {seconds!r}")
    for task in model.reference_tasks:
        model = model.with_task(_think(task, seconds))
    return model


def _think(task: Task, seconds: float) -> Task:
    entry = task.entries[0]
    visits = activity_visits(entry)
    now = task.think.mean if task.think is not None else 0.0
    now += sum(visits[a.name] * a.delay.mean for a in entry.activities if a.kind == "think" and a.delay)
    if now == 0:
        return replace(task, think=Exponential(seconds) if seconds > 0 else None)

    factor = seconds / now

    def scaled(activity: Activity) -> Activity:
        if activity.kind != "think" or activity.delay is None:
            return activity
        return replace(activity, delay=activity.delay.scaled(factor))

    changed: Entry = replace(entry, activities=tuple(scaled(a) for a in entry.activities))
    think = None if task.think is None else task.think.scaled(factor)
    return replace(task, think=think, entries=(changed,))


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
