"""The mean set-up after sleep in estimates is the one an engine finds.

Both make their own way: the engine follows who sleeps, estimates take workers and cores for birth-death
processes and follow one customer that meets no other.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Front,
    Model,
    Processor,
    Setup,
    Task,
)
from simulator import simulate
from simulator.analytic import estimate
from simulator.analytic.product_form import product_form
from simulator.api import observed_load
from simulator.fluid import fluid
from simulator.preparing import prepared
from simulator.preparing.chains import Chain, Rested, mean_share

SETUP = Setup(
    gaps=(0.0002, 0.002, 0.02, 0.1),
    worker=(0.05, 0.3, 0.8, 1.0),
    core=(0.0, 0.1, 0.6, 1.0),
    by_thread=True,
    demands={"e:work": (0.002, 0.001)},
)
LOOP = replace(SETUP, by_thread=False, core=(0.0,) * 4, demands={"e:work": (0.002, 0.0)})
DRIVER = replace(SETUP, by_thread=False, demands={"c:ask": (0.001, 0.0005)})
NOTHING = Constant(0.0)
THINK = Exponential(0.05)
HOST = Processor(name="host", cores=2)


def model(
    *,
    clients: float = 4,
    think: Distribution = THINK,
    setup: Setup | None = SETUP,
    threads: float = 8,
    replicas: int = 1,
    delay: Distribution = NOTHING,
    host: Processor = HOST,
    driver: float = 0.0,
    own: Setup | None = None,
    network: float = 0.0,
    front: Front | None = None,
    rate: float = 0.0,
    loop: bool = False,
) -> Model:
    """Return clients (or arrivals at a rate) of one service, perhaps with a network in between."""
    target = Call(task="S", entry="e")
    tasks = []
    if network:
        hop = Activity(name="hop", demand=NOTHING, delay=Exponential(network), calls=(target,))
        entry = Entry(name="n", start="hop", activities=(hop,))
        tasks.append(Task(name="N", role="network", threads=math.inf, entries=(entry,)))
        target = Call(task="N", entry="n")
    ask = Activity(name="ask", demand=Constant(driver), delay=NOTHING, calls=(target,))
    cycle = Entry(name="c", start="ask", activities=(ask,))
    if rate:
        cycle = replace(cycle, arrivals=Exponential(1 / rate))
    users = Task(
        name="U",
        role="reference",
        threads=math.inf if rate else clients,
        processor="host",
        think=None if rate else think,
        setup=own,
        entries=(cycle,),
    )
    work = Activity(name="work", demand=Exponential(0.002), delay=delay)
    own_loop = Processor(name="S.core", cores=replicas, discipline="fcfs", parent="host")
    service = Task(
        name="S",
        threads=threads,
        replicas=replicas,
        processor="S.core" if loop else "host",
        front=front,
        setup=setup,
        entries=(Entry(name="e", start="work", activities=(work,)),),
    )
    return Model(name="m", processors=(host, own_loop) if loop else (host,), tasks=(users, service, *tasks))


CASES = {
    "one worker, one client": model(clients=1, threads=1),
    "one worker, eight clients": model(clients=8, threads=1),
    "a pool of processes": model(clients=8, delay=Exponential(0.003)),
    "a pool of threads": model(clients=8, delay=Exponential(0.003), setup=replace(SETUP, by_thread=False)),
    "an event loop": model(clients=12, delay=Exponential(0.01), setup=LOOP, loop=True),
    "event loops of two replicas": model(
        clients=12, delay=Exponential(0.01), setup=LOOP, replicas=2, loop=True
    ),
    "constant think times": model(clients=1, think=Constant(0.05)),
    "a driver on the same cores": model(clients=8, driver=0.0005),
    "a network in between": model(clients=8, driver=0.0005, network=0.001),
    "threads that stick to cores": model(
        clients=4, driver=0.0005, network=0.001, host=Processor(name="host", cores=4, discipline="cores")
    ),
    "arrivals from outside": model(rate=150.0, driver=0.0005),
    "arrivals, hardly any": model(rate=5.0),
    "replicas": model(clients=8, threads=1, replicas=3),
    "near saturation": model(clients=40, driver=0.0005),
    "unlimited threads": model(clients=8, threads=math.inf, delay=Exponential(0.003)),
    "work in the background": model(clients=4, host=replace(HOST, background=0.2)),
}


def engines_and_estimates(found: Model, task: str = "S") -> tuple[float, float]:
    """Return the mean set-up per request that an engine added, and that an estimate takes."""
    figure = simulate(found, horizon=60.0, seed=1).tasks[task].setup
    assert figure is not None
    ready = prepared(found, observed_load, awake=True).model.task(task)
    assert ready.setup is None
    before, after = (t.entries[0].activities[0].demand for t in (found.task(task), ready))
    assert before is not None
    assert after is not None
    return figure.mean, after.mean - before.mean


@pytest.mark.parametrize("name", CASES)
def test_estimates_find_the_mean_set_up_of_the_engine(name: str) -> None:
    """Within a tenth of what sleep adds, or 2 % of what it can add at most."""
    found, expected = engines_and_estimates(CASES[name])
    assert expected == pytest.approx(found, rel=0.1, abs=0.02 * 0.003)


@pytest.mark.parametrize("clients", [1, 4, 16])
def test_estimates_find_the_mean_set_up_of_clients(clients: int) -> None:
    found, expected = engines_and_estimates(
        model(clients=clients, driver=0.0005, setup=None, own=DRIVER), "U"
    )
    assert expected == pytest.approx(found, rel=0.1, abs=0.03 * 0.0015)


@pytest.mark.parametrize("clients", [1, 4, 16])
def test_estimates_find_the_mean_set_up_of_a_front(clients: int) -> None:
    setup = replace(SETUP, demands={"front": (0.002, 0.001)})
    front = Front(request=Constant(0.0002), reply=Constant(0.0001))
    loaded = model(clients=clients, front=front, setup=setup)
    figure = simulate(loaded, horizon=60.0, seed=1).tasks["S"].setup
    assert figure is not None
    ready = prepared(loaded, observed_load, awake=True).model.task("S").front
    assert ready is not None
    assert ready.request is not None
    assert ready.reply is not None
    expected = ready.request.mean + ready.reply.mean - 0.0003
    assert expected == pytest.approx(figure.mean, rel=0.1, abs=0.02 * 0.003)


def test_both_estimates_take_it() -> None:
    """Analytic and fluid response times are those of the engine, within what they are known to."""
    found = model(clients=4, driver=0.0005, network=0.001)
    simulated = simulate(found, horizon=60.0, seed=1).cycle.response_time.mean
    assert estimate(found).cycle.response_time == pytest.approx(simulated, rel=0.03)
    assert fluid(found).cycle["response_time"] == pytest.approx(simulated, rel=0.1)
    plain = found.with_task(replace(found.task("S"), setup=None))
    assert estimate(plain).cycle.response_time < 0.9 * simulated


def test_engines_keep_it() -> None:
    found = model()
    assert prepared(found, observed_load).model is found


def test_a_network_of_queues_cannot_say_it() -> None:
    single = Processor(name="host", cores=1)
    assert product_form(model(threads=math.inf, host=single, setup=None)) is not None
    assert product_form(model(threads=math.inf, host=single)) is None


def test_nothing_asked_costs_nothing() -> None:
    """A service without requests keeps its times."""
    found = model()
    lonely = replace(found.task("S"), name="L")
    ready = prepared(replace(found, tasks=(*found.tasks, lonely)), observed_load, awake=True).model
    assert ready.task("L").entries == lonely.entries


# The mathematics


def test_the_mean_share_is_the_integral() -> None:
    """Of a mixture of exponentials, cut off by an own rest of a constant and an exponential time."""
    amplitudes, rates = np.array([0.3, 0.7]), np.array([20.0, 400.0])
    own = Rested(0.01, 0.004)
    rng = np.random.default_rng(1)
    slow = rng.random(400_000) < 0.3
    gaps = rng.exponential(1.0, 400_000) / np.where(slow, 20.0, 400.0)
    drawn = np.minimum(gaps, 0.006 + rng.exponential(0.004, 400_000))
    for own_rest, sample in ((None, gaps), (own, drawn), (Rested(0.01, 0.0), np.minimum(gaps, 0.01))):
        expected = np.mean([SETUP.share(SETUP.core, float(gap)) for gap in sample[:50_000]])
        found = mean_share(SETUP.gaps, SETUP.core, amplitudes, rates, own_rest)
        assert found == pytest.approx(expected, rel=0.02)


def test_a_chain_of_one_customer_meets_no_other() -> None:
    alone = Chain.of(2, 0.2, 10.0, 1)
    assert alone.seen.tolist() == [1.0]
    assert alone.births.tolist() == [0.0]
    assert alone.own == pytest.approx(12.5)  # away for 0.08 of 0.1 s


def test_a_chain_of_many_is_that_of_arrivals() -> None:
    """M/M/1 and M/M/inf: who arrives sees what there is at any time."""
    single = Chain.of(1, 0.6, 10.0, math.inf)
    assert single.seen.tolist() == pytest.approx([0.4])
    plenty = Chain.of(math.inf, 1.5, 10.0, math.inf)
    assert plenty.seen[:2].tolist() == pytest.approx([math.exp(-1.5), 1.5 * math.exp(-1.5)])


def test_the_time_to_the_next_level_is_a_distribution() -> None:
    """It begins with certainty, and its mean is the time below the level per passage."""
    chain = Chain.of(8, 2.0, 100.0, 20)
    for level in range(4):
        amplitudes, rates = chain.passage(level)
        assert amplitudes.sum() == pytest.approx(1.0)
        weights = chain.seen[: level + 1]
        mean = weights.sum() / (weights[level] * chain.births[level])
        assert (amplitudes / rates).sum() == pytest.approx(mean, rel=1e-9)


def test_full_servers_have_no_sleep() -> None:
    assert Chain.of(4, 4.0, 10.0, math.inf).mean(SETUP.gaps, SETUP.worker, None, whole=False) == 0.0
