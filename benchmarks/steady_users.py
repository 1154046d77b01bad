"""Cheap load on a server: users on kept connections that ask again after each answer.

One thread over epoll, without an event loop's callbacks: some 5 us of Python and system calls per request,
where a generator of asyncio's protocols takes 20 and servers wait for it.
"""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass

__all__ = ["Burst", "steady_burst"]

CHUNK = 65536
PATIENCE = 10.0
"""Seconds the answers that are under way at the end may take."""


@dataclass(frozen=True)
class Burst:
    """So many requests were answered in so many seconds."""

    requests: int
    seconds: float


def steady_burst(request: bytes, port: int, seconds: float, connections: int) -> Burst:
    """Load a local server for some seconds, with one request at a time per connection.

    Every answer must be as long as the first one, and be a 200.

    Raises:
        RuntimeError: An answer is something else, or does not come.
    """
    socks = {}
    for _ in range(connections):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        socks[sock.fileno()] = sock
    try:
        size = _first_answer(next(iter(socks.values())), request)
        return _ask(request, size, socks, seconds)
    finally:
        for sock in socks.values():
            sock.close()


def _first_answer(sock: socket.socket, request: bytes) -> int:
    """Return how long the answer to a request is, head and body."""
    sock.settimeout(PATIENCE)
    sock.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(sock, data)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += _received(sock, data)
    return len(head) + 4 + length


def _received(sock: socket.socket, before: bytes) -> bytes:
    data = sock.recv(CHUNK)
    if not data:
        raise RuntimeError(f"the server has closed the connection after {before!r}")
    return data


def _ask(request: bytes, size: int, socks: dict[int, socket.socket], seconds: float) -> Burst:
    poll = select.epoll()
    for number, sock in socks.items():
        poll.register(number, select.EPOLLIN)
        sock.send(request)
        sock.setblocking(False)
    partial: dict[int, bytes] = {}
    answered, waiting = 0, len(socks)
    began = time.perf_counter()
    end = began + seconds
    with poll:
        while waiting:
            ready = poll.poll(PATIENCE)
            if not ready:
                raise RuntimeError(f"{waiting} requests have no answer after {PATIENCE:g} s")
            goes_on = time.perf_counter() < end
            for number, _ in ready:
                sock = socks[number]
                data = sock.recv(CHUNK)
                if len(data) != size:
                    data = partial.pop(number, b"") + data
                    if len(data) < size and data.startswith(b"HTTP/1.1 200"[: len(data)]) and data:
                        partial[number] = data
                        continue
                if len(data) != size or not data.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(f"the server answered {data!r}")
                answered += 1
                if goes_on:
                    sock.send(request)
                else:
                    waiting -= 1
    return Burst(answered, time.perf_counter() - began)
