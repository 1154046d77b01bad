"""How does a server accept connections, and say whom it has turned away?

Event loops accept by themselves; what they do not do is tell anybody about a handshake that has failed. Where
callers need certificates that must not be silent at either end: connections are accepted here, one task for
each handshake, the alert reaches the caller, and the log says who was refused and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Listener", "listen"]

_log = logging.getLogger("mup.runtime")
_BACKLOG = 1024
_HANDSHAKE_SECONDS = 10.0
_LOG_SECONDS = 1.0
"""Time between two lines about callers that were refused: whoever is refused tries again, and again."""


class Listener(Protocol):
    """What accepts connections."""

    def close(self) -> None:
        """Accept no more."""


async def listen(
    factory: Callable[[], asyncio.BaseProtocol],
    sock: socket.socket,
    tls: ssl.SSLContext | None,
    refused: Callable[[], None],
) -> Listener:
    """Serve on a socket from now on.

    Args:
        factory: Makes the protocol of a connection.
        sock: Bound, and listening or not.
        tls: Certificate and rules; None = no encryption.
        refused: Told of every caller whose certificate is missing or wrong.
    """
    loop = asyncio.get_running_loop()
    if tls is None or tls.verify_mode is not ssl.CERT_REQUIRED:
        return await loop.create_server(factory, sock=sock, backlog=_BACKLOG, ssl=tls)
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return _CheckingListener(factory, sock, tls, refused)


class _CheckingListener:
    def __init__(
        self,
        factory: Callable[[], Any],
        sock: socket.socket,
        tls: ssl.SSLContext,
        refused: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._factory = factory
        self._sock = sock
        self._tls = tls
        self._refused = refused
        self._next_line = 0.0
        self._unsaid = 0
        # The event loop itself keeps tasks by weak references only.
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Accept no more."""
        self._accepting.cancel()

    async def _accept(self) -> None:
        with self._sock:
            while True:
                try:
                    connection, peer = await self._loop.sock_accept(self._sock)
                except OSError as error:
                    # No descriptors left; as event loops do, wait for somebody to close one.
                    _log.error("connections cannot be accepted: %s", error.strerror)
                    await asyncio.sleep(1.0)
                    continue
                task = self._loop.create_task(self._shake(connection, str(peer[0])))
                self._handshakes.add(task)
                task.add_done_callback(self._handshakes.discard)

    async def _shake(self, connection: socket.socket, peer: str) -> None:
        # With a second descriptor the connection outlives a handshake that fails, and the alert can be sent.
        with connection.dup() as alive:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.connect_accepted_socket(
                    self._factory, connection, ssl=self._tls, ssl_handshake_timeout=_HANDSHAKE_SECONDS
                )
            except ssl.SSLError as error:
                with contextlib.suppress(OSError):
                    alive.send(getattr(error, "alert", b""))
                self._say(peer, error)
            except OSError:
                pass  # the caller went away

    def _say(self, peer: str, error: ssl.SSLError) -> None:
        self._refused()
        now = self._loop.time()
        if now < self._next_line:
            self._unsaid += 1
            return
        self._next_line = now + _LOG_SECONDS
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        self._unsaid = 0
        _log.warning("a connection from %s was refused: %s%s", peer, _reason(error), more)


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
