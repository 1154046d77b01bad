"""Memory that the bodies of all requests together can take."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from deployments import System, ask, make_project, running, wait_for

from mup.errors import ProjectError
from mup.project import load_project

MEGABYTE = 2**20

SOURCE = """
import time
from mup import EP, MS

class Store(MS):
    pool_size = 2

    @EP("/store/")
    def store(self, comm):
        time.sleep(float(comm.headers.get("x-seconds", 0)))
        comm.respond(len(comm.body))
"""


def memory(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def refused(system: System) -> float:
    """Return how many bodies there was no memory for."""
    text = system.ask("Store", "/mup/metrics").raw.decode()
    (found,) = re.findall(r'mup_errors_total\{.*kind="bodies_full"\} (\d+)', text) or ["0"]
    return int(found)


class Uploads:
    """Connections that send bodies and never finish; a context manager that closes them."""

    def __init__(self, system: System) -> None:
        parts = urlsplit(system.url("Store"))
        self._address = parts.hostname or "", parts.port or 0
        self._stack = contextlib.ExitStack()
        self.open: list[socket.socket] = []

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, size: int, *, chunked: bool = False, whole: bool = False) -> socket.socket:
        """Send all of a body but its last byte, or the whole; return the connection."""
        sock = self._stack.enter_context(socket.create_connection(self._address, timeout=10))
        framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
        sock.sendall(b"POST /store/ HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
        with contextlib.suppress(OSError):  # it may be refused before it has been sent
            sock.sendall((b"%x\r\n" % size if chunked else b"") + b"x" * (size if whole else size - 1))
        self.open.append(sock)
        return sock

    def answers(self) -> list[bytes]:
        """Return the answers that have come by now."""
        found = []
        for sock in self.open:
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                found.append(sock.recv(65536))
        return found


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A store with the limits it has by itself: 16 MiB for a body, 64 MiB for all."""
    with running(make_project(tmp_path_factory.mktemp("bodies"), SOURCE, "Store")) as system:
        yield system


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_bodies_that_do_not_end(system: System, chunked: bool) -> None:
    """Those beyond the limit get 503 and when to come back; small ones are served; memory comes back."""
    pid, before, counted = (
        system.status("Store")["pid"],
        memory(system.status("Store")["pid"]),
        refused(system),
    )
    with Uploads(system) as uploads:
        for _ in range(20):
            uploads.begin(15 * MEGABYTE, chunked=chunked)
        answers = wait_for(uploads.answers)
        wait_for(lambda: refused(system) - counted >= 15)
        assert memory(pid) - before < 150
        for answer in answers:
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"Retry-After: 1\r\n" in answer
            assert b"Connection: close\r\n" in answer
        assert ask(system.url("Store"), "/store/", b"x" * 60_000).body == 60_000
        assert ask(system.url("Store"), "/store/", b"x" * 16 * MEGABYTE).status == 503
    # What ended connections had is given back: four of 15 MiB fit again, one after the other and at once.
    wait_for(lambda: ask(system.url("Store"), "/store/", b"x" * 16 * MEGABYTE).status == 200)
    with Uploads(system) as uploads:
        for _ in range(4):
            uploads.begin(15 * MEGABYTE)
        time.sleep(0.2)
        assert uploads.answers() == []


@pytest.mark.slow
@pytest.mark.services
def test_what_is_answered_counts_no_more(system: System) -> None:
    """Many large bodies after each other, on one connection and on several, whole or refused."""
    counted = refused(system)
    for _ in range(3):
        with Uploads(system) as uploads:
            socks = [uploads.begin(10 * MEGABYTE, whole=True) for _ in range(6)]
            for sock in socks:
                sock.settimeout(10)
                assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
                sock.sendall(
                    b"POST /nobody/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 99_999
                )
                assert sock.recv(65536).startswith(b"HTTP/1.1 404 ")
    assert refused(system) == counted


def test_setting(tmp_path: Path) -> None:
    """It is bytes, and not less than one body may have."""
    file = tmp_path / "mup.toml"
    service = '[services.A]\nclass = "a:A"\n'
    file.write_text(service + "max_body = 1000\nmax_bodies = 5000\n")
    assert load_project(file).services[0].max_bodies == 5000
    file.write_text(service + "max_body = 1000\nmax_bodies = 999\n")
    with pytest.raises(ProjectError, match=r"max_bodies: must not be less than max_body \(1000\), got 999"):
        load_project(file)
