"""Requests that take back what they have done when a later step fails."""

import asyncio
import functools
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError


class Saga:
    """Steps, and by path what takes each of them back."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.undo: list[str] = []

    def step(self, path: str, undo: str | None = None):
        reply = self.comm.call("Depot", path).get()
        if undo:
            self.undo.append(undo)
        return reply

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            for path in reversed(self.undo):
                with suppress(CallError):
                    self.comm.call("Depot", path).get()
        return False


class Rollback:
    def __init__(self, comm):
        self._comm = comm
        self._undo = []

    def do(self, service, path, undo=None):
        reply = self._comm.call(service, path).get()
        if undo is not None:
            self._undo.append((service, undo))
        return reply

    def all(self):
        while self._undo:
            service, path = self._undo.pop()
            try:
                self._comm.call(service, path).get()
            except CommunicationError:
                continue


class Actions:
    def __init__(self):
        self.actions: list[Callable[[], object]] = []

    def run(self, action, undo):
        result = action()
        self.actions.append(undo)
        return result

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            return
        while self.actions:
            self.actions.pop()()


@dataclass
class Journal:
    comm: Communication
    entries: list = field(default_factory=list)

    def note(self, function, *args):
        self.entries.append(functools.partial(function, *args))

    def unwind(self):
        for entry in self.entries[::-1]:
            with suppress(MupError):
                entry()
        self.entries.clear()


class Lifo:
    def __init__(self, comm):
        self.comm = comm
        self.done = deque()

    def call(self, path, undo):
        self.comm.call("Depot", path).get()
        self.done.appendleft(undo)

    def back(self):
        for path in self.done:
            self.comm.call("Depot", path).get()


class Orders(MS):
    @EP("/saga")
    def saga(self, comm: Communication):
        with Saga(comm) as saga:
            saga.step("/reserve", "/release")
            saga.step("/wrap", "/unwrap")
            saga.step("/ship")
        comm.respond({})

    @EP("/saga/answered")
    def saga_answered(self, comm):
        try:
            with Saga(comm) as saga:
                saga.step("/reserve", "/release")
                if comm.params.get("gift"):
                    saga.step("/wrap", "/unwrap")
                saga.step("/ship", "/return")
                comm.call("Bank", "/charge").get()
        except CallError:
            comm.respond({"error": "failed"}, 502)
            return
        comm.respond({})

    @EP("/rollback")
    def rollback(self, comm):
        work = Rollback(comm)
        try:
            work.do("Depot", "/reserve", "/release")
            work.do("Bank", "/charge", "/refund")
            work.do("Depot", "/ship")
        except MupError:
            work.all()
            comm.respond({"error": "failed"}, 502)
        else:
            comm.respond({})

    @EP("/actions")
    def actions(self, comm):
        with Actions() as actions:
            actions.run(
                lambda: comm.call("Depot", "/reserve").get(), lambda: comm.call("Depot", "/release").get()
            )
            actions.run(
                lambda: comm.call("Bank", "/charge").get(), lambda: comm.call("Bank", "/refund").get()
            )
            comm.call("Depot", "/ship").get()
        comm.respond({})

    def _ask(self, comm, service, path):
        return comm.call(service, path).get()

    @EP("/journal")
    def journal(self, comm):
        journal = Journal(comm)
        try:
            self._ask(comm, "Depot", "/reserve")
            journal.note(self._ask, comm, "Depot", "/release")
            self._ask(comm, "Bank", "/charge")
            journal.note(self._ask, comm, "Bank", "/refund")
            self._ask(comm, "Depot", "/ship")
        except Exception:
            journal.unwind()
            raise
        comm.respond({})

    @EP("/lifo")
    def lifo(self, comm):
        lifo = Lifo(comm)
        try:
            lifo.call("/reserve", "/release")
            lifo.call("/wrap", "/unwrap")
            comm.call("Bank", "/charge").get()
        except CallError as error:
            lifo.back()
            comm.respond({"error": str(error)}, 409)
            return
        comm.respond({})

    @EP("/slice")
    def slice(self, comm):
        undo = []
        try:
            comm.call("Depot", "/reserve").get()
            undo.append("/release")
            comm.call("Depot", "/wrap").get()
            undo += ["/unwrap"]
            comm.call("Bank", "/charge").get()
        except CommunicationError:
            for path in undo[::-1]:
                comm.call("Depot", path).get()
            comm.respond({}, 503)
            return
        comm.respond({})

    @EP("/table")
    def table(self, comm):
        done = []
        try:
            for path, undo in (("/reserve", "/release"), ("/wrap", "/unwrap"), ("/ship", None)):
                comm.call("Depot", path).get()
                done.append(undo)
        except CallError:
            for undo in reversed(done):
                if undo:
                    comm.call("Depot", undo).get()
            comm.respond({"undone": len(done)}, 409)
            return
        comm.respond({})

    @EP("/bodies")
    def bodies(self, comm):
        undo: list[tuple[str, str, dict]] = []
        try:
            hold = comm.call("Depot", "/reserve").get()
            undo.insert(0, ("Depot", "/release", {"hold": hold}))
            payment = comm.call("Bank", "/charge").get()
            undo.insert(0, ("Bank", "/refund", {"payment": payment}))
            comm.call("Depot", "/ship").get()
        except MupError:
            for service, path, body in undo:
                comm.call(service, path, body).get()
            raise
        comm.respond({})

    @EP("/until-empty")
    def until_empty(self, comm):
        undo = ["/unwrap"]
        try:
            comm.call("Depot", "/wrap").get()
            undo.append("/release")
            comm.call("Depot", "/reserve").get()
        except CallError:
            while True:
                try:
                    path = undo.pop()
                except IndexError:
                    break
                comm.call("Depot", path).get()
            raise
        comm.respond({})

    @EP("/lines")
    def lines(self, comm):
        undo = []
        try:
            for sku in comm.params.get("skus", []):
                comm.call("Depot", "/reserve", {"sku": sku}).get()
                undo.append(("Depot", "/release", sku))
            comm.call("Bank", "/charge").get()
            undo.append(("Bank", "/refund", None))
            comm.call("Depot", "/ship").get()
        except CallError:
            for service, path, sku in reversed(undo):
                comm.call(service, path, {"sku": sku}).get()
            comm.respond({}, 409)
            return
        comm.respond({})

    @EP("/lines/bound")
    def lines_bound(self, comm):
        undo = []
        try:
            for sku in comm.params.get("skus", []):
                comm.call("Depot", "/reserve", {"sku": sku}).get()
                undo.append(functools.partial(comm.call, "Depot", "/release", {"sku": sku}))
            comm.call("Bank", "/charge").get()
        except CallError:
            while undo:
                undo.pop()().get()
            raise
        comm.respond({})

    @EP("/extras")
    def extras(self, comm):
        extras = []
        if comm.params.get("gift"):
            extras.append("/wrap")
        if comm.params.get("ok"):
            extras.append("/ship")
        if comm.params.get("skus"):
            extras.append("/reserve")
        for path in extras:
            comm.call("Depot", path).get()
        comm.respond({"n": len(extras)})

    @EP("/newest")
    def newest(self, comm):
        extras = ["/ship"]
        if comm.params.get("gift"):
            extras.append("/wrap")
        comm.call("Depot", extras[-1]).get()
        comm.call("Depot", extras.pop()).get()
        if extras:
            comm.call("Depot", extras[0]).get()
        comm.respond({})

    @EP("/shuffled")
    def shuffled(self, comm):
        undo = []
        try:
            comm.call("Depot", "/reserve").get()
            undo.append("/release")
            comm.call("Depot", "/wrap").get()
            undo.append("/unwrap")
            comm.call("Bank", "/charge").get()
        except CallError:
            random.shuffle(undo)
            for path in undo:
                comm.call("Depot", path).get()
            raise
        comm.respond({})

    @EP("/early")
    def early(self, comm):
        undo = []
        left = iter(undo)
        try:
            comm.call("Depot", "/reserve").get()
            undo.append("/release")
            comm.call("Bank", "/charge").get()
        except CallError:
            for path in left:
                comm.call("Depot", path).get()
            raise
        comm.respond({})


class Locks(MS):
    runtime = "async"

    @EP("/shared")
    async def shared(self, comm):
        paths = ["/ship"]

        async def wrap():
            await comm.call("Depot", "/wrap")
            paths.append("/unwrap")

        await asyncio.create_task(wrap())
        for path in paths:
            await comm.call("Depot", path)
        comm.respond({})

    @EP("/shared/kind")
    async def shared_kind(self, comm):
        found = {"kind": "gift"}

        async def look():
            await comm.call("Depot", "/wrap")
            found["kind"] = "plain"

        await asyncio.create_task(look())
        if found["kind"] == "gift":
            await comm.call("Depot", "/ship")
        comm.respond({})


class Depot(MS):
    @EP("/reserve")
    def reserve(self, comm):
        comm.respond({})

    @EP("/release")
    def release(self, comm):
        comm.respond({})

    @EP("/return")
    def give_back(self, comm):
        comm.respond({})

    @EP("/wrap")
    def wrap(self, comm):
        comm.respond({})

    @EP("/unwrap")
    def unwrap(self, comm):
        comm.respond({})

    @EP("/ship")
    def ship(self, comm):
        comm.respond({})


class Bank(MS):
    @EP("/charge")
    def charge(self, comm):
        comm.respond({})

    @EP("/refund")
    def refund(self, comm):
        comm.respond({})
