"""An HTTP server with a small application, in a thread of the test, and ways to send it bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from mup.runtime.process.loops import new_event_loop
from mup.runtime.server.http_connection import HttpConnection
from mup.runtime.server.http_request import HttpRequest
from mup.runtime.server.http_server import HttpServer

PATIENCE = 60.0
"""Seconds a test waits for what must happen."""

PIECES, PIECE = 64, b"0123456789abcdef" * 32768


class App:
    """Tells about the request; ``/held`` waits for :meth:`Running.release`, ``/queued`` for its client to go, too.

    Attributes:
        held: Requests that wait.
        refused: Kinds of the requests that could not be read.
        sent: Pieces of ``/stream`` that were taken.
        broken: Set when a client of ``/stream`` has gone.
        gone: Clients of ``/queued`` that have gone.
    """

    def __init__(self) -> None:
        self.held: list[HttpRequest] = []
        self.refused: list[str] = []
        self.sent = 0
        self.broken = threading.Event()
        self.gone = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, request: HttpRequest) -> None:
        """Answer."""
        if request.path == "/held":
            self.held.append(request)
        elif request.path == "/queued":
            self.held.append(request)
            request.on_gone = partial(self._gone, request)
        elif request.path == "/inject":
            request.respond(200, {"X-A": "b\r\nX-C: d"}, b"x")
        elif request.path == "/boom":
            raise ValueError("no such luck")
        elif request.path == "/stream":
            task = asyncio.get_running_loop().create_task(self._stream(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif request.path.startswith("/status/"):
            request.respond(int(request.path[8:]), {"X-A": "b"}, b"body", ("a=1", "b=2"))
        else:
            request.respond(200, {"Content-Type": "application/json"}, describe(request))

    def wants_body(self, request: HttpRequest) -> bool:
        """Anywhere but here."""
        return request.path != "/no-body"

    def refuse(self, request: HttpRequest, status: int, kind: str, problem: str) -> None:
        """Say why."""
        self.refused.append(kind)
        request.respond(status, {"Content-Type": "text/plain"}, problem.encode())

    def _gone(self, request: HttpRequest) -> None:
        self.held.remove(request)
        self.gone += 1

    async def _stream(self, request: HttpRequest) -> None:
        request.start(200, {}, PIECES * len(PIECE))
        try:
            for _ in range(PIECES):
                await request.send(PIECE)
                self.sent += 1
            request.finish()
        except ConnectionResetError:
            self.broken.set()


def describe(request: HttpRequest) -> bytes:
    """Return a request as JSON."""
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.headers]
    seen = [request.method, request.path, request.query, request.body.decode("latin-1"), headers]
    return json.dumps(seen).encode()


@dataclass(frozen=True)
class Reply:
    """One response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def seen(self) -> Any:
        """What the application has seen of the request: method, path, query, body, headers."""
        return json.loads(self.body)


class Running:
    """A server that serves.

    Attributes:
        app: Its application.
        server: The server; to be used within its loop.
        address: Where it listens.
        thorough: Whether a test should try everything with it.
    """

    thorough = True

    def __init__(self, app: App, server: HttpServer, address: tuple[str, int]) -> None:
        self.app = app
        self.server = server
        self.address = address

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(self.address, timeout=PATIENCE)

    def do(self, work: Callable[[], Any]) -> Any:
        """Run something in the loop and return its result."""

        async def run() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self.server.loop).result(PATIENCE)

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds in the loop."""

        async def poll() -> None:
            while not condition():  # noqa: ASYNC110 - what is waited for has no callback
                await asyncio.sleep(0.002)

        asyncio.run_coroutine_threadsafe(asyncio.wait_for(poll(), PATIENCE), self.server.loop).result()

    def release(self) -> None:
        """Answer the request that is held longest, once it is there."""
        self.wait_for(lambda: self.app.held)
        self.do(lambda: self.app.held.pop(0).respond(200, {"X-Held": "yes"}, b"released"))

    def exchange(self, data: bytes) -> list[Reply]:
        """Send bytes and the end of the connection; return what comes back."""
        with self.connect() as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return replies(read_all(sock))

    def exchange_all(self, inputs: list[bytes]) -> list[list[Reply]]:
        """Do the same with many connections; faster, for both ends are in the loop."""
        received = asyncio.run_coroutine_threadsafe(self._exchange_all(inputs), self.server.loop)
        return [replies(data) for data in received.result(2 * PATIENCE)]

    async def _exchange_all(self, inputs: list[bytes]) -> list[bytes]:
        outputs = []
        for start in range(0, len(inputs), 100):
            clients = [_Client(data) for data in inputs[start : start + 100]]
            for client in clients:
                await self.server.loop.create_connection(lambda client=client: client, *self.address)  # type: ignore[misc]
            outputs += [await client.received for client in clients]
        return outputs

    def feed(self, *pieces: bytes) -> list[Reply]:
        """Have a connection receive exactly these pieces, then its end; return what comes back."""
        with self.connect() as sock:
            sock.sendall(b"\r\n")  # not a request, but the connection is there then
            name = sock.getsockname()
            self.wait_for(lambda: self._connection(name))

            def receive() -> None:
                connection = self._connection(name)
                assert connection is not None
                for piece in pieces:
                    connection.data_received(piece)

            self.do(receive)
            sock.shutdown(socket.SHUT_WR)
            return replies(read_all(sock))

    def _connection(self, name: Any) -> HttpConnection | None:
        found = [c for c in self.server.connections if c._transport.get_extra_info("peername") == name]
        return found[0] if found else None


class _Client(asyncio.Protocol):
    """Sends bytes and the end of the connection.

    Attributes:
        received: Result: what came back.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._answer = bytearray()
        self.received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(self._data)
        transport.write_eof()

    def data_received(self, data: bytes) -> None:
        self._answer += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.received.set_result(bytes(self._answer))


def read_all(sock: socket.socket) -> bytes:
    """Receive up to the end of the connection."""
    received = bytearray()
    while data := sock.recv(1 << 20):
        received += data
    return bytes(received)


def replies(data: bytes) -> list[Reply]:
    """Take responses apart; fails if they are not HTTP."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        assert end, f"no end of a head: {head!r:.200}"
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) [ -~]*", first)
        assert match, first
        headers = {}
        for line in lines:
            name, colon, value = line.partition(": ")
            assert colon, line
            assert re.fullmatch(r"[A-Za-z-]+", name), line
            headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        length = int(headers.get("content-length", 0))
        assert len(data) >= length
        found.append(Reply(int(match[1]), headers, data[:length]))
        data = data[length:]
    return found


@contextlib.contextmanager
def serving(
    *,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
    tls: ssl.SSLContext | None = None,
    app: App | None = None,
    **limits: Any,
) -> Iterator[Running]:
    """Run a server in a thread."""
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = socket.create_server(("127.0.0.1", 0))
    app = app or App()

    async def start() -> HttpServer:
        server = HttpServer(app, **limits)
        await server.listen(listener, tls)
        return server

    async def stop(server: HttpServer) -> None:
        server.stop_listening()
        await server.shut_down(0)
        await asyncio.sleep(0)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
    try:
        yield Running(app, server, listener.getsockname())
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
