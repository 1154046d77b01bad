"""Requests to the items, written anew after fastapi/full-stack-fastapi-template."""

from corpus.execution import Case, Inputs

WITH = {"headers": {"authorization": "Bearer t"}}

INPUTS = Inputs(
    {
        "Items/items GET": Case("context manager answers errors", [WITH, {}]),
        "Items/items/{id} GET": Case("context manager answers errors", [WITH, {}]),
        "Items/items POST": Case(
            "auth, then queries", [{**WITH, "json": {"title": "t"}}, {"json": {"title": "t"}}]
        ),
        "Items/items/{id} PUT": Case(
            "auth, then queries", [{**WITH, "json": {"title": "t"}}, {**WITH, "json": {}}]
        ),
        "Items/items/{id} DELETE": Case("auth, then queries", [WITH, {}]),
        "Users/users": Case("auth, then queries", [WITH, {}]),
        "Users/users/me": Case("context manager answers errors", [WITH, {}]),
        "Users/users/signup": Case("queries, read then write", [{"json": {"email": "e", "password": "p"}}]),
        "Users/users/{id}": Case("auth, then queries", [WITH, {}]),
        "Users/login/access-token": Case(
            "early responses", [{"json": {"username": "e", "password": "p"}}, {}]
        ),
        "Users/password-recovery/{email}": Case("calls by a condition"),
        "Emails/welcome": Case("handler", [{"json": {"email": "e"}}]),
        "Emails/recovery": Case("handler", [{"json": {"email": "e"}}]),
    },
    {
        "app.user_by_token": [
            [],
            [{"_id": "1", "superuser": True}],
            [{"_id": "u"}],
            [{"_id": "1", "inactive": True}],
        ],
        "app.item": [[], [{"_id": "1", "owner": "u"}], [{"_id": "1", "owner": "x"}]],
        "app.user_by_email": [
            [],
            [{"_id": "1", "password": "p"}],
            [{"_id": "1", "password": "p", "active": False}],
        ],
    },
)
