"""A reply that an event loop does not read because its caller is at work: real services."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import numpy as np
import pytest

from analyzer.calibration.executions import held_up
from analyzer.calibration.matching import match
from analyzer.calibration.observed import Observed, observe
from analyzer.calibration.rundir import PartInfo, RunInfo, load_run
from analyzer.calibration.samples import CommunicationSamples, answered, sample_path
from analyzer.static import analyse_project, translate_with_plan
from mup.project import Project, load_project
from mup.runtime.deployment.launcher import Deployment

SERVICES = """
from mup import EP, MS, Communication


class A(MS):
    runtime = "async"

    @EP("/busy/")
    async def busy(self, comm: Communication) -> None:
        reply = comm.call("B", "/b/")
        sum(range(2_000_000))
        await reply
        comm.respond(1)

    @EP("/idle/")
    async def idle(self, comm: Communication) -> None:
        reply = comm.call("B", "/b/")
        await reply
        comm.respond(1)


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)
"""
TOML = """
[registry]
port = 0
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""
REQUESTS = 12

pytestmark = pytest.mark.services

Run = tuple[Project, Observed]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Both endpoints, one request after the other."""
    folder = tmp_path_factory.mktemp("replies")
    (folder / "services.py").write_text(SERVICES)
    (folder / "mup.toml").write_text(TOML)
    project = load_project(folder)
    logs = folder / "logs"
    with Deployment(project, log_dir=logs) as deployment:
        (url,) = (replica.url for replica in deployment.replicas() if replica.service == "A")
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        for path in ("/busy/", "/idle/") * REQUESTS:
            connection.request("GET", path)
            assert connection.getresponse().read() == b"1"
        connection.close()
    RunInfo(project="replies", parts=[PartInfo()]).save(logs)
    return project, observe(load_run(logs), scaled=False)


def call(run: Run, endpoint: str) -> CommunicationSamples:
    project, observed = run
    _, plans = translate_with_plan(analyse_project(project), name="replies")
    (path,) = plans["A", endpoint]
    found = match([path], [e for e in observed.executions if e.endpoint == f"A{endpoint}"])
    assert not found.unmatched
    (taken,) = found.taken
    (samples,) = sample_path(taken, path, observed).communication.values()
    return samples


def lateness(run: Run, endpoint: str) -> list[float]:
    """For how long each reply waited for its caller's event loop, in seconds."""
    late = []
    for execution in run[1].executions:
        if execution.endpoint == f"A{endpoint}":
            for operation in execution.operations.values():
                callee = answered(execution, operation, operation.attempt, run[1])
                assert callee is not None
                late.append(held_up(execution, operation, callee.at) * 1e-9)
    assert len(late) == REQUESTS
    return late


def test_what_the_caller_did_meanwhile_is_no_time_on_the_network(run: Run) -> None:
    """The branches of a fork would else both hold the caller's own work."""
    # Medians: on a machine that does other things, too, some replies are late.
    busy, idle = (float(np.median(call(run, endpoint).exchange.values)) for endpoint in ("/busy/", "/idle/"))
    # While the caller keeps a core, the callee may wait some milliseconds for another one.
    # The exchange that held the work as well would be longer by all of the lateness.
    assert busy < idle + float(np.median(lateness(run, "/busy/"))) / 2


def test_a_loop_that_waits_reads_at_once(run: Run) -> None:
    assert np.median(lateness(run, "/busy/")) > 0.005
    assert np.median(lateness(run, "/idle/")) < 0.0005
