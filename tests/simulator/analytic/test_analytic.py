"""The analytic estimate is exact where theory is, within bounds elsewhere, and refuses by name."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sim_models import (
    act,
    choice,
    clients,
    entry,
    exp,
    fork,
    join,
    machine_repair,
    merge,
    model,
    mva,
    ps,
    seq,
    service,
)

from mup.errors import ModelError, SimulationError, UncalibratedError
from mup.lqn import Call, Constant, Front, Geometric, Model, Precedence, Processor, Task, with_scv
from simulator import simulate
from simulator.analytic import estimate
from simulator.analytic.approximations.convolution import rising
from simulator.analytic.approximations.shared_station import Background as Crowd
from simulator.analytic.approximations.shared_station import SharedView


def two_tiers(count: int, think: float, demands: tuple[float, float], **pools: Any) -> Model:
    first, second = demands
    return model(
        clients(count, exp(think) if think else None, "A.a"),
        service("A", entry("a", act("x", exp(first), calls="B.b")), processor="p1", **pools),
        service("B", entry("b", act("y", exp(second))), processor="p2"),
        processors=(ps("p1"), ps("p2")),
    )


@pytest.mark.parametrize("count", [1, 2, 20, 200])
@pytest.mark.parametrize("think", [0.0, 1.0])
def test_exact_for_closed_product_form(count: int, think: float) -> None:
    """Without pools in the way, PS processors give exactly what mean-value analysis does."""
    got = estimate(two_tiers(count, think, (0.03, 0.05)))
    throughput, residence = mva(count, think, [0.03, 0.05])
    assert got.converged
    assert got.cycle.throughput == pytest.approx(throughput, rel=1e-9)
    assert got.cycle.response_time == pytest.approx(sum(residence), rel=1e-8)
    assert got.processors["p2"] == pytest.approx(throughput * 0.05, rel=1e-6)
    assert got.entries["B.b"][1] == pytest.approx(residence[1], rel=0.02)


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("kind", ["threads", "fcfs", "ps"])
def test_exact_for_machine_repair(servers: int, kind: str) -> None:
    """M/M/c//N is exact, whether the servers are threads or cores."""
    processors = () if kind == "threads" else (Processor(name="p", cores=servers, discipline=kind),)  # type: ignore[arg-type]
    task = service(
        "A",
        entry("a", act("x", exp(0.05))),
        threads=servers if kind == "threads" else math.inf,
        processor="p" if processors else None,
    )
    got = estimate(model(clients(25 * servers, exp(1.0), "A.a"), task, processors=processors))
    throughput, response = machine_repair(25 * servers, servers, 1.0, 0.05)
    assert got.cycle.throughput == pytest.approx(throughput, rel=1e-9)
    assert got.cycle.response_time == pytest.approx(response, rel=1e-8)


def test_nested_pools_aggregate_exactly() -> None:
    """A pool in a pool, each around one exponential server, is the product form of its parts."""
    inner = service("B", entry("b", act("y", exp(0.05))), threads=1)
    outer = service("A", entry("a", act("x", exp(0.03), calls="B.b")), processor="p1", threads=64)
    got = estimate(model(clients(30, exp(1.0), "A.a"), outer, inner, processors=(ps("p1"),)))
    assert got.cycle.throughput == pytest.approx(mva(30, 1.0, [0.03, 0.05])[0], rel=1e-9)


def open_model(rate: float, servers: int, demand: float = 1.0) -> Model:
    task = replace(
        clients(1, None, "A.a"),
        threads=math.inf,
        entries=(replace(clients(1, None, "A.a").entries[0], arrivals=exp(1 / rate)),),
    )
    return model(task, service("A", entry("a", act("x", exp(demand))), threads=servers))


def test_exact_for_open_queues() -> None:
    """M/M/1 and M/M/c: response times of Erlang's formulas."""
    one = estimate(open_model(0.5, 1))
    assert one.cycle.response_time == pytest.approx(2.0, rel=1e-6)
    four = estimate(open_model(3.0, 4))
    load, servers = 3.0, 4
    tail = load**servers / math.factorial(servers) / (1 - load / servers)
    waits = tail / (sum(load**k / math.factorial(k) for k in range(servers)) + tail)
    assert four.cycle.response_time == pytest.approx(1 + waits / (servers - load), rel=1e-6)
    assert four.tasks["A"].utilization == pytest.approx(0.75)


def test_arrivals_at_an_entry_are_a_load_of_their_own() -> None:
    """A service to which requests come from outside needs no reference task."""
    body = replace(entry("a", act("x", exp(1.0))), arrivals=exp(2.0))
    got = estimate(model(service("A", body, threads=1)))
    assert got.cycle.throughput == pytest.approx(0.5)
    assert got.cycle.response_time == pytest.approx(2.0, rel=1e-6)


def test_open_overload_is_refused() -> None:
    """Arrivals beyond the capacity have no steady state, and the message names what is too slow."""
    with pytest.raises(SimulationError, match=r"tasks\['A'\]"):
        estimate(open_model(1.2, 1))


@pytest.mark.parametrize("scv", [0.0, 0.25, 4.0])
def test_open_queue_of_general_services(scv: float) -> None:
    """M/G/1 follows Pollaczek and Khinchine."""
    base = open_model(0.6, 1)
    task = service("A", entry("a", act("x", with_scv(1.0, scv))), threads=1)
    got = estimate(base.with_task(task))
    assert got.cycle.response_time == pytest.approx(1 + 0.6 * (1 + scv) / 2 / 0.4, rel=0.03)


@pytest.mark.parametrize(("scv", "exact"), [(0.1, 0.1508), (4.0, 0.2583)])
def test_closed_queue_of_general_services(scv: float, exact: float) -> None:
    """20 clients at one FCFS server at utilization 0.8 to 0.87: as simulated (within 0.5 %), to 4 %."""
    got = estimate(
        model(
            clients(20, exp(1.0), "A.a"), service("A", entry("a", act("x", with_scv(0.05, scv))), threads=1)
        )
    )
    assert got.cycle.response_time == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("clients_there", [256, 500, 620, 5000])
@pytest.mark.parametrize("scv", [0.1, 4.4, 16.0, 50.0])
def test_full_queues_of_general_services(scv: float, clients_there: int) -> None:
    """However variable services are, a thread that never idles completes one per mean service time."""
    task = service("A", entry("a", act("x", with_scv(0.025, scv))), threads=1)
    got = estimate(model(clients(clients_there, exp(0.667), "A.a"), task))
    assert got.cycle.throughput == pytest.approx(40.0, rel=0.005)
    assert got.cycle.response_time == pytest.approx(clients_there / 40 - 0.667, rel=0.01)


@pytest.mark.parametrize("think", [0.0001, 0.005, 0.05])
@pytest.mark.parametrize(("scv", "servers"), [(0.0, 1), (0.0, 8), (0.1, 4), (4.0, 1)])
def test_clients_who_hardly_think_keep_servers_busy(scv: float, servers: int, think: float) -> None:
    """64 of them are in the queue at once, however variable services are."""
    task = service("A", entry("a", act("x", with_scv(0.05, scv))), threads=servers)
    got = estimate(model(clients(64, exp(think), "A.a"), task))
    assert got.cycle.throughput == pytest.approx(servers / 0.05, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("scv", "count"), [(0.1, 500), (4.4, 256), (4.4, 900)])
def test_full_replicas_of_general_services(scv: float, count: int) -> None:
    """Three replicas chosen at random, hundreds of requests: as many as simulated (to 0.5 %), within 2 %."""
    task = service("A", entry("a", act("x", with_scv(0.025, scv))), threads=1, replicas=3)
    loaded = model(clients(count, exp(0.667), "A.a"), task)
    seen = simulate(loaded, precision=0.005).cycle.throughput.mean
    assert estimate(loaded).cycle.throughput == pytest.approx(seen, rel=0.02)


def test_fork_and_join_of_exponential_branches() -> None:
    """Alone, two parallel exponential steps take 1.5 times as long as one; on one PS core as long as both."""
    body = entry(
        "a",
        act("s"),
        act("b1", exp(1.0)),
        act("b2", exp(1.0)),
        act("z"),
        arcs=(fork("s", "b1", "b2"), join("z", "b1", "b2")),
    )
    free = estimate(model(clients(1, None, "A.a"), service("A", body)))
    assert free.cycle.response_time == pytest.approx(1.5, rel=1e-9)
    shared = estimate(
        model(clients(1, None, "A.a"), service("A", body, processor="p"), processors=(ps("p"),))
    )
    assert shared.cycle.response_time == pytest.approx(2.0, rel=0.02)
    assert shared.processors["p"] == pytest.approx(1.0, rel=0.02)


def test_quorum_takes_the_first_branches() -> None:
    """Of three exponential branches the first takes a third of the mean."""
    arcs = (fork("s", "b1", "b2", "b3"), replace(join("z", "b1", "b2", "b3"), quorum=1))
    body = entry("a", act("s"), *(act(f"b{i}", exp(1.0)) for i in (1, 2, 3)), act("z"), arcs=arcs)
    got = estimate(model(clients(1, None, "A.a"), service("A", body)))
    assert got.entries["A.a"][1] == pytest.approx(1 / 3, rel=1e-2)


def test_choices_loops_and_counts_multiply() -> None:
    """Probabilities, loop counts and call counts enter the mean demand as factors."""
    calls = act("c", exp(0.5))
    calls = replace(calls, calls=(Call(task="B", entry="b", count=Geometric(2.5)),))
    body = entry(
        "a", act("s"), act("o1", exp(1.0)), act("o2", exp(3.0)), act("m"), calls, act("e", exp(0.25)),
        arcs=(
            choice("s", (0.75, 0.25), "o1", "o2"), merge("m", "o1", "o2"),
            Precedence(pre=("m",), post=("c", "e"), fork="loop", counts=(Constant(2),)),
        ),
    )  # fmt: skip
    got = estimate(
        model(clients(1, None, "A.a"), service("A", body), service("B", entry("b", act("y", exp(0.1)))))
    )
    assert got.cycle.response_time == pytest.approx(1.5 + 2 * (0.5 + 2.5 * 0.1) + 0.25, rel=1e-9)
    assert got.entries["B.b"][0] / got.cycle.throughput == pytest.approx(5.0, rel=1e-9)


def test_second_phase_frees_the_caller_and_holds_the_thread() -> None:
    """One client waits for the first phase only; many are bounded by both."""
    body = entry("a", act("x", exp(0.02), replies=True), act("y", exp(0.06)))

    def tested(count: int) -> Model:
        return model(clients(count, exp(1.0), "A.a"), service("A", body, threads=1))

    assert estimate(tested(1)).cycle.response_time == pytest.approx(0.02, rel=0.25)
    assert estimate(tested(60)).cycle.throughput == pytest.approx(1 / 0.08, rel=0.01)


def test_one_waits_for_the_end_of_ones_own_second_phase() -> None:
    """Who comes straight back to the only thread finds it in the second phase of his own last request."""
    body = entry("a", act("x", exp(1.0), replies=True), act("y", exp(2.0)))
    twice = clients(1, exp(200.0), body=entry("cycle", act("go", calls="A.a A.a")))
    got = estimate(model(twice, service("A", body, threads=1)))
    assert got.cycle.response_time == pytest.approx(1 + 2 + 1, rel=0.02)


def test_callees_are_not_at_the_processor_while_their_callers_are() -> None:
    """Of one server, the only customer gets everything beside his callee, and half beside a stranger."""
    rates, waiting = np.full(10, 2.0), np.arange(10.0)

    def seen(callees: float) -> SharedView:
        crowd = Crowd(1.0, 5, 1e-9, 1.0, math.inf, 1.0, callees, callers=1)
        return SharedView(rates, waiting, crowd, 1)

    assert seen(1.0).rates == pytest.approx([2.0])
    assert seen(0.0).rates == pytest.approx([1.0])


def test_a_crowd_that_cannot_be_there_is_not() -> None:
    """Where more requests are thought to wait elsewhere than there are, the own ones have the station."""
    rates, waiting = np.array([10.0, 20.0, 20.0]), np.array([0.0, 0.0, 1.0])
    crowd = Crowd(40.0, 40, 0.005, 1.0, -1.4, 1.0, 0.0, callers=1)
    assert SharedView(rates, waiting, crowd, 2).rates == pytest.approx([10.0, 20.0])


def test_branches_delay_each_other_and_not_what_runs_alone() -> None:
    """What parallel branches do to each other at a processor stretches them, not the steps around them."""
    body = entry(
        "a",
        act("s", exp(1.0), calls="B.b"),
        act("b1", exp(1.0)),
        act("b2", calls="B.b"),
        act("z"),
        arcs=(fork("s", "b1", "b2"), join("z", "b1", "b2")),
    )
    got = estimate(
        model(
            clients(1, None, body=entry("cycle", act("go", calls="A.a C.c"))),
            service("A", body, processor="p"),
            service("B", entry("b", act("y", exp(1.0))), processor="p"),
            service("C", entry("c", act("v", exp(1.0))), processor="p"),
            processors=(ps("p"),),
        )
    )
    assert got.cycle.response_time == pytest.approx(1 + 1 + 2 + 1, rel=0.03)
    assert got.entries["C.c"][1] == pytest.approx(1.0, rel=0.03)


def test_rising_is_the_nearest_sequence_that_never_falls() -> None:
    """What falls is replaced by its weighted mean, what rises is kept."""
    values = np.array([1.0, 3.0, 2.0, 4.0])
    assert rising(values, np.array([1.0, 3.0, 1.0, 1.0])) == pytest.approx([1.0, 2.75, 2.75, 4.0])
    assert list(rising(values[[0, 2, 3]], None)) == [1.0, 2.0, 4.0]


def test_forwarding_and_sends() -> None:
    """A forwarded request is answered by the next entry; a sent one is not answered, but it is work."""
    first = entry("a", act("x", exp(0.1)))
    from mup.lqn import Forward

    first = replace(first, forwards=(Forward(task="B", entry="b", probability=0.5),))
    quiet = act("go")
    quiet = replace(quiet, calls=(Call(task="A", entry="a"), Call(task="B", entry="b", kind="send")))
    got = estimate(
        model(
            clients(1, exp(1.0), body=entry("cycle", quiet)),
            service("A", first),
            service("B", entry("b", act("y", exp(0.2))), processor="p"),
            processors=(Processor(name="p", cores=8),),
        )
    )
    assert got.cycle.response_time == pytest.approx(0.1 + 0.5 * 0.2, rel=1e-3)
    assert got.processors["p"] == pytest.approx(got.cycle.throughput * 1.5 * 0.2 / 8, rel=1e-6)


def test_front_is_one_server_per_replica() -> None:
    """Two replicas with one front each are full at twice the rate of one front."""
    front = Front(request=exp(0.01), reply=exp(0.01))
    task = service("A", entry("a", act("x", exp(0.001))), replicas=2, front=front)
    got = estimate(model(clients(200, exp(0.1), "A.a"), task))
    assert got.cycle.throughput == pytest.approx(2 / 0.02, rel=0.02)


def test_part_of_a_processor() -> None:
    """A one-core part of a two-core machine is the bottleneck of its task, not of the others."""
    machine, part = ps("m", 2), Processor(name="gil", cores=1, parent="m")
    got = estimate(
        model(clients(50, exp(0.1), "A.a"), service("A", entry("a", act("x", exp(0.01))), processor="gil"), processors=(machine, part))
    )  # fmt: skip
    assert got.cycle.throughput == pytest.approx(100, rel=0.01)
    assert got.processors["m"] == pytest.approx(0.5, rel=0.01)


def test_two_classes_share_a_server() -> None:
    """Two equal classes of 10 clients behave like one of 20."""
    task = service("A", entry("a", act("x", exp(0.05))), processor="p")
    one = estimate(model(clients(20, exp(1.0), "A.a"), task, processors=(ps("p"),)))
    two = estimate(
        model(
            clients(10, exp(1.0), "A.a"), clients(10, exp(1.0), "A.a", name="V"), task, processors=(ps("p"),)
        )
    )
    assert two.cycle.throughput == pytest.approx(one.cycle.throughput, rel=5e-3)
    assert two.tasks["U"].throughput == pytest.approx(two.tasks["V"].throughput, rel=1e-3)


def random_chain(seed: int) -> tuple[Model, list[float], float]:
    """Return a random chain of tiers, its capacity bounds (per second) and its least cycle time."""
    draw = random.Random(seed)
    count, think = draw.randint(1, 150), draw.choice([0.0, draw.uniform(0.01, 2)])
    names = [f"T{i}" for i in range(draw.randint(1, 4))]
    tasks: list[Task] = []
    processors: list[Processor] = []
    bounds: list[float] = []
    least = think
    for i, name in enumerate(names):
        demand, cores = draw.uniform(0.001, 0.05), draw.choice([1, 2, 4])
        discipline = draw.choice(["ps", "fcfs"])
        processors.append(Processor(name=f"P{i}", cores=cores, discipline=discipline))  # type: ignore[arg-type]
        below = f"{names[i + 1]}.e" if i + 1 < len(names) else ""
        threads, replicas = draw.choice([1, 3, 10, math.inf]), draw.choice([1, 2])
        body = entry("e", act("x", with_scv(demand, draw.choice([0.2, 1.0, 3.0])), calls=below))
        tasks.append(service(name, body, threads=threads, replicas=replicas, processor=f"P{i}"))
        least += demand
        bounds.append(cores / demand)
        if not below and threads < math.inf:
            bounds.append(threads * replicas / demand)
    return (
        model(clients(count, exp(think) if think else None, "T0.e"), *tasks, processors=tuple(processors)),
        bounds,
        least,
    )


@pytest.mark.parametrize("seed", range(20))
def test_asymptotic_bounds(seed: int) -> None:
    """Throughput exceeds neither any capacity nor clients per least cycle time; Little's law holds."""
    tested, bounds, least = random_chain(seed)
    got = estimate(tested)
    count = tested.reference_tasks[0].threads
    assert got.cycle.throughput <= min([*bounds, count / least]) * (1 + 1e-3)
    assert got.cycle.throughput * got.cycle.cycle_time == pytest.approx(count, rel=1e-9)
    assert all(u is None or u <= 1 + 1e-3 for u in got.processors.values())


def test_more_clients_never_slow_the_system() -> None:
    """Throughput and response time grow with the number of clients."""
    before = None
    for count in (1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280):
        now = estimate(two_tiers(count, 1.0, (0.03, 0.05), threads=6)).cycle
        if before is not None:
            assert now.throughput >= before.throughput * (1 - 2e-3)
            assert now.response_time >= before.response_time * (1 - 2e-3)
        before = now


@pytest.mark.parametrize("think", [1.0, 40_000.0])
def test_a_million_clients(think: float) -> None:
    """10^6 clients take no longer than a few, below saturation and beyond it."""
    got = estimate(two_tiers(1_000_000, think, (0.03, 0.05), threads=6))
    assert got.cycle.throughput == pytest.approx(mva(6, 0.0, [0.03, 0.05])[0], rel=2e-3)
    assert got.wall_seconds < 2.0


def test_json_has_the_shape_of_a_simulation() -> None:
    """The document is labelled an estimate; every figure is a mean without an interval."""
    data = json.loads(json.dumps(estimate(two_tiers(5, 1.0, (0.03, 0.05))).to_json(), allow_nan=False))
    assert data["engine"] == "analytic"
    assert data["estimate"] is True
    assert set(data["cycle"]["throughput"]) == {"mean", "ci95"}
    assert data["cycle"]["throughput"]["ci95"] is None
    assert data["tasks"]["A"]["utilization"] is None
    assert data["processors"]["p1"]["utilization"]["mean"] > 0
    assert data["entries"]["A.a"]["response_time"]["mean"] > 0


def test_uncalibrated_numbers_are_named() -> None:
    """Every missing number that clients can reach is listed with its path; a branch never taken is not."""
    broken = model(
        clients(1, exp(1.0), "A.a"), service("A", entry("a", act("x", None), act("y", exp(1.0), delay=None)))
    )
    with pytest.raises(
        UncalibratedError, match=r"2 numbers(.|\n)*activities\['x'\].demand(.|\n)*activities\['y'\].delay"
    ):
        estimate(broken)
    arcs = (choice("s", (1.0, 0.0), "taken", "never"),)
    body = entry("a", act("s"), act("taken", exp(1.0)), act("never", None), arcs=arcs)
    assert estimate(
        model(clients(1, exp(1.0), "A.a"), service("A", body))
    ).cycle.response_time == pytest.approx(1.0)


def test_refusals_name_the_element() -> None:
    """No load, no time, and semaphores end in one message with the path."""
    with pytest.raises(SimulationError, match="no reference task"):
        estimate(model(service("A", entry("a", act("x", exp(1.0))))))
    with pytest.raises(SimulationError, match="no time at all"):
        estimate(model(clients(1, None, "A.a"), service("A", entry("a", act("x")))))
    held = replace(entry("a", act("x", exp(1.0))), token="acquire")
    with pytest.raises(ModelError, match="semaphore"):
        estimate(model(clients(1, None, "A.a"), service("A", held, threads=1)))


def test_sequence_of_many_activities() -> None:
    """A graph is evaluated in order, however long it is."""
    names = [f"a{i}" for i in range(300)]
    body = entry("a", *(act(n, exp(0.01)) for n in names), arcs=seq(*names))
    assert estimate(model(clients(1, None, "A.a"), service("A", body))).cycle.response_time == pytest.approx(
        3.0
    )


def test_reference_rows_of_the_running_example() -> None:
    """The running example of the thesis: throughput within 1 %, response time within 2.5 % at every load."""
    from test_running_example import _rows, running_example

    for row in _rows():
        got = estimate(running_example(row["clients"])).cycle
        assert got.throughput == pytest.approx(row["throughput"]["mean"], rel=0.01)
        assert got.response_time == pytest.approx(row["response_time"]["mean"], rel=0.025)
