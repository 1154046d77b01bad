"""Anti-corruption layer: one adapter for each carrier we place business with."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from building_blocks import Err, Ok, Result, Unavailable, ValidationFailed, Where
from mup import Communication
from mup.errors import CallError


@dataclass(frozen=True, slots=True)
class Risk:
    product: str
    holder: str
    sum_insured: int
    vehicle: str | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Result[Risk]:
        if missing := [name for name in ("product", "holder", "sum_insured") if not raw.get(name)]:
            return Err(ValidationFailed("incomplete risk", missing=missing))
        if raw["product"] == "motor" and not raw.get("vehicle"):
            return Err(ValidationFailed("motor needs a vehicle"))
        return Ok(cls(raw["product"], raw["holder"], int(raw["sum_insured"]), raw.get("vehicle")))


@dataclass(frozen=True, slots=True)
class Offer:
    carrier: str
    reference: str
    premium: float


large = Where[Risk](lambda risk: risk.sum_insured > 1_000_000)
motor = Where[Risk](lambda risk: risk.product == "motor")
buildings = Where[Risk](lambda risk: risk.product in ("home", "commercial"))


class CarrierAdapter(ABC):
    registry: ClassVar[dict[str, type[CarrierAdapter]]] = {}
    name: ClassVar[str]
    appetite: ClassVar[Where[Risk]]

    def __init_subclass__(cls, name: str, appetite: Where[Risk]) -> None:
        cls.name, cls.appetite = name, appetite
        CarrierAdapter.registry[name] = cls

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @abstractmethod
    async def price(self, risk: Risk) -> Result[Offer]: ...

    @abstractmethod
    async def bind(self, offer: Offer) -> str: ...

    async def unbind(self, binding: str) -> None:
        """Most carriers let bindings that are not paid expire."""


class NordicRe(CarrierAdapter, name="nordic", appetite=motor | buildings):
    async def price(self, risk: Risk) -> Result[Offer]:
        answer = await self.comm.call("NordicRe", "/quote", asdict(risk), timeout=2.0)
        if answer.get("declined"):
            return Err(Unavailable("declined", carrier=self.name))
        return Ok(Offer(self.name, answer.get("ref", ""), answer.get("premium", 100.0)))

    async def bind(self, offer: Offer) -> str:
        return (await self.comm.call("NordicRe", "/bind", {"ref": offer.reference})).get("policy", "")

    async def unbind(self, binding: str) -> None:
        await self.comm.call("NordicRe", "/cancel", {"policy": binding})


class Mutual(CarrierAdapter, name="mutual", appetite=~large):
    """Wants a session of its own first; members have a second table of rates."""

    async def price(self, risk: Risk) -> Result[Offer]:
        session = await self.comm.call("Mutual", "/session", {"holder": risk.holder})
        if not (token := session.get("token")):
            return Err(Unavailable("no session", carrier=self.name))
        tables = ["standard", "loyalty"] if session.get("member") else ["standard"]
        rates = [
            self.comm.call("Mutual", "/rate", {"token": token, "table": t, **asdict(risk)}) for t in tables
        ]
        premiums = [rate["premium"] for rate in await asyncio.gather(*rates) if "premium" in rate]
        return Ok(Offer(self.name, token, min(premiums))) if premiums else Err(Unavailable("no rate"))

    async def bind(self, offer: Offer) -> str:
        return (await self.comm.call("Mutual", "/bind", {"token": offer.reference})).get("contract", "")


class Syndicate(CarrierAdapter, name="syndicate", appetite=large | buildings):
    """Underwriters look at it: submit, then ask until there is a decision."""

    async def price(self, risk: Risk) -> Result[Offer]:
        slip = (await self.comm.call("Syndicate", "/submit", asdict(risk))).get("id", "")
        for attempt in range(3):
            decision = await self.comm.call("Syndicate", "/decision", {"slip": slip})
            match decision.get("status"):
                case "quoted":
                    return Ok(Offer(self.name, slip, decision.get("premium", 1000.0)))
                case "declined":
                    return Err(Unavailable("declined by underwriter", carrier=self.name))
            await asyncio.sleep(0.1 * 2**attempt)
        return Err(Unavailable("undecided", carrier=self.name))

    async def bind(self, offer: Offer) -> str:
        try:
            stamped = await self.comm.call("Syndicate", "/stamp", {"slip": offer.reference})
        except CallError as error:
            if error.status != 409:
                raise
            return offer.reference  # was stamped by an earlier attempt
        return stamped.get("umr", offer.reference)

    async def unbind(self, binding: str) -> None:
        await self.comm.call("Syndicate", "/withdraw", {"umr": binding})
