"""Cookies of a request, read as browsers write them: a malformed one does not cost the others.

Browsers send every cookie of the site, also what other software has set. ``http.cookies`` gives up all of
them, or those behind the first one that breaks the rules of RFC 6265, section 4.1.1: sessions get lost.
"""

from __future__ import annotations

import re

__all__ = ["cookies_of"]

_ESCAPE = re.compile(r"\\(?:([0-3][0-7][0-7])|(.))")
"""What ``http.cookies`` makes of characters that no cookie has: octal digits, or a backslash in front."""


def cookies_of(header: str) -> dict[str, str]:
    """Return the cookies of a header ``Cookie`` by name; of a repeated one the last.

    Args:
        header: As received. Parts without a name are passed over.
    """
    cookies = {}
    for part in header.split(";"):
        name, equals, value = part.partition("=")
        name = name.strip()
        if equals and name:
            cookies[name] = _unquoted(value.strip())
    return cookies


def _unquoted(value: str) -> str:
    if len(value) < 2 or not (value[0] == value[-1] == '"'):
        return value
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)) if found[1] else found[2], value[1:-1])
