"""How does a front answer what is not HTTP, or too much of it? aiohttp's server, with errors of our own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

__all__ = ["HttpServer"]

_log = logging.getLogger("mup.runtime")
IDLE_SECONDS = 75.0
"""A connection without a complete request for so long is closed: its client is dead, idle, or very slow."""


class HttpServer(Server):
    """The protocol factory of a front.

    Args:
        handler: Answers requests.
        request_factory: Makes them.
        count: Told the status and the kind of each request that could not be read.
    """

    def __init__(
        self,
        handler: Callable[[BaseRequest], Awaitable[StreamResponse]],
        request_factory: Callable[..., BaseRequest],
        count: Callable[[int, str], None],
    ) -> None:
        super().__init__(handler, request_factory=request_factory)
        self.count = count

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        return _Protocol(self, asyncio.get_running_loop())


class _Protocol(RequestHandler):
    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server, loop=loop, access_log=None, keepalive_timeout=IDLE_SECONDS)  # type: ignore[arg-type] # as the class says itself: no access log
        self._count = server.count

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer a request that cannot be read, and close the connection. It is no problem of the service."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        kind = "bad_http"
        if isinstance(exc, LineTooLong) or "Too many headers" in str(exc):
            status, kind = 431, "header_too_large"
        self._count(status, kind)
        _log.debug("cannot read a request of %s: %s", request.remote, exc)
        text = "the request line or a header is too long" if status == 431 else "this is no HTTP request"
        response = Response(
            status=status, body=msgspec.json.encode({"error": text}), content_type="application/json"
        )
        response.force_close()
        return response
