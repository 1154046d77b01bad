"""Real measurements of this machine, short ones: structure, not values."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from analyzer.host.fitting import fit_migration, predict_rounds, ring_model
from analyzer.host.ring import Burst, Phase, Process, RingPlan, RingReport
from analyzer.host.stage import measure
from analyzer.host.tracing import TRACEFS, recorded
from mup.cli.main import main
from mup.errors import DeploymentError
from mup.lqn import Processor


def report(rounds: float) -> RingReport:
    """Return what a ring of six processes and six tokens on two cores might have written down."""
    phase = Phase(start=0, end=10**9, rest=0.06, lateness=0.0, rounds=(rounds,) * 100, hub_cpu=0.005)
    bursts = tuple(
        Burst(
            received=i * 10**7, cpu=0.004 + 0.0001 * (i % 3), wall=0.005, queue=0.001, travel=1e-5, work=0.004
        )
        for i in range(100)
    )
    return RingReport((0, 1), 6, 1, (phase,), tuple(Process(pid, bursts) for pid in range(2, 8)))


def test_the_model_of_a_ring_has_its_numbers() -> None:
    """Tokens rest and go round; every process has its mean burst; nothing is left to assume."""
    made = ring_model(report(0.02), 0, Processor(name="host", cores=2))
    tokens = made.task("tokens")
    assert tokens.threads == 6
    assert tokens.think is not None
    assert tokens.think.mean == pytest.approx(0.06)
    demand = made.task("P1").entry("turn").activities[0].demand
    assert demand is not None
    assert demand.mean == pytest.approx(0.0041, rel=0.01)
    hub = made.task("hub").entry("turn").activities[0].demand
    assert hub is not None
    assert hub.mean == pytest.approx(0.005 / 100)


@pytest.mark.slow
def test_fit_finds_how_a_ring_was_scheduled() -> None:
    """A ring whose threads never moved is explained within 3 %, by a migration and not by ideal cores."""
    pinned = Processor(name="host", cores=2, discipline="cores")
    rounds = predict_rounds(report(1.0), pinned)[0]
    ideal = predict_rounds(report(1.0), Processor(name="host", cores=2))[0]
    assert abs(ideal / rounds - 1) > 0.06, "otherwise this test says nothing"
    fit = fit_migration(report(rounds))
    assert fit.error < 0.03
    assert fit.migration.wake < 0.5


def test_a_plan_fits_the_cores() -> None:
    """Three processes per core up to eight cores, and shorter rests for more load."""
    plan = RingPlan.for_cores(64, 1.0)
    assert plan.cores == 8
    assert len(plan.means) == 24
    assert list(plan.rests) == sorted(plan.rests, reverse=True)


@pytest.mark.slow
@pytest.mark.services
def test_a_ring_runs_and_stops() -> None:
    """Tokens go round, every process writes down its bursts, affinity is as before."""
    allowed = os.sched_getaffinity(0)
    with recorded() as recording:
        found = msgspec.json.decode(measure("ring", 0.3, cores=2), type=RingReport)
    assert os.sched_getaffinity(0) == allowed
    assert len(found.phases) == 3
    assert len(found.processes) == 3 * len(found.cores)
    assert all(phase.rounds for phase in found.phases)
    assert all(burst.cpu > 0 and burst.work > 0 for process in found.processes for burst in process.bursts)
    if recording is not None:
        assert "sched_switch" in recording.text
        assert not list((TRACEFS / "instances").glob(f"mup-host-{os.getpid()}"))


def test_bad_input_is_one_message(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Times out of range and files that would be lost are refused before anything is measured."""
    for arguments, message in (
        (["--duration", "600"], "must be 1 to 60 seconds, got 600"),
        (["-o", str(tmp_path / "no" / "host.json")], "its folder does not exist"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["host", *arguments])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.services
def test_a_measurement_that_fails_says_which() -> None:
    """The reason of a failed measurement is in the message."""
    with pytest.raises(
        DeploymentError, match="the measurement 'ring' of this machine failed: KeyError: 'cores'"
    ):
        measure("ring", 1.0)
