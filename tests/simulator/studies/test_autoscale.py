"""The autoscaler doubles what it should, and ends when it should."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from sim_models import act, entry, exp

from mup.errors import UsageError
from mup.lqn import Constant, Model, Processor, Task
from simulator.studies.autoscale import Settings, Step, autoscale, most_utilized
from simulator.studies.rehearsal import rehearse


def shop(cores: float = 64) -> Model:
    """Clients of a front of 20 ms that waits for a back of 50 ms, with 1 s of think time."""
    ask = entry("cycle", act("ask", calls="front./f/"))
    serve = entry("/f/", act("work", exp(0.02)), act("call", calls="back./b/"))
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=cores),),
        tasks=(
            Task(name="U", role="reference", threads=1, think=Constant(1.0), entries=(ask,)),
            Task(name="front", threads=1, processor="host", entries=(serve,)),
            Task(name="back", threads=1, processor="host", entries=(entry("/b/", act("w", exp(0.05))),)),
        ),
    )


OBSERVE = partial(rehearse, seconds=30.0, precision=0.04, workers=1)


def study(model: Model, **settings: object) -> list[Step]:
    return list(autoscale(model, Settings(max_clients=64, **settings), OBSERVE))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def vertical() -> list[Step]:
    return study(shop())


def test_clients_double_until_a_service_is_full(vertical: list[Step]) -> None:
    """The front, which holds its thread for 70 ms, is full with 16 clients."""
    assert [(s.clients, s.bottleneck, s.action) for s in vertical[:5]] == [
        (1, "front", "clients to 2"),
        (2, "front", "clients to 4"),
        (4, "front", "clients to 8"),
        (8, "front", "clients to 16"),
        (16, "front", "pool of front to 2"),
    ]


def test_the_bottleneck_moves_to_who_is_waited_for(vertical: list[Step]) -> None:
    """With threads enough for the front the back is full; both are then, and only the back is doubled."""
    later = vertical[5:]
    assert later[0].shifted
    assert later[0].bottleneck == "back"
    assert later[0].pools == {"front": 2, "back": 1}
    assert all(s.seen.utilization[s.bottleneck].mean >= 0.85 for s in vertical if "pool" in s.action)
    assert all(s.seen.utilization[s.bottleneck].mean < 0.85 for s in vertical if "clients to" in s.action)


def test_it_ends_with_the_last_clients_served(vertical: list[Step]) -> None:
    """64 clients, and nothing is a bottleneck any more: at least 4 threads are needed by the back."""
    last = vertical[-1]
    assert last.action == "stop: 64 clients"
    assert last.clients == 64
    assert max(f.mean for f in last.seen.utilization.values()) < 0.85
    assert last.pools["back"] >= 4
    assert last.replicas == {"front": 1, "back": 1}


def test_replicas_grow_instead_of_pools() -> None:
    """Horizontally pools stay as they are."""
    steps = study(shop(), scaling="horizontal", clients=16)
    assert steps[0].action == "replicas of front to 2"
    assert {tuple(s.pools.values()) for s in steps} == {(1, 1)}
    assert steps[-1].replicas["front"] > 1


def test_a_full_processor_ends_the_study() -> None:
    """One core does 14 cycles/s: no number of threads makes more of it."""
    steps = study(shop(cores=1), clients=8)
    assert steps[-1].action == "stop: processor host is the bottleneck"
    assert steps[-1].clients < 64


def test_a_full_database_ends_the_study() -> None:
    """It is no service: its one thread stays the only one."""
    changed = shop()
    changed = changed.with_task(replace(changed.task("back"), role="database"))
    steps = study(changed, clients=8)
    assert steps[-1].action == "stop: database back is the bottleneck"
    assert {tuple(s.pools) for s in steps} == {("front",)}


def test_without_scaling_only_clients_come() -> None:
    """Whatever is full."""
    steps = study(shop(cores=1), scaling="none", clients=16)
    assert [s.clients for s in steps] == [16, 32, 64]


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"front": 0.9, "back": 0.5}, "front"),
        ({"front": 1.0, "back": 0.995}, "back"),
        ({"front": 1.0, "back": 0.98}, "front"),
    ],
    ids=["clear", "equal", "nearly equal"],
)
def test_who_is_waited_for_comes_first_among_equals(shares: dict[str, float], expected: str) -> None:
    """Equal is what differs by less than 1 %."""
    assert most_utilized(shop(), shares) == expected


@pytest.mark.parametrize(
    "settings", [{"threshold": 1.0}, {"clients": 0}, {"clients": 9, "max_clients": 8}], ids=str
)
def test_wrong_settings_are_refused(settings: dict[str, float]) -> None:
    """With the value in the message."""
    with pytest.raises(UsageError, match="got"):
        Settings(**settings)  # type: ignore[arg-type]
