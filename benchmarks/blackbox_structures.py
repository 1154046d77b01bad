"""Does `mup identify` see which targets are no single station? Simulated ones of known structure.

    python benchmarks/blackbox_structures.py [--seconds S] [--seed N] [--quick]

Twenty targets are none: seven pairs of stations in series, six caches before a station, seven hosts whose
cores all requests share. Eighteen are one station: six distributions of service with 1, 2 and 4 servers. All
are simulated event by event, by code that shares nothing with the method, and answer in computed time, with a
latency of 0.5 ms. The experiment of the command is run on each, and then its comparison of structures.

*By name*: the structure that was found is the true one. *Apart*: the command says that it is no single
station, by name or not. *One*: nothing speaks against a single station. *Unclear*: it says that it cannot
tell. Of single stations everything but *one* is wrong, *apart* a false alarm. Capacities are requests per
second: the true one, that of the station identified, that of the structure found.

Rows are kept as soon as they are there; a run that was interrupted goes on with those that are missing.
--quick: one target of each structure; nothing is kept.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import describe
from stored import Store, add_results, run_resumable

from analyzer.blackbox.experiment import run_experiment
from analyzer.blackbox.inversion import Trace
from analyzer.blackbox.policy import Limits
from analyzer.blackbox.station import LoadStep
from analyzer.blackbox.structure import judge_structure

FloatArray = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]

LATENCY = 0.0005
"""Seconds that every request spends outside of the target."""
RATE = 1000.0
"""Most requests per second."""
FAMILIES: dict[str, Draw] = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "constant": lambda _, n: np.ones(n),
    "uniform": lambda rng, n: rng.uniform(0.5, 1.5, n),
    "Erlang-4": lambda rng, n: rng.gamma(4.0, 0.25, n),
    "hyperexponential": lambda rng, n: rng.exponential(np.where(rng.random(n) < 0.1, 5.5, 0.5)),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.25, 2.8, 0.4),
}
"""Service times of mean 1."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something to identify.

    Attributes:
        kind: ``one``, ``series``, ``cache`` or ``sharing``, as the method names them.
        means: Milliseconds of service: of one station, of both in series, of cache and station, of the cores.
        servers: Of the station, of both in series, of the one behind the cache; cores.
        family: Of all its service times.
        share: Of requests that the cache answers.
    """

    kind: str
    means: tuple[float, ...]
    servers: tuple[int, ...]
    family: str
    share: float = 0.0

    @property
    def label(self) -> str:
        """What it is, for tables and as its key."""
        means = ", ".join(f"{mean:g}" for mean in self.means)
        servers = ", ".join(f"{count}" for count in self.servers)
        hits = f", {self.share:.0%} hits" if self.share else ""
        return f"{self.kind} | {means} | {servers} | {self.family}{hits}"

    @property
    def capacity(self) -> float:
        """Requests per second that it can do."""
        match self.kind:
            case "series":
                return min(1e3 * k / mean for k, mean in zip(self.servers, self.means, strict=True))
            case "cache":
                return 1e3 * self.servers[0] / self.means[1] / (1 - self.share)
            case _:
                return 1e3 * self.servers[0] / self.means[0]

    def leave(self, arrivals: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return when requests are answered that find it empty at first; seconds, shape (n,)."""
        draw, count = FAMILIES[self.family], len(arrivals)
        first = 1e-3 * self.means[0] * draw(rng, count)
        match self.kind:
            case "sharing":
                return shared(arrivals, first, self.servers[0])
            case "one":
                return in_order(arrivals, first, self.servers[0])
        second = 1e-3 * self.means[1] * draw(rng, count)
        if self.kind == "series":
            return in_order(in_order(arrivals, first, self.servers[0]), second, self.servers[1])
        leave = arrivals + first
        missed = rng.random(count) >= self.share
        leave[missed] = in_order(arrivals[missed], second[missed], self.servers[0])
        return leave


TARGETS = (
    Target("series", (40, 30), (1, 1), "exponential"),
    Target("series", (20, 20), (1, 1), "exponential"),
    Target("series", (50, 10), (1, 1), "exponential"),
    Target("series", (40, 30), (1, 1), "Erlang-4"),
    Target("series", (40, 30), (1, 1), "hyperexponential"),
    Target("series", (30, 60), (1, 2), "exponential"),
    Target("series", (80, 60), (2, 2), "exponential"),
    Target("cache", (5, 80), (1,), "exponential", 0.5),
    Target("cache", (5, 80), (1,), "constant", 0.5),
    Target("cache", (10, 60), (1,), "Erlang-4", 0.3),
    Target("cache", (2, 100), (1,), "exponential", 0.8),
    Target("cache", (5, 80), (2,), "exponential", 0.5),
    Target("cache", (5, 60), (4,), "exponential", 0.6),
    Target("sharing", (50,), (1,), "exponential"),
    Target("sharing", (50,), (1,), "Erlang-4"),
    Target("sharing", (50,), (2,), "exponential"),
    Target("sharing", (50,), (2,), "constant"),
    Target("sharing", (50,), (2,), "hyperexponential"),
    Target("sharing", (20,), (2,), "exponential"),
    Target("sharing", (50,), (4,), "exponential"),
    *(Target("one", (20,), (servers,), family) for family in FAMILIES for servers in (1, 2, 4)),
)


def in_order(ready: FloatArray, work: FloatArray, servers: int) -> FloatArray:
    """Return departures from servers that take requests in order of arrival.

    Args:
        ready: When each arrives, in any order; s.
        work: Service time of each; s.
        servers: How many.
    """
    coming = deque(np.argsort(ready, kind="stable").tolist())
    waiting: deque[int] = deque()
    served: list[tuple[float, int]] = []
    leave = np.empty(len(ready))
    while coming or served:
        if coming and (not served or ready[coming[0]] < served[0][0]):
            now = float(ready[coming[0]])
            waiting.append(coming.popleft())
        else:
            now, done = heappop(served)
            leave[done] = now
        # One event frees one server, or brings one request.
        if waiting and len(served) < servers:
            following = waiting.popleft()
            heappush(served, (now + float(work[following]), following))
    return leave


def shared(arrivals: FloatArray, work: FloatArray, cores: int) -> FloatArray:
    """Return departures from cores that all requests share, none of which uses more than one.

    Args:
        arrivals: Ascending; s.
        work: Of each; s.
        cores: How many.
    """
    leave = np.empty(len(work))
    left: dict[int, float] = {}
    now, coming = 0.0, 0
    while coming < len(work) or left:
        rate = min(1.0, cores / len(left)) if left else 0.0
        first = min(left, key=left.__getitem__, default=-1)
        ends = now + left[first] / rate if left else np.inf
        arrives = float(arrivals[coming]) if coming < len(work) else np.inf
        done = (min(ends, arrives) - now) * rate
        left = {request: rest - done for request, rest in left.items()}
        if ends < arrives:
            now = leave[first] = ends
            del left[first]
        else:
            now = arrives
            left[coming] = float(work[coming])
            coming += 1
    return leave


class Injector:
    """Injects loads into a target; its random numbers are those of the target and of the load."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._number = TARGETS.index(target)

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        """Return what a load of this rate shows, from an empty target on."""
        rng = np.random.default_rng([seed, self._number])
        arrivals = np.cumsum(rng.exponential(1 / rate, int(rng.poisson(rate * seconds))))
        leave = self._target.leave(arrivals, rng)
        return LoadStep(rate, Trace.of(arrivals, leave - arrivals + LATENCY), seconds)


def identified(target: Target, seconds: float, seed: int) -> dict[str, Any]:
    """Identify a target; return what was found, as JSON values."""
    started = time.process_time()
    found = run_experiment(Injector(target), limits=Limits(rate=RATE, seconds=seconds), seed=seed)
    between = time.process_time()
    judged = judge_structure(found.station, found.steps, seed=seed)
    result: dict[str, Any] = {
        "servers": found.station.servers.count,
        "station": found.station.capacity,
        "experiment": between - started,
        "comparison": time.process_time() - between,
    }
    if judged is None:  # too few loads
        return result | {"verdict": "unclear", "kind": "-", "p": None, "capacity": found.station.capacity}
    verdict = {True: "one", False: "apart", None: "unclear"}[judged.one]
    if judged.kind == target.kind != "one":
        verdict = "by name"
    return result | {
        "verdict": verdict,
        "kind": judged.kind,
        "p": judged.p_value,
        "capacity": judged.capacity,
    }


def line(target: Target, row: dict[str, Any]) -> str:
    """Return a row of the table."""
    p_value = "-" if row["p"] is None else f"{row['p']:.2g}"
    right = row["verdict"] == ("one" if target.kind == "one" else "by name")
    return (
        f"| {target.label} | {row['servers']} | {row['kind']} | {p_value} "
        f"| {row['verdict']}{'' if right else ' *'} "
        f"| {target.capacity:.1f} | {row['station']:.1f} | {row['capacity']:.1f} "
        f"| {row['experiment'] + row['comparison']:.1f} |"
    )


def summary(found: Sequence[tuple[Target, dict[str, Any]]]) -> str:
    """Return one line per structure: how many were told what, and how far off capacities are."""
    lines = []
    for kind in dict.fromkeys(target.kind for target, _ in found):
        rows = [(target, row) for target, row in found if target.kind == kind]
        told = [row["verdict"] for _, row in rows]
        off = []
        for what in ("station", "capacity"):
            errors = [row[what] / target.capacity - 1 for target, row in rows]
            off.append(f"{min(errors):+.0%} to {max(errors):+.0%}")
        counts = ", ".join(f"{told.count(what)} {what}" for what in ("by name", "apart", "unclear", "one"))
        lines.append(
            f"{kind}: of {len(rows)}: {counts}; capacity of the station off by {off[0]}, "
            f"of what was found {off[1]}"
        )
    others = [row["verdict"] for target, row in found if target.kind != "one"]
    alone = [row["verdict"] for target, row in found if target.kind == "one"]
    seen = others.count("by name") + others.count("apart")
    lines.append(f"no single station: {seen} of {len(others)} seen, {others.count('by name')} by name")
    false = alone.count("apart") + alone.count("by name")
    lines.append(f"single stations: {false} of {len(alone)} taken for something else")
    return "\n".join(lines)


def main() -> int:
    """Identify every target and print what was found; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=180.0, help="of load, at most [default: 180, as the command]"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers [default: 0]")
    parser.add_argument("--quick", action="store_true", help="one target of each structure; nothing is kept")
    add_results(parser, "blackbox_structures.jsonl")
    options = parser.parse_args()
    print(describe("numpy", "scipy"))
    print(f"seed {options.seed}, at most {options.seconds:g} s of load each; *: not as it is")
    print("\n| structure | ms | servers | service | K found | most likely | p of one station | told ", end="")
    print("| capacity | of the station | of what was found | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    targets = list(TARGETS)
    if options.quick:
        targets = list({target.kind: target for target in reversed(TARGETS)}.values())
    store = Store(None if options.quick else options.results)
    found = []
    for target in targets:
        key = f"{target.label}, seed {options.seed}, {options.seconds:g} s"
        row = store.get(key)
        if row is None:
            store.put(key, row := identified(target, options.seconds, options.seed))
        found.append((target, row))
        print(line(target, row), flush=True)
    print(f"\n{summary(found)}")
    times = [row["comparison"] for _, row in found]
    print(
        f"processor time of the comparison of structures: {np.median(times):.1f} s (median), "
        f"{min(times):.1f} to {max(times):.1f}"
    )
    return 0


if __name__ == "__main__":
    run_resumable(main)
