"""Batched loading and resolving of fields, as a gateway for web pages does."""

import asyncio
import collections
import logging
import operator
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Generic, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, MupError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
logger = logging.getLogger(__name__)


class Loader(Generic[K, V]):
    """Loads many keys with one call."""

    def __init__(self, load: Callable[[list[K]], Awaitable[dict[K, V]]]) -> None:
        self._load = load
        self._known: dict[K, V] = {}

    async def many(self, keys: Sequence[K]) -> list[V | None]:
        missing = [k for k in dict.fromkeys(keys) if k not in self._known]
        if missing:
            self._known.update(await self._load(missing))
        return [self._known.get(k) for k in keys]

    async def one(self, key: K) -> V | None:
        (value,) = await self.many([key])
        return value


@dataclass
class Page:
    title: str
    parts: dict[str, Any] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, **self.parts, **({"errors": self.errors} if self.errors else {})}


class Part:
    name = ""
    required = False
    timeout = 0.5

    async def load(self, comm: Communication, context: dict[str, Any]) -> Any:
        raise NotImplementedError

    async def render(self, comm: Communication, context: dict[str, Any], page: Page) -> None:
        try:
            page.parts[self.name] = await asyncio.wait_for(self.load(comm, context), self.timeout)
        except (asyncio.TimeoutError, MupError) as error:
            if self.required:
                raise
            logger.info("%s: %s", self.name, error)
            page.errors.append(self.name)


class Header(Part):
    name = "header"

    async def load(self, comm, context):
        if context["user"] is None:
            return {"login": True}
        return await comm.call("Users", "/badge", {"user": context["user"]})


class Product(Part):
    name = "product"
    required = True

    async def load(self, comm, context):
        product, stock = await asyncio.gather(
            comm.call("Catalog", "/product", {"id": context["id"]}),
            comm.query("shop", "stock", "stock", {"_id": context["id"]}),
        )
        return {**product, "stock": len(stock)}


class Reviews(Part):
    name = "reviews"
    timeout = 0.2

    async def load(self, comm, context):
        reviews = await comm.call("Reviews", "/latest", {"id": context["id"]})
        authors = await Loader(partial(_names, comm)).many([r["author"] for r in reviews])
        return [{**r, "author": a} for r, a in zip(reviews, authors)]


async def _names(comm, ids):
    answer = await comm.call("Users", "/names", {"ids": ids})
    return dict(zip(ids, answer.get("names", [])))


PRODUCT_PAGE = (Header(), Product(), Reviews())


class CircuitBreaker:
    def __init__(self, limit: int = 3) -> None:
        self.limit = limit
        self.failures = collections.Counter()

    def is_open(self, name: str) -> bool:
        return self.failures[name] >= self.limit

    async def call(self, name: str, make: Callable[[], Awaitable[Any]], fallback: Any = None) -> Any:
        if self.is_open(name):
            return fallback
        try:
            result = await make()
        except MupError:
            self.failures[name] += 1
            return fallback
        self.failures[name] = 0
        return result
