"""Clients who keep the rhythm in which they began are simulated from many beginnings."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, model, ps, seq, service

from mup.errors import LimitError, SimulationError
from mup.lqn import Constant, Distribution, Exponential, Model, Uniform
from mup.lqn.edits import with_clients
from mup.lqn.files import read_model
from simulator import Result, simulate
from simulator.api import compiled
from simulator.figures.runs.engines import Engine, engine_of
from simulator.figures.runs.replicated import (
    FEWEST,
    FEWEST_ROUGH,
    RUN_SECONDS,
    Need,
    Pool,
    Replication,
    run_seeds,
)
from simulator.figures.runs.rhythm import keeps, relaxation_seconds
from simulator.machine.budget import Budget, Reached, limit_error
from simulator.machine.recording import Samples
from simulator.program import Program
from simulator.studies.prediction import RealRun, predict_interval
from simulator.studies.rehearsal import rehearse
from simulator.studies.whatif import Scenario

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
THINK = 5.0


def shop(number: int, think: Distribution, work: Distribution) -> Model:
    """Clients that think and are served by one thread."""
    return model(clients(number, think, "A.a"), service("A", entry("a", act("w", delay=work)), threads=1))


def teachers(number: int) -> Model:
    """An example whose users all think equally long, four times as fast as they do there."""
    read = with_clients(read_model(str(EXAMPLES / "tms" / "model.json")), number)
    (task,) = read.reference_tasks
    (cycle,) = task.entries
    faster = [
        replace(a, delay=Constant(a.delay.mean / 4)) if a.kind == "think" and a.delay is not None else a
        for a in cycle.activities
    ]
    return read.with_task(replace(task, entries=(replace(cycle, activities=tuple(faster)),)))


@pytest.mark.parametrize("work", [0.1, 0.5])
def test_clients_forget_as_the_variation_of_their_cycles_says(work: float) -> None:
    """Cycles of 5 s and an exponential time: C (C / (2 pi s))^2."""
    cycle = THINK + work
    expected = cycle * (cycle / (2 * math.pi * work)) ** 2
    program = compiled(shop(8, Constant(THINK), exp(work)))
    rates = [1 / relaxation_seconds(program, seed) for seed in range(60)]
    assert np.mean(rates) == pytest.approx(1 / expected, rel=0.25)


@pytest.mark.parametrize(
    ("tested", "keep"),
    [
        pytest.param(shop(8, Constant(THINK), Constant(0.1)), True, id="always the same"),
        pytest.param(shop(8, Constant(THINK), exp(0.01)), True, id="nearly the same"),
        pytest.param(shop(8, Constant(THINK), exp(5.0)), False, id="much work"),
        pytest.param(shop(8, Exponential(THINK), Constant(0.1)), False, id="thought at random"),
        pytest.param(shop(1, Constant(THINK), Constant(0.1)), False, id="alone"),
    ],
)
def test_who_keeps_a_rhythm(tested: Model, keep: bool) -> None:
    """Those whose cycles hardly vary, if there are others to meet."""
    assert keeps(relaxation_seconds(compiled(tested), 1), THINK) == keep


def test_a_client_that_cannot_be_run_alone_is_no_reason() -> None:
    """A cycle of more steps than are looked at says nothing."""
    long = entry("a", *(act(f"w{k}", delay=Constant(1e-6)) for k in range(2)), arcs=seq("w0", "w1"))
    many = clients(2, Constant(1e-9), "A.a")
    tested = model(many, service("A", long, threads=1))
    assert relaxation_seconds(compiled(tested), 0) > 0
    loud = model(many, service("A", entry("a", act("w", exp(1.0))), processor="cpu"), processors=(ps(),))
    assert not keeps(relaxation_seconds(compiled(loud), 0), 1.0)


@pytest.mark.slow
def test_seeds_agree() -> None:
    """Each run of one rhythm sees its own; runs of many agree within their intervals."""
    tested = teachers(16)
    seen = [simulate(tested, precision=0.02, seed=seed).cycle.response_time for seed in range(6)]
    for one, other in combinations(seen, 2):
        assert abs(one.mean - other.mean) <= one.ci95 + other.ci95
    alone = [simulate(tested, horizon=1500.0, seed=seed) for seed in range(6)]
    assert all(any("rhythm" in warning for warning in result.warnings) for result in alone)
    means = [result.cycle.response_time.mean for result in alone]
    widest = max(result.cycle.response_time.ci95 for result in alone)
    assert max(means) - min(means) > 10 * widest


def test_figures_are_those_of_rehearsals() -> None:
    """The same windows, by cycles begun in them instead of completed."""
    tested = teachers(32)
    seen = simulate(tested, precision=0.02)
    each = seen.window_seconds / seen.replications
    practised = rehearse(
        tested, seconds=each, warmup=seen.warmup_seconds / seen.replications, precision=0.005, seed=500
    )
    for one, other in (
        (seen.cycle.response_time, practised.response_time),
        (seen.cycle.throughput, practised.throughput),
        (seen.cycle.response_time.p95, practised.response_time.p95),
    ):
        assert abs(one.mean - other.mean) <= 1.5 * (one.ci95 + other.ci95)


def test_both_engines_agree() -> None:
    """Beginnings, windows and single times are the same; sums are rounded elsewhere."""
    tested = shop(3, Constant(THINK), exp(0.02))
    found = [simulate(tested, precision=0.5, engine=engine) for engine in ("compiled", "reference")]
    assert found[0].cycle == found[1].cycle
    assert found[0].entries == found[1].entries
    busy, other = (result.tasks["U"].busy.mean for result in found)
    assert busy == pytest.approx(other, rel=1e-12)
    assert found[0].replications == found[0].batches == FEWEST_ROUGH
    assert found[0].to_json()["replications"] == FEWEST_ROUGH
    assert simulate(tested, precision=0.049).replications >= FEWEST


def test_a_run_of_one_rhythm_is_one_run() -> None:
    """Where clients forget soon enough, one run is as long as it takes them."""
    tested = shop(3, Constant(0.5), exp(0.023))
    found = simulate(tested, precision=0.2)
    relaxation = relaxation_seconds(compiled(tested), 0)
    assert found.replications == 1
    assert found.simulated_seconds >= 100 * relaxation > 200 * 0.523
    assert simulate(shop(3, Exponential(0.5), exp(0.023)), precision=0.2).simulated_seconds < 300


def test_too_few_events_for_many_beginnings() -> None:
    """Windows are shorter first; then one run is what there is, and it says so."""
    tested = shop(3, Constant(THINK), exp(0.02))
    whole = simulate(tested, precision=0.5)
    less = simulate(tested, precision=0.5, max_events=int(1.4 * whole.events))
    assert less.replications == whole.replications
    assert less.window_seconds < whole.window_seconds
    least = simulate(tested, precision=0.5, max_events=int(0.2 * whole.events))
    assert least.replications == 1
    assert any("rhythm" in warning for warning in least.warnings)


def test_requests_that_are_stuck_are_named() -> None:
    """A service that waits for itself while its threads are held: some clients never come back."""
    caller = service("A", entry("a", act("w", delay=Constant(0.01), calls="B.b")), threads=2)
    back = service("B", entry("b", act("w", delay=Constant(0.01), calls="A.c")))
    other = entry("c", act("w", delay=Constant(0.01)))
    tested = model(
        clients(8, Constant(1.0), "A.a"),
        replace(caller, entries=(*caller.entries, other)),
        back,
    )
    with pytest.raises(SimulationError, match="wait"):
        simulate(tested, precision=0.1)


def test_clients_that_are_stuck_while_others_go_on_are_named() -> None:
    """Two requests hold both threads of a service that is called back; other clients keep their rhythm."""
    caller = service("A", entry("a", act("w", delay=Constant(0.01), calls="B.b")), threads=2)
    back = service("B", entry("b", act("w", delay=Constant(0.01), calls="A.c")))
    stuck = replace(clients(8, Constant(0.2), "A.a"), name="V")
    tested = model(
        clients(4, Constant(THINK), "C.c"),
        stuck,
        replace(caller, entries=(*caller.entries, entry("c", act("w", delay=Constant(0.01))))),
        back,
        service("C", entry("c", act("w", delay=exp(0.01))), threads=1),
    )
    with pytest.raises(SimulationError, match="no client of 'V' completed a cycle") as caught:
        simulate(tested, precision=0.1)
    assert caught.value.where == "tasks['V']"


def test_a_few_who_think_at_random_are_not_stuck() -> None:
    """One client may think for much longer than a cycle usually takes; others keep their rhythm."""
    rare = replace(clients(1, Exponential(20.0), "A.a"), name="V")
    tested = model(
        clients(8, Constant(THINK), "A.a"),
        rare,
        service("A", entry("a", act("w", delay=exp(0.01))), threads=1),
    )
    found = simulate(tested, precision=0.05)
    assert found.replications >= FEWEST_ROUGH
    assert found.tasks["V"].throughput.mean == pytest.approx(1 / 20, rel=0.4)


def test_a_limit_leaves_the_runs_that_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than there were to be have an interval, too; a single one has none."""
    tested = shop(3, Constant(THINK), exp(0.02))
    whole = simulate(tested, precision=0.04)
    each = whole.events / whole.replications
    monkeypatch.setattr("simulator.api.need_of", lambda *_, **__: Need(1e9, 0.0, Replication(5.0, 60.0)))
    cut = simulate(tested, precision=0.001, max_events=int(6 * each))
    assert 2 <= cut.replications < FEWEST
    assert cut.limit is not None
    assert any("requested precision" in warning for warning in cut.warnings)
    with pytest.raises(LimitError):
        simulate(tested, precision=0.001, max_events=int(0.5 * each))


def interval(result: Result, seconds: float, repeats: int = 1) -> float:
    """Return the logarithmic width of the prediction interval of the mean response time."""
    found = predict_interval(Scenario((), teachers(16)), result, RealRun(seconds, repeats)).response_time
    return math.log(found.high / found.low)


def test_a_longer_run_does_not_average_its_rhythm_out() -> None:
    """Ten minutes of the same rhythm say no more about others than one; two runs do."""
    seen = simulate(teachers(16), precision=0.02)
    once = interval(seen, 60.0)
    assert interval(seen, 600.0) == pytest.approx(once, rel=0.05)
    assert interval(seen, 15.0) == pytest.approx(2 * once, rel=0.05)
    assert interval(seen, 60.0, repeats=4) == pytest.approx(once / 2, rel=0.1)


def test_more_runs_are_advised_not_longer_ones() -> None:
    """What differs from run to run is the rhythm."""
    seen = simulate(teachers(16), precision=0.02)
    advice = predict_interval(Scenario((), teachers(16)), seen, RealRun(60.0, 1)).advice
    assert advice.part == "measurement"
    assert advice.text.startswith("measure more often: clients keep the rhythm")
    assert "10 runs of 60 s (--repeats)" in advice.text


def test_a_real_run_has_a_percentile_of_its_own() -> None:
    """Rehearsals of other seeds land in the interval about as often as it says."""
    tested = teachers(32)
    seen = simulate(tested, precision=0.02)
    spread = seen.cycle.response_time.p95.of_runs
    assert spread is not None
    own = predict_interval(Scenario((), tested), seen, RealRun(60.0, 1)).p95
    landed = []
    for seed in range(1000, 1020):
        warmup = seen.warmup_seconds / seen.replications
        run = rehearse(tested, seconds=60.0, warmup=warmup, precision=0.9, seed=seed)
        landed.append(own.contains(run.response_time.p95.mean))
    assert sum(landed) >= 18


def test_single_times_are_thinned_out_evenly() -> None:
    """Whatever is kept of many replications has the same shares of each, and of both kinds."""
    rng = np.random.default_rng(3)
    pool = Pool(2, 1000, common=True)
    lengths = Replication(1.0, 10.0)
    for number in range(20):
        moments = [np.sort(rng.uniform(0.0, 11.0, size)) for size in (600, 200)]
        pool.add([Samples.of(at, np.full(len(at), float(number)), 0) for at in moments], lengths, number)
    many, few = pool.samples()
    assert many.mask == few.mask > 0
    assert 400 < len(many) <= 1000
    assert len(few) / len(many) == pytest.approx(1 / 3, rel=0.25)
    ends, numbers = many.unordered()
    assert (ends // 10.0 == numbers).all()
    assert np.bincount(numbers.astype(int), minlength=20).min() > 5


def test_seeds_differ() -> None:
    """The first replication has the seed itself; no other has that of another study's first."""
    first, second = run_seeds(3, 0, 5), run_seeds(4, 0, 5)
    assert first[0] == 3
    assert not set(first) & set(second)
    assert run_seeds(3, 2, 2) == first[2:4]


def bunching(number: int, threads: int) -> Model:
    """Clients that think, make a long request, and then short ones without thinking, several times over."""
    steps = []
    for page in range(4):
        steps.append(act(f"think{page}", delay=Constant(0.4), kind="think"))
        steps.append(act(f"page{page}", calls="A.long"))
        steps += [act(f"file{page}_{n}", calls="A.short") for n in range(6)]
    served = [entry(name, act("w", delay=Uniform(0.9 * mean, 1.1 * mean))) for name, mean in TIMES.items()]
    return model(clients(number, None, body=entry("cycle", *steps)), service("A", *served, threads=threads))


TIMES = {"long": 0.1, "short": 0.004}


def test_clients_who_bunch_are_looked_at_once_they_have() -> None:
    """They come evenly spread, and those who have waited for each other go on together."""
    tested = bunching(30, 7)
    seen = simulate(tested, precision=0.01, seed=1)
    assert seen.warmup_seconds / seen.replications > RUN_SECONDS
    assert any("stay together" in warning for warning in seen.warnings)
    late = simulate(tested, horizon=4000.0, seed=2)
    assert seen.cycle.response_time.mean == pytest.approx(late.cycle.response_time.mean, rel=0.01)
    soon = rehearse(tested, seconds=RUN_SECONDS / 2, warmup=4.0, precision=0.01, seed=3)
    assert soon.response_time.mean < 0.97 * seen.cycle.response_time.mean


def test_a_horizon_holds_fewer_beginnings_then() -> None:
    """As many seconds as it has room for, whatever each beginning takes."""
    tested = bunching(30, 7)
    whole = simulate(tested, precision=0.01, seed=1)
    seen = simulate(tested, horizon=whole.simulated_seconds, seed=1, many_beginnings=True)
    assert seen.replications == whole.replications
    assert seen.cycle.response_time.mean == pytest.approx(whole.cycle.response_time.mean, rel=0.01)


def test_clients_who_do_not_bunch_are_looked_at_soon() -> None:
    """Few clients hardly ever wait: nothing changes over a window."""
    seen = simulate(bunching(4, 7), precision=0.01, seed=1)
    assert seen.replications >= FEWEST
    assert seen.warmup_seconds / seen.replications < RUN_SECONDS
    assert not any("stay together" in warning for warning in seen.warnings)


def test_too_few_events_for_longer_ones_leave_those_there_are() -> None:
    """A limit that the first ones nearly use up is no error."""
    tested = bunching(30, 7)
    least = simulate(tested, precision=0.5, seed=1).events
    first = simulate(tested, precision=0.01, seed=1, max_events=least // 2)
    for limit in (first.events + 1, 2 * first.events, 4 * first.events):
        seen = simulate(tested, precision=0.01, seed=1, max_events=limit)
        assert seen.replications >= FEWEST_ROUGH
        assert seen.events <= 1.2 * limit


def test_a_limit_that_ends_longer_runs_leaves_the_shorter_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their figures are there already."""
    tested = bunching(30, 7)
    engines = engine_of
    made = 0

    def limited(name: str, program: Program, seed: int) -> Engine:
        nonlocal made
        made += 1
        return engines(name, program, seed) if made <= FEWEST else _Ended(engines(name, program, seed))

    monkeypatch.setattr("simulator.api.engine_of", limited)
    seen = simulate(tested, precision=0.01, seed=1)
    assert made == FEWEST + 1
    assert seen.replications == FEWEST
    assert seen.limit is not None


class _Ended:
    """An engine whose budget is used up at once."""

    def __init__(self, engine: Engine) -> None:
        self.events = engine.events

    def run_until(self, time: float, budget: Budget | None = None) -> None:
        assert budget is not None
        raise limit_error(Reached(budget.study, "seconds", 1.0), where="test")
