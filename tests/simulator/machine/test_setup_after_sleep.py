"""Set-ups after sleep as ``mup.lqn.Setup`` says, worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Front,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
)
from simulator import simulate
from simulator.figures.result import Result
from simulator.program import compile_model

THINK, WORK, NOTHING = Constant(0.01), Constant(0.004), Constant(0.0)
HOST = Processor(name="host", cores=2)
WORKER = Setup(gaps=(0.001, 0.1), worker=(0.0, 1.0), core=(0.0, 0.0), demands={"e:work": (0.002, 0.0)})
CORE = replace(WORKER, worker=(0.0, 0.0), core=(0.0, 1.0), demands={"e:work": (0.0, 0.002)})


def model(
    setup: Setup | None,
    *,
    clients: float = 1,
    think: Distribution = THINK,
    work: Distribution = WORK,
    delay: Distribution = NOTHING,
    threads: float = 1,
    processor: Processor | None = HOST,
    front: Front | None = None,
    driver: float = 0.0,
    own: Setup | None = None,
) -> Model:
    """Return clients who think and ask one service; ``driver``: their processor time, ``own``: their set-up."""
    ask = Activity(
        name="ask",
        demand=Constant(driver),
        delay=Constant(0.0),
        calls=(Call(task="S", entry="e"),),
    )
    place = None if processor is None else processor.name
    users = Task(
        name="U",
        role="reference",
        threads=clients,
        processor=place,
        think=think,
        setup=own,
        entries=(Entry(name="c", start="ask", activities=(ask,)),),
    )
    body = Activity(name="work", demand=work, delay=delay)
    service = Task(
        name="S",
        threads=threads,
        processor=place,
        front=front,
        setup=setup,
        entries=(Entry(name="e", start="work", activities=(body,)),),
    )
    return Model(name="m", processors=() if processor is None else (processor,), tasks=(users, service))


def run(found: Model, horizon: float = 20.0) -> Result:
    return simulate(found, horizon=horizon, seed=1)


def added(result: Result, task: str = "S") -> float:
    figure = result.tasks[task].setup
    assert figure is not None
    return figure.mean


def share(gap: float) -> float:
    """Return that of both set-ups above."""
    return min(1.0, max(0.0, math.log(gap / 0.001) / math.log(100)))


def test_one_client_finds_a_worker_that_slept_as_long_as_it_thinks() -> None:
    result = run(model(WORKER))
    assert added(result) == pytest.approx(0.002 * share(0.01), rel=1e-9)
    assert result.cycle.response_time.mean == pytest.approx(0.004 + 0.002 * share(0.01), rel=1e-9)
    assert not [w for w in result.warnings if "law" in w]


def test_what_waited_costs_nothing_more() -> None:
    """Two clients who do not think keep the only worker busy: each request waits for the other."""
    result = run(model(WORKER, clients=2, think=Constant(0.0)))
    assert added(result) == pytest.approx(0.0, abs=1e-12)


def test_a_replica_sleeps_only_while_it_has_no_request() -> None:
    """A second client whose requests last for ever keeps it awake; its threads would have slept."""
    asleep = run(model(WORKER, clients=8, think=Exponential(0.02), delay=Exponential(0.02), threads=8))
    each = run(
        model(
            replace(WORKER, by_thread=True),
            clients=8,
            think=Exponential(0.02),
            delay=Exponential(0.02),
            threads=8,
        )
    )
    assert added(asleep) < 0.02 * added(each)


def test_the_thread_that_was_busy_last_is_asked_first() -> None:
    """One client of a pool of 50 meets the same thread every time."""
    many = run(model(replace(WORKER, by_thread=True), threads=50))
    assert added(many) == pytest.approx(0.002 * share(0.01), rel=1e-9)


@pytest.mark.parametrize("discipline", ["ps", "fcfs", "hol", "pp"])
def test_a_core_sleeps_since_as_few_were_busy(discipline: str) -> None:
    """The driver has just used the core that the service gets; with a network in between it has slept."""
    host = Processor(name="host", cores=2, discipline=discipline)  # type: ignore[arg-type]
    awake = run(model(CORE, processor=host, driver=0.001))
    assert added(awake) == pytest.approx(0.0, abs=1e-12)
    alone = run(model(CORE, processor=host))
    assert added(alone) == pytest.approx(0.002 * share(0.01), rel=1e-9)


def test_all_cores_busy_is_no_sleep() -> None:
    busy = run(model(CORE, clients=6, think=Exponential(0.001), work=Exponential(0.01), threads=6))
    assert added(busy) < 0.05 * 0.002


def test_background_keeps_cores_awake() -> None:
    quiet = run(model(CORE, think=Exponential(0.05), processor=Processor(name="host", cores=1)))
    host = Processor(name="host", cores=1, background=0.3)
    assert added(run(model(CORE, think=Exponential(0.05), processor=host))) < 0.7 * added(quiet)


def test_sticky_threads_find_their_core_as_they_left_it() -> None:
    """On a processor of cores the driver has a core of its own; the service's slept while it thought."""
    host = Processor(name="host", cores=2, discipline="cores")
    result = run(model(CORE, processor=host))
    assert added(result) == pytest.approx(0.002 * share(0.01), rel=1e-9)


def test_a_part_has_the_cores_of_its_machine() -> None:
    """The interpreter slept, the machine did not: the driver has just worked on it."""
    found = model(CORE, driver=0.001)
    gil = Processor(name="gil", cores=1, parent="host")
    service = replace(found.task("S"), processor="gil")
    nested = replace(found, processors=(*found.processors, gil)).with_task(service)
    assert added(run(nested)) == pytest.approx(0.0, abs=1e-12)


def test_without_a_processor_the_core_sleeps_like_the_worker() -> None:
    result = run(model(CORE, processor=None))
    assert added(result) == pytest.approx(0.002 * share(0.01), rel=1e-9)


def test_each_half_of_the_front_has_a_gap_of_its_own() -> None:
    """The first is the think time, the second the time of the worker; each gets half of the seconds."""
    front = Setup(gaps=(0.001, 0.1), worker=(0.0, 1.0), core=(0.0, 0.0), demands={"front": (0.002, 0.0)})
    halves = Front(request=Constant(0.0), reply=Constant(0.0))
    result = run(model(front, front=halves))
    expected = 0.001 * share(0.01) + 0.001 * share(0.004)
    # A request that is under way when figures begin or end counts with one half.
    assert added(result) == pytest.approx(expected, rel=2e-3)


def test_clients_begin_anew_after_every_think_time() -> None:
    own = Setup(gaps=(0.001, 0.1), worker=(0.0, 1.0), core=(0.0, 0.0), demands={"c:ask": (0.002, 0.0)})
    result = run(model(None, own=own))
    assert added(result, "U") == pytest.approx(0.002 * share(0.01), rel=1e-9)
    thinking = Activity(name="rest", kind="think", demand=Constant(0.0), delay=Constant(0.05))
    found = model(None, own=own, think=Constant(0.0))
    (cycle,) = found.task("U").entries
    inside = replace(
        cycle,
        start="rest",
        activities=(thinking, *cycle.activities),
        precedences=(Precedence(pre=("rest",), post=("ask",)),),
    )
    rested = found.with_task(replace(found.task("U"), entries=(inside,)))
    assert added(run(rested), "U") == pytest.approx(0.002 * share(0.05), rel=1e-9)


def test_delays_get_longer_too() -> None:
    later = Setup(gaps=(0.001, 0.1), worker=(0.0, 1.0), core=(0.0, 0.0), delays={"e:work": (0.002, 0.0)})
    result = run(model(later, threads=math.inf))
    assert result.cycle.response_time.mean == pytest.approx(0.004 + 0.002 * share(0.01), rel=1e-9)
    assert added(result) == 0.0


def test_shares_of_an_activity_add_up_over_its_slices() -> None:
    found = model(WORKER)
    helper = Task(
        name="H",
        processor="host",
        entries=(
            Entry(
                name="h",
                start="h",
                activities=(Activity(name="h", demand=Constant(0.0), delay=Constant(0.001)),),
            ),
        ),
    )
    service = found.task("S")
    (entry,) = service.entries
    (work,) = entry.activities
    sliced = replace(work, interleaved=True, calls=(Call(task="H", entry="h", count=Constant(3)),))
    service = replace(service, entries=(replace(entry, activities=(sliced,)),))
    result = run(replace(found, tasks=(found.task("U"), service, helper)))
    assert added(result) == pytest.approx(0.002 * share(0.01), rel=1e-9)


def test_utilization_includes_what_was_added() -> None:
    """The operational laws hold with it, and no warning says otherwise."""
    setup = replace(WORKER, core=(0.2, 0.8), demands={"e:work": (0.01, 0.02)})
    result = run(model(setup, clients=3, think=Exponential(0.05), threads=3), horizon=200.0)
    own = result.tasks["S"].throughput.mean * (0.004 + added(result)) / 2
    assert result.processors["host"].utilization.mean == pytest.approx(own, rel=1e-3)
    assert not [w for w in result.warnings if "law" in w]


def test_figures_of_models_without_it_do_not_mention_it() -> None:
    data = run(model(None)).to_json()
    assert "setup" not in data["tasks"]["S"]
    assert "setup" in run(model(WORKER)).to_json()["tasks"]["S"]


def test_programs_of_models_without_it_are_what_they_were() -> None:
    program = compile_model(model(None))
    assert (program.sleeps, program.setups) == ((), ())
    nothing = replace(WORKER, demands={})
    longer = compile_model(model(nothing))
    assert len(longer.code) == len(program.code) + 1  # WAKE


def test_sleep_that_is_too_much_to_follow() -> None:
    huge = model(replace(WORKER, by_thread=True), threads=10**9)
    with pytest.raises(ModelError, match="sleep one by one"):
        compile_model(huge)
    with pytest.raises(ModelError, match="too many to follow their sleep"):
        compile_model(model(WORKER, processor=Processor(name="host", cores=10**9)))
