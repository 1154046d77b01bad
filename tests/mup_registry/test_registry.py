"""The registry knows live replicas, forgets silent ones, and refuses invalid requests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from registries import ROOT, ask, ask_tagged, entry, registry

from mup_registry.directory import Directory, ListeningClock, ReplacedError


def test_silent_instances_expire() -> None:
    """An instance without a sign of life for longer than the expiry is gone; its service stays known."""
    directory = Directory(expiry=3.0)
    silent = directory.register(**entry(), now=0.0)
    lively = directory.register(**entry(replica=1, url="http://127.0.0.1:2"), now=0.0)
    assert directory.heartbeat(lively.id, now=2.5)
    assert directory.replicas("A", now=3.0) == [silent, lively]
    assert directory.replicas("A", now=3.1) == [lively]
    assert not directory.heartbeat(silent.id, now=3.2)
    assert directory.replicas("A", now=9.0) == []
    assert directory.replicas("B", now=9.0) is None


def test_a_pause_of_the_registry_is_no_silence_of_the_replicas() -> None:
    """A registry that was stopped for long forgets no replica for it; silence of its replicas counts as ever."""
    clock = ListeningClock(longest=0.5, monotonic=100.0)
    directory = Directory(expiry=3.0)
    instance = directory.register(**entry(), now=clock.read(100.2))
    assert directory.replicas("A", clock.read(900.0)) == [instance]
    for tenth in range(36):
        now = clock.read(900.0 + tenth / 10)
    assert now == pytest.approx(0.2 + 0.5 + 3.5)
    assert directory.replicas("A", now) == []


def test_thousands_of_replicas_cost_no_more_each() -> None:
    """A heartbeat among 20,000 instances looks at none of the others."""
    directory = Directory(expiry=3.0)
    ids = [directory.register(**entry(replica=n, url=f"http://h:{n}"), now=0.0).id for n in range(20_000)]
    started = time.process_time()
    assert all(directory.heartbeat(identity, now=1.0) for identity in ids)
    # Looking at all for each would be 400 million steps.
    assert time.process_time() - started < 2.0
    assert len(directory.replicas("A", now=3.5) or []) == 20_000
    assert directory.replicas("A", now=4.1) == []


def test_same_address_replaces() -> None:
    """A replica restarted at the same address is listed once."""
    directory = Directory(expiry=3.0)
    first = directory.register(**entry(), now=0.0)
    second = directory.register(**entry(pid=2), now=0.1)
    assert directory.replicas("A", now=0.2) == [second]
    assert not directory.heartbeat(first.id, now=0.2)


def test_a_replica_does_not_replace_its_successor() -> None:
    """A replica that drains while its successor serves has nothing to register, until that one is gone."""
    directory = Directory(expiry=3.0)
    directory.register(**entry(), now=0.0)
    successor = directory.register(**entry(pid=2), now=0.1)
    with pytest.raises(ReplacedError, match="replica 0 of 'A' has a successor"):
        directory.register(**entry(), now=0.2, again=True)
    assert directory.replicas("A", now=0.3) == [successor]
    # The answer to its last registration got lost: it is its own successor.
    once_more = directory.register(**entry(pid=2), now=0.4, again=True)
    assert directory.replicas("A", now=0.5) == [once_more]
    assert directory.deregister(once_more.id, now=0.6)
    assert directory.register(**entry(), now=0.7, again=True).pid == 1


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A registry for the whole module."""
    with registry() as url:
        yield url


@pytest.mark.services
def test_life_of_an_instance(url: str) -> None:
    """Register, be listed and resolved, show life, deregister."""
    new = entry(service="life", endpoints={"ep": "/ep/"}, url="http://127.0.0.1:5/")
    status, answer = ask(url, "/register", new)
    assert status == 200
    assert answer["expiry"] == 3
    identity = answer["id"]
    status, listed = ask(url, "/replicas?service=life")
    replica = {"id": identity, "service": "life", "replica": 0, "url": "http://127.0.0.1:5", "pid": 1}
    # It has just started: replicas it has not heard of yet may be alive.
    assert listed == {"service": "life", "replicas": [replica], "endpoints": {"ep": "/ep/"}, "learning": True}
    assert ask(url, "/resolve?service=life") == (200, replica)
    assert ask(url, "/services")[1]["services"]["life"] == [replica]
    assert ask(url, "/heartbeat", {"id": identity})[0] == 200
    assert ask(url, "/deregister", {"id": identity}) == (200, {"removed": True})
    assert ask(url, "/deregister", {"id": identity}) == (200, {"removed": False})
    assert ask(url, "/heartbeat", {"id": identity})[0] == 404
    assert ask(url, "/resolve?service=life")[0] == 503
    assert ask(url, "/healthz") == (200, {"status": "ok"})


@pytest.mark.services
def test_resolve_is_random(url: str) -> None:
    """Both replicas are resolved about equally often."""
    for number in (0, 1):
        ask(url, "/register", entry(service="random", replica=number, url=f"http://127.0.0.1:{number + 10}"))
    counts = Counter(ask(url, "/resolve?service=random")[1]["replica"] for _ in range(100))
    # Binomial(100, 1/2): below 27 has a probability of 1e-6.
    assert min(counts[0], counts[1]) >= 27


@pytest.mark.services
@pytest.mark.parametrize(
    ("path", "data", "status", "says"),
    [
        pytest.param("/register", b"{", 400, "truncated", id="not-json"),
        pytest.param("/register", {"service": "A"}, 400, "missing required field `url`", id="missing"),
        pytest.param("/register", entry(service=""), 400, "service", id="empty-name"),
        pytest.param("/register", entry(url="127.0.0.1:80"), 400, "http://", id="url"),
        pytest.param("/register", entry(replica=-1), 400, ">= 0", id="replica"),
        pytest.param("/register", entry(pid="x"), 400, "pid", id="pid"),
        pytest.param("/register", entry(endpoints={"a": "b"}), 400, "'b'", id="endpoint"),
        pytest.param("/register", entry(colour="red"), 400, "colour", id="unknown-field"),
        pytest.param("/heartbeat", {}, 400, "id", id="heartbeat"),
        pytest.param("/replicas", None, 400, "?service=NAME", id="no-service"),
        pytest.param("/replicas?service=nobody", None, 404, "unknown service 'nobody'", id="unknown"),
        pytest.param("/register", entry(service="a\x1b[2J"), 400, "service", id="escape-sequence"),
        pytest.param("/register", entry(service="a" * 201), 400, "length", id="long-name"),
        pytest.param("/register", entry(url="http://h:1/?x"), 400, "http://", id="url-with-query"),
        pytest.param("/register", entry(url="http://u:p@h:1"), 400, "http://", id="url-with-user"),
        pytest.param("/register", b" " * 300_000, 413, "262144", id="too-large"),
        pytest.param("/register", entry(service="a.b"), 400, "call it 'a_b'", id="service-with-a-dot"),
        pytest.param("/databases", {"name": "s.v2", "uri": "m://h"}, 400, "call it 's_v2'", id="dot"),
        pytest.param("/databases", {"name": "d", "uri": "x"}, 400, "scheme", id="database-uri"),
        pytest.param("/databases", {"name": "d", "uri": "m://u@h/d"}, 400, "credentials", id="user"),
        pytest.param(
            "/databases", {"name": "d", "uri": "m://h/?xPassword=s"}, 400, "credentials", id="option"
        ),
        pytest.param("/healthz", {}, 405, "not allowed", id="method"),
        pytest.param("/nothing", None, 404, "/nothing", id="path"),
    ],
)
def test_bad_requests(url: str, path: str, data: Any, status: int, says: str) -> None:
    """What the registry does not understand is refused with a reason, as JSON."""
    answer = ask(url, path, data)
    assert answer[0] == status
    assert says in answer[1]["error"]


@pytest.mark.services
def test_databases(url: str) -> None:
    """Databases are kept by name."""
    assert ask(url, "/databases", {"name": "db", "uri": "mongodb://h/x"}) == (200, {})
    assert ask(url, "/databases?name=db") == (200, {"name": "db", "uri": "mongodb://h/x"})
    assert ask(url, "/databases")[1]["databases"]["db"] == "mongodb://h/x"
    status, answer = ask(url, "/databases?name=dbb")
    assert status == 404
    assert "did you mean 'db'" in answer["error"]
    assert ask(url, "/databases", {"name": "db"}, "DELETE") == (200, {"removed": True})


@pytest.mark.services
def test_expiry_of_a_real_registry() -> None:
    """The expiry is an option; a replica that never shows life disappears after it."""
    with registry("--expiry", "0.2") as url:
        ask(url, "/register", entry())
        assert len(ask(url, "/replicas?service=A")[1]["replicas"]) == 1
        time.sleep(0.3)
        assert ask(url, "/replicas?service=A")[1]["replicas"] == []


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("arguments", [["--expiry", "0"], ["--port", "70000"]])
def test_wrong_options(arguments: list[str]) -> None:
    """Options out of range are refused with status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "mup_registry", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=10,
        check=False,
    )
    assert done.returncode == 2
    assert arguments[1] in done.stderr


@pytest.mark.services
def test_a_list_that_has_not_changed_is_not_sent_again() -> None:
    """The tag of a list confirms it; any change of the list, or the end of the registry's first seconds, ends that."""
    with registry("--expiry", "2") as url:
        first = ask(url, "/register", entry(service="tagged", url="http://127.0.0.1:30"))[1]["id"]
        status, _, new = ask_tagged(url, "/replicas?service=tagged")
        assert (status, ".learning" in new) == (200, True)
        give_up = time.monotonic() + 60
        while ".learning" in (tag := ask_tagged(url, "/replicas?service=tagged")[2]):
            assert ask(url, "/heartbeat", {"id": first})[0] == 200
            assert time.monotonic() < give_up
            time.sleep(0.02)
        assert ask_tagged(url, "/replicas?service=tagged", new)[0] == 200
        assert ask_tagged(url, "/replicas?service=tagged", tag)[0] == 304
        ask(url, "/register", entry(service="tagged", url="http://127.0.0.1:31", replica=1))
        status, listed, fresh = ask_tagged(url, "/replicas?service=tagged", tag)
        assert (status, len(listed["replicas"])) == (200, 2)
        ask(url, "/deregister", {"id": first})
        assert ask_tagged(url, "/replicas?service=tagged", fresh)[0] == 200


TOKEN = {"MUP_REGISTRY_TOKEN": "s3cret/with=chars"}


@pytest.mark.services
def test_a_token_is_asked_for() -> None:
    """With a token, a client without it neither reads nor writes; only the health check is for all."""
    with registry("--host", "0.0.0.0", **TOKEN) as url:
        assert ask(url, "/healthz")[0] == 200
        for path, data in (
            ("/register", entry()),
            ("/services", None),
            ("/databases", None),
            ("/none", None),
        ):
            assert ask(url, path, data)[0] == 401
            status, answer = ask(url, path, data, token="wrong")
            assert status == 401
            assert "s3cret" not in str(answer)
        good = TOKEN["MUP_REGISTRY_TOKEN"]
        assert ask(url, "/register", entry(), token=good)[0] == 200
        assert len(ask(url, "/replicas?service=A", token=good)[1]["replicas"]) == 1


@pytest.mark.services
def test_other_machines_need_a_token() -> None:
    """A registry that listens beyond loopback without a token refuses to start."""
    done = subprocess.run(
        [sys.executable, "-m", "mup_registry", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=10,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "MUP_REGISTRY_TOKEN"},
    )
    assert done.returncode == 2
    assert "MUP_REGISTRY_TOKEN" in done.stderr


@pytest.mark.slow
@pytest.mark.services
def test_a_port_that_is_taken() -> None:
    """A second registry on a port says so and ends with status 2."""
    with registry() as url:
        port = url.rpartition(":")[2]
        done = subprocess.run(
            [sys.executable, "-m", "mup_registry", "--port", port],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=10,
            check=False,
        )
    assert done.returncode == 2
    assert port in done.stderr
    assert "in use" in done.stderr
