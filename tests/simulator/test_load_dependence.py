"""Processor times follow the rate of requests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Front,
    LoadDependence,
    Model,
    Processor,
    Task,
    model_from_json,
    model_to_json,
)
from mup.lqn.comparison import compare
from simulator.analytic import estimate
from simulator.api import observed_load, simulate
from simulator.preparing import Load, Observed, at_load, at_rates, prepared

LOAD_DEPENDENT = LoadDependence(
    rates=(10.0, 200.0), demands={"/e/:work": (0.001, 0.0), "front": (0.0004, 0.0)}
)


def settled(model: Model) -> Model:
    """Return the model with the times of its own load."""
    return prepared(model, observed_load).model


def model(
    clients: int = 1, think: float = 0.1, load_dependence: LoadDependence | None = LOAD_DEPENDENT
) -> Model:
    service = Task(
        name="S",
        threads=4,
        processor="host",
        front=Front(request=Constant(0.0001), reply=Constant(0.0001)),
        load_dependence=load_dependence,
        entries=(
            Entry(
                name="/e/",
                start="work",
                activities=(Activity(name="work", demand=Exponential(0.002), delay=Constant(0.0)),),
            ),
        ),
    )
    users = Task(
        name="U",
        role="reference",
        threads=clients,
        think=Exponential(think),
        entries=(
            Entry(
                name="cycle",
                start="ask",
                activities=(
                    Activity(
                        name="ask",
                        demand=Constant(0.0),
                        delay=Constant(0.0),
                        calls=(Call(task="S", entry="/e/"),),
                    ),
                ),
            ),
        ),
    )
    return Model(name="m", processors=(Processor(name="host", cores=2),), tasks=(users, service))


def demand(found: Model) -> float:
    work = found.task("S").entry("/e/").activity("work").demand
    assert work is not None
    return work.mean


def test_times_are_those_at_the_known_rates() -> None:
    """At a measured rate the measured time comes out."""
    assert demand(at_rates(model(), {"S": 10.0})) == pytest.approx(0.003)
    assert demand(at_rates(model(), {"S": 200.0})) == pytest.approx(0.002)


def test_times_fall_with_the_rate_and_stop_falling() -> None:
    """In between times are in between, beyond they go on for a while, and no further."""
    rates = (0.1, 2, 5, 8, 10, 50, 200, 400, 800, 1600, 9000)
    at = {rate: demand(at_rates(model(), {"S": rate})) for rate in rates}
    assert 0.003 > at[50] > 0.002 > at[400] > at[800] == at[1600] == at[9000]
    assert at[0.1] == at[2] == at[5] > at[8] > at[10]


def test_a_front_shares_what_it_takes_longer() -> None:
    """Both halves of the front get half of the extra time."""
    front = at_rates(model(), {"S": 10.0}).task("S").front
    assert front is not None
    assert front.request is not None
    assert front.request.mean == pytest.approx(0.0003)


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "think"), [(1, 0.1), (8, 0.01), (1, 2.0)])
def test_the_rate_is_that_of_the_load(clients: int, think: float) -> None:
    """The settled times are those of the throughput that simulation then finds."""
    asked = model(clients, think)
    throughput = simulate(asked, precision=0.02).cycle.throughput.mean
    assert demand(settled(asked)) == pytest.approx(demand(at_rates(asked, {"S": throughput})), rel=0.01)
    assert estimate(asked).tasks["S"].throughput == pytest.approx(throughput, rel=0.05)


def test_replicas_share_the_requests() -> None:
    """Two replicas are asked half as often each, so each is colder."""
    one = settled(model(4, 0.05))
    two = settled(
        replace(
            model(4, 0.05),
            tasks=tuple(replace(t, replicas=2) if t.name == "S" else t for t in model(4, 0.05).tasks),
        )
    )
    assert demand(two) > demand(one)


def workers(threads: int, clients: int, *, by_thread: bool = True) -> Model:
    """A pool of threads that clients without think time keep busy."""
    found = model(clients, 0.0001, replace(LOAD_DEPENDENT, by_thread=by_thread))
    (users, service) = found.tasks
    entries = tuple(
        replace(e, activities=tuple(replace(a, delay=Constant(0.05)) for a in e.activities))
        for e in service.entries
    )
    return replace(found, tasks=(users, replace(service, threads=threads, entries=entries)))


def test_processes_of_a_full_pool_are_asked_in_turn() -> None:
    """Each of eight gets an eighth of the requests; the front gets all, and so would threads of one process."""
    full = workers(8, 64)
    rate = estimate(full).tasks["S"].throughput
    assert demand(settled(full)) == pytest.approx(demand(at_rates(full, {"S": rate / 8})), rel=0.01)
    together = settled(workers(8, 64, by_thread=False))
    assert demand(together) == pytest.approx(demand(at_rates(full, {"S": rate})), rel=0.01)
    assert demand(together) < demand(settled(full))
    fronts = [found.task("S").front for found in (settled(full), together)]
    one, other = (front.request.mean for front in fronts if front is not None and front.request is not None)
    assert one == pytest.approx(other, rel=0.01)


def test_of_many_processes_few_are_asked_while_there_is_little_to_do() -> None:
    """One client meets the same one of sixteen each time, as if there was no other."""
    one = workers(16, 1)
    rate = estimate(one).tasks["S"].throughput
    alone = workers(1, 1)
    assert demand(settled(one)) == pytest.approx(demand(settled(alone)), rel=0.06)
    assert demand(settled(one)) < demand(at_rates(one, {"S": rate / 2}))
    # Of two busy ones the second is asked less often; more than two are hardly ever needed.
    two = workers(16, 2)
    rate = estimate(two).tasks["S"].throughput
    assert demand(at_rates(two, {"S": rate})) < demand(settled(two)) < demand(at_rates(two, {"S": rate / 4}))


def test_branches_of_few_clients_meet_more_threads_than_there_are_clients() -> None:
    """Three busy threads of sixteen for two clients: more than two are asked, and by far not all."""
    pool = workers(16, 2)
    found = demand(at_load(pool, Load({"S": 100.0}, busy={"S": 3.0}, clients=2)))
    assert demand(at_rates(pool, {"S": 100 / 3})) < found < demand(at_rates(pool, {"S": 100 / 8}))


def test_a_model_without_load_dependence_stays_itself() -> None:
    """Nothing is copied that does not change."""
    plain = model(load_dependence=None)
    assert settled(plain) is plain


def test_load_dependence_survives_a_file() -> None:
    """JSON and back gives the same model."""
    assert model_from_json(model_to_json(model())) == model()
    assert model_from_json(model_to_json(workers(2, 1))) == workers(2, 1)


def with_former_name() -> dict[str, Any]:
    """Return a model as files had it before ``warmth`` became ``load_dependence``."""
    data = model_to_json(model())
    (service,) = (task for task in data["tasks"] if task["name"] == "S")
    service["warmth"] = service.pop("load_dependence")
    return data


def test_files_with_the_former_name_are_read() -> None:
    """They give the same model, which is written with the present name."""
    assert model_from_json(with_former_name()) == model()


def test_the_former_name_beside_the_present_one_is_refused() -> None:
    """One of the two would not count."""
    data = with_former_name()
    (service,) = (task for task in data["tasks"] if task["name"] == "S")
    service["load_dependence"] = service["warmth"]
    with pytest.raises(ModelError, match=r"warmth.*former name of 'load_dependence'"):
        model_from_json(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": (10.0,)}, "at least two rates"),
        ({"rates": (20.0, 10.0)}, "ascending"),
        ({"demands": {"/e/:work": (0.1,)}}, "one per rate"),
        ({"demands": {"/e/:nothing": (0.1, 0.0)}}, "no such activity"),
        ({"delays": {"front": (0.1, 0.0)}}, "no such activity"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], message: str) -> None:
    """Every rule has a message of its own."""
    with pytest.raises(ModelError, match=message):
        model(load_dependence=replace(LOAD_DEPENDENT, **change))


def test_a_file_says_plainly_whether_threads_are_processes() -> None:
    """A text is not taken for yes."""
    data = model_to_json(workers(2, 1))
    (service,) = (task for task in data["tasks"] if task["name"] == "S")
    service["load_dependence"]["by_thread"] = "no"
    with pytest.raises(ModelError, match=r"by_thread.*must be true or false, got 'no'"):
        model_from_json(data)


IDLING = ((0.1, 1.2), (0.5, 1.1), (0.9, 1.0))


def dozing(clients: int = 1, think: float = 0.1) -> Model:
    plain = model(clients, think, load_dependence=None)
    return replace(plain, processors=(replace(plain.processors[0], idling=IDLING),))


@pytest.mark.parametrize(
    ("utilization", "factor"), [(0.0, 1.2), (0.1, 1.2), (0.3, 1.15), (0.5, 1.1), (0.8, 1.025), (1.0, 1.0)]
)
def test_slowness_is_linear_between_its_points(utilization: float, factor: float) -> None:
    """Outside of all points the nearest one holds."""
    assert dozing().processor("host").slowness(utilization) == pytest.approx(factor)


@pytest.mark.parametrize(("clients", "think"), [(1, 0.1), (20, 0.02), (200, 0.02)])
def test_a_processor_is_as_fast_as_its_utilization_makes_it(clients: int, think: float) -> None:
    """The speed that is settled at brings about the utilization it belongs to."""
    asked = dozing(clients, think)
    host = settled(asked).processor("host")
    assert not host.idling
    found = simulate(asked, precision=0.02).processors["host"].utilization.mean
    assert host.speed == pytest.approx(1 / asked.processor("host").slowness(found), abs=0.01)
    assert 1 / 1.2 <= host.speed <= 1


def test_an_unknown_utilization_counts_as_busy() -> None:
    """Numbers belong to a busy processor."""
    assert at_load(dozing(), Load()).processor("host").speed == pytest.approx(1.0)


def test_idling_survives_a_file() -> None:
    """JSON and back gives the same model."""
    assert model_from_json(model_to_json(dozing())) == dozing()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (((0.5, 1.0), (0.1, 1.2)), "ascend"),
        (((1.5, 1.0),), "utilization from 0 to 1"),
        (((0.5, 0.0),), "factor > 0"),
    ],
)
def test_nonsense_about_idling_is_refused(points: tuple[tuple[float, float], ...], message: str) -> None:
    """Every rule has a message of its own."""
    with pytest.raises(ModelError, match=message):
        Processor(name="p", idling=points)


def test_times_stay_above_the_last_rate_where_the_model_says_so() -> None:
    """A busy system gets no warmer; the estimate's copy of the rule agrees with the model's."""
    busy = replace(LOAD_DEPENDENT, above=1.0)
    values = busy.demands["/e/:work"]
    assert busy.at(values, 5000.0) == busy.at(values, 200.0) == 0.0
    assert LOAD_DEPENDENT.at(values, 800.0) == LOAD_DEPENDENT.at(values, 5000.0) < 0.0
    crowded = model(clients=8, think=0.001, load_dependence=busy)
    plain = model(clients=8, think=0.001, load_dependence=None)
    there, here = (estimate(m).tasks["S"].throughput for m in (crowded, plain))
    assert here > 300.0
    assert there == pytest.approx(here)
    assert model_from_json(model_to_json(crowded)) == crowded


@pytest.mark.parametrize("above", [0.5, float("inf"), "4"])
def test_an_impossible_limit_names_its_field(above: Any) -> None:
    """It is so many times the last rate."""
    with pytest.raises(ModelError, match=r"load_dependence\.above"):
        replace(LOAD_DEPENDENT, above=above)


def test_a_comparison_tells_what_differs() -> None:
    """Two models that differ in nothing else are not the same."""
    other = replace(LOAD_DEPENDENT, above=1.0, demands={"/e/:work": (0.002, 0.0), "front": (0.0004, 0.0)})
    found = {c.field: c.texts() for c in compare(model(), model(load_dependence=other))}
    assert found == {
        "load_dependence.above": ("4", "1"),
        "load_dependence.demands of '/e/:work'": ("0.001, 0", "0.002, 0"),
    }
    assert {c.field for c in compare(model(), model(load_dependence=None))} >= {"load_dependence"}
    assert not list(compare(model(), model()))


def test_times_are_those_of_the_load_that_is_simulated() -> None:
    """Not of one that was estimated too high: these calls wait for their thread longer than estimates say."""
    called = Task(
        name="T",
        threads=1,
        processor="host",
        entries=(
            Entry(
                name="/t/",
                start="work",
                activities=(Activity(name="work", demand=Exponential(0.01), delay=Constant(0.0)),),
            ),
        ),
    )
    asked = model(4, 0.0, LoadDependence(rates=(10.0, 1000.0), demands={"/e/:work": (0.02, 0.0)}))
    service = asked.task("S")
    (entry,) = service.entries
    calls = replace(entry.activities[0], calls=(Call(task="T", entry="/t/"),))
    service = replace(service, entries=(replace(entry, activities=(calls,)),))
    asked = replace(asked, tasks=tuple(service if t.name == "S" else t for t in (*asked.tasks, called)))
    estimated = prepared(asked, observed_load).load
    found = simulate(asked, precision=0.01)
    throughput = found.tasks["S"].throughput.mean
    assert estimated is not None
    assert found.demands_at is not None
    assert estimated.rates["S"] > 1.05 * throughput
    assert found.demands_at.rates["S"] == pytest.approx(throughput, rel=0.03)


def test_a_trial_that_shows_nothing_leaves_the_estimate() -> None:
    """Cycles may be too rare to be seen in a moment."""
    asked = model(2, 0.1)
    assert prepared(asked, observed_load, trial=lambda _: None).load == prepared(asked, observed_load).load


def test_what_rises_with_the_rate_is_found_in_few_trials() -> None:
    """Work becomes cheaper as its rate rises, so what a trial shows lies short of where the next one leads."""
    asked = model(2, 0.1)
    tried: list[float] = []

    def trial(ready: Model) -> Observed:
        """A system of which 60 % of any change of the assumed rate comes back: 80 per second settle."""
        extra = demand(ready) - demand(at_rates(asked, {"S": 80.0}))
        tried.append(extra)
        return Observed({"U": 80.0 - 40_000 * extra}, {"host": 0.1}, {"S": 0.2, "U": 1.0})

    ready = prepared(asked, observed_load, trial=trial)
    assert ready.load is not None
    assert ready.load.rates["S"] == pytest.approx(80.0, rel=0.02)
    assert abs(tried[-1]) < abs(tried[0]) / 5


def test_arrivals_from_outside_need_no_trial() -> None:
    """Their rates are known."""
    asked = model(1, 0.0)
    users = asked.task("U")
    cycle = replace(users.entries[0], arrivals=Exponential(0.02))
    users = replace(users, threads=math.inf, think=None, entries=(cycle,))
    asked = replace(asked, tasks=(users, asked.task("S")))

    def trial(_: Model) -> Observed:
        raise AssertionError

    ready = prepared(asked, observed_load, trial=trial)
    assert ready.load is not None
    assert ready.load.rates["S"] == pytest.approx(50.0)
