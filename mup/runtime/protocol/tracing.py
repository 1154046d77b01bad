"""Convert between mup's ids and the W3C header ``traceparent``.

``00-TRACE-PARENT-FLAGS``: a trace of 128 bits, the caller's span of 64 bits, and whether it was sampled. The
trace id of mup is the lower half of a trace, its request id is a span.
"""

from __future__ import annotations

import re

__all__ = ["child_header", "trace_id", "valid"]

_HEADER = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NOTHING = "0" * 32


def valid(header: str) -> str:
    """Return a header that can be used as version 00 of the format, or ""."""
    match = _HEADER.fullmatch(header)
    if match is None or header.startswith("ff") or match[1] == _NOTHING or match[2] == _NOTHING[:16]:
        return ""
    # What later versions add behind the flags means nothing here.
    return "" if match[4] and header.startswith("00") else f"00-{match[1]}-{match[2]}-{match[3]}"


def trace_id(header: str) -> int:
    """Return mup's trace id of a valid header; 0 if the lower half of its trace is 0."""
    return int(header[19:35], 16)


def child_header(header: str, trace: int, request: int) -> str:
    """Return what to send along with requests this one causes.

    Args:
        header: The valid header that came with the request, or "".
        trace: mup's trace id.
        request: Id of this request.
    """
    if not header:
        return f"00-{trace:032x}-{request:016x}-00"
    return f"{header[:36]}{request:016x}{header[52:]}"
