"""Tell requests of programs that mean this server from those of web pages in a browser.

Browsers send what pages of strangers tell them to, also to loopback. Three headers give such requests away,
and no page can change them: ``Origin`` and ``Sec-Fetch-Site`` say where the page is from, and ``Host`` is the
name the page was told to call: by DNS rebinding that is a name of the stranger's which leads here. Programs
send no ``Origin``, and a ``Host`` that is one of ours.

What is refused: another origin than the server's own, and a ``Host`` the server is not known by. It knows
``localhost`` and the addresses of loopback, what it listens on and is advertised as, and the names it is
given; if other machines reach it, also the name of its machine, and, where it listens on all addresses, each.
A request without ``Host`` (HTTP/1.0) is of no browser.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from mup.addresses import is_wildcard, plain_host

__all__ = ["KnownHosts"]

_REMEMBERED = 64
"""Values of ``Host`` that are not looked at twice: there are few good ones."""
_OWN_PAGE = ("", "none", "same-origin")
"""Of ``Sec-Fetch-Site``: not from a browser, typed in by its user, from a page of this server."""


class KnownHosts:
    """The names by which a server is known.

    Args:
        listening: Address it listens on.
        names: Others.
    """

    def __init__(self, listening: str = "127.0.0.1", names: Iterable[str] = ()) -> None:
        self._names = {"localhost", plain_host(listening), *map(plain_host, names)} - {""}
        self._everywhere = is_wildcard(listening)
        if not _of_loopback(listening):
            full = socket.gethostname()
            self._names |= {plain_host(full), plain_host(full.partition(".")[0])}
        self._good: set[str] = set()

    def stranger(self, host: str, origin: str, site: str) -> str:
        """Return why a request is refused; "" = it is not.

        Args:
            host: Value of its header ``Host``; "" = it has none.
            origin: Of ``Origin``.
            site: Of ``Sec-Fetch-Site``.
        """
        if host not in self._good:
            if host and not self.knows(_host_of(host)):
                name = _host_of(host)[:100]
                return f"this server is not known as {name!r}; if it is, mup.toml says so: [registry] names"
            if len(self._good) < _REMEMBERED:
                self._good.add(host)
        if site.strip().lower() not in _OWN_PAGE:
            return "this is not for web pages of other origins (Sec-Fetch-Site)"
        if origin and (not host or origin.partition("://")[2].lower() != host.strip().lower()):
            return "this is not for web pages of other origins (Origin)"
        return ""

    def knows(self, host: str) -> bool:
        """Whether a name or an address (without port) is one of this server's."""
        plain = plain_host(host)
        if plain in self._names:
            return True
        try:
            address = ipaddress.ip_address(plain)
        except ValueError:
            return False
        # Of an address no stranger can say where it leads.
        return address.is_loopback or self._everywhere


def _host_of(value: str) -> str:
    """Return the host of a value of ``Host``, which may have a port."""
    text = value.strip()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _of_loopback(host: str) -> bool:
    """Whether an address is of loopback; a name is not looked up."""
    plain = plain_host(host)
    try:
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return plain == "localhost"
