"""Requests to an application with ports, repositories and handlers."""

from corpus.execution import Case, Inputs

LAYERS, TABLE, RESULT = "repositories and services", "tables of handlers", "results as values"
COMMANDS = [{"path": {"name": n}} for n in ("reserve", "release", "note", "x")]
KINDS = [{"path": {"kind": k}} for k in ("mail", "chat", "x")]

INPUTS = Inputs(
    {
        "Sales/orders": Case(LAYERS, [{"json": {"type": "order", "sku": "a"}}]),
        "Sales/orders/{id}": Case(LAYERS),
        "Sales/orders/{id}/confirm": Case(LAYERS),
        "Sales/customers/{id}": Case(LAYERS, [{"json": {"_id": "1"}}, {"json": {"name": "x"}}]),
        "Sales/quote": Case(RESULT, [{"json": {"sku": "a"}}]),
        "Sales/pipeline": Case(RESULT, [{"json": {"sku": "a"}}]),
        "Sales/command/{name}": Case(TABLE, COMMANDS),
        "Sales/notify/{kind}": Case(TABLE, KINDS),
        "Sales/notify-registered/{kind}": Case(TABLE, KINDS),
        "Sales/notify-all": Case(TABLE),
        "Sales/tagged": Case(
            "exhaustive decisions",
            [{"json": {"type": "order", "sku": "a"}}, {"json": {"type": "cancel", "id": "1"}}],
        ),
        "Sales/operators": Case("futures through functions"),
        "Outbox/mail": Case("handler"),
        "Outbox/chat": Case("handler"),
        "Warehouse/reserve": Case(
            "queries, read then write", [{"json": {"sku": "a", "n": n}} for n in (1, 2)]
        ),
        "Warehouse/release": Case("query"),
        "Warehouse/price": Case("query", [{"json": {"sku": "a"}}]),
    },
    {
        "Warehouse/price": [{"price": 3}, {"price": 3000}],
        "erp.orders_get": [[], [{"_id": "1"}], [{"_id": "1", "state": "confirmed"}]],
    },
)
