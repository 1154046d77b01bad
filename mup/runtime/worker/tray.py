"""Queue between front and workers from which the next free worker takes requests by itself.

To hand over one request at a time, a front and a worker wake each other for every request, and that costs
more than a short request itself. So a front puts short requests that would have to wait on a tray, and a
worker that has ended a request looks there before it goes to sleep. What it takes it announces together with
the end of the request before, so that the front knows who has what.

The tray is a socket that keeps messages apart. To take one is one step, be it by a worker or by the front
itself: what the front takes back no worker has seen, and a request that is not there any more has a worker.
"""

from __future__ import annotations

import mmap
import socket
import struct

import msgspec

from mup.runtime.protocol.wire import Request

__all__ = ["AT_ONCE", "MANY", "ROOM", "SHORT", "Tray"]

SHORT = 0.0003
"""Seconds a request may take that is called short: waking a worker is not much quicker."""

MANY, AT_ONCE = 16, 8
"""Requests of a replica are short when so many more were than were not, of which each counts as so many."""

ROOM = 128
"""Requests that lie on a tray at most."""

_LARGEST = 16384
"""Bytes of a request that is put on a tray."""

_NUMBER = struct.Struct("<I")
_PREFIX = _NUMBER.size


class Tray:
    """Requests without a worker, the oldest first; to be made before the workers are."""

    def __init__(self) -> None:
        self._in, self._out = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._in.setblocking(False)
        self._out.setblocking(False)
        # Memory that all processes share: who finds nothing there is spared a system call.
        self._filled = mmap.mmap(-1, mmap.PAGESIZE)
        self._decode = msgspec.msgpack.Decoder(Request).decode

    def close(self) -> None:
        """Free everything; no worker is left."""
        self._in.close()
        self._out.close()
        self._filled.close()

    def fileno(self) -> int:
        """Return the descriptor workers need."""
        return self._out.fileno()

    def put(self, number: int, frame: bytes) -> bool:
        """In the front: put a request on it; return False if it does not fit.

        Args:
            number: By which a worker announces it; from 1, below 2**32.
            frame: The request as it travels.
        """
        if len(frame) > _LARGEST:
            return False
        try:
            # Its number takes the place of its size.
            self._in.send(_NUMBER.pack(number) + frame[_PREFIX:])
        except OSError:
            return False  # no room, or no memory
        self._filled[0] = 1
        return True

    def take_back(self) -> int:
        """In the front: take the oldest request away again; return its number, or 0 if none is left."""
        try:
            number: int = _NUMBER.unpack_from(self._out.recv(_PREFIX))[0]
        except BlockingIOError:
            return 0
        return number

    def emptied(self) -> None:
        """In the front: tell workers that nothing is left."""
        self._filled[0] = 0

    def take(self) -> tuple[int, Request | None]:
        """In a worker: take the oldest request; return its number, too, or 0 and None if there is none."""
        if not self._filled[0]:
            return 0, None
        try:
            data = self._out.recv(_LARGEST)
        except BlockingIOError:
            return 0, None
        return _NUMBER.unpack_from(data)[0], self._decode(data[_PREFIX:])
