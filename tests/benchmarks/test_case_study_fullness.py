"""A family of working cores ends one step behind the first saturated one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from case_studies.fullness import until_full

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from simulator.studies.autoscale import Settings, Step, autoscale
from simulator.studies.rehearsal import rehearse


def one(name: str, **what: object) -> Entry:
    """Return an entry of one activity."""
    return Entry(name=name, start="a", activities=(Activity(name="a", **what),))  # type: ignore[arg-type]


def model(cores: int, pool: int) -> Model:
    """Return clients that think 0.1 s and need 20 ms of a core from A."""
    users = one("User", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="/main/"),))
    work = one("/main/", demand=Exponential(0.02), delay=Constant(0.0), replies=True)
    return Model(
        name="m",
        processors=(Processor(name="host", cores=cores),),
        tasks=(
            Task(name="User", role="reference", think=Exponential(0.1), entries=(users,)),
            Task(name="A", threads=pool, processor="host", entries=(work,)),
        ),
    )


def steps(of: Model, most: int = 512) -> Iterator[Step]:
    """Return a family in which only users double."""
    settings = Settings(scaling="none", max_clients=most)
    return autoscale(of, settings, lambda m: rehearse(m, seconds=10.0, warmup=2.0, precision=0.1))


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "pool", "what"), [(1, 64, "processor host"), (2, 1, "A")])
def test_one_step_shows_what_a_full_machine_does(cores: int, pool: int, what: str) -> None:
    """6 users fill one core, or one worker, on paper; 16 keep it busy for 95 % of the time, 32 are the last."""
    found = list(until_full(steps(model(cores, pool))))
    assert [step.clients for step in found] == [1, 2, 4, 8, 16, 32]
    assert found[-2].action == "clients to 32"
    assert found[-1].action == f"stop: {what} is full"


@pytest.mark.slow
def test_what_is_never_full_goes_on_to_the_last() -> None:
    """Two users leave both cores idle for most of the time."""
    found = list(until_full(steps(model(2, 4), most=2)))
    assert [step.clients for step in found] == [1, 2]
    assert found[-1].action == "stop: 2 clients"
