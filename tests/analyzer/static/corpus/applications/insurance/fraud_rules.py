"""Rules of the fraud checks; each is registered by being defined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mup import Communication


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    score: float
    reason: str = ""


class FraudRule(ABC):
    registry: ClassVar[list[type[FraudRule]]] = []
    remote: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        FraudRule.registry.append(cls)

    @abstractmethod
    async def evaluate(self, claim: Mapping[str, Any], comm: Communication) -> Finding: ...


class Amount(FraudRule):
    remote = False

    async def evaluate(self, claim: Mapping[str, Any], comm: Communication) -> Finding:
        amount = float(claim.get("amount", 0))
        return Finding("amount", 0.95 if amount > 100_000 else 0.2 if amount % 1000 == 0 else 0.0)


class Velocity(FraudRule):
    async def evaluate(self, claim: Mapping[str, Any], comm: Communication) -> Finding:
        recent = await comm.call("Search", "/claims", {"policy": claim.get("policy"), "days": 90})
        return Finding("velocity", min(0.15 * len(recent.get("ids", [])), 0.6))


class Model(FraudRule):
    async def evaluate(self, claim: Mapping[str, Any], comm: Communication) -> Finding:
        score = (await comm.call("Models", "/score", {"claim": dict(claim)}, timeout=1.0)).get("score", 0.0)
        if score < 0.5:
            return Finding("model", score)
        why = await comm.call("Models", "/explain", {"claim": dict(claim)})
        return Finding("model", score, why.get("reason", ""))


class Watchlist(FraudRule):
    async def evaluate(self, claim: Mapping[str, Any], comm: Communication) -> Finding:
        for party in claim.get("parties", []):
            if (await comm.call("Watchlist", "/contains", {"name": party})).get("hit"):
                return Finding("watchlist", 1.0, party)
        return Finding("watchlist", 0.0)
