"""What do a front and its workers say to each other? Length-prefixed MessagePack frames on a socket pair."""

from __future__ import annotations

import select
import socket
import struct

import msgspec

__all__ = [
    "Answer",
    "BlockingChannel",
    "Done",
    "FrameBuffer",
    "FromWorker",
    "LogOff",
    "Ready",
    "Request",
    "Retried",
    "frame",
]

_SIZE = struct.Struct("<I")
_TIMEVAL = struct.Struct("ll")
_PREFIX = _SIZE.size
_CHUNK = 65536
_size_at = _SIZE.unpack_from


class Request(msgspec.Struct, array_like=True):
    """A request for a worker.

    Attributes:
        request: Id of the execution.
        trace: Id of the client cycle behind it.
        key: Of the endpoint.
        query: Query string, undecoded.
        headers: As received, with names in lower case.
        body: As received.
        deadline: Seconds of the monotonic clock after which nobody waits for the answer; None = never.
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
    """The response to the request in work; ``cookies`` are values of ``Set-Cookie``."""

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()


class Done(msgspec.Struct, array_like=True, tag=2):
    """The worker is free again."""

    failed: bool


class LogOff(msgspec.Struct, array_like=True, tag=3):
    """The worker's event log cannot be written any more; it has said why."""


class Retried(msgspec.Struct, array_like=True, tag=4):
    """A call to ``service`` failed and is made again; or would be, if the budget were not used up."""

    service: str
    reason: str
    made: bool


FromWorker = Ready | Answer | Done | LogOff | Retried

_encoder = msgspec.msgpack.Encoder()


def frame(message: msgspec.Struct) -> bytes:
    """Return a message as it travels."""
    data = _encoder.encode(message)
    return _SIZE.pack(len(data)) + data


# Said once per request, and always the same.
_SERVED, _FAILED = frame(Done(failed=False)), frame(Done(failed=True))


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
        # Most of the time whole frames come, which need not be copied first.
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


class BlockingChannel:
    """The worker's end of the socket pair.

    Args:
        sock: Connected to the front; nobody else uses it.
        idle_seconds: How long to wait for a request before there is time for something else.
    """

    def __init__(self, sock: socket.socket, idle_seconds: int) -> None:
        self._sock = sock
        # The kernel's own timeout: Python's would cost a system call per request.
        sock.setblocking(True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(idle_seconds, 0))
        self._held = b""
        self._decode = msgspec.msgpack.Decoder(Request).decode

    def send(self, message: FromWorker) -> None:
        """Send one message."""
        self._send(frame(message))

    def hold(self, message: FromWorker) -> None:
        """Send one message together with the next one."""
        self._held += frame(message)

    def done(self, *, failed: bool) -> None:
        """Say that the worker is free again."""
        self._send(_FAILED if failed else _SERVED)

    def _send(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        self._sock.sendall(data)

    def receive(self) -> Request | None:
        """Return the next request; None = the front has gone or wants the worker to end.

        Raises:
            BlockingIOError: None has come for a while.
        """
        # At most one request is under way, so nothing of a next frame can be in what is read here.
        data = self._sock.recv(_CHUNK)
        if not data:
            return None
        if len(data) >= _PREFIX and len(data) == _PREFIX + _size_at(data)[0]:
            return self._decode(memoryview(data)[_PREFIX:])
        content = bytearray(data)
        size = _PREFIX
        while len(content) < size or (
            size == _PREFIX and (size := _PREFIX + _size_at(content)[0]) > len(content)
        ):
            try:
                data = self._sock.recv(_CHUNK)
            except BlockingIOError:
                continue  # the rest of a request comes, however slowly
            if not data:
                return None
            content += data
        return self._decode(memoryview(content)[_PREFIX:size])

    def wait(self) -> None:
        """Return when something has come, be it after hours."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.poll()
