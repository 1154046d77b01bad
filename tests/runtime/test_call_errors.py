"""The error in which each mistake and failure ends a call: one table for all callers."""

from __future__ import annotations

import asyncio
import json
import runpy
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from deployments import System, ask, make_project, running, wait_for

from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.runtime.deployment.registry_client import RegistryClient
from mup.testing import TestClient
from mup.workload.scenario import ClientCommunication

pytestmark = pytest.mark.services

SOURCE = """
from mup import EP, MS, Communication
from mup.errors import MupError

CALLS = {
    "timeout-zero": dict(path="/orders", method="POST", timeout=0),
    "timeout-negative": dict(path="/orders", method="POST", timeout=-1.5),
    "timeout-nan": dict(path="/orders", method="POST", timeout=float("nan")),
    "timeout-infinite": dict(path="/orders", method="POST", timeout=float("inf")),
    "timeout-text": dict(path="/orders", method="POST", timeout="5"),
    "body-object": dict(path="/orders", method="POST", params={"x": object()}),
    "body-bytes-key": dict(path="/orders", method="POST", params={1.5j: 1}),
    "query-object": dict(path="/orders", method="GET", params={"x": object()}),
    "query-nested": dict(path="/orders", method="GET", params={"x": {"y": 1}}),
    "path-param-missing": dict(path="/orders/{order_id}", method="PUT"),
    "path-param-empty": dict(path="/orders/{order_id}", method="PUT", params={"order_id": ""}),
    "path-surrogate": dict(path="/orders/\\ud800", method="PUT"),
    "header-of-connection": dict(path="/orders", method="POST", headers={"Host": "shop.example"}),
    "header-line-break": dict(path="/orders", method="POST", headers={"X-A": "b\\r\\nX-C: d"}),
    "header-surrogate": dict(path="/orders", method="POST", headers={"X-A": "\\ud800"}),
    "header-none": dict(path="/orders", method="POST", headers={"X-A": None}),
    "header-name": dict(path="/orders", method="POST", headers={"X A": "b"}),
    "method-unsendable": dict(path="/orders", method="GE T"),
    "path-with-method": dict(path="/orders GET"),
    "name-of-another-method": dict(path="orders", method="POST"),
    "method-open": dict(path="/orders"),
    "unknown-service": dict(dest_ms="Shopp", path="/orders"),
    "unknown-path": dict(path="/ordres"),
    "unknown-method": dict(path="/orders", method="DELETE"),
    "status-404": dict(path="/status", params={"status": 404}),
    "status-500": dict(path="/status", params={"status": 500}),
    "status-503": dict(path="/status", params={"status": 503}),
    "status-302": dict(path="/status", params={"status": 302}),
    "nobody-listens": dict(dest_ms="Dead", path="/x"),
    "no-answer": dict(dest_ms="Silent", path="/x", timeout=0.2),
    "no-byte": dict(dest_ms="Closing", path="/x"),
    "half-a-body": dict(dest_ms="Cut", path="/x"),
    "another-protocol": dict(dest_ms="Mail", path="/x"),
    "no-json": dict(dest_ms="Liar", path="/x"),
    "no-charset": dict(dest_ms="Babel", path="/x"),
}


def told(error):
    return [type(error).__name__, str(error)]


class Shop(MS):
    @EP("/orders", method="GET")
    def orders(self, comm: Communication) -> None:
        comm.respond("listed")

    @EP("/orders", method="POST")
    def order(self, comm: Communication) -> None:
        comm.respond("ordered")

    @EP("/orders/{order_id}", method="PUT")
    def change(self, comm: Communication) -> None:
        comm.respond("changed")

    @EP("/status")
    def status(self, comm: Communication) -> None:
        comm.respond({"error": "as asked"}, comm.params["status"])


class Processes(MS):
    @EP("/try/{case}")
    def attempt(self, comm: Communication, case: str) -> None:
        try:
            comm.respond(["answer", comm.call(**{"dest_ms": "Shop", **CALLS[case]}).get()])
        except MupError as error:
            comm.respond(told(error))


class Threads(Processes):
    runtime = "thread"


class Loop(MS):
    runtime = "async"

    @EP("/try/{case}")
    async def attempt(self, comm: Communication, case: str) -> None:
        try:
            comm.respond(["answer", await comm.call(**{"dest_ms": "Shop", **CALLS[case]})])
        except MupError as error:
            comm.respond(told(error))
"""

MISTAKES = {
    "timeout-zero": "timeout must be a number of seconds > 0, got 0",
    "timeout-negative": "timeout must be a number of seconds > 0, got -1.5",
    "timeout-nan": "timeout must be a number of seconds > 0, got nan",
    "timeout-infinite": "timeout must be a number of seconds > 0, got inf",
    "timeout-text": "timeout must be a number of seconds > 0, got '5'",
    "body-object": "the params cannot be sent as JSON",
    "body-bytes-key": "the params cannot be sent as JSON",
    "query-object": "only texts, numbers and the like fit into a path or query string",
    "query-nested": "only texts, numbers and the like fit into a path or query string",
    "path-param-missing": "'/orders/{order_id}' needs the param 'order_id'",
    "path-param-empty": "'order_id' in '/orders/{order_id}' cannot be ''",
    "path-surrogate": "the path cannot be sent",
    "header-of-connection": "a call cannot have a header 'Host' of its own",
    "header-line-break": "a header cannot be sent: 'X-A'",
    "header-surrogate": "a header cannot be sent: 'X-A'",
    "header-none": "a header cannot be sent: 'X-A'",
    "header-name": "a header cannot be sent: 'X A'",
    "method-unsendable": "no HTTP method is called 'GE T'",
    "path-with-method": "'/orders GET' is no path",
}
"""Mistakes in the caller's code: every one is a `UsageError` of ``call``. What it says."""

MISADDRESSED = {
    "name-of-another-method": "the endpoint named 'orders' is for GET, not for POST",
    "method-open": "'/orders' has several methods: GET, POST",
}
"""The same, but seen only where the endpoints of the callee are known; a stub has none."""

ANSWERS = {
    "unknown-path": ("CallError", "Shop/ordres answered 404"),
    "unknown-method": ("CallError", "answered 405"),
    "status-404": ("CallError", "Shop/status answered 404: as asked"),
    "status-500": ("CallError", "Shop/status answered 500: as asked"),
    "status-503": ("CallError", "Shop/status answered 503: as asked"),
    "status-302": ("CallError", "Shop/status answered 302: as asked"),
}
"""What a callee answers outside 2xx."""

FAILURES = {
    "unknown-service": ("UnknownServiceError", "did you mean 'Shop'"),
    "nobody-listens": ("NoReplicaError", "'Dead'"),
    "no-answer": ("CallTimeoutError", "Silent/x"),
    "no-byte": ("BrokenCallError", "Closing/x"),
    "half-a-body": ("BrokenCallError", "Cut/x"),
    "another-protocol": ("BrokenCallError", "Mail/x"),
    "no-json": ("CommunicationError", "Liar/x"),
    "no-charset": ("CommunicationError", "Babel/x"),
}
"""What the network, or who is at its other end, has done."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: 4\r\n\r\n%b"
SERVERS = {
    "Closing": b"",
    "Cut": OK % (b"text/plain", b"abc"),
    "Mail": b"220 mail.example.org ESMTP\r\n\r\n",
    "Liar": OK % (b"application/json", b"{..}"),
    "Babel": OK % (b"text/plain; charset=klingon", b"nuqH"),
}

Attempt = Callable[[str], list[str]]


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that gives every request the same bytes, and closes the connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(reply)
            except OSError:
                pass  # the test is over

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Services of every runtime, and replicas that behave badly."""
    folder = tmp_path_factory.mktemp("errors")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        # Replicas that the tests register themselves show no life.
        patch.setenv("MUP_REGISTRY_EXPIRY", "300")
        system = stack.enter_context(
            running(make_project(folder, SOURCE, "Shop", "Processes", "Threads", "Loop"))
        )
        ports = {name: stack.enter_context(answering(reply)) for name, reply in SERVERS.items()}
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ports["Silent"] = silent.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as unused:
            ports["Dead"] = unused.getsockname()[1]
        registry = RegistryClient(system.deployment.registry_url)
        for name, port in ports.items():
            entry = {"service": name, "url": f"http://127.0.0.1:{port}", "endpoints": {"x": "/x"}}
            registry.post("/register", entry)
        # One that has just started does not know all services yet, and says so.
        url = system.deployment.registry_url
        wait_for(lambda: not ask(url, "/replicas?service=Shopp").body["learning"], 30)
        yield system


def _user(system: System, arguments: Mapping[str, Any]) -> list[str]:
    """Have a client of a load make the call."""

    async def call() -> list[str]:
        network = Network(system.deployment.registry_url, EventLog(None, Path()), 0, {})
        try:
            return ["answer", await ClientCommunication(network).call(**{"dest_ms": "Shop", **arguments})]
        except Exception as error:  # noqa: BLE001 - what it is, is asked
            return [type(error).__name__, str(error)]
        finally:
            await network.close()

    return asyncio.run(call())


@pytest.fixture(params=["Processes", "Threads", "Loop", "user"])
def attempt(request: pytest.FixtureRequest, shop: System) -> Attempt:
    """Makes a call as each kind of caller; returns the class of its error and what it says."""
    caller = request.param
    if caller == "user":
        calls = runpy.run_path(str(shop.logs.parent / "shop.py"))["CALLS"]
        return lambda case: _user(shop, calls[case])
    return lambda case: shop.ask(caller, f"/try/{case}").body


def _stubbed(case: str, folder: Path) -> list[str]:
    """Make the call in the test client, in an endpoint of each colour; both see the same."""
    (folder / "shop.py").write_text(SOURCE)
    services = runpy.run_path(str(folder / "shop.py"))
    seen = []
    for kind in ("Processes", "Loop"):
        with TestClient(services[kind]) as client:
            arguments = services["CALLS"][case]
            status = (arguments.get("params") or {}).get("status", 404)
            client.stub("Shop", "/status", {"error": "as asked"}, status=status)
            seen.append(client.get(f"/try/{case}").body)
    assert seen[0] == seen[1]
    return seen[0]


@pytest.mark.parametrize(("case", "says"), [*MISTAKES.items(), *MISADDRESSED.items()])
def test_a_mistake_of_the_caller(attempt: Attempt, case: str, says: str) -> None:
    """What is wrong in the code of the caller is a usage error, for every kind of caller."""
    kind, text = attempt(case)
    assert (kind, says in text) == ("UsageError", True), text


@pytest.mark.parametrize(
    ("case", "kind", "says"), [(case, *seen) for case, seen in (ANSWERS | FAILURES).items()]
)
def test_a_failure_of_others(attempt: Attempt, case: str, kind: str, says: str) -> None:
    """What is wrong elsewhere is a communication error that names the endpoint or service."""
    found, text = attempt(case)
    assert (found, says in text) == (kind, True), text


@pytest.mark.parametrize(("case", "says"), MISTAKES.items())
def test_a_mistake_in_the_test_client(tmp_path: Path, case: str, says: str) -> None:
    """What is a mistake in a deployment is the same one in a test."""
    kind, text = _stubbed(case, tmp_path)
    assert (kind, says in text) == ("UsageError", True), text


@pytest.mark.parametrize("case", ["status-404", "status-500", "status-503", "status-302"])
def test_a_failure_in_the_test_client(tmp_path: Path, case: str) -> None:
    """The error of a status outside 2xx is the one of a deployment, word by word."""
    kind, says = ANSWERS[case]
    found, text = _stubbed(case, tmp_path)
    assert (found, says in text) == (kind, True), text


def test_the_table_is_whole() -> None:
    """Every call of the table has its outcome, and none has two."""
    calls = set(json.loads(json.dumps(list(runpy_calls()))))
    assert calls == {*MISTAKES, *MISADDRESSED, *ANSWERS, *FAILURES}
    assert len(calls) == len(MISTAKES) + len(MISADDRESSED) + len(ANSWERS) + len(FAILURES)


def runpy_calls() -> list[str]:
    """Return the names of the calls."""
    names: dict[str, Any] = {}
    exec(SOURCE, names)
    return list(names["CALLS"])
