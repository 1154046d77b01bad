"""Requests to the boutique, written anew after GoogleCloudPlatform/microservices-demo."""

from corpus.execution import Case, Inputs

ORDER = {"user": "eve", "currency": "EUR", "address": {"street": "s"}, "card": "4444", "email": "e@x"}

INPUTS = Inputs(
    {
        "Checkout/order": Case("chain of calls, each may fail", [{"json": ORDER}]),
        "Checkout/preview": Case("chain of calls, each may fail", [{"json": ORDER}]),
        "CartService/cart": Case("query", [{"json": {"user": "eve"}}]),
        "CartService/empty": Case("query", [{"json": {"user": "eve"}}]),
        "ProductCatalog/product": Case("query", [{"json": {"id": "1"}}]),
        "Currency/convert": Case(
            "handler",
            [
                {"json": {"units": 3, "from": "EUR", "to": "USD"}},
                {"json": {"units": 3, "from": "X", "to": "USD"}},
            ],
        ),
        "Currency/currencies": Case("handler"),
        "Shipping/quote": Case("handler", [{"json": {"count": 3}}]),
        "Shipping/ship": Case("handler"),
        "Payment/charge": Case("handler", [{"json": {"amount": 3, "card": c}} for c in ("4444", "1")]),
        "Email/confirmation": Case("handler", [{"json": {"email": "e@x"}}, {}]),
    },
    {
        "CartService/cart": [[], [{"product": "1", "quantity": 2}], [{"product": "1", "quantity": 2}] * 3],
        "ProductCatalog/product": [{"price": 5}],
        "Currency/convert": [{"units": 4}],
        "Shipping/quote": [{"cost": 3}],
        "Shipping/ship": [{"tracking": "t"}],
        "Payment/charge": [{"transaction": "t"}],
    },
)
