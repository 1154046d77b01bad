"""Requests to the food orders, after microservices-patterns/ftgo-application, deepmancer/full-stack-fastapi-ftgo."""

from corpus.execution import Case, Inputs

CREATE = [{"json": {"consumer": "c", "restaurant": "r", "total": t}} for t in (5, 900)]
CUSTOMER = {"headers": {"x-role": "customer", "x-user": "c"}}

INPUTS = Inputs(
    {
        "Orders/orders": Case("saga", CREATE),
        "Orders/orders/inline": Case("saga", CREATE),
        "Orders/orders/stacked": Case("saga", CREATE),
        "Orders/orders/{order}/cancel": Case("saga"),
        "Orders/orders/{order}": Case("query"),
        "Consumers/verify": Case(
            "early responses", [{"json": {"consumer": "c", "total": t}} for t in (1, 2000)]
        ),
        "Kitchen/tickets": Case("query"),
        "Kitchen/tickets/{ticket}/confirm": Case("queries, read then write"),
        "Kitchen/tickets/{ticket}/cancel": Case("queries, read then write"),
        "Accounting/authorize": Case(
            "early responses", [{"json": {"consumer": "c", "total": t}} for t in (1, 900)]
        ),
        "Accounting/reverse": Case("query", [{"json": {"consumer": "c"}}]),
        "Gateway/order/create": Case(
            "errors become answers", [{**CUSTOMER, "json": {"items": [1]}}, {**CUSTOMER, "json": {}}, {}]
        ),
        "Gateway/order/history": Case("errors become answers", [CUSTOMER, {"headers": {"x-role": "driver"}}]),
        "Gateway/restaurant/tickets/{ticket}": Case(
            "errors become answers",
            [
                {"headers": {"x-role": "restaurant"}, "json": {"action": a}}
                for a in ("confirm", "reject", "eat")
            ],
        ),
    },
    {
        "Kitchen/tickets": [{"ticket": "t"}],
        "Orders/orders": [{"state": "approved"}, {"state": "rejected"}],
        "orders.by_id": [[]]
        + [[{"state": s, "ticket": "t", "consumer": "c"}] for s in ("approved", "rejected", "x")],
        "consumers.by_id": [[], [{"limit": 7}], [{}]],
        "kitchen.by_id": [[], [{"state": "created"}], [{"state": "confirmed"}]],
    },
)
