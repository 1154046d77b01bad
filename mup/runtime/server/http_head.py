"""Status line and headers of a response, in which nothing can end a line early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from mup.runtime.protocol.header_rules import VALUE

__all__ = ["WITHOUT_CONTENT", "response_head"]

WITHOUT_CONTENT = frozenset({204, 304})
"""Statuses whose responses have no body, whatever the headers say."""

_STATUS_LINES = {status: f"HTTP/1.1 {status} \r\n" for status in range(200, 600)}
_STATUS_LINES |= {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}

_USUAL = {
    kind: f"Content-Type: {kind}\r\n"
    for kind in ("application/json", "text/plain; charset=utf-8", "application/octet-stream")
}
"""Headers of most responses by the type of their content: they need not be looked through every time."""


def response_head(
    status: int, headers: Mapping[str, str], cookies: Sequence[str], length: int, connection: str, date: str
) -> bytes:
    """Return everything up to the body.

    Args:
        status: From 200 to 599.
        headers: Names and values.
        cookies: Values of ``Set-Cookie``.
        length: Of the body.
        connection: Line ``Connection: ...``, or "".
        date: Line ``Date: ...``.

    Raises:
        ValueError: A header would not be one header, or cannot be sent at all.
    """
    usual = _USUAL.get(headers.get("Content-Type", "")) if len(headers) == 1 and not cookies else None
    fields = usual or _checked(headers, cookies)
    size = "" if status in WITHOUT_CONTENT else f"Content-Length: {length}\r\n"
    return f"{_STATUS_LINES[status]}{fields}{size}{connection}{date}\r\n".encode()


def _checked(headers: Mapping[str, str], cookies: Sequence[str]) -> str:
    """Return the lines of headers.

    Raises:
        ValueError: A header would not be one.
    """
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Set-Cookie: {cookie}" for cookie in cookies]
    for line in lines:
        if not VALUE.fullmatch(line):
            raise ValueError(f"a header has a control character: {line!r:.500}")
    return "".join([f"{line}\r\n" for line in lines])
