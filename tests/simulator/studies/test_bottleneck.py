"""What limits a scenario is named by cause, not by symptom, and with the load at which it does."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Forward, Model, Processor, Task
from mup.lqn.edits import with_arrivals
from simulator import simulate
from simulator.studies.saturation import saturation
from simulator.studies.whatif import bottleneck


def chain(*, front_threads: int, back_threads: int, cores: int, delay: float) -> Model:
    """Return 30 users -> Front -> Back; both on one host; Back computes 10 ms and waits ``delay``."""
    zero = Constant(0.0)

    def entry(name: str, demand: float, wait: float, *calls: Call) -> Entry:
        work = Activity(name="work", demand=Exponential(demand), delay=Constant(wait), calls=calls)
        return Entry(name=name, start="work", activities=(work,))

    ask = Activity(name="ask", demand=zero, delay=zero, calls=(Call(task="Front", entry="/f/"),))
    users = Task(
        name="Users",
        role="reference",
        threads=30,
        think=Exponential(0.05),
        entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
    )
    front = Task(
        name="Front",
        threads=front_threads,
        processor="host",
        entries=(entry("/f/", 0.001, 0.0, Call(task="Back", entry="/b/")),),
    )
    back = Task(name="Back", threads=back_threads, processor="host", entries=(entry("/b/", 0.01, delay),))
    return Model(name="chain", processors=(Processor(name="host", cores=cores),), tasks=(users, front, back))


def limit(model: Model) -> str:
    found = bottleneck(model, simulate(model, precision=0.05))
    assert found is not None
    return found[0]


def test_a_full_callee_is_the_cause_of_its_full_caller() -> None:
    """Front's threads all wait for Back's single one: both are 100 % busy, Back is named."""
    model = chain(front_threads=4, back_threads=1, cores=8, delay=0.02)
    result = simulate(model, precision=0.05)
    front = result.tasks["Front"].utilization
    assert front is not None
    assert front.mean > 0.95
    assert limit(model) == "task Back"


def test_a_full_processor_is_the_cause_of_the_tasks_on_it() -> None:
    """One core for all: threads are busy waiting for it."""
    assert limit(chain(front_threads=4, back_threads=4, cores=1, delay=0.0)) == "processor host"


def test_a_small_pool_in_front_of_idle_services_is_the_bottleneck_itself() -> None:
    """Front has one thread, Back has plenty: Front is named although it calls Back."""
    assert limit(chain(front_threads=1, back_threads=50, cores=8, delay=0.02)) == "task Front"


def station(threads: int, service: float, think: float, clients: int) -> Model:
    """Return an M/M/threads//clients queue without a processor."""
    zero = Constant(0.0)
    ask = Activity(name="ask", demand=zero, delay=zero, calls=(Call(task="T", entry="/t/"),))
    work = Activity(name="work", demand=Exponential(service), delay=zero)
    return Model(
        name="station",
        tasks=(
            Task(
                name="Users",
                role="reference",
                threads=clients,
                think=Exponential(think),
                entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
            ),
            Task(name="T", threads=threads, entries=(Entry(name="/t/", start="work", activities=(work,)),)),
        ),
    )


@pytest.mark.parametrize("clients", [1, 500])
def test_a_queue_saturates_where_its_asymptotes_meet(clients: int) -> None:
    """M/M/4: at 4/S per second = (Z + S) x 4/S clients, however many clients the model has."""
    found = saturation(station(4, 0.05, 1.0, clients))
    assert (found.resource, found.confirmed) == ("task T", True)
    assert found.throughput == pytest.approx(80, rel=0.03)
    assert found.load == {"Users": pytest.approx(84, rel=0.05)}
    assert found.scale == pytest.approx(84 / clients, rel=0.05)
    assert str(found).startswith("task T saturates first, at about ")


def test_arrivals_saturate_a_queue_at_its_service_rate() -> None:
    """The load of an open model is arrivals per second."""
    found = saturation(with_arrivals(station(4, 0.05, 1.0, 1), 20))
    assert found.load == {"Users": pytest.approx(80, rel=0.03)}
    assert found.to_json()["load"] == {"Users": {"arrivals": found.load["Users"]}}
    assert found.to_json()["present"] == {"Users": {"arrivals": pytest.approx(20)}}


def test_requests_from_outside_are_not_handed_on() -> None:
    """Their replies are not awaited: what they would be handed on to, ten times as slow, limits nothing."""
    none = Constant(0.0)

    def served(name: str, seconds: float, **more: object) -> Task:
        work = Activity(name="w", demand=none, delay=Exponential(seconds))
        return Task(name=name, threads=1, entries=(Entry(name="e", start="w", activities=(work,), **more),))  # type: ignore[arg-type]

    b = served("B", 0.1, arrivals=Exponential(1.0), forwards=(Forward(task="D", entry="e"),))
    tested = Model(name="outside", tasks=(b, served("D", 1.0)))
    assert simulate(tested, precision=0.05).tasks["D"].throughput.mean == 0
    found = saturation(tested)
    assert str(found.resource) == "task B"
    assert found.throughput == pytest.approx(10.0, rel=0.05)


def test_a_pool_saturates_although_nothing_behind_it_does() -> None:
    """Front keeps its one thread for 1 + 10 + 20 ms: 32.3 per second, long before host or Back."""
    found = saturation(chain(front_threads=1, back_threads=50, cores=8, delay=0.02))
    assert (found.resource, found.confirmed) == ("task Front", True)
    assert found.throughput == pytest.approx(1 / 0.031, rel=0.03)
    assert next(iter(found.bounds)) == "task Front"
    assert found.bounds["processor host"] == pytest.approx(8 / 0.011, rel=0.01)


def test_waiting_behind_a_pool_lowers_its_limit() -> None:
    """Four threads that all need one core: the core is named, not the threads that wait for it."""
    found = saturation(chain(front_threads=4, back_threads=4, cores=1, delay=0.0))
    assert found.resource == "processor host"
    assert found.throughput == pytest.approx(1 / 0.011, rel=0.03)


@pytest.mark.slow
def test_messages_without_a_waiting_caller_do_not_hide_the_limit() -> None:
    """One client may send faster than is served; the limit is the service rate all the same."""
    base = station(1, 0.01, 0.001, 1)
    users = base.task("Users")
    sent = Activity(
        name="ask",
        demand=Constant(0.0),
        delay=Constant(0.0),
        calls=(Call(task="T", entry="/t/", kind="send"),),
    )
    entry = Entry(name="cycle", start="ask", activities=(sent,))
    found = saturation(base.with_task(replace(users, entries=(entry,))))
    assert found.throughput == pytest.approx(100, rel=0.08)


def test_several_sources_grow_together() -> None:
    """Users add 1 of 2 s, others 3 of 4 s of work per second and client pair: full at 1 / (0.5 + 0.75)."""
    base = station(1, 1.0, 1.0, 1)
    other = replace(base.task("Users"), name="Others", think=Constant(3.0))
    both = replace(base, tasks=(*base.tasks, other))
    found = saturation(both)
    assert found.resource == "task T"
    assert not found.confirmed
    assert found.scale == pytest.approx(1 / (1 / 2 + 1 / 4), rel=0.05)
    assert "times the present load" in str(found)


def test_nothing_saturates_an_infinite_server() -> None:
    """Without anything finite there is no limit, and that is said."""
    base = station(1, 0.05, 1.0, 5)
    free = saturation(base.with_task(replace(base.task("T"), threads=math.inf)))
    assert free.resource is None
    assert "nothing saturates" in str(free)


def test_the_reference_model_of_teastores_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its webui is full from about 227 clients on, at 220 cycles per second."""
    root = Path(__file__).parents[3]
    folder = Path(os.environ.get("MUP_REFERENCE_DIR", root.parent / "shared"))
    file = folder / "models" / "teastore-size.json"
    if not file.exists():
        pytest.skip(f"no reference data: {file} does not exist (set MUP_REFERENCE_DIR)")
    monkeypatch.syspath_prepend(root / "benchmarks")
    spec = importlib.util.spec_from_file_location("fluid_benchmark", root / "benchmarks" / "fluid.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    found = saturation(benchmark.reference_model(json.loads(file.read_text()), 512))
    assert (found.resource, found.confirmed) == ("task webui", True)
    assert found.throughput == pytest.approx(220, rel=0.02)
    assert found.load["Users"] == pytest.approx(227, rel=0.03)
