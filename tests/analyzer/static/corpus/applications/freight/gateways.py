"""Anti-corruption layer: carriers, authorities and platform services behind typed interfaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from kernel import Command, Conflict, Invalid, TooMany, retry_async, retrying
from mup import Communication
from mup.errors import CommunicationError


@dataclass(frozen=True)
class QuoteRequest(Command):
    origin: str
    destination: str
    weight: float
    mode: str = "any"
    hazardous: bool = False

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise Invalid("weight must be positive")


@dataclass(frozen=True)
class Offer:
    carrier: str
    price: float
    days: int = 0


class Carrier(ABC):
    registry: ClassVar[dict[str, type[Carrier]]] = {}
    service: ClassVar[str]
    modes: ClassVar[frozenset[str]]
    patience: ClassVar[float] = 2.0

    def __init_subclass__(cls, *, code: str, modes: set[str]) -> None:
        cls.code, cls.service, cls.modes = code, cls.__name__, frozenset(modes)
        Carrier.registry[code] = cls

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def accepts(self, request: QuoteRequest) -> bool:
        return request.mode == "any" or request.mode in self.modes

    @abstractmethod
    async def quote(self, request: QuoteRequest) -> Offer: ...

    async def position(self, reference: str) -> dict[str, Any]:
        return await self.comm.call(self.service, "/track", {"reference": reference}, timeout=1.5)


class Maersk(Carrier, code="maersk", modes={"sea"}):
    patience = 3.0

    async def quote(self, request: QuoteRequest) -> Offer:
        spot = await self.comm.call("Maersk", "/spot", {"from": request.origin, "to": request.destination})
        return Offer(self.code, spot.get("price", 900) * max(1, request.weight // 1000), spot.get("days", 30))


class Schenker(Carrier, code="schenker", modes={"road", "rail"}):
    def accepts(self, request: QuoteRequest) -> bool:
        return super().accepts(request) and not request.hazardous

    async def quote(self, request: QuoteRequest) -> Offer:
        rates = await retry_async(lambda: self.comm.call("Schenker", "/rates", asdict(request)), attempts=2)
        if not rates.get("rates"):
            raise Invalid("no rate for this lane")
        best = min(rates["rates"], key=lambda rate: rate["amount"])
        return Offer(self.code, best["amount"], best.get("days", 5))


class Dhl(Carrier, code="dhl", modes={"air", "road"}):
    async def quote(self, request: QuoteRequest) -> Offer:
        rate = await self.comm.call("Dhl", "/rates", asdict(request))
        price = rate.get("price", 500)
        if request.hazardous or rate.get("variable"):
            extra = await self.comm.call(
                "Dhl", "/surcharges", {"rate": rate.get("id"), "adr": request.hazardous}
            )
            price += sum(extra.get("surcharges", {}).values())
        return Offer(self.code, price, rate.get("days", 2))


class CarrierDesk:
    """Books and cancels space with whichever carrier was chosen."""

    def __init__(self, comm: Communication, code: str) -> None:
        if code not in Carrier.registry:
            raise Invalid("unknown carrier", carrier=code)
        self._comm, self._service = comm, Carrier.registry[code].service

    @retrying(attempts=2)
    def book(self, reference: str, weight: float) -> str:
        answer = self._comm.call(
            self._service, "/book", {"ref": reference, "weight": weight}, timeout=3.0
        ).get()
        if answer.get("status") == "full":
            raise Conflict("the carrier has no space left")
        return answer.get("confirmation", reference)

    def cancel(self, confirmation: str) -> None:
        self._comm.call(self._service, "/cancel", {"confirmation": confirmation}).get()


class Authority(Protocol):
    """A customs authority."""

    def lodge(self, declaration: Mapping[str, Any]) -> str: ...

    def status(self, reference: str) -> str: ...


@dataclass
class EuropeanUnion:
    comm: Communication

    def lodge(self, declaration: Mapping[str, Any]) -> str:
        return self.comm.call("Atlas", "/lodge", dict(declaration), timeout=5.0).get().get("mrn", "")

    def status(self, reference: str) -> str:
        return self.comm.call("Atlas", "/status", {"mrn": reference}).get().get("state", "pending")


@dataclass
class UnitedStates:
    comm: Communication

    def lodge(self, declaration: Mapping[str, Any]) -> str:
        bond = self.comm.call("Ace", "/bond", {"value": declaration.get("value", 0)}).get()
        if not bond.get("bond"):
            raise Conflict("no bond covers this entry")
        return self.comm.call("Ace", "/entry", {**declaration, "bond": bond["bond"]}).get().get("entry", "")

    def status(self, reference: str) -> str:
        return self.comm.call("Ace", "/query", {"entry": reference}).get().get("state", "pending")


AUTHORITIES: dict[str, type[Authority]] = {"EU": EuropeanUnion, "US": UnitedStates}


@contextmanager
def lease(comm: Communication, resource: str) -> Iterator[str]:
    """Hold a distributed lock."""
    token = comm.call("Locks", "/acquire", {"resource": resource}).get().get("token")
    if not token:
        raise Conflict(f"{resource} is locked")
    try:
        yield token
    finally:
        comm.call("Locks", "/release", {"resource": resource, "token": token})


@asynccontextmanager
async def lease_async(comm: Communication, resource: str) -> AsyncIterator[str]:
    token = (await comm.call("Locks", "/acquire", {"resource": resource})).get("token")
    if not token:
        raise Conflict(f"{resource} is locked")
    try:
        yield token
    finally:
        with suppress(CommunicationError):
            await comm.call("Locks", "/release", {"resource": resource, "token": token})


async def throttle(comm: Communication, tenant: str) -> None:
    """Take from the tenant's budget; a limiter that is down limits nobody."""
    try:
        grant = await comm.call("Limits", "/take", {"tenant": tenant}, timeout=0.2)
    except CommunicationError:
        return
    if grant.get("allowed") is False:
        raise TooMany("slow down", retry_after=grant.get("retry_after", 1))
