"""Errors in production: clients are told little, the log has the rest under the same id."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from deployments import Answer, System, ask, make_project, running, wait_for

from mup.errors import DeploymentError, ProjectError
from mup.project import load_project
from mup.runtime.deployment.launcher import Deployment

pytestmark = pytest.mark.slow

SOURCE = """
import os

from mup import EP, MS, Communication


class Processes(MS):
    @EP("/secret-name/")
    def secret(self, comm: Communication, number: int = 0) -> None:
        raise RuntimeError("password=hunter2")

    @EP("/misspelt/")
    def misspelt(self, comm: Communication) -> None:
        comm.call("Procesess", "/x/")

    @EP("/silent/")
    def silent(self, comm: Communication) -> None:
        pass

    @EP("/relay/")
    def relay(self, comm: Communication) -> None:
        comm.respond(comm.call("Loop", "/fails/").get())

    @EP("/dies/")
    def dies(self, comm: Communication) -> None:
        os._exit(3)


class Loop(MS):
    runtime = "async"

    @EP("/fails/")
    async def fails(self, comm: Communication) -> None:
        raise RuntimeError("password=hunter3")
"""


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the services write their log lines."""
    return tmp_path_factory.mktemp("said") / "log.jsonl"


@pytest.fixture(scope="module")
def system(logged: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Services in production, whose standard error goes to a file."""
    project = make_project(tmp_path_factory.mktemp("production"), SOURCE, "Processes", "Loop")
    with pytest.MonkeyPatch.context() as patch, logged.open("wb") as file:
        patch.setenv("MUP_LOG", "json")
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            with running(project, production=True) as system:
                yield system
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def lines(logged: Path, request: str) -> str:
    """Return the lines of the log that have the id of a request."""
    return "\n".join(line for line in logged.read_text().splitlines() if request in line)


def check(answer: Answer, status: int, text: str) -> str:
    """Check an answer that tells nothing; return the id of its request."""
    request: str = answer.headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{16}", request)
    assert (answer.status, answer.body) == (status, {"error": text, "request": request})
    return request


@pytest.mark.services
@pytest.mark.parametrize(
    ("service", "path", "status", "text", "told"),
    [
        ("Processes", "/secret-name/", 500, "Internal Server Error", "hunter2"),
        ("Processes", "/misspelt/", 500, "Internal Server Error", "unknown service 'Procesess'"),
        ("Processes", "/silent/", 500, "Internal Server Error", "returned without respond()"),
        ("Processes", "/relay/", 500, "Internal Server Error", "Loop/fails/ answered 500"),
        ("Processes", "/secret-nam/", 404, "Not Found", "did you mean '/secret-name/'"),
        ("Processes", "/dies/", 502, "Bad Gateway", "the worker ended with status 3"),
        ("Loop", "/fails/", 500, "Internal Server Error", "hunter3"),
        ("Loop", "/nothing/", 404, "Not Found", "no endpoint '/nothing/'"),
    ],
)
def test_clients_are_told_the_status_and_an_id(
    system: System, logged: Path, service: str, path: str, status: int, text: str, told: str
) -> None:
    """No text or type of an exception, no name of a service or an endpoint; all of it is in the log."""
    answer = system.ask(service, path)
    request = check(answer, status, text)
    wait_for(lambda: told in lines(logged, request))


@pytest.mark.services
def test_what_the_client_did_wrong_is_told(system: System) -> None:
    """A value that does not fit is the client's own: it is told which, and nothing else."""
    answer = system.ask("Processes", "/secret-name/?number=x")
    request = answer.headers["x-request-id"]
    assert answer.status == 400
    assert answer.body == {"error": "Expected `int`, got `str`", "field": "number", "request": request}


@pytest.mark.services
def test_requests_that_cannot_be_read(system: System, logged: Path) -> None:
    """They have an id of their own."""
    parts = urlsplit(system.url("Processes"))
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
        sock.sendall(b"rubbish\r\n\r\n")
        head, _, body = sock.recv(65536).partition(b"\r\n\r\n")
    assert json.loads(body)["error"] == "Bad Request"
    assert f"X-Request-Id: {json.loads(body)['request']}".encode() in head
    wait_for(lambda: "no HTTP request" in lines(logged, json.loads(body)["request"]))


@pytest.mark.services
def test_the_id_is_that_of_the_caller(system: System, logged: Path) -> None:
    """Who has sent an id finds it in the answer, also where no worker has seen the request."""
    for path in ("/secret-name/", "/nobody/"):
        answer = system.ask("Processes", path, X_Mup_Request="123abc")
        assert answer.headers["x-request-id"] == "0000000000123abc"


@pytest.mark.services
def test_otherwise_everything_is_told_with_the_id(tmp_path: Path) -> None:
    """On a developer's machine errors say what they are; the id is in a header."""
    with running(make_project(tmp_path, SOURCE, "Processes")) as system:
        answer = system.ask("Processes", "/secret-name/")
        assert answer.body == {
            "error": "RuntimeError: password=hunter2",
            "service": "Processes",
            "endpoint": "/secret-name/",
        }
        missing = system.ask("Processes", "/secret-nam/")
        assert "did you mean '/secret-name/'" in missing.body["error"]
        for one in (answer, missing):
            assert re.fullmatch(r"[0-9a-f]{16}", one.headers["x-request-id"])


@pytest.mark.services
@pytest.mark.parametrize("how", ["option", "file", "environment"])
def test_ways_to_say_so(tmp_path: Path, how: str) -> None:
    """An option of ``mup run``, a field of mup.toml, a variable of the environment."""
    (tmp_path / "shop.py").write_text(SOURCE)
    (tmp_path / "mup.toml").write_text(
        ("[project]\nproduction = true\n" if how == "file" else "")
        + '[registry]\nport = 0\n[services.Processes]\nclass = "shop:Processes"\n'
    )
    words = ["--production"] if how == "option" else []
    more = {"MUP_PRODUCTION": "1"} if how == "environment" else {}
    command = [sys.executable, "-m", "mup", "run", str(tmp_path), "--json", *words]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **more}
    )
    try:
        assert run.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            text += run.stdout.readline().decode()
        (url,) = json.loads(text)["services"]["Processes"]["replicas"]
        check(ask(url, "/secret-name/"), 500, "Internal Server Error")
    finally:
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)


def test_what_is_neither_yes_nor_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error must not open what was to be closed."""
    file = tmp_path / "mup.toml"
    file.write_text('[project]\nproduction = "true"\n[services.A]\nclass = "a:A"\n')
    with pytest.raises(ProjectError, match=r"production: must be true or false, got 'true'"):
        load_project(file)
    monkeypatch.setenv("MUP_PRODUCTION", "yes")
    with pytest.raises(DeploymentError, match="MUP_PRODUCTION must be 0 or 1, got 'yes'"):
        Deployment(make_project(tmp_path, SOURCE, "Processes"))
