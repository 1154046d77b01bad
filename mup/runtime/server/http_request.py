"""An HTTP request as a front sees and answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from mup.runtime.server.http_connection import HttpConnection

__all__ = ["Application", "HttpRequest"]


class HttpRequest(msgspec.Struct, eq=False):
    """One request; exactly one answer belongs to it, now or later.

    Attributes:
        connection: The one it came on; for this class alone.
        method: In capitals.
        path: As received, percent-encoded; of an absolute target too.
        query: Query string, undecoded.
        headers: As received, with names in lower case.
        fields: The same by name; of a repeated header the last one.
        keep_alive: Whether the connection may carry another request after this one.
        body: The whole of it.
        on_gone: What to do when the client has gone and the request has no answer yet; None = nothing.
    """

    # A struct, for that is made in a fraction of the time an object with an __init__ takes.
    connection: HttpConnection
    method: str
    path: str
    query: str
    headers: list[tuple[bytes, bytes]]
    fields: dict[bytes, bytes]
    keep_alive: bool
    body: bytes = b""
    on_gone: Callable[[], None] | None = None

    @property
    def remote(self) -> str:
        """Who sent it, for messages."""
        return self.connection.remote

    @property
    def peer(self) -> str:
        """IP address of who sent it; "" if there is none."""
        return self.connection.peer

    @property
    def deserted(self) -> bool:
        """Whether the client is known to have gone."""
        return self.connection.deserted

    def respond(
        self,
        status: int,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        cookies: Sequence[str] = (),
    ) -> None:
        """Answer; nothing happens if the client has gone.

        Args:
            status: From 200 to 599.
            headers: All but those that say how the message is sent.
            body: Left out where HTTP wants none.
            cookies: Values of ``Set-Cookie``.
        """
        self.connection.respond(self, status, headers or {}, body, cookies)

    def start(self, status: int, headers: Mapping[str, str], length: int) -> None:
        """Begin an answer whose body follows in pieces: :meth:`send`, then :meth:`finish` or :meth:`abort`.

        Args:
            status: From 200 to 599.
            headers: All but those that say how the message is sent.
            length: Of the body.
        """
        self.connection.start(self, status, headers, length)

    async def send(self, data: bytes) -> None:
        """Send a piece of the body, and wait until the client has taken enough of what was sent before.

        Raises:
            ConnectionResetError: The client has gone.
        """
        await self.connection.send(self, data)

    def finish(self) -> None:
        """The body is complete."""
        self.connection.finish(self)

    def abort(self) -> None:
        """The rest of the body cannot be sent: break the connection, for nothing else tells the client."""
        self.connection.abort(self)


class Application(Protocol):
    """Who answers the requests of a server."""

    def handle(self, request: HttpRequest) -> None:
        """Answer a request, now or later."""

    def wants_body(self, request: HttpRequest) -> bool:
        """Whether to read a body that is still to come; if not, the request is handled without it."""

    def refuse(self, request: HttpRequest, status: int, kind: str, problem: str) -> None:
        """Answer a request that cannot be read or is too large.

        Args:
            request: What is known of it; its path may be "".
            status: 400, 408, 413, 431 or 500.
            kind: For counters, e.g. ``bad_http``.
            problem: For the client.
        """
