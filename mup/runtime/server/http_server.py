"""HTTP server of a front: one protocol per connection, one timer for all, a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
from collections.abc import Callable
from email.utils import formatdate

from mup.runtime.server.http_connection import HttpConnection
from mup.runtime.server.http_request import Application
from mup.runtime.server.listening import Listener, listen

__all__ = ["HttpServer"]

IDLE_SECONDS = 75.0
"""How long a connection may be without a request, the head of one may take to arrive, and a client may take
nothing of an answer."""

_SWEEP_SECONDS = 1.0
"""Time between two looks at all connections: how late a timeout may be, and how old the date of an answer."""


class HttpServer:
    """The HTTP/1.1 server of a front; to be made within its event loop.

    Args:
        application: Answers the requests.
        max_body: Bytes a request body may have.
        max_bodies: Bytes that all bodies in memory may have together; small ones are not counted.
        body_seconds: Time one may take to arrive.
        idle_seconds: Time a client may do nothing.

    Attributes:
        loop: The event loop.
        bodies: Bytes of the large bodies that are in memory, of requests that have no answer yet.
        connections: The ones that are open.
        encrypted: Whether they use TLS.
        now: Time of the loop, at most one sweep old.
        date: The line ``Date: ...``, as old.
    """

    def __init__(
        self,
        application: Application,
        *,
        max_body: float = math.inf,
        max_bodies: float = math.inf,
        body_seconds: float = IDLE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.max_body = max_body
        self.max_bodies = max_bodies
        self.bodies = 0
        self.body_seconds = body_seconds
        self.idle_seconds = idle_seconds
        self.connections: set[HttpConnection] = set()
        self.encrypted = False
        self.now = 0.0
        self.date = ""
        self._application = application
        self._interval = min(_SWEEP_SECONDS, max(min(body_seconds, idle_seconds) / 4, 0.01))
        self._timer: asyncio.TimerHandle | None = None
        self._listener: Listener | None = None
        self._empty = asyncio.Event()

    async def listen(
        self,
        sock: socket.socket,
        tls: ssl.SSLContext | None = None,
        refused: Callable[[], None] = lambda: None,
        no_room: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve from now on.

        Args:
            sock: Bound, and listening or not.
            tls: Certificate and rules; None = no encryption.
            refused: Told of every caller whose certificate is missing or wrong.
            no_room: Told once a second while there is no descriptor for another connection.
        """
        self.encrypted = tls is not None
        self._listener = await listen(self._connect, sock, tls, refused, no_room)

    def stop_listening(self) -> None:
        """Accept no more connections; those that are open, or about to be, go on."""
        if self._listener is not None:
            self._listener.close()

    async def begun(self, seconds: float) -> None:
        """Wait until those that were about to be are open, but no longer than this."""
        if self._listener is not None:
            await self._listener.begun(seconds)

    async def shut_down(self, seconds: float) -> None:
        """Close all connections; those with an answer under way get some time for it."""
        self._empty.clear()
        for connection in list(self.connections):
            connection.close_when_idle()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)
        for connection in list(self.connections):
            connection.break_off()
        if self._timer is not None:
            self._timer.cancel()

    def opened(self, connection: HttpConnection) -> None:
        """A connection begins."""
        if self._timer is None:
            self._tick()
        self.connections.add(connection)

    def closed(self, connection: HttpConnection) -> None:
        """A connection has ended."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    def _connect(self) -> HttpConnection:
        return HttpConnection(self, self._application)

    def _tick(self) -> None:
        self.now = self.loop.time()
        self.date = f"Date: {formatdate(usegmt=True)}\r\n"
        self._timer = self.loop.call_later(self._interval, self._sweep)

    def _sweep(self) -> None:
        """Look at all connections, and again later unless there are none."""
        if not self.connections:
            self._timer = None
            return
        self._tick()
        for connection in list(self.connections):
            connection.sweep(self.now)
