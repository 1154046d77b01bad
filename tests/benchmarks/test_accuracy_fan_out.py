"""Fan-out bed: systems whose first service calls the second once for each item of a list."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from accuracy.beds import BEDS
from accuracy.command import seeds_of
from accuracy.deploy import generated
from accuracy.fan_out import FAN_OUT_SYSTEMS, KINDS, WIDTHS, fan_out
from accuracy.nominal import nominal
from accuracy.project import write_project
from accuracy.system import Burn, Fan, every_step

from analyzer.static import analyse_project
from mup.project import load_project

SEEDS = [*seeds_of(BEDS["fan-out"].train), *seeds_of(BEDS["fan-out"].test)]
SOURCES = "9eb577b9581cd4f5"
"""Digest of all written projects: what is held out today is what was held out yesterday."""


def test_a_seed_always_gives_the_same_system(tmp_path: Path) -> None:
    """Sources are the same to the byte on every machine, and no two seeds share them."""
    digest = hashlib.sha256()
    seen = set()
    for seed in SEEDS:
        write_project(fan_out(seed), tmp_path / str(seed))
        services = (tmp_path / str(seed) / "services.py").read_text(encoding="utf-8")
        seen.add(services.split("\n", 1)[1])
        for file in sorted((tmp_path / str(seed)).iterdir()):
            digest.update(f"{seed} {file.name}\0{file.read_text(encoding='utf-8')}\0".encode())
    assert len(seen) == len(SEEDS)
    assert digest.hexdigest()[:16] == SOURCES


def test_names_are_those_of_the_bed() -> None:
    """The last two digits say the kind; a number beyond the kinds is no system."""
    for seed in SEEDS:
        assert generated(f"f{seed}") == fan_out(seed)
    assert generated(f"f{500 + FAN_OUT_SYSTEMS}") is None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_analysis_finds_the_fan_out(seed: int, tmp_path: Path) -> None:
    """Runtime, callee, and the limit of the semaphore are read from the source; the width is left to the log."""
    system = fan_out(seed)
    write_project(system, tmp_path)
    application = analyse_project(load_project(tmp_path))
    assert not application.diagnostics
    runtime, limited = KINDS[seed % 100]
    assert {service.runtime for service in application.services} == {runtime}
    (fan,) = (step for step in every_step(system.service("A")) if isinstance(step, Fan))
    assert bool(fan.limit) == limited
    shop = next(service for service in application.services if service.name == "A")
    (endpoint,) = shop.endpoints
    (path,) = endpoint.paths
    (found,) = (operation for operation in path.operations if operation.op == "fan-out")
    assert (found.limit or 0) == fan.limit
    assert [repr(o.to) for o in found.bodies[0].operations if o.op == "call"] == [
        "EndpointRef(service='B', path='/item/')"
    ]


def test_lists_of_users_have_the_widths_that_are_said(tmp_path: Path) -> None:
    """Their ends stand in the client; on paper a list has their mean."""
    system = fan_out(500)
    write_project(system, tmp_path)
    workload = (tmp_path / "workload.py").read_text(encoding="utf-8")
    assert f"self.random.randint({WIDTHS[0]}, {WIDTHS[1]})" in workload
    (burn,) = (step for step in every_step(system.service("B")) if isinstance(step, Burn))
    assert nominal(system).used["B"] == pytest.approx(6 * burn.ms)
