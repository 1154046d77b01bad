"""Accept the connections of a server, and log those that could not be served.

Event loops accept by themselves, but silently: a handshake that has failed is not reported, and uvloop, out
of descriptors, accepts connections only to reset them. Connections are accepted here instead. Without a
descriptor for one the server leaves it in the kernel's queue until there is one again, and says so; where
callers need certificates, the alert reaches the caller, and the log says who was refused and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any

__all__ = ["Listener", "listen"]

_log = logging.getLogger("mup.runtime")
_BACKLOG = 1024
_HANDSHAKE_SECONDS = 10.0
_LOG_SECONDS = 1.0
"""Time between two lines of a kind: refused clients try again, and again."""

_AT_ONCE = 64
"""Connections that are accepted before anything else has its turn."""

_PAUSE_SECONDS = 0.05
"""Time between two looks for descriptors while there are none left."""

_RESERVE = 16
"""Descriptors that no connection gets: with them a replica replaces a worker, or begins a file."""

_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


async def listen(
    factory: Callable[[], asyncio.BaseProtocol],
    sock: socket.socket,
    tls: ssl.SSLContext | None,
    refused: Callable[[], None],
    no_room: Callable[[], None] = lambda: None,
) -> Listener:
    """Serve on a socket from now on.

    Args:
        factory: Makes the protocol of a connection.
        sock: Bound, and listening or not.
        tls: Certificate and rules; None = no encryption.
        refused: Told of every caller whose certificate is missing or wrong.
        no_room: Told once a second while connections cannot be accepted, because there is no descriptor left.
    """
    return Listener(factory, sock, tls, refused, no_room)


class Listener:
    """What accepts connections; see `listen`."""

    def __init__(
        self,
        factory: Callable[[], Any],
        sock: socket.socket,
        tls: ssl.SSLContext | None,
        refused: Callable[[], None],
        no_room: Callable[[], None],
    ) -> None:
        sock.listen(_BACKLOG)
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._factory = factory
        self._sock = sock
        self._tls = tls
        self._checks = tls is not None and tls.verify_mode is ssl.CERT_REQUIRED
        self._refused = refused
        self._no_room = no_room
        self._lines = {"refused": _Line(self._loop), "no room": _Line(self._loop)}
        # The event loop itself keeps tasks by weak references only.
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._base = _lowest_free(sock)
        self._loop.add_reader(sock.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more but what the kernel has accepted already: it would be reset."""
        if self._sock.fileno() < 0:
            return
        self._accept(_BACKLOG)
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()

    async def begun(self, seconds: float) -> None:
        """Wait until every connection that was accepted has a protocol, but no longer than this."""
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=seconds)

    def _accept(self, most: int = _AT_ONCE) -> None:
        for _ in range(most):
            try:
                connection, peer = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self._wait_for_room(error.errno)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._begin(connection, peer))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)
            if not self._room_above(connection.fileno()):
                self._wait_for_room(errno.EMFILE)
                return

    def _wait_for_room(self, problem: int) -> None:
        """Leave connections where they are, and look again soon."""
        if self._pause is None:
            self._loop.remove_reader(self._sock.fileno())
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self._look_for_room)
        if self._lines["no room"].is_due():
            self._no_room()
            _log.warning(
                "connections wait, they cannot be accepted: %s (limit %d)",
                os.strerror(problem),
                resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            )

    def _look_for_room(self) -> None:
        try:
            lowest = _lowest_free(self._sock)
        except OSError as error:
            self._wait_for_room(error.errno or errno.EMFILE)
            return
        if not self._room_above(lowest):
            self._wait_for_room(errno.EMFILE)
            return
        self._pause = None
        self._loop.add_reader(self._sock.fileno(), self._accept)

    def _room_above(self, descriptor: int) -> bool:
        """Return whether enough are left above a descriptor that was the lowest free one."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        reserve = min(_RESERVE, (limit - self._base) // 4)
        return limit == resource.RLIM_INFINITY or descriptor + reserve < limit - 1

    async def _begin(self, connection: socket.socket, peer: Any) -> None:
        """Hand a connection to a protocol of its own."""
        try:
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._checks:
                await self._shake(connection, str(peer[0]))
            else:
                await self._loop.connect_accepted_socket(
                    self._factory,
                    connection,
                    ssl=self._tls,
                    ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls is not None else None,
                )
        except OSError:
            connection.close()  # the caller went away, or does not speak TLS

    async def _shake(self, connection: socket.socket, peer: str) -> None:
        # With a second descriptor the connection outlives a handshake that fails, and the alert can be sent.
        with connection.dup() as alive:
            try:
                await self._loop.connect_accepted_socket(
                    self._factory, connection, ssl=self._tls, ssl_handshake_timeout=_HANDSHAKE_SECONDS
                )
            except ssl.SSLError as error:
                with contextlib.suppress(OSError):
                    alive.send(getattr(error, "alert", b""))
                self._say(peer, error)

    def _say(self, peer: str, error: ssl.SSLError) -> None:
        self._refused()
        line = self._lines["refused"]
        if line.is_due():
            more = f" ({line.missed} more since the last such line)" if line.missed else ""
            _log.warning("a connection from %s was refused: %s%s", peer, _reason(error), more)


class _Line:
    """A line of the log that may be due again and again.

    Attributes:
        missed: How often it was due before its time, between the last two times it was not.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._next = 0.0
        self._missed = self.missed = 0

    def is_due(self) -> bool:
        """Return whether to say it now."""
        now = self._loop.time()
        if now < self._next:
            self._missed += 1
            return False
        self._next = now + _LOG_SECONDS
        self._missed, self.missed = 0, self._missed
        return True


def _lowest_free(sock: socket.socket) -> int:
    """Return the descriptor that the next file would get.

    Raises:
        OSError: There is none.
    """
    descriptor = os.dup(sock.fileno())
    os.close(descriptor)
    return descriptor


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
