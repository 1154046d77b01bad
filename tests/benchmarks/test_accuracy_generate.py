"""Generated systems are reproducible, varied, analysable, and of the right size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from accuracy.command import TEST, TRAIN, seeds_of
from accuracy.deploy import generated
from accuracy.generate import CYCLE_CPU_MS, CYCLE_MS, KNEE, MOST_WORKERS, SEGMENT_MS, system
from accuracy.nominal import CORES, nominal
from accuracy.project import write_project
from accuracy.system import Ask, Burn, CallTo, Choice, Find, Pause, Runtime, Step, System

from analyzer.static import analyse_project
from analyzer.static.application import Application
from mup.errors import UsageError
from mup.project import load_project

SEEDS = [*seeds_of(TRAIN), *seeds_of(TEST)]


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Return steps and those inside them."""
    for step in steps:
        yield step
        if isinstance(step, Choice):
            yield from walk((*step.then, *step.otherwise))
        elif isinstance(step, Ask) and step.meanwhile is not None:
            yield step.meanwhile


def inside(found: System) -> list[Step]:
    """Return everything endpoints do."""
    endpoints = [e for s in found.services for e in s.endpoints]
    steps = [step for e in endpoints for step in walk(e.steps)]
    return [*steps, *(e.after for e in endpoints if e.after)]


def test_a_seed_always_gives_the_same_system() -> None:
    """The same seed gives the same system, another one another."""
    assert system(203) == system(203)
    assert replace(system(203), seed=0) != replace(system(204), seed=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_are_in_range(seed: int) -> None:
    """Work, waits, pools, processes, cycle times and the load that fills the system are within the limits."""
    found = system(seed)
    figures = nominal(found)
    longest = max(figures.cpu / CORES, figures.fullest_pool(found))
    think = found.think.seconds if found.think else 0.0
    assert CYCLE_MS[0] <= figures.response <= CYCLE_MS[1]
    assert CYCLE_CPU_MS[0] <= figures.cpu <= 1.1 * CYCLE_CPU_MS[1]
    assert (figures.response + 1000 * think) / longest <= KNEE[1]
    assert 0 <= think <= 1
    assert found.workers <= MOST_WORKERS
    assert all(1 <= s.pool <= 8 and 1 <= s.replicas <= 3 for s in found.services)
    assert all(SEGMENT_MS[0] <= s.ms <= SEGMENT_MS[1] for s in inside(found) if isinstance(s, Burn))
    assert all(0 < s.ms <= 50 for s in inside(found) if isinstance(s, Pause))


def test_what_is_meant_to_be_full_is() -> None:
    """On paper the host is busier than every pool where it is meant to fill up, and a pool else."""
    for seed in SEEDS:
        found = system(seed)
        figures = nominal(found)
        fuller = figures.cpu / CORES > figures.fullest_pool(found)
        assert fuller == (found.meant_to_fill == "host")


@pytest.mark.parametrize("seeds", [seeds_of(TRAIN), seeds_of(TEST)], ids=["training", "test"])
def test_both_halves_have_everything(seeds: list[int]) -> None:
    """Each half has full hosts and full pools, both kinds of database, parallel calls, branches, and waits."""
    systems = [system(seed) for seed in seeds]
    kinds = Counter(s.meant_to_fill for s in systems)
    assert min(kinds["host"], kinds["pool"]) >= len(systems) // 4
    assert {s.database for s in systems} == {"", "embedded", "mongod"}
    assert {len(s.services) for s in systems} >= {1, 2, 3, 4, 5}
    assert any(s.think is None for s in systems)
    steps = [step for s in systems for step in inside(s)]
    asks = [s for s in steps if isinstance(s, Ask)]
    assert any(sum(isinstance(o, CallTo) for o in a.operations) > 1 for a in asks)
    assert any(a.meanwhile and isinstance(a.operations[0], CallTo) for a in asks)
    assert any(isinstance(o, Find) for a in asks for o in a.operations)
    assert {s.shape for s in steps if isinstance(s, Burn)} == {
        "constant",
        "uniform",
        "exponential",
        "lognormal",
    }
    assert {s.shape for s in steps if isinstance(s, Pause)} == {"constant", "uniform"}
    assert any(isinstance(s, Choice) for s in steps)
    assert any(s.replicas > 1 for found in systems for s in found.services)


def analysed(seed: int, folder: Path) -> Application:
    """Write a project and analyse it."""
    write_project(system(seed), folder)
    return analyse_project(load_project(folder))


@pytest.mark.parametrize("seed", [101, 107, 203, 205, 210, 218])
def test_the_analysis_finds_the_topology(seed: int, tmp_path: Path) -> None:
    """The calls found in the written project are those of the system, and so are the second phases; no more is said."""
    found, application = system(seed), analysed(seed, tmp_path)
    assert {d.code for d in application.diagnostics} <= {"MUP022"}
    going_on = {f"{s.name}.{e.path.strip('/')}" for s in found.services for e in s.endpoints if e.after}
    assert {d.message.split("'")[1] for d in application.diagnostics} == going_on
    for service in found.services:
        read = next(s for s in application.services if s.name == service.name)
        assert (read.pool_size, read.replicas) == (service.pool, service.replicas)
        for endpoint in service.endpoints:
            own = next(e for e in read.endpoints if e.path == endpoint.path)
            called = {o.target for p in own.paths for o in p.operations if o.op in ("call", "query")}
            operations = [o for s in walk(endpoint.steps) if isinstance(s, Ask) for o in s.operations]
            assert called == {
                f"{o.service}{o.path}" if isinstance(o, CallTo) else f"db.{o.query}" for o in operations
            }


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["thread", "async"])
def test_other_runtimes_run_the_same_system(runtime: Runtime, tmp_path: Path) -> None:
    """But for what workers are, services, their paths and their calls are those of the process runtime."""
    found = {}
    for kind in ("process", runtime):
        write_project(system(205, kind), tmp_path / kind)
        found[kind] = analyse_project(load_project(tmp_path / kind)).services
    assert {s.runtime for s in found[runtime]} == {runtime}

    def steps(kind: Runtime) -> list[object]:
        return [
            (
                s.name,
                s.pool_size,
                s.replicas,
                e.path,
                [[(o.op, o.target) for o in p.operations] for p in e.paths],
            )
            for s in found[kind]
            for e in s.endpoints
        ]

    assert steps(runtime) == steps("process")


@pytest.mark.parametrize(("name", "runtime"), [("s218", "process"), ("t218", "thread"), ("a218", "async")])
def test_names_tell_the_runtime(name: str, runtime: Runtime) -> None:
    """A system is found by the name it gives itself."""
    found = generated(name)
    assert found is not None
    assert (found.name, found.seed, found.runtime) == (name, 218, runtime)


def test_other_sources_are_not_overwritten(tmp_path: Path) -> None:
    """A folder that holds another system is refused by name; the same one may be written again."""
    write_project(system(203), tmp_path)
    write_project(system(203), tmp_path)
    with pytest.raises(UsageError, match=r"another system") as refused:
        write_project(system(204), tmp_path)
    assert str(tmp_path) in refused.value.where
