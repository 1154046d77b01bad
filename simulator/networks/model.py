"""Write a closed queueing network as a layered one.

Every station is a task of its own with as many threads as it has servers, on a processor where every thread
has a core. The clients are a reference task; a cycle of theirs leads from one visit of the *reference
station* to the next. If that station has infinitely many servers, it is their think time.

- If no client can pass a station twice within a cycle (a load balancer, a pipeline), the cycle is a graph of
  choices with the routing probabilities themselves.
- Otherwise a cycle is a random sequence of visits with the same mean number at every station. Where service
  is exponential and a station makes no difference between clients, throughputs, queue lengths and
  utilizations in the long run depend on those means alone (product form), not on the order.

Means over time are not in a layered model: ``ClosedNetwork`` has them. It is kept, whole, in the provenance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mup.errors import ModelError
from mup.lqn.distributions import Constant, Distribution, Exponential, Geometric, with_scv
from mup.lqn.model import Activity, Call, Entry, Model, Precedence, Processor, Task
from simulator.networks.closed_network import ClosedNetwork

__all__ = ["PROVENANCE", "default_reference", "network_model", "network_of"]

PROVENANCE = "queueing_network"
"""Key of the network in the provenance of its model."""
SERVE = "serve"
CYCLE = "cycle"
NOTHING = Constant(0.0)
UNVISITED = 1e-9
"""Visits per cycle below which a station is left out."""


def default_reference(network: ClosedNetwork) -> str:
    """Return where a cycle begins unless it is set otherwise: the first pure delay, or station."""
    delays = [n for n, s in zip(network.names, network.servers, strict=True) if s == math.inf]
    return delays[0] if delays else network.names[0]


def network_model(
    network: ClosedNetwork,
    *,
    clients: int,
    reference: str,
    name: str,
    provenance: Mapping[str, Any] | None = None,
) -> Model:
    """Return the layered model of a closed network.

    Args:
        network: Its self-loops become longer times of service, which changes nothing in the mean.
        clients: How many there are.
        reference: Station at which a cycle begins; its throughput is that of the model.
        name: Of the model.
        provenance: Kept in the model, beside the network.

    Raises:
        ModelError: There is no client, or not all clients come back to the reference station.
    """
    if clients < 1:
        raise ModelError(f"must be a whole number >= 1, got {clients}", where="clients")
    plain = ClosedNetwork.of_flows(network.flows, network.names, network.servers, _without_loops(network))
    visits = plain.visits(reference)
    start = plain.index(reference)
    if plain.rates[start] <= 0:
        raise ModelError(
            "no client ever leaves the reference station; name another one", where=f"rates[{reference!r}]"
        )
    thinks = plain.servers[start] == math.inf
    stations = [i for i in range(len(plain.names)) if visits[i] > UNVISITED and not (thinks and i == start)]
    entry = _choices(plain, start, visits, calls_start=not thinks)
    if entry is None:
        entry = _mixed(plain, start, visits, calls_start=not thinks)
    taken = {plain.names[i] for i in stations}
    source = Task(
        name=reference if thinks else _free_name("clients", taken),
        role="reference",
        threads=clients,
        think=plain.services()[start] if thinks else NOTHING,
        entries=(entry,),
    )
    return Model(
        name=name,
        processors=tuple(
            Processor(name=plain.names[i], cores=math.inf, discipline="infinite") for i in stations
        ),
        tasks=(source, *(_station(plain, i) for i in stations)),
        provenance={**(provenance or {}), PROVENANCE: {**network.to_json(), "reference": reference}},
    )


def network_of(model: Model) -> ClosedNetwork:
    """Return the network a model was made from.

    Raises:
        ModelError: It was made from something else.
    """
    if PROVENANCE not in model.provenance:
        raise ModelError("is not the model of a closed queueing network", where=model.name)
    return ClosedNetwork.from_json(model.provenance[PROVENANCE])


def _without_loops(network: ClosedNetwork) -> tuple[Distribution, ...]:
    """Return the shapes of services in which a client that would stay at a station is served on.

    The sum of a geometric number of services is exponential if they are; else it has the right first two
    moments.
    """
    shapes = []
    for shape, again in zip(network.shapes, np.diag(network.routing).tolist(), strict=True):
        kept = again in {0, 1} or isinstance(shape, Exponential)
        shapes.append(shape if kept else with_scv(1.0, (1 - again) * shape.scv + again))
    return tuple(shapes)


def _station(network: ClosedNetwork, i: int) -> Task:
    service = Activity(name=SERVE, demand=network.services()[i], delay=NOTHING, replies=True)
    servers = float(network.servers[i])
    return Task(
        name=network.names[i],
        threads=servers if servers == math.inf else int(servers),
        processor=network.names[i],
        entries=(Entry(name=SERVE, start=SERVE, activities=(service,)),),
    )


def _free_name(wanted: str, taken: set[str]) -> str:
    return wanted if wanted not in taken else _free_name(f"{wanted}_", taken)


def _step(name: str, *calls: Call) -> Activity:
    return Activity(name=name, demand=NOTHING, delay=NOTHING, calls=calls)


def _choices(network: ClosedNetwork, start: int, visits: Any, *, calls_start: bool) -> Entry | None:
    """Return the cycle as a graph of choices; None if a client can pass a station twice."""
    inner = [i for i in range(len(visits)) if visits[i] > UNVISITED and i != start]
    order = _order(network.routing, inner)
    if order is None:
        return None
    names = network.names
    first = f"at {names[start]}"
    activities = [_step(first, *([Call(task=names[start], entry=SERVE)] if calls_start else []))]
    activities += [_step(names[i], Call(task=names[i], entry=SERVE)) for i in order]
    precedences: list[Precedence] = []
    routes_in = {i: [k for k in (start, *inner) if network.routing[k, i] > 0] for i in inner}
    for i in (start, *order):
        here = first if i == start else names[i]
        if i != start and len(routes_in[i]) > 1:
            precedences.append(
                Precedence(pre=tuple(_route(names, k, i) for k in routes_in[i]), post=(names[i],), join="or")
            )
        targets = [int(j) for j in np.flatnonzero(network.routing[i] > 0)]
        if targets == [start]:
            continue
        post = []
        for j in targets:
            direct = j != start and len(routes_in[j]) == 1
            post.append(names[j] if direct else _route(names, i, j))
            if not direct:
                activities.append(_step(post[-1]))
        odds = network.routing[i, targets]
        if len(post) == 1:
            precedences.append(Precedence(pre=(here,), post=tuple(post)))
        else:
            chances = tuple((odds / odds.sum()).tolist())
            precedences.append(Precedence(pre=(here,), post=tuple(post), fork="or", probabilities=chances))
    return Entry(name=CYCLE, start=first, activities=tuple(activities), precedences=tuple(precedences))


def _route(names: tuple[str, ...], i: int, j: int) -> str:
    return f"{names[i]} to {names[j]}"


def _order(routing: Any, stations: list[int]) -> list[int] | None:
    """Return the stations so that clients only move forward; None if they can come round."""
    left, order = list(stations), []
    while left:
        first = [i for i in left if not any(routing[k, i] > 0 for k in left)]
        if not first:
            return None
        order += first
        left = [i for i in left if i not in first]
    return order


def _mixed(network: ClosedNetwork, start: int, visits: Any, *, calls_start: bool) -> Entry:
    """Return the cycle as a random sequence of visits."""
    names = network.names
    calls = tuple(
        Call(task=names[i], entry=SERVE, count=Geometric(float(visits[i])))
        for i in range(len(visits))
        if visits[i] > UNVISITED and i != start
    )
    tour = Activity(name="tour", demand=NOTHING, delay=NOTHING, calls=calls, interleaved=True)
    if not calls_start:
        return Entry(name=CYCLE, start=tour.name, activities=(tour,))
    first = _step(f"at {names[start]}", Call(task=names[start], entry=SERVE))
    arc = Precedence(pre=(first.name,), post=(tour.name,))
    return Entry(name=CYCLE, start=first.name, activities=(first, tour), precedences=(arc,))
