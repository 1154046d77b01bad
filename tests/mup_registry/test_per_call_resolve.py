"""Every call of an event loop asks the registry if the project says so (see test_resolver.py)."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from registries import ask, entry, registry

from mup.runtime.client import network as awaited_calls
from mup.runtime.client.events import EventLog
from mup.runtime.client.network import Network
from mup.workload.scenario import ClientCommunication

pytestmark = pytest.mark.services


@contextmanager
def answering(text: bytes) -> Iterator[str]:
    """A replica that answers every request with a text; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "
                        connection.sendall(f"{head}{len(text)}\r\n\r\n".encode() + text)
            except OSError:
                pass  # the test is over

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_every_call_goes_where_the_registry_says_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``cache=0`` the first call after a service has moved reaches it at its new place."""
    monkeypatch.setattr(awaited_calls, "MOMENT", 30.0)

    async def calls(url: str, old: str, new: str) -> list[str]:
        network = Network(url, EventLog(None, Path()), 0, {}, cache=0)
        client = ClientCommunication(network)
        answers = []
        try:
            for place in (old, new, old):
                _, registered = await asyncio.to_thread(ask, url, "/register", entry(url=place))
                answers.append(await client.call("A", "/where/"))
                await asyncio.to_thread(ask, url, "/deregister", {"id": registered["id"]})
        finally:
            await network.close()
        return answers

    with registry("--expiry", "300") as url, answering(b"old") as old, answering(b"new") as new:
        assert asyncio.run(calls(url, old, new)) == ["old", "new", "old"]
