"""Requests to the sock shop, written anew after microservices-demo/front-end and its services."""

from corpus.execution import Case, Inputs

USER = {"cookies": {"logged_in": "eve"}}

INPUTS = Inputs(
    {
        "FrontEnd/orders GET": Case("errors become answers", [USER, {}]),
        "FrontEnd/orders POST": Case("fan-out, fixed", [USER, {}]),
        "FrontEnd/orders/{id}": Case("call"),
        "FrontEnd/catalogue": Case("call", [{"query": {"page": 2}}, {"query": {"tags": "a"}}]),
        "FrontEnd/cart POST": Case("chain of calls", [{"json": {"id": "s"}, **USER}, {"json": {}}]),
        "FrontEnd/cart DELETE": Case("call", [USER, {}]),
        "FrontEnd/login": Case("chain of calls"),
        "FrontEnd/customers/{id}/full": Case("fan-out, fixed"),
        "Orders/search": Case("query"),
        "Orders/orders": Case(
            "early responses", [{"json": {"customer": "c", "address": "a", "card": "c"}}, {"json": {}}]
        ),
        "Orders/orders/{id}": Case("query"),
        "Users/customers/{id}": Case("query"),
        "Users/addresses/{id}": Case("query"),
        "Users/cards/{id}": Case("query"),
        "Users/login": Case(
            "early responses", [{"json": {"authorization": "Basic x"}}, {"json": {"authorization": "x"}}]
        ),
        "Catalogue/catalogue": Case("query", [{"json": {"tags": "a"}}, {}]),
        "Catalogue/catalogue/{id}": Case("query"),
        "Carts/carts/{customer}/items": Case(
            "queries, read then write", [{"json": {"item": "i", "price": 3}}]
        ),
        "Carts/carts/{customer}": Case("query"),
        "Carts/merge": Case(
            "queries side by side",
            [{"json": {"customer": "a", "session": "b"}}, {"json": {"customer": "a", "session": "a"}}],
        ),
        "PaymentAuth/paymentAuth": Case("handler", [{"json": {"amount": a}} for a in (0, 5, 500)]),
        "Shipping/shipping": Case("handler"),
    },
    {
        "Users/customers/{id}": [{"address": "a", "card": "c"}],
        "Users/addresses/{id}": [{}, {"street": "s"}],
        "Users/cards/{id}": [{}, {"number": "1"}],
        "Users/login": [{"id": "eve"}],
        "Catalogue/catalogue/{id}": [{"id": "s", "price": 3}],
        "Carts/carts/{customer}/items": [{"status": "created"}, {}],
        "PaymentAuth/paymentAuth": [{"authorised": True}, {"authorised": False}],
        "users.card": [[], [{"number": "1234"}]],
        "carts.cart": [[], [{"items": [{"item": "x"}]}]],
    },
)
