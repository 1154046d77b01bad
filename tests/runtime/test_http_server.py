"""The HTTP server reads requests in any pieces, and answers all of them in order."""

from __future__ import annotations

import asyncio
import http.client
import random
import re
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from http_servers import PATIENCE, PIECE, PIECES, Running, read_all, replies, serving

from mup.runtime.process.loops import new_event_loop

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /b?c=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = (
    b"PUT /%C3%BC HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\nX-Empty:\r\nX-A:  b \r\n\r\n"
    b"3;ext=1\r\nbod\r\n1\r\ny\r\n0\r\nX-Trailer: t\r\n\r\n"
)


@pytest.fixture(scope="module", params=[new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A server with small limits on bodies, on either event loop."""
    new_loop: Callable[[], asyncio.AbstractEventLoop] = request.param
    with serving(new_loop=new_loop, max_body=100_000) as running:
        running.thorough = new_loop is new_event_loop
        yield running


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        pytest.param(GET, ["GET", "/a", "", "", [["host", "x"]]], id="get"),
        pytest.param(b"\r\n\r\n" + GET, ["GET", "/a", "", "", [["host", "x"]]], id="empty-lines-first"),
        pytest.param(
            POST, ["POST", "/b", "c=1", "body", [["host", "x"], ["content-length", "4"]]], id="post"
        ),
        pytest.param(
            CHUNKED,
            [
                "PUT",
                "/%C3%BC",
                "",
                "body",
                [["host", "x"], ["transfer-encoding", "chunked"], ["x-empty", ""], ["x-a", "b"]],
            ],
            id="chunked",
        ),
        pytest.param(
            b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", ["OPTIONS", "*", "", "", [["host", "x"]]], id="asterisk"
        ),
        pytest.param(
            b"GET http://y:1/a?b HTTP/1.1\r\nHost: x\r\n\r\n",
            ["GET", "/a", "b", "", [["host", "x"]]],
            id="absolute",
        ),
        pytest.param(
            b"GET http://y?b HTTP/1.1\r\nHost: x\r\n\r\n",
            ["GET", "/", "b", "", [["host", "x"]]],
            id="absolute-without-path",
        ),
        pytest.param(
            "GET /a HTTP/1.1\r\nHost: x\r\nX: ä\r\n\r\n".encode(),
            ["GET", "/a", "", "", [["host", "x"], ["x", "Ã¤"]]],
            id="utf-8",
        ),
        pytest.param(b"GET /a HTTP/1.0\r\n\r\n", ["GET", "/a", "", "", []], id="http-1.0"),
        pytest.param(
            b"GET /a?b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
            ["GET", "/a", "b", "", [["host", "x"], ["connection", "Upgrade"]]],
            id="upgrade",
        ),
    ],
)
def test_requests_are_read(server: Running, data: bytes, seen: list[object]) -> None:
    """What the application sees is what was sent, also when it comes in two pieces, cut anywhere."""
    (reply,) = server.exchange(data)
    assert (reply.status, reply.seen) == (200, seen)
    for cut in range(1, len(data), 1 if server.thorough else 10):
        (reply,) = server.feed(data[:cut], data[cut:])
        assert (cut, reply.status, reply.seen) == (cut, 200, seen)


def test_byte_by_byte(server: Running) -> None:
    """Several requests in pieces of one byte."""
    data = GET + CHUNKED + POST + GET
    assert [r.seen[0] for r in server.feed(*(data[i : i + 1] for i in range(len(data))))] == [
        "GET",
        "PUT",
        "POST",
        "GET",
    ]


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        pytest.param(b"hello\r\n\r\n", 400, "bad_http", id="no-http"),
        pytest.param(b"GET /a HTTP/2.0\r\nHost: x\r\n\r\n", 400, "bad_http", id="version"),
        pytest.param("GET /ü HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 400, "bad_http", id="utf-8"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_http", id="http-2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "bad_http", id="tls"),
        pytest.param(b"GET /a HTTP/1.1\r\n\r\n", 400, "bad_http", id="no-host"),
        pytest.param(b"GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, "bad_http", id="two-hosts"),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_http", id="path-no-text"),
        pytest.param(b"GET /a\0 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_http", id="zero-in-path"),
        pytest.param(b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", 400, "bad_http", id="zero-in-header"),
        pytest.param(b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400, "bad_http", id="cr-in-header"),
        pytest.param(
            b"GET /a HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400, "bad_http", id="blank-before-colon"
        ),
        pytest.param(b"GET /a HTTP/1.1\r\nHost: x\r\n b: c\r\n\r\n", 400, "bad_http", id="folded"),
        pytest.param(POST.replace(b": 4", b": -4"), 400, "bad_http", id="negative-length"),
        pytest.param(POST.replace(b": 4", b": 4, 4"), 400, "bad_http", id="list-of-lengths"),
        pytest.param(POST.replace(b": 4", b": 4\r\nContent-Length: 5"), 400, "bad_http", id="two-lengths"),
        pytest.param(POST.replace(b": 4", b": " + b"9" * 30), 400, "bad_http", id="endless-length"),
        pytest.param(
            POST.replace(b": 4", b": 4\r\nTransfer-Encoding: chunked"), 400, "bad_http", id="two-framings"
        ),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip"), 400, "bad_http", id="other-encoding"),
        pytest.param(CHUNKED.replace(b"chunked", b"gzip, chunked"), 400, "bad_http", id="two-encodings"),
        *(
            pytest.param(
                CHUNKED.replace(b"Transfer-Encoding: chunked", b"Transfer-Encoding: %s" % codings),
                400,
                "bad_http",
                id=f"coding-{number}",
            )
            for number, codings in enumerate(
                (
                    b"gzip\r\nTransfer-Encoding: chunked",
                    b"chunked\r\nTransfer-Encoding: chunked",
                    b"identity\r\ntransfer-encoding: chunked",
                    b"chunked\r\nTransfer-Encoding:",
                    b"\r\nTransfer-Encoding: chunked",
                    b"chunked, chunked",
                    b"identity",
                    b"",
                )
            )
        ),
        pytest.param(CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0"), 400, "bad_http", id="chunks-in-http-1.0"),
        pytest.param(
            CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0\r\nConnection: keep-alive"),
            400,
            "bad_http",
            id="chunks-in-kept-http-1.0",
        ),
        pytest.param(POST.replace(b"Host", b"Expect: junk\r\nHost"), 417, "bad_http", id="expects-junk"),
        pytest.param(
            GET.replace(b"Host", b"Expect: 100-continue\r\nExpect: more\r\nHost"),
            417,
            "bad_http",
            id="expects-more",
        ),
        pytest.param(CHUNKED.replace(b"3;", b"g;"), 400, "bad_http", id="chunk-size"),
        pytest.param(CHUNKED.replace(b"bod\r\n", b"body\r\n"), 400, "bad_http", id="chunk-too-long"),
        pytest.param(b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_http", id="connect"),
        pytest.param(b"GET /a HTT", 400, "bad_http", id="ends-in-head"),
        pytest.param(POST[:-1], 400, "bad_http", id="ends-in-body"),
        pytest.param(
            b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, "header_too_large", id="long-path"
        ),
        pytest.param(
            GET[:-2] + b"X: " + b"a" * 9000 + b"\r\n\r\n", 431, "header_too_large", id="long-header"
        ),
        pytest.param(GET[:-2] + b"X: 1\r\n" * 128 + b"\r\n", 431, "header_too_large", id="many-headers"),
        pytest.param(GET[:-2] + b"X: " + b"a" * 1_000_000, 431, "header_too_large", id="endless-header"),
        pytest.param(
            GET[:-2] + b"".join(b"X%d: %s\r\n" % (i, b"a" * 8000) for i in range(9)) + b"\r\n",
            431,
            "header_too_large",
            id="large-head",
        ),
        pytest.param(CHUNKED[:-2] + b"X: " + b"a" * 1_000_000, 431, "header_too_large", id="endless-trailer"),
        pytest.param(POST.replace(b": 4", b": 100001"), 413, "body_too_large", id="long-body"),
        pytest.param(
            CHUNKED.replace(b"3;ext=1\r\nbod", b"186a1\r\n" + b"a" * 100_001),
            413,
            "body_too_large",
            id="chunks",
        ),
    ],
)
def test_what_cannot_be_read(server: Running, data: bytes, status: int, kind: str) -> None:
    """It is answered once, after what was good before it; nothing behind it is taken for a request."""
    server.app.refused.clear()
    good, bad = server.exchange(GET + data)
    assert (good.status, bad.status) == (200, status)
    assert bad.headers["connection"] == "close"
    assert server.app.refused == [kind]


def test_refusals_come_early(server: Running) -> None:
    """A body that is too long, or not wanted, is refused before it is sent; the answer gets through."""
    for head, status in (
        (b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n", 413),
        (b"POST /no-body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n", 200),
    ):
        for expect in (b"", b"Expect: 100-continue\r\n"):
            with server.connect() as sock:
                sock.sendall(head + expect + b"\r\n")
                (reply,) = replies(read_all(sock))
                assert (reply.status, reply.headers["connection"]) == (status, "close")


def test_a_client_that_sends_everything_first_reads_the_refusal(server: Running) -> None:
    """The connection is not reset under a client that still sends."""
    connection = http.client.HTTPConnection(*server.address, timeout=PATIENCE)
    connection.request("POST", "/a", b"x" * 30_000_000)
    response = connection.getresponse()
    assert (response.status, response.read()) == (413, b"the body has more than 100000 bytes")
    connection.close()


@pytest.mark.parametrize("rest", [2, 1000, 9000])
def test_a_large_head_in_two_pieces(server: Running, rest: int) -> None:
    """It is refused wherever it is cut."""
    data = GET[:-2] + b"".join(b"X%d: %s\r\n" % (i, b"a" * 8000) for i in range(9)) + b"\r\n"
    (bad,) = server.feed(data[:-rest], data[-rest:])
    assert bad.status == 431


def test_expect_continue(server: Running) -> None:
    """The client is told to go on when it is its turn."""
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.sendall(POST[:-6] + b"Expect: 100-Continue\r\n\r\n")
        server.release()
        received = b""
        while not received.endswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
            data = sock.recv(65536)
            assert data
            received += data
        assert received.startswith(b"HTTP/1.1 200 OK\r\nX-Held: yes\r\n")
        sock.sendall(b"body")
        sock.shutdown(socket.SHUT_WR)
        (reply,) = replies(read_all(sock))
        assert reply.seen[3] == "body"


def test_answers_come_in_the_order_of_requests(server: Running) -> None:
    """In the order in which they are ready; and many at once do not nest."""
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n" + GET + POST)
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n" + GET * 3000)
        sock.shutdown(socket.SHUT_WR)
        for _ in range(2):
            server.release()
        answers = replies(read_all(sock))
    assert [a.body[:9] for a in answers[:5]] == [
        b"released",
        b'["GET", "',
        b'["POST", ',
        b"released",
        b'["GET", "',
    ]
    assert len(answers) == 3004


def test_a_client_that_sends_ahead_has_to_wait(server: Running) -> None:
    """While a request is in work, little is read of what follows it; then all of it is."""
    body = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n" + b"x" * 90_000
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        server.wait_for(lambda: server.app.held)
        rest, sent = memoryview(body * 1000), 0
        while sent < len(rest) and select.select([], [sock], [], 0.3)[1]:
            sent += sock.send(rest[sent : sent + 90_000])
        assert sent < len(rest)
        server.release()
        more = -sent % len(body)
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(sock.sendall, rest[sent : sent + more])
            sending.add_done_callback(lambda _: sock.shutdown(socket.SHUT_WR))
            answers = replies(read_all(sock))
    assert len(answers) == 1 + (sent + more) // len(body)
    assert all(answer.status == 200 for answer in answers)


@pytest.mark.parametrize("status", [200, 204, 205, 304, 404, 599])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_bodies_are_sent_where_http_has_them(server: Running, method: str, status: int) -> None:
    """Not for HEAD, 204 and 304; the length of a body is always right, and of HEAD's the one GET has."""
    with server.connect() as sock:
        sock.sendall(f"{method} /status/{status} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = read_all(sock).partition(b"\r\n\r\n")
    (reply,) = replies(head.replace(b"Content-Length: 4", b"Content-Length: 0") + b"\r\n\r\n")
    assert (reply.status, reply.headers["set-cookie"]) == (status, "a=1, b=2")
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", reply.headers["date"])
    assert body == (b"body" if method == "GET" and status not in (204, 304) else b"")
    assert (b"Content-Length: 4" in head) == (status not in (204, 304))


@pytest.mark.parametrize(
    ("version", "connection", "kept", "said"),
    [
        ("1.1", "", True, None),
        ("1.1", "keep-alive", True, "keep-alive"),
        ("1.1", "close", False, "close"),
        ("1.0", "", False, "close"),
        ("1.0", "keep-alive", True, "keep-alive"),
    ],
)
def test_connections_are_kept(
    server: Running, version: str, connection: str, kept: bool, said: str | None
) -> None:
    """As the client wants, and it is told; nothing is answered behind a last request."""
    line = f"Connection: {connection}\r\n" if connection else ""
    request = f"GET /a HTTP/{version}\r\nHost: x\r\n{line}\r\n".encode()
    answers = server.exchange(request + request)
    assert len(answers) == 1 + kept
    assert answers[0].headers.get("connection") == said


def test_half_closed_clients_are_answered(server: Running) -> None:
    """A client that has said all it has to say gets its answer; then the connection ends."""
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        sock.shutdown(socket.SHUT_WR)
        server.release()
        assert [reply.status for reply in replies(read_all(sock))] == [200, 200]


def test_upgrades_are_ignored(server: Running) -> None:
    """A body that comes with the wish for another protocol is read; so are requests behind it."""
    wish = POST.replace(b"Host", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHost")
    assert [(r.status, r.seen[3]) for r in server.exchange(wish * 500 + GET)] == [(200, "body")] * 500 + [
        (200, "")
    ]


def test_nothing_is_injected(server: Running) -> None:
    """A header with a line break in it is not sent; the client gets an error."""
    (reply,) = server.exchange(b"GET /inject HTTP/1.1\r\nHost: x\r\n\r\n")
    assert reply.status == 500
    assert "x-c" not in reply.headers


def test_a_mistake_of_the_application_is_500(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    """The connection is closed, the server lives on."""
    (reply,) = server.exchange(b"GET /boom HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    assert (reply.status, reply.headers["connection"]) == (500, "close")
    assert "no such luck" in caplog.text


def test_large_answers_wait_for_the_client(server: Running) -> None:
    """Little of a stream is made while the client reads nothing; all of it arrives."""
    server.app.sent = 0
    with server.connect() as sock:
        sock.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        server.wait_for(lambda: any(connection._full for connection in server.server.connections))
        assert server.app.sent < PIECES
        sock.shutdown(socket.SHUT_WR)
        first, second = replies(read_all(sock))
    assert first.body == PIECE * PIECES
    assert second.seen[1] == "/a"


def test_a_client_that_goes_ends_a_stream(server: Running) -> None:
    """The application is told."""
    server.app.broken.clear()
    with server.connect() as sock:
        sock.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        server.wait_for(lambda: any(connection._full for connection in server.server.connections))
    assert server.app.broken.wait(PATIENCE)


def test_a_client_that_goes_is_not_answered(server: Running) -> None:
    """Its request goes on; the answer is dropped."""
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n")
        server.wait_for(lambda: server.app.held)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close with a reset
    server.wait_for(lambda: not server.server.connections)
    server.release()


@pytest.mark.parametrize("behind", [b"", GET, POST[:-1]], ids=["alone", "with-another", "with-half-a-one"])
@pytest.mark.parametrize("linger", [b"\0\0\0\0\0\0\0\0", b"\1\0\0\0\0\0\0\0"], ids=["end", "reset"])
def test_a_client_that_goes_is_noticed(server: Running, linger: bytes, behind: bytes) -> None:
    """Within a second or two, if the application wants to know, whatever else the client has sent."""
    server.app.gone = 0
    with server.connect() as sock:
        sock.sendall(b"GET /queued HTTP/1.1\r\nHost: x\r\n\r\n" + behind)
        server.wait_for(lambda: server.app.held)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    server.wait_for(lambda: server.app.gone)
    server.wait_for(lambda: not server.server.connections)
    assert server.app.held == []


def test_a_client_that_only_listens_is_answered(server: Running) -> None:
    """Whether it is still there is asked in a way it ignores."""
    server.app.gone = 0
    with server.connect() as sock:
        sock.sendall(b"GET /queued HTTP/1.1\r\nHost: x\r\n\r\n")
        server.wait_for(lambda: server.app.held)
        sock.shutdown(socket.SHUT_WR)
        server.wait_for(lambda: any(connection._ended for connection in server.server.connections))
        (connection,) = server.server.connections
        server.do(partial(connection.sweep, server.server.loop.time()))
        server.release()
        answer = read_all(sock)
    asked = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.startswith(asked)
    assert [reply.status for reply in replies(answer.removeprefix(asked))] == [200]
    assert server.app.gone == 0


def test_a_client_of_http_1_0_that_only_listens_has_gone(server: Running) -> None:
    """If no worker has it yet: it cannot be asked, and proxies are such clients."""
    server.app.gone = 0
    with server.connect() as sock:
        sock.sendall(b"GET /queued HTTP/1.0\r\n\r\n")
        server.wait_for(lambda: server.app.held)
        sock.shutdown(socket.SHUT_WR)
        server.wait_for(lambda: server.app.gone)
    with server.connect() as sock:
        sock.sendall(b"GET /held HTTP/1.0\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        server.release()
        assert [reply.status for reply in replies(read_all(sock))] == [200]


@pytest.mark.parametrize(
    ("data", "statuses", "kinds"),
    [
        pytest.param(GET, [200], [], id="idle"),
        pytest.param(b"", [], [], id="silent"),
        pytest.param(GET[:-2], [408], ["header_too_slow"], id="slow-head"),
        pytest.param(GET + POST[:-1], [200, 408], ["body_too_slow"], id="slow-body"),
        pytest.param(b"hello\r\n\r\n", [400], ["bad_http"], id="bad"),
    ],
)
def test_connections_end_that_do_nothing(data: bytes, statuses: list[int], kinds: list[str]) -> None:
    """What was announced and does not come is answered; who only waits is disconnected."""
    with serving(body_seconds=0.1, idle_seconds=0.1) as server, server.connect() as sock:
        sock.sendall(data)
        assert [reply.status for reply in replies(read_all(sock))] == statuses
        assert server.app.refused == kinds


def test_a_client_that_takes_nothing_is_given_up() -> None:
    """The connection is broken, and the application told."""
    with serving(idle_seconds=0.2) as server, server.connect() as sock:
        sock.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        assert server.app.broken.wait(PATIENCE)
        server.wait_for(lambda: not server.server.connections)


def test_shutting_down() -> None:
    """Idle connections are closed; an answer that is due is sent, and says that it is the last one."""
    with serving() as server, server.connect() as idle, server.connect() as busy:
        for sock, path in ((idle, b"/a"), (busy, b"/held")):
            sock.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        server.wait_for(lambda: server.app.held)
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        server.do(server.server.stop_listening)
        done = asyncio.run_coroutine_threadsafe(server.server.shut_down(PATIENCE), server.server.loop)
        assert idle.recv(1) == b""
        assert not done.done()
        server.release()
        (reply,) = replies(read_all(busy))
        assert (reply.headers["x-held"], reply.headers["connection"]) == ("yes", "close")
        done.result(PATIENCE)


@pytest.mark.parametrize("new_loop", [new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_who_has_connected_before_the_end_is_answered(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """The kernel accepts connections before the server does: those are served, too, when it stops to listen."""
    with serving(new_loop=new_loop) as server, ExitStack() as stack:
        clients = []

        def connect_and_stop() -> None:
            # In one step of the loop, so that the server has accepted none of them.
            for _ in range(70):
                clients.append(stack.enter_context(server.connect()))
                clients[-1].sendall(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
            server.server.stop_listening()

        server.do(connect_and_stop)
        asyncio.run_coroutine_threadsafe(server.server.begun(PATIENCE), server.server.loop).result(PATIENCE)
        assert len(server.server.connections) == len(clients)
        assert {client.recv(65536)[:12] for client in clients} == {b"HTTP/1.1 200"}


def test_tls() -> None:
    """The same over an encrypted connection."""
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with (
        serving(tls=tls) as server,
        trusting.wrap_socket(server.connect(), server_hostname="localhost") as sock,
    ):
        sock.sendall(GET + POST.replace(b"Host", b"Connection: close\r\nHost"))
        assert [reply.seen[0] for reply in replies(read_all(sock))] == ["GET", "POST"]
        with trusting.wrap_socket(server.connect(), server_hostname="localhost") as leaving:
            leaving.sendall(b"GET /queued HTTP/1.1\r\nHost: x\r\n\r\n")
            server.wait_for(lambda: server.app.held)
        server.wait_for(lambda: server.app.gone)


def damaged(seed: int) -> bytes:
    """Return a few requests with random changes."""
    rng = random.Random(seed)
    data = bytearray(b"".join(rng.choices((GET, POST, CHUNKED), k=rng.randint(1, 3))))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[at : at + 1] = rng.randbytes(1)
            case 1:
                data[at : at + rng.randint(1, 20)] = b""
            case 2:
                data[at:at] = rng.choice(
                    (b"\r\n", b"\n", b"\0", b":", b" ", b"9" * 20, b"chunked", bytes(300))
                )
            case _:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.randint(1, 40)]
    return bytes(data)


@pytest.mark.slow
def test_damaged_requests() -> None:
    """10,000 of them: every answer is HTTP and every refusal a 4xx; then good requests are served."""
    with serving(max_body=100_000) as server:
        answers = server.exchange_all([damaged(seed) for seed in range(10_000)])
        assert server.exchange(GET)[0].status == 200
        server.wait_for(lambda: not server.server.connections)
    statuses = [reply.status for replies in answers for reply in replies]
    assert set(statuses) <= {200, 400, 413, 431}
    assert statuses.count(200) > 1000 < statuses.count(400)
