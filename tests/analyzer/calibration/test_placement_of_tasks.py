"""The processor of each task of a deployment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analyzer.calibration.placement import Placement, placed, placement_of
from mup.errors import ProjectError
from mup.lqn import Activity, Constant, Entry, Model, Processor, Task
from mup.project import load_project

PROJECT = """
[project]
client = "workload:User"
client_host = "lab"

[hosts.lab]
[hosts.big]

[services.A]
class = "services:A"
host = "big"

[services.B]
class = "services:B"
cpus = 1.5

[databases.db]
host = "big"
"""


def task(name: str, role: str = "service", replicas: int = 1) -> Task:
    step = Activity(name="w", demand=Constant(0.001), delay=Constant(0.0))
    return Task(
        name=name,
        role=role,  # type: ignore[arg-type]
        replicas=replicas,
        processor="host",
        entries=(Entry(name="/e/", start="w", activities=(step,)),),
    )


def model() -> Model:
    tasks = (task("User", "reference"), task("A"), task("B", replicas=2), task("C"), task("db", "database"))
    return Model(
        name="m", processors=(Processor(name="host", cores=4),), tasks=tasks, provenance={"speed": 1000.0}
    )


class Fast:
    """A machine of twice the speed with eight cores."""

    mean_speed = 2000.0

    def processor(self, name: str) -> Processor:
        return Processor(name=name, cores=8)


def project(folder: Path, text: str = PROJECT) -> Path:
    (folder / "mup.toml").write_text(text)
    return folder


def test_a_project_says_what_is_elsewhere(tmp_path: Path) -> None:
    """Services, databases and clients name their machine; limits belong to services."""
    found = placement_of(load_project(project(tmp_path)))
    assert found.tasks == {"A": "big", "db": "big", "User": "lab"}
    assert found.limits == {"B": 1.5}
    assert found.machines == {"lab": None, "big": None}


def test_every_task_gets_the_processor_of_its_machine() -> None:
    """A machine with a profile has its own cores and speed, one without is like the host."""
    placement = Placement(
        machines={"big": Fast(), "lab": None},
        tasks={"A": "big", "db": "big", "User": "lab"},
        limits={"B": 1.5},
    )
    found = placed(model(), placement)
    assert {t.name: t.processor for t in found.tasks} == {
        "User": "lab",
        "A": "big",
        "B": "B.cpus",
        "C": "host",
        "db": "big",
    }
    assert (found.processor("big").cores, found.processor("big").speed) == (8, 2.0)
    assert found.processor("lab").cores == 4
    # Two replicas with one and a half cores each: four cores at three quarters of the speed.
    assert (found.processor("B.cpus").cores, found.processor("B.cpus").speed) == (4, 0.75)


def test_nothing_elsewhere_changes_nothing() -> None:
    """Without placement the model is the same object."""
    same = model()
    assert placed(same, Placement()) is same


def test_a_machine_without_work_is_no_processor() -> None:
    """If everything moves away, the host goes."""
    everything = dict.fromkeys(("User", "A", "B", "C", "db"), "big")
    found = placed(model(), Placement(machines={"big": None}, tasks=everything))
    assert [p.name for p in found.processors] == ["big"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            'host = "big"\n\n[services.B]',
            'host = "bog"\n\n[services.B]',
            "no table .hosts.bog.; did you mean 'big'",
        ),
        ("cpus = 1.5", "cpus = 0", "cpus: must be a number > 0"),
        ("[hosts.lab]", '[hosts.lab]\nprofile = "none.json"', "none.json"),
        ("[hosts.lab]", "[hosts.host]\n[hosts.lab]", "the name of the machine everything else is on"),
    ],
)
def test_wrong_placements_are_one_message(tmp_path: Path, before: str, after: str, message: str) -> None:
    """The field and what would be right are named."""
    with pytest.raises(ProjectError) as caught:
        placement_of(load_project(project(tmp_path, PROJECT.replace(before, after))))
    text = f"{caught.value.where} {caught.value.message}"
    assert re.search(message, text)
