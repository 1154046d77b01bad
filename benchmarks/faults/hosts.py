"""Machines in a network, made of Linux network namespaces: with delays, and cables that can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["CannotNetworkError", "Network"]


class CannotNetworkError(Exception):
    """This machine does not let us make networks."""


class Network:
    """Some machines on one switch; a context manager.

    A pulled cable is a silent one: packets disappear, nobody is told.

    Args:
        machines: How many.
        delay_ms: What the switch delays every packet it hands to a machine; a kernel may not know how.

    Attributes:
        delayed: Whether it does.

    Raises:
        CannotNetworkError: Not root, no ``ip``, or namespaces are not allowed.
    """

    def __init__(self, machines: int, delay_ms: float = 0.0) -> None:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise CannotNetworkError("network namespaces need root and Debian's iproute2")
        self._count = machines
        self._delay_ms = delay_ms
        self._switch = f"mup{os.getpid()}-switch"
        self.delayed = False

    def __enter__(self) -> Network:
        try:
            _ip("netns", "add", self._switch)
            self._at_switch("link", "add", "bridge", "type", "bridge")
            self._at_switch("link", "set", "bridge", "up")
            for machine in range(self._count):
                self._add(machine)
            self.delayed = self._delay_ms > 0 and all(self._delay(m) for m in range(self._count))
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise CannotNetworkError(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for name in [self._switch, *(self._name(m) for m in range(self._count))]:
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", name)

    def address(self, machine: int) -> str:
        """Return the address of a machine."""
        return f"10.213.0.{machine + 1}"

    def prefix(self, machine: int) -> Sequence[str]:
        """Return what to put before a command to run it on a machine."""
        return ["ip", "netns", "exec", self._name(machine)]

    def cut(self, machine: int) -> None:
        """Pull the cable of a machine."""
        self._at_switch("link", "set", f"port{machine}", "nomaster")

    def heal(self, machine: int) -> None:
        """Put the cable back."""
        self._at_switch("link", "set", f"port{machine}", "master", "bridge")

    def _add(self, machine: int) -> None:
        name, port = self._name(machine), f"port{machine}"
        _ip("netns", "add", name)
        self._at_switch("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        self._at_switch("link", "set", port, "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{self.address(machine)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _ip("-n", name, "link", "set", link, "up")

    def _delay(self, machine: int) -> bool:
        rule = ["qdisc", "add", "dev", f"port{machine}", "root", "netem", "delay", f"{self._delay_ms}ms"]
        done = subprocess.run(["tc", "-n", self._switch, *rule], check=False, capture_output=True)  # noqa: S607
        return done.returncode == 0

    def _at_switch(self, *words: str) -> None:
        _ip("-n", self._switch, *words)

    def _name(self, machine: int) -> str:
        return f"mup{os.getpid()}-{machine}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)  # noqa: S607
