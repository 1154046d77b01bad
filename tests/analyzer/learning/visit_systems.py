"""Systems that write visits: a simulation of its own, which shares no code with the package.

Closed networks of first-come-first-served, processor-sharing and delay stations, and a web tier that calls a
database and keeps its thread meanwhile. Every visit is written from arrival to departure; those that have not
ended at the end of the recording have no duration.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

Sampler = Callable[[random.Random], float]


def constant(mean: float) -> Sampler:
    """Return a sampler of scv 0."""
    return lambda _: mean


def erlang(mean: float, stages: int) -> Sampler:
    """Return a sampler of scv 1/stages."""
    return lambda rng: sum(rng.expovariate(stages / mean) for _ in range(stages))


def exponential(mean: float) -> Sampler:
    """Return a sampler of scv 1."""
    return lambda rng: rng.expovariate(1 / mean)


def lognormal(mean: float, scv: float) -> Sampler:
    """Return a sampler of a lognormal distribution."""
    from math import log, sqrt

    variance = log(1 + scv)
    return lambda rng: rng.lognormvariate(log(mean) - variance / 2, sqrt(variance))


def hyperexponential(mean: float, scv: float) -> Sampler:
    """Return a sampler of two phases with balanced means."""
    from math import sqrt

    first = (1 + sqrt((scv - 1) / (scv + 1))) / 2

    def sample(rng: random.Random) -> float:
        odds = first if rng.random() < first else 1 - first
        return rng.expovariate(2 * odds / mean)

    return sample


@dataclass
class Station:
    """Where clients are served: ``servers`` of them at once in order of arrival, or all by sharing."""

    service: Sampler
    servers: float = 1
    sharing: bool = False
    waiting: deque[int] = field(default_factory=deque)
    busy: int = 0
    left: dict[int, float] = field(default_factory=dict)
    since: float = 0.0
    version: int = 0

    def progress(self, now: float) -> None:
        """Take off what shared processors have done since the last event."""
        if self.left:
            speed = min(1.0, self.servers / len(self.left))
            for client in self.left:
                self.left[client] -= (now - self.since) * speed
        self.since = now

    def next_end(self) -> tuple[float, int] | None:
        """Return when the next shared client leaves, and which."""
        if not self.left:
            return None
        client = min(self.left, key=self.left.__getitem__)
        return self.since + max(self.left[client], 0.0) / min(1.0, self.servers / len(self.left)), client


Visit = tuple[str, float, float | None, int]


def closed_visits(
    stations: Mapping[str, Station],
    routing: Mapping[str, Mapping[str, float]],
    *,
    clients: int,
    seconds: float,
    seed: int,
    silent: Sequence[str] = (),
    warmup: float = 0.0,
) -> list[Visit]:
    """Return the visits of a closed network in one run.

    Args:
        stations: By name; clients begin at the first.
        routing: From a station to others with their probabilities.
        clients: Their number.
        seconds: How long visits are recorded.
        seed: Of the random numbers.
        silent: Stations that write nothing: clients think there.
        warmup: Seconds before the recording begins; visits that begin before are not written.
    """
    rng = random.Random(seed)
    events: list[tuple[float, int, str, int, int]] = []
    order = count()
    begun: dict[int, float] = {}
    visits: list[Visit] = []
    at: dict[int, str] = {}
    until = warmup + seconds

    def plan(name: str, now: float) -> None:
        station = stations[name]
        station.version += 1
        if (found := station.next_end()) is not None:
            heapq.heappush(events, (found[0], next(order), name, found[1], station.version))

    def arrive(client: int, name: str, now: float) -> None:
        station = stations[name]
        begun[client], at[client] = now, name
        if station.sharing:
            station.progress(now)
            station.left[client] = station.service(rng)
            plan(name, now)
        elif station.busy < station.servers:
            station.busy += 1
            heapq.heappush(events, (now + station.service(rng), next(order), name, client, -1))
        else:
            station.waiting.append(client)

    first = next(iter(stations))
    for client in range(clients):
        arrive(client, first, 0.0)
    while events:
        now, _, name, client, version = heapq.heappop(events)
        if now > until:
            break
        station = stations[name]
        if station.sharing:
            if version != station.version:
                continue
            station.progress(now)
            del station.left[client]
            plan(name, now)
        else:
            station.busy -= 1
            if station.waiting:
                station.busy += 1
                following = station.waiting.popleft()
                heapq.heappush(events, (now + station.service(rng), next(order), name, following, -1))
        if name not in silent and begun[client] >= warmup:
            visits.append((name, begun[client] - warmup, now - begun[client], client))
        targets = routing[name]
        arrive(client, rng.choices(list(targets), list(targets.values()))[0], now)
    visits += [
        (at[client], begun[client] - warmup, None, client)
        for client in range(clients)
        if at[client] not in silent and begun[client] >= warmup
    ]
    return sorted(visits, key=lambda visit: visit[1])


def layered_visits(
    *,
    clients: int,
    think: float,
    own: Sampler,
    threads: int,
    calls: int,
    database: Sampler,
    seconds: float,
    seed: int,
) -> list[Visit]:
    """Return visits of a web tier whose threads wait for ``calls`` visits to a database of one server each."""
    rng = random.Random(seed)
    events: list[tuple[float, int, str, int]] = []
    order = count()
    web: deque[int] = deque()
    queue: deque[int] = deque()
    free, idle = threads, True
    remaining: dict[int, int] = {}
    arrived: dict[int, float] = {}
    called: dict[int, float] = {}
    visits: list[Visit] = []

    def later(now: float, after: float, what: str, client: int) -> None:
        heapq.heappush(events, (now + after, next(order), what, client))

    for client in range(clients):
        later(0.0, rng.expovariate(1 / think), "arrive", client)
    while events:
        now, _, what, client = heapq.heappop(events)
        if now > seconds:
            break
        if what == "arrive":
            arrived[client] = now
            web.append(client)
        elif what == "slice":
            if remaining[client]:
                remaining[client] -= 1
                called[client] = now
                queue.append(client)
            else:
                visits.append(("web", arrived[client], now - arrived[client], client))
                free += 1
                later(now, rng.expovariate(1 / think), "arrive", client)
        else:
            visits.append(("db", called[client], now - called[client], client))
            idle = True
            later(now, own(rng) / (calls + 1), "slice", client)
        if free and web:
            free -= 1
            started = web.popleft()
            remaining[started] = calls
            later(now, own(rng) / (calls + 1), "slice", started)
        if idle and queue:
            idle = False
            later(now, database(rng), "answer", queue.popleft())
    return sorted(visits, key=lambda visit: visit[1])


def write_visits(path: Path, visits: Sequence[Visit], ids: str = "client") -> Path:
    """Write a table of visits; ``ids`` is the name of the last column, "" leaves it out."""
    lines = ["station,start,duration" + (f",{ids}" if ids else "")]
    for station, begin, duration, client in visits:
        took = "" if duration is None else f"{duration:.9f}"
        lines.append(f"{station},{begin:.9f},{took}" + (f",{client}" if ids else ""))
    path.write_text("\n".join(lines) + "\n")
    return path
