"""The simulator agrees with exact Markov chains of random models, in every figure."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import pytest
from ctmc import Exact, TooManyStatesError, UnsupportedError, solve
from random_models import describe, random_model
from repeating import repeats_after
from scipy.stats import t as student
from sim_models import (
    act,
    agrees,
    clients,
    entry,
    exp,
    fork,
    join,
    machine_repair,
    model,
    mva,
    ps,
    seq,
    service,
)

from mup.lqn import Front, Model, Processor
from mup.lqn.visits import activity_visits, entry_rates
from simulator import Figure, Result, simulate

pytestmark = pytest.mark.slow

PLAIN = {"ps", "think", "several-clients", "think-activity", "delay", "erlang"}
GROUPS = {
    "resources": PLAIN | {
        "fcfs", "hol", "pp", "infinite", "parent", "grandparent", "speed", "multicore", "pool", "replicas",
        "front", "admission-random", "admission-hol", "priority",
    },
    "graphs": PLAIN | {
        "fcfs", "pool", "and", "or", "overlap", "waits", "loop-constant", "loop-geometric", "loop-empirical",
        "loop-bodies",
    },
    "calls": PLAIN | {
        "fcfs", "pool", "count-constant", "count-geometric", "count-empirical", "releasing", "interleaved",
        "second-phase", "forward", "semaphore", "hyperexponential",
    },
    "phases": PLAIN | {"pool", "second-phase", "or", "and", "unjoined", "fcfs"},
}  # fmt: skip
"""Elements that meet in one set of random models; models whose states never end are left out."""

MODELS_EACH = 3
MAX_STATES = 800
PRECISION = 0.01
ABSOLUTE = 2e-3
"""Queues shorter than this are too rare to be estimated in a short run."""


@pytest.mark.parametrize("begin", repeats_after(1, [0, 1000]), ids=["some", "more"])
@pytest.mark.parametrize("group", GROUPS)
def test_random_models_agree_with_their_markov_chain(group: str, begin: int) -> None:
    """Every figure of three random models lies within 4 standard errors of the exact one."""
    seeds = itertools.count(begin)
    for seed, exact in itertools.islice(_solved(group, seeds), MODELS_EACH):
        tested = random_model(seed, elements=GROUPS[group], small=True)
        result = simulate(tested, precision=PRECISION, seed=seed)
        wrong = list(_disagreements(exact, result))
        assert not wrong, f"seed {seed}: {'; '.join(wrong)}\n{describe(tested)}"


@pytest.mark.parametrize(("needed", "width"), [(1, 2), (2, 3), (1, 3)])
def test_quorums_agree_with_their_markov_chain(needed: int, width: int) -> None:
    """Branches that come too late run on; an entry that waits for them keeps its thread that long."""
    names = [f"b{i}" for i in range(width)]
    body = entry(
        "a",
        act("s"), *(act(n, exp(0.2 + 0.1 * i)) for i, n in enumerate(names)), act("e", exp(0.1), replies=True),
        act("f", exp(0.15)),
        arcs=(fork("s", *names), replace(join("e", *names), quorum=needed), *seq("e", "f")),
    )  # fmt: skip
    tested = model(clients(3, exp(1.0), "A.a"), service("A", replace(body, waits=True), threads=2))
    assert not list(_disagreements(solve(tested), simulate(tested, precision=PRECISION, seed=1)))


def _solved(group: str, seeds: Iterator[int]) -> Iterator[tuple[int, Exact]]:
    """Yield the seeds whose models have few enough states, with their exact figures."""
    for seed in seeds:
        try:
            yield seed, solve(random_model(seed, elements=GROUPS[group], small=True), max_states=MAX_STATES)
        except (UnsupportedError, TooManyStatesError):
            continue


def _figures(exact: Exact, result: Result) -> Iterator[tuple[str, float, Figure | None]]:
    yield "cycle throughput", exact.cycle_throughput, result.cycle.throughput
    yield "cycle response time", exact.cycle_response, result.cycle.response_time
    for name, task in result.tasks.items():
        yield f"{name} throughput", exact.throughput[name], task.throughput
        yield f"{name} busy", exact.busy[name], task.busy
        yield f"{name} queue", exact.queue.get(name, 0.0), task.queue
    for name, processor in result.processors.items():
        yield f"{name} utilization", exact.utilization.get(name, 0.0), processor.utilization
    for name, served in result.entries.items():
        yield f"{name} throughput", exact.entry_throughput.get(name, 0.0), served.throughput
        yield f"{name} response time", exact.entry_response.get(name, 0.0), served.response_time


def _disagreements(exact: Exact, result: Result) -> Iterator[str]:
    quantile = float(student.ppf(0.975, result.batches - 1))
    for name, truth, figure in _figures(exact, result):
        if figure is None or name.startswith(tuple(f"{t}." for t in result.tasks if t not in exact.queue)):
            continue  # an infinite processor; the entry of a reference task
        error = abs(figure.mean - truth)
        allowed = 4 * figure.ci95 / quantile + (
            ABSOLUTE if name.endswith("queue") else 1e-4 * max(1.0, truth)
        )
        if error > allowed:
            yield f"{name} is {figure.mean:.6g} +- {figure.ci95:.2g}, exactly {truth:.6g}"


def _machine_repair_models() -> Iterator[Model]:
    work = entry("/a/", act("work", exp(0.1)))
    yield model(clients(8, exp(0.5), "A./a/"), service("A", work, threads=3))
    for discipline in ("ps", "fcfs", "hol", "pp"):
        cpu = Processor(name="cpu", cores=3, discipline=discipline)
        placed = service("A", work, processor="cpu")
        yield model(clients(8, exp(0.5), "A./a/"), placed, processors=(cpu,))


@pytest.mark.parametrize("tested", list(_machine_repair_models()))
def test_oracle_knows_machine_repair(tested: Model) -> None:
    """The oracle itself is right where the birth-death chain of M/M/c//N says so."""
    throughput, response = machine_repair(8, 3, 0.5, 0.1)
    exact = solve(tested)
    assert exact.cycle_throughput == pytest.approx(throughput)
    assert exact.cycle_response == pytest.approx(response)
    assert exact.entry_response["A/a/"] == pytest.approx(response)


def test_oracle_knows_product_form() -> None:
    """Nested calls, replicas and fronts are product-form queues when times are exponential."""
    nested = model(
        clients(4, exp(0.15), "W.w"),
        service("W", entry("w", act("in", exp(0.010)), act("call", calls="A.a")), processor="web"),
        service("A", entry("a", act("x", exp(0.009), calls="D.q"), act("y", exp(0.009), calls="D.q")), processor="app"),
        service("D", entry("q", act("find", exp(0.006))), processor="db"),
        processors=(ps("web"), ps("app"), ps("db")),
    )  # fmt: skip
    throughput, residence = mva(4, 0.15, [0.010, 0.018, 0.012])
    assert solve(nested).cycle_throughput == pytest.approx(throughput)
    assert solve(nested).cycle_response == pytest.approx(sum(residence))
    copies = model(
        clients(4, exp(0.5), "A.a"), service("A", entry("a", act("work", exp(0.1))), threads=1, replicas=2)
    )
    assert solve(copies).cycle_response == pytest.approx(sum(mva(4, 0.5, [0.05, 0.05])[1]))
    front = Front(request=exp(0.01), reply=exp(0.01))
    fronted = model(
        clients(4, exp(0.1), "A.a"), service("A", entry("a", act("work", delay=exp(0.05))), front=front)
    )
    assert solve(fronted).cycle_response == pytest.approx(mva(4, 0.15, [0.02])[1][0] + 0.05)


def test_oracle_knows_joins() -> None:
    """A join of two exponentials takes the expected maximum."""
    body = entry(
        "a",
        act("start"), act("left", exp(0.2)), act("right", exp(0.3)), act("end"),
        arcs=(fork("start", "left", "right"), join("end", "left", "right")),
    )  # fmt: skip
    exact = solve(model(clients(2, exp(1.0), "A.a"), service("A", body)))
    assert exact.cycle_response == pytest.approx(0.5 - 1 / (1 / 0.2 + 1 / 0.3))


EVERYTHING = frozenset().union(*GROUPS.values()) - {"unjoined"}


def test_oracle_obeys_the_laws_of_flow() -> None:
    """Every entry is visited, and every processor busy, as often as the model's means say, to rounding."""
    solved = 0
    for seed in range(40):
        tested = random_model(seed, elements=EVERYTHING, small=True)
        try:
            exact = solve(tested, max_states=400)
        except (UnsupportedError, TooManyStatesError):
            continue
        solved += 1
        flow: dict[tuple[str, str], float] = defaultdict(float)
        for (source, _), requests in entry_rates(tested).items():
            for key, times in requests.items():
                flow[key] += times * exact.throughput[source]
        work: dict[str | None, float] = defaultdict(float)
        for task in tested.tasks:
            for served in task.entries:
                rate = flow[task.name, served.name]
                if not task.is_reference:
                    assert exact.entry_throughput[f"{task.name}.{served.name}"] == pytest.approx(rate), seed
                visits = activity_visits(served)
                demands = [visits[a.name] * a.demand.mean for a in served.activities if a.demand is not None]
                if task.front is not None:
                    demands += [t.mean for t in (task.front.request, task.front.reply) if t is not None]
                work[task.processor] += rate * sum(demands)
        whole = {p.name for p in tested.processors if p.parent is None} - {
            p.parent for p in tested.processors
        }
        for processor in tested.processors:
            if processor.name in whole & set(exact.utilization):
                busy = work[processor.name] / processor.speed / processor.cores
                assert exact.utilization[processor.name] == pytest.approx(busy), seed
    assert solved >= 15


def test_disagreement_is_noticed() -> None:
    """The comparison itself can fail: another think time is another system."""
    tested = model(clients(2, exp(1.0), "A.a"), service("A", entry("a", act("w", exp(0.5))), threads=1))
    other = model(clients(2, exp(1.2), "A.a"), service("A", entry("a", act("w", exp(0.5))), threads=1))
    result = simulate(tested, precision=0.02)
    assert agrees(result.cycle.throughput, solve(tested).cycle_throughput)
    assert not list(_disagreements(solve(tested), result))
    assert any("throughput" in w for w in _disagreements(solve(other), result))
    assert math.isfinite(solve(other).cycle_response)
