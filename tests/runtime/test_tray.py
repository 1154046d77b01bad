"""Every short request that waits on the tray reaches one worker, or none.

The front is real and has real clients; what workers do the tests do by hand, for it has to happen in a certain order.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from mup import EP, MS, Communication
from mup.events.settings import LogSettings
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.pool import front as fronts
from mup.runtime.pool.front import Front, Limits, WorkerLink
from mup.runtime.process.loops import new_event_loop
from mup.runtime.protocol.wire import Answer, BlockingChannel, Line, Ready, Request, frame, line
from mup.runtime.server.http_server import HttpServer
from mup.runtime.worker.tray import MANY, Tray
from mup.runtime.worker.worker import ServiceRun
from mup.service import check_service

PATIENCE = 20.0


class Trivial(MS):
    """Never instantiated: the tests do what its workers would."""

    @EP("/x/")
    def x(self, comm: Communication) -> None:
        """Do nothing."""


def request_of(query: str, body: bytes = b"") -> Request:
    return Request(1, 2, "/x/", query, [(b"host", b"x")], body, None, True, "GET")


class Worker:
    """A worker played by hand."""

    def __init__(self, replica: Replica, number: int, end: Line) -> None:
        self._replica = replica
        self._channel = BlockingChannel(end, PATIENCE)
        self._end = end
        self.number = number

    async def receive(self) -> str:
        """Wait for a request of its line; return the query string, which tells requests apart."""
        request = await asyncio.to_thread(self._channel.receive)
        assert request is not None
        return request.query

    def take(self) -> tuple[int, str]:
        """Take a request from the tray; return its number and its query string."""
        number, request = self._replica.tray.take()
        return number, "" if request is None else request.query

    def answer(self, taken: int = 0, *, seconds: float = 1e-5) -> None:
        """Answer the request in work, and be free."""
        self._channel.hold(Answer(200, {}, b"done"))
        self._channel.done(failed=False, taken=taken, seconds=seconds)

    def die(self) -> None:
        """End as a process does that is killed."""
        self._end.close()


class ExaminedFront(Front):
    """A front whose invariants are checked whenever a test looks at it.

    Attributes:
        violated: What did not hold.
    """

    violated: list[str]

    @property
    def _look(self) -> asyncio.TimerHandle | None:
        return self.__dict__.get("look")

    @_look.setter
    def _look(self, handle: asyncio.TimerHandle | None) -> None:
        if handle is not None and self._look is not None:
            self.violated.append("two looks at the tray are scheduled")
        self.__dict__["look"] = handle

    def examine(self) -> None:
        """Check what is to hold between two events."""
        in_work = [link.ticket for link in self.workers.values() if link.ticket is not None]
        inside = [*self._waiting, *self._lying.values(), *in_work]
        checks = {
            "a request is in two places": len(inside) == len({id(ticket) for ticket in inside}),
            f"{self._busy} are busy, {len(in_work)} in work": self._busy == len(in_work),
            "a worker rests that must not": all(
                link.ticket is None and not link.retiring and self.workers[link.number] is link
                for link in self._idle
            ),
            "a request waits that has an answer": all(ticket.http is not None for ticket in self._waiting),
            "the tray is not looked at": not self._lying or self._look is not None,
        }
        self.violated += [problem for problem, holds in checks.items() if not holds]


class Replica:
    """A front, its server, and clients of it."""

    def __init__(self, front: ExaminedFront, tray: Tray, server: HttpServer, port: int) -> None:
        self.front = front
        self.tray = tray
        self.server = server
        self._port = port
        self._tasks: set[asyncio.Task[str]] = set()
        self._workers: list[Worker] = []

    async def worker(self, number: int) -> Worker:
        """Add a worker."""
        loop = asyncio.get_running_loop()
        ours, theirs = line()
        ours.setblocking(False)
        link = WorkerLink(number, 1, loop)
        link.on_lost = lambda lost: self.front.remove(lost, "was killed")
        link.requests, _ = await loop.create_unix_connection(asyncio.Protocol, sock=ours.requests)
        await loop.create_unix_connection(lambda: link, sock=ours.answers)
        worker = Worker(self, number, theirs)
        self._workers.append(worker)
        worker._channel.send(Ready())
        assert await link.ready == ""
        self.front.add(link)
        return worker

    def end(self) -> None:
        """Let all workers go."""
        for link in self.front.workers.values():
            link.end()
        for worker in self._workers:
            worker.die()

    async def connect(self, query: str, body: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request, and wait until the front has it."""
        before = self.inside
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"POST /x/?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(f"{head}{body}".encode())
        await until(lambda: self.inside == before + 1)
        return reader, writer

    async def ask(self, query: str, body: str = "") -> asyncio.Task[str]:
        """The same; the task returns the status of the answer and its body."""
        reader, writer = await self.connect(query, body)

        async def read() -> str:
            head, _, said = (await reader.read()).decode().partition("\r\n\r\n")
            writer.close()
            return f"{head.split()[1]} {said}"

        task = asyncio.get_running_loop().create_task(read())
        self._tasks.add(task)
        return task

    @property
    def inside(self) -> int:
        """Requests that are in the replica."""
        return int(self.status["busy"]) + int(self.status["queued"])

    @property
    def status(self) -> dict[str, Any]:
        """What the front says."""
        self.front.examine()
        return self.front.status()

    async def be_quick(self, worker: Worker, count: int = MANY, seconds: float = 1e-5) -> None:
        """Let a worker serve so many short requests that the front trusts them."""
        for _ in range(count):
            answer = await self.ask("warm=1")
            await worker.receive()
            worker.answer(seconds=seconds)
            assert (await answer).startswith("200 ")
        await until(lambda: self.inside == 0)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - some conditions are about other threads
            await asyncio.sleep(0.001)


@asynccontextmanager
async def replica(runtime: str) -> AsyncIterator[Replica]:
    """Run a front without workers."""
    endpoints = check_service(Trivial, pool_size=1, replicas=1, port=0)
    run = ServiceRun(
        service="A",
        kind=Trivial,
        dispatch=Dispatch(Trivial, endpoints),
        replica=0,
        registry="",
        source=Path(),
        log_dir="",
        log=LogSettings(),
        runtime=runtime,
    )
    ExaminedFront.violated = []
    front = ExaminedFront(run, 1, None, Limits(max_body=2**20, body_seconds=PATIENCE, queue=100))
    server = HttpServer(front)
    with closing(Tray()) as tray, socket.create_server(("127.0.0.1", 0)) as listener:
        front.tray = tray
        await server.listen(listener)
        here = Replica(front, tray, server, listener.getsockname()[1])
        try:
            yield here
        finally:
            server.stop_listening()
            here.end()
            await server.shut_down(0.0)
            assert front.violated == []


def played(scene: Callable[[Replica], Awaitable[None]], runtime: str = "process") -> None:
    """Play a scene in a replica."""

    async def play() -> None:
        async with asyncio.timeout(PATIENCE), replica(runtime) as here:
            await scene(here)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(play())


@pytest.fixture
def tray() -> Iterator[Tray]:
    """An empty one."""
    with closing(Tray()) as empty:
        yield empty


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests lie on the tray for as long as the test takes."""
    monkeypatch.setattr(fronts, "TRAY_SECONDS", PATIENCE)
    monkeypatch.setattr(fronts, "HOT_SECONDS", PATIENCE)


def test_a_tray_keeps_order_and_takes_each_request_once(tray: Tray) -> None:
    """What does not fit is not put there; what is taken back no other gets."""
    assert tray.take() == (0, None)
    requests = [request_of(str(number)) for number in range(4)]
    assert all(tray.put(number, frame(each)) for number, each in enumerate(requests, 1))
    assert not tray.put(9, frame(request_of("", b"x" * 2**20)))
    assert tray.take() == (1, requests[0])
    assert tray.take_back() == 2
    assert [tray.take(), tray.take(), tray.take()] == [(3, requests[2]), (4, requests[3]), (0, None)]
    assert tray.take_back() == 0


def test_a_tray_that_is_full_says_so(tray: Tray) -> None:
    """The kernel's room for messages ends; nothing blocks, and nothing is lost."""
    large = frame(request_of("", b"x" * 12000))
    put = 0
    while tray.put(put + 1, large):
        put += 1
    assert put < 1000
    assert [tray.take()[0] for _ in range(put)] == [*range(1, put + 1)]


@pytest.mark.usefixtures("patient")
def test_a_worker_goes_on_with_what_waits() -> None:
    """In the order of arrival; the front knows what it has, and that nothing is left."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        answers = [await here.ask(query) for query in ("a", "b", "c")]
        assert await worker.receive() == "a"
        assert (here.status["busy"], here.status["queued"]) == (1, 2)
        for query in ("b", "c"):
            number, taken = worker.take()
            assert taken == query
            worker.answer(number)
        assert worker.take() == (0, "")
        worker.answer()
        assert [await answer for answer in answers] == ["200 done"] * 3
        await until(lambda: here.inside == 0)
        assert here.status["served"] == MANY + 3

    played(scene)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("body", ["", "x" * 20_000])
def test_a_worker_that_finds_nothing_is_handed_what_waits(body: str) -> None:
    """What came when it had looked already, or what is too large for the tray."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        first, second = await here.ask("a"), await here.ask("b", body)
        assert await worker.receive() == "a"
        worker.answer()
        assert await worker.receive() == "b"
        assert worker.take() == (0, "")
        worker.answer()
        assert [await first, await second] == ["200 done"] * 2

    played(scene)


@pytest.mark.usefixtures("patient")
def test_more_requests_than_the_tray_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They follow, one by one, in order."""
    room = 8
    monkeypatch.setattr(fronts, "ROOM", room)

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        count = room + 5
        answers = [await here.ask(str(number)) for number in range(count + 1)]
        assert await worker.receive() == "0"
        for number in range(1, count + 1):
            mark, query = worker.take()
            assert query == str(number)
            worker.answer(mark)
            left = count + 1 - number
            await until(lambda left=left: here.inside == left)  # type: ignore[misc]
        worker.answer()
        assert {await answer for answer in answers} == {"200 done"}

    played(scene)


def test_nothing_lies_there_for_long() -> None:
    """Behind a request that is not short the others wait in the front; the next worker gets the oldest."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        answers = [await here.ask(query) for query in ("a", "b", "c")]
        assert await worker.receive() == "a"
        await until(lambda: not here.front._lying)
        assert worker.take() == (0, "")
        assert (here.status["busy"], here.status["queued"]) == (1, 2)
        other = await here.worker(1)
        assert await other.receive() == "b"
        worker.answer(seconds=1.0)
        assert await worker.receive() == "c"
        worker.answer()
        other.answer()
        assert [await answer for answer in answers] == ["200 done"] * 3

    played(scene)


@pytest.mark.usefixtures("patient")
def test_one_look_at_the_tray_is_scheduled_at_a_time() -> None:
    """Also where a look hands out requests, and puts others on the tray: looks would become more and more."""

    async def scene(here: Replica) -> None:
        first = await here.worker(0)
        second = await here.worker(1)
        await here.be_quick(second, 5 * MANY)
        answers = [await here.ask(query) for query in ("a", "b", "c", "d")]
        assert await second.receive() == "a"
        number, taken = second.take()
        assert taken == "b"
        second.answer(number)
        await until(lambda: len(here.front._lying) == 2)
        for ticket in here.front._lying.values():
            ticket.arrived -= 2 * PATIENCE  # so long ago that the worker that rests is to have it
        handle = here.front._look
        assert handle is not None
        handle.cancel()
        here.front._look_at_tray()
        assert await first.receive() == "c"
        number, taken = second.take()
        assert taken == "d"
        second.answer(number)
        second.answer()
        first.answer()
        assert [await answer for answer in answers] == ["200 done"] * 4

    played(scene)


def test_a_worker_that_rests_gets_what_another_one_leaves() -> None:
    """While requests are short one worker is kept busy; one that is not short does not hold up others."""

    async def scene(here: Replica) -> None:
        first = await here.worker(0)
        second = await here.worker(1)
        # The one that came last serves.
        await here.be_quick(second)
        answers = [await here.ask("a"), await here.ask("b")]
        assert await second.receive() == "a"
        assert await first.receive() == "b"
        assert (here.status["busy"], here.status["queued"]) == (2, 0)
        first.answer()
        second.answer()
        assert [await answer for answer in answers] == ["200 done"] * 2

    played(scene)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("seconds", "lying"), [(1e-5, 3), (0.00028, 1)])
def test_a_worker_that_rests_is_woken_when_there_is_work_for_it(seconds: float, lying: int) -> None:
    """While little lies on the tray, one worker does it all; half a millisecond of work is for two."""

    async def scene(here: Replica) -> None:
        first = await here.worker(0)
        second = await here.worker(1)
        await here.be_quick(second, 5 * MANY, seconds)
        answers = [await here.ask(query) for query in ("a", "b", "c", "d")]
        assert await second.receive() == "a"
        if lying < 3:
            assert await first.receive() == "b"
        for query in ("b", "c", "d") if lying == 3 else ("c", "d"):
            number, taken = second.take()
            assert taken == query
            second.answer(number)
        second.answer()
        if lying < 3:
            first.answer()
        assert [await answer for answer in answers] == ["200 done"] * 4

    played(scene)


@pytest.mark.usefixtures("patient")
def test_workers_of_an_event_loop_share_what_comes() -> None:
    """They are woken together: none has to wait for another one. Beyond them there is the tray, too."""

    async def scene(here: Replica) -> None:
        first = await here.worker(0)
        second = await here.worker(1)
        await here.be_quick(second)
        answers = [await here.ask(query) for query in ("a", "b", "c")]
        assert await second.receive() == "a"
        assert await first.receive() == "b"
        number, taken = first.take()
        assert taken == "c"
        first.answer(number)
        first.answer()
        second.answer()
        assert [await answer for answer in answers] == ["200 done"] * 3

    played(scene, "async")


@pytest.mark.usefixtures("patient")
def test_a_client_that_leaves_is_not_served() -> None:
    """Its request is taken from the tray, and the others keep their order."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        first = await here.ask("a")
        _, leaving = await here.connect("b")
        others = [await here.ask("c"), await here.ask("d")]
        assert await worker.receive() == "a"
        leaving.close()
        await until(lambda: here.status["queued"] == 2)
        for query in ("c", "d"):
            number, taken = worker.take()
            assert taken == query
            worker.answer(number)
        worker.answer()
        assert [await answer for answer in (first, *others)] == ["200 done"] * 3
        assert here.front._metrics.errors == {"client_gone": 1}

    played(scene)


@pytest.mark.usefixtures("patient")
def test_a_client_that_leaves_too_late_is_served() -> None:
    """A worker has its request already, though the front has not heard so yet."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        first = await here.ask("a")
        _, leaving = await here.connect("b")
        last = await here.ask("c")
        assert await worker.receive() == "a"
        number, taken = worker.take()
        assert taken == "b"
        leaving.close()
        await until(lambda: len(here.server.connections) == 2)
        worker.answer(number)
        await until(lambda: here.status["queued"] == 1)
        number, taken = worker.take()
        assert taken == "c"
        worker.answer(number)
        worker.answer()
        assert [await first, await last] == ["200 done"] * 2
        await until(lambda: here.inside == 0)
        assert here.front._metrics.errors == {}

    played(scene)


@pytest.mark.usefixtures("patient")
def test_a_worker_that_dies_takes_nothing_along_that_it_has_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it had is answered 502, be it that it could not say so any more; the rest is for its successor."""
    monkeypatch.setattr(fronts, "LOST_SECONDS", 0.05)

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        answers = [await here.ask(query) for query in ("a", "b", "c", "d")]
        assert await worker.receive() == "a"
        assert worker.take()[1] == "b"
        worker.die()
        assert await answers[0] == '502 {"error":"the worker was killed","service":"A"}'
        assert (await answers[1]).startswith('502 {"error":"the worker was killed"')
        assert (here.status["busy"], here.status["queued"]) == (0, 2)
        successor = await here.worker(0)
        assert await successor.receive() == "c"
        number, taken = successor.take()
        assert taken in ("d", "")
        successor.answer(number)
        if not number:
            assert await successor.receive() == "d"
        successor.answer()
        assert [await answer for answer in answers[2:]] == ["200 done"] * 2
        assert here.status["errors"] == 2

    played(scene)


@pytest.mark.usefixtures("patient")
def test_a_worker_may_say_late_what_it_has_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the death of another one the request was given up; it is still served, and the worker goes on."""
    monkeypatch.setattr(fronts, "LOST_SECONDS", 0.05)

    async def scene(here: Replica) -> None:
        dying, worker = await here.worker(0), await here.worker(1)
        await here.be_quick(worker)
        answers = [await here.ask(query) for query in ("a", "b")]
        assert await worker.receive() == "a"
        number, taken = worker.take()
        assert taken == "b"
        dying.die()
        assert (await answers[1]).startswith("502 ")
        worker.answer(number)
        await until(lambda: here.front._busy == 1)
        worker.answer()
        assert await answers[0] == "200 done"
        await until(lambda: here.inside == 0)
        third = await here.ask("c")
        assert await worker.receive() == "c"
        worker.answer()
        assert await third == "200 done"

    played(scene)


@pytest.mark.usefixtures("patient")
def test_a_replica_that_stops_refuses_what_no_worker_has_taken() -> None:
    """A 503 says that nothing has been done; what a worker has taken is not answered so."""

    async def scene(here: Replica) -> None:
        worker = await here.worker(0)
        await here.be_quick(worker)
        answers = [await here.ask(query) for query in ("a", "b", "c")]
        assert await worker.receive() == "a"
        assert worker.take()[1] == "b"
        here.front.draining = True
        await here.front.drained(0.02)
        said = [await answer for answer in answers]
        assert [answer[:4] for answer in said] == ["502 ", "502 ", "503 "]
        assert "the replica is stopping" in said[2]
        assert worker.take() == (0, "")

    played(scene)


@pytest.mark.usefixtures("patient")
def test_a_worker_that_is_to_go_takes_nothing_more() -> None:
    """What lay on the tray waits for those that stay."""

    async def scene(here: Replica) -> None:
        staying = await here.worker(0)
        leaving = await here.worker(1)
        await here.be_quick(leaving)
        answers = [await here.ask("a")]
        assert await leaving.receive() == "a"
        answers += [await here.ask(query) for query in ("b", "c", "d")]
        here.front.retire(here.front.workers[1])
        assert leaving.take() == (0, "")
        assert await staying.receive() == "b"
        leaving.answer()
        assert await answers[0] == "200 done"
        assert await asyncio.to_thread(leaving._channel.receive) is None
        for query in ("c", "d"):
            staying.answer()
            assert await staying.receive() == query
        staying.answer()
        assert [await answer for answer in answers] == ["200 done"] * 4

    played(scene)
