"""Addresses that may be registered: callers send requests to them, with what is in these.

Never what stands for no server of a deployment: all addresses at once, multicast, broadcast, reserved ranges,
link-local ones, and those at which clouds tell a machine its secrets. A registry on loopback serves callers
on its machine alone, and lists replicas of that machine only. Its operator may allow more.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from mup.addresses import Network, plain_host
from mup.runtime.protocol.origin import KnownHosts

__all__ = ["Reach"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
"""Besides the link-local 169.254.169.254: where Alibaba Cloud, Azure, Oracle and AWS tell of a machine."""
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data"})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Reach:
    """What may be registered with one registry.

    Args:
        hosts: The names of the registry's machine.
        allowed: Networks and names that are allowed whatever they are; see `mup.addresses.allowance`.
        local: Whether the registry is for its own machine only.
    """

    def __init__(self, hosts: KnownHosts, allowed: Iterable[Network | str], *, local: bool) -> None:
        self._hosts = hosts
        self._networks = [item for item in allowed if not isinstance(item, str)]
        self._names = {item for item in allowed if isinstance(item, str)}
        self._local = local

    def problem(self, host: str) -> str:
        """Return why no replica may be registered at a host; "" = it may."""
        why = self.odd(host)
        if why or not self._local:
            return why
        address, name = _address_of(host), plain_host(host)
        if name in self._names or self._hosts.knows(name) or (address is not None and self._allows(address)):
            return ""
        if address is not None and _is_ours(address):
            return ""
        return f"{host!r} is no address of this machine, and a registry on loopback is for its machine only"

    def odd(self, host: str) -> str:
        """Return why a host is no server of a deployment; "" = it may be one."""
        address, name = _address_of(host), plain_host(host)
        if name in self._names or (address is not None and self._allows(address)):
            return ""
        if address is None:
            return f"{host!r} is where clouds tell a machine its secrets" if name in _METADATA_NAMES else ""
        kind = _odd(address)
        return f"{host!r} is {kind}" if kind else ""

    def _allows(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _odd(address: Address) -> str:
    """Return which kind of address it is that no server can have; "" = none of them."""
    if address in _METADATA:
        return "where clouds tell a machine its secrets"
    kinds = {
        "link-local": address.is_link_local,
        "unspecified": address.is_unspecified,
        "multicast": address.is_multicast,
        "broadcast": address == ipaddress.ip_address("255.255.255.255"),
        "in a reserved range": address.is_reserved and not address.is_loopback,
    }
    return next((kind for kind, holds in kinds.items() if holds), "")


def _address_of(host: str) -> Address | None:
    """Return the address a host is, however it is written; None = it is a name."""
    name = plain_host(host)
    try:
        address: Address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            # As connecting does it: 127.1, 0x7f000001 and 2130706433 are 127.0.0.1.
            return ipaddress.IPv4Address(socket.inet_aton(name))
        except OSError:
            return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_ours(address: Address) -> bool:
    """Whether this machine has an address: only then can it listen there."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
