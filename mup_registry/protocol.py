"""Answer what is not HTTP with aiohttp's server, without logging it as an error of the registry."""

from __future__ import annotations

import asyncio

import msgspec
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

__all__ = ["RegistryProtocols"]


class RegistryProtocols(Server):
    """The protocol factory of a registry; arguments as of aiohttp's ``Server``."""

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        return _Protocol(self, loop=asyncio.get_running_loop(), access_log=None)  # type: ignore[arg-type] # as the class says itself: no access log


class _Protocol(RequestHandler):
    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer a request that cannot be read, and close the connection."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        error = msgspec.json.encode({"error": "this is no HTTP request"})
        response = Response(status=status, body=error, content_type="application/json")
        response.force_close()
        return response
