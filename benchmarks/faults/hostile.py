"""Clients that are slow, rude, or do not speak HTTP, on plain sockets."""

from __future__ import annotations

import contextlib
import random
import re
import select
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

__all__ = ["ALLOWED", "Crowd", "announce", "connect", "exchange", "fuzz", "mutations", "status_of", "upload"]

PATIENCE = 60.0
"""Seconds after which a server that does nothing hangs; much more than a disturbed machine needs."""

ALLOWED = {0, 100, 200, 400, 404, 405, 408, 411, 413, 414, 415, 417, 426, 431, 501, 505}
"""What may be said to a request that is wrong by chance; 0 = the connection is closed without a word."""

ECHO = b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nContent-Length: 12\r\n\r\nhello, world"
LAST = b"GET /echo/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
TEMPLATES = (
    ECHO,
    b"GET /echo/?a=1&b=%20x HTTP/1.1\r\nHost: shop\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n",
    b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /echo/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    (
        b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 7\r\n"
        b'X-Mup-Request: 00ff\r\nX-Mup-Trace: 12\r\nX-Mup-Deadline: 5000\r\nX-Mup-Sampled: 1\r\n\r\n{"a":1}'
    ),
    (
        b"GET /echo/ HTTP/1.1\r\nHost: shop\r\n"
        b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
    ),
    (
        b"GET /echo/ HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n"
    ),
    (
        b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b'Content-Length: 63\r\n\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nvalue\r\n--b--\r\n'
    ),
    b"OPTIONS * HTTP/1.1\r\nHost: shop\r\n\r\n",
    b"CONNECT shop:443 HTTP/1.1\r\nHost: shop:443\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"GET /healthz HTTP/1.1\r\nHost: shop\r\n\r\nGET /mup/status HTTP/1.1\r\nHost: shop\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
RUDE = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b"\xff",
    b"-1",
    b"99999999999999999999",
    b"0x10",
    b"1e9",
    b"nan",
)
_STATUS = re.compile(rb"(?:HTTP/1\.1 100 Continue\r\n\r\n)*HTTP/\d\.\d (\d\d\d)")


def mutations(seed: int, count: int, path: bytes = b"/echo/") -> Iterator[bytes]:
    """Yield requests that were changed at random in one to four places."""
    chance = random.Random(seed)
    for _ in range(count):
        data = chance.choice(TEMPLATES).replace(b"/echo/", path)
        for _ in range(chance.randint(1, 4)):
            data = chance.choice(_CHANGES)(data, chance)
        yield data


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) or 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(RUDE) * chance.choice((1, 1, 2, 300)) + data[at:]


def _cut(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:last] * chance.choice((1, 2, 50)) + data[last:]


def _splice(data: bytes, chance: random.Random) -> bytes:
    other = chance.choice(TEMPLATES)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other)) :]


def _number(data: bytes, chance: random.Random) -> bytes:
    """Replace one number by another."""
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data
    one = chance.choice(found)
    return data[: one.start()] + chance.choice(RUDE) + data[one.end() :]


def _lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\r\n")
    chance.shuffle(lines)
    return b"\r\n".join(lines)


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _flip, _insert, _insert),
    *(_cut, _repeat, _splice, _number, _lines),
)


def connect(url: str) -> socket.socket:
    """Return a connection to a server."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)


def exchange(url: str, data: bytes, *, moment: float = 0.0) -> bytes:
    """Send something, close the sending half, and return everything that comes back until the end.

    Args:
        url: Of the server.
        data: What to send.
        moment: Seconds the server gets to answer before the sending half is closed.

    Raises:
        TimeoutError: The connection stays open.
    """
    with connect(url) as client:
        answer = b""
        try:
            client.sendall(data)
            select.select([client], [], [], moment)
            client.shutdown(socket.SHUT_WR)
            while received := client.recv(65536):
                answer += received
        except TimeoutError:
            raise
        except OSError:
            pass  # closed by the server: what it said before counts
        return answer


def status_of(answer: bytes) -> int:
    """Return the status of the first answer; 0 = there is no answer, -1 = it is no HTTP.

    What says that an answer will come is none, unless nothing follows.
    """
    if not answer:
        return 0
    found = _STATUS.match(answer)
    return int(found[1]) if found else -1


def fuzz(
    url: str, seed: int, count: int, path: bytes = b"/echo/", token: str = ""
) -> tuple[Counter[int], list[bytes]]:
    """Send changed requests; return the statuses, and the requests that were answered wrongly.

    Those to a server with a token have it, its name and a content type, unless chance has changed the head.
    """
    head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n".encode()
    allowed = ALLOWED | {401, 403, 415} if token else ALLOWED
    statuses: Counter[int] = Counter()
    wrong = []
    for changed in mutations(seed, count, path):
        data = changed.replace(b"Host: shop\r\n", head) if token else changed
        # Behind it a proper request: the server ends the connection, unless it waits for more of the first.
        status = status_of(exchange(url, data + LAST, moment=0.02))
        statuses[status] += 1
        if status not in allowed:
            wrong.append(data)
    return statuses, wrong


def announce(url: str, size: int) -> bytes:
    """Announce a body, send nothing of it, and return what is said to that."""
    with connect(url) as client:
        client.sendall(b"POST /echo/ HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n" % size)
        return client.recv(65536)


def upload(url: str, size: int, *, chunked: bool) -> tuple[bytes, int]:
    """Send a body as long as the server takes it; return what it says, and how many bytes it took."""
    piece = b"x" * 65536
    head = b"POST /echo/ HTTP/1.1\r\nHost: shop\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Content-Length: %d\r\n\r\n" % size
    frame = b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece
    sent, answer = 0, b""
    with connect(url) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(head)
            while sent < size:
                client.sendall(frame)
                sent += len(piece)
        with contextlib.suppress(ConnectionError):
            answer = client.recv(65536)
    return answer, sent


class Crowd:
    """Many connections at once; a context manager that closes them.

    Args:
        url: Where they go.
        count: How many.
    """

    def __init__(self, url: str, count: int) -> None:
        self._stack = contextlib.ExitStack()
        self.clients: list[socket.socket] = []
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                self.clients.append(stack.enter_context(connect(url)))
            self._stack = stack.pop_all()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, data: bytes) -> int:
        """Let each of them send the same; return how many still can."""
        able = 0
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.sendall(data)
                able += 1
        return able

    def statuses(self) -> Counter[int]:
        """Count what each of them is answered."""
        found: Counter[int] = Counter()
        for client in self.clients:
            try:
                found[status_of(client.recv(65536))] += 1
            except ConnectionError:
                found[0] += 1
        return found
