"""People of an office: events, background work, and handlers found by name."""

import asyncio
import logging
from functools import singledispatch, singledispatchmethod
from typing import Literal

from events import Event, Hired, Left, Moved, Promoted, event_of
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError

log = logging.getLogger(__name__)

_running: set[asyncio.Task] = set()


@singledispatch
def announce(event, comm):
    log.warning("nothing to announce: %r", event)
    return None


@announce.register
def _(event: Hired, comm):
    return comm.call("Mail", "/welcome", {"to": event.person}).get()


@announce.register(Left)
def _(event, comm):
    comm.call("Mail", "/farewell", {"to": event.person, "reason": event.reason}).get()
    return comm.query("people", "remove", "people", {"_id": event.person}).get()


@singledispatch
def weight(event: Event) -> int:
    raise NotImplementedError(type(event))


@weight.register
def _(event: Hired | Left) -> int:
    return 2


@weight.register
def _(event: Event) -> int:
    return 1


class Ledger:
    @singledispatchmethod
    def enter(self, event, comm):
        comm.query("people", "other", "ledger", {"office": event.office}).get()

    @enter.register
    def _(self, event: Promoted, comm):
        comm.call("Pay", "/raise", {"to": event.person, "grade": event.grade}).get()

    @enter.register
    def _(self, event: Moved, comm):
        pass


class Office(MS):
    runtime = "async"
    pool_size = 32

    def setup(self) -> None:
        self.background: set[asyncio.Task] = set()

    def _spawn(self, work) -> None:
        task = asyncio.create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def _audit(self, comm: Communication, who: str) -> None:
        try:
            await comm.call("Mail", "/audit", {"who": who})
        except CommunicationError as error:
            log.warning("not audited: %s", error)

    async def _index(self, comm: Communication, who: str) -> None:
        await comm.query("people", "index", "people", {"_id": who})

    @EP("/hire")
    async def hire(self, comm: Communication, who: str) -> None:
        await comm.query("people", "insert", "people", {"_id": who})
        self._spawn(self._audit(comm, who))
        comm.respond({"hired": who}, status=201)

    @EP("/touch")
    async def touch(self, comm: Communication, who: str, quiet: bool = False) -> None:
        if not quiet:
            task = asyncio.create_task(self._index(comm, who))
            _running.add(task)
            task.add_done_callback(_running.discard)
        comm.respond({"running": len(_running)})

    @EP("/spawned-twice")
    async def spawned_twice(self, comm: Communication, who: str) -> None:
        self._spawn(self._audit(comm, who))
        self._spawn(self._index(comm, who))
        comm.respond({})

    @EP("/find/{kind}")
    async def find(self, comm: Communication, kind: str, value: str = "") -> None:
        finder = getattr(self, f"find_by_{kind}", None)
        if finder is None:
            comm.respond({"error": f"cannot find by {kind}"}, status=404)
            return
        comm.respond(await finder(comm, value))

    async def find_by_name(self, comm: Communication, value: str) -> list:
        return await comm.query("people", "by_name", "people", {"name": value})

    async def find_by_room(self, comm: Communication, value: str) -> list:
        rooms, people = await asyncio.gather(
            comm.query("people", "room", "rooms", {"_id": value}),
            comm.query("people", "by_room", "people", {"room": value}),
        )
        return [*rooms, *people]

    async def find_by_nothing(self, comm: Communication, value: str) -> list:
        return []

    @EP("/step/{name}")
    async def step(self, comm: Communication, name: Literal["open", "close"]) -> None:
        await getattr(self, "step_" + name)(comm)
        comm.respond({"done": name})

    async def step_open(self, comm: Communication) -> None:
        await comm.call("Mail", "/audit", {"who": "door"})

    async def step_close(self, comm: Communication) -> None:
        await comm.query("people", "close", "rooms", {})


class Events(MS):
    def setup(self) -> None:
        self.ledger = Ledger()

    @EP("/announce")
    def announced(self, comm: Communication) -> None:
        event = event_of(comm.params)
        try:
            answer = announce(event, comm)
        except CallError as error:
            comm.respond({"error": str(error)}, status=502)
            return
        comm.respond({"answer": answer})

    @EP("/weigh")
    def weigh(self, comm: Communication) -> None:
        event = event_of(comm.params)
        if weight(event) > 1:
            comm.query("people", "heavy", "events", {"office": event.office}).get()
        comm.respond({})

    @EP("/enter")
    def enter(self, comm: Communication) -> None:
        self.ledger.enter(event_of(comm.params), comm)
        comm.respond({})

    @EP("/promote")
    def promote(self, comm: Communication, who: str) -> None:
        self.ledger.enter(Promoted("here", who, 3), comm)
        announce(Promoted("here", who, 3), comm)
        comm.respond({})


class Mail(MS):
    @EP("/welcome")
    def welcome(self, comm: Communication, to: str) -> None:
        comm.respond({"sent": to})

    @EP("/farewell")
    def farewell(self, comm: Communication, to: str, reason: str) -> None:
        comm.respond({"sent": to})

    @EP("/audit")
    def audit(self, comm: Communication, who: str) -> None:
        comm.respond({})


class Pay(MS):
    @EP("/raise")
    def raised(self, comm: Communication, to: str, grade: int) -> None:
        comm.respond({"grade": grade})
