"""Means of a network of queues without layers: exact, with derivatives, for every number of clients at once.

A model of one kind of clients in which none that waits at one queue holds a server of another has a
product-form solution. Mean value analysis then answers in microseconds what the general estimate needs
milliseconds for, and its recursion can be differentiated step by step.

Notation: stations s, parameters k, plans p (one per entry). ``demands[s]`` are seconds of work per cycle,
``work[p, s]`` seconds of work of a request, ``delays[p]`` its seconds beside the queues. An array with a
leading d is a derivative, with one more axis (k) at its end.

Sources: Reiser and Lavenberg, "Mean-value analysis of closed multichain queueing networks", 1980; the
derivatives as in Woodside, Zheng and Litoiu, "The use of optimal filters to track parameters of performance
models", 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mup.errors import MupError, SimulationError
from mup.lqn.lowered import FanOut, Fork, Graph, passed_on, wholes
from mup.lqn.model import Model, Processor
from simulator.analytic.layers import Layers, Plan, Station, Step

__all__ = ["Means", "ProductForm", "mean_values", "product_form"]

FloatArray = npt.NDArray[np.float64]

EXPONENTIAL = 1e-9
"""How far the squared coefficient of variation of an exponential time may be from 1."""


@dataclass(frozen=True, slots=True)
class ProductForm:
    """What the clients of a model ask of its stations, per cycle and per request.

    Attributes:
        demands, think, delay: Per cycle: seconds of work per station, think time, other delays.
        work, delays, visits: Per plan: seconds of work per station and request, delays per request,
            requests per cycle.
        own: Per plan: seconds of its task's processor per request.
        labels: Of the plans, as results name entries.
        tasks: Task of each plan.
        queues: Per plan: the station whose server it holds, -1 if none.
    """

    demands: FloatArray
    think: float
    delay: float
    work: FloatArray
    delays: FloatArray
    visits: FloatArray
    own: FloatArray
    labels: tuple[str, ...]
    tasks: tuple[str, ...]
    queues: tuple[int, ...]
    stations: tuple[str, ...]

    def same_shape(self, other: ProductForm) -> bool:
        """Tell whether another has the same stations, plans and visits."""
        names = (self.labels, self.stations, self.queues) == (other.labels, other.stations, other.queues)
        return names and bool(np.array_equal(self.visits, other.visits))


def product_form(model: Model) -> ProductForm | None:
    """Return a model as a network of queues; None if it has layers or anything else that is not exact.

    Exact are: one kind of clients, synchronous calls without forks and second phases, single servers that
    are processor sharing, or first come first served with exponential times of one mean, at which no job
    holds a server while waiting for another.
    """
    if any(t.load_dependence is not None or t.setup is not None for t in model.tasks) or any(
        p.idling or p.background for p in model.processors
    ):
        return None
    try:
        layers = Layers.of(_without_idle_queues(model))
    except MupError:
        return None  # who estimates the model says what is wrong with it
    if len(layers.roots) != 1 or layers.warnings or any(p.arrivals for p in layers.plans):
        return None
    if not all(map(_plain_station, layers.stations)) or not all(map(_plain_plan, layers.plans)):
        return None
    if any(not _served_alike(layers, at) for at in range(len(layers.stations))):
        return None
    return _collect(layers)


def _without_idle_queues(model: Model) -> Model:
    """Return the model without queues for processors that have a core for every thread that can be there."""

    def alone(processor: Processor) -> bool:
        users = [t for t in model.tasks if t.processor == processor.name]
        part = processor.parent is not None or processor.name in parted
        threads = sum(t.threads * t.replicas for t in users if not t.is_reference)
        clients = any(t.is_reference or t.front is not None for t in users)
        if part or clients or threads > processor.cores:
            return False
        graphs = (Graph(entry) for task in users for entry in task.entries)
        return not any(isinstance(arc.then, Fork | FanOut) for graph in graphs for arc in graph.arcs.values())

    parted = wholes(model)
    free = [replace(p, discipline="infinite", migration=None) if alone(p) else p for p in model.processors]
    return replace(model, processors=tuple(free))


def _plain_station(station: Station) -> bool:
    return station.servers == 1 and station.replicas == 1 and station.parent is None


def _plain_plan(plan: Plan) -> bool:
    graph = plan.graph
    if plan.forwards or plan.before is not None or plan.behind is not None:
        return False
    if graph.width > 1 or graph.awaited != graph.held or set(graph.visits) != graph.held:
        return False
    if any(call.kind != "synchronous" for step in plan.steps for call in step.calls):
        return False
    # A job that holds a server must not wait elsewhere.
    return plan.station is None or (plan.processor is None and not any(step.calls for step in plan.steps))


def _served_alike(layers: Layers, at: int) -> bool:
    """Tell whether a station serves in a way that has a product form."""
    station = layers.stations[at]
    if station.task is None and station.shared:
        return True
    means: list[float] = []
    for plan in layers.plans:
        if station.task is not None and plan.station == at:
            times = [t for step in plan.steps for t in _times(plan, step) if t[0] > 0]
            if len(times) > 1:
                return False
        elif station.task is None and plan.processor == at:
            times = [step.demand for step in plan.steps if step.slices]
        else:
            continue
        if any(abs(variance - mean**2) > EXPONENTIAL * mean**2 for mean, variance in times):
            return False
        means += [mean for mean, _ in times]
    return not means or max(means) <= min(means) * (1 + EXPONENTIAL)


def _times(plan: Plan, step: Step) -> list[tuple[float, float]]:
    """Return the times of a step; one that does not run exactly once gets a time that is not exponential."""
    if abs(plan.graph.visits[step.name] - 1) > EXPONENTIAL or step.slices > 1:
        return [(1.0, 0.0)]
    return [step.demand if step.slices else (0.0, 0.0), step.delay]


def _collect(layers: Layers) -> ProductForm:
    plans, count = layers.plans, len(layers.stations)
    work, delays = np.zeros((len(plans), count)), np.zeros(len(plans))
    own = np.zeros(len(plans))
    root = layers.roots[0]
    arriving = [float(index == root) for index in range(len(plans))]
    visits = np.array(passed_on(layers.order, layers.caused, layers.handed, arriving))
    think = 0.0
    for index in reversed(layers.order):
        plan = plans[index]
        for step in plan.steps:
            runs = plan.graph.visits[step.name]
            demand = runs * step.slices * step.demand[0]
            delay = runs * step.delay[0]
            own[index] += demand
            if step.think and index == root:
                think += delay
                delay = 0.0
            at = plan.processor if plan.processor is not None else plan.station
            if at is None:
                delays[index] += demand
            else:
                work[index, at] += demand
            if plan.station is not None:
                work[index, plan.station] += delay
            else:
                delays[index] += delay
            for call in step.calls:
                work[index] += runs * call.count[0] * work[call.target]
                delays[index] += runs * call.count[0] * delays[call.target]
    task = layers.model.tasks[plans[root].task]
    return ProductForm(
        demands=work[root],
        think=think + (task.think.mean if task.think is not None else 0.0),
        delay=float(delays[root]),
        work=work,
        delays=delays,
        visits=visits,
        own=own,
        labels=tuple(p.label for p in plans),
        tasks=tuple(layers.model.tasks[p.task].name for p in plans),
        queues=tuple(-1 if p.station is None else p.station for p in plans),
        stations=tuple(s.name for s in layers.stations),
    )


@dataclass(frozen=True, slots=True)
class Means:
    """The solution for some numbers of clients n, with derivatives.

    Attributes:
        throughput: Cycles per second, shape (n,).
        stretch: Seconds at a station per second of work, shape (n, s): 1 + the customers an arrival finds.
        dthroughput, dstretch: Derivatives, shapes (n, k) and (n, s, k).
    """

    throughput: FloatArray
    stretch: FloatArray
    dthroughput: FloatArray
    dstretch: FloatArray


def mean_values(
    demands: FloatArray, ddemands: FloatArray, delay: float, ddelay: FloatArray, clients: Sequence[int]
) -> Means:
    """Solve a closed network of single servers and a delay for some numbers of clients.

    Args:
        demands: Seconds of work per cycle, shape (s,), >= 0.
        ddemands: Its derivatives, shape (s, k).
        delay: Seconds per cycle beside the stations, the think time included.
        ddelay: Its derivatives, shape (k,).
        clients: The numbers asked for, >= 1.

    Returns:
        The solution for these, in their order.

    Raises:
        SimulationError: A cycle takes no time at all.
    """
    if delay + float(demands.sum()) <= 0:
        raise SimulationError("a cycle takes no time at all, so it would repeat for ever at time 0")
    most, (stations, parameters) = max(clients), ddemands.shape
    throughputs, dthroughputs = np.empty(most), np.empty((most, parameters))
    stretches, dstretches = np.empty((most, stations)), np.empty((most, stations, parameters))
    queue, dqueue = np.zeros(stations), np.zeros((stations, parameters))
    column = demands[:, None]
    for i in range(most):
        stretches[i] = stretch = queue + 1.0
        dstretches[i] = dqueue
        residence = demands * stretch
        dresidence = ddemands * stretch[:, None] + column * dqueue
        cycle = delay + residence.sum()
        throughputs[i] = throughput = (i + 1) / cycle
        dthroughputs[i] = slope = (ddelay + dresidence.sum(axis=0)) * (-throughput / cycle)
        queue = throughput * residence
        dqueue = throughput * dresidence + residence[:, None] * slope
    at = np.asarray(clients) - 1
    return Means(throughputs[at], stretches[at], dthroughputs[at], dstretches[at])
