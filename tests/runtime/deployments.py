"""Real deployments of small services, and ways to talk to them, for the tests of the runtime."""

from __future__ import annotations

import http.client
import json
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment
from mup.runtime.protocol.run_token import is_run_token

SOURCE = '''
import os
import time

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, UnknownServiceError


class One(MS):
    """One worker: everything is served one after the other."""

    pool_size = 1

    def setup(self):
        self.served = 0

    @EP("/count/")
    def count(self, comm: Communication) -> None:
        self.served += 1
        number = self.served
        time.sleep(float(comm.params.get("seconds", 0)))
        comm.respond({"number": number, "tag": comm.params.get("tag")})

    @EP("/after/")
    def after(self, comm: Communication) -> None:
        comm.respond("early")
        time.sleep(0.3)

    @EP("/status/")
    def status(self, comm: Communication) -> None:
        comm.respond({"asked": True}, status=int(comm.params["status"]))


class Pair(One):
    """Two replicas of two workers."""

    pool_size = 2
    replicas = 2

    @EP("/pid/")
    def pid(self, comm: Communication) -> None:
        comm.respond(os.getppid())


class Caller(MS):
    pool_size = 4

    @EP("/join/")
    def join(self, comm: Communication) -> None:
        first = comm.call("Pair", "/count/", {"seconds": 0.3})
        second = comm.call("Pair", "/count/", {"seconds": 0.3})
        comm.respond([first.get()["number"] > 0, second.get()["number"] > 0])

    @EP("/chain/", name="chained")
    def chain(self, comm: Communication) -> None:
        answer = comm.call("One", "count", {"tag": comm.params["tag"]})
        comm.respond(answer.get()["tag"])

    @EP("/spread/")
    def spread(self, comm: Communication) -> None:
        futures = [comm.call("Pair", "/pid/") for _ in range(60)]
        comm.respond([future.get() for future in futures])

    @EP("/twice-get/")
    def twice_get(self, comm: Communication) -> None:
        answer = comm.call("One", "/count/")
        comm.respond(answer.get() == answer.get())

    @EP("/forget/")
    def forget(self, comm: Communication) -> None:
        for _ in range(3):
            comm.call("One", "/count/", {"seconds": 0.05})
        comm.respond("sent")

    @EP("/failing/")
    def failing(self, comm: Communication) -> None:
        try:
            comm.call("One", "/status/", {"status": comm.params["status"]}).get()
        except CallError as error:
            comm.respond({"status": error.status, "body": error.body, "text": str(error)})

    @EP("/unchecked/")
    def unchecked(self, comm: Communication) -> None:
        answer = comm.call("One", "/status/", {"status": 404}).get(check=False)
        comm.respond([answer.status, answer.ok, answer.body, answer.headers["content-type"]])

    @EP("/uncaught/")
    def uncaught(self, comm: Communication) -> None:
        comm.respond(comm.call("Caller", "/boom/").get())

    @EP("/slow/")
    def slow(self, comm: Communication) -> None:
        started = time.monotonic()
        try:
            comm.call("One", "/count/", {"seconds": 1}, timeout=0.2).get()
        except CallTimeoutError as error:
            comm.respond({"text": str(error), "took": time.monotonic() - started})

    @EP("/impatient/")
    def impatient(self, comm: Communication) -> None:
        answer = comm.call("One", "/count/", {"seconds": 0.3, "tag": "late"})
        try:
            answer.get(timeout=0.05)
        except CallTimeoutError:
            comm.respond(answer.get()["tag"])

    @EP("/smuggle/")
    def smuggle(self, comm: Communication) -> None:
        try:
            comm.call("One", "/count/", headers={"X-A": "b\\r\\nX-C: d"})
        except CommunicationError as error:
            comm.respond(str(error))

    @EP("/pass-headers/")
    def pass_headers(self, comm: Communication) -> None:
        comm.respond(comm.call("Caller", "/echo/", {"a": 1}, headers={"User-Agent": "x"}).get())

    @EP("/deadline/")
    def deadline(self, comm: Communication) -> None:
        comm.respond(float(comm.headers["x-mup-DEADLINE"]))

    @EP("/pass-on/")
    def pass_on(self, comm: Communication) -> None:
        comm.respond(comm.call("Caller", "/deadline/", timeout=2).get())

    @EP("/unknown/")
    def unknown(self, comm: Communication) -> None:
        try:
            comm.call("Onee", "/count/")
        except UnknownServiceError as error:
            comm.respond(str(error))

    @EP("/database/")
    def database(self, comm: Communication) -> None:
        try:
            comm.query("nowhere", "qry", "words", {}).get()
        except CommunicationError as error:
            comm.respond([type(error).__name__, str(error)])

    @EP("/boom/")
    def boom(self, comm: Communication) -> None:
        raise ValueError("no such luck")

    @EP("/silent/")
    def silent(self, comm: Communication) -> None:
        pass

    @EP("/twice/")
    def twice(self, comm: Communication) -> None:
        comm.respond("first")
        comm.respond("second")

    @EP("/unsendable/")
    def unsendable(self, comm: Communication) -> None:
        comm.respond({"a": object()})

    @EP("/exit/")
    def exit(self, comm: Communication) -> None:
        raise SystemExit(3)

    @EP("/die/")
    def die(self, comm: Communication) -> None:
        os._exit(7)

    @EP("/echo/")
    def echo(self, comm: Communication) -> None:
        comm.respond(
            {
                "params": comm.params,
                "body": len(comm.body),
                "agent": comm.headers.get("USER-agent"),
                "cookies": dict(comm.cookies),
            },
            headers={"X-Seen": "yes"},
        )

    @EP("/kinds/")
    def kinds(self, comm: Communication) -> None:
        kind = comm.params["kind"]
        bodies = {"text": "häuser", "bytes": b"\\x00\\x01", "none": None, "number": 2.5, "html": "<b>x</b>"}
        comm.respond(bodies[kind], headers={"content-type": "text/html"} if kind == "html" else None)

    @EP("/receive-kinds/")
    def receive_kinds(self, comm: Communication) -> None:
        kinds = ["text", "bytes", "none", "number", "html"]
        comm.respond([repr(comm.call("Caller", "/kinds/", {"kind": kind}).get()) for kind in kinds])

    @EP("/über weg/")
    def path_with_letters(self, comm: Communication) -> None:
        comm.respond("here")

    @EP("/to-letters/")
    def to_letters(self, comm: Communication) -> None:
        comm.respond(comm.call("Caller", "/über weg/").get())

    @EP("/print/")
    def prints(self, comm: Communication) -> None:
        print("x" * 100_000)
        comm.respond("printed")
'''


@dataclass(frozen=True)
class Answer:
    """What came back for one HTTP request."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The decoded JSON body."""
        return json.loads(self.raw)


_tokens: list[str] = []
"""Of the deployments that run, the newest last, as far as they are not configured."""


def ask(url: str, path: str, body: bytes | None = None, method: str = "", **headers: str) -> Answer:
    """Send one HTTP request of our own, with another client than mup's.

    It shows the token that the newest deployment has invented for itself, unless told to show something else.
    """
    if _tokens:
        headers = {"Authorization": f"Bearer {_tokens[-1]}", **headers}
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, body, named)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


class System:
    """A running deployment and ways to talk to it."""

    def __init__(self, deployment: Deployment, logs: Path) -> None:
        self.deployment = deployment
        self.logs = logs
        self._threads = ThreadPoolExecutor(40)

    def url(self, service: str, replica: int = 0) -> str:
        """Return where a replica listens."""
        (url,) = [r.url for r in self.deployment.replicas() if r.service == service and r.replica == replica]
        return url

    def ask(self, service: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send a request to the first replica of a service."""
        return ask(self.url(service), path, body, **headers)

    def begin(self, service: str, path: str) -> Future[Answer]:
        """Send a request from a thread of its own."""
        return self._threads.submit(self.ask, service, path)

    def status(self, service: str, token: str = "") -> dict[str, Any]:
        """Return what a front says about itself, to who has the token if there is one."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        status: dict[str, Any] = self.ask(service, "/mup/status", **headers).body
        return status

    def settle(self, service: str) -> None:
        """Wait until a replica has nothing to do."""
        wait_for(lambda: self.status(service)["busy"] + self.status(service)["queued"] == 0)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def wait_for(condition: Callable[[], Any], seconds: float = 5.0) -> Any:
    """Return the first true value of a condition; fail if there is none in time."""
    give_up = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < give_up, "waited too long"
        time.sleep(0.01)
    return value


def make_project(folder: Path, source: str, *names: str, **settings: Any) -> Project:
    """Return a project of services in one module; the name of a class is the name of its service."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.py").write_text(textwrap.dedent(source), encoding="utf-8")
    services = tuple(ServiceConfig(name=name, target=f"shop:{name}", **settings) for name in names)
    return Project(name="shop", root=folder, source=folder, services=services, registry_port=0)


@contextmanager
def running(project: Project, **options: Any) -> Iterator[System]:
    """Run a project with event logs."""
    logs = project.root / "logs"
    with Deployment(project, log_dir=logs, **options) as deployment:
        system = System(deployment, logs)
        invented = [deployment.token] if is_run_token(deployment.token) else []
        _tokens.extend(invented)
        try:
            yield system
        finally:
            system.close()
            for token in invented:
                _tokens.remove(token)
