"""Does the blocking HTTP client read what servers send, whole or in pieces, and notice what is wrong?"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mup.errors import CommunicationError
from mup.runtime.calls import decode_body
from mup.runtime.http_client import BrokenError, ConnectionPool, RawResponse, address_of, build_request


@contextmanager
def server(*answers: list[bytes]) -> Iterator[tuple[str, int]]:
    """A server that gives one connection each answer in turn, piece by piece, and then closes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for pieces in answers:
                    request = b""
                    while not request.endswith(b"\r\n\r\n"):
                        request += connection.recv(1000)
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(0.005)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join()


def exchange(address: tuple[str, int], pool: ConnectionPool, seconds: float = 2.0) -> RawResponse:
    """Send a request and read the response."""
    connection = pool.take(address, 1.0)
    try:
        connection.send(build_request("GET", "/", "x", {}, None), 1.0)
        response = connection.receive(time.monotonic() + seconds)
    except BaseException:
        connection.close()
        raise
    pool.give_back(connection, response)
    return response


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello"


@pytest.mark.parametrize(
    ("answer", "body", "keep"),
    [
        pytest.param([PLAIN], b"hello", True, id="length"),
        pytest.param([bytes([b]) for b in PLAIN], b"hello", True, id="byte-by-byte"),
        pytest.param(
            [
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\nhel\r\n",
                b"2\r\nlo\r\n0\r\nT: 1\r\n\r\n",
            ],
            b"hello",
            True,
            id="chunked",
        ),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo"], b"hello", False, id="until-close"),
        pytest.param([b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"], b"hello", False, id="http-1.0"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
            b"hello",
            False,
            id="close",
        ),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN], b"hello", True, id="continue"),
        pytest.param([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True, id="no-content"),
    ],
)
def test_responses(answer: list[bytes], body: bytes, keep: bool) -> None:
    """Every way to delimit a body is read to its end."""
    pool = ConnectionPool()
    with server(answer) as address:
        response = exchange(address, pool)
    assert (response.body, response.keep) == (body, keep)
    pool.close()


@pytest.mark.parametrize(
    ("answer", "says", "empty"),
    [
        pytest.param([], "closed before the response", True, id="nothing"),
        pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"], "closed", False, id="cut"),
        pytest.param([b"220 mail.example.org ESMTP\r\n\r\n"], "not HTTP", False, id="other-protocol"),
        pytest.param([b"x" * 70_000], "not HTTP", False, id="endless-head"),
        pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"], "Content-Length of '-1'", False, id="length"),
        pytest.param([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"], "chunk of length", False, id="chunk"),
    ],
)  # fmt: skip
def test_broken_responses(answer: list[bytes], says: str, empty: bool) -> None:
    """What is no complete HTTP response is refused."""
    with server(answer) as address, pytest.raises(BrokenError, match=says) as caught:
        exchange(address, ConnectionPool())
    assert caught.value.empty is empty


def test_slow_response_can_be_received_later() -> None:
    """A response that has not begun in time is not lost."""
    with server([b"HTTP/1.1 ", b"200 OK\r\nContent-Len", b"gth: 0\r\n\r\n"]) as address:
        pool = ConnectionPool()
        connection = pool.take(address, 1.0)
        connection.send(build_request("GET", "/", "x", {}, None), 1.0)
        with pytest.raises(TimeoutError):
            connection.receive(time.monotonic() + 0.002)
        assert connection.receive(time.monotonic() + 1.0).status == 200
        connection.close()


def test_connections_are_kept_and_stale_ones_replaced() -> None:
    """The second request uses the connection of the first; one the server has closed is not used again."""
    pool = ConnectionPool()
    with server([PLAIN], [PLAIN]) as address:
        for _ in range(2):
            assert exchange(address, pool).body == b"hello"
    time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        pool.take(address, 1.0)


@pytest.mark.parametrize("headers", [{"X": "a\r\nY: b"}, {"X\n": "a"}, {"X": "\u20ac"}])
def test_headers_cannot_smuggle(headers: dict[str, str]) -> None:
    """A header that would change the request is refused."""
    with pytest.raises(CommunicationError, match="header"):
        build_request("GET", "/", "x", headers, None)


@pytest.mark.parametrize("url", ["https://x:1", "mongodb://x", "http://", "http://x:99999", "nonsense"])
def test_addresses(url: str) -> None:
    """Only http:// URLs are addresses."""
    assert address_of("http://h:8/") == ("h", 8)
    with pytest.raises(CommunicationError, match="address"):
        address_of(url)


def test_bodies_are_decoded_by_content_type() -> None:
    """JSON, text of any charset, and bytes; nonsense raises ValueError."""
    assert decode_body(b"[1]", "application/json; charset=utf-8") == [1]
    assert decode_body(b'{"a":1}', "application/problem+json") == {"a": 1}
    assert decode_body(b"", "application/json") is None
    assert decode_body(b"h\xe4user", "text/plain; charset=latin-1") == "häuser"
    assert decode_body(b"\x00", "") == b"\x00"
    for body, kind in (
        (b"{", "application/json"),
        (b"\xff", "text/plain"),
        (b"x", "text/plain; charset=no-such"),
    ):
        with pytest.raises(ValueError, match=r"JSON|codec|charset|truncated"):
            decode_body(body, kind)
