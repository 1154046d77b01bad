"""A caller finds live replicas, also with a registry that is slow, silent, dead or new."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from registries import ask, entry, registry, start, stop

from mup.errors import NoReplicaError, UnknownDatabaseError, UnknownServiceError
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool

pytestmark = pytest.mark.services

FIRST, SECOND = ("127.0.0.1", 1), ("127.0.0.1", 2)


@contextmanager
def resolving(url: str, ttl: float = 0.05, token: str = "") -> Iterator[Resolver]:
    """A resolver whose connections are closed in the end."""
    pool = ConnectionPool()
    try:
        yield Resolver(url, pool, ttl=ttl, token=token)
    finally:
        pool.close()


def expired(resolver: Resolver, service: str = "A") -> None:
    """Let what is known of a service be old."""
    resolver._services[service].fresh_until = 0.0


def register(url: str, *ports: int, token: str = "") -> list[str]:
    """Register replicas at loopback ports; return their ids."""
    return [
        ask(url, "/register", entry(url=f"http://127.0.0.1:{port}", replica=n), token=token)[1]["id"]
        for n, port in enumerate(ports)
    ]


def test_names_and_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver finds replicas, endpoints and databases by name, and says what was meant by a wrong one."""
    # As long as the registry needs to be sure that a name is wrong.
    monkeypatch.setattr("mup.runtime.client.registry.FIRST_SECONDS", 60.0)
    with registry() as url, resolving(url) as resolver:
        ask(url, "/register", entry(endpoints={"ep": "/ep/"}))
        ask(url, "/databases", {"name": "db", "uri": "mongodb://h/x"})
        assert resolver.choose("A") == FIRST
        assert resolver.find("A").routes.find("ep", "").path == "/ep/"
        assert resolver.find("A").routes.find("/other/", "").path == "/other/"
        assert resolver.database("db") == "mongodb://h/x"
        with pytest.raises(UnknownServiceError, match=r"unknown service 'a'.*did you mean 'A'"):
            resolver.choose("a")
        with pytest.raises(UnknownDatabaseError, match=r"did you mean 'db'"):
            resolver.database("dbb")


def test_a_known_list_is_used_until_it_is_old() -> None:
    """A new replica is chosen once the list has become old; without a cache, at once."""
    with registry() as url, resolving(url, ttl=3600) as cached, resolving(url, ttl=0) as uncached:
        register(url, 1)
        assert cached.choose("A") == uncached.choose("A") == FIRST
        register(url, 1, 2)
        assert {cached.choose("A") for _ in range(40)} == {FIRST}
        assert {uncached.choose("A") for _ in range(40)} == {FIRST, SECOND}
        expired(cached)
        assert {cached.choose("A") for _ in range(40)} == {FIRST, SECOND}


def test_a_replica_that_cannot_be_reached_is_left_alone() -> None:
    """A dropped replica is not chosen although the registry lists it, until it has registered anew."""
    with registry() as url, resolving(url, ttl=0) as resolver:
        register(url, 1, 2)
        resolver.choose("A")
        resolver.drop("A", FIRST)
        assert {resolver.choose("A") for _ in range(40)} == {SECOND}
        register(url, 1)
        assert {resolver.choose("A") for _ in range(40)} == {FIRST, SECOND}


def test_the_last_replica_is_tried_again() -> None:
    """If nothing else is left, a later call tries a dropped replica; the call it refused does not."""
    with registry() as url, resolving(url, ttl=3600) as resolver:
        register(url, 1)
        resolver.choose("A")
        resolver.drop("A", FIRST)
        with pytest.raises(NoReplicaError, match=r"127.0.0.1:1 cannot be reached"):
            resolver.choose("A", refused=[FIRST])
        assert resolver.choose("A") == FIRST


def test_an_outage_is_survived() -> None:
    """While the registry is down, what it said last stays valid; what it never said is an error at once."""
    with registry() as url, resolving(url, ttl=0) as resolver:
        register(url, 1)
        ask(url, "/databases", {"name": "db", "uri": "mongodb://h/x"})
        assert resolver.choose("A") == FIRST
        assert resolver.database("db") == "mongodb://h/x"
    started = time.monotonic()
    for _ in range(100):
        assert resolver.choose("A") == FIRST
        assert resolver.database("db") == "mongodb://h/x"
    with pytest.raises(NoReplicaError, match="does not answer"):
        resolver.choose("B")
    assert time.monotonic() - started < 2


@pytest.fixture
def stopped() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A registry that a test may stop with SIGSTOP."""
    process, url = start()
    yield process, url
    os.kill(process.pid, signal.SIGCONT)
    stop(process)


def test_a_silent_registry_costs_a_moment_once(stopped: tuple[subprocess.Popen[str], str]) -> None:
    """A registry that is stopped delays one call by a moment and no other; afterwards its answer is taken."""
    process, url = stopped
    with resolving(url, ttl=0) as resolver:
        register(url, 1)
        resolver.choose("A")
        os.kill(process.pid, signal.SIGSTOP)
        started = time.monotonic()
        for _ in range(100):
            assert resolver.choose("A") == FIRST
        assert time.monotonic() - started < 2
        os.kill(process.pid, signal.SIGCONT)
        register(url, 1, 2)
        give_up = time.monotonic() + 5
        while resolver.choose("A") != SECOND:
            assert time.monotonic() < give_up


@pytest.mark.slow
def test_a_restarted_registry_that_knows_no_replica_yet() -> None:
    """Until replicas had the time to register again, callers go on with those they know."""
    process, url = start()
    with resolving(url, ttl=0) as resolver:
        register(url, 1)
        ask(url, "/databases", {"name": "db", "uri": "mongodb://h/x"})
        resolver.choose("A")
        resolver.database("db")
        process.kill()
        process.communicate()
        process, _ = start("--expiry", "2", port=url.rpartition(":")[2])
        try:
            assert resolver.choose("A") == FIRST, "the service is not known yet"
            assert resolver.database("db") == "mongodb://h/x"
            (second,) = register(url, 2)
            assert {resolver.choose("A") for _ in range(40)} == {FIRST, SECOND}, (
                "the list is not complete yet"
            )
            give_up = time.monotonic() + 60
            while ask(url, "/replicas?service=A")[1]["learning"]:
                ask(url, "/heartbeat", {"id": second})
                assert time.monotonic() < give_up
            assert {resolver.choose("A") for _ in range(40)} == {SECOND}
        finally:
            stop(process)


def test_a_registry_that_is_being_started_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that knows nothing waits for a registry, and for a service that has not registered with it yet."""
    monkeypatch.setattr("mup.runtime.client.registry.FIRST_SECONDS", 60.0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with resolving(f"http://127.0.0.1:{port}") as resolver, ThreadPoolExecutor(1) as caller:
        call = caller.submit(resolver.choose, "A")
        process, url = start(port=str(port))
        try:
            register(url, 1)
            assert call.result(60) == FIRST
        finally:
            stop(process)


def test_a_token_is_shown() -> None:
    """A resolver with the token is answered, one without is told why not."""
    token = "s3cret"
    with (
        registry(MUP_REGISTRY_TOKEN=token) as url,
        resolving(url, token=token) as good,
        resolving(url) as bad,
    ):
        register(url, 1, token=token)
        assert good.choose("A") == FIRST
        with pytest.raises(NoReplicaError, match="wants a token"):
            bad.choose("A")


def test_what_is_known_anyway_is_not_asked_for() -> None:
    """A database whose URI the service was started with needs no registry."""
    resolver = Resolver("http://127.0.0.1:9", ConnectionPool(), databases={"db": "mongodb://u:p@h/x"})
    assert resolver.database("db") == "mongodb://u:p@h/x"
