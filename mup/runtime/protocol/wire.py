"""Messages between a front and its workers: length-prefixed MessagePack frames on socket pairs."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

import msgspec

__all__ = [
    "CANCEL",
    "Answer",
    "BlockingChannel",
    "Done",
    "FrameBuffer",
    "FromWorker",
    "Line",
    "LogOff",
    "Ready",
    "Request",
    "Retried",
    "Sender",
    "cancel",
    "cancelled",
    "frame",
    "line",
]

_SIZE = struct.Struct("<I")
_TIMEVAL = struct.Struct("ll")
_PREFIX = _SIZE.size
_CHUNK = 16384
"""Bytes a worker reads at first. Memory for many more would cost every request time, and few are longer."""
_size_at = _SIZE.unpack_from
_pack_size = _SIZE.pack


class Request(msgspec.Struct, array_like=True):
    """A request for a worker.

    Attributes:
        request: Id of the execution.
        trace: Id of the client cycle behind it.
        key: Of the endpoint.
        query: Query string, undecoded.
        headers: As received, with names in lower case.
        body: As received.
        deadline: Seconds of the monotonic clock after which the answer is not waited for; None = never.
        sampled: Whether it is logged, with everything it causes.
        method: HTTP method.
        values: Of the parameters of the path, in its order.
        traceparent: The W3C header, if a valid one came; else "".
    """

    request: int
    trace: int
    key: str
    query: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    deadline: float | None
    sampled: bool
    method: str
    values: tuple[str, ...] = ()
    traceparent: str = ""


class Ready(msgspec.Struct, array_like=True, tag=0):
    """The worker has been set up (``error`` = "") or could not be."""

    error: str = ""


class Answer(msgspec.Struct, array_like=True, tag=1):
    """The response to the request in work.

    Attributes:
        status: From 200 to 599.
        headers: All but those that say how it is sent.
        body: The whole of it.
        cookies: Values of ``Set-Cookie``.
        done: The worker is free again, as if a `Done` came next.
        failed, taken, seconds: What that `Done` would say.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()
    done: bool = False
    failed: bool = False
    taken: int = 0
    seconds: float = 0.0


class Done(msgspec.Struct, array_like=True, tag=2):
    """The worker is free again.

    Attributes:
        failed: Whether the request ended with an error.
        taken: Number of the request it has taken from the tray and goes on with; 0 = none.
        seconds: What the request took it.
    """

    failed: bool
    taken: int = 0
    seconds: float = 0.0


class LogOff(msgspec.Struct, array_like=True, tag=3):
    """The worker's event log cannot be written, or can be again; the worker has said why.

    Attributes:
        off: Whether it cannot be written.
    """

    off: bool = True


class Retried(msgspec.Struct, array_like=True, tag=4):
    """A call to ``service`` failed and is made again; or would be, if the budget were not used up."""

    service: str
    reason: str
    made: bool


FromWorker = Ready | Answer | Done | LogOff | Retried

_encode = msgspec.msgpack.Encoder().encode


CANCEL = _SIZE.size
"""Bytes of a frame that tells an event loop to cancel a request of its line; no request is as small."""


def cancel(number: int) -> bytes:
    """Return the frame that cancels the n-th request of a line, if that is still in work."""
    return _pack_size(CANCEL) + _pack_size(number)


def cancelled(content: bytes) -> int:
    """Return the number in such a frame."""
    number: int = _size_at(content)[0]
    return number


def frame(message: msgspec.Struct) -> bytes:
    """Return a message as it travels."""
    data = _encode(message)
    return _pack_size(len(data)) + data


class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; return the content of every frame that is complete."""
        buffer = self._data
        if buffer:
            buffer += data
            frames, end = _cut(buffer)
            del buffer[:end]
            return frames
        size = len(data) - _PREFIX
        if size >= 0 and _size_at(data)[0] == size:
            return [data[_PREFIX:]]  # most of the time just one comes, and all of it
        frames, end = _cut(data)
        if end < len(data):
            buffer += data[end:]
        return frames


def _cut(data: bytes | bytearray) -> tuple[list[bytes], int]:
    """Return the content of the frames that are complete, and where the last one ends."""
    frames = []
    start, size = 0, len(data)
    while size - start >= _PREFIX:
        end = start + _PREFIX + _size_at(data, start)[0]
        if end > size:
            break
        frames.append(bytes(data[start + _PREFIX : end]))
        start = end
    return frames, start


class Sender:
    """The worker's way to the front.

    Args:
        write: Sends some frames.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._held: Answer | None = None

    def send(self, message: FromWorker) -> None:
        """Send one message."""
        held, self._held = self._held, None
        data = frame(message)
        self._write(data if held is None else frame(held) + data)

    def hold(self, answer: Answer) -> None:
        """Send an answer together with what comes next: the news that the worker is free."""
        self._held = answer

    def done(self, *, failed: bool, taken: int = 0, seconds: float = 0.0) -> None:
        """Say that the worker is free again; arguments as for `Done`."""
        held = self._held
        if held is None:
            self._write(frame(Done(failed, taken, seconds)))
        else:
            self._held = None
            held.done, held.failed, held.taken, held.seconds = True, failed, taken, seconds
            self._write(frame(held))


class Line(NamedTuple):
    """One end of what connects a front and a worker: a stream socket for each direction.

    With one for both, the kernel would wake a worker that sleeps in ``recv`` also when the front has read
    what the worker sent, to say that there is room again: once per request, for nothing.

    Attributes:
        requests: To the worker.
        answers: From the worker, with everything else it says. Its end is the end of the worker.
    """

    requests: socket.socket
    answers: socket.socket

    def close(self) -> None:
        """Close both."""
        self.requests.close()
        self.answers.close()

    def setblocking(self, blocking: bool) -> None:
        """Say whether operations wait."""
        self.requests.setblocking(blocking)
        self.answers.setblocking(blocking)

    def filenos(self) -> tuple[int, int]:
        """Return the descriptors."""
        return self.requests.fileno(), self.answers.fileno()


def line() -> tuple[Line, Line]:
    """Return the front's end and the worker's end of a new connection."""
    (requests, to_worker), (answers, from_worker) = socket.socketpair(), socket.socketpair()
    return Line(requests, answers), Line(to_worker, from_worker)


class BlockingChannel(Sender):
    """The worker's end of a line, if the worker waits for its requests.

    Args:
        line: Used by nothing else.
        idle_seconds: How long to wait for a request before there is time for something else.
    """

    def __init__(self, line: Line, idle_seconds: float) -> None:
        line.setblocking(True)
        super().__init__(line.answers.sendall)
        self._sock = line.requests
        # The kernel's own timeout: Python's would cost a system call per request.
        seconds, rest = divmod(idle_seconds, 1)
        timeout = _TIMEVAL.pack(int(seconds), int(rest * 1e6))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self._decode = msgspec.msgpack.Decoder(Request).decode

    def receive(self) -> Request | None:
        """Return the next request; None = the front has gone or wants the worker to end.

        Raises:
            BlockingIOError: None has come for a while.
        """
        # At most one request is under way, so nothing of a next frame can be in what is read here.
        data = self._sock.recv(_CHUNK)
        size = len(data) - _PREFIX
        if size >= 0 and _size_at(data)[0] == size:
            return self._decode(data[_PREFIX:])
        return self._rest(data) if data else None

    def _rest(self, begin: bytes) -> Request | None:
        """Return the request that begins like this, once all of it is here; None = the front has gone."""
        prefix, here = bytearray(_PREFIX), begin[_PREFIX:]
        prefix[: len(begin)] = begin[:_PREFIX]
        if not self._fill(prefix, len(begin)):
            return None
        content = bytearray(_size_at(prefix)[0])
        content[: len(here)] = here
        return self._decode(content) if self._fill(content, len(here)) else None

    def _fill(self, space: bytearray, here: int) -> bool:
        """Receive the rest of what is to be in a buffer; return False if the front has gone."""
        with memoryview(space) as view:
            while here < len(view):
                try:
                    count = self._sock.recv_into(view[here:])
                except BlockingIOError:
                    continue  # it comes, however slowly
                if not count:
                    return False
                here += count
        return True

    def wait(self) -> None:
        """Return when something has come, be it after hours."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.poll()
