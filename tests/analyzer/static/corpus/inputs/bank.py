"""Requests to the bank, written anew after GoogleCloudPlatform/bank-of-anthos."""

import base64
import json
from typing import Any

from corpus.execution import Case, Inputs

TOKEN = base64.b64encode(json.dumps({"user": "eve", "acct": "7", "name": "Eve"}).encode()).decode()
COOKIES = {"token": TOKEN}
BAD = {"token": "eA=="}


def form(**fields: str) -> dict[str, Any]:
    return {"cookies": COOKIES, "json": fields}


INPUTS = Inputs(
    {
        "Frontend/version": Case("handler"),
        "Frontend/ready": Case("handler"),
        "Frontend/home": Case("fallback per part", [{"cookies": COOKIES}, {}, {"cookies": BAD}]),
        "Frontend/dashboard": Case("fan-out, fixed", [{"cookies": COOKIES}, {}]),
        "Frontend/payment": Case(
            "auth, then a chain of calls",
            [
                form(account_num="1", amount="7.5"),
                form(account_num="add", contact_account_num="2", contact_label="x", amount="3"),
                form(account_num="add", contact_account_num="2", amount="x"),
                {"json": {}},
                form(account_num="1"),
            ],
        ),
        "Frontend/deposit": Case(
            "auth, then a chain of calls",
            [
                form(account="9", amount="1"),
                form(account="add", routing="883745000", amount="1"),
                form(account="add", routing="1", label="x", external="5", amount="1"),
                form(account="add", routing="1", external="5", amount="1"),
                {"json": {}},
            ],
        ),
        "Frontend/login": Case("errors become answers", [{"json": {"username": "eve", "password": "p"}}]),
        "Frontend/signup": Case("errors become answers", [{"json": {"username": "eve", "password": "p"}}]),
        "Frontend/logout": Case("handler"),
        "Users/login": Case("early responses", [{"json": {"username": "eve", "password": "p"}}, {}]),
        "Users/users": Case(
            "early responses",
            [
                {"json": {"username": "eve", "password": "p", "name": "Eve"}},
                {"json": {"username": "E!", "password": "p", "name": "Eve"}},
                {"json": {"username": "eve"}},
            ],
        ),
        "Contacts/contacts/{user} GET": Case("query"),
        "Contacts/contacts/{user} POST": Case(
            "errors become answers",
            [
                {"json": {"user": "eve", "label": "new", "account": "5"}},
                {"json": {"user": "eve", "label": "new", "account": "x"}},
            ],
        ),
        "Balances/balances/{account}": Case("cache", [{"path": {"account": i}} for i in range(20)]),
        "History/transactions/{account}": Case("queries side by side"),
        "Ledger/transactions": Case(
            "early responses",
            [
                {"json": {"from": "1", "to": "2", "amount": 5}},
                {"json": {"from": "1", "to": "1", "amount": 5}},
            ],
        ),
    },
    {
        "Balances/balances/{account}": [{"balance": 3}, {"balance": 500}],
        "History/transactions/{account}": [[], [{"from": "7", "to": "1"}, {"from": "1", "to": "7"}]],
        "Contacts/contacts/{user} GET": [[], [{"account": "1", "label": "a"}]],
        "Users/login": [{"token": "t"}],
        "accounts.user_by_name": [
            [],
            [{"name": "eve", "password": "p", "account": "7"}],
            [{"name": "eve", "password": "q"}],
        ],
        "accounts.contacts": [[], [{"account": "5", "label": "x"}], [{"account": "1", "label": "new"}]],
        "ledger.of_account": [[], [{"amount": 4}]],
    },
)
