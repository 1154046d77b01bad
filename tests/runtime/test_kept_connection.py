"""A front's connection to the registry gives every request its own answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from mup.errors import CommunicationError
from mup.runtime.client.reply import BrokenError
from mup.runtime.deployment.kept_connection import KeptConnection
from mup.runtime.process.loops import new_event_loop

PATIENCE = 60.0
LOOPS = pytest.mark.parametrize(
    "new_loop", [new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"]
)
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def answer(text: str, headers: str = "") -> bytes:
    """Return a response."""
    return f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(text)}\r\n\r\n{text}".encode()


class Server:
    """Accepts one connection after the other.

    Args:
        connections: What each of them says to its requests; it is closed after the last one.

    Attributes:
        url: Where it listens.
        heard: Requests, as they came.
    """

    def __init__(self, connections: Sequence[Sequence[bytes]]) -> None:
        self._connections = connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.heard: list[bytes] = []

    def serve(self) -> None:
        """Do so."""
        with self._listener:
            for answers in self._connections:
                sock, _ = self._listener.accept()
                sock.settimeout(PATIENCE)
                # The client may have had enough before the answer ends.
                with sock, suppress(ConnectionError):
                    for text in answers:
                        self.heard.append(sock.recv(65536))
                        sock.sendall(text)
                    if not answers or not answers[-1]:
                        sock.recv(65536)


@contextmanager
def serving(*connections: Sequence[bytes]) -> Iterator[Server]:
    """Run a server until all its connections have ended."""
    server = Server(connections)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    thread.join(PATIENCE)
    assert not thread.is_alive(), "not all connections came"


def posted(url: str, new_loop: NewLoop, *bodies: bytes, until_over: bool = False) -> list[bytes | Exception]:
    """Post bodies one after the other; return what came back for each.

    Args:
        url: Of the server.
        new_loop: Makes the event loop.
        bodies: What to post.
        until_over: Whether to wait after each of them until the end of its connection has come.
    """

    async def post() -> list[bytes | Exception]:
        kept = KeptConnection(url)
        found: list[bytes | Exception] = []
        for body in bodies:
            try:
                found.append((await kept.post("/a", {"X-A": "b"}, body)).body)
            except (OSError, BrokenError, CommunicationError) as error:
                found.append(error)
            while until_over and kept._line is not None and not kept._line.over:  # noqa: ASYNC110 - no callback
                await asyncio.sleep(0.005)
        kept.close()
        return found

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(post())


@LOOPS
def test_requests_share_a_connection(new_loop: NewLoop) -> None:
    """One connection carries all of them; each is a whole HTTP request."""
    with serving([answer("1"), answer("2"), answer("3")]) as server:
        assert posted(server.url, new_loop, b"x", b"yy", b"zzz") == [b"1", b"2", b"3"]
    first, *_ = server.heard
    assert first.startswith(b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-A: b\r\nContent-Length: 1\r\n\r\nx" in first


@LOOPS
@pytest.mark.parametrize(
    "first",
    [
        pytest.param([answer("1")], id="closed"),
        pytest.param([answer("1", "Connection: close\r\n")], id="says-so"),
        pytest.param([answer("1") + answer("2")], id="says-too-much"),
    ],
)
def test_a_connection_that_has_ended_is_replaced(new_loop: NewLoop, first: list[bytes]) -> None:
    """The next request goes over a new one, and gets its own answer."""
    with serving(first, [answer("own", "Connection: close\r\n")]) as server:
        assert posted(server.url, new_loop, b"", b"", until_over=True) == [b"1", b"own"]


@LOOPS
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        pytest.param(b"rubbish", "no HTTP response came", id="no-http"),
        pytest.param(answer("long")[:-1], "1 more expected", id="cut-off"),
    ],
)
def test_what_is_no_answer_is_said(new_loop: NewLoop, said: bytes, problem: str) -> None:
    """And the next request starts afresh."""
    with serving([said], [answer("own")]) as server:
        error, own = posted(server.url, new_loop, b"", b"")
    assert isinstance(error, BrokenError)
    assert problem in str(error)
    assert own == b"own"


@pytest.mark.slow
@LOOPS
def test_a_silent_server_is_given_up(new_loop: NewLoop) -> None:
    """After two seconds; what it may say later answers no request."""
    with serving([b""], [answer("own")]) as server:
        error, own = posted(server.url, new_loop, b"", b"")
    assert isinstance(error, TimeoutError)
    assert own == b"own"


@LOOPS
def test_no_server_listens(new_loop: NewLoop) -> None:
    """That is an error, at once."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    (error,) = posted(url, new_loop, b"")
    assert isinstance(error, ConnectionRefusedError)
