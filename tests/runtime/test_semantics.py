"""Running services behave as their model assumes, and endpoints see what was sent."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deployments import SOURCE, System, make_project, running, wait_for

pytestmark = pytest.mark.services


def test_admission_is_first_come_first_served(system: System) -> None:
    """With one worker, requests are served in the order in which they came."""
    first = system.begin("One", "/count/?seconds=1")
    wait_for(lambda: system.status("One")["busy"] == 1)
    others = []
    for tag in range(5):
        others.append(system.begin("One", f"/count/?tag={tag}"))
        wait_for(lambda expected=tag + 1: system.status("One")["queued"] == expected)
    numbers = [future.result().body["number"] for future in (first, *others)]
    assert numbers == list(range(numbers[0], numbers[0] + 6))


def test_pool_size_requests_run_in_parallel(system: System) -> None:
    """Four workers serve four sleeping requests at once, and the fifth waits."""
    started = time.monotonic()
    futures = [system.begin("Caller", "/join/") for _ in range(4)]
    wait_for(lambda: system.status("Caller")["busy"] == 4)
    assert system.status("Caller")["queued"] == 0
    assert all(future.result().body == [True, True] for future in futures)
    # 8 requests of 0.3 s on 2 x 2 workers: one after the other they would take 2.4 s.
    assert time.monotonic() - started < 1.9


def test_calls_run_in_parallel(system: System) -> None:
    """Two calls joined later take as long as one, apart from the luck of the draw of replicas."""
    times = []
    for _ in range(3):
        started = time.monotonic()
        assert system.ask("Caller", "/join/").body == [True, True]
        times.append(time.monotonic() - started)
    assert 0.3 <= min(times) < 0.5


def test_worker_is_held_after_the_response(system: System) -> None:
    """The response comes at once; the next request waits until the endpoint has returned."""
    started = time.monotonic()
    answer = system.ask("One", "/after/")
    assert time.monotonic() - started < 0.2
    assert answer.raw == b"early"
    assert system.status("One")["busy"] == 1
    system.ask("One", "/count/")
    assert time.monotonic() - started > 0.3


def test_calls_spread_over_replicas_at_random(system: System) -> None:
    """60 calls reach both replicas, neither in turn nor always the same one."""
    pids = system.ask("Caller", "/spread/").body
    counts = Counter(pids)
    fronts = {r.pid for r in system.deployment.replicas() if r.service == "Pair"}
    assert set(counts) == fronts
    # Binomial(60, 1/2): below 13 has a probability of 2e-6.
    assert min(counts.values()) >= 13
    changes = sum(a != b for a, b in pairwise(pids))
    assert 12 <= changes <= 47


def test_call_by_endpoint_name(system: System) -> None:
    """An endpoint can be addressed by the name of its method or the one @EP gives it."""
    assert system.ask("Caller", "/chain/?tag=seven").raw == b"seven"


def test_asking_twice_gives_the_same(system: System) -> None:
    """The second get of a future returns what the first one did."""
    assert system.ask("Caller", "/twice-get/").body is True


def test_forgotten_calls_are_executed(system: System) -> None:
    """Calls whose answer is not asked for are carried out, and leave no connection behind."""
    system.settle("One")
    before = system.ask("One", "/count/").body["number"]
    assert system.ask("Caller", "/forget/").raw == b"sent"
    system.settle("One")
    assert system.ask("One", "/count/").body["number"] == before + 4


@pytest.mark.slow
def test_forgotten_calls_do_not_pile_up_sockets(tmp_path: Path) -> None:
    """Rounds of fire and forget need no more connections than one round has calls."""
    # One worker makes all calls: with several, how many each needs depends on who gets which request.
    with running(make_project(tmp_path, SOURCE, "One", "Caller"), pools={"Caller": 1}) as system:
        (worker,) = system.status("Caller")["workers"]

        def descriptors() -> int:
            return len(list(Path(f"/proc/{worker}/fd").iterdir()))

        system.ask("Caller", "/chain/?tag=x")  # a connection to the registry, and one to the callee
        before = descriptors()
        for _ in range(3):
            for _ in range(6):
                system.ask("Caller", "/forget/")
            # 18 calls of 50 ms queue up: their connections are open until they are answered.
            assert before + 5 < descriptors() <= before + 18
            system.settle("One")
            system.ask("Caller", "/chain/?tag=x")  # a worker looks after such connections when it is done
            assert descriptors() <= before + 18


def test_deadline_is_passed_on(system: System) -> None:
    """A callee knows how much time is left, and cannot give more to its own callees."""
    assert 1500 < system.ask("Caller", "/pass-on/").body <= 2000
    answer = system.ask("Caller", "/pass-on/", X_Mup_Deadline="700")
    assert 300 < answer.body <= 700


@pytest.mark.parametrize(
    ("path", "body", "kind", "params"),
    [
        pytest.param("/echo/?a=1&b=", None, "", {"a": "1", "b": ""}, id="query"),
        pytest.param("/echo/?a=1", b'{"b": [2], "a": 3}', "application/json", {"a": 3, "b": [2]}, id="json"),
        pytest.param("/echo/", b"[1, 2]", "application/json", {}, id="json-list"),
        pytest.param("/echo/", b"a=%C3%A4&b=x+y", "application/x-www-form-urlencoded", {"a": "ä", "b": "x y"}, id="form"),
        pytest.param("/echo/?c=%C3%A4", b"\x00\x01", "application/octet-stream", {"c": "ä"}, id="bytes"),
    ],
)  # fmt: skip
def test_params(system: System, path: str, body: bytes | None, kind: str, params: dict[str, Any]) -> None:
    """Query string and body end up in params; the body wins."""
    headers = {"Content_Type": kind} if kind else {}
    answer = system.ask("Caller", path, body, Cookie="a=b; c=d", User_Agent="test", **headers)
    assert answer.body["params"] == params
    assert answer.body["body"] == len(body or b"")
    assert answer.body["agent"] == "test"
    assert answer.body["cookies"] == {"a": "b", "c": "d"}
    assert answer.headers["x-seen"] == "yes"


def test_body_kinds(system: System) -> None:
    """Text, bytes, JSON and HTML go out with their content type and come back as what they were."""
    kinds = {
        kind: system.ask("Caller", f"/kinds/?kind={kind}").headers["content-type"]
        for kind in ("text", "bytes", "number", "html")
    }
    assert kinds == {
        "text": "text/plain; charset=utf-8",
        "bytes": "application/octet-stream",
        "number": "application/json",
        "html": "text/html",
    }
    received = system.ask("Caller", "/receive-kinds/").body
    assert received == ["'häuser'", r"b'\x00\x01'", "None", "2.5", "'<b>x</b>'"]


def test_headers_of_a_call(system: System) -> None:
    """A call takes any headers along but those that say how a message is sent."""
    seen = system.ask("Caller", "/pass-headers/").body
    assert (seen["agent"], seen["params"]) == ("x", {"a": 1})


def test_paths_with_any_letters(system: System) -> None:
    """Paths are quoted on the way and matched unquoted."""
    assert system.ask("Caller", "/to-letters/").raw == b"here"


def test_large_bodies(system: System) -> None:
    """Megabytes arrive whole through front and worker."""
    data = json.dumps({"x": "y" * 5_000_000}).encode()
    assert system.ask("Caller", "/echo/", data, Content_Type="application/json").body["body"] == len(data)


def test_client_that_waits_to_be_asked_for_its_body(system: System) -> None:
    """A client that sends Expect: 100-continue is told to go on."""
    address = ("127.0.0.1", int(system.url("Caller").rpartition(":")[2]))
    with socket.create_connection(address, timeout=5) as client:
        client.sendall(
            b"POST /echo/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"body")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_printing_services_do_not_block(system: System) -> None:
    """What a service prints cannot fill the pipe to the launcher."""
    for _ in range(3):
        assert system.ask("Caller", "/print/").raw == b"printed"


def test_health_and_status(system: System) -> None:
    """Every front answers for itself."""
    assert system.ask("Pair", "/healthz").body == {"status": "ok"}
    assert (ready := system.ask("Pair", "/readyz")).body == {"status": "ready"}
    assert ready.status == 200
    status = system.status("Pair")
    assert (status["service"], status["pool_size"], status["replica"]) == ("Pair", 2, 0)
    assert len(set(status["workers"])) == 2
    assert all(Path(f"/proc/{pid}").exists() for pid in status["workers"])


def test_processes_of_a_deployment(system: System) -> None:
    """The launcher knows every process, with its role."""
    roles = Counter((p.role, p.service) for p in system.deployment.processes())
    assert roles == {
        ("registry", "registry"): 1,
        ("front", "One"): 1,
        ("worker", "One"): 1,
        ("front", "Pair"): 2,
        ("worker", "Pair"): 4,
        ("front", "Caller"): 1,
        ("worker", "Caller"): 4,
    }
    assert system.deployment.services()["Pair"].replicas == 2
    assert system.deployment.alive()
    assert system.deployment.supervise() == []


def test_services_stay_light(system: System) -> None:
    """A serving process has no numpy, libcst, simpy or database driver in memory."""
    for process in system.deployment.processes():
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        for heavy in ("numpy", "scipy", "libcst", "bson"):
            assert f"/{heavy}/" not in maps
