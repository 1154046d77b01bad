"""Classic results of queueing theory: closed forms for every element that has one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from repeating import repeats_after
from sim_models import act, agrees, choice, clients, entry, exp, fork, join, model, seq, service

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Erlang,
    Forward,
    Front,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Migration,
    Precedence,
    Processor,
    Task,
    TruncatedNormal,
    Uniform,
    Weibull,
)
from simulator import simulate

pytestmark = pytest.mark.slow

PRECISION = 0.018
TIGHT = 0.05
"""Other figures than the cycle's may have intervals up to this wide, relative to the truth."""

FAMILIES = [
    Constant(0.5),
    Lognormal(0.5, 1.5),
    Hyperexponential((0.25, 0.75), (1.1, 0.3)),
    Empirical((0.1, 0.3, 1.1)),
    Erlang(0.5, 3),
    Uniform(0.25, 0.75),
    Gamma(0.5, 0.4),
    Weibull(0.5, 1.5),
    TruncatedNormal(0.4, 0.3),
]


def opened(rate: float, calls: str = "A.a", *, name: str = "U", priority: int = 0) -> Task:
    """Poisson arrivals of a scenario that makes some calls in sequence."""
    body = replace(entry("cycle", act("go", calls=calls)), arrivals=exp(1 / rate))
    return Task(name=name, role="reference", threads=math.inf, entries=(body,), priority=priority)


def calling(name: str, count: Distribution, target: str = "B", **more: object) -> Activity:
    """An activity that makes one call as often as ``count`` says."""
    call = Call(task=target, entry=target.lower(), count=count)
    return replace(act(name), calls=(call,), **more)  # type: ignore[arg-type]


def erlang_c(servers: int, load: float) -> float:
    """Return the probability to wait in M/M/c; ``load`` in servers."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    return last / (sum(terms) + last)


def pollaczek(rate: float, mean: float, second_moment: float) -> float:
    """Return the mean waiting time of M/G/1."""
    return rate * second_moment / 2 / (1 - rate * mean)


def second_moment(time: Distribution) -> float:
    return time.variance + time.mean**2


@pytest.mark.parametrize("kind", ["threads", "random", "fcfs", "hol", "pp", "ps"])
@pytest.mark.parametrize("servers", repeats_after(1, [3, 1]))
def test_mmc(kind: str, servers: int) -> None:
    """M/M/c: who is served next does not change the mean, nor whether threads or cores serve."""
    rate, time = 1.4 * servers, 0.5
    threaded = kind in ("threads", "random")
    server = service(
        "A", entry("a", act("w", exp(time))),
        threads=servers if threaded else math.inf, processor=None if threaded else "cpu",
    )  # fmt: skip
    server = replace(server, admission="random" if kind == "random" else "fifo")
    cpu = Processor(name="cpu", cores=servers, discipline="ps" if threaded else kind)  # type: ignore[arg-type]
    result = simulate(
        model(opened(rate), server, processors=() if threaded else (cpu,)), precision=PRECISION, seed=1
    )
    wait = erlang_c(servers, rate * time) * time / (servers - rate * time)
    assert agrees(result.cycle.response_time, wait + time)
    assert agrees(result.cycle.throughput, rate)
    if threaded:
        assert agrees(result.tasks["A"].queue, rate * wait, within=TIGHT)
        assert agrees(result.tasks["A"].utilization, rate * time / servers)
    else:
        assert agrees(result.processors["cpu"].utilization, rate * time / servers)


@pytest.mark.parametrize("where", ["threads", "fcfs"])
@pytest.mark.parametrize("time", repeats_after(4, FAMILIES), ids=lambda d: d.family)
def test_pollaczek_khinchine(time: Distribution, where: str) -> None:
    """M/G/1 first come first served: the wait grows with the second moment of the service."""
    rate = 0.6 / time.mean
    server = entry("a", act("w", time))
    if where == "threads":
        tested = model(opened(rate), service("A", server, threads=1))
    else:
        cpu = Processor(name="cpu", discipline=where)  # type: ignore[arg-type]
        tested = model(opened(rate), service("A", server, processor="cpu"), processors=(cpu,))
    result = simulate(tested, precision=PRECISION, seed=2)
    assert agrees(result.cycle.response_time, time.mean + pollaczek(rate, time.mean, second_moment(time)))


@pytest.mark.parametrize("time", repeats_after(4, FAMILIES), ids=lambda d: d.family)
def test_processor_sharing_is_insensitive_to_the_shape(time: Distribution) -> None:
    """M/G/1-PS: only the mean of the service counts."""
    rate = 0.6 / time.mean
    tested = model(
        opened(rate),
        service("A", entry("a", act("w", time)), processor="cpu"),
        processors=(Processor(name="cpu"),),
    )
    result = simulate(tested, precision=PRECISION, seed=3)
    assert agrees(result.cycle.response_time, time.mean / 0.4)


@pytest.mark.parametrize("time", FAMILIES, ids=lambda d: d.family)
def test_infinite_servers(time: Distribution) -> None:
    """M/G/inf: no customer waits, and rate x mean are at work."""
    server = service("A", entry("a", act("w", time)), processor="cpu")
    cpu = Processor(name="cpu", discipline="infinite")
    result = simulate(model(opened(4.0), server, processors=(cpu,)), precision=PRECISION, seed=4)
    assert agrees(result.cycle.response_time, time.mean)
    assert agrees(result.tasks["A"].busy, 4 * time.mean)


@pytest.mark.parametrize("where", ["threads", "hol", "pp"])
def test_priorities(where: str) -> None:
    """Two classes: Cobham's formula, and preemptive resume."""
    rates, times = (0.8, 0.4), (0.5, 0.75)
    first, second = (r * t for r, t in zip(rates, times, strict=True))
    if where == "threads":
        # The priority of a waiting request is that of the calling task plus that of the entry.
        server = service(
            "A", entry("high", act("w", exp(times[0]))), entry("low", act("w", exp(times[1]))), threads=1
        )
        server = replace(
            server, admission="hol", entries=(replace(server.entries[0], priority=1), server.entries[1])
        )
        tested = model(opened(rates[0], "A.high"), opened(rates[1], "A.low", name="V"), server)
    else:
        tested = model(
            opened(rates[0], "H.h"),
            opened(rates[1], "L.l", name="V"),
            replace(service("H", entry("h", act("w", exp(times[0]))), processor="cpu"), priority=2),
            replace(service("L", entry("l", act("w", exp(times[1]))), processor="cpu"), priority=1),
            processors=(Processor(name="cpu", discipline=where),),  # type: ignore[arg-type]
        )
    result = simulate(tested, precision=PRECISION, seed=5)
    if where == "pp":
        residual = rates[0] * times[0] ** 2, sum(r * t**2 for r, t in zip(rates, times, strict=True))
        high = times[0] + residual[0] / (1 - first)
        low = times[1] / (1 - first) + residual[1] / (1 - first) / (1 - first - second)
    else:
        residual_all = sum(r * t**2 for r, t in zip(rates, times, strict=True))
        high = times[0] + residual_all / (1 - first)
        low = times[1] + residual_all / (1 - first) / (1 - first - second)
    assert agrees(result.tasks["U"].response_time, high, within=TIGHT)
    assert agrees(result.tasks["V"].response_time, low, within=TIGHT)


def test_priority_of_the_caller() -> None:
    """Requests of a more important task overtake in front of a task that admits by priority."""
    server = replace(service("A", entry("a", act("w", exp(0.5))), threads=1), admission="hol")
    result = simulate(
        model(opened(0.8, priority=1), opened(0.6, name="V"), server), precision=PRECISION, seed=6
    )
    residual = 1.4 * 0.25
    assert agrees(result.tasks["U"].response_time, 0.5 + residual / 0.6, within=TIGHT)
    assert agrees(result.tasks["V"].response_time, 0.5 + residual / 0.6 / 0.3, within=TIGHT)


def test_jackson_network() -> None:
    """Open queues visited one after the other, one of them only sometimes, are independent M/M/1."""
    body = entry(
        "cycle",
        act("one", calls="A.a"), act("two", calls="B.b"), act("none"),
        arcs=(choice("one", (0.5, 0.5), "two", "none"),),
    )  # fmt: skip
    users = replace(opened(1.2), entries=(replace(body, arrivals=exp(1 / 1.2)),))
    tested = model(
        users,
        service("A", entry("a", act("w", exp(0.5))), threads=1),
        service("B", entry("b", act("w", exp(1.0))), processor="cpu"),
        processors=(Processor(name="cpu", discipline="fcfs"),),
    )
    result = simulate(tested, precision=PRECISION, seed=7)
    assert agrees(result.entries["A.a"].response_time, 0.5 / 0.4)
    assert agrees(result.entries["B.b"].response_time, 1.0 / 0.4, within=TIGHT)
    assert agrees(result.cycle.response_time, 0.5 / 0.4 + 0.5 * 1.0 / 0.4)


def test_arrivals_at_an_entry() -> None:
    """Requests from outside queue with the others; they belong to no cycle."""
    server = service("A", replace(entry("a", act("w", exp(0.5))), arrivals=exp(1.0)), threads=1)
    result = simulate(model(opened(0.4), server), precision=PRECISION, seed=8)
    assert agrees(result.entries["A.a"].response_time, 0.5 / 0.3)
    assert agrees(result.entries["A.a"].throughput, 1.4)
    assert agrees(result.tasks["U"].throughput, 0.4)


def test_replicas_and_fronts_of_open_load() -> None:
    """Every replica, and its front that requests pass twice, is an M/M/1 of its own."""
    server = replace(
        service("A", entry("a", act("w", exp(0.5))), threads=1, replicas=2),
        front=Front(request=exp(0.25), reply=exp(0.25)),
    )
    result = simulate(model(opened(2.4), server), precision=PRECISION, seed=9)
    assert agrees(result.cycle.response_time, 2 * 0.25 / 0.4 + 0.5 / 0.4)
    assert agrees(result.tasks["A"].utilization, 0.6)


def test_second_phase_is_a_vacation() -> None:
    """The thread is gone during the second phase: the wait knows of it, the response does not."""
    body = entry("a", act("one", exp(0.3), replies=True), act("two", exp(0.4)))
    result = simulate(model(opened(0.9), service("A", body, threads=1)), precision=PRECISION, seed=10)
    moment = 0.3**2 + 0.4**2 + 0.7**2
    assert agrees(result.cycle.response_time, 0.3 + pollaczek(0.9, 0.7, moment))
    assert agrees(result.tasks["A"].busy, 0.63)


def test_waiting_for_unjoined_branches() -> None:
    """A thread that waits for its branches serves for the longer of the two, and answers before."""
    a, b = 0.3, 0.5
    body = entry("a", act("s"), act("x", exp(a), replies=True), act("y", exp(b)), arcs=(fork("s", "x", "y"),))
    patient = service("A", replace(body, waits=True), threads=1)
    both = a * b / (a + b)
    mean, moment = a + b - both, 2 * (a**2 + b**2 - both**2)
    result = simulate(model(opened(0.9), patient), precision=PRECISION, seed=11)
    assert agrees(result.cycle.response_time, a + pollaczek(0.9, mean, moment))
    assert agrees(result.tasks["A"].busy, 0.9 * mean)


def random_sum(count: Distribution, step: Distribution) -> tuple[float, float]:
    """Return mean and second moment of a sum of ``count`` times."""
    mean = count.mean * step.mean
    return mean, count.mean * step.variance + count.variance * step.mean**2 + mean**2


COUNTS = [Constant(2), Geometric(2.0), Empirical((0, 1, 5))]


@pytest.mark.parametrize("count", COUNTS, ids=lambda d: d.family)
def test_how_often_a_call_is_made(count: Distribution) -> None:
    """A single thread that makes calls is an M/G/1 whose service is a random sum."""
    tested = model(
        opened(1.2),
        service("A", entry("a", calling("w", count)), threads=1),
        service("B", entry("b", act("w", exp(0.25)))),
    )
    mean, moment = random_sum(count, exp(0.25))
    result = simulate(tested, precision=PRECISION, seed=12)
    assert agrees(result.cycle.response_time, mean + pollaczek(1.2, mean, moment))
    assert agrees(result.entries["B.b"].throughput, 2.4)


@pytest.mark.parametrize("count", COUNTS, ids=lambda d: d.family)
def test_how_often_a_body_is_repeated(count: Distribution) -> None:
    """The same with a loop around an activity, and another activity behind it."""
    loop = Precedence(pre=("s",), post=("body", "end"), fork="loop", counts=(count,))
    body = entry("a", act("s"), act("body", exp(0.25)), act("end", exp(0.1)), arcs=(loop,))
    mean, moment = random_sum(count, exp(0.25))
    moment += 2 * 0.1 * mean + 2 * 0.1**2
    mean += 0.1
    result = simulate(model(opened(1.1), service("A", body, threads=1)), precision=PRECISION, seed=13)
    assert agrees(result.cycle.response_time, mean + pollaczek(1.1, mean, moment))


def loop_of_two(first: Distribution, second: Distribution) -> Entry:
    loop = Precedence(pre=("s",), post=("x", "y", "end"), fork="loop", counts=(first, second))
    return entry("a", act("s"), act("x", exp(0.2)), act("y", exp(0.4)), act("end"), arcs=(loop,))


def test_bodies_in_turn_and_mixed() -> None:
    """Bodies with fixed counts add up; with geometric counts they are drawn from a common geometric number."""
    turn = simulate(
        model(opened(1.1), service("A", loop_of_two(Constant(2), Constant(1)), threads=1)),
        precision=PRECISION,
        seed=14,
    )
    mean, variance = 0.8, 2 * 0.2**2 + 0.4**2
    assert agrees(turn.cycle.response_time, mean + pollaczek(1.1, mean, variance + mean**2))
    mixed = simulate(
        model(opened(0.8), service("A", loop_of_two(Geometric(2.0), Geometric(1.0)), threads=1)),
        precision=PRECISION, seed=15,
    )  # fmt: skip
    step = Hyperexponential((2 / 3, 1 / 3), (0.2, 0.4))
    mean, moment = random_sum(Geometric(3.0), step)
    assert agrees(mixed.cycle.response_time, mean + pollaczek(0.8, mean, moment))


def test_interleaved_calls() -> None:
    """Geometric calls between slices of the demand: slices and calls have their number in common."""
    body = entry("a", calling("w", Geometric(2.0), demand=exp(0.3), interleaved=True))
    tested = model(opened(1.0), service("A", body, threads=1), service("B", entry("b", act("w", exp(0.15)))))
    slice_ = 0.3 / 3
    variance = 3 * slice_**2 + 2 * 0.15**2 + Geometric(2.0).variance * (slice_ + 0.15) ** 2
    result = simulate(tested, precision=PRECISION, seed=16)
    assert agrees(result.cycle.response_time, 0.6 + pollaczek(1.0, 0.6, variance + 0.36))


@pytest.mark.parametrize(("needed", "width"), [(1, 2), (2, 3), (1, 4), (3, 4)])
def test_quorum_of_exponentials(needed: int, width: int) -> None:
    """The k-th of n exponentials that run side by side: order statistics."""
    names = [f"b{i}" for i in range(width)]
    body = entry(
        "a",
        act("s"), *(act(n, exp(0.4)) for n in names), act("e"),
        arcs=(fork("s", *names), replace(join("e", *names), quorum=needed)),
    )  # fmt: skip
    users = clients(2, exp(1.0), "A.a")
    result = simulate(
        model(users, service("A", replace(body, activities=(*body.activities[:-1], act("e", replies=True))))),
        precision=PRECISION,
        seed=17,
    )
    assert agrees(result.cycle.response_time, sum(0.4 / (width - i) for i in range(needed)))


def test_forwarding() -> None:
    """A forwarded request queues again elsewhere while the first thread is free: two M/M/1 in a row."""
    first = replace(
        entry("a", act("w", exp(0.5))), forwards=(Forward(task="B", entry="b", probability=0.75),)
    )
    tested = model(
        opened(1.2), service("A", first, threads=1), service("B", entry("b", act("w", exp(0.5))), threads=1)
    )
    result = simulate(tested, precision=PRECISION, seed=18)
    assert agrees(result.cycle.response_time, 0.5 / 0.4 + 0.75 * 0.5 / 0.55)
    assert agrees(result.tasks["A"].utilization, 0.6)
    assert agrees(result.tasks["B"].utilization, 0.45)


def test_requests_without_a_waiting_caller() -> None:
    """A sent request does not delay its caller, but its target has the work: an M/M/1 behind the caller's thread."""
    caller = entry("a", replace(act("w", exp(0.5)), calls=(Call(task="B", entry="b", kind="send"),)))
    tested = model(
        opened(1.2), service("A", caller, threads=1), service("B", entry("b", act("w", exp(0.5))), threads=1)
    )
    result = simulate(tested, precision=PRECISION, seed=19)
    assert agrees(result.cycle.response_time, 0.5 / 0.4)
    assert agrees(result.entries["B.b"].response_time, 0.5 / 0.4, within=TIGHT)
    assert agrees(result.tasks["B"].utilization, 0.6)


def test_giving_the_thread_back_during_a_call() -> None:
    """A releasing call frees the only thread: it is busy during the demand, no longer."""
    call = Call(task="B", entry="b", kind="releasing")
    caller = entry("a", replace(act("w", Constant(0.1)), calls=(call,)))
    tested = model(
        clients(1, Constant(0.5), "A.a"),
        service("A", caller, threads=1),
        service("B", entry("b", act("w", Constant(0.4)))),
    )
    alone = simulate(tested, horizon=400)
    assert alone.cycle.response_time.mean == pytest.approx(0.5)
    assert alone.tasks["A"].busy.mean == pytest.approx(0.1, rel=1e-2)


def test_semaphore() -> None:
    """The token is taken from the end of acquire until release: an M/G/1 around the critical section."""
    semaphore = Task(
        name="S",
        threads=1,
        entries=(
            replace(entry("acquire", act("p")), token="acquire"),
            replace(entry("release", act("v")), token="release"),
        ),
    )
    body = entry(
        "a",
        act("in", calls="S.acquire"),
        act("section", exp(0.5)),
        act("out", calls="S.release"),
        arcs=seq("in", "section", "out"),
    )
    result = simulate(model(opened(1.2), service("A", body), semaphore), precision=PRECISION, seed=20)
    assert agrees(result.cycle.response_time, 0.5 / 0.4)
    assert agrees(result.tasks["S"].queue, 0.36 / 0.4, within=TIGHT)


def test_parts_of_a_processor() -> None:
    """Two parts of a core: whichever runs, the core works at full speed, so all together are an M/M/1."""
    host = Processor(name="host")
    parts = (Processor(name="x", parent="host"), Processor(name="y", parent="host"), host)
    tested = model(
        opened(0.8), opened(0.4, "B.b", name="V"),
        service("A", entry("a", act("w", exp(0.5))), processor="x"),
        service("B", entry("b", act("w", exp(0.5))), processor="y"),
        processors=parts,
    )  # fmt: skip
    result = simulate(tested, precision=PRECISION, seed=21)
    assert agrees(result.cycle.response_time, 0.5 / 0.4)
    assert agrees(result.processors["host"].utilization, 0.6)


def test_one_core_part_of_a_large_processor() -> None:
    """A part of one core in a machine with cores to spare is a processor of one core."""
    tested = model(
        opened(1.2), service("A", entry("a", act("w", Constant(0.5))), processor="gil"),
        processors=(Processor(name="gil", parent="host"), Processor(name="host", cores=4)),
    )  # fmt: skip
    result = simulate(tested, precision=PRECISION, seed=22)
    assert agrees(result.cycle.response_time, 0.5 / 0.4)
    assert agrees(result.processors["host"].utilization, 0.15)


def test_cores_that_share_everything() -> None:
    """Threads that always move to idle cores make an M/M/c, wherever they ran last."""
    cpu = Processor(name="cpu", cores=2, discipline="cores", migration=Migration(wake=1.0, steal=1.0))
    tested = model(
        opened(2.4), service("A", entry("a", act("w", exp(0.5))), processor="cpu"), processors=(cpu,)
    )
    result = simulate(tested, precision=PRECISION, seed=23)
    wait = erlang_c(2, 1.2) * 0.5 / 0.8
    assert agrees(result.cycle.response_time, 0.5 + wait)


def test_pinned_threads() -> None:
    """Two threads pinned to a core each never disturb each other: an M/M/2."""
    cpu = Processor(name="cpu", cores=2, discipline="cores")
    tested = model(
        opened(2.0),
        service("A", entry("a", act("w", exp(0.5))), threads=2, processor="cpu"),
        processors=(cpu,),
    )
    result = simulate(tested, precision=PRECISION, seed=24)
    wait = erlang_c(2, 1.0) * 0.5 / 1.0
    assert agrees(result.cycle.response_time, 0.5 + wait)
