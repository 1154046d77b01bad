"""A request as an endpoint in a worker sees and answers it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType, FrameType
from typing import Any

from mup.communication import Cookie, Headers, UploadedFile
from mup.errors import MupError
from mup.events.record import FAILED, Event
from mup.runtime.client.caller import Caller
from mup.runtime.client.events import Operation
from mup.runtime.client.request import call_headers, call_seconds
from mup.runtime.endpoint.content import Content
from mup.runtime.endpoint.last_statement import returns_next
from mup.runtime.endpoint.refusals import REQUEST_ID, generic
from mup.runtime.endpoint.response import encoded
from mup.runtime.endpoint.worker_tools import Channel, Tools
from mup.runtime.protocol.header_rules import header_text
from mup.runtime.protocol.tracing import child_header
from mup.runtime.protocol.wire import Answer, Request

__all__ = ["ServedRequest"]

_END = Event.END


class ServedRequest(Caller):
    """One request in a worker: what it says, what it calls, and the answer.

    Args:
        request: As the front sent it.
        endpoint: ``A/epA/``.
        tools: Of the worker.
        channel: Where the answer goes.
        names: Parameters of the endpoint's path.

    Attributes:
        responded: Whether the request has been answered.
        runner: Calls the endpoint's method, and says that the worker is free once that has returned; None =
            a caller that does not.
    """

    # What most requests leave as it is costs nothing per request here.
    _headers: Headers | None = None
    _cookies: Mapping[str, str] | None = None
    _content: Content | None = None
    _params: dict[str, Any] | None = None
    _on_loop = False
    """Whether its calls go on by themselves."""
    responded = False
    runner: CodeType | None = None

    def __init__(
        self,
        request: Request,
        endpoint: str,
        tools: Tools,
        channel: Channel,
        names: Sequence[str] = (),
    ) -> None:
        self._request = request
        self._names = names
        self._tools = tools
        self._channel = channel
        self._log = tools.log if request.sampled else tools.silent
        self._endpoint = self._log.name(endpoint)

    @property
    def method(self) -> str:
        """HTTP method of the request."""
        return self._request.method

    @property
    def headers(self) -> Headers:
        """Headers of the request."""
        if self._headers is None:
            self._headers = Headers(
                (name.decode("latin-1"), header_text(value)) for name, value in self._request.headers
            )
        return self._headers

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies of the request."""
        if self._cookies is None:
            # Imported here: few endpoints look at cookies.
            from mup.runtime.protocol.sent_cookies import cookies_of  # noqa: PLC0415

            self._cookies = cookies_of(self.headers.get("cookie", ""))
        return self._cookies

    @property
    def body(self) -> bytes:
        """Body of the request, undecoded."""
        return self._request.body

    @property
    def request_id(self) -> str:
        """Id of this request in logs."""
        return f"{self._request.request:016x}"

    @property
    def traceparent(self) -> str:
        """W3C header for requests this one causes by other means than `call`."""
        request = self._request
        return child_header(request.traceparent, request.trace, request.request)

    @property
    def content(self) -> Content:
        """What the client sent, for the arguments of the endpoint's method."""
        if self._content is None:
            request = self._request
            # Not a method of ours: a cycle of references would keep the body until the collector comes by.
            header = partial(_header_in, request.headers)
            self._content = Content(
                dict(zip(self._names, request.values, strict=True)) if self._names else {},
                request.query,
                header(b"content-type") if request.body else "",
                request.body,
                header,
            )
        return self._content

    @property
    def params(self) -> dict[str, Any]:
        """Query string, body and path, merged."""
        if self._params is None:
            self._params = self.content.params()
        return self._params

    @property
    def files(self) -> Mapping[str, Sequence[UploadedFile]]:
        """Files of the body by field."""
        return self.content.files()

    def respond(
        self,
        body: Any = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str | Cookie] | None = None,
    ) -> None:
        """Answer the request; see :meth:`Communication.respond`."""
        frame = sys._getframe(1)  # noqa: SLF001 - the only way to see who responds
        site = self._log.site(frame)
        if self.responded:
            raise MupError("respond() was called twice for one request", hint="the first response stands")
        last = returns_next(frame, self.runner)
        self._answer(body, status, headers, cookies, site, self._channel.hold if last else self._channel.send)

    def fail(self, status: int, message: str, *, about_input: bool = False, **details: str) -> None:
        """Answer with an error the endpoint did not choose itself, unless it has answered.

        Args:
            status: Of the answer.
            message: What went wrong.
            about_input: Whether it is about what the client has sent: it is told, in production, too.
            details: Further fields of the body.
        """
        if self.responded:
            return
        if self._tools.production:
            body = generic(status, self.request_id)
            if about_input:
                body = {**body, "error": message, **details}
        else:
            where = {"service": self._tools.service, "endpoint": self._request.key}
            body = {"error": message, **details, **where}
        send = self._channel.hold if self.runner else self._channel.send
        self._answer(body, status, {REQUEST_ID: self.request_id}, None, 0, send)

    def write(self, event: Event, flags: int = 0) -> None:
        """Log an event of the whole execution."""
        log = self._log
        if log.writer is not None:
            request = self._request
            log.write(event, request.request, request.trace, 0, 0, self._endpoint, flags)

    def check_params(self) -> None:
        """Decode the body now, if there is one.

        Raises:
            BadRequestError: It is not what its content type says.
        """
        if self._request.body:
            self._params = self.content.params()

    def _headers_of_call(self, dest_ms: str, headers: Mapping[str, str] | None) -> dict[str, str]:  # noqa: ARG002
        """Return the headers of a call, with what it passes on of a trace that came with the request."""
        if not self._request.traceparent:
            return call_headers(headers)
        state = self.headers.get("tracestate")
        trace = {"traceparent": self.traceparent, **({"tracestate": state} if state else {})}
        return call_headers({**trace, **(headers or {})})

    def _operation(self, name: str, frame: FrameType, timeout: float | None = None) -> Operation:
        request, events = self._request, self._log
        deadline = time.monotonic() + call_seconds(timeout, self._tools.patience)
        if request.deadline is not None:
            deadline = min(deadline, request.deadline)
        self._operations += 1
        number, site = self._operations, events.site(frame)
        return Operation(
            events,
            request.request,
            request.trace,
            number,
            site,
            name,
            deadline,
            self._on_loop,
            request.sampled,
        )

    def _answer(
        self,
        body: Any,
        status: int,
        headers: Mapping[str, str] | None,
        cookies: Mapping[str, str | Cookie] | None,
        site: int,
        send: Callable[[Answer], None],
    ) -> None:
        log, request = self._log, self._request
        # Stamped now but written later: a body that cannot be sent is no end yet.
        stamp = log.stamp()
        answer = encoded(body, status, headers, cookies)
        flags = FAILED if status >= 500 else 0
        log.write(_END, request.request, request.trace, 0, site, self._endpoint, flags, *stamp)
        send(answer)
        self.responded = True


def _header_in(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> str:
    """Return the first header of a name; "" if there is none."""
    # Most requests are asked for one or two headers: that is no reason to decode all of them.
    for name, value in headers:
        if name == wanted:
            return header_text(value)
    return ""
