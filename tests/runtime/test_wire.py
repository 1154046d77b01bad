"""Frames arrive whole and in order, however the bytes come."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from mup.runtime.protocol.wire import (
    Answer,
    BlockingChannel,
    Done,
    FrameBuffer,
    FromWorker,
    Line,
    LogOff,
    Ready,
    Request,
    Sender,
    frame,
    line,
)

_decode = msgspec.msgpack.Decoder(FromWorker).decode


def answer(body: bytes) -> Answer:
    return Answer(200, {"Content-Type": "text/plain"}, body)


def request_of(size: int) -> Request:
    body = random.Random(size).randbytes(size)
    return Request(1, 2, "/a/", "b=c", [(b"host", b"x")], body, None, True, "POST", ("d",), "")


@pytest.fixture
def ends() -> Iterator[tuple[Line, Line]]:
    """The front's end and the worker's end of a line."""
    front, worker = line()
    yield front, worker
    front.close()
    worker.close()


@pytest.mark.parametrize("size", [1, 3, 4, 5, 17, 100_000])
def test_frames_are_found_in_pieces_of_any_size(size: int) -> None:
    """Every frame comes out once, whole and in order; none before its last byte."""
    sent = [b"x" * length for length in (0, 1, 3, 300, 70_000)] * 2
    data = b"".join(len(each).to_bytes(4, "little") + each for each in sent)
    buffer, found, ends = FrameBuffer(), [], 0
    for start in range(0, len(data), size):
        found += buffer.feed(data[start : start + size])
        ends = min(start + size, len(data))
        assert sum(len(each) + 4 for each in found) <= ends
    assert found == sent


@pytest.mark.parametrize("failed", [False, True])
def test_an_answer_that_is_held_leaves_with_the_news_that_the_worker_is_free(failed: bool) -> None:
    """Together they are one frame, which says both; one after the other they are two."""
    written: list[bytes] = []
    sender = Sender(written.append)
    sender.hold(answer(b"a"))
    assert not written
    sender.done(failed=failed)
    sender.send(answer(b"b"))
    sender.done(failed=failed)
    contents = [[_decode(content) for content in FrameBuffer().feed(data)] for data in written]
    together = answer(b"a")
    together.done, together.failed = True, failed
    assert contents == [[together], [answer(b"b")], [Done(failed)]]


def test_nothing_overtakes_an_answer_that_is_held() -> None:
    """What is sent in spite of it goes behind it; the worker is free when it says so, not before."""
    written: list[bytes] = []
    sender = Sender(written.append)
    sender.hold(answer(b"a"))
    sender.send(LogOff())
    sender.done(failed=False)
    messages = [_decode(content) for content in FrameBuffer().feed(b"".join(written))]
    assert messages == [answer(b"a"), LogOff(), Done(failed=False)]


@pytest.mark.parametrize("size", [0, 10, 20_000, 3_000_000])
def test_requests_of_any_size_are_read(ends: tuple[Line, Line], size: int) -> None:
    """A request larger than what a socket holds at once is put together."""
    front, worker = ends
    sent = request_of(size)
    thread = threading.Thread(target=front.requests.sendall, args=(frame(sent),))
    thread.start()
    assert BlockingChannel(worker, 60).receive() == sent
    thread.join()


def test_a_request_that_comes_byte_by_byte(ends: tuple[Line, Line]) -> None:
    """It is read whole, however slowly it comes."""
    front, worker = ends
    channel, sent = BlockingChannel(worker, 0.02), request_of(10)

    def send() -> None:
        data = frame(sent)
        for position in range(len(data)):
            front.requests.sendall(data[position : position + 1])
            # Longer than a worker waits before there is time for something else.
            time.sleep(0.05 if position in (1, 20) else 0.0005)

    thread = threading.Thread(target=send)
    thread.start()
    assert channel.receive() == sent
    thread.join()


def test_waiting_for_a_request(ends: tuple[Line, Line]) -> None:
    """Without one there is time for something else; a front that goes, even amid a request, ends the worker."""
    front, worker = ends
    channel = BlockingChannel(worker, 0.02)
    with pytest.raises(BlockingIOError):
        channel.receive()
    channel.send(Ready())
    assert front.answers.recv(100) == frame(Ready())
    front.requests.sendall(frame(request_of(10))[:-1])
    channel.wait()
    front.close()
    assert channel.receive() is None
    assert channel.receive() is None


WORKER = """
import socket, sys
from mup.runtime.protocol.wire import BlockingChannel, Line, Ready

channel = BlockingChannel(Line(*(socket.socket(fileno=int(number)) for number in sys.argv[1:])), 60)
channel.send(Ready())
while channel.receive() is not None:
    channel.send(Ready())
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the kernel does not tell how often a process slept"
)
def test_an_idle_worker_is_woken_by_requests_alone(ends: tuple[Line, Line]) -> None:
    """That the front has read what a worker said is no news for a worker that waits."""
    front, worker = ends
    command = [sys.executable, "-c", WORKER, *map(str, worker.filenos())]
    with subprocess.Popen(command, pass_fds=worker.filenos()) as process:
        assert front.answers.recv(100) == frame(Ready())
        before = _sleeps(process.pid)
        for _ in range(20):
            front.requests.sendall(frame(request_of(10)))
            time.sleep(0.003)  # it has answered, and sleeps again
            assert front.answers.recv(100) == frame(Ready())
            time.sleep(0.001)
        slept = _sleeps(process.pid) - before
        front.requests.shutdown(socket.SHUT_RDWR)
    assert slept < 30


def _sleeps(pid: int) -> int:
    """Return how often a process has gone to sleep."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
