"""The simulator agrees with exact theory: intervals are tight and contain the truth."""

from __future__ import annotations

import math

import pytest
from sim_models import (
    ZERO,
    act,
    agrees,
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

from mup.lqn import Constant, Distribution, Empirical, Erlang, Front, Processor, Uniform
from simulator import simulate


@pytest.mark.parametrize("where", ["threads", "fcfs", "ps"])
@pytest.mark.parametrize(("count", "servers"), [(4, 1), (20, 3)])
def test_machine_repair(where: str, count: int, servers: int) -> None:
    """Threads, FCFS cores and PS cores all make an M/M/c//N queue of exponential work."""
    throughput, response = machine_repair(count, servers, 0.5, 0.1)
    work = entry("/a/", act("work", exp(0.1)))
    if where == "threads":
        tested = model(clients(count, exp(0.5), "A./a/"), service("A", work, threads=servers))
    else:
        cpu = Processor(name="cpu", cores=servers, discipline="ps" if where == "ps" else "fcfs")
        tested = model(
            clients(count, exp(0.5), "A./a/"), service("A", work, processor="cpu"), processors=(cpu,)
        )
    result = simulate(tested, seed=3, horizon=60_000 / count)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.cycle.response_time, response)
    assert agrees(result.entries["A/a/"].response_time, response)
    busy = throughput * 0.1 / servers
    if where == "threads":
        assert agrees(result.tasks["A"].utilization, busy)
        assert agrees(result.tasks["A"].busy, busy * servers)
        assert agrees(result.tasks["A"].queue, throughput * (response - 0.1), within=0.1)
    else:
        assert agrees(result.processors["cpu"].utilization, busy)
        assert result.tasks["A"].utilization is None
    assert result.warnings == ()


def test_product_form_network_matches_mva() -> None:
    """Nested and repeated calls on three PS processors follow exact mean value analysis."""
    demands = {"web": 0.010, "app": 0.018, "db": 0.012}
    processors = tuple(ps(name) for name in demands)
    tested = model(
        clients(12, exp(0.15), "W.w"),
        service("W", entry("w", act("in", exp(0.010)), act("call", calls="A.a")), processor="web"),
        service(
            "A", entry("a", act("one", exp(0.009), calls="D.q"), act("two", exp(0.009), calls="D.q")),
            processor="app",
        ),
        service("D", entry("q", act("find", exp(0.006))), processor="db"),
        processors=processors,
    )  # fmt: skip
    throughput, residence = mva(12, 0.15, list(demands.values()))
    result = simulate(tested, seed=1, precision=0.01)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.cycle.response_time, sum(residence))
    assert agrees(result.entries["D.q"].response_time, residence[2] / 2)
    assert agrees(result.entries["D.q"].throughput, 2 * throughput)
    for name, demand in demands.items():
        assert agrees(result.processors[name].utilization, throughput * demand)


@pytest.mark.slow
@pytest.mark.parametrize(
    "demand",
    [
        pytest.param(Constant(0.1), id="constant"),
        pytest.param(Erlang(0.1, 3), id="erlang"),
        pytest.param(Uniform(0.0, 0.2), id="uniform"),
        pytest.param(Empirical((0.01,) * 9 + (0.91,)), id="heavy"),
    ],
)
def test_processor_sharing_is_insensitive(demand: Distribution) -> None:
    """Under PS the shape of the demand does not change means: M/G/1-PS with finite source."""
    throughput, response = machine_repair(6, 1, 0.4, 0.1)
    tested = model(
        clients(6, exp(0.4), "A.a"),
        service("A", entry("a", act("work", demand)), processor="cpu"),
        processors=(ps(),),
    )
    result = simulate(tested, seed=5, precision=0.012)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.cycle.response_time, response)


def test_speed_divides_demands() -> None:
    """A core of speed 2 serves a demand of 0.2 s in 0.1 s; infinite processors have a speed, too."""
    throughput, response = machine_repair(5, 2, 0.5, 0.1)
    fast = simulate(
        model(
            clients(5, exp(0.5), "A.a"),
            service("A", entry("a", act("work", exp(0.2))), processor="cpu"),
            processors=(ps(cores=2, speed=2.0),),
        ),
        precision=0.012,
    )
    assert agrees(fast.cycle.response_time, response)
    assert agrees(fast.processors["cpu"].utilization, throughput * 0.1 / 2)
    infinite = simulate(
        model(
            clients(1, Constant(1.0), "A.a"),
            service("A", entry("a", act("work", Constant(0.2))), processor="cpu"),
            processors=(Processor(name="cpu", discipline="infinite", speed=2.0),),
        ),
        horizon=400,
    )
    assert infinite.cycle.response_time.mean == pytest.approx(0.1)
    assert "cpu" not in infinite.processors


def test_fork_join_of_exponentials() -> None:
    """A join waits for the slower of two exponentials: E max = a + b - ab / (a + b)."""
    a, b = 0.2, 0.3
    body = entry(
        "a",
        act("start"), act("left", exp(a)), act("right", exp(b)), act("end"),
        arcs=(fork("start", "left", "right"), join("end", "left", "right")),
    )  # fmt: skip
    result = simulate(model(clients(3, exp(1.0), "A.a"), service("A", body)), precision=0.01)
    assert agrees(result.cycle.response_time, a + b - 1 / (1 / a + 1 / b))
    exact_median = _quantile_of_max(a, b, 0.5)
    assert agrees(result.cycle.response_time.p50, exact_median, within=0.05)
    assert agrees(result.cycle.response_time.p95, _quantile_of_max(a, b, 0.95), within=0.05)


def _quantile_of_max(a: float, b: float, level: float) -> float:
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - math.exp(-middle / a)) * (1 - math.exp(-middle / b))
        low, high = (middle, high) if below < level else (low, middle)
    return low


def test_choice_mixes_branches_and_merges() -> None:
    """An OR takes each branch with its probability; merged branches continue once."""
    body = entry(
        "a",
        act("start"), act("fast", exp(0.1)), act("slow", exp(0.6)), act("end", exp(0.05)),
        arcs=(choice("start", (0.8, 0.2), "fast", "slow"), merge("end", "fast", "slow")),
    )  # fmt: skip
    result = simulate(model(clients(4, exp(0.5), "A.a"), service("A", body)), precision=0.01)
    assert agrees(result.cycle.response_time, 0.8 * 0.1 + 0.2 * 0.6 + 0.05)


def test_front_is_one_server_per_replica() -> None:
    """Request and reply work share one FIFO server: a product-form queue visited twice per cycle."""
    front = Front(request=exp(0.01), reply=exp(0.01))
    tested = model(
        clients(8, exp(0.1), "A.a"), service("A", entry("a", act("work", delay=exp(0.05))), front=front)
    )
    throughput, residence = mva(8, 0.15, [0.02])
    result = simulate(tested, seed=2, precision=0.01)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.cycle.response_time, residence[0] + 0.05)
    # The worker does not wait for the front.
    assert agrees(result.tasks["A"].busy, throughput * 0.05)


def test_replicas_split_requests_at_random() -> None:
    """Two replicas with a thread each are two queues that get half of the visits, not one with two servers."""
    tested = model(
        clients(10, exp(0.5), "A.a"),
        service("A", entry("a", act("work", exp(0.1))), threads=1, replicas=2),
    )
    throughput, residence = mva(10, 0.5, [0.05, 0.05])
    result = simulate(tested, seed=4, precision=0.01)
    assert agrees(result.cycle.throughput, throughput)
    assert agrees(result.cycle.response_time, sum(residence))
    assert agrees(result.tasks["A"].utilization, throughput * 0.1 / 2)
    shared = machine_repair(10, 2, 0.5, 0.1)[1]
    assert result.cycle.response_time.mean > 1.05 * shared


def test_two_kinds_of_clients() -> None:
    """Reference tasks are reported on their own; the cycle adds them up."""
    cpu = (ps(cores=4),)
    tested = model(
        clients(2, exp(0.3), "A.a", name="Reader"),
        clients(1, exp(0.1), "A.b", name="Writer"),
        service("A", entry("a", act("r", exp(0.1))), entry("b", act("w", exp(0.4))), processor="cpu"),
        processors=cpu,
    )
    result = simulate(tested, seed=9, precision=0.01)
    reader, writer = result.tasks["Reader"], result.tasks["Writer"]
    assert agrees(reader.response_time, 0.1)
    assert agrees(writer.response_time, 0.4, within=0.05)
    assert agrees(reader.throughput, 2 / 0.4)
    assert agrees(writer.throughput, 1 / 0.5, within=0.05)
    assert agrees(reader.busy, 2 * 0.1 / 0.4)
    assert result.cycle.throughput.mean == pytest.approx(reader.throughput.mean + writer.throughput.mean)
    assert agrees(result.cycle.response_time, (5 * 0.1 + 2 * 0.4) / 7)


def test_think_steps_do_not_count_as_response_time() -> None:
    """Think activities inside the scenario are think time, the rest of the cycle is response time."""
    body = entry(
        "cycle", act("look", calls="A.a"), act("think", kind="think", delay=exp(0.5)), act("buy", calls="A.a")
    )
    tested = model(clients(2, None, body=body), service("A", entry("a", act("work", Constant(0.1)))))
    result = simulate(tested, precision=0.01)
    assert result.cycle.response_time.mean == pytest.approx(0.2)
    assert agrees(result.cycle.cycle_time, 0.7)
    assert agrees(result.tasks["U"].busy, 2 * 0.2 / 0.7)


def test_detached_branch_outlives_the_request() -> None:
    """A branch that is never joined works on without delaying the reply or holding the thread."""
    body = entry(
        "a",
        act("start", Constant(0.01)), act("rest", Constant(0.01)), act("mail", detached=True, calls="N.send"),
        arcs=(fork("start", "rest", "mail"),),
    )  # fmt: skip
    tested = model(
        clients(1, Constant(0.08), "A.a"),
        service("A", body, threads=1),
        service("N", entry("send", act("net", delay=Constant(0.5)))),
    )
    result = simulate(tested, horizon=2000)
    assert result.cycle.response_time.mean == pytest.approx(0.02)
    assert result.tasks["A"].busy.mean == pytest.approx(0.2, rel=1e-3)
    assert result.tasks["N"].busy.mean == pytest.approx(5.0, rel=1e-3)


def test_second_phase_holds_the_thread() -> None:
    """The caller resumes at the reply; the next request waits until the thread has finished behind it."""
    body = entry("a", act("answer", Constant(0.1), replies=True), act("log", Constant(0.3), kind="after"))
    fast = simulate(model(clients(1, Constant(1.0), "A.a"), service("A", body, threads=1)), horizon=400)
    assert fast.cycle.response_time.mean == pytest.approx(0.1)
    assert fast.tasks["A"].busy.mean == pytest.approx(0.4 / 1.1, rel=1e-2)
    eager = simulate(model(clients(1, None, "A.a"), service("A", body, threads=1)), horizon=400)
    assert eager.cycle.response_time.mean == pytest.approx(0.4)
    assert eager.tasks["A"].utilization is not None
    assert eager.tasks["A"].utilization.mean == pytest.approx(1.0)


def test_reply_from_an_auxiliary_branch() -> None:
    """A reply may leave from a branch beside the flow that holds the thread."""
    body = entry(
        "a",
        act("start"), act("main", Constant(0.5)), act("side", Constant(0.1), replies=True),
        arcs=(fork("start", "main", "side"),),
    )  # fmt: skip
    result = simulate(model(clients(1, Constant(1.0), "A.a"), service("A", body)), horizon=400)
    assert result.cycle.response_time.mean == pytest.approx(0.1)
    assert result.tasks["A"].busy.mean == pytest.approx(0.5 / 1.1, rel=1e-2)
    late = entry(
        "a",
        act("start"), act("main", Constant(0.1)), act("side", Constant(0.5), replies=True),
        arcs=(fork("start", "main", "side"),),
    )  # fmt: skip
    result = simulate(model(clients(1, Constant(1.0), "A.a"), service("A", late)), horizon=400)
    assert result.cycle.response_time.mean == pytest.approx(0.5)
    assert result.tasks["A"].busy.mean == pytest.approx(0.1 / 1.5, rel=1e-2)


@pytest.mark.parametrize(
    ("first", "second", "exact"), [(0.2, 0.5, 0.54), (0.5, 0.2, 0.54), (0.01, 0.01, 0.08)]
)
def test_overlapping_forks_join_their_own_branches(first: float, second: float, exact: float) -> None:
    """fork1, fork2, join1, join2: every join waits for its own branch and no other."""
    body = entry(
        "a",
        act("s0"), act("s1", Constant(0.02)), act("s2", Constant(0.02)),
        act("s3", Constant(0.02)), act("s4", Constant(0.02)),
        act("b1", Constant(first)), act("b2", Constant(second)),
        arcs=(fork("s0", "s1", "b1"), fork("s1", "s2", "b2"), join("s3", "s2", "b1"), join("s4", "s3", "b2")),
    )  # fmt: skip
    result = simulate(model(clients(1, Constant(1.0), "A.a"), service("A", body)), horizon=400)
    # s1 until 0.02; s2 until 0.04; join1 at max(0.04, b1); s3; join2 not before 0.02 + b2; s4.
    assert result.cycle.response_time.mean == pytest.approx(exact)


def test_joins_of_concurrent_requests_do_not_mix() -> None:
    """With many requests in the same graph every join still waits for its own siblings."""
    a, b = 0.2, 0.2
    body = entry(
        "a",
        act("s"), act("x", exp(a)), act("y", exp(b)), act("e", replies=True),
        arcs=(fork("s", "x", "y"), join("e", "x", "y")),
    )  # fmt: skip
    result = simulate(model(clients(40, exp(0.2), "A.a"), service("A", body)), precision=0.01)
    assert agrees(result.cycle.response_time, 0.3)


def test_deterministic_contention() -> None:
    """Two clients, one thread, constant times: each waits for the other's service minus its own think."""
    tested = model(
        clients(2, Constant(0.02), "A.a"), service("A", entry("a", act("work", Constant(0.1))), threads=1)
    )
    result = simulate(tested, horizon=200)
    assert result.cycle.response_time.mean == pytest.approx(0.18)
    assert result.cycle.response_time.p99.mean == pytest.approx(0.18)
    assert result.cycle.throughput.mean == pytest.approx(10, rel=1e-3)
    assert result.tasks["A"].queue is not None
    assert result.tasks["A"].queue.mean == pytest.approx(0.8, rel=1e-3)


def test_processor_sharing_with_constant_times() -> None:
    """Four calls of 0.1 s at once on two cores take 0.2 s each time, and end together."""
    names = [f"c{i}" for i in range(4)]
    body = entry(
        "cycle", act("go"), *(act(name, calls="A.a") for name in names), act("back"),
        arcs=(fork("go", *names), join("back", *names)),
    )  # fmt: skip
    tested = model(
        clients(1, Constant(1.0), body=body),
        service("A", entry("a", act("work", Constant(0.1))), processor="cpu"),
        processors=(ps(cores=2),),
    )
    result = simulate(tested, horizon=480)
    assert result.cycle.response_time.mean == pytest.approx(0.2)
    assert result.processors["cpu"].utilization.mean == pytest.approx(0.2 / 1.2, rel=1e-2)


def test_first_come_first_served_order() -> None:
    """Requests that queue up get threads in order of arrival: the slowest waits for all before it."""
    body = entry("cycle", *(act(f"c{i}", calls="A.a") for i in range(2)), arcs=seq("c0", "c1"))
    tested = model(
        clients(3, None, body=body), service("A", entry("a", act("work", Constant(0.1))), threads=1)
    )
    result = simulate(tested, horizon=300)
    time = result.entries["A.a"].response_time
    assert time is not None
    assert (time.p50.mean, time.p99.mean) == (pytest.approx(0.3), pytest.approx(0.3))


def test_zero_time_branches_cost_nothing() -> None:
    """Activities without time leave no trace in the result."""
    with_zeros = entry("a", act("z1"), act("work", Constant(0.1)), act("z2", ZERO, delay=ZERO))
    result = simulate(model(clients(1, Constant(1.0), "A.a"), service("A", with_zeros)), horizon=220)
    assert result.cycle.response_time.mean == pytest.approx(0.1)
    assert result.events <= 2 * 201
