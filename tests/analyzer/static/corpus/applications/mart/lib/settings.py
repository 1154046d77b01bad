import os
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Settings:
    stock: str = os.environ.get("STOCK_SERVICE", "Stock")
    pricing: str = "Pricing"
    retries: int = 2
    audit: bool = False
    currencies: tuple[str, ...] = ("EUR", "USD")


@lru_cache
def settings() -> Settings:
    return Settings()


SERVICES = {"stock": "Stock", "pricing": "Pricing", "users": "Users"}
STATUS = {404: "missing", 409: "conflict", 429: "busy"}
