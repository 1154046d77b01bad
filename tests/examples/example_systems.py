"""Start an example for real, drive it, send requests, and read its logs."""

from __future__ import annotations

import http.client
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analyzer.calibration.rundir import stale_in_model
from analyzer.static import Application, analyse_project
from mup.events.reader import log_files, read_log
from mup.events.record import Event
from mup.lqn.files import read_model
from mup.lqn.model import Model
from mup.project import Project, load_project
from mup.runtime.deployment.launcher import Deployment
from mup.workload.driver import LoadDriver, LoadResult

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

Steps = tuple[str, ...]
"""What an execution calls and queries, in this order."""


@dataclass(frozen=True)
class Page:
    """What an example answered."""

    status: int
    content: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def text(self) -> str:
        return self.content.decode()


def example(name: str, env: Mapping[str, str]) -> Project:
    """Return an example on free ports; ``env`` is added to what its services have."""
    project = load_project(EXAMPLES / name).with_any_ports()
    return replace(project, services=tuple(replace(s, env={**s.env, **env}) for s in project.services))


def committed_model(name: str, application: Application) -> Model:
    """Return the model in the folder of an example, which must be one of the source as it is."""
    model = read_model(EXAMPLES / name / "model.json")
    assert stale_in_model(model, application) == {}
    return model


def analysed(name: str) -> Application:
    """Return the analysis of an example, which must be without errors."""
    application = analyse_project(load_project(EXAMPLES / name))
    assert application.errors == ()
    return application


def possible(application: Application) -> dict[str, set[Steps]]:
    """Return what each endpoint can do, by its label."""
    return {
        endpoint.label: {
            tuple(o.target for o in p.walk() if o.op in {"call", "query"}) for p in endpoint.paths
        }
        for endpoint in application.endpoints()
    }


def lacking(application: Application, specified: Mapping[str, set[Steps]]) -> dict[str, set[Steps]]:
    """Return which of the paths an example is specified to have its analysis does not find, by endpoint."""
    found = possible(application)
    missing = {label: steps - found.get(label, set()) for label, steps in specified.items()}
    return {label: steps for label, steps in missing.items() if steps}


def fetch(
    deployment: Deployment,
    service: str,
    method: str,
    path: str,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Page:
    """Send one request to a service; params are JSON."""
    url = next(r.url for r in deployment.replicas() if r.service == service)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        body = None if params is None else json.dumps(params)
        kind = {} if params is None else {"Content-Type": "application/json"}
        connection.request(method, path, body, {**kind, **(headers or {})})
        answer = connection.getresponse()
        return Page(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
    finally:
        connection.close()


def drive(deployment: Deployment, project: Project, *, seconds: float) -> LoadResult:
    """Let one client of the example do its cycles with hardly any think times; none may fail."""
    with LoadDriver(project, deployment.registry_url) as driver:
        result = driver.run(1, seconds, think_scale=0.001)
    assert result.errors == 0, result.first_error
    assert result.cycles
    return result


def executed(folder: Path) -> dict[str, set[Steps]]:
    """Return what the executions in a log did, by the label of their endpoint."""
    found: dict[str, set[Steps]] = defaultdict(set)
    for segments in log_files(folder):
        log = read_log(segments)
        labels: dict[int, str] = {}
        steps: dict[int, list[str]] = defaultdict(list)
        for record in log.records:
            request, event = int(record["request"]), int(record["event"])
            if event == Event.BEGIN:
                labels[request] = log.names[int(record["name"])]
            elif event == Event.COMM_START:
                steps[request].append(log.names[int(record["name"])])
        for request, label in labels.items():
            found[label].add(tuple(steps[request]))
    return dict(found)
