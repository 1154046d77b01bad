from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import OrderedDict, defaultdict, deque
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Callable, NamedTuple, Protocol

from mup import EP, MS, Communication

log = logging.getLogger(__name__)


def timed(fn):
    @functools.wraps(fn)
    def inner(self, comm, *args, **kwargs):
        began = time.perf_counter()
        try:
            return fn(self, comm, *args, **kwargs)
        finally:
            log.info("%s took %.3f", fn.__name__, time.perf_counter() - began)

    return inner


def checked(*, role: str):
    def outer(fn):
        @functools.wraps(fn)
        def inner(self, comm, *args, **kwargs):
            if comm.params.get("role") != role:
                comm.respond({"error": fn.__name__}, status=403)
                return None
            return fn(self, comm, *args, **kwargs)

        return inner

    return outer


class Kind(str, Enum):
    BOOK = "book"
    TOY = "toy"


class Rule(NamedTuple):
    service: str
    path: str
    weight: int = 1


RULES = [Rule("Stock", "/level"), Rule("Price", "/quote", 2)]


@dataclass(frozen=True)
class Place:
    service: str
    path: str


PLACES = [Place("Stock", "/level"), Place("Price", "/quote")]
HANDLERS: dict[type[Exception], int] = {KeyError: 404, ValueError: 400}


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)


class Gate(MS):
    def setup(self) -> None:
        self.cache: OrderedDict[str, Any] = OrderedDict()
        self.seen = defaultdict(int)

    @EP("/timed")
    @timed
    def timed_one(self, comm: Communication) -> None:
        comm.respond(comm.call("Stock", "/level").get())

    @EP("/checked")
    @checked(role="admin")
    def checked_one(self, comm: Communication) -> None:
        comm.respond(comm.call("Stock", "/level").get())

    @EP("/rules")
    def rules(self, comm: Communication) -> None:
        futures = {rule: comm.call(rule.service, rule.path) for rule in RULES}
        total = sum(rule.weight * len(f.get()) for rule, f in futures.items())
        comm.respond(total)

    @EP("/handlers")
    def handlers(self, comm: Communication) -> None:
        try:
            found = comm.call("Stock", "/level").get()
            value = found["value"]
        except tuple(HANDLERS) as error:
            comm.respond({"error": str(error)}, status=HANDLERS[type(error)])
        else:
            comm.respond(value)

    @EP("/lru")
    def lru(self, comm: Communication) -> None:
        key = comm.params["key"]
        if (hit := self.cache.get(key)) is not None:
            self.cache.move_to_end(key)
            comm.respond(hit)
            return
        value = comm.call("Price", "/quote", {"key": key}).get()
        self.cache[key] = value
        while len(self.cache) > 100:
            self.cache.popitem(last=False)
        comm.respond(value)

    @EP("/cart")
    def cart(self, comm: Communication) -> None:
        cart = Cart(items=comm.params.get("items", []))
        if not cart:
            comm.respond([])
            return
        cart.notes["n"] = len(cart)
        comm.respond([comm.call("Price", "/quote", {"key": i}).get() for i in cart.items])

    @EP("/kind")
    def kind(self, comm: Communication) -> None:
        try:
            kind = Kind(comm.params["kind"])
        except ValueError:
            comm.respond({"error": "kind"}, status=422)
            return
        match kind:
            case Kind.BOOK:
                answer = comm.call("Stock", "/level").get()
            case Kind.TOY:
                answer = comm.call("Price", "/quote").get()
        comm.respond(answer)

    @EP("/stack")
    def stack(self, comm: Communication) -> None:
        with ExitStack() as stack:
            stack.callback(log.info, "done")
            spans = [stack.enter_context(self.span(n)) for n in ("a", "b")]
            found = comm.call("Stock", "/level").get()
        comm.respond([found, len(spans)])

    @contextmanager
    def span(self, name: str):
        began = time.perf_counter()
        try:
            yield name
        finally:
            self.seen[name] += time.perf_counter() - began

    @EP("/optional-lock")
    def optional_lock(self, comm: Communication) -> None:
        guard = self.span("x") if comm.params.get("trace") else nullcontext()
        with guard:
            comm.respond(comm.call("Stock", "/level").get())

    @EP("/queue")
    def queue(self, comm: Communication) -> None:
        todo = deque(["Stock", "Price"])
        answers = []
        while todo:
            service = todo.popleft()
            path = "/level" if service == "Stock" else "/quote"
            answers.append(comm.call(service, path).get())
        comm.respond(answers)

    @EP("/sorted")
    def sorted_(self, comm: Communication) -> None:
        rows = comm.query("db", "all", "rows", {}).get()
        rows.sort(key=itemgetter("rank"), reverse=True)
        best, *rest = rows or [None]
        if best is None:
            comm.respond(status=404)
        else:
            comm.respond({"best": best, "price": comm.call("Price", "/quote", best).get()})

    @EP("/paging")
    def paging(self, comm: Communication) -> None:
        page, size = divmod(int(comm.params.get("at", 0)), 10)
        rows = comm.query("db", "page", "rows", {"page": page}).get()
        more = len(rows) == 10
        comm.respond({"rows": rows, "next": page + 1 if more else None, "size": size})

    @EP("/first")
    def first(self, comm: Communication) -> None:
        for service, path in (("Stock", "/level"), ("Price", "/quote")):
            answer = comm.call(service, path).get()
            if answer:
                break
        else:
            comm.respond(status=404)
            return
        comm.respond(answer)

    @EP("/any")
    def any_(self, comm: Communication) -> None:
        ok = any(comm.call("Stock", "/level", {"i": i}).get() for i in range(3))
        comm.respond(ok)

    @EP("/dispatch")
    def dispatch(self, comm: Communication) -> None:
        action = getattr(self, f"_do_{comm.params['action']}", None)
        if action is None:
            comm.respond(status=404)
            return
        action(comm)

    def _do_stock(self, comm: Communication) -> None:
        comm.respond(comm.call("Stock", "/level").get())

    def _do_price(self, comm: Communication) -> None:
        comm.respond(comm.call("Price", "/quote").get())

    @EP("/stack3")
    def stack3(self, comm: Communication) -> None:
        with ExitStack() as stack:
            for n in ("a", "b"):
                stack.enter_context(self.span(n))
            found = comm.call("Stock", "/level").get()
        comm.respond(found)

    @EP("/stack4")
    def stack4(self, comm: Communication) -> None:
        with ExitStack() as stack:
            spans = [stack.enter_context(self.span(n)) for n in ("a", "b")]
            found = comm.call("Stock", "/level").get()
        comm.respond(found)

    @EP("/rules1")
    def rules1(self, comm: Communication) -> None:
        futures = {rule: comm.call(rule.service, rule.path) for rule in RULES}
        comm.respond([f.get() for f in futures.values()])

    @EP("/rules2")
    def rules2(self, comm: Communication) -> None:
        futures = {rule.service: comm.call(rule.service, rule.path) for rule in RULES}
        comm.respond([f.get() for rule, f in futures.items()])

    @EP("/rules3")
    def rules3(self, comm: Communication) -> None:
        futures = {rule: comm.call(rule.service, rule.path) for rule in PLACES}
        comm.respond([f.get() for rule, f in futures.items()])

    @EP("/rules4")
    def rules4(self, comm: Communication) -> None:
        futures = [(rule, comm.call(rule.service, rule.path)) for rule in PLACES]
        comm.respond(sum(len(f.get()) for rule, f in futures))

    @EP("/rules5")
    def rules5(self, comm: Communication) -> None:
        futures = {rule.service: comm.call(rule.service, rule.path) for rule in RULES}
        comm.respond(sum(len(f.get()) for rule, f in futures.items()))

    @EP("/rules6")
    def rules6(self, comm: Communication) -> None:
        futures = {rule: comm.call(rule.service, rule.path) for rule in RULES}
        comm.respond({rule.path: f.get() for rule, f in futures.items()})


class Stock(MS):
    @EP("/level")
    def level(self, comm: Communication) -> None:
        comm.respond({"value": 3})


class Price(MS):
    runtime = "async"

    @EP("/quote")
    async def quote(self, comm: Communication) -> None:
        async with self.limited(), asyncio.timeout(3):
            rows = await comm.query("db", "find", "prices", {})
        comm.respond(rows)

    @asynccontextmanager
    async def limited(self):
        yield
