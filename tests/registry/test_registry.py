"""Does the registry know who lives, forget who is silent, and refuse what it does not understand?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mup.errors import NoReplicaError, UnknownDatabaseError, UnknownServiceError
from mup.runtime.http_client import ConnectionPool
from mup.runtime.resolver import Resolver
from mup_registry.directory import Directory

ROOT = Path(__file__).resolve().parents[2]


def entry(**changes: Any) -> dict[str, Any]:
    """Return a registration."""
    return {"service": "A", "replica": 0, "url": "http://127.0.0.1:1", "pid": 1, "endpoints": {}, **changes}


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


def test_same_address_replaces() -> None:
    """A replica restarted at the same address is listed once."""
    directory = Directory(expiry=3.0)
    first = directory.register(**entry(), now=0.0)
    second = directory.register(**entry(pid=2), now=0.1)
    assert directory.replicas("A", now=0.2) == [second]
    assert not directory.heartbeat(first.id, now=0.2)


@contextmanager
def registry(*arguments: str) -> Iterator[str]:
    """Run a registry of its own; return its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mup_registry", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
        assert process.stdout
        process.stdout.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A registry for the whole module."""
    with registry() as url:
        yield url


def ask(url: str, path: str, data: Any = None, method: str = "") -> tuple[int, Any]:
    """Send a request to the registry; bytes go as they are, everything else as JSON."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode() if data is not None else None
    request = urllib.request.Request(url + path, body, method=method or ("POST" if body else "GET"))
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


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
    assert listed == {"service": "life", "replicas": [replica], "endpoints": {"ep": "/ep/"}}
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
        pytest.param("/databases", {"name": "d", "uri": "x"}, 400, "scheme", id="database-uri"),
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
def test_resolver_keeps_what_it_knows() -> None:
    """A resolver caches, suggests names, and survives an outage of the registry with its last list."""
    with registry() as url:
        ask(url, "/register", entry(endpoints={"ep": "/ep/"}))
        ask(url, "/databases", {"name": "db", "uri": "mongodb://h/x"})
        resolver = Resolver(url, ConnectionPool(), ttl=0.05)
        assert resolver.choose("A") == ("127.0.0.1", 1)
        assert resolver.route("A", "ep", "").path == "/ep/"
        assert resolver.route("A", "/other/", "").path == "/other/"
        assert resolver.database("db") == "mongodb://h/x"
        with pytest.raises(UnknownServiceError, match=r"unknown service 'a'.*did you mean 'A'"):
            resolver.choose("a")
        with pytest.raises(UnknownDatabaseError, match=r"did you mean 'db'"):
            resolver.database("dbb")
        with pytest.raises(NoReplicaError, match=r"127.0.0.1:1 refused"):
            resolver.choose("A", refused=[("127.0.0.1", 1)])
        ask(url, "/register", entry(url="http://127.0.0.1:2", replica=1))
        time.sleep(0.06)
        assert {resolver.choose("A") for _ in range(40)} == {("127.0.0.1", 1), ("127.0.0.1", 2)}
    time.sleep(0.06)
    assert resolver.choose("A") in {("127.0.0.1", 1), ("127.0.0.1", 2)}
    assert resolver.database("db") == "mongodb://h/x"
    with pytest.raises(NoReplicaError, match="does not answer"):
        resolver.choose("B")
