"""The response of ``respond``: status, headers, cookies and body, checked and encoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mup.communication import Cookie
from mup.errors import MupError
from mup.runtime.protocol.header_rules import OF_THE_CONNECTION, TOKEN, VALUE, is_text
from mup.runtime.protocol.wire import Answer

__all__ = ["encoded"]

_encode = msgspec.json.Encoder().encode
# A tuple that is made once; the union of types would be made anew, with every body.
_BYTES = (bytes, bytearray, memoryview)


def encoded(
    body: Any,
    status: Any,
    headers: Mapping[str, str] | None = None,
    cookies: Mapping[str, str | Cookie] | None = None,
) -> Answer:
    """Return a response as it is sent.

    Raises:
        MupError: A part of it cannot be sent.
    """
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise MupError(f"status must be a whole number between 200 and 599, got {status!r}")
    if isinstance(body, str):
        complete, data = {"Content-Type": "text/plain; charset=utf-8"}, body.encode()
    elif isinstance(body, _BYTES):
        complete, data = {"Content-Type": "application/octet-stream"}, bytes(body)
    elif body is None and (300 <= status < 400 or status in (204, 205)):
        complete, data = {}, b""
    else:
        try:
            complete, data = {"Content-Type": "application/json"}, _encode(body)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise MupError(f"the body cannot be sent as JSON: {error}") from error
    if not headers and not cookies:
        return Answer(status, complete, data)
    for name, value in (headers or {}).items():
        if not isinstance(value, str) or not VALUE.fullmatch(value) or not is_text(value):
            raise MupError(f"header {name!r} must be a text without control characters, got {value!r}")
        if not isinstance(name, str) or not TOKEN.fullmatch(name):
            raise MupError(f"{name!r} cannot be the name of a header")
        if name.lower() == "content-type":
            complete["Content-Type"] = value
        elif name.lower() not in OF_THE_CONNECTION:
            complete[name] = value
    return Answer(status, complete, data, _set_cookies(cookies) if cookies else ())


def _set_cookies(cookies: Mapping[str, str | Cookie]) -> tuple[str, ...]:
    """Return the values of the ``Set-Cookie`` headers."""
    # Imported here: few endpoints set cookies.
    from http.cookies import CookieError, SimpleCookie  # noqa: PLC0415

    jar = SimpleCookie()
    for name, given in cookies.items():
        cookie = Cookie(value=given) if isinstance(given, str) else given
        for what, text in (("path", cookie.path), ("domain", cookie.domain)):
            if any(c in text for c in ";,") or not (text.isascii() and text.isprintable()):
                raise MupError(f"the {what} of cookie {name!r} cannot be {text!r}")
        if cookie.same_site not in ("Strict", "Lax", "None"):
            raise MupError(
                f"same_site of cookie {name!r} must be Strict, Lax or None, got {cookie.same_site!r}"
            )
        if not (isinstance(cookie.value, str) and cookie.value.isascii() and cookie.value.isprintable()):
            raise MupError(
                f"the value of cookie {name!r} must be printable ASCII, got {cookie.value!r}",
                hint="encode other texts, for instance with urllib.parse.quote",
            )
        try:
            jar[name] = cookie.value
        except CookieError as error:
            raise MupError(f"cookie {name!r} cannot be set: {error}") from error
        morsel = jar[name]
        morsel["path"], morsel["samesite"] = cookie.path, cookie.same_site
        if cookie.domain:
            morsel["domain"] = cookie.domain
        if cookie.max_age is not None:
            # As text: http.cookies leaves out an attribute whose value is 0.
            morsel["max-age"] = str(int(cookie.max_age))
        morsel["secure"], morsel["httponly"] = cookie.secure, cookie.http_only
    return tuple(jar[name].OutputString() for name in cookies)
