"""Travel, media and admin: builders, observers, mixins, queues."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import logging
import operator
import os
import random
import time
from abc import abstractmethod
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from functools import cache, lru_cache, partial
from itertools import chain, islice, zip_longest
from typing import Any, Callable, ClassVar, Optional, Union
from weakref import WeakSet

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError

try:
    import orjson as json
except ImportError:
    import json

current = contextvars.ContextVar("current", default=None)
Money = namedtuple("Money", "amount currency", defaults=("EUR",))
REGIONS = {("eu", True): "EuPro", ("eu", False): "Eu", ("us", True): "UsPro", ("us", False): "Us"}


# Fluent requests


class Request:
    def __init__(self, comm, service):
        self._comm, self._service = comm, service
        self._params: dict = {}
        self._path = "/"
        self._timeout = None
        self._default = ...

    def to(self, path):
        self._path = path
        return self

    def with_(self, **params):
        self._params |= params
        return self

    def within(self, seconds):
        self._timeout = seconds
        return self

    def otherwise(self, default):
        self._default = default
        return self

    def send(self):
        return self._comm.call(self._service, self._path, self._params, timeout=self._timeout)

    def get(self):
        try:
            return self.send().get()
        except CallError:
            if self._default is ...:
                raise
            return self._default


# Observers


class Subject:
    def __init__(self):
        self._observers: list[Callable] = []

    def attach(self, observer):
        self._observers.append(observer)
        return self

    def notify(self, *args):
        for observer in self._observers:
            observer(*args)


def mail(comm, booking):
    comm.call("Notify", "/mail", {"booking": booking})


def points(comm, booking):
    if booking.get("member"):
        comm.call("Loyalty", "/add", {"booking": booking}).get()


# Class-based views


class View:
    methods = ("GET", "POST")

    def __init__(self, service):
        self.service = service

    def dispatch(self, comm):
        method = comm.method
        if method not in self.methods:
            return {"error": "method"}, 405
        handler = getattr(self, method.lower(), None)
        if handler is None:
            return {"error": "method"}, 405
        return handler(comm)


class Paged:
    size = 2

    def page(self, comm, service, path):
        number = int(comm.params.get("page", 1))
        rows = comm.call(service, path, {"offset": (number - 1) * self.size}).get()
        return list(islice(rows, self.size))


class Checked:
    role = "user"

    def dispatch(self, comm):
        session = comm.call("Sessions", "/get", {"token": comm.headers.get("authorization", "")}).get()
        if self.role not in session.get("roles", ()):
            return {"error": "role"}, 403
        return super().dispatch(comm)


class Trips(Checked, Paged, View):
    def get(self, comm):
        return {"trips": self.page(comm, "Trips", "/list")}, 200

    def post(self, comm):
        return comm.call("Trips", "/put", comm.params).get(), 201


class Audit(Checked, View):
    role = "admin"
    methods = ("GET",)

    def get(self, comm):
        return comm.call("Trips", "/audit").get(), 200


@dataclass
class Quote:
    nights: int
    rate: float = 100.0
    member: InitVar[bool] = False
    extras: list[str] = field(default_factory=list)
    discount: float = field(init=False, default=0.0)

    def __post_init__(self, member):
        if member:
            self.discount = 0.1

    @property
    def total(self):
        return self.nights * self.rate * (1 - self.discount)


def walk(tree):
    yield tree["id"]
    for child in tree.get("children", []):
        yield from walk(child)


@cache
def region(country):
    return "eu" if country in {"de", "fr", "it"} else "us"


@lru_cache(maxsize=None)
def service_of(country, pro):
    return REGIONS[region(country), pro]


class Travel(MS):
    pool_size = 3

    def setup(self):
        self.booked = Subject().attach(mail).attach(points)
        self.trips = Trips(self)
        self.audits = Audit(self)

    @EP("/hotel")
    def hotel(self, comm):
        hotel = Request(comm, "Hotels").to("/get").with_(id=comm.params.get("id")).within(2).get()
        reviews = Request(comm, "Reviews").to("/of").with_(hotel=hotel.get("id")).otherwise([]).get()
        comm.respond({**hotel, "reviews": reviews})

    @EP("/book", method="POST")
    def book(self, comm):
        booking = comm.call("Hotels", "/book", comm.params).get()
        self.booked.notify(comm, booking)
        comm.respond(booking, 201)

    @EP("/trips")
    def trips_(self, comm):
        payload, status = self.trips.dispatch(comm)
        comm.respond(payload, status)

    @EP("/audit")
    def audit(self, comm):
        comm.respond(*self.audits.dispatch(comm))

    @EP("/region")
    def region_(self, comm):
        pro = bool(comm.params.get("pro"))
        service = service_of(comm.params.get("country", "de"), pro)
        comm.respond(comm.call(service, "/offers").get())

    @EP("/quote", method="POST")
    def quote(self, comm):
        member = comm.call("Loyalty", "/member", {"id": comm.params.get("user")}).get()
        quote = Quote(int(comm.params.get("nights", 1)), member=bool(member.get("gold")))
        if quote.discount:
            comm.call("Loyalty", "/used")
        comm.respond({"total": quote.total})

    @EP("/tree")
    def tree(self, comm):
        root = comm.call("Trips", "/tree").get()
        ids = list(walk(root))
        names = comm.call("Trips", "/names", {"ids": ids}).get()
        comm.respond(names)

    @EP("/merge", method="POST")
    def merge(self, comm):
        first, second = comm.params.get("first", []), comm.params.get("second", [])
        moved = 0
        for left, right in zip_longest(first, second):
            match left, right:
                case None, _:
                    continue
                case _, None:
                    comm.call("Trips", "/put", {"id": left}).get()
                    moved += 1
                case _:
                    comm.call("Trips", "/join", {"ids": [left, right]}).get()
        comm.respond({"moved": moved})

    @EP("/score")
    def score(self, comm):
        scores = Counter()

        def vote(service, weight):
            nonlocal total
            row = comm.call(service, "/score").get()
            scores[service] += row.get("score", 0) * weight
            total += weight

        total = 0
        vote("Hotels", 2)
        vote("Reviews", 1)
        if scores.most_common(1)[0][1] > 2:
            vote("Loyalty", 1)
        comm.respond({"score": sum(scores.values()) / total})


# Media


class Queue:
    def __init__(self, comm, workers):
        self.comm = comm
        self.queue: asyncio.Queue = asyncio.Queue()
        self.workers = workers
        self.results: list = []

    async def _work(self):
        while not self.queue.empty():
            item = self.queue.get_nowait()
            self.results.append(await self.comm.call("Encoder", "/encode", {"item": item}))

    async def run(self, items):
        for item in items:
            self.queue.put_nowait(item)
        await asyncio.gather(*(self._work() for _ in range(self.workers)))
        return self.results


def timed(f):
    @functools.wraps(f)
    async def wrapper(self, comm, *args, **kwargs):
        started = time.perf_counter()
        token = current.set(comm.request_id)
        try:
            return await f(self, comm, *args, **kwargs)
        finally:
            current.reset(token)
            ms = 1000 * (time.perf_counter() - started)
            if ms > 10_000:
                comm.call("Metrics", "/slow", {"name": f.__name__, "ms": ms})

    return wrapper


class Format(Enum):
    MP4 = auto()
    WEBM = auto()
    GIF = auto()

    @property
    def video(self):
        return self in (Format.MP4, Format.WEBM)


class Media(MS):
    runtime = "async"
    formats: ClassVar = {f.name.lower(): f for f in Format}

    @EP("/encode", method="POST")
    @timed
    async def encode(self, comm):
        form = self.formats.get(comm.params.get("format", "mp4"))
        if form is None:
            return comm.respond({"error": "format"}, 415)
        if form.video:
            parts = await comm.call("Encoder", "/split")
            encoded = await asyncio.gather(*[comm.call("Encoder", "/part", {"part": p}) for p in parts])
            result = await comm.call("Encoder", "/join", {"parts": encoded})
        else:
            result = await comm.call("Encoder", "/gif")
        comm.respond(result)

    @EP("/queue", method="POST")
    async def queue(self, comm):
        comm.respond(await Queue(comm, 2).run(comm.params.get("items", [])))

    @EP("/thumbs", method="POST")
    async def thumbs(self, comm):
        limit = asyncio.Semaphore(4)
        done = {}

        async def thumb(id):
            async with limit:
                done[id] = await comm.call("Images", "/thumb", {"id": id})

        await asyncio.gather(*map(thumb, comm.params.get("ids", [])))
        comm.respond(done)

    @EP("/fastest")
    async def fastest(self, comm):
        futures = [asyncio.ensure_future(comm.call(s, "/ping")) for s in ("Images", "Encoder")]
        answers = []
        for first in asyncio.as_completed(futures):
            answers.append(await first)
        comm.respond(answers)

    @EP("/upload", method="POST")
    async def upload(self, comm):
        upload = await comm.call("Storage", "/begin")
        parts, offset = [], 0
        try:
            while offset < int(comm.params.get("size", 0)):
                part = await comm.call("Storage", "/part", {"id": upload.get("id"), "offset": offset})
                parts.append(part)
                offset += 100
        except CallError:
            await comm.call("Storage", "/abort", {"id": upload.get("id")})
            raise
        else:
            await comm.call("Storage", "/finish", {"parts": parts})
        finally:
            comm.call("Metrics", "/upload", {"parts": len(parts)})
        comm.respond({"parts": len(parts)}, 201)

    @EP("/related")
    async def related(self, comm):
        tags = await comm.call("Tags", "/of", {"id": comm.params.get("id")})
        found = await asyncio.gather(*(comm.call("Tags", "/with", {"tag": t}) for t in tags[:3]))
        ids = set(chain.from_iterable(found)) - {comm.params.get("id")}
        best = sorted(ids, key=lambda id: -sum(id in f for f in found))[:10]
        if not best:
            best = await comm.call("Tags", "/popular")
        comm.respond(best)

    @EP("/moderate", method="POST")
    async def moderate(self, comm):
        checks = {"nudity": 0.9, "violence": 0.8}
        verdicts = {}
        async with asyncio.TaskGroup() as group:
            for name in checks:
                verdicts[name] = group.create_task(comm.call("Vision", f"/{name}"))
        flagged = [n for n, t in verdicts.items() if t.result().get("score", 0) > checks[n]]
        if flagged:
            await comm.call("Review", "/queue", {"flags": flagged})
        comm.respond({"flags": flagged})
