"""Cables that take their time: ``python cable.py MILLISECONDS MACHINE:SWITCH...``.

Each pair are descriptors of two TAP devices. What leaves the machine goes to the switch at once, what the
switch hands to the machine arrives later: a round trip between two machines takes twice the delay. Every
packet waits, those that open a connection and those that are sent again, too. Linux has ``netem`` for this,
but not every kernel is built with it.

On its own, so that nothing else keeps packets waiting. Ends with its standard input.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque
from contextlib import suppress

__all__ = ["new_tap"]

_SET_INTERFACE = 0x400454CA
"""TUNSETIFF of linux/if_tun.h, as are the flags."""
_TAP, _NO_PACKET_INFO = 0x0002, 0x1000
_FRAME = 65536


def new_tap() -> tuple[int, str]:
    """Return descriptor and name of a new TAP device, which lives as long as the descriptor.

    Raises:
        OSError: The kernel has none, or does not let us.
    """
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        wanted = struct.pack("16sH22x", b"muptap%d", _TAP | _NO_PACKET_INFO)
        named = fcntl.ioctl(descriptor, _SET_INTERFACE, wanted)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, named[:16].rstrip(b"\0").decode()


def main(words: list[str]) -> None:
    """Carry frames until standard input ends."""
    delay = float(words[0]) / 1000
    pairs = [tuple(map(int, pair.split(":"))) for pair in words[1:]]
    at_once = dict(pairs)
    later = {switch: machine for machine, switch in pairs}
    # Invariant: in the order in which they are due, because all wait equally long.
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([0, *at_once, *later], [], [], wait)
        if 0 in ready:
            return
        now = time.monotonic()
        for source in ready:
            with suppress(BlockingIOError):
                frame = os.read(source, _FRAME)
                if source in at_once:
                    _carry(at_once[source], frame)
                else:
                    under_way.append((now + delay, later[source], frame))
        while under_way and under_way[0][0] <= now:
            _, target, frame = under_way.popleft()
            _carry(target, frame)


def _carry(target: int, frame: bytes) -> None:
    # A device that is not up takes nothing, and a full one loses what comes: so do cables.
    with suppress(OSError):
        os.write(target, frame)


if __name__ == "__main__":
    main(sys.argv[1:])
