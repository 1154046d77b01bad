"""Does a plan name the cheapest deployment, and say what is around it, without looking at all of them?"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import SimulationError, UsageError
from mup.lqn import Constant, Model, Processor
from mup.lqn.edits import with_arrivals, with_clients
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.uncertainty import Replicate, Uncertainty
from simulator import Figure, simulate
from simulator.machine.budget import Budget
from simulator.studies.planning.capacity import Capacity, alone, needed_capacity
from simulator.studies.planning.levers import FASTER, levers
from simulator.studies.planning.load import largest_load
from simulator.studies.planning.paired import PairedRuns
from simulator.studies.planning.plan import plan
from simulator.studies.planning.prices import DEFAULT, Prices, prices_from
from simulator.studies.planning.search import Frontier, blame
from simulator.studies.planning.slo import Verdict, objective
from simulator.studies.planning.space import Point, Space
from simulator.studies.whatif import Axis, Change


def chain(count: int = 12, *, think: float = 0.1) -> Model:
    """Users of A, which calls B; both have a pool and a processor of their own."""
    return model(
        clients(count, exp(think), "A./a/"),
        service("A", entry("/a/", act("work", exp(0.004), calls="B./b/")), threads=1, processor="cpuA"),
        service("B", entry("/b/", act("work", exp(0.01))), threads=1, processor="cpuB"),
        processors=(ps("cpuA"), ps("cpuB")),
    )


def axis(kind: str, name: str, *values: int) -> Axis:
    return tuple(Change(kind, name, value) for value in values)


def small_space(loaded: Model, prices: Prices = DEFAULT) -> Space:
    """96 deployments of the chain."""
    axes = (
        axis("pool", "A", 1, 2, 4, 8),
        axis("pool", "B", 1, 2, 3, 4),
        axis("cores", "cpuB", 1, 2, 3),
        axis("cores", "cpuA", 1, 2),
    )
    return Space(loaded, axes, prices)


# The search alone, on rules instead of simulations.


def brute(sizes: tuple[int, ...], fails: Callable[[Point], bool], space: Space) -> Point | None:
    points = itertools.product(*(range(size) for size in sizes))
    return min((p for p in points if not fails(p)), key=space.rank, default=None)


@pytest.mark.parametrize("seed", range(30))
def test_the_frontier_finds_what_a_list_of_all_finds(seed: int) -> None:
    """With random prices, and monotone rules about several axes at once."""
    rng = random.Random(seed)
    space = small_space(chain(), Prices(core=rng.random(), replica=0.1, thread=rng.random() / 5))
    sizes = tuple(map(len, space.axes))
    weights = [[rng.random() for _ in sizes] for _ in range(2)]
    needs = [
        0.6 * sum(w * (s - 1) for w, s in zip(row, sizes, strict=True)) * rng.random() for row in weights
    ]

    def fails(point: Point) -> bool:
        sums = [sum(w * at for w, at in zip(row, point, strict=True)) for row in weights]
        return any(total < need for total, need in zip(sums, needs, strict=True))

    frontier, asked = Frontier(space), 0
    while (candidate := frontier.take()) is not None and fails(candidate):
        asked += 1
        frontier.rule_out(blame(candidate, space.largest, fails))
    assert candidate == brute(sizes, fails, space)
    assert asked < math.prod(sizes) / 2


def test_what_is_to_blame_is_a_smallest_set_raised_as_far_as_it_fails() -> None:
    """A deployment that fails for want of the second thing rules out all with as little of it."""
    found = blame((0, 1, 0, 2), (5, 5, 5, 5), lambda p: p[1] < 3)
    assert found == (5, 2, 5, 5)
    found = blame((0, 1, 0, 2), (5, 5, 5, 5), lambda p: p[0] + p[3] < 4)
    assert found[1:3] == (5, 5)
    assert found[0] + found[3] == 3


def test_where_more_harms_only_what_failed_is_ruled_out() -> None:
    """A deployment that fails although the largest with its values does not says nothing about others."""
    assert blame((1, 1), (3, 3), lambda p: p == (1, 1)) == (1, 1)


# Deployments and prices.


def test_a_deployment_is_the_model_with_its_changes() -> None:
    """The shortcut through a model without insides makes what edits one by one make."""
    space = small_space(chain())
    point = (2, 1, 2, 1)
    edited = space.model
    for change in space.changes(point):
        edited = change.apply(edited)
    assert space.scenario(point).model == edited


def test_replicas_bring_the_core_they_share() -> None:
    """The part of a processor that belongs to a task alone grows with its replicas, and is not paid twice."""
    own = Processor(name="gil", cores=1, parent="cpuA")
    loaded = chain()
    loaded = Model(
        name="m",
        processors=(*loaded.processors, own),
        tasks=tuple(
            t if t.name != "A" else service("A", *t.entries, threads=2, processor="gil") for t in loaded.tasks
        ),
    )
    space = Space(loaded, (axis("replicas", "A", 1, 2),), Prices(core=1.0, replica=0.5, thread=0.25))
    assert space.scenario((1,)).model.processor("gil").cores == 2
    assert space.cost((0,)) == pytest.approx(2 * 1.0 + 2 * 0.5 + 3 * 0.25)
    assert space.cost((1,)) == pytest.approx(2 * 1.0 + 3 * 0.5 + 5 * 0.25)


def test_arrivals_have_deployments_too() -> None:
    """The load may come from outside."""
    space = small_space(with_arrivals(chain(), 40.0))
    assert space.scenario(space.largest).model.task("U").is_open


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"core": -1}, "core: a price must be a number >= 0, got -1"),
        ({"core": True}, "core: a price must be a number >= 0, got True"),
        ({"cores": {"host": "cheap"}}, "cores.host: a price must be a number >= 0, got 'cheap'"),
        ({"cores": 3}, "cores: must be a table"),
        ({"kores": 3}, "unknown field 'kores'; did you mean 'cores'"),
        ({}, "every price is 0"),
        ({"core": float("nan")}, "core: a price must be a number >= 0"),
    ],
)
def test_wrong_prices_are_refused(data: dict[str, object], message: str) -> None:
    """The field is named."""
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        prices_from(data)


# Objectives.


def test_objectives_are_about_what_they_name() -> None:
    """Clients, an endpoint, a task or processor, or all of them."""
    loaded = chain()
    result = simulate(loaded, precision=0.05)

    def figure(name: str, of: str = "") -> Figure | None:
        return objective(loaded, name, of, 1.0).measured(result)

    assert figure("p95") == result.cycle.response_time.p95
    assert figure("mean", "U") == result.tasks["U"].response_time
    b = result.entries["B/b/"].response_time
    assert b is not None
    assert figure("p99", "B/b/") == b.p99
    assert figure("throughput", "B/b/") == result.entries["B/b/"].throughput
    assert figure("utilization", "cpuB") == result.processors["cpuB"].utilization
    shares = [t.utilization.mean for t in result.tasks.values() if t.utilization is not None]
    fullest = figure("utilization")
    assert fullest is not None
    assert fullest.mean == max(shares)


def test_verdicts_leave_room_for_chance() -> None:
    """Near the limit the verdict is open; on either side of it the direction counts."""
    loaded = chain()
    result = simulate(loaded, precision=0.05)
    p95, rate = result.cycle.response_time.p95, result.cycle.throughput
    verdicts = [
        objective(loaded, "p95", "", p95.mean + k * p95.ci95).verdict(result) for k in (-2.0, 0.5, 2.0)
    ]
    assert verdicts == [Verdict.FAILS, Verdict.CLOSE, Verdict.MEETS]
    verdicts = [
        objective(loaded, "throughput", "", rate.mean + k * rate.ci95).verdict(result)
        for k in (-2.0, 0.5, 2.0)
    ]
    assert verdicts == [Verdict.MEETS, Verdict.CLOSE, Verdict.FAILS]


@pytest.mark.parametrize(
    ("name", "of", "limit", "message"),
    [
        ("p97", "", 1.0, "there is no p97: simulations tell p50, p90, p95, p99"),
        ("median", "", 1.0, "no figure 'median'"),
        ("p95", "C/c/", 1.0, "no endpoint, query or kind of clients 'C/c/'"),
        ("utilization", "cpu", 0.5, "nothing that can be full is called 'cpu'"),
        ("utilization", "", 1.5, "a utilization is at most 100 %"),
        ("p95", "", 0.0, "the limit of p95 must be a number > 0"),
    ],
)
def test_objectives_that_make_no_sense_are_refused(name: str, of: str, limit: float, message: str) -> None:
    """One message each."""
    with pytest.raises(UsageError, match=message):
        objective(chain(), name, of, limit)


# Bounds.


def test_what_cannot_do_the_work_is_known_without_simulating_it() -> None:
    """40 arrivals/s of 10 ms keep 0.4 of B's threads and cores busy; 90 ms per cycle make 120 clients busy it more."""
    loaded = with_arrivals(chain(), 250.0)
    space = small_space(loaded)
    largest = space.scenario(space.largest).model
    slos = [objective(loaded, "mean", "", 1.0)]
    capacity = needed_capacity(largest, slos, alone(largest))
    lacking = {ref.label for ref in capacity.lacking(space.bare(space.smallest))}
    assert lacking == {"task A", "task B", "processor cpuB"}
    assert capacity.lacking(space.bare(space.largest)) == []


def test_nothing_is_ruled_out_where_the_load_does_not_say_how_much_there_is() -> None:
    """An objective of an endpoint alone does not say how many cycles there have to be."""
    loaded = chain()
    slos = [objective(loaded, "p95", "B/b/", 0.1)]
    assert needed_capacity(loaded, slos, alone(loaded)) == Capacity({})


# Plans.


def truth(space: Space, limit: float) -> Point:
    """Return the cheapest deployment by simulating one after the other, the cheapest first."""
    slo = objective(space.model, "p95", "", limit)
    points = itertools.product(*(range(len(a)) for a in space.axes))
    return next(
        point
        for point in sorted(points, key=space.rank)
        if slo.verdict(simulate(space.scenario(point).model, precision=0.03, seed=5)) is Verdict.MEETS
    )


@pytest.mark.slow
def test_the_cheapest_of_a_grid_is_found() -> None:
    """With fewer simulations than there are deployments; what is next cheaper fails."""
    space, limit = small_space(chain(20)), 0.05
    slos = [objective(space.model, "p95", "", limit)]
    assert plan(space, slos, front=False).effort.simulated < space.size / 3
    found = plan(space, slos)
    assert found.proven
    assert found.best.changes == space.changes(truth(space, limit))
    assert found.next_cheaper is not None
    assert found.next_cheaper.cost < found.best.cost
    assert found.next_cheaper.failing(slos) == slos
    # Of two on the front the dearer one is better.
    assert found.best in found.front
    assert len(found.front) > 1
    for cheaper, dearer in itertools.pairwise(found.front):
        assert cheaper.cost < dearer.cost
        assert cheaper.seen.limit_ratio(slos) > dearer.seen.limit_ratio(slos)


@pytest.mark.slow
def test_an_answer_does_not_depend_on_the_number_of_workers() -> None:
    """The same deployments are simulated, with the same seeds."""
    space = Space(chain(8), (axis("pool", "A", 1, 2, 4), axis("pool", "B", 1, 2)), DEFAULT)
    slos = [objective(space.model, "p95", "", 0.09)]
    one, four = (plan(space, slos, workers=n, front=False) for n in (1, 4))
    assert one.best == four.best
    assert one.effort == four.effort


def test_what_one_client_alone_does_not_get_is_refused() -> None:
    """The floor is named."""
    space = small_space(chain())
    with pytest.raises(UsageError, match=r"p95 <= 5 ms cannot be met: a client who is alone has \d+"):
        plan(space, [objective(space.model, "p95", "", 0.005)])


def test_what_the_largest_deployment_does_not_meet_is_refused() -> None:
    """How near it comes is said, and what is full there."""
    space = Space(with_clients(chain(think=0.01), 60), (axis("pool", "A", 1, 2),), DEFAULT)
    with pytest.raises(
        UsageError, match="no deployment meets the objectives, not even the largest one"
    ) as caught:
        plan(space, [objective(space.model, "p95", "", 0.06)])
    assert "is the bottleneck there (100 % busy)" in caught.value.hint


def test_a_load_that_no_deployment_can_do_is_refused() -> None:
    """Arrivals that pile up are no figure."""
    space = Space(with_arrivals(chain(), 500.0), (axis("pool", "A", 1, 2),), DEFAULT)
    with pytest.raises(UsageError, match="the largest deployment cannot do the work"):
        plan(space, [objective(space.model, "p95", "", 5.0)])


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((), "nothing to vary"),
        ((axis("pool", "A", 1), axis("pool", "A", 2)), "pool of A is given twice"),
        ((axis("pool", "C", 1),), "no task 'C'"),
        ((axis("cores", "gpu", 1),), "no processor 'gpu'"),
    ],
)
def test_spaces_that_make_no_sense_are_refused(axes: tuple[Axis, ...], message: str) -> None:
    """One message each, before anything is simulated."""
    with pytest.raises(UsageError, match=message):
        Space(chain(), axes, DEFAULT)


# The largest load.


@pytest.mark.slow
def test_the_largest_load_meets_the_objectives_and_more_does_not() -> None:
    """An M/M/1 queue of arrivals has a known 90th percentile."""
    loaded = model(
        clients(1, exp(1.0), "S./s/"),
        service("S", entry("/s/", act("work", exp(0.01))), threads=1),
    )
    open_ = with_arrivals(loaded, 10.0)
    found = largest_load(open_, [objective(open_, "p90", "", 0.05)])
    # ln(10) / (100 - rate) = 0.05
    assert float(found.change.value) == pytest.approx(100 - math.log(10) / 0.05, rel=0.03)
    assert found.beyond is not None
    assert found.failing == list(found.slos)


def test_a_throughput_has_no_largest_load() -> None:
    """It is met from some load on."""
    with pytest.raises(UsageError, match="a lower limit of throughput is met from some load on"):
        largest_load(chain(), [objective(chain(), "throughput", "", 5.0)])


# What to make faster.


@pytest.mark.slow
def test_effects_are_those_of_the_changed_model() -> None:
    """B is full: 20 % faster it helps about as much as a simulation of that says; A matters less."""
    loaded = chain(20)
    slos = [objective(loaded, "mean", "", 0.2)]
    found = levers(loaded, slos, max_seconds=600)
    by_name = {f"{lever.kind} {lever.name}": lever for lever in found.found}
    effect = by_name["endpoint B/b/"].effects[0]
    from mup.lqn.time_edits import with_scaled_time

    faster = with_scaled_time(loaded, ("demand",), "B/b/", 1 - FASTER)
    before, after = (simulate(m, precision=0.01, seed=77).cycle.response_time for m in (loaded, faster))
    slack = math.hypot(before.ci95, after.ci95) + effect.ci95
    assert abs(effect.mean - (after.mean - before.mean)) < 1.5 * slack
    assert abs(by_name["endpoint A/a/"].effects[0].mean) < abs(effect.mean) / 2
    assert by_name["line B/b/:work"].effects[0].mean == pytest.approx(effect.mean)
    assert not by_name["line B/b/:work"].simulated
    helping = [lever for lever in found.found if lever.gain(slos, 0) > lever.effects[0].ci95]
    assert helping[0].kind in ("endpoint", "pool", "cores")
    assert {"pool A", "pool B", "cores cpuA", "cores cpuB"} <= by_name.keys()


@pytest.mark.slow
def test_calibration_error_widens_the_intervals_of_effects() -> None:
    """Replicates that disagree about a demand disagree about what it is worth to halve it."""
    loaded = chain(20)
    rng = random.Random(1)
    replicates = tuple(Replicate(demands={"B/b/:work": math.exp(rng.gauss(0, 0.1))}) for _ in range(12))
    unsure = Model(
        name=loaded.name,
        processors=loaded.processors,
        tasks=loaded.tasks,
        uncertainty=Uncertainty(replicates=replicates),
    )
    slos = [objective(loaded, "mean", "", 0.2)]
    sure, spread = (
        next(x for x in levers(m, slos, max_seconds=600).found if x.name == "B/b/").effects[0]
        for m in (loaded, unsure)
    )
    assert spread.ci95 > 2 * sure.ci95


@pytest.mark.slow
@pytest.mark.parametrize(
    "speeds", [pytest.param({"sd": 0.1}, id="random"), pytest.param({"sd": 0.0, "reach": 0.2}, id="range")]
)
def test_the_speed_of_the_machine_widens_the_intervals_of_effects(speeds: dict[str, float]) -> None:
    """Users queue for a processor that is nearly full: what a faster query is worth depends on its speed."""
    loaded = chain(12)
    slos = [objective(loaded, "mean", "", 0.2)]
    machine = MachineSpeed(processors=("cpuA", "cpuB"), **speeds)
    steady, restless = (
        next(x for x in levers(loaded, slos, machine=one, max_seconds=600).found if x.name == "B/b/")
        for one in (None, machine)
    )
    assert restless.effects[0].ci95 > 2 * steady.effects[0].ci95
    assert restless.effects[0].mean == pytest.approx(steady.effects[0].mean, abs=restless.effects[0].ci95)


@pytest.mark.slow
def test_arrivals_that_a_slower_machine_could_not_serve_leave_the_machine_out() -> None:
    """That is said; only a model that cannot run at its own speed is an error."""
    only = model(
        clients(1, exp(0.1), "A./a/"),
        service("A", entry("/a/", act("work", exp(0.01))), threads=2, processor="cpuA"),
        processors=(ps("cpuA"),),
    )
    loaded = with_arrivals(only, 85.0)
    slos = [objective(loaded, "mean", "", 0.2)]
    machine = MachineSpeed(processors=("cpuA",), sd=0.14)
    restless, steady = (levers(loaded, slos, machine=one, max_seconds=600) for one in (machine, None))
    assert "cpuA" in restless.machine_left_out
    assert restless.found == steady.found
    assert not steady.machine_left_out
    with pytest.raises(SimulationError):
        levers(with_arrivals(only, 120.0), slos, machine=machine, max_seconds=600)


def test_the_speed_of_a_machine_that_does_no_work_changes_no_figure() -> None:
    loaded = chain(12)
    slo = objective(loaded, "mean", "", 0.2)
    machine = MachineSpeed(processors=("other",), sd=0.2)
    budget = Budget("pairs", seconds=600)
    alike, other = (PairedRuns(loaded, [slo], machine=one, budget=budget) for one in (None, machine))
    assert alike.figures([None]) == other.figures([None])


def test_the_probability_of_a_limit_is_that_of_the_interval() -> None:
    """At the upper end of a 95 % interval it is 97.5 %, at the lower end 2.5 %, in the middle a half."""
    from simulator.studies.planning.chance import outlook
    from simulator.studies.prediction import RealRun, probability_within
    from simulator.studies.whatif import Scenario

    loaded = chain()
    scenario = Scenario((), loaded)
    ahead = outlook(
        scenario, [objective(loaded, "p95", "", 0.05)], RealRun(60.0), precision=0.03, max_seconds=600
    )
    p95, rate = ahead.prediction.p95, ahead.prediction.throughput

    def chance(key: str, figure: Figure, limit: float, *, at_least: bool = False) -> float:
        return probability_within(
            ahead.prediction, scenario, ahead.result, (key, ""), figure, limit, at_least=at_least
        )

    time, throughput = ahead.result.cycle.response_time.p95, ahead.result.cycle.throughput
    assert chance("p95", time, p95.high) == pytest.approx(0.975, abs=1e-6)
    assert chance("p95", time, p95.low) == pytest.approx(0.025, abs=1e-6)
    assert chance("p95", time, time.mean) == pytest.approx(0.5, abs=1e-6)
    assert chance("throughput", throughput, rate.low, at_least=True) == pytest.approx(0.975, abs=1e-6)
    assert ahead.probabilities == (chance("p95", time, 0.05),)


def test_several_objectives_are_met_together_at_least_as_often_as_bonferroni_says() -> None:
    """Whatever their dependence: 1 - the sum of the probabilities of failing."""
    from simulator.studies.planning.chance import outlook
    from simulator.studies.prediction import RealRun
    from simulator.studies.whatif import Scenario

    loaded = chain()
    slos = [objective(loaded, "p95", "", 0.055), objective(loaded, "throughput", "", 90.0)]
    ahead = outlook(Scenario((), loaded), slos, RealRun(60.0), precision=0.03, max_seconds=600)
    assert ahead.probability == pytest.approx(max(0.0, sum(ahead.probabilities) - 1))


def test_constant_times_have_no_chance() -> None:
    """A figure that does not vary keeps its limit, or does not."""
    loaded = model(
        clients(1, Constant(1.0), "S./s/"), service("S", entry("/s/", act("work", Constant(0.01))), threads=1)
    )
    from simulator.studies.planning.chance import outlook
    from simulator.studies.prediction import RealRun
    from simulator.studies.whatif import Scenario

    slos = [objective(loaded, "p95", "", limit) for limit in (0.009, 0.011)]
    ahead = outlook(Scenario((), loaded), slos, RealRun(60.0), max_seconds=600)
    assert ahead.probabilities == (0.0, 1.0)
