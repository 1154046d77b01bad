"""Carts and their prices; plain functions and data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TAX = {"books": 7, "food": 7}
NORMAL_TAX = 19


class CartError(Exception):
    """A cart that cannot become an order."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One article in a cart."""

    article: str
    amount: int
    price: int
    category: str = ""

    @property
    def tax(self) -> int:
        return self.amount * self.price * TAX.get(self.category, NORMAL_TAX) // 100


def entries_of(rows: Iterable[Mapping[str, Any]], prices: Mapping[str, int]) -> list[Entry]:
    """Return the entries of a cart at today's prices.

    Raises:
        CartError: Something in it is not sold any more.
    """
    entries = []
    for row in rows:
        if row["article"] not in prices:
            raise CartError(f"{row['article']} is not sold any more")
        entries.append(
            Entry(row["article"], int(row["amount"]), prices[row["article"]], row.get("category", ""))
        )
    return entries


def total_of(entries: Iterable[Entry]) -> dict[str, int]:
    """Return net, tax and gross, in cents."""
    net = tax = 0
    for entry in entries:
        net += entry.amount * entry.price
        tax += entry.tax
    return {"net": net, "tax": tax, "gross": net + tax}
