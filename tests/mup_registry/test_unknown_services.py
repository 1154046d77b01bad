"""Calls of unknown services, the same in blocking workers and on event loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from registries import ask, entry, registry, start, stop

from mup.errors import CommunicationError, NoReplicaError, UnknownServiceError
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.runtime.client.request import Address
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool

pytestmark = pytest.mark.services

Choose = Callable[[str, str], Address]


def blocking(url: str, service: str) -> Address:
    """Choose a replica as a worker that blocks does."""
    pool = ConnectionPool()
    try:
        return Resolver(url, pool).choose(service)
    finally:
        pool.close()


def on_loop(url: str, service: str) -> Address:
    """Choose a replica as a call on an event loop does."""

    async def choose() -> Address:
        network = Network(url, EventLog(None, Path()), 0, {})
        try:
            return await network.choose(service, ())
        finally:
            await network.close()

    return asyncio.run(choose())


BOTH = pytest.mark.parametrize("choose", [blocking, on_loop])


def free_port() -> int:
    """Return a port of loopback without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@BOTH
def test_a_registry_that_is_being_started_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, choose: Choose
) -> None:
    """First there is no listener, then a registry that has just started and does not know the service yet."""
    monkeypatch.setattr("mup.runtime.client.registry.FIRST_SECONDS", 60.0)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(choose, url, "A")
        process, _ = start("--expiry", "300", port=str(port))
        try:
            assert ask(url, "/replicas?service=A")[1]["learning"]
            ask(url, "/register", entry(url="http://127.0.0.1:1"))
            assert call.result(60) == ("127.0.0.1", 1)
        finally:
            stop(process)


def said(choose: Choose, url: str, service: str) -> tuple[type[CommunicationError], str]:
    """Return the error of a choice."""
    with pytest.raises(CommunicationError) as caught:
        choose(url, service)
    return type(caught.value), str(caught.value)


def test_the_errors_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a name that is wrong, and for a registry that does not come up."""
    monkeypatch.setattr("mup.runtime.client.registry.FIRST_SECONDS", 0.2)
    url = f"http://127.0.0.1:{free_port()}"
    errors = [said(choose, url, "A") for choose in (blocking, on_loop)]
    assert [kind for kind, _ in errors] == [NoReplicaError, NoReplicaError]
    assert all(f"service 'A': the registry at {url} does not answer" in text for _, text in errors), errors
    with registry() as url:
        ask(url, "/register", entry())
        errors = [said(choose, url, "AA") for choose in (blocking, on_loop)]
    assert [kind for kind, _ in errors] in ([UnknownServiceError] * 2, [NoReplicaError] * 2)
    assert errors[0][1] == errors[1][1]
    assert "unknown service 'AA'" in errors[0][1]
