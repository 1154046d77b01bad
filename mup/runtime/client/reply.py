"""The response to a request: bytes go in as they arrive; one response comes out at its end.

The parser is ``httptools`` (llhttp, the one of Node.js). Responses that only announce another one (100) are
skipped.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import httptools
import msgspec

from mup.errors import CallError
from mup.runtime.protocol.header_rules import header_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BrokenError", "RawResponse", "ResponseReader", "call_error", "decode_body"]

MAX_HEAD = 65536
MAX_HEADERS = 100
SAID_LENGTH = 120
"""Characters of a body that an error repeats."""


class BrokenError(Exception):
    """The connection broke, or what came is not HTTP.

    Attributes:
        empty: Not a single byte of the response had arrived.
    """

    def __init__(self, message: str, *, empty: bool = False) -> None:
        super().__init__(message)
        self.empty = empty


class RawResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response as it has come.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        body: The bytes.
        keep: Whether the connection can be used again.
        cookies: Values of ``Set-Cookie``.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    keep: bool
    cookies: Sequence[str] = ()

    @property
    def refuses_all(self) -> bool:
        """Whether a replica has refused what another one may serve at once, and has done nothing."""
        return self.status == 503 and self.headers.get("x-mup-refused") in ("draining", "no_worker")

    def content(self) -> bytes:
        """Return the body as it was before it was compressed: servers outside of mup may do that.

        Raises:
            ValueError: It cannot be.
        """
        if self.headers.get("content-encoding", "").lower() not in ("gzip", "x-gzip", "deflate"):
            return self.body
        try:
            return zlib.decompress(self.body, wbits=zlib.MAX_WBITS | 32)
        except zlib.error as error:
            raise ValueError(f"it is not compressed as it says: {error}") from error


class ResponseReader:
    """Reads the responses of one connection, one after the other.

    Attributes:
        begun: Whether part of a response has come.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._no_body = False
        self._reset()

    def expect(self, method: str) -> None:
        """Get ready for the response to a request with this method."""
        self._no_body = method == "HEAD"

    def _reset(self) -> None:
        """Nothing has come of the next response."""
        self._headers: dict[str, str] = {}
        self._cookies: list[str] = []
        self._body: list[bytes] = []
        self._count = self._status = self._received = 0
        self._keep = self._whole = self.begun = False

    def feed(self, data: bytes) -> RawResponse | None:
        """Add received bytes; return the response once it is complete.

        Args:
            data: Empty = the server has closed the connection.

        Raises:
            BrokenError: It is none, or it will never be complete.
        """
        if not data:
            return self._ended()
        self.begun = True
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._whole:
                why = error.__context__ or error
                raise BrokenError(f"no HTTP response came: {why}; it begins with {data[:100]!r}") from error
            self._keep = False  # something came behind the response
        if self._whole:
            return self._result(keep=self._keep)
        if self._status == 0 and self._received > MAX_HEAD:
            raise BrokenError(f"no HTTP response came: the headers have more than {MAX_HEAD} bytes")
        return None

    def _ended(self) -> RawResponse:
        """The server sends nothing more: that is the end of some bodies.

        Raises:
            BrokenError: But not of this one.
        """
        if not self.begun:
            raise BrokenError("the server closed the connection without a response", empty=True)
        if self._status == 0:
            raise BrokenError("the connection was closed within the headers")
        if self._headers.get("transfer-encoding"):
            raise BrokenError("the connection was closed within a chunk")
        length = self._headers.get("content-length")
        if length is not None:
            came = sum(map(len, self._body))
            missing = int(length) - came
            raise BrokenError(f"the connection was closed: {came} bytes read, {missing} more expected")
        return self._result(keep=False)

    def _result(self, *, keep: bool) -> RawResponse:
        body = self._body
        content = body[0] if len(body) == 1 else b"".join(body)
        response = RawResponse(
            status=self._status, headers=self._headers, body=content, keep=keep, cookies=self._cookies
        )
        self._reset()
        return response

    # Events of the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; or a trailer, which is not used.

        Raises:
            BrokenError: There are too many of them.
        """
        if self._status:
            return
        self._count += 1
        if self._count > MAX_HEADERS:
            raise BrokenError(f"more than {MAX_HEADERS} headers")
        lower, text = name.decode("latin-1").lower(), header_text(value).strip()
        self._headers[lower] = text
        if lower == "set-cookie":
            self._cookies.append(text)

    def on_headers_complete(self) -> None:
        """Learn what kind of response it is.

        Raises:
            BrokenError: One that cannot be used.
        """
        parser = self._parser
        if self._whole:
            raise BrokenError("there is a second response")
        status = parser.get_status_code()
        if status == 100:
            self._headers.clear()
            return
        if status < 200:
            raise BrokenError(f"unexpected status {status}")
        self._status = status
        self._keep = parser.should_keep_alive()
        if self._no_body:
            # The parser would wait for a body; it is not used again.
            self._whole = True
            self._parser = httptools.HttpResponseParser(self)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """The response has ended, or the announcement of one."""
        if self._status:
            self._whole = True


def decode_body(body: bytes, content_type: str) -> Any:
    """Return a body as its content type says.

    Raises:
        ValueError: It is not what the content type says.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        return msgspec.json.decode(body) if body else None
    if kind.startswith("text/"):
        charset = content_type.lower().partition("charset=")[2].partition(";")[0]
        try:
            return body.decode(charset.strip(' "') or "utf-8")
        except LookupError:
            raise ValueError(f"unknown charset in {content_type!r}") from None
    return body


def call_error(name: str, status: int, body: Any) -> CallError:
    """Return what a call raises for a status outside 2xx.

    Args:
        name: Of the endpoint.
        status: Of its answer.
        body: Of its answer, decoded.
    """
    return CallError(f"{name} answered {status}: {_said(body)}", status=status, body=body)


def _said(body: Any) -> str:
    """Return one line of a body that may be a whole page; what it calls its error is left whole."""
    if isinstance(body, dict) and "error" in body:
        return str(body["error"])
    if isinstance(body, bytes):
        return f"{len(body)} bytes"
    line = " ".join(str("" if body is None else body).split())
    return line if len(line) <= SAID_LENGTH else f"{line[:SAID_LENGTH]}..."
