"""The fluid solves calibrated models, and messages as the rules say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Hyperexponential,
    Model,
    Processor,
    Task,
    load_model,
)
from mup.lqn.model import Forward
from simulator.analytic import estimate
from simulator.fluid import fluid


def test_remainders_of_calibration_do_not_matter() -> None:
    """Stages of 1e-28 s beside think times of seconds leave the figures as they are; the equations were singular."""
    usual = Hyperexponential(probabilities=(0.5, 0.5), means=(0.01, 0.03))
    tiny = Hyperexponential(probabilities=(0.25, 0.25, 0.5), means=(4e-24, 0.02, 3e-28))

    def model(delay: Distribution) -> Model:
        work = Activity(name="work", demand=Exponential(0.02), delay=delay)
        return Model(
            name="m",
            processors=(Processor(name="host"),),
            tasks=(
                Task(
                    name="U",
                    role="reference",
                    threads=3,
                    think=Exponential(20.0),
                    entries=(
                        Entry(
                            name="go",
                            start="ask",
                            activities=(
                                Activity(
                                    name="ask",
                                    demand=Constant(0.0),
                                    delay=Constant(0.0),
                                    calls=(Call(task="A", entry="a"),),
                                ),
                            ),
                        ),
                    ),
                ),
                Task(
                    name="A",
                    threads=2,
                    processor="host",
                    entries=(Entry(name="a", start="work", activities=(work,)),),
                ),
            ),
        )

    throughput = [fluid(model(delay)).cycle["throughput"] for delay in (tiny, Constant(tiny.mean))]
    assert throughput[0] == pytest.approx(throughput[1], rel=1e-3)
    assert fluid(model(usual)).cycle["throughput"] < throughput[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acmeair", "jpetstore", "tms"])
def test_calibrated_models_come_to_rest(name: str) -> None:
    """One user of a calibrated model meets no other: the fluid agrees with the analytic estimate."""
    model = load_model(Path(__file__).parents[3] / "examples" / name / "model.json")
    assert fluid(model).cycle["response_time"] == pytest.approx(estimate(model).cycle.response_time, rel=0.05)


def test_nothing_is_forwarded_that_no_caller_waits_for() -> None:
    """A message has no reply that could be handed on (docs/explanation/simulation.md)."""

    def plain(name: str, demand: Distribution, *calls: Call, **parts: Any) -> Entry:
        work = Activity(name="w", demand=demand, delay=Constant(0.0), calls=calls)
        return Entry(name=name, start="w", activities=(work,), **parts)

    def model(kind: Literal["synchronous", "send"]) -> Model:
        return Model(
            name="m",
            processors=(Processor(name="p1"), Processor(name="p2")),
            tasks=(
                Task(
                    name="U",
                    role="reference",
                    threads=4,
                    think=Exponential(1.0),
                    entries=(plain("go", Constant(0.0), Call(task="B", entry="b", kind=kind)),),
                ),
                Task(
                    name="B",
                    processor="p1",
                    entries=(
                        plain(
                            "b", Exponential(0.01), forwards=(Forward(task="D", entry="d", probability=1.0),)
                        ),
                    ),
                ),
                Task(name="D", processor="p2", entries=(plain("d", Exponential(0.2)),)),
            ),
        )

    assert fluid(model("send")).entries["D.d"]["throughput"] == pytest.approx(0.0, abs=1e-12)
    assert fluid(model("synchronous")).entries["D.d"]["throughput"] > 1.0
