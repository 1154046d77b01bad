"""The station as a layered queueing network, so that it can be simulated, composed and drawn.

Service is a delay and not a demand: whether a black box computes or waits is not seen from outside. The
latency is the caller's, not the station's: where the station is put into another model, that model has a
network of its own.

How sure the mean service time is, replicates say; how many servers there are they take as known.
"""

from __future__ import annotations

from typing import Any

from analyzer.blackbox.station import Station
from mup.lqn.distributions import Constant, Exponential
from mup.lqn.model import Activity, Call, Entry, Model, Task
from mup.lqn.refs import ActivityRef, Names
from mup.lqn.uncertainty import Replicate, Uncertainty

__all__ = ["ENTRY", "station_model"]

ENTRY = "request"
CLIENTS = "clients"


def station_model(
    station: Station, rate: float, *, name: str, provenance: dict[str, Any] | None = None
) -> Model:
    """Return a model of a station and of Poisson arrivals at it.

    Args:
        station: As identified.
        rate: Arrivals per second.
        name: Of the station's task.
        provenance: Where the station comes from; JSON values.
    """
    nothing = Constant(0.0)
    work = Activity(name="serve", demand=nothing, delay=station.distribution)
    task = Task(
        name=name,
        threads=station.servers.count,
        entries=(Entry(name=ENTRY, start=work.name, activities=(work,)),),
    )
    latency = Constant(station.servers.latency)
    send = Activity(name="send", demand=nothing, delay=latency, calls=(Call(task=name, entry=ENTRY),))
    source = Entry(name="arrive", start=send.name, activities=(send,), arrivals=Exponential(1 / rate))
    clients = Task(
        name=CLIENTS if name != CLIENTS else f"{CLIENTS}-of-{name}",
        role="reference",
        threads=float("inf"),
        entries=(source,),
    )
    label = Names((clients, task)).activity(ActivityRef(name, ENTRY, work.name))
    mean = station.distribution.mean
    replicates = tuple(Replicate(delays={label: m / mean}) for m in station.resampled if mean > 0)
    return Model(
        name=name,
        tasks=(clients, task),
        provenance=provenance or {},
        uncertainty=Uncertainty(replicates=replicates) if replicates else None,
    )
