"""Cookies of a client, set by services and kept as a browser does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookies import CookieError, Morsel, SimpleCookie

__all__ = ["KeptCookies"]


class KeptCookies:
    """The cookies of one user, per service. They go to every path of the service that has set them."""

    __slots__ = ("_headers", "_values")

    def __init__(self) -> None:
        self._values: dict[str, dict[str, str]] = {}
        # Made when a cookie changes, read with every call.
        self._headers: dict[str, str] = {}

    def header(self, service: str) -> str | None:
        """Return the header ``Cookie`` for a service; None = it has set none."""
        return self._headers.get(service) or None

    def keep(self, service: str, set_cookies: Iterable[str]) -> None:
        """Keep or delete what headers ``Set-Cookie`` say; unreadable ones are passed over."""
        values = self._values.setdefault(service, {})
        for text in set_cookies:
            try:
                jar = SimpleCookie(text)
            except CookieError:
                continue
            for name, morsel in jar.items():
                if _is_over(morsel):
                    values.pop(name, None)
                else:
                    # As it was sent: a quoted value stays quoted.
                    values[name] = morsel.coded_value
        self._headers[service] = "; ".join(f"{name}={value}" for name, value in values.items())


def _is_over(morsel: Morsel[str]) -> bool:
    """Return whether a cookie is to be deleted. ``Max-Age`` wins over ``Expires``."""
    try:
        if morsel["max-age"]:
            return int(morsel["max-age"]) <= 0
        expires = parsedate_to_datetime(morsel["expires"])
    except ValueError:
        return False
    return expires.replace(tzinfo=expires.tzinfo or UTC) <= datetime.now(UTC)
