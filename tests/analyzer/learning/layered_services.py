"""Two layers with any service, simulated event by event: users think, A works, asks B, and works again.

The simulation shares nothing with what is tested: first come, first served, numpy's variates, one run at a time.
"""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
from layered_systems import act, chain, without_times
from service_systems import SERVICES

from analyzer.learning.traces import Traces
from mup.lqn import Model, Processor, Task

__all__ = ["NAMES", "TIMES", "two_layers", "two_layers_observed", "unknown"]

TIMES = {"think": 0.5, "pre": 0.05, "q": 0.06, "post": 0.1}
NAMES = (
    "C.cycle:think",
    "A.serve:(waiting)",
    "A.serve:pre",
    "B.query:(waiting)",
    "B.query:q",
    "A.serve:post",
)
THINK, WAIT_A, PRE, WAIT_B, QUERY, POST = range(6)
USERS, THREADS_A, THREADS_B = 96, 40, 15


def two_layers() -> Model:
    """Users think, A works before and after it asks B."""
    times = TIMES
    cycle = chain("cycle", act("think", times["think"]), act("go", 0, "A.serve"))
    serve = chain("serve", act("pre", times["pre"]), act("ask", 0, "B.query"), act("post", times["post"]))
    query = chain("query", act("q", times["q"]))
    return Model(
        name="two-layers",
        processors=(Processor(name="PA", cores=400), Processor(name="PB", cores=200)),
        tasks=(
            Task(name="C", role="reference", threads=96, entries=(cycle,)),
            Task(name="A", threads=40, processor="PA", admission="random", entries=(serve,)),
            Task(name="B", threads=15, processor="PB", admission="random", entries=(query,)),
        ),
    )


def unknown() -> Model:
    return without_times(two_layers(), "C", "A", "B")


def two_layers_observed(
    services: dict[str, str], *, traces: int = 30, runs: int = 60, dt: float = 0.05, seed: int = 0
) -> Traces:
    """Return mean numbers of requests over 2 s; all times begin at time 0.

    Args:
        services: Of each of ``TIMES``, a name in ``SERVICES``.
        traces: From different beginnings.
        runs: From each.
        dt: Seconds between samples.
        seed: Same seed, same traces.
    """
    rng = np.random.default_rng([seed, 7])
    samples = round(2.0 / dt) + 1
    x = np.zeros((traces, samples, len(NAMES)))
    for trace in range(traces):
        begun = _beginning(rng)
        for _ in range(runs):
            x[trace] += _run(begun, services, dt, samples, rng)
    return Traces(x=x / runs, dt=dt, names=NAMES, runs=np.array(runs))


def _beginning(rng: np.random.Generator) -> list[int]:
    at_a = int(rng.integers(0, USERS + 1))
    inside = min(at_a, THREADS_A)
    pre, at_b, post = rng.multinomial(inside, rng.dirichlet([1, 1, 1])).tolist()
    query = min(at_b, THREADS_B)
    return [USERS - at_a, at_a - inside, pre, at_b - query, query, post]


def _run(
    begun: list[int], services: dict[str, str], dt: float, samples: int, rng: np.random.Generator
) -> np.ndarray:
    kinds = {THINK: "think", PRE: "pre", QUERY: "q", POST: "post"}
    drawn: dict[int, deque[float]] = {kind: deque() for kind in kinds}

    def time_of(kind: int) -> float:
        if not drawn[kind]:
            drawn[kind].extend((TIMES[kinds[kind]] * SERVICES[services[kinds[kind]]](rng, 500)).tolist())
        return drawn[kind].popleft()

    now = begun.copy()
    events = [(time_of(kind), kind) for kind in kinds for _ in range(begun[kind])]
    heapq.heapify(events)
    seen = np.empty((samples, len(NAMES)))
    sample = 0
    while True:
        moment = events[0][0]
        while sample < samples and sample * dt < moment:
            seen[sample] = now
            sample += 1
        if sample == samples:
            return seen
        _, kind = heapq.heappop(events)
        now[kind] -= 1
        started: list[int] = []
        if kind == THINK:
            now[WAIT_A] += 1
        elif kind == PRE:
            now[WAIT_B] += 1
        elif kind == QUERY:
            now[POST] += 1
            started.append(POST)
        else:
            now[THINK] += 1
            started.append(THINK)
        if now[WAIT_A] and now[PRE] + now[WAIT_B] + now[QUERY] + now[POST] < THREADS_A:
            now[WAIT_A] -= 1
            now[PRE] += 1
            started.append(PRE)
        if now[WAIT_B] and now[QUERY] < THREADS_B:
            now[WAIT_B] -= 1
            now[QUERY] += 1
            started.append(QUERY)
        for kind in started:
            heapq.heappush(events, (moment + time_of(kind), kind))
