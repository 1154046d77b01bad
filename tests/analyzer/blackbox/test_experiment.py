"""The self-regulated experiment finds a station, and keeps to its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stations import MEAN, TIMES, SimulatedInjector, simulated

from analyzer.blackbox.experiment import run_experiment
from analyzer.blackbox.holdout import compare, replay
from analyzer.blackbox.inversion import Trace
from analyzer.blackbox.policy import Limits, next_rate, sample_size
from analyzer.blackbox.stabilisation import CLOSE, stabilisation_seconds
from analyzer.blackbox.station import LoadStep, identify_station
from analyzer.blackbox.station_model import station_model
from mup.errors import UsageError
from mup.lqn.json_io import model_from_json, model_to_json


@pytest.mark.slow
@pytest.mark.parametrize(("family", "servers"), [("exponential", 1), ("constant", 4), ("uniform", 2)])
def test_a_station_is_found_and_predicts_what_was_held_back(family: str, servers: int) -> None:
    """The ramp ends at saturation with the right K and mean, and the station holds for loads it has not seen."""
    injector = SimulatedInjector(servers, TIMES[family])
    found = run_experiment(injector, limits=Limits(rate=1000, seconds=120), precision=0.1, seed=2)
    station = found.station
    assert (station.servers.count, station.servers.bounded) == (servers, True)
    assert station.distribution.mean == pytest.approx(MEAN, rel=0.05)
    assert found.saturated
    assert max(injector.rates) < 2 * servers / MEAN
    assert found.seconds <= 120
    assert [each.holds for each in compare(station, found.held_back)] == [True, True]


def test_earlier_steps_are_seen_again_when_servers_are_added() -> None:
    """A first load that shows few servers is analysed anew with the four that a higher one shows."""
    rng = np.random.default_rng(3)
    steps = [
        LoadStep(rate, simulated(rng, rate, size, 4, TIMES["constant"])[0], size / rate)
        for rate, size in ((5.0, 40), (180.0, 400))
    ]
    alone = identify_station(steps[:1]).servers
    assert alone.count < 4
    assert not alone.bounded
    both = identify_station(steps)
    assert both.servers.count == 4
    assert both.steps[0].load == pytest.approx(5 * MEAN / 4, rel=0.01)


def test_a_wrong_station_does_not_hold() -> None:
    """With half the servers, the held-back load is predicted far too slow."""
    injector = SimulatedInjector(2, TIMES["exponential"])
    found = run_experiment(injector, limits=Limits(rate=1000, seconds=40), seed=2)
    halved = replace(found.station, servers=replace(found.station.servers, count=1))
    assert not compare(halved, found.held_back)[1].holds


def test_the_limit_of_the_rate_is_kept() -> None:
    """The load stays below the limit, and what was not loaded is not claimed."""
    injector = SimulatedInjector(4, TIMES["exponential"])
    found = run_experiment(injector, limits=Limits(rate=20, seconds=100))
    assert max(injector.rates) <= 20
    assert not found.saturated
    assert "20 requests per second" in found.ended
    assert found.validity[1] < 25


def test_a_time_that_is_too_short_is_refused() -> None:
    """Nothing is sent where nothing could be learned."""
    injector = SimulatedInjector(1, TIMES["exponential"])
    with pytest.raises(UsageError, match="too short"):
        run_experiment(injector, limits=Limits(seconds=2))
    assert injector.rates == []


def test_a_first_load_with_few_arrivals_is_injected_again() -> None:
    """By chance it can have next to none; the next one has other arrivals."""

    class Unlucky(SimulatedInjector):
        def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
            step = super().inject(rate, seconds, seed)
            if len(self.rates) > 1:
                return step
            return LoadStep(rate, Trace(step.trace.arrivals[:3], step.trace.responses[:3]), seconds)

    injector = Unlucky(1, TIMES["uniform"])
    found = run_experiment(injector, limits=Limits(rate=1000, seconds=40))
    assert injector.rates[0] == injector.rates[1]
    assert found.station.servers.count == 1


def test_the_ramp_goes_in_smaller_steps_near_the_maximum() -> None:
    """Levels are fractions of the capacity, once beyond it, and never far above the last load."""
    rates = [5.0]
    while (following := next_rate(rates[-1], 100.0, 1000.0)) is not None and following < 120:
        rates.append(following)
    assert rates == pytest.approx([5, 20, 30, 50, 65, 80, 90, 110])
    assert next_rate(50.0, 100.0, 50.0) is None


def test_the_sample_follows_from_the_precision() -> None:
    """Twice as precise takes four times as many."""
    assert sample_size(1.0, 0.05) == 1537
    assert sample_size(1.0, 0.025) == 6147
    assert sample_size(0.0, 0.05) == 600


def test_stabilisation_is_that_of_the_chain() -> None:
    """For one server it agrees with the exact transient mean number, integrated independently."""
    rate, mean = 35.0, MEAN
    seconds = stabilisation_seconds(rate, mean, 1)
    rng = np.random.default_rng(7)
    # The mean number in an empty M/M/1 after this time, by simulation of its jumps.
    numbers = []
    for _ in range(1000):
        now, number = 0.0, 0
        while True:
            now += rng.exponential(1 / (rate + (number > 0) / mean))
            if now > seconds:
                break
            number += 1 if rng.random() < rate / (rate + (number > 0) / mean) else -1
        numbers.append(number)
    limit = rate * mean / (1 - rate * mean)
    error = 3 * np.std(numbers) / np.sqrt(len(numbers))
    assert abs(np.mean(numbers) - (1 - CLOSE) * limit) < error + 0.02 * limit
    assert stabilisation_seconds(45.0, mean, 1) > 3 * seconds


def test_replays_of_the_station_look_like_the_station() -> None:
    """Replayed response times of known arrivals have the mean of a simulation of them."""
    step = SimulatedInjector(3, TIMES["uniform"]).inject(120.0, 20.0, 5)
    station = identify_station([step])
    replayed = replay(station, step.trace.arrivals, 50, np.random.default_rng(1))
    assert replayed.shape == (50, step.trace.size)
    assert replayed.mean() == pytest.approx(step.trace.responses.mean(), rel=0.1)


def test_the_model_of_a_station_is_a_model() -> None:
    """It survives its file and has one task that serves."""
    step = SimulatedInjector(2, TIMES["uniform"]).inject(60.0, 10.0, 5)
    model = station_model(identify_station([step]), 30.0, name="legacy", provenance={"method": "test"})
    assert model_from_json(model_to_json(model)) == model
    assert [(t.name, t.threads) for t in model.tasks if not t.is_reference] == [("legacy", 2)]


@pytest.mark.slow
def test_a_station_says_how_sure_its_mean_is() -> None:
    """The replicates of its model vary like the mean that other experiments of the same size find."""
    rng = np.random.default_rng(8)
    found = []
    for seed in range(12):
        step = LoadStep(60.0, simulated(rng, 60.0, 400, 2, TIMES["exponential"])[0], 400 / 60)
        found.append(identify_station([step], seed=seed))
    model = station_model(found[0], 30.0, name="legacy")
    assert model.uncertainty is not None
    factors = [r.delays["legacy.request:serve"] for r in model.uncertainty.replicates]
    assert len(factors) == 40
    assert np.mean(factors) == pytest.approx(1, abs=0.03)
    means = np.array([s.distribution.mean for s in found])
    # Standard deviations of 12 and of 40 draws: known to a fifth and to a ninth.
    assert np.std(factors) == pytest.approx(means.std(ddof=1) / means.mean(), rel=0.6)
    assert np.std(factors) == pytest.approx(found[0].half_width / 1.96 / means[0], rel=0.35)
    assert model_from_json(model_to_json(model)).uncertainty == model.uncertainty
