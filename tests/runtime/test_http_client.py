"""The blocking HTTP client reads responses whole or in pieces, and notices malformed ones."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mup.errors import CommunicationError
from mup.runtime.client.reply import BrokenError, RawResponse, decode_body
from mup.runtime.client.request import RawRequest, TlsAddress, address_of
from mup.runtime.client.sockets import Connection, ConnectionPool

GET = RawRequest("GET", "/")


@contextmanager
def server(*answers: list[bytes]) -> Iterator[tuple[str, int]]:
    """A server that gives one connection each answer in turn, piece by piece, and then closes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            # The client may have enough before the answer ends.
            with connection, suppress(OSError):
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


@contextmanager
def accepted(family: socket.AddressFamily = socket.AF_INET) -> Iterator[tuple[Connection, socket.socket]]:
    """Both ends of a new connection."""
    with socket.socket(family) as listener:
        listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        listener.listen()
        connection = Connection(listener.getsockname()[:2], 1.0)
        peer, _ = listener.accept()
        peer.settimeout(2.0)
        with peer:
            try:
                yield connection, peer
            finally:
                connection.close()


def exchange(address: tuple[str, int], pool: ConnectionPool, seconds: float = 2.0) -> RawResponse:
    """Send a request and read the response."""
    connection = pool.take(address, 1.0)
    try:
        connection.send(GET, 1.0)
        response = connection.receive(time.monotonic() + seconds)
    except BaseException:
        connection.close()
        raise
    pool.give_back(connection, response)
    return response


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"
PLAIN = HEAD + b"hello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "body", "keep"),
    [
        pytest.param([PLAIN], b"hello", True, id="length"),
        pytest.param([bytes([b]) for b in PLAIN], b"hello", True, id="byte-by-byte"),
        pytest.param(
            [CHUNKED + b"3;x=1\r\nhel\r\n", b"2\r\nlo\r\n0\r\nT: 1\r\n\r\n"], b"hello", True, id="chunked"
        ),
        pytest.param([b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo"], b"hello", False, id="until-close"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
            b"hello",
            False,
            id="close",
        ),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN], b"hello", True, id="continue"),
        pytest.param([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True, id="no-content"),
        pytest.param([PLAIN + b"more"], b"hello", False, id="more-behind-it"),
        pytest.param([PLAIN + PLAIN], b"hello", False, id="two-responses"),
    ],
)
def test_responses(answer: list[bytes], body: bytes, keep: bool) -> None:
    """Every way to delimit a body is read to its end."""
    pool = ConnectionPool()
    with server(answer) as address:
        response = exchange(address, pool)
    assert (response.body, response.keep) == (body, keep)
    pool.close()


def test_the_response_to_head_has_no_body() -> None:
    """Whatever its headers say; the connection can be used again."""
    with server([HEAD], [PLAIN]) as address:
        connection = Connection(address, 1.0)
        connection.send(RawRequest("HEAD", "/"), 1.0)
        response = connection.receive(time.monotonic() + 30)
        assert (response.status, response.body, response.keep) == (200, b"", True)
        connection.send(GET, 1.0)
        assert connection.receive(time.monotonic() + 30).body == b"hello"
        connection.close()


def test_headers_of_a_response_have_lower_case_names() -> None:
    """A header is found however the server writes its name."""
    with server([PLAIN]) as address:
        pool = ConnectionPool()
        assert exchange(address, pool).headers == {"content-length": "5", "x-a": "b"}
        pool.close()


@pytest.mark.parametrize(
    ("answer", "says", "empty"),
    [
        pytest.param([], "closed the connection without a response", True, id="nothing"),
        pytest.param([HEAD + b"hel"], "3 bytes read, 2 more", False, id="cut-body"),
        pytest.param([HEAD[:-2]], "closed within the headers", False, id="cut-headers"),
        pytest.param([HEAD[:12]], "closed within the headers", False, id="cut-status"),
        pytest.param([CHUNKED + b"5\r\nhel"], "closed within a chunk", False, id="cut-chunk"),
        pytest.param([b"220 mail.example.org ESMTP\r\n\r\n"], "220 mail", False, id="other-protocol"),
        pytest.param([b"x" * 70_000], "Expected HTTP/", False, id="nonsense"),
        pytest.param([b"HTTP/1.1 200 " + b"x" * 70_000], "more than 65536 bytes", False, id="endless-line"),
        pytest.param([HEAD[:-2] + b"X: y\r\n" * 200], "more than 100 headers", False, id="endless-headers"),
        pytest.param([b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"], "Content-Length: -1", False, id="length"),
        pytest.param([HEAD.replace(b"5", b"9" * 15) + b"hello"], "5 bytes read", False, id="huge-length"),
        pytest.param([CHUNKED + b"zz\r\n"], "chunk size", False, id="chunk"),
        pytest.param([CHUNKED + b"-5\r\nhello"], "chunk size", False, id="negative-chunk"),
        pytest.param([b"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], "status 101", False, id="upgrade"),
        pytest.param([b"HTTP/1.1 103 Early Hints\r\n\r\n" + PLAIN], "unexpected status 103", False, id="hints"),
    ],
)  # fmt: skip
def test_broken_responses(answer: list[bytes], says: str, empty: bool) -> None:
    """What is no complete HTTP response is refused."""
    with server(answer) as address, pytest.raises(BrokenError, match=says) as caught:
        exchange(address, ConnectionPool())
    assert caught.value.empty is empty


def test_reset_before_the_response() -> None:
    """A connection reset without a byte of a response is told from one that broke later."""
    with accepted() as (connection, peer):
        connection.send(GET, 1.0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        with pytest.raises(BrokenError, match="reset") as caught:
            connection.receive(time.monotonic() + 1.0)
        assert caught.value.empty


@pytest.mark.parametrize("whole", [False, True], ids=["in-headers", "in-body"])
def test_dribbling_server_does_not_extend_the_deadline(whole: bool) -> None:
    """A server that sends a byte now and then is given up at the deadline all the same."""
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n" + (b"\r\n" if whole else b"X: ")
    with server([start, *[b"x"] * 60]) as address:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            exchange(address, ConnectionPool(), 0.1)
        assert 0.09 < time.monotonic() - started < 0.2


@pytest.mark.parametrize("come", [b"", PLAIN[:9], PLAIN[:30], HEAD, PLAIN[:-1]])
def test_slow_response_can_be_received_later(come: bytes) -> None:
    """However much of a response has come in time, the next attempt has all of it."""
    with accepted() as (connection, peer):
        connection.send(GET, 1.0)
        peer.sendall(come)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                connection.receive(time.monotonic() + 0.02)
            assert connection.readable() is bool(come)
        peer.sendall(PLAIN[len(come) :])
        response = connection.receive(time.monotonic() + 1.0)
        assert (response.body, response.keep) == (b"hello", True)
        assert not connection.readable()


def test_response_that_is_there_is_received_after_the_deadline() -> None:
    """Asking too late for an answer that has come in time gives the answer."""
    with accepted() as (connection, peer):
        connection.send(GET, 1.0)
        peer.sendall(PLAIN)
        assert connection.receive(time.monotonic() - 1.0).body == b"hello"


def test_large_response_through_several_timeouts() -> None:
    """A megabyte that comes in parts is put together in order."""
    body = bytes(range(256)) * 4096
    data = HEAD.replace(b"5", str(len(body)).encode()) + body
    with accepted() as (connection, peer):
        connection.send(GET, 1.0)
        more = threading.Semaphore(0)

        def answer() -> None:
            for start in range(0, len(data), 400_000):
                more.acquire()
                peer.sendall(data[start : start + 400_000])

        thread = threading.Thread(target=answer)
        thread.start()
        for _ in range(2):
            more.release()
            with pytest.raises(TimeoutError):
                connection.receive(time.monotonic() + 0.02)
        more.release()
        assert connection.receive(time.monotonic() + 30.0).body == body
        thread.join()


def test_connections_are_kept_and_stale_ones_replaced() -> None:
    """The second request uses the connection of the first; one the server has closed is not used again."""
    pool = ConnectionPool()
    with server([PLAIN], [PLAIN]) as address:
        for _ in range(2):
            assert exchange(address, pool).body == b"hello"
    time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        pool.take(address, 1.0)


def test_request_leaves_in_one_segment() -> None:
    """Head and body arrive together, with the length of the body and the address of the server."""
    with accepted() as (connection, peer):
        connection.send(RawRequest("POST", "/a?b=c", {"X-A": "b"}, b"body"), 1.0)
        head, _, body = peer.recv(1000).partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        assert (first, body) == ("POST /a?b=c HTTP/1.1", b"body")
        host, port = connection.address
        assert {f"Host: {host}:{port}", "Content-Length: 4", "X-A: b"} <= set(headers)
        if sys.platform == "linux":
            information = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
            assert struct.unpack_from("I", information, 152) == (1,)  # tcpi_data_segs_in


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_addresses_of_ipv6() -> None:
    """An IPv6 address is reached, and written in brackets."""
    with accepted(socket.AF_INET6) as (connection, peer):
        connection.send(GET, 1.0)
        assert f"Host: [::1]:{connection.address[1]}\r\n".encode() in peer.recv(1000)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(RawRequest("GET", "/", {"X": "a\r\nY: b"}), id="line-break"),
        pytest.param(RawRequest("GET", "/", {"X\n": "a"}), id="line-break-in-name"),
        pytest.param(RawRequest("GET", "/", {"X": "\udcff"}), id="no-letter"),
        pytest.param(RawRequest("GET", "/", {"X": "a\x7f"}), id="control"),
        pytest.param(RawRequest("GET", "/", {"X": None}), id="no-text"),  # type: ignore[dict-item]
        pytest.param(RawRequest("GET", "/ HTTP/1.1\r\nX: y"), id="path"),
    ],
)
def test_requests_cannot_smuggle(request_: RawRequest) -> None:
    """A header or path that would change the request is refused before anything is sent."""
    with accepted() as (connection, peer):
        with pytest.raises(CommunicationError, match="header or the path cannot be sent"):
            connection.send(request_, 1.0)
        connection.close()
        assert peer.recv(1000) == b""


@pytest.mark.parametrize(
    "url", ["ftp://x:1", "mongodb://x", "http://", "http://x:99999", "http://a b:1", "nonsense"]
)
def test_addresses(url: str) -> None:
    """Only http:// and https:// URLs are addresses; what TLS is spoken to is marked."""
    assert address_of("http://h:8/") == ("h", 8)
    assert address_of("http://[::1]:8") == ("::1", 8)
    assert address_of("https://h") == ("h", 443)
    assert isinstance(address_of("https://h"), TlsAddress)
    assert not isinstance(address_of("http://h"), TlsAddress)
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
