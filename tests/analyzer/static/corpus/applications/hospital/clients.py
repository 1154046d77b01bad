"""Clients of the services around us, blocking and not."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError, NoReplicaError

log = logging.getLogger("clinic.clients")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class CircuitOpen(Exception):
    pass


class Breaker:
    """Opens after some failures in a row."""

    def __init__(self, threshold: int = 2) -> None:
        self.threshold = threshold
        self.failures = 0

    @property
    def open(self) -> bool:
        return self.failures >= self.threshold

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.open:
                raise CircuitOpen(fn.__name__)
            try:
                result = fn(*args, **kwargs)
            except CommunicationError:
                self.failures += 1
                raise
            else:
                self.failures = 0
                return result

        return guarded


class BaseClient:
    service: ClassVar[str]
    timeout: ClassVar[float | None] = None

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def _send(self, path: str, **body: Any) -> Any:
        return self._comm.call(self.service, path, body or None, timeout=self.timeout).get()


class Retrying:
    """Mixin: sends again what was not received."""

    attempts = 3

    def _send(self, path: str, **body: Any) -> Any:
        last: Exception | None = None
        for attempt in range(self.attempts):
            try:
                return super()._send(path, **body)
            except (NoReplicaError, CallTimeoutError) as error:
                log.warning("%s: attempt %d", path, attempt + 1)
                last = error
        assert last is not None
        raise last


class Caching:
    def __init__(self, comm: Communication) -> None:
        super().__init__(comm)
        self._known: dict[str, Any] = {}

    def cached(self, key: str, load: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = load()
        return self._known[key]


class InsuranceClient(Retrying, Caching, BaseClient):
    service = "Insurance"

    def policy(self, number: str) -> dict[str, Any]:
        return self.cached(number, lambda: self._send("/policy", number=number))

    def approve(self, number: str, *, amount: float = 0.0) -> bool:
        return bool(self._send("/approve", number=number, amount=amount).get("approved"))


class RoomClient(BaseClient):
    service = "Rooms"
    attempts = 1

    reserve = functools.partialmethod(BaseClient._send, "/reserve")
    release = functools.partialmethod(BaseClient._send, "/release")

    @contextmanager
    def held(self, slot: str) -> Iterator[str]:
        room = self.reserve(slot=slot).get("room", "")
        try:
            yield room
        except Exception:
            self.release(room=room)
            raise


class Delegate:
    """Everything that is not here is done by the wrapped client."""

    def __init__(self, inner: Any, audit: list[str]) -> None:
        self._inner = inner
        self._audit = audit

    def __getattr__(self, name: str) -> Any:
        self._audit.append(name)
        return getattr(self._inner, name)


# -- without blocking


class AsyncClient(Generic[T]):
    def __init_subclass__(cls, *, service: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if service:
            cls.service = service

    service: ClassVar[str]

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    async def post(self, path: str, /, **params: Any) -> dict[str, Any]:
        return await self.comm.call(self.service, path, params)

    def parse(self, body: dict[str, Any]) -> T:
        raise NotImplementedError


class LabClient(AsyncClient[float], service="Lab"):
    def parse(self, body: dict[str, Any]) -> float:
        return float(body.get("value", 0))

    async def result(self, sample: str) -> float:
        return self.parse(await self.post("/result", sample=sample))

    async def pages(self, patient: str) -> AsyncIterator[list[dict[str, Any]]]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self.post("/samples", patient=patient, cursor=cursor)
            yield page.get("items", [])
            cursor = page.get("next")


class PharmacyClient(AsyncClient[bool], service="Pharmacy"):
    def parse(self, body):
        return body.get("ok", False)

    async def check(self, drug: str, **extra: Any) -> bool:
        return self.parse(await self.post("/check", drug=drug, **extra))

    async def dispense(self, *drugs: str) -> list[bool]:
        return [self.parse(await self.post("/dispense", drug=drug)) for drug in drugs]


class Notifier(Protocol):
    async def send(self, text: str) -> None: ...


class SmsNotifier:
    def __init__(self, comm: Communication, number: str) -> None:
        self.comm, self.number = comm, number

    async def send(self, text: str) -> None:
        await self.comm.call("Sms", "/send", {"to": self.number, "text": text})


class MailNotifier:
    def __init__(self, comm: Communication, address: str) -> None:
        self.comm, self.address = comm, address

    async def send(self, text: str) -> None:
        await self.comm.call("Mail", "/send", {"to": self.address, "text": text})


class Both:
    def __init__(self, *inner: Notifier) -> None:
        self.inner = inner

    async def send(self, text: str) -> None:
        for notifier in self.inner:
            await notifier.send(text)


def notifier_for(comm: Communication, contact: dict[str, Any]) -> Notifier | None:
    found: list[Notifier] = []
    if phone := contact.get("phone"):
        found.append(SmsNotifier(comm, phone))
    if mail := contact.get("mail"):
        found.append(MailNotifier(comm, mail))
    match found:
        case []:
            return None
        case [one]:
            return one
        case _:
            return Both(*found)


def retry(times: int = 3, *, on: tuple[type[Exception], ...] = (MupError,), pause: float = 0.01):
    def decorate(fn: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(fn)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            for attempt in range(1, times + 1):
                try:
                    return await fn(*args, **kwargs)
                except on:
                    if attempt == times:
                        raise
                    await asyncio.sleep(pause * 2**attempt)
            raise AssertionError("unreachable")

        return wrapper

    return decorate


@asynccontextmanager
async def lease(comm: Communication, name: str) -> AsyncIterator[str | None]:
    answer = await comm.call("Locks", "/acquire", {"name": name})
    token = answer.get("token")
    try:
        yield token
    finally:
        if token:
            await comm.call("Locks", "/free", {"token": token})


async def or_none(awaitable: Awaitable[T], *ignored: type[Exception]) -> T | None:
    try:
        return await awaitable
    except ignored or (CallError,):
        return None
