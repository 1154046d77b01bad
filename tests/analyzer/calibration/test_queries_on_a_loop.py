"""A database driver's work on an event loop counts once: real services, motor, mongod."""

from __future__ import annotations

import http.client
import json
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pymongo
import pytest
from mongods import OwnMongod

from analyzer.calibration.framework import logged_cpu
from analyzer.calibration.matching import match
from analyzer.calibration.observed import Observed, observe
from analyzer.calibration.rundir import PartInfo, RunInfo, load_run
from analyzer.calibration.samples import PathSamples, sample_path
from analyzer.static import analyse_project, translate_with_plan
from mup.project import Project, load_project
from mup.runtime.deployment.launcher import Deployment
from mup.workload.cpu import process_cpu_seconds

SERVICES = """
import os

from mup import EP, MS, Communication

class Loop(MS):
    runtime = "async"

    @EP("/all/")
    async def all(self, comm: Communication) -> None:
        rows = await comm.query("db", "all", "things", {})
        comm.respond([len(rows), os.getpid()])
"""
TOML = """
[registry]
port = 0
[services.Loop]
class = "services:Loop"
[databases.db]
uri = "mongodb://placeholder"
database = "loop"
"""
DOCUMENTS, REQUESTS = 2000, 20

pytestmark = pytest.mark.services

Run = tuple[Project, Observed, float]
"""The project, its logs, and the processor seconds of the worker for all requests but the first."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, mongod: OwnMongod) -> Run:
    """One client asks for a thousand documents, again and again; the logs of that, and the process's time."""
    folder = tmp_path_factory.mktemp("loop")
    (folder / "services.py").write_text(SERVICES)
    (folder / "mup.toml").write_text(TOML)
    project = load_project(folder)
    project = replace(project, databases=(replace(project.databases[0], uri=mongod.uri),))
    logs = folder / "logs"
    with pymongo.MongoClient[dict[str, object]](mongod.uri) as client:
        client["loop"]["things"].insert_many({"_id": n, "text": "x" * 20} for n in range(DOCUMENTS))
        try:
            with Deployment(project, log_dir=logs) as deployment:
                url = deployment.replicas()[0].url
                # The first one opens the driver, which would hide the others.
                _, pid = ask(url)
                before = process_cpu_seconds(pid)
                for _ in range(1, REQUESTS):
                    assert ask(url) == [DOCUMENTS, pid]
                used = process_cpu_seconds(pid) - before
        finally:
            client.drop_database("loop")
    RunInfo(project="loop", parts=[PartInfo()]).save(logs)
    return project, observe(load_run(logs), scaled=False), used


def ask(url: str) -> list[int]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", "/all/")
        found: list[int] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()


def samples(run: Run) -> PathSamples:
    project, observed, _ = run
    _, plans = translate_with_plan(analyse_project(project), name="loop")
    (path,) = plans["Loop", "/all/"]
    found = match([path], observed.executions)
    assert not found.unmatched
    (taken,) = found.taken
    return sample_path(taken, path, observed)


def test_the_log_sees_what_the_process_has_used(run: Run) -> None:
    """One request at a time: the loop's and the driver's threads together are nearly all of the process."""
    executions = sorted(run[1].executions, key=lambda e: e.begin.time)[1:]
    assert len(executions) == REQUESTS - 1
    logged = sum(map(logged_cpu, executions))
    # mup's own work for a request is small beside that for so many documents.
    assert 0.85 * run[2] < logged <= run[2]
    inside = [o for e in executions for o in e.operations.values()]
    on_the_loop = sum(o.finish.cpu - o.contact.cpu for o in inside if o.finish and o.contact) / 1e9
    beside_it = sum(o.driver for o in inside) / 1e9
    # Neither share is small here: the first used to be counted twice, the second was framework work.
    assert on_the_loop > 0.15 * run[2]
    assert beside_it > 0.15 * run[2]


def test_the_parts_of_a_request_add_up_to_the_whole(run: Run) -> None:
    """Segments, finding the database, and the exchange last as long as the request did, not longer."""
    found = samples(run)
    weights = np.ones(len(run[1].windows))

    def mean(sample: object) -> float:
        return sample.mean(weights) or 0.0  # type: ignore[attr-defined, no-any-return]

    (query,) = found.communication.values()
    parts = sum(mean(s) for s in (*found.demand.values(), *found.delay.values()))
    parts += mean(query.registry_demand) + mean(query.registry_delay)
    parts += mean(query.exchange)
    whole = np.mean([(e.done.time - e.begin.time) / 1e9 for e in run[1].executions if e.done])
    assert parts == pytest.approx(float(whole), rel=0.1)
    # The driver's threads work while the exchange lasts.
    assert 0.0 < mean(query.driver_demand) < mean(query.exchange)
