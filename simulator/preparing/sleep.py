"""Mean set-up after sleep at a load, for estimates; engines follow each sleep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mup.lqn.lowered import Lowered, has_front, speeds_of
from mup.lqn.model import Model, Processor, Setup, Task
from simulator.preparing.chains import Chain, Rested
from simulator.preparing.own_rests import Place, machine_of, own_rests

__all__ = ["Shares", "mean_shares"]

SLICE = 0.002
"""Seconds that work in the background takes at once, as in programs."""

Pair = tuple[float, float]
"""Of the set-up of a worker, and of that of its core."""

Sleep = tuple[float, Rested | None, Chain, bool]
"""One of several ways to sleep: its weight, own rest, the others, and whether all servers sleep together."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The mean shares of its set-up that a request of a task gets: its worker, and each half of the front."""

    worker: Pair = (0.0, 0.0)
    front: tuple[Pair, Pair] = ((0.0, 0.0), (0.0, 0.0))


def mean_shares(
    model: Model,
    rates: Mapping[str, float],
    busy: Mapping[str, float],
    utilization: Mapping[str, float],
    customers: float,
) -> dict[str, Shares]:
    """Return the mean shares of every task that has a set-up and is asked for something.

    Args:
        model: Calibrated; of set-ups its times may say nothing yet.
        rates: Requests per second and replica, by task (of clients: cycles of all).
        busy: Mean number of busy threads per replica, by task (of clients: who do not think).
        utilization: By processor.
        customers: Of all reference tasks; infinite if there are arrivals from outside.
    """
    return _Load(model, rates, busy, utilization, customers).shares()


class _Load:
    def __init__(
        self,
        model: Model,
        rates: Mapping[str, float],
        busy: Mapping[str, float],
        utilization: Mapping[str, float],
        customers: float,
    ) -> None:
        self.model = model
        self.lowered = Lowered(model)
        self.rates, self.busy, self.utilization, self.customers = rates, busy, utilization, customers
        self.speeds = speeds_of(model)
        self._rests: dict[Place, dict[tuple[str, str], list[tuple[float, Rested]]]] = {}
        self._uses: dict[str, float] | None = None

    def shares(self) -> dict[str, Shares]:
        found = {}
        for task in self.model.tasks:
            rate = self.rates.get(task.name, 0.0)
            if task.setup is not None and rate > 0:
                front = ((0.0, 0.0), (0.0, 0.0))
                if has_front(task):
                    front = self.front(task, task.setup, "request"), self.front(task, task.setup, "reply")
                found[task.name] = Shares(self.worker(task, task.setup), front)
        return found

    def worker(self, task: Task, setup: Setup) -> Pair:
        rate, busy = self.rates[task.name], self.busy.get(task.name, 0.0)
        point = ("worker", task.name)
        if task.is_reference and not task.is_open:
            own = self.thinks(task)
            if not own:
                return 0.0, 0.0
            rate *= math.fsum(often for often, _ in own)
            chain, whole = Chain.of(task.threads, busy, rate, task.threads), True
        elif (loop := self.loop(task)) is not None:
            own, whole = [], True
            used = min(0.99, self.utilization.get(loop.name, 0.0))
            chain = Chain.of(1, used, rate * self.pieces(task), self.customers)
        else:
            own = self.own(("worker", task.name), point) if task.replicas == 1 else []
            chain = Chain.of(task.threads, busy, rate, self.customers)
            whole = not setup.by_thread or math.isinf(task.threads)
        sleeps = _sleeps(own, chain, whole=whole)
        return (
            _mean(setup, setup.worker, sleeps),
            self.core(setup, task.processor, point, sleeps),
        )

    def loop(self, task: Task) -> Processor | None:
        """Return the event loop that a task is on, if it is."""
        home = None if task.processor is None else self.model.processor(task.processor)
        return home if home is not None and home.is_loop else None

    def pieces(self, task: Task) -> float:
        """Return how often a request of a task begins work on its loop, or goes on there, on average."""
        found = requests = 0.0
        for (name, entry_name), rate in self.entry_rates().items():
            if name == task.name:
                visits = self.lowered.graph(name, entry_name).visits
                entry = task.entry(entry_name)
                requests += rate
                found += rate * math.fsum(
                    visits.get(a.name, 0.0) * (1 + a.sleeps)
                    for a in entry.activities
                    if a.demand is not None and a.demand.mean > 0
                )
        return max(1.0, found / requests) if requests > 0 else 1.0

    def front(self, task: Task, setup: Setup, half: str) -> Pair:
        point = (half, task.name)
        home = self.model.front_processor(task)
        front = task.front
        halves = () if front is None else (front.request, front.reply)
        often = self.rates[task.name]
        time = math.fsum(h.mean for h in halves if h is not None) / self.speeds.get(home or "", 1.0)
        seconds = setup.demands.get("front", (0.0, 0.0))
        time += sum(seconds) * 1e-3  # with times of 0 it still is somewhere
        own = self.own(("front", task.name), point) if task.replicas == 1 else []
        chain = Chain.of(1, min(0.99, often * time), 2 * often, self.customers)
        sleeps = _sleeps(own, chain, whole=True)
        return _mean(setup, setup.worker, sleeps), self.core(setup, home, point, sleeps)

    def core(
        self,
        setup: Setup,
        processor: str | None,
        point: tuple[str, str],
        worker: Sequence[Sleep],
    ) -> float:
        """Return the mean share of a core's set-up."""
        name = machine_of(self.model, processor)
        machine = None if name is None else self.model.processor(name)
        if machine is None or machine.discipline == "infinite" or math.isinf(machine.cores):
            return _mean(setup, setup.core, worker)
        chain = self.machine(machine)
        if machine.discipline == "cores":
            # A thread comes back to its core, and others come there seldom.
            idle = min(1.0, float(chain.seen.sum()))
            each = Chain(np.array([idle]), chain.births[:1] / machine.cores, np.zeros(1), chain.own)
            return _mean(setup, setup.core, [(weight, own, each, True) for weight, own, _, _ in worker])
        own = self.own(("machine", machine.name), point)
        return _mean(setup, setup.core, _sleeps(own, chain, whole=False))

    def machine(self, machine: Processor) -> Chain:
        """Return the chain of the cores of a machine that there are threads for."""
        uses = self.uses().get(machine.name, 0.0)
        background = machine.background / machine.speed
        busy = max(0.0, self.utilization.get(machine.name, 0.0) * machine.cores - background)
        chain = Chain.of(min(machine.cores, self.users(machine)), busy, uses, self.customers)
        births = chain.births + background / SLICE
        return Chain(chain.seen * (1 - background / machine.cores), births, chain.deaths, chain.own)

    def users(self, machine: Processor) -> float:
        """Return how many threads, clients and fronts may work on a machine at once."""
        found = 0.0
        for task in self.model.tasks:
            works = any(a.demand is None or a.demand.mean > 0 for e in task.entries for a in e.activities)
            if works and machine_of(self.model, task.processor) == machine.name:
                found += task.threads * task.replicas
            if has_front(task) and machine_of(self.model, self.model.front_processor(task)) == machine.name:
                found += task.replicas
        return max(1.0, found)

    def uses(self) -> dict[str, float]:
        """Return how often work begins per second, by machine."""
        if self._uses is None:
            found: dict[str, float] = {}
            for (name, entry_name), rate in self.entry_rates().items():
                task, entry = self.lowered.target(name, entry_name)
                visits = self.lowered.graph(name, entry_name).visits
                place = machine_of(self.model, task.processor)
                for activity in entry.activities:
                    if place is not None and activity.demand is not None and activity.demand.mean > 0:
                        found[place] = found.get(place, 0.0) + rate * visits.get(activity.name, 0.0)
                home = machine_of(self.model, self.model.front_processor(task))
                if has_front(task) and task.front is not None and home is not None:
                    halves = [h for h in (task.front.request, task.front.reply) if h and h.mean > 0]
                    found[home] = found.get(home, 0.0) + rate * len(halves)
            self._uses = found
        return self._uses

    def entry_rates(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        per_cycle = self.lowered.requests_per_cycle()
        for source in self.lowered.sources:
            rate = source.rate if source.is_open else self.rates.get(source.task.name, 0.0)
            for key, often in per_cycle[source.key].items():
                found[key] = found.get(key, 0.0) + rate * often
        return found

    def thinks(self, task: Task) -> list[tuple[float, Rested]]:
        """Return how often per cycle a client thinks for how long."""
        (entry,) = task.entries
        visits = self.lowered.graph(task.name, entry.name).visits
        times = [(visits.get(a.name, 0.0), a.delay) for a in entry.activities if a.kind == "think"]
        times.append((1.0, task.think))
        return [
            (often, Rested(time.mean, min(time.mean, math.sqrt(time.variance))))
            for often, time in times
            if often > 0 and time is not None and time.mean > 0
        ]

    def own(self, place: Place, point: tuple[str, str]) -> list[tuple[float, Rested]]:
        if place not in self._rests:
            self._rests[place] = own_rests(self.lowered, place)
        return [(weight, rested) for weight, rested in self._rests[place].get(point, []) if weight > 0]


def _sleeps(own: Sequence[tuple[float, Rested]], chain: Chain, *, whole: bool) -> list[Sleep]:
    """Return the ways to sleep: by own rests, if they are known."""
    return [(weight, rested, chain, whole) for weight, rested in own] or [(1.0, None, chain, whole)]


def _mean(setup: Setup, shares: Sequence[float], sleeps: Sequence[Sleep]) -> float:
    if not any(shares):
        return 0.0
    total = math.fsum(weight for weight, *_ in sleeps)
    return math.fsum(w * c.mean(setup.gaps, shares, own, whole=whole) for w, own, c, whole in sleeps) / total
