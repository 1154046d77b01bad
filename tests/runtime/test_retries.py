"""Failed calls are repeated where that is safe, and never more often than the budget allows."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deployments import System, ask, make_project, running, wait_for
from prometheus_client.parser import text_string_to_metric_families as parse

from analyzer.calibration.executions import collect
from mup.errors import ProjectError
from mup.events.convert import json_records, otlp_spans
from mup.events.ids import attempt_of, child_id
from mup.events.reader import LogStream, read_log
from mup.project import load_project
from mup.retries import RetryPolicy
from mup.runtime.deployment.registry_client import RegistryClient

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = '''
import os
import time
from pathlib import Path

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError

FOLDER = Path(__file__).parent


def seen(tag):
    """Count requests over the lives of workers."""
    with (FOLDER / tag).open("ab") as file:
        file.write(b"x")
        return file.tell()


class Flaky(MS):
    pool_size = 10

    @EP("/busy/")
    def busy(self, comm: Communication) -> None:
        """Refuses so many times."""
        number = seen(comm.params["tag"])
        if number <= int(comm.params["times"]):
            comm.respond({"error": "come again"}, 503, {"Retry-After": str(comm.params.get("after", 0))})
        else:
            comm.respond(number)

    @EP("/broken/")
    def broken(self, comm: Communication) -> None:
        seen(comm.params["tag"])
        comm.respond({"error": "as always"}, int(comm.params["status"]))

    @EP("/held/")
    def held(self, comm: Communication) -> None:
        """The first request is not answered before the test is over."""
        number = seen(comm.params["tag"])
        give_up = time.monotonic() + 30
        while number == 1 and not (FOLDER / "over").exists() and time.monotonic() < give_up:
            time.sleep(0.02)
        comm.respond(number)

    @EP("/dies/")
    def dies(self, comm: Communication) -> None:
        number = seen(comm.params["tag"])
        if number == 1:
            os._exit(3)
        comm.respond(number)


def arguments(comm):
    asked = comm.params
    return {
        "params": asked["params"],
        "timeout": asked.get("timeout"),
        "method": asked.get("method", ""),
        "idempotent": asked.get("idempotent"),
    }


def told(error):
    return {"error": type(error).__name__, "status": getattr(error, "status", None)}


class Blocks(MS):
    @EP("/try/")
    def attempt(self, comm: Communication) -> None:
        try:
            future = comm.call(comm.params["service"], comm.params["path"], **arguments(comm))
            comm.respond({"answer": future.get()})
        except CommunicationError as error:
            comm.respond(told(error))


class Awaits(MS):
    runtime = "async"

    @EP("/try/")
    async def attempt(self, comm: Communication) -> None:
        try:
            future = comm.call(comm.params["service"], comm.params["path"], **arguments(comm))
            comm.respond({"answer": await future})
        except CommunicationError as error:
            comm.respond(told(error))


class BlocksLittle(Blocks):
    """Has a budget of its own."""


class AwaitsLittle(Awaits):
    """Has a budget of its own."""
'''

# A budget that no test uses up, however often a slow machine has attempts repeated.
POLICY = RetryPolicy(attempts=6, budget=1.0, backoff=0.02, attempt_timeout=0.5)
LITTLE = RetryPolicy(attempts=3, budget=0.1, backoff=0.001)


class Shop:
    """The running services, and how often endpoints were executed."""

    def __init__(self, system: System, folder: Path) -> None:
        self.system = system
        self.folder = folder
        self.registry = RegistryClient(system.deployment.registry_url)

    def call(
        self,
        caller: str,
        path: str,
        *,
        service: str = "Flaky",
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Have a service call an endpoint; return what came of it."""
        body = json.dumps({"service": service, "path": path, **options}).encode()
        complete = {"Content_Type": "application/json", **(headers or {})}
        answer: dict[str, Any] = self.system.ask(caller, "/try/", body, **complete).body
        return answer

    def executed(self, tag: str) -> int:
        """Return how often endpoints were executed for a tag."""
        file = self.folder / tag
        return file.stat().st_size if file.exists() else 0

    def counted(self, caller: str, name: str, **labels: str) -> float:
        """Return a metric of a service."""
        text = self.system.ask(caller, "/mup/metrics").raw.decode()
        return sum(
            sample.value
            for family in parse(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@pytest.fixture(params=["Blocks", "Awaits"])
def caller(request: pytest.FixtureRequest) -> str:
    """A service that calls: one that blocks, and one on an event loop."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """All services; those that call make calls again."""
    folder = tmp_path_factory.mktemp("retries")
    project = make_project(folder, SOURCE, "Flaky", "Blocks", "Awaits", "BlocksLittle", "AwaitsLittle")
    policies = {"Blocks": POLICY, "Awaits": POLICY, "BlocksLittle": LITTLE, "AwaitsLittle": LITTLE}
    services = tuple(replace(s, retries=policies.get(s.name)) for s in project.services)
    with pytest.MonkeyPatch.context() as patch:
        # Replicas that the tests register themselves show no life.
        patch.setenv("MUP_REGISTRY_EXPIRY", "300")
        with running(replace(project, services=services)) as system:
            yield Shop(system, folder)
            (folder / "over").touch()


def test_busy_callee_is_asked_again(shop: Shop, caller: str) -> None:
    """A 503 with Retry-After was not executed: the call is made again, whatever its method."""
    found = shop.call(caller, "/busy/", params={"tag": f"busy{caller}", "times": 2})
    assert found == {"answer": 3}


def test_repetitions_are_counted_after_the_pool_has_changed(shop: Shop, caller: str) -> None:
    """Whichever worker told of them before is gone."""
    change = {"Content_Type": "application/json"}
    for size in (3, 1):
        assert (
            shop.system.ask(caller, "/mup/pool", json.dumps({"pool_size": size}).encode(), **change).status
            == 200
        )
    wait_for(lambda: len(shop.system.status(caller)["workers"]) == 1)
    before = shop.counted(caller, "mup_call_retries_total", destination="Flaky")
    assert shop.call(caller, "/busy/", params={"tag": f"pool{caller}", "times": 2}) == {"answer": 3}
    assert shop.counted(caller, "mup_call_retries_total", destination="Flaky") == before + 2


@pytest.mark.parametrize("status", [500, 503, 404])
def test_other_failures_are_final(shop: Shop, caller: str, status: int) -> None:
    """An error of the endpoint, or a 503 without ``Retry-After``, is what the caller gets, at once."""
    tag = f"broken{caller}{status}"
    found = shop.call(caller, "/broken/", params={"tag": tag, "status": status}, method="GET")
    assert found == {"error": "CallError", "status": status}
    assert shop.executed(tag) == 1


@pytest.mark.parametrize(
    "how", [pytest.param({"method": "GET"}, id="method"), pytest.param({"idempotent": True}, id="stated")]
)
def test_lost_attempt_of_a_harmless_call(shop: Shop, caller: str, how: dict[str, Any]) -> None:
    """Where executing twice does no harm, an attempt that is not answered in time is followed by another."""
    tag = f"held{caller}{len(how.get('method', ''))}"
    found = shop.call(caller, "/held/", params={"tag": tag}, **how)
    assert found.get("answer", 0) > 1


@pytest.mark.parametrize("path", ["/held/", "/dies/"])
@pytest.mark.parametrize(
    "how",
    [pytest.param({}, id="post"), pytest.param({"method": "GET", "idempotent": False}, id="stated")],
)
def test_lost_attempt_of_another_call(shop: Shop, caller: str, path: str, how: dict[str, Any]) -> None:
    """A call that may have been executed, and must not be twice, is not made again."""
    tag = f"once{caller}{path.strip('/')}{len(how)}"
    found = shop.call(caller, path, params={"tag": tag}, timeout=0.6 if path == "/held/" else 30.0, **how)
    assert found["error"] == ("CallTimeoutError" if path == "/held/" else "CallError")
    # What is late on a slow machine is not executed at all.
    assert shop.executed(tag) <= 1


def test_worker_that_dies_in_a_harmless_call(shop: Shop, caller: str) -> None:
    """The death of a worker leaves open whether the request was executed, as a lost connection does."""
    tag = f"dies{caller}"
    assert shop.call(caller, "/dies/", params={"tag": tag}, method="GET") == {"answer": 2}


@pytest.mark.parametrize(
    ("timeout", "headers"),
    [
        pytest.param(20, {}, id="of-the-call"),
        pytest.param(200, {"X_Mup_Deadline": "30000"}, id="of-the-request"),
    ],
)
def test_no_attempt_beyond_the_deadline(
    shop: Shop, caller: str, timeout: float, headers: dict[str, str]
) -> None:
    """If the callee wants more patience than a deadline allows, its refusal is the answer, at once."""
    tag = f"late{caller}{timeout}"
    params = {"tag": tag, "times": 5, "after": 60}
    found = shop.call(caller, "/busy/", headers=headers, params=params, timeout=timeout)
    assert found == {"error": "CallError", "status": 503}
    assert shop.executed(tag) == 1


def test_replica_that_refuses_connections(shop: Shop, caller: str) -> None:
    """A service whose only replica does not listen yet is called as soon as it does."""
    name = f"Late{caller}"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    shop.registry.post(
        "/register", {"service": name, "url": f"http://127.0.0.1:{port}", "endpoints": {"x": "/x/"}}
    )
    begun = shop.system._threads.submit(shop.call, caller, "/x/", service=name, params={})
    wait_for(lambda: shop.counted(caller, "mup_call_retries_total", destination=name, reason="refused"), 30)
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            body = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
            connection.sendall(body)
            assert begun.result(30) == {"answer": "hello"}


def test_unknown_service_is_no_outage(shop: Shop, caller: str) -> None:
    """A service that is not registered is a mistake, which waiting does not mend."""
    registry = shop.system.deployment.registry_url
    # One that has just started does not know all services yet, and says so.
    wait_for(lambda: not ask(registry, "/replicas?service=Flakey").body["learning"], 30)
    found = shop.call(caller, "/x/", service="Flakey", params={})
    assert found == {"error": "UnknownServiceError", "status": None}
    assert shop.counted(caller, "mup_call_retries_total", destination="Flakey") == 0


def test_outage_is_not_multiplied(shop: Shop, caller: str) -> None:
    """When everything fails, repetitions end with the reserve; then one call in ten is made again."""
    calls, little, tag = 60, f"{caller}Little", f"down{caller}"
    for _ in range(calls):
        found = shop.call(little, "/busy/", params={"tag": tag, "times": 10**6})
        assert found == {"error": "CallError", "status": 503}
    executed = shop.executed(tag)
    again = executed - calls
    # Five in reserve, and a tenth of a token per call; two thirds of 180 attempts were wanted.
    assert 5 + calls // 10 - 1 <= again <= 5 + calls // 10
    assert shop.counted(little, "mup_call_retries_total", reason="unavailable") == again
    assert shop.counted(little, "mup_call_retries_withheld_total", destination="Flaky") >= calls - again


def test_every_attempt_is_in_the_log(tmp_path: Path) -> None:
    """Attempts have records and spans of their own, each caused the execution the callee logged."""
    callers = ("Blocks", "Awaits")
    project = make_project(tmp_path, SOURCE, "Flaky", *callers, retries=LITTLE)
    with running(project, pools={"Flaky": 1}) as system:
        for caller in callers:
            found = Shop(system, tmp_path).call(caller, "/busy/", params={"tag": caller, "times": 2})
            assert found == {"answer": 3}
    executed = [e.request for e in collect([read_log(system.logs / "Flaky.0.w0.mlog")])]
    for caller in callers:
        log = system.logs / f"{caller}.0.w0.mlog"
        (execution,) = collect([read_log(log)])
        assert [step.op for step in execution.steps] == ["call", "get", "respond"]
        (call,) = execution.operations.values()
        assert (call.attempt, [one.number for one in call.earlier], call.failed) == (2, [0, 1], False)
        caused = [child_id(execution.request, attempt_of(call.seq, number)) for number in range(3)]
        assert caused == executed[:3]
        executed = executed[3:]
        lines = list(json_records(LogStream([log])))
        assert [line.get("attempt") for line in lines if line["event"] == "commStart"] == [None, 2, 3]
        spans = [span["spanId"] for span in otlp_spans(LogStream([log])) if span["name"] == "Flaky/busy/"]
        assert spans == [f"{child_id(request, 0):016x}" for request in caused]


def test_settings_are_checked(tmp_path: Path) -> None:
    """What mup.toml says of retries is checked with everything else."""
    (tmp_path / "mup.toml").write_text(
        "[services.A]\nclass = 'a:A'\n[services.A.retries]\nattempts = 1\nbudget = 2\nbackof = 1\n"
    )
    with pytest.raises(ProjectError) as caught:
        load_project(tmp_path)
    text = str(caught.value)
    assert "[services.A.retries] attempts: must be a whole number between 2 and 10, got 1" in text
    assert "[services.A.retries] backof: unknown field; did you mean 'backoff'" in text
    (tmp_path / "mup.toml").write_text("[services.A]\nclass = 'a:A'\nretries = { budget = 2 }\n")
    with pytest.raises(ProjectError, match=r"budget must be > 0 and <= 1, got 2"):
        load_project(tmp_path)
    (tmp_path / "mup.toml").write_text("[services.A]\nclass = 'a:A'\nretries = {}\n")
    assert load_project(tmp_path).services[0].retries == RetryPolicy()
