"""Prediction intervals contain real runs as often as they say, and list their parts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import gamma, lognorm, norm
from sim_models import act, choice, clients, entry, exp, machine_repair, model, service

from analyzer.calibration.fitting import fit
from analyzer.calibration.observed import FloatArray, Sample
from mup.errors import UsageError
from mup.lqn import (
    Constant,
    Discrepancy,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Front,
    Gamma,
    Hyperexponential,
    Lognormal,
    Model,
    Replicate,
    TruncatedNormal,
    Uncertainty,
    Weibull,
)
from mup.lqn.uncertainty import OneUser, apply
from simulator import Result, simulate
from simulator.studies.advice import suspects
from simulator.studies.calibration_spread import Alternatives, Spread, spread, spread_jobs
from simulator.studies.grids import run_scenarios
from simulator.studies.prediction import PARTS, RealRun, predict_interval
from simulator.studies.whatif import Change, Scenario, grid

CLIENTS, THINK, DEMAND = 8, 0.5, 0.1


def shop(demand: float = DEMAND, users: int = CLIENTS) -> Model:
    """One thread that serves thinking clients: its exact figures are known."""
    return model(
        clients(users, exp(THINK), "A.a"), service("A", entry("a", act("w", exp(demand))), threads=1)
    )


def bootstrap(
    generator: np.random.Generator, mean: float, rounds: int, count: int = 20
) -> tuple[float, list[float]]:
    """Explore: batch means of a demand. Return their mean, and factors on it from resampled batches."""
    batches = mean * generator.gamma(400, 1 / 400, size=rounds)
    found = float(batches.mean())
    stretch = math.sqrt(rounds / (rounds - 1))
    drawn = [float(generator.choice(batches, rounds).mean()) / found for _ in range(count)]
    return found, [1 + stretch * (factor - 1) for factor in drawn]


def known_spread(demand: float, factors: list[float]) -> Spread:
    """What simulations of all replicates would show, from exact figures."""
    exact = [machine_repair(CLIENTS, 1, THINK, demand * f) for f in factors]
    times, rates = np.log([r for _, r in exact]), np.log([x for x, _ in exact])
    busy = np.array([x * demand * f for (x, _), f in zip(exact, factors, strict=True)])
    variances = {
        ("response_time", ""): float(times.var(ddof=1)),
        ("p95", ""): float(times.var(ddof=1)),
        ("throughput", ""): float(rates.var(ddof=1)),
        ("utilization", "A"): float(busy.var(ddof=1)),
    }
    return Spread(len(factors), variances, tuple(range(len(factors))), tuple(times.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run_seconds", "error", "rounds"),
    [
        pytest.param(400, 0.0, 25, id="long-run", marks=pytest.mark.repeats),
        pytest.param(60, 0.0, 25, id="short-run", marks=pytest.mark.repeats),
        pytest.param(200, 0.05, 25, id="model-error"),
        pytest.param(1000, 0.0, 3, id="few-rounds", marks=pytest.mark.repeats),
    ],
)
def test_intervals_contain_the_measured_figures(run_seconds: float, error: float, rounds: int) -> None:
    """Of 160 systems, calibrated and measured with errors, 90 to 99 % lie inside their 95 % interval."""
    generator = np.random.default_rng(20)
    cases = 40
    inside = dict.fromkeys(("response_time", "throughput", "utilization"), 0)
    widths = []
    discrepancy = Discrepancy(
        points={"response_time": ((0.0, error, 0.0),), "throughput": ((0.0, 0.0, 0.0),)},
        systems=30,
        points_used=30,
    )
    for case in range(cases):
        demand, factors = bootstrap(generator, DEMAND, rounds)
        calibrated = replace(
            shop(demand),
            uncertainty=Uncertainty(
                replicates=tuple(Replicate(demands={"A.a:w": factor}) for factor in factors),
                discrepancy=discrepancy if error else None,
                batches=rounds,
            ),
        )
        predicted = simulate(calibrated, horizon=800.0, seed=case)
        run = RealRun(run_seconds)
        prediction = predict_interval(Scenario((), calibrated), predicted, run, known_spread(demand, factors))
        measured = simulate(shop(), horizon=run_seconds + 20, seed=5000 + case)
        luck = math.exp(error * generator.normal())
        inside["response_time"] += prediction.response_time.contains(measured.cycle.response_time.mean * luck)
        inside["throughput"] += prediction.throughput.contains(measured.cycle.throughput.mean)
        busy = measured.tasks["A"].utilization
        assert busy is not None
        inside["utilization"] += prediction.utilization["A"].contains(busy.mean)
        widths.append(prediction.response_time.half_width / prediction.response_time.mean)
    # A binomial of 40 cases at 95 % is below 34 once in three hundred times.
    assert all(count >= 34 for count in inside.values()), inside
    assert float(np.mean(widths)) < 0.25, "intervals that contain everything say nothing"


FEW, MANY = 1, 8
"""Users: there is no waiting, and the only thread is nearly always busy."""
ROUNDS, EACH = 20, 20
"""Rounds of an exploration, and executions in each of them."""


def drawn_times(kind: str, generator: np.random.Generator, count: int) -> FloatArray:
    """Return times of mean 0.1 s: exponential, with a heavy tail, or of a cache that misses one in ten."""
    if kind == "exponential":
        return generator.exponential(DEMAND, count)
    if kind == "heavy":
        return np.exp(generator.normal(-math.log(2.0) / 2, math.sqrt(math.log(2.0)), count)) * DEMAND
    missed = generator.random(count) < 0.1
    return np.where(missed, 0.5, 0.05 / 0.9) * generator.gamma(8, 1 / 8, count)


def explored(kind: str, generator: np.random.Generator, users: int) -> Model:
    """Calibrate the shop from a sample, as calibration does: its shape, replicates, and what they leave out."""
    times = drawn_times(kind, generator, ROUNDS * EACH)
    windows = np.arange(len(times)) // EACH
    shape = fit(times).distribution
    plain = shop(users=users)
    plain = plain.with_task(service("A", entry("a", act("w", shape)), threads=1))
    sample = Sample()
    for value, window in zip(times.tolist(), windows.tolist(), strict=True):
        sample.add(value, window)
    ones = np.ones(ROUNDS)
    replicates, left = [], []
    stretch = math.sqrt(ROUNDS / (ROUNDS - 1))
    for _ in range(20):
        odds = np.full(ROUNDS, 1 / ROUNDS)
        weights = np.maximum(0.0, 1 + stretch * (generator.multinomial(ROUNDS, odds) - 1.0))
        mean, cv = ((known(weights) or 0.0) / (known(ones) or math.nan) for known in (sample.mean, sample.cv))
        replicates.append(Replicate(demands={"A.a:w": mean}, demand_spreads={"A.a:w": cv}))
        order = np.argsort(times)
        below = np.cumsum(weights[windows][order])
        logged = times[order][np.searchsorted(below, 0.95 * below[-1])]
        changed = apply(plain, replicates[-1]).task("A").entry("a").activity("w").demand
        assert changed is not None
        left.append(math.log(logged / percentile_95(changed)))
    own = OneUser(p95_shape=float(np.std(left, ddof=1)), p95_seconds=float(np.quantile(times, 0.95)))
    known = Uncertainty(replicates=tuple(replicates), batches=ROUNDS, one_user=own)
    return replace(plain, uncertainty=known)


def percentile_95(time: Distribution) -> float:
    """Return the 95th percentile."""
    if isinstance(time, Empirical):
        return float(np.quantile(time.values, 0.95))
    return float(brentq(lambda t: survival(time, t) - 0.05, 0.0, 1000 * time.mean))


def survival(time: Distribution, t: float) -> float:
    """Return the probability that it is longer than ``t`` seconds."""
    match time:
        case Exponential():
            return math.exp(-t / time.mean)
        case Erlang() | Gamma():
            return float(gamma.sf(t, 1 / time.scv, scale=time.mean * time.scv))
        case Lognormal():
            square = math.log1p(time.scv)
            return float(lognorm.sf(t, math.sqrt(square), scale=time.mean * math.exp(-square / 2)))
        case Hyperexponential():
            parts = zip(time.probabilities, time.means, strict=True)
            return math.fsum(p * math.exp(-t / mean) for p, mean in parts)
        case Weibull(mean, shape):
            return math.exp(-((t * math.gamma(1 + 1 / shape) / mean) ** shape))
        case TruncatedNormal(location, scale):
            return float(norm.sf(t, location, scale) / norm.sf(0.0, location, scale))
        case _:
            raise AssertionError(time)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "users"),
    [
        pytest.param("heavy", FEW, marks=pytest.mark.repeats),
        pytest.param("heavy", MANY),
        pytest.param("cache", FEW),
        pytest.param("cache", MANY, marks=pytest.mark.repeats),
        pytest.param("exponential", MANY, marks=pytest.mark.repeats),
    ],
)
def test_percentiles_are_inside_like_means(kind: str, users: int) -> None:
    """Of systems calibrated from 400 executions, 95th percentile and mean of a real run are in the interval."""
    generator = np.random.default_rng(21)
    cases = 18
    inside = dict.fromkeys(("p95", "response_time"), 0)
    widths = []
    truth = Empirical(tuple(np.sort(drawn_times(kind, np.random.default_rng(5), 200_000)).tolist()[::50]))
    for case in range(cases):
        calibrated = explored(kind, generator, users)
        predicted = simulate(calibrated, horizon=1500.0, seed=case)
        assert calibrated.uncertainty is not None
        alternatives = Alternatives(calibrated.uncertainty.replicates)
        jobs = spread_jobs(Scenario((), calibrated), predicted, alternatives, seed=0)
        varied = spread([job(lambda _: None) for job in jobs])
        found = predict_interval(Scenario((), calibrated), predicted, RealRun(300), varied)
        system = shop(users=users).with_task(service("A", entry("a", act("w", truth)), threads=1))
        measured = simulate(system, horizon=320.0, seed=5000 + case).cycle.response_time
        inside["p95"] += found.p95.contains(measured.p95.mean)
        inside["response_time"] += found.response_time.contains(measured.mean)
        widths.append(found.p95.half_width / found.p95.mean)
    # A binomial of 18 cases at 95 % is below 14 once in six hundred times.
    assert all(count >= 14 for count in inside.values()), inside
    assert float(np.mean(widths)) < 0.7, "intervals that contain everything say nothing"


def test_simulated_replicates_show_the_exact_spread() -> None:
    """The covariance of two series of short runs is the variance of the exact response times."""
    generator = np.random.default_rng(3)
    factors = [1 + 0.04 * float(generator.normal()) for _ in range(20)]
    tested = shop()
    result = simulate(tested, precision=0.01)
    replicates = [Replicate(demands={"A.a:w": f}) for f in factors]
    jobs = spread_jobs(Scenario((), tested), result, Alternatives(replicates), seed=0)
    found = spread([job(lambda _: None) for job in jobs])
    assert found is not None
    exact = known_spread(DEMAND, factors)
    for key, variance in exact.variances.items():
        assert math.sqrt(found.variances[key]) == pytest.approx(math.sqrt(variance), rel=0.35, abs=0.003), key
    assert np.corrcoef(found.response_times, exact.response_times)[0, 1] > 0.9


def test_chance_alone_is_no_calibration_error() -> None:
    """Replicates that change nothing have no spread, however short their runs are."""
    tested = shop()
    result = simulate(tested, precision=0.02)
    jobs = spread_jobs(Scenario((), tested), result, Alternatives([Replicate()] * 5), seed=0)
    found = spread([job(lambda _: None) for job in jobs])
    assert found is not None
    assert max(found.variances.values()) < 1e-20


def uncertain(demand_sd: float, front_sd: float = 0.0) -> Model:
    """The shop with a front, whose demand and front are known to some percent."""
    generator = np.random.default_rng(5)
    plain = shop()
    front = Front(request=Constant(0.005), reply=Constant(0.005))
    plain = plain.with_task(replace(plain.task("A"), front=front))
    replicates = tuple(
        Replicate(
            demands={"A.a:w": math.exp(demand_sd * float(generator.normal()))},
            fronts={"A": math.exp(front_sd * float(generator.normal()))},
        )
        for _ in range(12)
    )
    return replace(plain, uncertainty=Uncertainty(replicates=replicates))


def test_every_part_is_there_and_shares_sum_to_one() -> None:
    """A scenario of a grid has its intervals, the shares of all known parts, and what is not covered."""
    tested = uncertain(0.03)
    scenarios = [Scenario((), tested), *grid(tested, [(Change("clients", "", 2),)])]
    outcomes = run_scenarios(scenarios, precision=0.05, differences=False, limits=False, run=RealRun(60))
    for outcome in outcomes:
        prediction = outcome.prediction
        assert prediction is not None
        assert tuple(map(str, prediction.missing)) == ("discrepancy", "machine_speed")
        for interval in (prediction.response_time, prediction.p95, prediction.throughput):
            assert sum(interval.parts.values()) == pytest.approx(1)
            assert set(interval.parts) == set(PARTS) - {"discrepancy", "machine_speed"}
            assert interval.low < interval.mean < interval.high
            # On the logarithmic scale: as many times below as above.
            assert interval.mean / interval.low == pytest.approx(interval.high / interval.mean)
        assert 0 <= prediction.utilization["A"].low < prediction.utilization["A"].high <= 1


def test_without_a_run_to_predict_nothing_is_predicted() -> None:
    """Intervals cost simulations: who does not ask for them has none."""
    outcomes = run_scenarios([Scenario((), uncertain(0.03))], precision=0.1, limits=False)
    assert outcomes[0].prediction is None


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    """Intervals are the same wherever and in which order scenarios are simulated."""
    tested = uncertain(0.03)
    both = [
        run_scenarios([Scenario((), tested)], precision=0.1, limits=False, run=RealRun(60), workers=workers)[
            0
        ]
        for workers in (1, 4)
    ]
    assert both[0].prediction == both[1].prediction


@pytest.fixture(scope="module")
def result() -> Result:
    """A simulation of the shop."""
    return simulate(shop(), precision=0.02)


def test_few_batches_make_many_replicates_no_surer(result: Result) -> None:
    """What 12 replicates of 3 rounds say has 2 degrees of freedom; of 30 rounds, those of the replicates."""
    tested = uncertain(0.05)
    assert tested.uncertainty is not None
    exact = known_spread(DEMAND, [math.exp(0.05 * z) for z in np.linspace(-1.5, 1.5, 12)])
    half_widths = []
    for batches in (None, 30, 3):
        known = replace(tested, uncertainty=replace(tested.uncertainty, batches=batches))
        found = predict_interval(Scenario((), known), result, RealRun(1e9), exact).response_time
        half_widths.append(math.log(found.high / found.low))
    unknown, many, few = half_widths
    assert many == unknown
    # Student's 97.5 % quantiles at 2 and 11 degrees of freedom.
    assert few / many == pytest.approx(4.303 / 2.201, rel=0.1)


def test_unknown_parts_are_named(result: Result) -> None:
    """A hand-written model has neither replicates nor a discrepancy; its interval says so."""
    prediction = predict_interval(Scenario((), shop()), result, RealRun(60))
    assert tuple(map(str, prediction.missing)) == ("calibration", "discrepancy", "machine_speed")
    assert set(prediction.response_time.parts) == {"simulation", "measurement"}


def test_a_figure_that_was_not_examined_is_named(result: Result) -> None:
    """A discrepancy of the response time alone leaves the others uncovered, by name."""
    only = Discrepancy(points={"response_time": ((0.5, 0.05, 0.0),)}, systems=10, points_used=50)
    tested = replace(shop(), uncertainty=Uncertainty(discrepancy=only))
    prediction = predict_interval(Scenario((), tested), result, RealRun(60))
    assert tuple(map(str, prediction.missing)) == (
        "calibration",
        "discrepancy of p95, throughput, utilization",
        "machine_speed",
    )


def test_known_bias_moves_the_interval(result: Result) -> None:
    """Predictions known to be 20 % high lie above the middle of their interval."""
    biased = Discrepancy(
        points={"response_time": ((0.5, 0.001, 0.2),), "utilization": ((0.5, 0.001, 0.1),)},
        systems=99,
        points_used=99,
    )
    tested = replace(shop(), uncertainty=Uncertainty(discrepancy=biased))
    prediction = predict_interval(Scenario((), tested), result, RealRun(1e6))
    time = prediction.response_time
    assert math.sqrt(time.low * time.high) == pytest.approx(time.mean / 1.2)
    busy = prediction.utilization["A"]
    assert (busy.low + busy.high) / 2 == pytest.approx(busy.mean - 0.1)


def test_a_longer_run_has_a_narrower_interval(result: Result) -> None:
    """Four times the length, or four repeats, halve what the measurement contributes."""
    scenario = Scenario((), shop())
    one, four, long = (
        predict_interval(scenario, result, run).response_time
        for run in (RealRun(10), RealRun(10, repeats=4), RealRun(40))
    )
    assert four == long
    assert four.half_width == pytest.approx(one.half_width / 2, rel=0.1)


def test_few_systems_make_wide_intervals(result: Result) -> None:
    """The same discrepancy from 2 systems says less than from 50."""

    def half(systems: int) -> float:
        known = Discrepancy(points={"response_time": ((0.0, 0.1, 0.0),)}, systems=systems, points_used=60)
        tested = replace(shop(), uncertainty=Uncertainty(discrepancy=known))
        return predict_interval(Scenario((), tested), result, RealRun(1e5)).response_time.half_width

    assert half(2) > 3 * half(50)


@pytest.mark.slow
def test_advice_names_the_number_that_matters() -> None:
    """The demand known to 5 % is to blame, not the front that is known to 20 % but is small."""
    for sds, label in (((0.05, 0.2), "A.a (demand"), ((0.0, 0.9), "A (front")):
        outcome = run_scenarios(
            [Scenario((), uncertain(*sds))], precision=0.01, limits=False, run=RealRun(100_000)
        )[0]
        assert outcome.prediction is not None
        advice = outcome.prediction.advice
        assert advice.part == "calibration"
        assert advice.text.startswith(f"explore longer: {label} known to +-"), advice


def test_advice_follows_the_largest_part(result: Result) -> None:
    """A short run wants to be longer, a long one a better simulation, a wrong model a comparison."""
    scenario = Scenario((), shop())
    assert predict_interval(scenario, result, RealRun(5)).advice.text.startswith(
        "measure longer: runs of 50 s"
    )
    assert "--precision 0.00" in predict_interval(scenario, result, RealRun(1e6)).advice.text
    wrong = Discrepancy(points={"response_time": ((0.0, 0.3, 0.0),)}, systems=9, points_used=9)
    tested = replace(shop(), uncertainty=Uncertainty(discrepancy=wrong))
    assert "mup validate" in predict_interval(Scenario((), tested), result, RealRun(60)).advice.text


def test_routing_is_suspected_by_the_work_it_causes() -> None:
    """A branch to a slow callee that is taken more often makes a cycle longer by what the callee costs."""
    endpoint = entry(
        "a",
        act("start", exp(0.01)),
        act("quick"),
        act("slow", calls="B.b"),
        arcs=(choice("start", (0.5, 0.5), "quick", "slow"),),
    )
    tested = model(
        clients(2, exp(1.0), "A.a"), service("A", endpoint), service("B", entry("b", act("w", exp(0.2))))
    )
    replicates = (Replicate(probabilities={"A.a:start": (0.4, 0.6)}), Replicate())
    (found,) = suspects(replace(tested, uncertainty=Uncertainty(replicates=replicates)))
    assert (found.label, found.kind) == ("A.a", "probabilities")
    assert found.effects == pytest.approx([0.1 * 0.2, 0.0])


def test_what_a_scenario_sets_stays_set() -> None:
    """A think time and a probability asked for are not changed by replicates; what was not asked for is."""
    body = entry("cycle", act("think", delay=exp(1.0), kind="think"), act("go", calls="A.a"))
    tested = model(
        clients(2, None, body=body),
        service("A", entry("a", act("s"), act("x"), act("y"), arcs=(choice("s", (0.5, 0.5), "x", "y"),))),
    )
    replicate = Replicate(probabilities={"A.a:s": (0.9, 0.1)}, delays={"U.cycle:think": 1.5})
    axes = [(Change("probability", "A.a:x", 0.25),), (Change("think", "", 2.0),)]
    for asked, odds, think in ((axes[:1], 0.25, 1.5), (axes[1:], 0.9, 2.0)):
        changed = Alternatives([replicate]).model(grid(tested, [*asked])[0], 0)
        assert changed.task("A").entry("a").precedences[0].probabilities == pytest.approx((odds, 1 - odds))
        assert changed.task("U").entry("cycle").activity("think").delay == exp(think)


@pytest.mark.parametrize(("seconds", "repeats"), [(0, 1), (math.inf, 1), (60, 0), (60, 1.5)])
def test_runs_that_cannot_be_are_refused(seconds: float, repeats: int) -> None:
    """A real run has a finite length and is repeated a whole number of times."""
    with pytest.raises(UsageError, match=r"must be a"):
        RealRun(seconds, repeats)
