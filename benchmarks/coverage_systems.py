"""Systems of known means: closed, open, sticky, forked, of priorities; half and nearly full.

Closed and open queues have closed forms; of one queue, percentiles too. Forks and priorities are small
Markov chains, solved here. What sticks to cores has neither: a long run without control variates stands for
the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task
from simulator import simulate

__all__ = ["LOADS", "NAMES", "System", "systems"]

SERVICE = 0.1
LOADS = (0.5, 0.95)
NAMES = ("throughput", "response time", "utilization", "queue", "p95")
LONG = 0.0025
"""Precision of a long run."""
ZERO = Constant(0.0)

State = tuple[int, ...]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class System:
    """A model whose means are known.

    Attributes:
        name: For the table.
        model: What to simulate.
        exact: Throughput (1/s), response time (s), utilization, mean queue, 95th percentile of response time
            (s); None = not to be compared.
        horizon: Simulated seconds of the runs of fixed length.
        precision: Of the runs ended by precision.
    """

    name: str
    model: Model
    exact: tuple[float | None, ...]
    horizon: float
    precision: float = 0.02


def systems() -> list[System]:
    """Return all of them."""
    return [
        *(closed(10, 1, load, "threads") for load in LOADS),
        *(closed(40, 4, load, "ps") for load in LOADS),
        *(opened(load, "threads") for load in LOADS),
        *(sticky(load) for load in LOADS),
        *(forked(load) for load in LOADS),
        *(urgent(load) for load in LOADS),
    ]


def act(name: str, demand: float = 0.0, calls: str = "") -> Activity:
    """Return an activity with an exponential demand, and a request to the entry of a task."""
    return Activity(
        name=name,
        demand=Exponential(demand) if demand else ZERO,
        delay=ZERO,
        calls=(Call(task=calls, entry="serve"),) if calls else (),
    )


def service(
    name: str, demand: float = SERVICE, *, threads: float = math.inf, cpu: str | None = "cpu"
) -> Task:
    """Return a task of one entry that needs a processor."""
    entry = Entry(name="serve", start="work", activities=(act("work", demand),))
    return Task(name=name, threads=threads, processor=cpu, entries=(entry,))


def users(name: str, clients: int, think: float, target: str) -> Task:
    """Return clients who think and ask for one thing."""
    cycle = Entry(name="cycle", start="ask", activities=(act("ask", calls=target),))
    return Task(name=name, role="reference", threads=clients, think=Exponential(think), entries=(cycle,))


def queue_model(load: Task, servers: int, discipline: str) -> Model:
    """Return one queue: of threads, or of a processor of some discipline."""
    if discipline == "threads":
        return Model(name="queue", tasks=(load, service("A", threads=servers, cpu=None)))
    cpu = Processor(name="cpu", cores=servers, discipline=discipline)  # type: ignore[arg-type]
    return Model(name="queue", processors=(cpu,), tasks=(load, service("A")))


def think_for(load: float, utilization: Callable[[float], float]) -> float:
    """Return the mean think time at which a utilization is reached that falls with it."""
    low, high = 0.0, 1e4
    for _ in range(60):
        think = (low + high) / 2
        low, high = (think, high) if utilization(think) > load else (low, think)
    return high


def closed(clients: int, servers: int, load: float, discipline: str) -> System:
    """Return M/M/c//N with the think time that brings the servers to this load."""
    think = think_for(load, lambda seconds: machine_repair(clients, servers, seconds)[0])
    utilization, queue = machine_repair(clients, servers, think)
    throughput = utilization * servers / SERVICE
    response = queue / throughput + SERVICE
    threaded = discipline == "threads"
    p95 = None
    if threaded and servers == 1:
        # Who arrives sees the system as if it had a client less (arrival theorem).
        seen = _weights(clients - 1, 1, think)
        p95 = _percentile(0.95, seen / seen.sum())
    return System(
        f"M/M/{servers}//{clients} {discipline}, {load:g}",
        queue_model(users("U", clients, think, "A"), servers, discipline),
        (throughput, response, utilization, queue if threaded else None, p95),
        20_000 / throughput,
    )


def machine_repair(clients: int, servers: int, think: float) -> tuple[float, float]:
    """Return the utilization and mean queue of M/M/c//N, from its birth-death chain."""
    weights = _weights(clients, servers, think)
    present = np.arange(clients + 1)
    busy = float(weights @ np.minimum(present, servers)) / weights.sum()
    return busy / servers, float(weights @ np.maximum(present - servers, 0)) / weights.sum()


def _weights(clients: int, servers: int, think: float) -> FloatArray:
    present = np.arange(1, clients + 1)
    ratios = (clients - present + 1) / think * SERVICE / np.minimum(present, servers)
    return np.concatenate([[1.0], np.cumprod(ratios)])


def _percentile(level: float, seen: FloatArray) -> float:
    """Return a percentile of the time of a customer that finds ``n`` others with probability ``seen[n]``."""
    # In line behind n others, n + 1 exponential services take at most t if a Poisson count exceeds n.
    low, high = 0.0, 1000 * SERVICE
    for _ in range(80):
        t = (low + high) / 2
        terms = np.exp(
            -t / SERVICE + np.cumsum(np.log([1.0, *(t / SERVICE / k for k in range(1, len(seen)))]))
        )
        late = float(seen @ np.cumsum(terms))
        low, high = (t, high) if late > 1 - level else (low, t)
    return high


def opened(load: float, discipline: str) -> System:
    """Return M/M/1."""
    entry = Entry(
        name="cycle", start="ask", activities=(act("ask", calls="A"),), arrivals=Exponential(SERVICE / load)
    )
    source = Task(name="U", role="reference", threads=math.inf, entries=(entry,))
    threaded = discipline == "threads"
    response = SERVICE / (1 - load)
    return System(
        f"M/M/1 {discipline}, {load:g}",
        queue_model(source, 1, discipline),
        (
            load / SERVICE,
            response,
            load,
            load**2 / (1 - load) if threaded else None,
            response * math.log(20) if threaded else None,
        ),
        4_000 / (1 - load) ** 2 * SERVICE / load,  # some hundreds of relaxation times
        precision=0.02 if load < 0.9 else 0.05,
    )


def sticky(load: float) -> System:
    """Return eight threads that stick to four cores."""
    think = think_for(load, lambda seconds: machine_repair(40, 4, seconds)[0])
    model = Model(
        name="sticky",
        processors=(Processor(name="cpu", cores=4, discipline="cores"),),
        tasks=(users("U", 40, think, "A"), service("A", threads=8)),
    )
    long = simulate(model, precision=LONG, seed=10_000)
    response = long.cycle.response_time.mean
    throughput = 40 / (think + response)  # surer than the throughput that was simulated
    return System(
        f"sticky threads, {load:g}",
        model,
        (throughput, response, throughput * SERVICE / 4, None, None),
        20_000 / throughput,
    )


def forked(load: float) -> System:
    """Return ten clients whose requests fork to two processors and join again."""
    clients = 10

    def chain(think: float) -> tuple[float, float]:
        """Return throughput and the utilization of either processor.

        The state counts requests at both processors, at the first alone, and at the second alone.
        """

        def moves(state: State) -> Iterable[tuple[float, State]]:
            both, first, second = state
            yield (clients - sum(state)) / think, (both + 1, first, second)
            for here, alone in (
                ((both - 1, first, second + 1), first),
                ((both - 1, first + 1, second), second),
            ):
                present = both + alone
                if present:
                    yield both / present / SERVICE, here
            if first:
                yield first / (both + first) / SERVICE, (both, first - 1, second)
            if second:
                yield second / (both + second) / SERVICE, (both, first, second - 1)

        chances = stationary((0, 0, 0), moves)
        thinking = sum(p * (clients - sum(state)) for state, p in chances.items())
        busy = sum(p for (both, first, _), p in chances.items() if both + first)
        return thinking / think, busy

    think = think_for(load, lambda seconds: chain(seconds)[1])
    throughput, busy = chain(think)
    names = ("cpu", "cpu2")
    entry = Entry(
        name="serve",
        start="go",
        activities=(act("go"), act("left", calls="L"), act("right", calls="R"), act("done")),
        precedences=(
            Precedence(pre=("go",), post=("left", "right"), fork="and"),
            Precedence(pre=("left", "right"), post=("done",), join="and"),
        ),
    )
    model = Model(
        name="forked",
        processors=tuple(Processor(name=name) for name in names),
        tasks=(
            users("U", clients, think, "F"),
            Task(name="F", threads=math.inf, entries=(entry,)),
            service("L", cpu="cpu"),
            service("R", cpu="cpu2"),
        ),
    )
    exact = (throughput, clients / throughput - think, busy, None, None)
    return System(f"fork and join, {load:g}", model, exact, 20_000 / throughput)


def urgent(load: float) -> System:
    """Return two kinds of clients whose work has different priorities on one processor."""
    clients, quick = 5, SERVICE / 2

    def chain(think: float) -> tuple[float, float, float]:
        """Return throughput and mean number present of both kinds together, and the utilization."""

        def moves(state: State) -> Iterable[tuple[float, State]]:
            first, later = state
            yield (clients - first) / think, (first + 1, later)
            yield (clients - later) / think, (first, later + 1)
            if first:
                yield 1 / quick, (first - 1, later)
            elif later:
                yield 1 / SERVICE, (first, later - 1)

        chances = stationary((0, 0), moves)
        present = sum(p * sum(state) for state, p in chances.items())
        return (2 * clients - present) / think, present, 1 - chances[0, 0]

    think = think_for(load, lambda seconds: chain(seconds)[2])
    throughput, present, busy = chain(think)
    model = Model(
        name="urgent",
        processors=(Processor(name="cpu", discipline="pp"),),
        tasks=(
            users("U", clients, think, "A"),
            users("V", clients, think, "B"),
            Task(
                name="A", threads=math.inf, processor="cpu", priority=1, entries=service("A", quick).entries
            ),
            service("B"),
        ),
    )
    exact = (throughput, present / throughput, busy, None, None)
    return System(f"priorities, {load:g}", model, exact, 20_000 / throughput)


def stationary(start: State, moves: Callable[[State], Iterable[tuple[float, State]]]) -> dict[State, float]:
    """Return the stationary probabilities of a chain, given the rates out of every state."""
    states = {start: 0}
    rates: list[tuple[int, int, float]] = []
    todo = [start]
    for state in todo:  # grows on the way
        for rate, after in moves(state):
            if rate <= 0:
                continue
            if after not in states:
                states[after] = len(states)
                todo.append(after)
            rates.append((states[state], states[after], rate))
    balance = np.zeros((len(states), len(states)))
    for here, there, rate in rates:
        balance[there, here] += rate
        balance[here, here] -= rate
    balance[0] = 1.0
    right = np.zeros(len(states))
    right[0] = 1.0
    return dict(zip(states, np.linalg.solve(balance, right).tolist(), strict=True))
