"""Payments, search, chat and reports."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

import core
from core import (
    GATEWAYS,
    Conflict,
    DomainError,
    Gateway,
    Missing,
    Pipeline,
    Unit,
    answers,
    cached,
    gateway,
    lease,
    with_retry,
)

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError


class Priority(IntEnum):
    LOW = 1
    NORMAL = 5
    HIGH = 9


class Channel(str, Enum):
    MAIL = "mail"
    PUSH = "push"

    @property
    def path(self) -> str:
        return f"/{self.value}"


class Payments(MS):
    runtime = "async"
    default = "stripe"

    @EP("/pay")
    @answers
    async def pay(self, comm: Communication):
        kind = comm.params.get("via", self.default)
        provider = gateway(kind, comm)
        async with lease(comm, "account"):
            receipt = await provider.charge(comm.params.get("amount", 1))
        return {"receipt": receipt}, 201

    @EP("/refund/{id}")
    @answers
    async def refund(self, comm, id: str):
        order = await self._order(comm, id)
        await gateway(order.get("via", "wallet"), comm).refund(id)
        return {}

    async def _order(self, comm, id):
        rows = await comm.query("shop", "order", "orders", {"_id": id})
        if not rows:
            raise Missing("order", id=id)
        return rows[0]

    @EP("/transfer")
    @answers
    async def transfer(self, comm):
        async with Unit(comm, "me") as unit:
            debit, credit = await asyncio.gather(
                comm.call("Wallet", "/debit"), comm.call("Wallet", "/credit"), return_exceptions=True
            )
            if isinstance(debit, Exception) or isinstance(credit, Exception):
                raise Conflict("transfer")
            unit.record("moved", amount=1)
            if comm.params.get("large"):
                unit.record("audited")
            await unit.commit()
        return {"ok": True}

    @EP("/split")
    @answers
    async def split(self, comm):
        shares = comm.params.get("shares", {})
        async with asyncio.TaskGroup() as group:
            tasks = {who: group.create_task(self._share(comm, who, part)) for who, part in shares.items()}
        return {who: task.result() for who, task in tasks.items()}

    async def _share(self, comm, who, part):
        return await comm.call("Wallet", "/debit", {"who": who, "part": part})

    @EP("/quote")
    @answers
    async def quote(self, comm):
        offers = []
        for name in ("Stripe", "Wallet"):
            with contextlib.suppress(CallTimeoutError):
                offers.append(await comm.call(name, "/fee", timeout=0.5))
        if not offers:
            raise DomainError("no offer")
        return {"offers": len(offers)}

    @EP("/gateways")
    @answers
    async def gateways(self, comm):
        states = await asyncio.gather(
            *(comm.call(cls.name, "/ping") for cls in GATEWAYS.values()), return_exceptions=True
        )
        return {name: not isinstance(state, Exception) for name, state in zip(GATEWAYS, states)}


class Search(MS):
    runtime = "async"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.slots = asyncio.Semaphore(3)
        self.latest: dict[str, list] = defaultdict(list)

    @cached(ttl=5)
    async def _terms(self, comm, key):
        return await comm.call("Store", "/terms", {"key": key})

    @EP("/search")
    @answers
    async def search(self, comm):
        terms = await self._terms(comm, comm.params.get("q", ""))
        hits = await comm.call("Store", "/hits", {"terms": terms}) or []
        return await asyncio.gather(*map(functools.partial(self._detail, comm), hits))

    async def _detail(self, comm, id):
        async with self.slots:
            try:
                return await comm.call("Store", "/detail", {"id": id}, timeout=1)
            except CallTimeoutError:
                return {"id": id, "partial": True}

    @EP("/suggest")
    @answers
    async def suggest(self, comm):
        clean = Pipeline() >> str.strip >> str.lower >> functools.partial(self._expand, comm)
        return await clean(comm.params.get("q", ""))

    async def _expand(self, comm, text):
        return await comm.call("Store", "/terms", {"q": text})

    @EP("/reindex")
    @answers
    async def reindex(self, comm):
        done = 0
        async for batch in self._batches(comm):
            await asyncio.gather(*[comm.call("Store", "/index", {"id": id}) for id in batch])
            done += len(batch)
        return {"done": done}

    async def _batches(self, comm):
        page = 0
        while rows := await comm.call("Store", "/page", {"page": page}):
            yield rows
            page += 1

    @EP("/first")
    @answers
    async def first(self, comm):
        async def ask(path):
            return await comm.call("Store", path)

        tasks = [asyncio.create_task(ask(p)) for p in ("/terms", "/hits")]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=2)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return [task.result() for task in done]

    @EP("/similar/{id}")
    @answers
    async def similar(self, comm, id):
        try:
            async with asyncio.timeout(0.8):
                vector = await comm.call("Store", "/detail", {"id": id})
                return await comm.call("Store", "/near", {"v": vector})
        except TimeoutError:
            return []

    @EP("/related")
    @answers
    async def related(self, comm):
        seen, queue = set(), ["root"]
        while queue and len(seen) < 5:
            id = queue.pop(0)
            if id in seen:
                continue
            seen.add(id)
            queue.extend(await comm.call("Store", "/links", {"id": id}) or [])
        return sorted(seen)

    @EP("/watch")
    @answers
    async def watch(self, comm):
        stop = asyncio.Event()
        results = []

        async def producer():
            for _ in range(2):
                results.append(await comm.call("Store", "/hits"))
            stop.set()

        async def consumer():
            await stop.wait()
            return await comm.call("Store", "/index")

        await asyncio.gather(producer(), consumer())
        return len(results)


@dataclass(slots=True)
class Message:
    room: str
    text: str
    priority: Priority = Priority.NORMAL

    @classmethod
    def of(cls, comm) -> Message:
        params = comm.params
        return cls(
            params.get("room", "main"), params.get("text", ""), Priority(int(params.get("priority", 5)))
        )


class Chat(MS):
    runtime = "async"
    commands: dict[str, str] = {}

    def command(name, commands={}):  # noqa: B006, N805
        def register(f):
            commands[name] = f
            return f

        register.table = commands
        return register

    @EP("/send")
    @answers
    async def send(self, comm):
        message = Message.of(comm)
        match message:
            case Message(text=""):
                raise DomainError("empty")
            case Message(text=str(text)) if text.startswith("/"):
                return await self._command(comm, text[1:])
            case Message(priority=Priority.HIGH):
                await comm.call("Events", "/alert")
        members = await comm.call("Store", "/members", {"room": message.room}) or []
        for channel in Channel:
            await comm.call("Notify", channel.path, {"to": members})
        return {"sent": len(members)}, 202

    async def _command(self, comm, name):
        action = getattr(self, "do_" + name, None)
        if action is None or not callable(action):
            raise Missing(name)
        return await action(comm)

    async def do_who(self, comm):
        return await comm.call("Store", "/members")

    async def do_clear(self, comm):
        async with lease(comm, "room"):
            return await comm.call("Store", "/rollback")

    @EP("/broadcast")
    @answers
    async def broadcast(self, comm):
        rooms = await comm.call("Store", "/rooms") or []
        pending = [comm.call("Notify", "/push", {"room": room}) for room in rooms]
        failures = 0
        for future in asyncio.as_completed(pending):
            try:
                await future
            except CallError:
                failures += 1
        if failures:
            await comm.call("Events", "/alert", {"n": failures})
        return {"rooms": len(rooms), "failures": failures}

    @EP("/history")
    @answers
    async def history(self, comm):
        pages = itertools.count(1)
        out: list = []
        while len(out) < 3:
            rows = await comm.call("Store", "/page", {"page": next(pages)}) or []
            if not rows:
                break
            out += rows
        return out[:3]

    @EP("/presence")
    @answers
    async def presence(self, comm):
        who = comm.params.get("who") or []
        online = {}
        for name, reply in zip(
            who, await asyncio.gather(*(comm.call("Store", "/online", {"n": n}) for n in who))
        ):
            online[name] = bool(reply)
        if not any(online.values()):
            await comm.call("Notify", "/mail")
        return online

    @EP("/later")
    async def later(self, comm):
        comm.respond({}, 202)
        await asyncio.sleep(0.1)
        try:
            await comm.call("Notify", "/push")
        except CallError:
            await comm.call("Notify", "/mail")


class Reports(MS):
    runtime = "async"
    sections = ("sales", "stock")

    @EP("/report")
    @answers
    async def report(self, comm):
        parts = {name: await getattr(self, f"_{name}")(comm) for name in self.sections}
        return parts

    async def _sales(self, comm):
        return await comm.call("Store", "/sum")

    async def _stock(self, comm):
        return await comm.call("Store", "/hits")

    @EP("/report/parallel")
    @answers
    async def parallel(self, comm):
        parts = await asyncio.gather(*(getattr(self, f"_{name}")(comm) for name in self.sections))
        return dict(zip(self.sections, parts, strict=True))

    @EP("/compare")
    @answers
    async def compare(self, comm):
        this, last = (comm.call("Store", "/sum", {"month": m}) for m in (0, -1))
        change = (await this or 0) - (await last or 0)
        if change < 0:
            await comm.call("Events", "/alert")
        return {"change": change}

    @EP("/drill")
    @answers
    async def drill(self, comm):
        total = 0
        for year in comm.params.get("years", []):
            months = await comm.call("Store", "/page", {"year": year}) or []
            sums = await asyncio.gather(*[comm.call("Store", "/sum", {"m": m}) for m in months])
            total += sum(filter(None, sums))
        return total

    @EP("/guarded")
    @answers
    async def guarded(self, comm):
        for check in (self._allowed, self._fresh):
            if (problem := await check(comm)) is not None:
                raise problem
        return await comm.call("Store", "/sum")

    async def _allowed(self, comm):
        if not await comm.call("Store", "/members"):
            return Missing("member")
        return None

    async def _fresh(self, comm):
        if await comm.call("Store", "/online"):
            return None
        return Conflict("stale")

    @EP("/weekly")
    @answers
    async def weekly(self, comm):
        @with_retry(2, retry_on=(CallError,))
        async def load(day):
            return await comm.call("Store", "/sum", {"day": day})

        return [await load(day) for day in range(2)]

    @EP("/exported")
    @answers
    async def exported(self, comm):
        job = await comm.call("Store", "/begin")
        for attempt in itertools.count():
            state = await comm.call("Store", "/online", {"job": job})
            if state:
                return {"attempts": attempt + 1}
            if attempt >= 3:
                raise DomainError("late")
            await asyncio.sleep(0.5 * 2**attempt)
