"""A model from visits: rates by counting, and structure from ids.

- Visits of clients that follow each other: a closed queueing network.
- Visits that lie within each other: stations call each other, and keep a server until the answer is there.
  Their own time is their service without what lies within it.
- Visits of traces that follow each other: requests from outside that visit stations so many times on average.
- No ids: rates, and no model.

Service keeps the distribution of its times where these are known one by one, and is exponential elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.calibration.fitting import fit
from analyzer.learning.traces import FloatArray
from analyzer.learning.visit_rates import FEWEST, StationRate, of_sample, station_rates
from analyzer.learning.visit_tables import VisitTable
from analyzer.learning.visit_topology import Nesting, Routing, covered, nesting_of, routing_of
from mup.errors import UsageError, did_you_mean
from mup.lqn.distributions import Constant, Distribution, Exponential, Geometric
from mup.lqn.model import Activity, Call, Entry, Model, Processor, Task
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.model import network_model

__all__ = ["LearnedCall", "LearnedVisits", "learn_visits"]

Flags = npt.NDArray[np.bool_]
SERVE = "serve"
SOURCE = "requests"
NOTHING = Constant(0.0)
PARALLEL = 0.05
"""Part of the neighbouring calls that overlap from which on they are said to."""


@dataclass(frozen=True)
class LearnedCall:
    """How often a visit calls a station, on average; ``caller`` is "" for what comes from outside."""

    caller: str
    callee: str
    mean: float
    always: bool


@dataclass(frozen=True)
class LearnedVisits:
    """What visits say.

    Attributes:
        stations: Rates of all stations, the rest included if there is one.
        routing: Of clients; None if stations call each other or there are no ids of clients.
        calls: Between stations; () with a routing.
        own: Mean time of a visit without what it calls, by station, s; {} with a routing.
        model: None without ids.
        warnings: What speaks against the result.
    """

    stations: tuple[StationRate, ...]
    routing: Routing | None
    calls: tuple[LearnedCall, ...]
    own: Mapping[str, float]
    model: Model | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``mup learn visits --json``."""
        return {
            "stations": {
                s.name: {
                    "servers": "inf" if math.isinf(s.servers) else int(s.servers),
                    "counted": s.counted,
                    "rate": _finite(s.rate),
                    "low": _finite(s.low),
                    "high": _finite(s.high),
                    "scv": _finite(s.scv),
                    "completions": s.completions,
                    "utilization": _finite(s.utilization),
                    "first_come_first_served": s.fcfs,
                    "own_time": self.own.get(s.name),
                }
                for s in self.stations
            },
            "routing": None
            if self.routing is None
            else {
                "names": list(self.routing.names),
                "probabilities": self.routing.probabilities.tolist(),
                "half_widths": self.routing.half_widths.tolist(),
                "clients": self.routing.clients,
            },
            "calls": [{"caller": c.caller, "callee": c.callee, "mean": c.mean} for c in self.calls],
            "warnings": list(self.warnings),
        }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def learn_visits(
    table: VisitTable,
    *,
    servers: Mapping[str, float] | None = None,
    rest: str = "rest",
    clients: int | None = None,
    reference: str | None = None,
    name: str = "learned from visits",
) -> LearnedVisits:
    """Learn service, and routing or calls, from visits.

    Args:
        table: The visits.
        servers: Clients that stations serve at once, where they are known.
        rest: Name of the place where clients are between visits.
        clients: In the model; None = as many as there are.
        reference: Station at which a cycle of the model begins; None = the rest, or the first pure delay.
        name: Of the model.

    Raises:
        UsageError: A station is unknown, or visits say nothing of one.
    """
    given = dict(servers or {})
    for station in given:
        if station not in table.stations and station != rest:
            raise UsageError(
                f"--servers: no visits to {station!r}; {did_you_mean(station, list(table.stations))}"
            )
    if rest in table.stations:
        raise UsageError(f"--rest: {rest!r} is a station that has visits", hint="choose another name")
    rates = station_rates(table, given)
    warnings = [*table.notes, *(warning for rate in rates for warning in rate.warnings)]
    warnings += [
        f"{rate.name}: {rate.completions} visits were completed while all was watched: too few"
        for rate in rates
        if not math.isfinite(rate.rate) or rate.completions < FEWEST
    ]
    if not table.ids:
        return LearnedVisits(tuple(rates), None, (), {}, None, tuple(warnings))
    nesting = nesting_of(table)
    if table.ids == "client" and nesting.crossing > PARALLEL:
        warnings.append(
            f"{nesting.crossing:.0%} of the visits begin during another of their client and end after it, "
            "so they make no model: durations have another unit than starts (--field duration=NAME:ms), or "
            "several clients share an id"
        )
        return LearnedVisits(tuple(rates), None, (), {}, None, tuple(warnings))
    if nesting.layered or table.ids == "trace":
        calls, own, model = _layered(table, rates, nesting, clients, name)
        if nesting.overlapping > PARALLEL:
            warnings.append(
                f"{nesting.overlapping:.0%} of the calls of one visit overlap: the model makes them one "
                "after another"
            )
        return LearnedVisits(tuple(rates), None, tuple(calls), own, model, tuple(warnings))
    routing = routing_of(table, rest)
    if routing.rests is not None:
        rates.append(_rest_rate(rest, routing.rests))
    model = _network(rates, routing, clients, reference, name)
    return LearnedVisits(tuple(rates), routing, (), {}, model, tuple(warnings))


def _rest_rate(name: str, times: FloatArray) -> StationRate:
    half = of_sample(times)
    rate = 1 / float(times.mean())
    return StationRate(
        name, math.inf, False, rate, rate / (1 + half), rate / max(1 - half, 1e-12), len(times), math.nan,
        True, times, None,
    )  # fmt: skip


def _network(
    rates: Sequence[StationRate], routing: Routing, clients: int | None, reference: str | None, name: str
) -> Model | None:
    """Return the model of a closed network; None if no client was seen to go round."""
    sums = routing.counts.sum(axis=1)
    if np.any(sums == 0) or any(not math.isfinite(rate.rate) for rate in rates):
        return None
    network = ClosedNetwork(
        names=routing.names,
        rates=np.array([rate.rate for rate in rates]),
        routing=routing.probabilities / routing.probabilities.sum(axis=1, keepdims=True),
        servers=np.array([rate.servers for rate in rates]),
    )
    delays = [rate.name for rate in rates if math.isinf(rate.servers)]
    start = reference or (delays[-1] if delays else network.names[0])
    if start not in network.names:
        raise UsageError(f"--reference: no station {start!r}; {did_you_mean(start, list(network.names))}")
    model = network_model(
        network, clients=clients or max(1, round(routing.clients)), reference=start, name=name
    )
    looping = {n for i, n in enumerate(network.names) if network.routing[i, i] > 0}
    for rate in rates:
        # A station clients come back to at once has one longer service in the model, of another
        # distribution.
        if rate.name not in looping:
            model = _with_service(model, rate)
    return model


def _with_service(model: Model, rate: StationRate) -> Model:
    """Return the model with the distribution of a station's service times instead of an exponential one."""
    service = _distribution(rate)
    for task in model.tasks:
        if task.name != rate.name:
            continue
        if task.is_reference:
            return model.with_task(replace(task, think=service))
        entries = tuple(
            replace(
                entry,
                activities=tuple(
                    replace(a, demand=service) if a.name == SERVE else a for a in entry.activities
                ),
            )
            for entry in task.entries
        )
        return model.with_task(replace(task, entries=entries))
    return model


def _distribution(rate: StationRate) -> Distribution:
    if not rate.fcfs or rate.services is None or len(rate.services) < FEWEST:
        # Shared servers: the same throughput for any distribution with this mean (insensitivity).
        return Exponential(1 / rate.rate)
    return fit(rate.services).distribution


def _own_times(table: VisitTable, rates: Sequence[StationRate], nesting: Nesting) -> dict[str, FloatArray]:
    """Return how long visits keep a server without waiting for what they call, by station; seconds."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for child in np.flatnonzero(nesting.parent >= 0).tolist():
        children[int(nesting.parent[child])].append(child)
    found = {}
    for rate in rates:
        if rate.services is None or rate.of is None:
            continue
        own = rate.services.copy()
        for place, visit in enumerate(rate.of.tolist()):
            if below := children.get(visit):
                end = float(table.end[visit])
                inside = covered(table.begin[below], table.end[below], end - float(own[place]), end)
                own[place] = max(0.0, float(own[place]) - inside)
        found[rate.name] = own
    return found


def _layered(
    table: VisitTable,
    rates: Sequence[StationRate],
    nesting: Nesting,
    clients: int | None,
    name: str,
) -> tuple[list[LearnedCall], dict[str, float], Model | None]:
    times = _own_times(table, rates, nesting)
    counted = table.inside & np.isfinite(table.end)
    calls = _calls(table, nesting, counted)
    own = {station: float(values.mean()) for station, values in times.items() if len(values)}
    if len(own) < len(table.stations):
        return calls, own, None
    tasks, processors = [], []
    for rate in rates:
        service = fit(times[rate.name]).distribution if own[rate.name] > 0 else NOTHING
        mine = [call for call in calls if call.caller == rate.name]
        work = _activity(SERVE, service, mine)
        threads = rate.servers if math.isinf(rate.servers) else int(rate.servers)
        entry = Entry(name=SERVE, start=SERVE, activities=(replace(work, replies=True),))
        tasks.append(Task(name=rate.name, threads=threads, processor=rate.name, entries=(entry,)))
        processors.append(Processor(name=rate.name, cores=math.inf, discipline="infinite"))
    source = _source(table, nesting, counted, [call for call in calls if not call.caller], clients)
    return calls, own, Model(name=name, processors=tuple(processors), tasks=(source, *tasks))


def _activity(name: str, demand: Distribution, calls: Sequence[LearnedCall]) -> Activity:
    """Return a step that makes calls between slices of its demand."""
    fixed = all(call.always for call in calls)
    made = tuple(
        Call(
            task=call.callee,
            entry=SERVE,
            count=Constant(float(round(call.mean))) if fixed else Geometric(call.mean),
        )
        for call in calls
    )
    return Activity(
        name=name, demand=demand, delay=NOTHING, calls=made, interleaved=bool(made) and demand.mean > 0
    )


def _calls(table: VisitTable, nesting: Nesting, counted: Flags) -> list[LearnedCall]:
    """Return how often visits call, and how often each id calls from outside."""
    made: Counter[tuple[int, int]] = Counter()
    for child, parent in enumerate(nesting.parent.tolist()):
        if parent >= 0 and counted[parent]:
            made[parent, int(table.station[child])] += 1
    visits = np.bincount(table.station[counted], minlength=len(table.stations))
    by_pair: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for (parent, callee), number in made.items():
        by_pair[int(table.station[parent]), callee].append(number)
    result = [
        LearnedCall(
            table.stations[caller],
            table.stations[callee],
            sum(numbers) / int(visits[caller]),
            len(numbers) == visits[caller] and min(numbers) == max(numbers),
        )
        for (caller, callee), numbers in sorted(by_pair.items())
    ]
    return [*_from_outside(table, nesting, counted), *result]


def _cycles(table: VisitTable, roots: Flags) -> int:
    """Return of how many cycles the visits from outside are: traces, or visits of clients."""
    return len(np.unique(table.id[roots])) if table.ids == "trace" else int(np.count_nonzero(roots))


def _from_outside(table: VisitTable, nesting: Nesting, counted: Flags) -> list[LearnedCall]:
    roots = counted & (nesting.parent < 0)
    cycles = _cycles(table, roots)
    result = []
    for i, station in enumerate(table.stations):
        mine = roots & (table.station == i)
        if number := int(np.count_nonzero(mine)):
            each = np.unique(table.id[mine], return_counts=True)[1]
            always = table.ids == "trace" and len(each) == cycles and each.min() == each.max()
            result.append(LearnedCall("", station, number / max(cycles, 1), bool(always) or number == cycles))
    return result


def _source(
    table: VisitTable,
    nesting: Nesting,
    counted: Flags,
    calls: Sequence[LearnedCall],
    clients: int | None,
) -> Task:
    """Return where requests come from: clients that think, or arrivals."""
    taken = set(table.stations)
    source = SOURCE
    while source in taken:
        source += "_"
    work = _activity("cycle", NOTHING, calls)
    roots = counted & (nesting.parent < 0)
    if table.ids == "client":
        gaps = _gaps(table, nesting)
        present = len(np.unique(table.id)) / max(1, len(table.windows))
        think = fit(gaps).distribution if len(gaps) >= FEWEST and gaps.mean() > 0 else NOTHING
        entry = Entry(name="cycle", start=work.name, activities=(work,))
        many = clients or max(1, round(present))
        return Task(name=source, role="reference", threads=many, think=think, entries=(entry,))
    length = sum(high - low for low, high in table.windows)
    rate = _cycles(table, roots) / length if length > 0 else 0.0
    if not rate > 0:
        raise UsageError("no trace lies within what was watched", hint="give more visits")
    entry = Entry(name="cycle", start=work.name, activities=(work,), arrivals=Exponential(1 / rate))
    return Task(name=source, role="reference", threads=math.inf, entries=(entry,))


def _gaps(table: VisitTable, nesting: Nesting) -> FloatArray:
    """Return for how long clients are nowhere between their visits from outside."""
    roots = np.flatnonzero(nesting.parent < 0)
    order = roots[np.lexsort((table.begin[roots], table.id[roots]))]
    same = table.id[order[1:]] == table.id[order[:-1]]
    gaps: FloatArray = (table.begin[order[1:]] - table.end[order[:-1]])[same]
    known: FloatArray = np.maximum(gaps[np.isfinite(gaps)], 0.0)
    return known
