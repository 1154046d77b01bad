"""Requests that take back what they have done when a later step fails."""

import asyncio
import functools
import random
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
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

    @EP("/nested")
    def nested(self, comm):
        undo = []
        try:
            self._nested(comm, undo, "/reserve", "/release")
            self._nested(comm, undo, "/wrap", "/unwrap")
            comm.call("Bank", "/charge").get()
        except CallError:
            for action in reversed(undo):
                action()
            comm.respond({}, 409)
            return
        comm.respond({})

    def _nested(self, comm, undo, path, back):
        def take_back():
            comm.call("Depot", back).get()

        undo.append(take_back)
        comm.call("Depot", path).get()

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


@contextmanager
def reserved(comm, path="/reserve"):
    comm.call("Depot", path).get()
    try:
        yield path
    except CallError:
        comm.call("Depot", "/release").get()
        raise
    else:
        comm.call("Depot", "/ship").get()


@contextmanager
def wrapped(comm):
    box = comm.call("Depot", "/wrap").get()
    try:
        yield box
    finally:
        comm.call("Depot", "/unwrap").get()


@contextmanager
def tolerant(comm):
    try:
        yield
    except CommunicationError:
        comm.call("Bank", "/refund").get()


@contextmanager
def chosen(comm, gift):
    if gift:
        comm.call("Depot", "/wrap").get()
        yield "gift"
        comm.call("Depot", "/unwrap").get()
    else:
        yield None


@contextmanager
def both(comm):
    with reserved(comm), suppress(KeyError):
        with wrapped(comm) as box:
            yield box
        comm.call("Bank", "/charge").get()


@contextmanager
def begun(comm, path):
    future = comm.call("Depot", path)
    try:
        yield path
    finally:
        future.get()


@contextmanager
def held(comm, path):
    def undo():
        comm.call("Depot", "/release", {"path": path}).get()

    comm.call("Depot", path).get()
    done = False
    try:
        yield undo
        done = True
    finally:
        if not done:
            undo()


@contextmanager
def translated(comm):
    try:
        yield
    except CallError as error:
        comm.call("Depot", "/unwrap").get()
        raise KeyError("failed") from error


@contextmanager
def paths_of(comm):
    for path in ("/reserve",):
        comm.call("Depot", path).get()
        yield path
        comm.call("Depot", "/release").get()


class Lease:
    def __init__(self, comm):
        self.comm = comm

    def __enter__(self):
        self.comm.call("Depot", "/reserve").get()
        return self

    def __exit__(self, kind, error, trace):
        if kind:
            self.comm.call("Depot", "/release").get()
            return True
        self.comm.call("Depot", "/ship").get()


class Counter:
    def __init__(self, comm):
        self.comm = comm
        self.open = 0

    @contextmanager
    def one(self, path):
        self.comm.call("Depot", path).get()
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1
            if self.open == 0:
                self.comm.call("Depot", "/release").get()


class Stacks(MS):
    @EP("/callbacks")
    def callbacks(self, comm):
        with ExitStack() as stack:
            for path in ("/reserve", "/wrap"):
                comm.call("Depot", path).get()
                stack.callback(lambda p=path: comm.call("Depot", p).get())
            if comm.params.get("ok"):
                stack.pop_all()
        comm.respond({})

    @EP("/callbacks/library")
    def callbacks_library(self, comm):
        with ExitStack() as stack:
            comm.call("Depot", "/reserve").get()
            stack.callback(comm.call, "Depot", "/release")
            comm.call("Bank", "/charge").get()
            stack.pop_all()
        comm.respond({})

    @EP("/passed")
    def passed(self, comm):
        with ExitStack() as stack:
            self._prepare(comm, stack)
            comm.call("Bank", "/charge").get()
            stack.pop_all()
        comm.respond({})

    def _prepare(self, comm, stack):
        comm.call("Depot", "/reserve").get()
        stack.callback(self._undo, comm, "/release")
        comm.call("Depot", "/wrap").get()
        stack.callback(self._undo, comm, path="/unwrap")

    def _undo(self, comm, path):
        with suppress(MupError):
            comm.call("Depot", path).get()

    @EP("/prepared")
    def prepared(self, comm):
        with ExitStack() as stack:
            self._enter(comm, stack, "/reserve", "/release")
            self._enter(comm, stack, "/wrap", "/unwrap")
            comm.call("Bank", "/charge").get()
        comm.respond({})

    def _enter(self, comm, stack, path, back):
        @contextmanager
        def step():
            comm.call("Depot", path).get()
            try:
                yield
            finally:
                comm.call("Depot", back).get()

        stack.enter_context(step())
        comm.call("Depot", "/ship").get()

    @EP("/made")
    def made(self, comm):
        with self._made(comm):
            comm.call("Bank", "/charge").get()
        comm.respond({})

    def _made(self, comm):
        with ExitStack() as stack:
            for path in ("/reserve", "/wrap"):
                stack.enter_context(held(comm, path))
            return stack.pop_all()

    @EP("/entered")
    def entered(self, comm):
        with ExitStack() as stack:
            paths = [stack.enter_context(reserved(comm, path)) for path in ("/reserve", "/wrap")]
            comm.call("Bank", "/charge").get()
        comm.respond({"n": len(paths)})

    @EP("/optional")
    def optional(self, comm):
        try:
            with ExitStack() as stack:
                if comm.params.get("gift"):
                    stack.enter_context(wrapped(comm))
                if comm.params.get("ok"):
                    stack.enter_context(reserved(comm))
                comm.call("Bank", "/charge").get()
        except CallError:
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/nothing")
    def nothing(self, comm):
        with ExitStack() as stack:
            stack.enter_context(wrapped(comm) if comm.params.get("gift") else nullcontext())
            stack.enter_context(suppress(KeyError))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/tolerant")
    def tolerant(self, comm):
        with ExitStack() as stack:
            for manager in (tolerant, wrapped):
                stack.enter_context(manager(comm))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/translated")
    def translated(self, comm):
        try:
            with ExitStack() as stack:
                for manager in (wrapped, translated):
                    stack.enter_context(manager(comm))
                comm.call("Bank", "/charge").get()
        except KeyError:
            comm.respond({}, 500)
            return
        comm.respond({})

    @EP("/chosen")
    def chosen(self, comm):
        with ExitStack() as stack:
            for _ in range(1):
                kind = stack.enter_context(chosen(comm, comm.params.get("gift")))
            comm.call("Bank", "/charge").get()
            if kind == "gift":
                comm.call("Depot", "/ship").get()
        comm.respond({})

    @EP("/both")
    def both(self, comm):
        with ExitStack() as stack:
            for _ in range(1):
                stack.enter_context(both(comm))
            comm.call("Depot", "/release").get()
        comm.respond({})

    @EP("/begun")
    def begun(self, comm):
        with ExitStack() as stack:
            for path in ("/reserve", "/wrap"):
                stack.enter_context(begun(comm, path))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/held")
    def held(self, comm):
        with ExitStack() as stack:
            undos = [stack.enter_context(held(comm, path)) for path in ("/reserve", "/wrap")]
            if comm.params.get("ok"):
                undos[0]()
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/counted")
    def counted(self, comm):
        counter = Counter(comm)
        with ExitStack() as stack:
            for path in ("/reserve", "/wrap"):
                stack.enter_context(counter.one(path))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/paths")
    def paths(self, comm):
        with ExitStack() as stack:
            for make in (paths_of, wrapped):
                stack.enter_context(make(comm))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/closed")
    def closed(self, comm):
        stack = ExitStack()
        try:
            stack.enter_context(reserved(comm))
            comm.call("Bank", "/charge").get()
        finally:
            stack.close()
        comm.respond({})

    @EP("/closed/early")
    def closed_early(self, comm):
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(wrapped(comm))
            comm.call("Bank", "/charge").get()
            stack.close()
            comm.call("Depot", "/ship").get()
        comm.respond({})

    @EP("/pushed")
    def pushed(self, comm):
        def undo(kind, error, trace):
            if kind is not None:
                comm.call("Depot", "/release").get()

        with ExitStack() as stack:
            comm.call("Depot", "/reserve").get()
            stack.push(undo)
            stack.push(Lease(comm))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/lines")
    def lines(self, comm):
        with ExitStack() as stack:
            for sku in comm.params.get("skus", []):
                comm.call("Depot", "/reserve", {"sku": sku}).get()
                stack.callback(self._undo, comm, "/release")
            comm.call("Bank", "/charge").get()
            stack.pop_all()
        comm.respond({})

    @EP("/lines/entered")
    def lines_entered(self, comm):
        try:
            with ExitStack() as stack:
                for path in comm.params.get("skus", []):
                    stack.enter_context(held(comm, "/wrap"))
                comm.call("Bank", "/charge").get()
        except CallError:
            comm.respond({}, 502)
            return
        comm.respond({})

    @EP("/lines/either")
    def lines_either(self, comm):
        with ExitStack() as stack:
            for sku in comm.params.get("skus", []):
                if sku == "b":
                    stack.enter_context(held(comm, "/wrap"))
                else:
                    stack.enter_context(reserved(comm))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @contextmanager
    def _several(self, comm):
        with ExitStack() as stack:
            for path in ("/reserve", "/wrap"):
                stack.enter_context(reserved(comm, path))
            yield stack

    @EP("/several")
    def several(self, comm):
        with self._several(comm):
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/several/stacked")
    def several_stacked(self, comm):
        with ExitStack() as outer:
            for make in (self._several, wrapped):
                outer.enter_context(make(comm))
            comm.call("Bank", "/charge").get()
        comm.respond({})

    @EP("/retried")
    def retried(self, comm):
        for _ in range(2):
            with suppress(CallError), ExitStack() as stack:
                for path in ("/reserve", "/wrap"):
                    stack.enter_context(reserved(comm, path))
                comm.call("Bank", "/charge").get()
                break
        comm.respond({})


class AsyncLease:
    def __init__(self, comm, path):
        self.comm = comm
        self.path = path

    async def __aenter__(self):
        await self.comm.call("Depot", self.path)
        return self

    async def __aexit__(self, *details):
        await self.comm.call("Depot", "/release")


class Keeper:
    """Keeps a stack of its own, which it enters and leaves."""

    def __init__(self, comm):
        self.comm = comm
        self.stack = AsyncExitStack()

    async def __aenter__(self):
        await self.stack.__aenter__()
        for path in ("/reserve", "/wrap"):
            await self.stack.enter_async_context(AsyncLease(self.comm, path))
        return self

    async def __aexit__(self, *details):
        return await self.stack.__aexit__(*details)


class Connection:
    """Takes over the stack with which it was opened."""

    def __init__(self, comm):
        self.comm = comm

    async def __aenter__(self):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(AsyncLease(self.comm, "/reserve"))
            await stack.enter_async_context(AsyncLease(self.comm, "/wrap"))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, kind, error, trace):
        await self._stack.aclose()


class Locks(MS):
    runtime = "async"

    @asynccontextmanager
    async def _locked(self, comm, name):
        await comm.call("Depot", "/reserve", {"name": name})
        try:
            yield name
        finally:
            await comm.call("Depot", "/release", {"name": name})

    async def _undo(self, comm, path):
        await comm.call("Depot", path)

    @EP("/known")
    async def known(self, comm):
        async with AsyncExitStack() as stack:
            for name in ("x", "y"):
                await stack.enter_async_context(self._locked(comm, name))
            await comm.call("Bank", "/charge")
        comm.respond({})

    @EP("/all")
    async def all(self, comm):
        async with AsyncExitStack() as stack:
            for name in sorted(comm.params.get("skus", [])):
                await stack.enter_async_context(self._locked(comm, name))
            await comm.call("Bank", "/charge")
        comm.respond({})

    @EP("/mixed")
    async def mixed(self, comm):
        async with AsyncExitStack() as stack:
            for name in ("x",):
                await stack.enter_async_context(self._locked(comm, name))
                await stack.enter_async_context(AsyncLease(comm, "/wrap"))
            stack.push_async_callback(self._undo, comm, "/unwrap")
            await comm.call("Bank", "/charge")
        comm.respond({})

    @EP("/undone")
    async def undone(self, comm):
        async with AsyncExitStack() as stack:
            for name in comm.params.get("skus", []):
                await comm.call("Depot", "/reserve", {"name": name})
                stack.push_async_callback(self._undo, comm, "/release")
            await comm.call("Bank", "/charge")
            stack.pop_all()
        comm.respond({})

    @EP("/timed")
    async def timed(self, comm):
        try:
            async with asyncio.timeout(3), AsyncExitStack() as stack:
                for name in ("x", "y"):
                    await stack.enter_async_context(self._locked(comm, name))
                await comm.call("Bank", "/charge")
        except TimeoutError:
            comm.respond({}, 504)
            return
        comm.respond({})

    @EP("/keeper")
    async def keeper(self, comm):
        async with Keeper(comm):
            await comm.call("Bank", "/charge")
        comm.respond({})

    @EP("/connection")
    async def connection(self, comm):
        async with Connection(comm):
            await comm.call("Bank", "/charge")
        comm.respond({})

    @EP("/beside")
    async def beside(self, comm):
        async with AsyncExitStack() as stack:
            for name in ("x", "y"):
                await stack.enter_async_context(self._locked(comm, name))
            task = asyncio.create_task(self._undo(comm, "/ship"))
            await comm.call("Bank", "/charge")
            await task
        comm.respond({})

    @EP("/gathered")
    async def gathered(self, comm):
        async with AsyncExitStack() as stack:
            names = await asyncio.gather(
                *(stack.enter_async_context(self._locked(comm, name)) for name in ("x", "y"))
            )
            await comm.call("Bank", "/charge")
        comm.respond(names)

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
