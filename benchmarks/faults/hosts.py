"""Machines in a network, made of Linux network namespaces: with delays, and cables that can be pulled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from faults import cable

__all__ = ["CannotNetworkError", "Network"]


class CannotNetworkError(Exception):
    """This machine does not let us make networks."""


class Network:
    """Some machines on one switch; a context manager.

    A pulled cable is a silent one: packets disappear, without an error.

    Args:
        machines: How many.
        delay_ms: By how much every packet is late that reaches a machine; there and back takes twice as long.

    Raises:
        CannotNetworkError: Not root, no ``ip``, namespaces are not allowed, or no TAP devices for a delay.
    """

    def __init__(self, machines: int, delay_ms: float = 0.0) -> None:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise CannotNetworkError("network namespaces need root and Debian's iproute2")
        self._count = machines
        self._delay_ms = delay_ms
        self._switch = f"mup{os.getpid()}-switch"
        self._cables: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Network:
        try:
            _ip("netns", "add", self._switch)
            self._at_switch("link", "add", "bridge", "type", "bridge")
            self._at_switch("link", "set", "bridge", "up")
            for machine in range(self._count):
                _ip("netns", "add", self._name(machine))
            if self._delay_ms > 0:
                self._plug_slow_cables()
            else:
                self._plug_cables()
            for machine in range(self._count):
                self._set_up(machine)
        except OSError as error:
            self.__exit__()
            raise CannotNetworkError(f"a delay needs TAP devices: {error}") from error
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise CannotNetworkError(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._cables is not None:
            # It ends with its standard input.
            self._cables.communicate()
            self._cables = None
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

    def _plug_cables(self) -> None:
        for machine in range(self._count):
            ends = ["type", "veth", "peer", "name", "eth0", "netns", self._name(machine)]
            self._at_switch("link", "add", f"port{machine}", *ends)

    def _plug_slow_cables(self) -> None:
        descriptors: list[int] = []
        try:
            for machine in range(self._count):
                for home, name in ((self._name(machine), "eth0"), (self._switch, f"port{machine}")):
                    descriptor, tap = cable.new_tap()
                    descriptors.append(descriptor)
                    _ip("link", "set", tap, "netns", home, "name", name)
            pairs = [f"{a}:{b}" for a, b in zip(descriptors[::2], descriptors[1::2], strict=True)]
            self._cables = subprocess.Popen(
                [sys.executable, str(Path(cable.__file__)), str(self._delay_ms), *pairs],
                stdin=subprocess.PIPE,
                pass_fds=descriptors,
            )
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _set_up(self, machine: int) -> None:
        name = self._name(machine)
        self._at_switch("link", "set", f"port{machine}", "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{self.address(machine)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _ip("-n", name, "link", "set", link, "up")

    def _at_switch(self, *words: str) -> None:
        _ip("-n", self._switch, *words)

    def _name(self, machine: int) -> str:
        return f"mup{os.getpid()}-{machine}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)  # noqa: S607
