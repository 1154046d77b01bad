"""Control variates leave figures unbiased and make them surer; only exact means are used."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from random_models import random_model, with_setups
from sim_models import act, choice, clients, entry, exp, machine_repair, merge, model, mva, ps, service

from mup.lqn import Call, Constant, Model, Pareto
from mup.statistics.series import widening
from simulator import Result, simulate
from simulator.figures.controls import known_sums
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import Layout
from simulator.program import compile_model

SERVICE, THINK, CLIENTS = 0.1, 0.6, 5


sharp = partial(simulate, control_variates=True)


def closed() -> Model:
    """Five clients and a processor that works one after the other."""
    return model(
        clients(CLIENTS, exp(THINK), "A.a"),
        service("A", entry("a", act("w", exp(SERVICE))), processor="cpu"),
        processors=(ps(),),
    )


def opened() -> Model:
    """A queue that requests come to from outside."""
    source = clients(1, None, body=replace(entry("cycle", act("go", calls="A.a")), arrivals=exp(0.2)))
    return model(
        replace(source, threads=float("inf"), think=None),
        service("A", entry("a", act("w", exp(SERVICE))), processor="cpu"),
        processors=(ps(),),
    )


def _errors(
    tested: Model, exact: tuple[float, float], *, controlled: bool, seeds: int, horizon: float
) -> np.ndarray:
    """Return relative errors of throughput and response time, a row per seed."""
    rows = []
    for seed in range(seeds):
        cycle = simulate(tested, horizon=horizon, seed=seed, control_variates=controlled).cycle
        rows.append((cycle.throughput.mean / exact[0] - 1, cycle.response_time.mean / exact[1] - 1))
    return np.array(rows)


@pytest.mark.parametrize(
    ("tested", "exact", "gain"),
    [
        pytest.param(closed(), machine_repair(CLIENTS, 1, THINK, SERVICE), 3.0, id="closed"),
        pytest.param(opened(), (5.0, 0.2), 1.3, id="open"),
    ],
)
def test_figures_are_unbiased_and_vary_less(tested: Model, exact: tuple[float, float], gain: float) -> None:
    """Over 40 seeds the errors average to 0, and their squares are a fraction of those without controls."""
    plain, sharp = (
        _errors(tested, exact, controlled=controlled, seeds=40, horizon=500.0) for controlled in (False, True)
    )
    standard_errors = sharp.std(axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(sharp.mean(axis=0)) <= 3.5 * standard_errors + 1e-3).all()
    assert ((plain**2).mean(axis=0) > gain * (sharp**2).mean(axis=0)).all()


def test_several_stations_are_unbiased() -> None:
    """In a closed product-form network with a branch, too."""
    body = entry(
        "cycle",
        act("go"),
        act("one", calls="A.a"),
        act("two", calls="B.b"),
        act("end"),
        arcs=(choice("go", (0.25, 0.75), "one", "two"), merge("end", "one", "two")),
    )
    tested = model(
        clients(6, exp(0.4), body=body),
        service("A", entry("a", act("w", exp(0.2))), processor="x"),
        service("B", entry("b", act("w", exp(0.08))), processor="y"),
        processors=(ps("x"), ps("y")),
    )
    throughput, residence = mva(6, 0.4, [0.05, 0.06])
    errors = _errors(tested, (throughput, sum(residence)), controlled=True, seeds=40, horizon=400.0)
    assert (np.abs(errors.mean(axis=0)) <= 3.5 * errors.std(axis=0, ddof=1) / np.sqrt(40) + 1e-3).all()


def test_percentiles_are_sharper_too() -> None:
    """Of processor sharing: the 95th percentile varies less, and its interval is narrower."""
    found = {
        controlled: [
            simulate(closed(), horizon=300.0, seed=seed, control_variates=controlled).cycle.response_time.p95
            for seed in range(40)
        ]
        for controlled in (False, True)
    }
    varied = {key: np.std([f.mean for f in figures]) for key, figures in found.items()}
    widths = {key: np.mean([f.ci95 for f in figures]) for key, figures in found.items()}
    assert varied[True] < varied[False]
    assert widths[True] < widths[False]
    p50, p90, p95, p99 = (getattr(sharp(closed(), horizon=300.0).cycle.response_time, name).mean
                          for name in ("p50", "p90", "p95", "p99"))  # fmt: skip
    assert p50 < p90 < p95 < p99


def test_laws_hold_between_figures() -> None:
    """The same weights for all figures: busy = throughput x demand, and clients are all somewhere."""
    result = sharp(closed(), horizon=500.0, seed=3)
    assert "service of cpu" in result.control_variates.names
    cycle = result.cycle
    assert result.processors["cpu"].utilization.mean == pytest.approx(
        cycle.throughput.mean * SERVICE, rel=1e-9
    )
    present = cycle.throughput.mean * (cycle.response_time.mean + THINK)
    assert present == pytest.approx(CLIENTS, rel=2e-3)
    assert result.tasks["A"].busy.mean == pytest.approx(result.tasks["U"].busy.mean, rel=1e-9)


def test_a_result_says_what_was_gained() -> None:
    """Names, how much longer the run would have to be, and a degree of freedom less per control."""
    with_them, without = (simulate(closed(), horizon=500.0, control_variates=on) for on in (True, False))
    assert with_them.control_variates.names == ("think time of U", "service of cpu")
    response = with_them.cycle.response_time
    assert response.uncontrolled is not None
    gain = (response.uncontrolled / response.ci95) ** 2
    assert gain > 3
    data = with_them.to_json()["control_variates"]
    assert data["names"] == ["think time of U", "service of cpu"]
    assert data["variance_ratio"]["response_time"] == pytest.approx(gain)
    assert with_them.freedom == with_them.batches - 3
    assert without.control_variates.names == ()
    assert without.cycle.response_time.uncontrolled is None
    assert without.freedom == without.batches - 1
    assert with_them.events == without.events


def test_the_stop_by_precision_uses_them() -> None:
    """The same precision takes a fraction of the steps."""
    steps = {on: simulate(closed(), precision=0.02, control_variates=on).events for on in (True, False)}
    assert 2 * steps[True] < steps[False]


def test_a_throughput_that_is_known_exactly_does_not_end_a_run() -> None:
    """Sources that only send have no response time; what their messages wait for is to be known, too."""
    tell = entry("tell", replace(act("go"), calls=(Call(task="Work", entry="w", kind="send"),)))
    tested = model(
        service("Tell", replace(tell, arrivals=exp(1.0)), threads=1),
        service("Work", entry("w", act("w", exp(0.3))), threads=4, processor="cpu"),
        processors=(ps(),),
    )
    result = sharp(tested, precision=0.02)
    assert result.cycle.response_time.mean == 0
    assert result.processors["cpu"].utilization.relative < 0.06
    assert result.precision.reached > 1e-3


def _named(result: Result) -> set[str]:
    return set(result.control_variates.names)


def test_no_controls_where_nothing_is_exact() -> None:
    """Infinite variance, and load that may pile up, have none; constant times have nothing to control."""
    heavy = model(
        clients(CLIENTS, Pareto(THINK, 1.5), "A.a"),
        service("A", entry("a", act("w", exp(SERVICE))), processor="cpu"),
        processors=(ps(),),
    )
    assert _named(sharp(heavy, horizon=500.0)) == set()
    assert _named(sharp(closed(), horizon=500.0, may_pile_up=True)) == set()
    rigid = model(
        clients(1, Constant(0.5), "A.a"),
        service("A", entry("a", act("w", Constant(0.1))), processor="cpu"),
        processors=(ps(),),
    )
    result = sharp(rigid, horizon=500.0)
    assert result.cycle.response_time.mean == pytest.approx(0.1)
    assert result.cycle.throughput.mean == pytest.approx(1 / 0.6, rel=2e-3)


def test_more_tasks_than_batches() -> None:
    """Sixty services are sixty candidates and more: figures are still there, and few controls are used."""
    body = entry("cycle", replace(act("go"), calls=tuple(Call(task=f"S{n}", entry="e") for n in range(60))))
    tested = model(
        clients(3, exp(1.0), body=body),
        *(service(f"S{n}", entry("e", act("w", exp(0.01))), processor=f"p{n}") for n in range(60)),
        processors=tuple(ps(f"p{n}") for n in range(60)),
    )
    result = sharp(tested, horizon=1000.0)
    assert {"all service", "think time of U"} & _named(result)
    assert len(_named(result)) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("number", range(24))
def test_known_sums_have_mean_zero_in_random_models(number: int) -> None:
    """Whatever a model contains: every sum is within five standard errors of 0 in the long run."""
    tested = random_model(number)
    if number % 3 == 0:
        tested = with_setups(tested, number)
    program = compile_model(tested)
    layout, engine = Layout(program), CompiledEngine(program, number)
    longest = max(p.nominal.total if not p.is_open else 1 / p.rate for p in program.populations)
    width = 200 * longest
    engine.run_until(width)
    rows, before = [], engine.snapshot()
    for batch in range(2, 42):
        engine.run_until(batch * width)
        now = engine.snapshot()
        rows.append(now - before)
        before = now
    known = known_sums(program, layout, np.array(rows), width)
    assert known.names
    for name, column in zip(known.names, known.columns.T, strict=True):
        noise = column.std(ddof=1) * np.sqrt(widening(column - column.mean()) / len(column))
        scale = np.abs(np.array(rows)).max()
        assert abs(column.mean()) <= 5 * noise + 1e-9 * scale, name


def test_engines_agree_with_control_variates() -> None:
    """Both engines use the same controls, and have the same figures."""
    here, there = (
        sharp(closed(), horizon=200.0, seed=2, engine=engine) for engine in ("compiled", "reference")
    )
    assert here.control_variates.names == there.control_variates.names != ()
    for mine, other in (
        (here.cycle.response_time, there.cycle.response_time),
        (here.cycle.throughput, there.cycle.throughput),
        (here.cycle.response_time.p95, there.cycle.response_time.p95),
    ):
        assert (mine.mean, mine.ci95) == pytest.approx((other.mean, other.ci95), rel=1e-6)
