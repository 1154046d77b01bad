"""Headers that a service accepts, sees and sends, in every runtime, byte by byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from deployments import System, make_project, running

from mup import EP, MS, Communication
from mup.errors import UsageError
from mup.runtime.protocol.header_rules import NOT_OF_CALLS
from mup.testing import TestClient

SOURCE = '''
from mup import EP, MS, Communication
from mup.communication import Cookie
from mup.errors import MupError


def answer(comm):
    """Answer what the endpoint's own headers and cookies lead to."""
    asked = comm.params
    headers = {asked["name"]: asked["value"]} if "name" in asked else {}
    cookies = {"c": Cookie(value=asked.get("cookie", ""), path=asked.get("path", "/"))}
    try:
        comm.respond("fine", headers=headers, cookies=cookies)
    except MupError as error:
        comm.respond({"refused": str(error)}, 422)


class Processes(MS):
    pool_size = 2

    @EP("/seen/")
    def seen(self, comm: Communication) -> None:
        comm.respond(dict(comm.headers), headers={"X-Back": comm.headers.get("x-text", "")})

    @EP("/set/")
    def set(self, comm: Communication) -> None:
        answer(comm)

    @EP("/call/")
    def call(self, comm: Communication) -> None:
        asked = comm.params
        headers = {asked["name"]: asked["value"]}
        try:
            future = comm.call("Processes", "/seen/", headers=headers)
        except MupError as error:
            comm.respond({"refused": str(error), "type": type(error).__name__}, 422)
        else:
            answer = future.get(check=False)
            comm.respond({"seen": answer.body, "back": answer.headers["x-back"]})


class Threads(Processes):
    runtime = "thread"

    @EP("/seen/")
    def seen(self, comm: Communication) -> None:
        super().seen(comm)

    @EP("/set/")
    def set(self, comm: Communication) -> None:
        super().set(comm)

    @EP("/call/")
    def call(self, comm: Communication) -> None:
        super().call(comm)


class Loop(MS):
    runtime = "async"

    @EP("/seen/")
    async def seen(self, comm: Communication) -> None:
        comm.respond(dict(comm.headers), headers={"X-Back": comm.headers.get("x-text", "")})

    @EP("/set/")
    async def set(self, comm: Communication) -> None:
        answer(comm)

    @EP("/call/")
    async def call(self, comm: Communication) -> None:
        asked = comm.params
        try:
            future = comm.call("Processes", "/seen/", headers={asked["name"]: asked["value"]})
        except MupError as error:
            comm.respond({"refused": str(error), "type": type(error).__name__}, 422)
        else:
            await future
            answer = future.get(check=False)
            comm.respond({"seen": answer.body, "back": answer.headers["x-back"]})
'''

SERVICES = ["Processes", "Threads", "Loop"]
ALL = pytest.mark.parametrize("service", SERVICES)
CONTROLS = [chr(code) for code in (*range(0x20), 0x7F) if chr(code) != "\t"]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of every runtime."""
    with running(make_project(tmp_path_factory.mktemp("headers"), SOURCE, *SERVICES)) as system:
        yield system


def exchange(system: System, service: str, data: bytes) -> tuple[int, bytes]:
    """Send bytes; return the status of the first answer, and all of them."""
    parts = urlsplit(system.url(service))
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
        sock.sendall(data)
        received = b""
        while b"\r\n\r\n" not in received:
            received += sock.recv(65536) or b"\r\n\r\n"
        length = int(received.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
        while len(received.partition(b"\r\n\r\n")[2]) < length and (more := sock.recv(65536)):
            received += more
    return int(received.split(b" ", 2)[1]), received


def raw(head: bytes, version: bytes = b"1.1") -> bytes:
    """Return a request with further lines in its head, and a chunked body."""
    return b"POST /seen/ HTTP/%s\r\nHost: x\r\n%s\r\n\r\n4\r\nbody\r\n0\r\n\r\n" % (version, head)


@pytest.mark.services
@ALL
def test_framings_that_others_may_read_otherwise(system: System, service: str) -> None:
    """A body has one framing or none is read: a proxy that sees another one would be led astray."""
    chunked = b"Transfer-Encoding: chunked"
    assert exchange(system, service, raw(chunked))[0] == 200
    for head in (
        b"Transfer-Encoding: gzip\r\n" + chunked,
        chunked + b"\r\nX: y\r\n" + chunked,
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: xchunked",
    ):
        assert exchange(system, service, raw(head))[0] == 400
    assert exchange(system, service, raw(chunked, b"1.0"))[0] == 400
    assert exchange(system, service, raw(b"Expect: junk\r\n" + chunked))[0] == 417


@pytest.mark.services
@ALL
def test_bytes_of_headers_have_a_text(system: System, service: str) -> None:
    """UTF-8 is read as that, other bytes as latin-1; what an endpoint echoes is sent, never a failure."""
    head = b"GET /seen/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Text: "
    for sent, text in ((b"\xc3\xbc", "\xfc"), (b"\xfc\xff\xed\xa0\x80", "\xfc\xff\xed\xa0\x80"), (b"a", "a")):
        status, answer = exchange(system, service, head + sent + b"\r\n\r\n")
        assert status == 200
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["x-text"] == text
        assert b"X-Back: " + text.encode() + b"\r\n" in answer


@pytest.mark.services
@ALL
@pytest.mark.parametrize("what", ["value", "cookie", "path"])
def test_control_characters_are_not_sent(system: System, service: str, what: str) -> None:
    """Setting a header or a cookie with one is an error; a tab is part of a value."""
    name = "name=X-A&" if what == "value" else ""
    for character in CONTROLS:
        answer = system.ask(service, f"/set/?{name}{what}={quote('a' + character + 'b')}")
        assert answer.status == 422, (what, character)
        assert what != "value" or "control characters" in answer.body["refused"]
    if what == "value":
        assert system.ask(service, "/set/?name=X-A&value=a%09b").headers["x-a"] == "a\tb"
        assert system.ask(service, "/set/?name=X%7FA&value=b").status == 422


@pytest.mark.services
@ALL
def test_control_characters_are_not_sent_on(system: System, service: str) -> None:
    """Nor in the headers of a call."""
    for character in CONTROLS:
        answer = system.ask(service, f"/call/?name=X-A&value={quote('a' + character + 'b')}")
        assert (answer.status, "header" in answer.body["refused"]) == (422, True), character


@pytest.mark.services
@ALL
def test_headers_of_the_connection_are_refused_at_the_call(system: System, service: str) -> None:
    """They would break the request, or be taken for those of the connection."""
    for name in (*sorted(NOT_OF_CALLS), "HOST"):
        answer = system.ask(service, f"/call/?name={name}&value=x")
        assert answer.status == 422, name
        assert answer.body["type"] == "UsageError"
        assert repr(name) in answer.body["refused"]


@pytest.mark.services
@ALL
def test_texts_arrive_as_they_were_sent(system: System, service: str) -> None:
    """In the headers of a call and of its answer, in blocking and in awaited calls."""
    answer = system.ask(service, f"/call/?name=X-Text&value={quote('ü €')}")
    assert answer.status == 200
    assert (answer.body["seen"]["x-text"], answer.body["back"]) == ("ü €", "ü €")


def test_the_test_client_refuses_the_same() -> None:
    """What fails in production fails in a test."""

    class Relay(MS):
        @EP("/relay/")
        def relay(self, comm: Communication) -> None:
            comm.respond(comm.call("Other", "/x/", headers=comm.headers).get())

    with TestClient(Relay) as client:
        client.stub("Other", "/x/", "done")
        assert client.get("/relay/", headers={"X-Own": "ü"}).body == "done"
        answer = client.get("/relay/", headers={"Host": "shop.example"})
        assert (answer.status, "header 'host'" in answer.body["error"]) == (500, True)


def test_clients_may_name_a_server_outside_of_mup(tmp_path: Path) -> None:
    """One server may serve several names: `Host` is the client's there, and nothing else of the connection."""
    from mup.runtime.client.request import call_headers

    assert call_headers({"Host": "shop.example"}, external=True) == {"Host": "shop.example"}
    with pytest.raises(UsageError, match="'Host'"):
        call_headers({"Host": "shop.example"})
    with pytest.raises(UsageError, match="'Connection'"):
        call_headers({"Connection": "close"}, external=True)
