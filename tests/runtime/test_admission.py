"""The order in which waiting requests are served, with every runtime, and in the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployments import System, make_project, running, wait_for

from analyzer.static import analyse_project, translate
from mup.errors import DeploymentError, ProjectError, UsageError
from mup.project import load_project
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.pool.admission import Waiting, waiting_room

SOURCE = """
import asyncio
import os
import time

from mup import EP, MS, Communication

class Processes(MS):
    runtime = "process"
    admission = "random"

    def setup(self):
        self.served = 0

    @EP("/serve/")
    def serve(self, comm: Communication) -> None:
        self.served += 1
        number = self.served
        while "until" in comm.params and not os.path.exists(comm.params["until"]):
            time.sleep(0.005)
        comm.respond(number)

class Threads(Processes):
    runtime = "thread"
    serve = EP("/serve/")(Processes.serve)

class Loop(MS):
    runtime = "async"
    served = 0

    @EP("/serve/")
    async def serve(self, comm: Communication) -> None:
        self.served += 1
        number = self.served
        while "until" in comm.params and not os.path.exists(comm.params["until"]):
            await asyncio.sleep(0.005)
        comm.respond(number)
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of each runtime; the last one has its order from the command line."""
    project = make_project(tmp_path_factory.mktemp("order"), SOURCE, "Processes", "Threads", "Loop")
    with running(project, admissions={"Loop": "random"}) as system:
        yield system


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("service", ["Processes", "Threads", "Loop"])
def test_waiting_requests_are_served_in_random_order(system: System, service: str, tmp_path: Path) -> None:
    """Of ten that wait, each is served once; that they are in the order they came has a chance of 3e-7."""
    all_wait = tmp_path / "all-wait"
    first = system.begin(service, f"/serve/?until={all_wait}")
    wait_for(lambda: system.status(service)["busy"] == 1, 30)
    others = []
    for _ in range(10):
        others.append(system.begin(service, "/serve/"))
        wait_for(lambda: system.status(service)["queued"] == len(others), 30)
    all_wait.touch()
    start = first.result(30).body
    numbers = [future.result(30).body for future in others]
    assert sorted(numbers) == list(range(start + 1, start + 11))
    assert numbers != sorted(numbers)


def test_every_waiting_request_is_equally_likely() -> None:
    """Each of three that wait comes out first in a third of the cases."""
    seen: Counter[str] = Counter()
    for _ in range(3000):
        room: Waiting[str] = waiting_room("random")
        for item in "abc":
            room.append(item)
        order = [room.popleft() for _ in "abc"]
        assert sorted(order) == list("abc")
        assert len(room) == 0
        seen[order[0]] += 1
    # Five standard deviations around 1000.
    assert all(abs(count - 1000) < 130 for count in seen.values()), seen


@pytest.mark.parametrize("admission", ["fifo", "random"])
def test_who_leaves_does_not_disturb_the_others(admission: str) -> None:
    """Whichever request leaves a queue, at its beginning, middle or end, all others are served, and those who come."""
    for leaving in ("a", "c", "f", "af", "bcd", "abcdef"):
        room: Waiting[str] = waiting_room(admission)
        for item in "abcdef":
            room.append(item)
        for item in leaving:
            room.remove(item)
        room.append("g")
        staying = [item for item in "abcdefg" if item not in leaving]
        assert sorted(room) == staying
        served = [room.popleft() for _ in range(len(room))]
        assert (served if admission == "fifo" else sorted(served)) == staying


def test_the_order_is_part_of_the_model(tmp_path: Path) -> None:
    """Class and mup.toml say it, the file wins; the model's task has it."""
    (tmp_path / "shop.py").write_text(SOURCE)
    toml = (
        '[services.A]\nclass = "shop:Processes"\n[services.B]\nclass = "shop:Processes"\nadmission = "fifo"\n'
    )
    (tmp_path / "mup.toml").write_text(toml)
    project = load_project(tmp_path)
    model = translate(analyse_project(project), name="shop")
    assert {task.name: task.admission for task in model.tasks} == {"A": "random", "B": "fifo"}


def test_an_unknown_order_is_refused(tmp_path: Path) -> None:
    """Wherever it stands: file, command line, class; and with its place."""
    (tmp_path / "mup.toml").write_text('[services.A]\nclass = "shop:A"\nadmission = "lifo"\n')
    with pytest.raises(
        ProjectError, match=r"\[services.A\] admission: must be one of 'fifo', 'random', got 'lifo'"
    ):
        load_project(tmp_path)
    source = SOURCE.replace('admission = "random"', 'admission = "lifo"')
    project = make_project(tmp_path, source, "Processes")
    (finding,) = analyse_project(project).errors
    assert "admission of 'Processes' must be one of fifo, random, got 'lifo'" in finding.message
    with (
        pytest.raises(DeploymentError, match="admission must be one of fifo, random, got 'lifo'"),
        Deployment(project),
    ):
        pass
    with pytest.raises(UsageError, match="admission of 'Processes' must be one of"):
        Deployment(project, admissions={"Processes": "last"})
    with pytest.raises(UsageError, match="admission: no service 'Process'"):
        Deployment(project, admissions={"Process": "fifo"})
