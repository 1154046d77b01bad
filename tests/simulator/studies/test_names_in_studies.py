"""Studies find the same under other names: predictions, what to measure next, what saturates, edits."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from random_models import random_model
from renaming import Renaming

from mup.lqn import (
    Activity,
    ActivityRef,
    Constant,
    Entry,
    EntryRef,
    Exponential,
    Model,
    Names,
    Replicate,
    Task,
    Uncertainty,
)
from mup.lqn.composition import certain_tasks, compose
from mup.lqn.routing_edits import with_count, with_probability
from mup.lqn.statistics import statistics
from mup.lqn.time_edits import mean_time, with_time
from mup.lqn.uncertainty import apply
from mup.lqn.visits import entry_rates
from simulator import simulate
from simulator.fluid.code import JoinRule
from simulator.networks.inlined import inline
from simulator.studies.advice import suspects
from simulator.studies.calibration_spread import Alternatives, spread, spread_jobs
from simulator.studies.prediction import RealRun, predict_interval
from simulator.studies.saturation import saturation
from simulator.studies.whatif import Scenario, bottleneck

EVENTS = 20_000


def uncertain(seed: int) -> Model:
    """Return a random model of which every number is uncertain."""
    model = random_model(seed, small=True)
    names, drawn = Names(model.tasks), random.Random(seed)

    def replicate() -> Replicate:
        odds: dict[str, tuple[float, ...]] = {}
        counts: dict[str, float] = {}
        for task in model.tasks:
            for entry in task.entries:
                for arc in entry.precedences:
                    keys = [names.activity(ActivityRef(task.name, entry.name, a)) for a in arc.pre]
                    if arc.fork == "or" and arc.probabilities is not None:
                        odds[keys[0]] = tuple(1 / len(arc.post) for _ in arc.post)
                    bodies = (ActivityRef(task.name, entry.name, body) for body in arc.bodies)
                    counts |= {names.activity(ref): drawn.uniform(0.9, 1.1) for ref in bodies}
        every = [names.activity(ref) for ref in names.activities()]
        return Replicate(
            demands={key: drawn.uniform(0.8, 1.2) for key in every},
            delays={key: drawn.uniform(0.8, 1.2) for key in every},
            fronts={t.name: drawn.uniform(0.8, 1.2) for t in model.tasks if t.front is not None},
            probabilities=odds,
            counts=counts,
        )

    return replace(model, uncertainty=Uncertainty(replicates=tuple(replicate() for _ in range(4))))


@pytest.mark.parametrize("seed", range(8))
def test_replicates_change_the_same_numbers(seed: int) -> None:
    """A replicate of the renamed model is the renamed replicate of the model."""
    model = uncertain(seed)
    renaming = Renaming.of(model, seed)
    other = renaming.model(model)
    assert model.uncertainty is not None
    assert other.uncertainty is not None
    for one, two in zip(model.uncertainty.replicates, other.uncertainty.replicates, strict=True):
        changed = apply(model, one)
        assert changed.tasks != model.tasks
        assert renaming.model(changed) == apply(other, two)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_predictions_and_their_advice_are_the_same(seed: int) -> None:
    """Intervals, their parts, suspects and the saturation do not depend on names."""
    found = []
    model = uncertain(seed)
    renaming = Renaming.of(model, seed)
    for tested in (model, renaming.model(model)):
        result = simulate(tested, precision=1e-9, max_events=EVENTS, may_pile_up=True)
        assert tested.uncertainty is not None
        replicates = Alternatives(tested.uncertainty.replicates)
        jobs = spread_jobs(Scenario((), tested), result, replicates, seed=0)
        seen = spread([job(lambda _: None) for job in jobs])
        known = suspects(tested)
        predicted = predict_interval(Scenario((), tested), result, RealRun(60), seen, known)
        found.append((result, predicted, known, saturation(replace(tested, uncertainty=None))))
    (result, one, known, full), (other_result, two, other_known, other_full) = found
    labels = renaming.labels(model)
    assert one.response_time == two.response_time
    assert one.p95 == two.p95
    assert one.throughput == two.throughput
    assert {renaming.tasks[t]: i for t, i in one.utilization.items()} == two.utilization
    assert one.missing == two.missing
    assert one.advice.part == two.advice.part
    texts = [renaming.tasks[s.label] if s.kind == "fronts" else labels["entries"][s.label] for s in known]
    assert [(s.label, s.kind, s.amount, s.effects.tolist()) for s in other_known] == [
        (text, s.kind, s.amount, s.effects.tolist()) for text, s in zip(texts, known, strict=True)
    ]
    assert (full.throughput, full.scale, full.confirmed) == (
        other_full.throughput,
        other_full.scale,
        other_full.confirmed,
    )
    assert list(full.bounds.values()) == list(other_full.bounds.values())
    limit, other_limit = bottleneck(model, result), bottleneck(renaming.model(model), other_result)
    assert (limit is None) == (other_limit is None)
    if limit is not None and other_limit is not None:
        assert limit[1].mean == pytest.approx(other_limit[1].mean, rel=0.05)


@pytest.mark.parametrize("seed", range(16))
def test_edits_and_counts_find_what_they_found_before(seed: int) -> None:
    """Every activity, branch and call can be named by the text that results have of it."""
    model = random_model(seed)
    renaming = Renaming.of(model, seed)
    other = renaming.model(model)
    before, after = Names(model.tasks), Names(other.tasks)
    assert statistics(model) == statistics(other)
    for source, rates in entry_rates(model).items():
        moved = {renaming.entry(EntryRef(*key)): rate for key, rate in rates.items()}
        assert entry_rates(other)[renaming.entry(EntryRef(*source))] == moved
    for ref, label in before.entries.items():
        assert mean_time(model, "demand", label) == mean_time(
            other, "demand", after.entries[renaming.entry(ref)]
        )
    for task, entry, activity in model.walk():
        ref = ActivityRef(task.name, entry.name, activity.name)
        key, moved_key = before.activity(ref), after.activity(renaming.activity(ref))
        changed = with_time(model, "delay", key, 2.5)
        assert renaming.model(changed) == with_time(other, "delay", moved_key, 2.5)
        for arc in entry.precedences:
            if arc.fork == "or" and activity.name in arc.post and len(arc.post) > 1:
                edited, same = with_probability(model, key, 0.5), with_probability(other, moved_key, 0.5)
                assert renaming.model(edited) == same
        for call in activity.calls:
            target = EntryRef(call.task, call.entry)
            texts = (
                f"{key}->{before.entries[target]}",
                f"{moved_key}->{after.entries[renaming.entry(target)]}",
            )
            if sum((c.task, c.entry) == target for c in activity.calls) == 1:
                assert renaming.model(with_count(model, texts[0], 2)) == with_count(other, texts[1], 2)


def station() -> Model:
    """One server of 20 ms, known to a fifth."""
    work = Activity(name="work", demand=Exponential(0.02), delay=Constant(0.0))
    entry = Entry(name="request", start="work", activities=(work,), arrivals=Exponential(0.1))
    replicates = tuple(Replicate(demands={"legacy.request:work": f}) for f in (0.8, 0.9, 1.1, 1.2))
    return Model(
        name="legacy",
        tasks=(Task(name="legacy", threads=1, entries=(entry,)),),
        uncertainty=Uncertainty(replicates=replicates),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_station_enters_where_it_entered_before(seed: int) -> None:
    """What replicates say of the rest of the model is kept, and the rest of the delay varies with the station."""
    model = uncertain(seed)
    renaming = Renaming.of(model, seed)
    other = renaming.model(model)
    more = Renaming(
        {**renaming.tasks, "legacy": "legacy"},
        {**renaming.entries, ("legacy", "request"): "request"},
        {**renaming.activities, ("legacy", "request", "work"): "work"},
    )
    before, after = Names(model.tasks), Names(other.tasks)
    for task, entry, activity in model.walk():
        if task.is_reference or entry.token or activity.interleaved:
            continue
        ref = ActivityRef(task.name, entry.name, activity.name)
        one = compose(model, before.activity(ref), station(), "x.json").model
        two = compose(other, after.activity(renaming.activity(ref)), station(), "x.json").model
        assert one.uncertainty is not None
        assert any("legacy.request:work" in r.demands for r in one.uncertainty.replicates)
        renamed = more.model(one)
        assert (renamed.tasks, renamed.uncertainty) == (two.tasks, two.uncertainty)
        assert certain_tasks(one) == certain_tasks(two) == ()


@pytest.mark.parametrize("join", ["siblings", "anonymous"])
@pytest.mark.parametrize("seed", range(20))
def test_positions_of_inlined_models_are_the_same(seed: int, join: JoinRule) -> None:
    """A flow is counted at as many positions, in the same states, with the same means."""
    model = random_model(seed, small=True, elements={"and", "delay", "or", "front"})
    found = [inline(m, join=join) for m in (model, Renaming.of(model, seed).model(model))]
    one, two = found
    assert (one.counts == two.counts).all()
    assert one.means.tolist() == two.means.tolist()
    assert len({key.text(Names(two.model.tasks)) for key in two.times}) == len(two.times)
