"""Orders, products and their rules; knows nothing of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

FREE_SHIPPING_FROM = 5000
SHIPPING = 490


class OrderError(Exception):
    """An order that cannot be carried out; carries what the customer is told."""

    status = 400

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownProductError(OrderError):
    """A product that is not sold."""

    status = 404


class OutOfStockError(OrderError):
    """A product of which there are not enough."""

    status = 409


class Status(Enum):
    """Where an order stands."""

    NEW = "new"
    PAID = "paid"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Product:
    """Something that is sold.

    Attributes:
        price: In cents.
    """

    sku: str
    name: str
    price: int
    stock: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Product:
        return cls(
            sku=str(document["_id"]),
            name=document.get("name", ""),
            price=int(document["price"]),
            stock=int(document.get("stock", 0)),
        )


@dataclass(frozen=True)
class Line:
    """A product and how many of it."""

    product: Product
    quantity: int

    @property
    def total(self) -> int:
        return self.product.price * self.quantity


@dataclass
class Order:
    """What a customer wants."""

    customer: str
    lines: list[Line] = field(default_factory=list)
    status: Status = Status.NEW
    discount: int = 0

    @property
    def subtotal(self) -> int:
        return sum(line.total for line in self.lines)

    @property
    def shipping(self) -> int:
        return 0 if self.subtotal >= FREE_SHIPPING_FROM else SHIPPING

    @property
    def total(self) -> int:
        return max(0, self.subtotal - self.discount) + self.shipping

    def add(self, product: Product, quantity: int) -> None:
        """Add a line.

        Raises:
            OutOfStockError: There are not enough.
        """
        if quantity < 1:
            raise OrderError(f"{quantity} is no quantity")
        if product.stock < quantity:
            raise OutOfStockError(f"only {product.stock} of {product.name} left")
        self.lines.append(Line(product, quantity))

    def to_document(self) -> dict[str, Any]:
        return {
            "customer": self.customer,
            "status": self.status.value,
            "lines": [{"sku": line.product.sku, "quantity": line.quantity} for line in self.lines],
            "total": self.total,
        }


def cheapest(products: Iterable[Product]) -> Product | None:
    """Return the cheapest product."""
    return min(products, key=lambda product: product.price, default=None)
