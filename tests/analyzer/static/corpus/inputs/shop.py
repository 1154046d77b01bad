"""Requests to the robot shop, written anew after instana/robot-shop."""

from corpus.execution import Case, Inputs

CARTS = [
    [],
    [{"_id": "eve", "items": [{"sku": "a", "qty": 1, "price": 3}], "total": 3}],
    [{"_id": "eve", "items": [{"sku": "a", "qty": 1, "price": 3}, {"sku": "SHIP", "qty": 1, "price": 3}]}],
]

INPUTS = Inputs(
    {
        "Payment/health": Case("handler"),
        "Payment/pay/{user}": Case(
            "chain of calls",
            [{"path": {"user": "eve"}, "json": {"total": 3}}, {"path": {"user": "anonymous-1"}}],
        ),
        "Gateway/authorise": Case("handler"),
        "Dispatch/queue": Case("work after the response"),
        "User/user/{name}": Case("query"),
        "User/users": Case("query"),
        "User/order/{user}": Case("queries, read then write"),
        "User/history/{user}": Case("query"),
        "User/uniqueid": Case("handler"),
        "Catalogue/products": Case("query"),
        "Catalogue/product/{sku}": Case("query"),
        "Catalogue/categories": Case("query"),
        "Catalogue/search/{text}": Case("query"),
        "Cart/cart/{user} GET": Case("query"),
        "Cart/cart/{user} DELETE": Case("query"),
        "Cart/rename/{old}/{new}": Case("queries, read then write"),
        "Cart/add/{user}/{sku}/{qty}": Case(
            "early responses", [{"path": {"sku": s, "qty": q}} for s in "ab" for q in (0, 1)]
        ),
        "Cart/update/{user}/{sku}/{qty}": Case(
            "early responses", [{"path": {"sku": s, "qty": q}} for s in "ab" for q in (-1, 0, 1)]
        ),
        "Cart/shipping/{user}": Case(
            "early responses", [{"json": {}}, {"json": {"distance": 3, "cost": 4, "location": "x"}}]
        ),
        "Ratings/fetch/{sku}": Case("query"),
        "Ratings/rate/{sku}/{score}": Case("queries, read then write"),
        "Web/page/{sku}": Case("fan-out, fixed"),
        "Web/checkout/{user}": Case("retry"),
    },
    {
        "Catalogue/product/{sku}": [{"sku": "a", "price": 3, "instock": 1}, {"sku": "a", "instock": 0}],
        "Cart/cart/{user} GET": [c[0] for c in CARTS[1:]] + [{"items": [{"sku": "SHIP"}], "total": 3}],
        "carts.load": CARTS,
        "ratings.of_sku": [[], [{"avg": 3, "count": 2}]],
        "users.by_name": [[], [{"name": "eve"}]],
        "catalogue.products": [[], [{"sku": "a", "categories": ["x"]}]],
    },
)
