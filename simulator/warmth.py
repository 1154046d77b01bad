"""How much processor time does a request take at the load of this very scenario?

A request costs more processor time in a system that is mostly idle than in a busy one. Models say so by
the ``warmth`` of their tasks, as a function of the rate of requests, and by the ``idling`` of their
processors, as a function of their utilization. Both depend on the load, so they are found by iteration:
estimate the load, set the times, estimate again. Times change the load little (think times and other work
stand between), so a few rounds are enough.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammainc

from mup.errors import ModelError, SimulationError, UncalibratedError
from mup.lqn.distributions import Constant, Distribution
from mup.lqn.model import Activity, Entry, Front, Model, Task, Warmth
from mup.lqn.visits import entry_rates

__all__ = ["Load", "at_load", "at_rates", "clients_of", "settled"]

ROUNDS = 4
CLOSE = 0.01
"""Rates that change by less than this no longer change the times by anything one could see."""
ROUGHLY = 0.003
"""Relative change of cycle times from which on the estimate of a load goes on."""
LEAST = 0.3
"""Extrapolation does not take more than 70 % off a processor time."""
EVEN = 0.999
"""Share of the threads, or clients, at work from which on all are: each thread gets as many requests."""
FULL = 50.0
"""So many times as many arrivals as threads keep all of them busy, whatever chance does."""
ROUGH_PRECISION = 0.05
ROUGH_EVENTS = 300_000
ROUGH_SECONDS = 60.0
"""Wall time of a rough simulation at most; its figures so far are used then."""
REMEMBERED = 64

FloatArray = npt.NDArray[np.float64]

_cache: OrderedDict[int, tuple[Model, Model]] = OrderedDict()
_lock = Lock()


def settled(model: Model) -> Model:
    """Return the model with the processor times its own load brings about, and without warmth and idling.

    A model without these is returned as it is. Replicas share the requests of their task evenly; of their
    threads the one that was busy last is asked first.

    Args:
        model: Calibrated at least where load can get to.

    Raises:
        SimulationError: It cannot run at all.
    """
    if all(t.warmth is None for t in model.tasks) and not any(p.idling for p in model.processors):
        return model
    # Replications and intervals ask for the same model many times; the entry keeps it alive, so that
    # its identity is not given to another one.
    with _lock:
        known = _cache.get(id(model))
    if known is not None:
        return known[1]
    result = _settle(model)
    with _lock:
        _cache[id(model)] = (model, result)
        while len(_cache) > REMEMBERED:
            _cache.popitem(last=False)
    return result


@dataclass(frozen=True, slots=True)
class Load:
    """What processor times depend on.

    Attributes:
        rates: Requests per second and replica of every task (of reference tasks: cycles of all clients).
        utilization: Busy share of every processor that has one.
        busy: Mean number of busy threads per replica of every task; what is missing has one at most.
        clients: Of all reference tasks; infinite if there are arrivals from outside.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    utilization: Mapping[str, float] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)
    clients: float = math.inf

    def close_to(self, other: Load) -> bool:
        """Return whether the difference is too small to matter."""
        rates = all(abs(self.rates[n] - r) <= CLOSE * r for n, r in other.rates.items())
        return rates and all(abs(self.utilization[n] - u) <= CLOSE for n, u in other.utilization.items())


def _settle(model: Model) -> Model:
    load: Load | None = None
    current = at_load(model, Load())
    for _ in range(ROUNDS):
        try:
            before, load = load, _load(current)
        except UncalibratedError:
            # Whoever asked finds the same numbers missing, and names all of them.
            return current
        current = at_load(model, load)
        if before is not None and load.close_to(before):
            break
    return current


def at_load(model: Model, load: Load) -> Model:
    """Return the model with the processor times of a load, and without warmth and idling.

    What the load does not say keeps its numbers; a processor of unknown utilization is taken to be busy.
    """
    processors = tuple(
        replace(p, idling=(), speed=p.speed / p.slowness(load.utilization.get(p.name, 1.0)))
        if p.idling
        else p
        for p in model.processors
    )
    # Both at once: a model checks all its rules whenever it is made.
    return replace(model, processors=processors, tasks=_tasks_at(model, load))


def _load(model: Model) -> Load:
    cycles, utilization, busy = _cycle_rates(model)
    total = dict.fromkeys((task.name for task in model.tasks), 0.0)
    for source, often in entry_rates(model).items():
        for (task, _), requests in often.items():
            total[task] += cycles.get(source[0], 0.0) * requests
    return Load(
        {task.name: total[task.name] / task.replicas for task in model.tasks},
        utilization,
        {task.name: busy[task.name] / task.replicas for task in model.tasks if task.name in busy},
        clients_of(model),
    )


def clients_of(model: Model) -> float:
    """Return how many clients there are; infinite if requests come from outside, too."""
    if any(entry.arrivals is not None for task in model.tasks for entry in task.entries):
        return math.inf
    return math.fsum(task.threads * task.replicas for task in model.reference_tasks)


def _cycle_rates(model: Model) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Return cycles (or requests from outside) per second of everything that brings load.

    And utilizations of processors, and mean numbers of busy threads.
    """
    # Imported here: they settle models themselves.
    from simulator.analytic import estimate  # noqa: PLC0415
    from simulator.api import simulate  # noqa: PLC0415

    known: dict[str, float] = {}
    for task in model.tasks:
        for entry in task.entries:
            if entry.arrivals is not None:
                known[task.name] = known.get(task.name, 0.0) + 1 / entry.arrivals.mean
    closed = [task.name for task in model.reference_tasks if not task.is_open]
    try:
        found = estimate(model, tolerance=ROUGHLY, rates_only=True)
        shares = {name: share for name, share in found.processors.items() if share is not None}
        busy = {name: task.busy for name, task in found.tasks.items()}
        return known | {name: found.tasks[name].throughput for name in closed}, shares, busy
    except (ModelError, SimulationError):
        # What has no estimate, or breaks down under open load, can be run for a moment.
        rough = simulate(
            model,
            precision=ROUGH_PRECISION,
            max_events=ROUGH_EVENTS,
            max_seconds=ROUGH_SECONDS,
            may_pile_up=True,
        )
        shares = {name: p.utilization.mean for name, p in rough.processors.items()}
        busy = {name: task.busy.mean for name, task in rough.tasks.items()}
        return known | {name: rough.tasks[name].throughput.mean for name in closed}, shares, busy


def at_rates(model: Model, rates: Mapping[str, float]) -> Model:
    """Return the model with the times of the given rates, and without warmth.

    Args:
        model: Any model.
        rates: Requests per second and replica, one at a time, by task; a task that is missing, or asked for
            nothing, keeps its numbers.
    """
    return replace(model, tasks=_tasks_at(model, Load(rates)))


def _tasks_at(model: Model, load: Load) -> tuple[Task, ...]:
    return tuple(task if task.warmth is None else _at_load(task, task.warmth, load) for task in model.tasks)


def _at_load(task: Task, warmth: Warmth, load: Load) -> Task:
    plain, rate = replace(task, warmth=None), load.rates.get(task.name, 0.0)
    if rate <= 0:
        return plain
    own = (
        rate / _sharing(task.threads, load.busy.get(task.name, 0.0), load.clients)
        if warmth.by_thread
        else rate
    )

    def extra(values: Mapping[str, tuple[float, ...]], key: str) -> float:
        return warmth.at(values[key], rate if key == "front" else own) if key in values else 0.0

    def activity(entry: Entry, old: Activity) -> Activity:
        key = f"{entry.name}:{old.name}"
        demand, delay = extra(warmth.demands, key), extra(warmth.delays, key)
        if demand == delay == 0:
            return old
        return replace(old, demand=_longer(old.demand, demand), delay=_longer(old.delay, delay))

    entries = tuple(
        replace(entry, activities=tuple(activity(entry, a) for a in entry.activities))
        for entry in task.entries
    )
    front, more = task.front, extra(warmth.demands, "front")
    if front is not None and more != 0:
        front = Front(request=_longer(front.request, more / 2), reply=_longer(front.reply, more / 2))
    return replace(plain, entries=entries, front=front)


def _sharing(threads: float, busy: float, clients: float) -> float:
    """Return how many threads share the requests of a replica, as the thread of an average request sees it.

    A request goes to the thread that was busy last, so of many threads that are hardly needed nearly all
    requests meet the same few: the k-th is at work while at least k requests are there. How many are is taken
    to be binomial, as if clients came independently of each other.

    Args:
        threads: Of a replica.
        busy: Of these, on average.
        clients: Who may ask at once; infinite if nobody knows.
    """
    if threads <= 1 or busy <= 0 or math.isinf(threads):
        return 1.0
    if busy > clients:
        clients = math.inf  # branches of a client ask side by side
    most = min(threads, clients)
    if busy >= EVEN * most:
        return most
    ranks = np.arange(1.0, most + 1)

    def at_work(offered: float) -> FloatArray:
        more: FloatArray = (
            gammainc(ranks, offered)
            if math.isinf(clients)
            else betainc(ranks, clients - ranks + 1, offered / clients)
        )
        return more

    # More requests are there than threads at work, if there are more clients than threads.
    # Imported here: it takes longer than the rest of the simulator, and few models have such pools.
    from scipy.optimize import brentq  # noqa: PLC0415

    highest = clients if math.isfinite(clients) else FULL * threads
    offered = brentq(lambda x: at_work(x).sum() - busy, 0.0, highest)
    shares = at_work(offered) / busy
    return float(1.0 / (shares**2).sum())


def _longer(time: Distribution | None, seconds: float) -> Distribution | None:
    """Return a time with another mean; its shape stays."""
    if time is None or seconds == 0:
        return time
    if time.mean <= 0:
        return Constant(max(0.0, seconds))
    return time.scaled(max(LEAST, 1 + seconds / time.mean))
