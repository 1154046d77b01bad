"""Processor time of a request at the load of a scenario, by iteration.

A request costs more processor time in a system that is mostly idle than in a busy one. Models say so by
the ``load_dependence`` of their tasks, as a function of the rate of requests, and by the ``idling`` of their
processors, as a function of their utilization. Both depend on the load, so a model is *prepared* before it is
compiled or solved: an *estimator* tells its load, the times are set, the load is estimated again. Times
change the load little (think times and other work stand between), so a few rounds are enough. What is to be
simulated is then run for a moment: where the estimate is off, that tells the load. The result says at which
load the times were taken.

What work costs after sleep (the ``setup`` of tasks) depends on the load, too. Engines follow who sleeps for
how long and keep it; estimates take its mean.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.errors import UncalibratedError
from mup.lqn.distributions import Constant, Distribution
from mup.lqn.lowered import clients_of, sources_of
from mup.lqn.model import Activity, Entry, LoadDependence, Model, Processor, Task
from mup.lqn.refs import WorkNames
from mup.lqn.visits import entry_rates
from simulator.preparing.sleep import Shares, mean_shares

__all__ = ["Load", "Observed", "Observer", "Prepared", "at_load", "at_rates", "clients_of", "prepared"]

ROUNDS = 4
CLOSE = 0.01
"""Rates that change by less than this no longer change the times by anything one could see."""
TRIALS = 4
"""Times that a prepared model is run to see whether it has the load it was prepared for."""
STEEPEST = 0.75
"""Most that a rate is taken to rise by, of what it was assumed to be higher."""
OFF = 0.02
"""Differences of a load seen in a run, below which it may as well be what was estimated."""
LEAST = 0.3
"""Extrapolation does not take more than 70 % off a processor time."""
EVEN = 0.999
"""Share of the threads, or clients, at work from which on all are: each thread gets as many requests."""
FULL = 50.0
"""So many times as many arrivals as threads keep all of them busy, whatever chance does."""
REMEMBERED = 64
"""Prepared models: replications and intervals ask for the same one again and again."""

FloatArray = npt.NDArray[np.float64]


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

    def to_json(self) -> dict[str, Any]:
        """Return ``{"rates", "utilization"}``: requests/second by task, busy share by processor."""
        return {"rates": dict(self.rates), "utilization": dict(self.utilization)}

    def close_to(self, other: Load, within: float = CLOSE) -> bool:
        """Return whether no rate differs by more than this fraction, and no utilization by more than this."""
        rates = all(abs(self.rates[n] - r) <= within * r for n, r in other.rates.items())
        return rates and all(abs(self.utilization[n] - u) <= within for n, u in other.utilization.items())


@dataclass(frozen=True, slots=True)
class Observed:
    """What an estimator says of a model without load dependence and idling.

    Attributes:
        cycles: Per second, by reference task whose clients think; sources from outside need no estimate.
        utilization: Busy share by processor that has one.
        busy: Mean number of busy threads of all replicas, by task.
    """

    cycles: Mapping[str, float]
    utilization: Mapping[str, float]
    busy: Mapping[str, float]


Observer = Callable[[Model], Observed]
LoadFinder = Callable[[Model], Load | None]
"""Tells the load of a model whose times depend on it, all rounds done; None where it cannot."""
Trial = Callable[[Model], Observed | None]
"""Runs a prepared model for a moment; None if that shows nothing."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model whose processor times no longer depend on the load.

    Attributes:
        model: Without load dependence and idling; for estimates without set-up after sleep.
        load: At which the times were taken; None if they never depended on it.
    """

    model: Model
    load: Load | None = None


_cache: OrderedDict[tuple[Observer, Trial | None, bool, bytes], Prepared] = OrderedDict()
_lock = Lock()


def prepared(
    model: Model,
    estimator: Observer,
    *,
    awake: bool = False,
    finder: LoadFinder | None = None,
    trial: Trial | None = None,
) -> Prepared:
    """Return the model with the processor times its own load brings about.

    A model without load dependence and idling is returned as it is. Replicas share the requests of their task
    evenly; of their threads the one that was busy last is asked first.

    Args:
        model: Calibrated at least where load can get to.
        estimator: Tells the load of a model that is prepared for another load.
        awake: Take what sleep costs on average: the reader cannot follow who sleeps.
        finder: Asked first; finds the same load as the estimator does, but for rounding.
        trial: Asked at last, if there are clients: arrivals from outside come at rates that are known.

    Raises:
        SimulationError: It cannot run at all.
    """
    steady = all(t.load_dependence is None and (t.setup is None or not awake) for t in model.tasks)
    if steady and not any(p.depends_on_utilization for p in model.processors):
        return Prepared(model)
    key = (
        estimator,
        trial,
        awake,
        hashlib.sha256(pickle.dumps((model.name, model.tasks, model.processors))).digest(),
    )
    with _lock:
        known = _cache.get(key)
    if known is None:
        load = None if finder is None else finder(model)
        if load is None:
            known = _prepared(model, estimator, awake=awake)
        else:
            known = Prepared(at_load(model, load, awake=awake), load)
        if trial is not None and any(not task.is_open for task in model.reference_tasks):
            known = _tried(model, known, trial)
        with _lock:
            _cache[key] = known
            while len(_cache) > REMEMBERED:
                _cache.popitem(last=False)
    return known


def _prepared(model: Model, estimator: Observer, *, awake: bool) -> Prepared:
    load: Load | None = None
    current = at_load(model, Load(), awake=True)
    for _ in range(ROUNDS):
        try:
            before, load = load, _load(current, estimator(current))
        except UncalibratedError:
            # Compiling finds the same numbers missing, and names all of them.
            return Prepared(current if awake else at_load(model, Load()))
        current = at_load(model, load, awake=True)
        if before is not None and load.close_to(before):
            break
    return Prepared(current if awake else at_load(model, load or Load()), load)


def _tried(model: Model, ready: Prepared, trial: Trial) -> Prepared:
    """Return a model at the load that it has when it runs, if that is not the load it was prepared for."""
    assumed, before = ready.load, None
    for _ in range(TRIALS):
        observed = None if assumed is None else trial(ready.model)
        if assumed is None or observed is None:
            break
        seen = _load(ready.model, observed)
        if seen.close_to(assumed, OFF):
            break
        load = _moved(assumed, seen, 1.0 if before is None else _stride(before, (assumed, seen)))
        before, assumed, ready = (assumed, seen), load, Prepared(at_load(model, load), load)
    return ready


def _stride(before: tuple[Load, Load], now: tuple[Load, Load]) -> float:
    """Return how far to go from an assumed load towards the one seen: a secant of the rate that is off most.

    At a higher rate work is cheaper, which makes the rate higher still: going only as far as was seen would
    take many trials.
    """
    (old, saw), (assumed, seen) = before, now
    name = max(seen.rates, key=lambda n: abs(seen.rates[n] / assumed.rates[n] - 1) if assumed.rates[n] else 0)
    moved = assumed.rates[name] - old.rates[name]
    slope = (seen.rates[name] - saw.rates[name]) / moved if moved else 0.0
    return 1 / (1 - min(max(slope, -1.0), STEEPEST))


def _moved(assumed: Load, seen: Load, stride: float) -> Load:
    rates = {name: max(0.0, r + stride * (seen.rates[name] - r)) for name, r in assumed.rates.items()}
    utilization = {
        name: min(1.0, max(0.0, u + stride * (seen.utilization[name] - u)))
        for name, u in assumed.utilization.items()
    }
    return replace(seen, rates=rates, utilization=utilization)


def at_load(model: Model, load: Load, *, awake: bool = False) -> Model:
    """Return the model with the processor times of a load, and without load dependence and idling.

    What the load does not say keeps its numbers; a processor of unknown utilization is taken to be busy.

    Args:
        model: Any model.
        load: The load.
        awake: Replace set-up after sleep by its mean.
    """
    processors = tuple(at_utilization(p, load.utilization) for p in model.processors)
    tasks = _tasks_at(model, load)
    if awake and any(task.setup is not None for task in tasks):
        found = mean_shares(model, load.rates, load.busy, load.utilization, load.clients)
        tasks = tuple(_set_up(task, found.get(task.name, Shares())) for task in tasks)
    return model.with_numbers(tasks, processors, model.uncertainty)


def at_utilization(processor: Processor, utilization: Mapping[str, float]) -> Processor:
    """Return a processor as it is at its utilization, whatever it is at another; if unknown it is busy."""
    if not processor.depends_on_utilization:
        return processor
    share = utilization.get(processor.name, 1.0)
    moving = None if processor.migration is None else processor.migration.at(share)
    return replace(processor, idling=(), migration=moving, speed=processor.speed / processor.slowness(share))


def _load(model: Model, observed: Observed) -> Load:
    cycles = {**_arrivals(model), **observed.cycles}
    total = dict.fromkeys((task.name for task in model.tasks), 0.0)
    for source, often in entry_rates(model).items():
        for (task, _), requests in often.items():
            total[task] += cycles.get(source[0], 0.0) * requests
    return Load(
        {task.name: total[task.name] / task.replicas for task in model.tasks},
        observed.utilization,
        {
            task.name: observed.busy[task.name] / task.replicas
            for task in model.tasks
            if task.name in observed.busy
        },
        clients_of(model),
    )


def _arrivals(model: Model) -> dict[str, float]:
    """Return the requests per second from outside, by task."""
    found: dict[str, float] = {}
    for source in sources_of(model):
        if source.is_open:
            found[source.task.name] = found.get(source.task.name, 0.0) + source.rate
    return found


def at_rates(model: Model, rates: Mapping[str, float]) -> Model:
    """Return the model with the times of the given rates, and without load dependence.

    Args:
        model: Any model.
        rates: Requests per second and replica, one at a time, by task; a task that is missing, or asked for
            nothing, keeps its numbers.
    """
    return replace(model, tasks=_tasks_at(model, Load(rates)))


def _tasks_at(model: Model, load: Load) -> tuple[Task, ...]:
    return tuple(
        task if task.load_dependence is None else _at_load(task, task.load_dependence, load)
        for task in model.tasks
    )


def _at_load(task: Task, load_dependence: LoadDependence, load: Load) -> Task:
    plain, rate = replace(task, load_dependence=None), load.rates.get(task.name, 0.0)
    if rate <= 0:
        return plain
    own = requests_of_thread(task, load, rate) if load_dependence.by_thread else rate

    def extra(values: Mapping[str, tuple[float, ...]], key: str) -> float:
        return load_dependence.at(values[key], rate if key == "front" else own) if key in values else 0.0

    keys = WorkNames(task.entries).texts

    def activity(entry: Entry, old: Activity) -> Activity:
        key = keys[entry.name, old.name]
        demand, delay = extra(load_dependence.demands, key), extra(load_dependence.delays, key)
        if demand == delay == 0:
            return old
        return replace(old, demand=_longer(old.demand, demand), delay=_longer(old.delay, delay))

    entries = tuple(
        replace(entry, activities=tuple(activity(entry, a) for a in entry.activities))
        for entry in task.entries
    )
    front, more = task.front, extra(load_dependence.demands, "front")
    if front is not None and more != 0:
        front = replace(front, request=_longer(front.request, more / 2), reply=_longer(front.reply, more / 2))
    return replace(plain, entries=entries, front=front)


def _set_up(task: Task, shares: Shares) -> Task:
    """Return a task with what sleep costs on average, and without its set-up."""
    setup = task.setup
    if setup is None:
        return task
    keys = WorkNames(task.entries).texts

    def extra(pairs: Mapping[str, tuple[float, float]], key: str, part: tuple[float, float]) -> float:
        worker, core = pairs.get(key, (0.0, 0.0))
        return worker * part[0] + core * part[1]

    def activity(entry: Entry, old: Activity) -> Activity:
        key = keys[entry.name, old.name]
        demand, delay = (extra(pairs, key, shares.worker) for pairs in (setup.demands, setup.delays))
        if demand == delay == 0:
            return old
        return replace(old, demand=_longer(old.demand, demand), delay=_longer(old.delay, delay))

    entries = tuple(
        replace(entry, activities=tuple(activity(entry, a) for a in entry.activities))
        for entry in task.entries
    )
    front = task.front
    if front is not None:
        request, reply = (extra(setup.demands, "front", part) / 2 for part in shares.front)
        front = replace(front, request=_longer(front.request, request), reply=_longer(front.reply, reply))
    return replace(task, entries=entries, front=front, setup=None)


def requests_of_thread(task: Task, load: Load, rate: float) -> float:
    """Return how often per second the thread of an average request is asked, given that of its replica."""
    return rate / _sharing(task.threads, load.busy.get(task.name, 0.0), load.clients)


def _sharing(threads: float, busy: float, clients: float) -> float:
    """Return how many threads share the requests of a replica, as the thread of an average request sees it.

    A request goes to the thread that was busy last, so of many threads that are hardly needed nearly all
    requests meet the same few: the k-th is at work while at least k requests are there. How many are is taken
    to be binomial, as if clients came independently of each other.

    Args:
        threads: Of a replica.
        busy: Of these, on average.
        clients: How many may ask at once; infinite if that is unknown.
    """
    if threads <= 1 or busy <= 0 or math.isinf(threads):
        return 1.0
    if busy > clients:
        clients = math.inf  # branches of a client ask side by side
    most = min(threads, clients)
    if busy >= EVEN * most:
        return most
    # Imported here: it takes longer than the rest of the simulator, and few models have such pools.
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.special import betainc, gammainc  # noqa: PLC0415

    ranks = np.arange(1.0, most + 1)

    def at_work(offered: float) -> FloatArray:
        more: FloatArray = (
            gammainc(ranks, offered)
            if math.isinf(clients)
            else betainc(ranks, clients - ranks + 1, offered / clients)
        )
        return more

    # More requests are there than threads at work, if there are more clients than threads.
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
