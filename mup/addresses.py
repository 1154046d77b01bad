"""Addresses a machine listens on and is reached under, and how they are written."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket

__all__ = [
    "Network",
    "allowance",
    "is_host_name",
    "is_loopback",
    "is_wildcard",
    "plain_host",
    "route_to",
    "socket_for",
    "url_of",
    "why_not_bound",
]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def plain_host(host: str) -> str:
    """Return a host as it is compared: small letters, no brackets, no dot at the end."""
    return host.strip("[]").rstrip(".").lower()


def is_host_name(text: str) -> bool:
    """Whether a text is a name of a machine, or an IPv4 address."""
    return bool(_HOST_NAME.fullmatch(plain_host(text)))


def allowance(text: str) -> Network | str:
    """Return what ``[registry] allow`` names: a network, an address (as a network of one), or a name.

    Raises:
        ValueError: It is none of these.
    """
    try:
        return ipaddress.ip_network(plain_host(text).partition("%")[0], strict=False)
    except ValueError:
        if not is_host_name(text):
            raise ValueError(f"not a network (10.0.0.0/8), an address or a name: {text!r}") from None
        return plain_host(text)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, seen from this machine; a name counts as what it resolves to."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)


def is_wildcard(host: str) -> bool:
    """Whether listening on this host means every address of the machine: no peer can connect to it."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def route_to(host: str, port: int) -> str:
    """Return this machine's address as ``host`` sees it; nothing is sent.

    Raises:
        OSError: There is no route.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def why_not_bound(error: Exception, host: str, port: int, owner: str) -> tuple[str, str]:
    """Return why a socket could not listen at an address, and the remedy.

    Args:
        error: What ``bind`` or ``listen`` raised.
        host: The address.
        port: The port.
        owner: What was to listen there.
    """
    number = error.errno if isinstance(error, OSError) else None
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if number == errno.EADDRINUSE:
        return (
            f"port {port} of {owner} is in use",
            "stop what listens there, or set another port (0 = any free one) in mup.toml",
        )
    if isinstance(error, socket.gaierror) or number == errno.EADDRNOTAVAIL:
        reason = f"{owner} cannot listen at {host!r}, which is no address of this machine: {text}"
        return reason, "name one that it has (`ip address` lists them), or 0.0.0.0 for all of them"
    if number == errno.EACCES:
        return (
            f"port {port} of {owner} is not permitted: {text}",
            "set a port above 1023 in mup.toml (0 = any free one)",
        )
    return f"port {port} of {owner} cannot be used: {text}", "set another port (0 = any free one) in mup.toml"


def socket_for(host: str) -> socket.socket:
    """Return a stream socket that can be bound to a host."""
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)


def url_of(host: str, port: int, *, tls: bool = False) -> str:
    """Return the base URL of a server."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
