"""Headers a service may send, and their encoding as bytes.

A header is bytes. Texts are sent as UTF-8; what comes is read as UTF-8, or as latin-1 where it is none: each
header has a text, and every such text can be sent again, in a body or as a header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mup.errors import UsageError

__all__ = [
    "NOT_OF_CALLS",
    "OF_THE_CONNECTION",
    "TOKEN",
    "VALUE",
    "check_call_headers",
    "header_text",
    "is_text",
]

OF_THE_CONNECTION = frozenset({"content-length", "transfer-encoding", "connection"})
"""Headers that say how a response is sent: an endpoint's own are left out."""

NOT_OF_CALLS = OF_THE_CONNECTION | {
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
}
"""Headers of one connection or of one server (RFC 9110, 7.6.1): no call has some of its own."""

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of a header."""

VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
"""The value of a header (RFC 9110, 5.5): a tab is the only control character."""


def check_call_headers(headers: Mapping[str, str], *, external: bool = False) -> None:
    """Refuse headers that a call cannot choose.

    Args:
        headers: Of the call.
        external: Whether it goes outside of mup, where one server may have several names.

    Raises:
        UsageError: There is such a one.
    """
    for name in headers:
        lower = name.lower() if isinstance(name, str) else ""
        if lower in NOT_OF_CALLS and not (external and lower == "host"):
            raise UsageError(
                f"a call cannot have a header {name!r} of its own: it is the connection's",
                hint="leave it out; of another request's headers pass on only what is meant for the callee",
            )


def header_text(value: bytes) -> str:
    """Return the text of a header that has come."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def is_text(value: str) -> bool:
    """Return whether a string can be sent: one that was received may stand for bytes that are no text."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
