"""What does it mean that a line takes half the time?"""

from __future__ import annotations

import pytest

from mup.errors import UsageError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    LoadDependence,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
)
from mup.lqn.time_edits import mean_time, with_scaled_time, with_time
from mup.lqn.uncertainty import Replicate, Uncertainty
from simulator.studies.calibration_spread import Alternatives
from simulator.studies.whatif import Change, grid


def two_lines(**parts: object) -> Model:
    """A service whose entry computes 4 ms and then waits 6 ms."""
    a = Activity(name="a", demand=Exponential(0.004), delay=Constant(0.0))
    b = Activity(name="b", demand=Constant(0.0), delay=Exponential(0.006))
    e = Entry(name="/x/", start="a", activities=(a, b), precedences=(Precedence(pre=("a",), post=("b",)),))
    go = Activity(name="go", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="S", entry="/x/"),))
    users = Task(
        name="U", role="reference", threads=1, entries=(Entry(name="c", start="go", activities=(go,)),)
    )
    return Model(
        name="m",
        processors=(Processor(name="cpu"),),
        tasks=(users, Task(name="S", processor="cpu", entries=(e,), **parts)),  # type: ignore[arg-type]
    )


def test_only_the_times_meant_are_scaled() -> None:
    """Of an entry all activities, of an activity its own; shapes stay."""
    loaded = two_lines()
    half = with_scaled_time(loaded, ("demand",), "S/x/", 0.5)
    assert (mean_time(half, "demand", "S/x/"), mean_time(half, "delay", "S/x/")) == (0.002, 0.006)
    both = with_scaled_time(loaded, ("demand", "delay"), "S/x/", 0.5)
    assert both.task("S").entries[0].activities[1].delay == Exponential(0.003)
    one = with_scaled_time(loaded, ("delay",), "S/x/:b", 0.5)
    assert mean_time(one, "delay", "S/x/") == 0.003


def test_what_caches_and_sleep_add_is_scaled_too() -> None:
    """The line is faster cold and hot."""
    warm = two_lines(
        load_dependence=LoadDependence(
            rates=(1.0, 10.0), demands={"/x/:a": (0.002, 0.0), "/x/:b": (0.001, 0.0)}
        )
    )
    found = with_scaled_time(warm, ("demand",), "S/x/:a", 0.5).task("S").load_dependence
    assert found is not None
    assert found.demands == {"/x/:a": (0.001, 0.0), "/x/:b": (0.001, 0.0)}
    sleepy = two_lines(
        setup=Setup(gaps=(0.1,), worker=(1.0,), core=(1.0,), demands={"/x/:a": (0.002, 0.004)})
    )
    setup = with_scaled_time(sleepy, ("demand",), "S/x/", 0.5).task("S").setup
    assert setup is not None
    assert setup.demands == {"/x/:a": (0.001, 0.002)}


def test_what_has_no_time_cannot_be_scaled() -> None:
    """Half of nothing is refused, with the way out."""
    with pytest.raises(UsageError, match="'S/x/:b' has no demand to scale: it is 0"):
        with_scaled_time(two_lines(), ("demand",), "S/x/:b", 0.5)


def test_a_factor_is_made_once_in_a_replicate() -> None:
    """A calibration error of 10 % stays one of 10 % where the demand is halved; one that is set has none."""
    loaded = two_lines()
    replicates = (Replicate(demands={"S/x/:a": 1.1}),)
    loaded = Model(
        name="m",
        processors=loaded.processors,
        tasks=loaded.tasks,
        uncertainty=Uncertainty(replicates=replicates),
    )
    alternatives = Alternatives(replicates)
    (half,) = grid(loaded, [(Change("demand", "S/x/:a", "0.5x"),)])
    assert mean_time(alternatives.model(half, 0), "demand", "S/x/:a") == pytest.approx(0.0022)
    (fixed,) = grid(loaded, [(Change("demand", "S/x/:a", 0.002),)])
    assert mean_time(alternatives.model(fixed, 0), "demand", "S/x/:a") == pytest.approx(0.002)
    assert half.to_json() == {"demand": {"S/x/:a": "0.5x"}}
    assert with_time(loaded, "demand", "S/x/:a", 0.002).tasks == fixed.model.tasks
