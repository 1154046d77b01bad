"""What the shop does: the layer between endpoints and repositories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mup import Communication
from shop.domain import Order, OrderError, Status, cheapest
from shop.gateways import CardPayment, InvoicePayment, PaymentGateway, Warehouse
from shop.repositories import CustomerRepository, OrderRepository, ProductRepository


class CatalogService:
    """Looking at products."""

    def __init__(self, products: ProductRepository) -> None:
        self._products = products

    def page(self, category: str) -> dict[str, Any]:
        products = self._products.in_category(category)
        best = cheapest(products)
        return {
            "products": [{"sku": p.sku, "name": p.name, "price": p.price} for p in products],
            "from": best.price if best is not None else None,
        }

    def compare(self, first: str, second: str) -> dict[str, Any]:
        one, other = self._products.by_sku(first), self._products.by_sku(second)
        return {"cheaper": one.sku if one.price <= other.price else other.sku}


class OrderService:
    """Taking orders, and what becomes of them."""

    def __init__(
        self,
        orders: OrderRepository,
        products: ProductRepository,
        customers: CustomerRepository,
        warehouse: Warehouse,
    ) -> None:
        self._orders = orders
        self._products = products
        self._customers = customers
        self._warehouse = warehouse

    def place(self, customer: str, sku: str, quantity: int, payment: PaymentGateway) -> Order:
        """Take an order for one product.

        Raises:
            OrderError: It cannot be carried out.
        """
        order = Order(customer)
        order.add(self._products.by_sku(sku), quantity)
        self._apply_vouchers(order)
        receipt = payment.charge(customer, order.total)
        if not receipt.accepted:
            raise OrderError("payment refused")
        order.status = Status.PAID
        self._orders.add(order)
        self._products.take_from_stock(sku, quantity)
        self._warehouse.announce(order.to_document()["lines"])
        return order

    def _apply_vouchers(self, order: Order) -> None:
        vouchers = self._customers.vouchers(order.customer)
        if vouchers:
            best = max(vouchers, key=lambda voucher: voucher["value"])
            order.discount = best["value"]
            self._customers.use_voucher(best["_id"])

    def history(self, customer: str) -> list[dict[str, Any]]:
        return [
            {"number": d["_id"], "status": d["status"], "total": d["total"]}
            for d in self._orders.of_customer(customer, limit=50)
        ]

    def ship(self, number: str) -> str:
        order = self._orders.get(number)
        if order is None:
            raise OrderError(f"no order {number}")
        tracking = self._warehouse.ship(number)
        if tracking is None:
            raise OrderError("the warehouse does not answer")
        self._orders.set_status(number, Status.SHIPPED.value)
        return tracking

    def cancel(self, number: str) -> bool:
        order = self._orders.get(number)
        if order is None or order["status"] == Status.SHIPPED.value:
            return False
        self._orders.set_status(number, Status.CANCELLED.value)
        return True


class Application:
    """Puts the layers together for one request."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        products = ProductRepository(comm)
        self.catalog = CatalogService(products)
        self.orders = OrderService(OrderRepository(comm), products, CustomerRepository(comm), Warehouse(comm))

    def payment(self, params: Mapping[str, Any]) -> PaymentGateway:
        """Return the way of payment a customer has chosen."""
        if params.get("payment") == "invoice":
            return InvoicePayment(self.comm)
        return CardPayment(self.comm)
