"""Where things are kept: one class per collection, all queries in one place."""

from __future__ import annotations

from typing import Any

from mup import Communication
from shop.domain import Order, Product, UnknownProductError

DATABASE = "shop"


class Repository:
    """Base of all repositories: a collection, and how it is asked."""

    collection = ""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def _find(self, name: str, condition: dict[str, Any]) -> list[dict[str, Any]]:
        return self._comm.query(DATABASE, name, self.collection, condition).get()

    def _run(self, name: str, command: dict[str, Any]) -> None:
        self._comm.query(DATABASE, name, self.collection, command).get()


class ProductRepository(Repository):
    """Products by their number or category."""

    collection = "products"

    def by_sku(self, sku: str) -> Product:
        documents = self._find("product", {"_id": sku})
        if not documents:
            raise UnknownProductError(f"no product {sku}")
        return Product.from_document(documents[0])

    def in_category(self, category: str) -> list[Product]:
        return [Product.from_document(d) for d in self._find("products_of_category", {"category": category})]

    def take_from_stock(self, sku: str, quantity: int) -> None:
        self._run("take_stock", _update(sku, {"$inc": {"stock": -quantity}}))


class OrderRepository(Repository):
    """Orders by number and customer."""

    collection = "orders"

    def add(self, order: Order) -> None:
        self._run("insert_order", {"$command": "insert", "documents": [order.to_document()]})

    def of_customer(self, customer: str, *, limit: int = 20) -> list[dict[str, Any]]:
        return self._find("orders_of_customer", {"customer": customer})[:limit]

    def get(self, number: str) -> dict[str, Any] | None:
        found = self._find("order", {"_id": number})
        return found[0] if found else None

    def set_status(self, number: str, status: str) -> None:
        self._run("set_status", _update(number, {"$set": {"status": status}}))


class CustomerRepository(Repository):
    """Customers and their vouchers."""

    collection = "customers"

    def vouchers(self, customer: str) -> list[dict[str, Any]]:
        return self._find("vouchers", {"customer": customer, "used": False})

    def use_voucher(self, voucher: str) -> None:
        self._run("use_voucher", _update(voucher, {"$set": {"used": True}}))


def _update(number: str, change: dict[str, Any]) -> dict[str, Any]:
    return {"$command": "update", "filter": {"_id": number}, "update": change}
