from typing import Any

from corpus.execution import Case, Inputs

IDIOM = "everyday code, banking"

STUBS = (
    "AccountStore/find",
    "AccountStore/get",
    "AccountStore/remove",
    "Audit/append",
    "Calendar/next-business-day",
    "Cases/open",
    "ConsentStore/find",
    "ConsentStore/get",
    "ConsentStore/save",
    "Directory/audience",
    "Directory/introspect",
    "Directory/profile",
    "Documents/enqueue",
    "Documents/render",
    "Documents/upload",
    "Enrichment/categorise",
    "Flags/evaluate",
    "Forecast/project",
    "HeritageBank/accounts",
    "HeritageBank/balances",
    "HeritageBank/consent",
    "HeritageBank/login",
    "HeritageBank/logout",
    "HeritageBank/pay",
    "HeritageBank/payment",
    "HeritageBank/revoke",
    "HeritageBank/transactions",
    "Hooks/deliver",
    "Hooks/subscribers",
    "Idempotency/claim",
    "Idempotency/complete",
    "Idempotency/release",
    "Ledger/balance",
    "Ledger/entries",
    "Ledger/hold",
    "Ledger/import",
    "Ledger/post",
    "Ledger/release",
    "Ledger/totals",
    "Limits/hit",
    "Mail/ping",
    "Mail/send",
    "NordBank/accounts",
    "NordBank/balances",
    "NordBank/consent",
    "NordBank/pay",
    "NordBank/payment",
    "NordBank/revoke",
    "NordBank/transactions",
    "OrderStore/append",
    "OrderStore/events",
    "OrderStore/find",
    "OrderStore/get",
    "OrderStore/save",
    "PaymentStore/begin",
    "PaymentStore/commit",
    "PaymentStore/find",
    "PaymentStore/get",
    "PaymentStore/rollback",
    "PaymentStore/save",
    "Prefs/get",
    "Prefs/save",
    "Push/ping",
    "Push/send",
    "Rates/daily",
    "Rates/quote",
    "Risk/score",
    "Sanctions/screen",
    "Sanctions/screen-batch",
    "Sca/challenge",
    "Sca/verify",
    "Scheduler/enqueue",
    "SearchIndex/query",
    "Sms/ping",
    "Sms/send",
    "Sparwell/accounts",
    "Sparwell/balances",
    "Sparwell/consent",
    "Sparwell/pay",
    "Sparwell/payment",
    "Sparwell/revoke",
    "Sparwell/transactions",
    "Templates/get",
)

AUTH = {"authorization": "Bearer t"}
KEY = {"x-service-key": "svc-7f3a"}
HOOK = {"x-webhook-key": "hook-secret"}

ALL = [
    "accounts:read", "accounts:write", "transactions:read", "consents:write", "payments:read", "payments:write",
    "payments:bulk", "orders:read", "orders:write", "statements:read",
]  # fmt: skip


def accounts(*banks: Any) -> Any:
    return [
        {
            "id": f"a{n}",
            "user": "u1",
            "bank": bank,
            "consent_id": f"c{n}" if n != 3 else "",
            "currency": "EUR",
        }
        for n, bank in enumerate(banks, start=1)
    ]


def consent(key: Any, bank: Any, status: Any, *permissions: Any, user: Any = "u1") -> Any:
    return {"id": key, "user": user, "bank": bank, "status": status, "permissions": list(permissions)}


def payment(key: Any, bank: Any, status: Any, user: Any = "u1", **more: Any) -> Any:
    return {
        "id": key, "user": user, "bank": bank, "status": status, "debtor": "DE1", "creditor": "SE2", "amount": "120.00",
        "hold_id": "h1", "reference": "r1", "challenge_id": "ch1", **more,
    }  # fmt: skip


def order(key: Any, bank: Any, state: Any, user: Any = "u1", failures: Any = 0, amount: Any = "50") -> Any:
    return {
        "id": key, "user": user, "bank": bank, "debtor": "DE1", "creditor": "SE2", "amount": amount, "state": state,
        "next_run": "2024-03-01", "failures": failures, "score": 2,
    }  # fmt: skip


def pay(amount: Any, bank: Any = "nord", creditor: Any = "SE2", **more: Any) -> Any:
    return {"bank": bank, "debtor": "DE1", "creditor": creditor, "amount": amount, **more}


INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        # accounts
        "Accounts/accounts": Case(IDIOM, [{"headers": AUTH}, {}]),
        "Accounts/accounts/{account_id}": Case(
            IDIOM,
            [
                {"path": {"account_id": "a1"}, "headers": AUTH},
                {"path": {"account_id": "a1"}, "query": {"expand": "ledger,consent,owner"}, "headers": AUTH},
                {"path": {"account_id": "a1"}, "query": {"expand": "consent"}, "headers": AUTH},
                {"path": {"account_id": "a1"}, "query": {"expand": "owner, ledger"}},
            ],
        ),
        "Accounts/accounts/{account_id}/balances": Case(
            IDIOM,
            [
                {"path": {"account_id": "a1"}, "headers": AUTH},
                {"path": {"account_id": "a2"}, "headers": AUTH},
            ],
        ),
        "Accounts/accounts/{account_id}/transactions": Case(
            IDIOM,
            [
                {"path": {"account_id": "a1"}, "headers": AUTH},
                {"path": {"account_id": "a1"}, "query": {"limit": "1", "cursor": "2"}, "headers": AUTH},
                {"path": {"account_id": "a1"}, "query": {"limit": "many"}, "headers": AUTH},
            ],
        ),
        "Accounts/accounts/sync": Case(
            IDIOM,
            [{"headers": AUTH, "json": {}}, {"headers": AUTH, "json": {"ids": ["a1"]}}, {"json": {}}],
        ),
        "Accounts/search": Case(
            IDIOM,
            [
                {"query": {"q": "rent"}, "headers": AUTH},
                {"query": {"q": "rent", "scope": "transactions"}, "headers": AUTH},
                {"query": {"q": "rent", "scope": "orders"}, "headers": AUTH},
                {"query": {"q": "r"}, "headers": AUTH},
            ],
        ),
        "Accounts/links/remove": Case(IDIOM, [{"json": {"bank": "nord"}, "headers": AUTH}, {"json": {}}]),
        # consents
        "Consents/consents": Case(
            IDIOM,
            [
                {"json": {"bank": "nord", "permissions": ["accounts", "payments"]}, "headers": AUTH},
                {"json": {"bank": "sparwell", "force": True}, "headers": AUTH},
                {"json": {"bank": "heritage"}, "headers": AUTH},
                {"json": {"bank": "nord", "permissions": ["everything"]}, "headers": AUTH},
                {"json": {"bank": "nowhere"}, "headers": AUTH},
            ],
        ),
        "Consents/consents/{consent_id}/authorise": Case(
            IDIOM,
            [
                {"path": {"consent_id": "c1"}, "json": {"code": "123456"}, "headers": AUTH},
                {"path": {"consent_id": "c1"}, "json": {"decision": "reject"}, "headers": AUTH},
                {"path": {"consent_id": "c1"}, "json": {}},
            ],
        ),
        "Consents/consents/{consent_id}/revoke": Case(
            IDIOM,
            [
                {"path": {"consent_id": "c1"}, "json": {}, "headers": AUTH},
                {"path": {"consent_id": "c1"}, "json": {"reason": "moved"}, "headers": AUTH},
            ],
        ),
        "Consents/internal/revoke": Case(
            IDIOM, [{"json": {"consent_id": "c1"}, "headers": KEY}, {"json": {}}]
        ),
        "Consents/internal/check": Case(
            IDIOM,
            [
                {"json": {"user": "u1", "bank": "nord", "permission": "payments"}, "headers": KEY},
                {"json": {"user": "u1", "bank": "nord"}, "headers": KEY},
                {"json": {}},
            ],
        ),
        "Consents/consents/renew-due": Case(
            IDIOM, [{"json": {}, "headers": KEY}, {"json": {"days": 3}, "headers": KEY}, {"json": {}}]
        ),
        "Consents/webhooks/consent": Case(
            IDIOM,
            [
                {"json": {"event": "accepted", "consent_id": "c1"}, "headers": HOOK},
                {"json": {"event": "declined", "consent_id": "c1"}, "headers": HOOK},
                {"json": {"event": "withdrawn", "consent_id": "c1"}, "headers": HOOK},
                {"json": {"event": "ping"}, "headers": HOOK},
                {"json": {}},
            ],
        ),
        # payments
        "Payments/payments": Case(
            IDIOM,
            [
                {"json": pay("12.50"), "headers": {**AUTH, "idempotency-key": "k1"}},
                {"json": pay("12.50", bank="heritage"), "headers": AUTH},
                {"json": pay("250", bank="sparwell"), "headers": {**AUTH, "idempotency-key": "k2"}},
                {"json": pay("6000"), "headers": AUTH},
                {"json": pay("20", creditor="XX9"), "headers": {**AUTH, "idempotency-key": "k3"}},
                {"json": pay("7000", creditor="ZZ9"), "headers": AUTH},
                {"json": {"amount": "-1"}, "headers": {**AUTH, "idempotency-key": "k4"}},
                {"json": pay("20")},
            ],
        ),
        "Payments/payments/{payment_id}": Case(
            IDIOM,
            [
                {"path": {"payment_id": "p1"}, "headers": AUTH},
                {"path": {"payment_id": "p1"}, "query": {"refresh": "true"}, "headers": AUTH},
                {
                    "path": {"payment_id": "p1"},
                    "query": {"refresh": "true"},
                    "headers": {**AUTH, "accept-version": "2"},
                },
            ],
        ),
        "Payments/payments/{payment_id}/confirm": Case(
            IDIOM,
            [
                {"path": {"payment_id": "p1"}, "json": {"code": "123456"}, "headers": AUTH},
                {"path": {"payment_id": "p1"}, "json": {}, "headers": AUTH},
            ],
        ),
        "Payments/payments/bulk": Case(
            IDIOM,
            [
                {"json": {"payments": [pay("10"), pay("20", creditor="DE7")]}, "headers": AUTH},
                {"json": {"payments": [pay("10"), {"amount": "x"}, {"amount": "3"}]}, "headers": AUTH},
                {"json": {"payments": [pay("10"), {"amount": "3"}], "mode": "strict"}, "headers": AUTH},
                {"json": {"payments": []}, "headers": AUTH},
            ],
        ),
        "Payments/internal/execute": Case(
            IDIOM,
            [
                {"json": pay("50", user="u1"), "headers": KEY},
                {"json": pay("5500", bank="heritage", user="u1"), "headers": KEY},
                {"json": pay("50", bank="sparwell", creditor="XX1", user="u1"), "headers": KEY},
                {"json": {"user": "u1", "amount": "nothing"}, "headers": KEY},
                {"json": {}},
            ],
        ),
        "Payments/payments/settle": Case(
            IDIOM, [{"json": {"payment_id": "p1"}, "headers": KEY}, {"json": {}}]
        ),
        "Payments/webhooks/bank": Case(
            IDIOM,
            [
                {"json": {"type": "payment.booked", "reference": "r1"}, "headers": HOOK},
                {"json": {"type": "payment.rejected", "reference": "r1"}, "headers": HOOK},
                {"json": {"type": "payment.amended", "reference": "r1"}, "headers": HOOK},
                {"json": {"type": "bank.closed"}, "headers": HOOK},
                {"json": {}},
            ],
        ),
        "Payments/payments/quote": Case(
            IDIOM,
            [
                {"query": {"amount": 100, "to": "USD"}},
                {"query": {"amount": 100}},
                {"query": {"amount": 0, "to": "USD"}},
            ],
        ),
        # standing orders
        "StandingOrders/standing-orders/list": Case(
            IDIOM,
            [
                {"headers": AUTH},
                {"query": {"with": "totals", "limit": "5"}, "headers": AUTH},
                {"query": {"with": "totals", "state": "active"}, "headers": AUTH},
                {"query": {"limit": "x"}, "headers": AUTH},
            ],
        ),
        "StandingOrders/standing-orders/{order_id}/state": Case(
            IDIOM,
            [
                {"path": {"order_id": "o1"}, "json": {"action": "pause"}, "headers": AUTH},
                {"path": {"order_id": "o1"}, "json": {"action": "resume"}, "headers": AUTH},
                {"path": {"order_id": "o1"}, "json": {"action": "cancel"}, "headers": AUTH},
                {"path": {"order_id": "o1"}, "json": {}, "headers": AUTH},
            ],
        ),
        "StandingOrders/standing-orders/run-due": Case(
            IDIOM,
            [{"json": {"day": "2024-03-01"}, "headers": KEY}, {"json": {}, "headers": KEY}, {"json": {}}],
        ),
        # statements
        "Statements/statements": Case(
            IDIOM,
            [
                {"json": {"account": "a1"}, "headers": AUTH},
                {"json": {"account": "a1", "format": "pdf", "minimum": "20"}, "headers": AUTH},
                {"json": {"account": "a1", "format": "csv", "balance": False}, "headers": AUTH},
                {
                    "json": {"account": "a1", "format": "pdf", "period": "2024-02", "balance": False},
                    "headers": AUTH,
                },
                {"json": {"account": "a1", "minimum": "100000"}, "headers": AUTH},
                {"json": {"account": "a1", "format": "docx"}, "headers": AUTH},
            ],
        ),
        "Statements/statements/monthly-run": Case(
            IDIOM,
            [
                {"json": {"accounts": ["a1", "a2", "a3"]}, "headers": KEY},
                {"json": {"accounts": ["a1"]}, "headers": KEY},
                {"json": {}, "headers": KEY},
                {"json": {}},
            ],
        ),
        "Statements/reports/cashflow": Case(IDIOM, [{"headers": AUTH}, {}]),
        "Statements/reconcile": Case(
            IDIOM,
            [
                {"json": {"account": "a1"}, "headers": KEY},
                {"json": {"account": "a1", "repair": True}, "headers": KEY},
                {"json": {}},
            ],
        ),
        # notifications
        "Notifications/send": Case(
            IDIOM,
            [
                {"json": {"user": "u1", "template": "sync_done", "values": {"count": 3}}},
                {"json": {"user": "u1", "template": "payment_failed", "values": {"id": "p1"}}},
                {"json": {"user": "u1", "template": "order_cancelled"}},
                {"json": {"user": "u1"}},
            ],
        ),
        "Notifications/broadcast": Case(
            IDIOM,
            [
                {"json": {"text": "maintenance tonight"}, "headers": AUTH},
                {"json": {"text": "hello", "segment": "plus"}, "headers": AUTH},
                {"json": {"text": " "}, "headers": AUTH},
            ],
        ),
        "Notifications/preferences/update": Case(
            IDIOM,
            [
                {"json": {"quiet": True}, "headers": AUTH},
                {"json": {"muted": ["sync_done"]}, "headers": AUTH},
                {"json": {"muted": ["payment_failed"]}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
            ],
        ),
        "Notifications/health/deep": Case(IDIOM, [{}, {"query": {"quick": "1"}}]),
    },
    {
        "AccountStore/find": [
            {"items": accounts("nord", "sparwell", "heritage")},
            {"items": accounts("sparwell")},
            {"items": accounts("nord", "nord")},
            {"items": []},
        ],
        "AccountStore/get": [
            {"item": accounts("nord")[0]},
            {"item": accounts("sparwell")[0]},
            {"item": accounts("heritage")[0]},
            {"item": {**accounts("nord")[0], "consent_id": ""}},
            {"item": {**accounts("nord")[0], "user": "u2"}},
            {"item": None},
        ],
        "Calendar/next-business-day": [{"day": "2024-03-04"}, {}],
        "Cases/open": [{"id": "case1"}],
        "ConsentStore/find": [
            {"items": [consent("c1", "nord", "authorised", "accounts", "payments")]},
            {
                "items": [
                    consent("c1", "nord", "authorised", "accounts"),
                    consent("c2", "heritage", "authorised", "accounts", "payments"),
                    consent("c3", "sparwell", "authorised", "payments"),
                ]
            },
            {
                "items": [
                    consent("c1", "sparwell", "revoked", "accounts"),
                    consent("c2", "nord", "awaiting", "accounts"),
                ]
            },
            {"items": []},
        ],
        "ConsentStore/get": [
            {"item": consent("c1", "nord", "awaiting", "accounts")},
            {"item": consent("c1", "sparwell", "authorised", "accounts")},
            {"item": consent("c1", "nord", "authorised", "accounts", "payments")},
            {"item": consent("c1", "heritage", "authorised", "payments")},
            {"item": consent("c1", "nord", "revoked", "accounts")},
            {"item": consent("c1", "nord", "awaiting", "accounts", user="u2")},
            {"item": None},
        ],
        "Directory/audience": [
            {"members": [{"id": "u1", "email": "u1@x"}, {"id": "u2"}, {"id": "u3", "email": "u3@x"}]},
            {"members": [{"id": "u1", "email": "u1@x"}]},
            {"members": []},
        ],
        "Directory/introspect": [
            {"active": True, "user": "u1", "scopes": ALL},
            {"active": True, "user": "u1", "scopes": ALL, "tenant": "fintech"},
            {"active": True, "user": "u1", "scopes": ["staff"]},
            {"active": True, "user": "u1", "scopes": ["staff"], "tenant": "kids"},
            {"active": True, "user": "u1", "scopes": ["accounts:read"]},
            {"active": False},
        ],
        "Directory/profile": [
            {"email": "u1@x", "device": "d1"},
            {"email": "u1@x"},
            {"tenant": "fintech", "phone": "123", "email": "u1@x"},
            {"tenant": "fintech", "phone": "123", "device": "d1"},
            {"tenant": "kids", "email": "u1@x"},
            {"tenant": "kids"},
        ],
        "Documents/enqueue": [{"ok": True}],
        "Documents/render": [{"document": "d1"}],
        "Documents/upload": [{"url": "https://x/d1"}],
        "Enrichment/categorise": [{"categories": ["rent", "food"]}, {"categories": []}],
        "Flags/evaluate": [
            {"flags": {"enrichment": True, "forecast": True}},
            {"flags": {"enrichment": False}},
            {},
        ],
        "Forecast/project": [{"months": [1, 2, 3]}, {}],
        "HeritageBank/accounts": [{"accounts": [{"id": "h1"}]}, {"accounts": []}],
        "HeritageBank/balances": [{"balances": [{"amount": "5"}]}],
        "HeritageBank/consent": [{"id": "c9", "redirect": "https://h/"}, {"id": "c9"}, {}],
        "HeritageBank/login": [{"ticket": "t1"}],
        "HeritageBank/pay": [{"reference": "r3"}, {"status": "rejected", "reason": "closed"}],
        "HeritageBank/payment": [{"status": "booked"}, {"status": "returned"}, {"status": "open"}],
        "HeritageBank/transactions": [
            {"items": [{"id": "t1", "text": "Rent"}], "next": ""},
            {"items": [{"id": "t3", "text": "Salary", "status": "pending"}], "next": "n2"},
        ],
        "Hooks/subscribers": [
            {"hooks": ["https://a/", "https://b/"]},
            {"hooks": ["https://a/"]},
            {"hooks": []},
        ],
        "Idempotency/claim": [
            {"state": "new"},
            {"state": "new"},
            {"state": "done", "body": {"id": "p1"}, "status": 201},
            {"state": "running"},
        ],
        "Ledger/balance": [{"amount": "10.00"}],
        "Ledger/entries": [
            {"items": [{"id": "t1", "text": "Rent", "amount": "-800"}], "next": ""},
            {"items": [{"id": "t2", "text": "Food", "amount": "-12.5"}], "next": "n2"},
            {"items": [], "next": ""},
        ],
        "Ledger/hold": [{"hold_id": "h1"}, {"hold_id": "h2"}],
        "Ledger/import": [{"ok": True}],
        "Ledger/totals": [{"in": "2000", "out": "1500.5"}, {}],
        "Limits/hit": [{"count": 1}, {"count": 2}, {"count": 500, "reset": 30}],
        "NordBank/accounts": [{"accounts": [{"id": "n1"}, {"id": "n2"}]}, {"accounts": []}],
        "NordBank/balances": [{"balances": [{"amount": "7"}]}, {}],
        "NordBank/consent": [{"id": "c9", "redirect": "https://n/"}, {"id": "c9"}, {}],
        "NordBank/pay": [
            {"status": "accepted", "reference": "r1"},
            {"status": "rejected"},
            {"reference": "r2"},
        ],
        "NordBank/payment": [
            {"status": "booked"},
            {"status": "rejected"},
            {"status": "open"},
            {"status": "open"},
        ],
        "NordBank/transactions": [
            {"items": [{"id": "t1", "text": "Rent"}, {"id": "t2", "text": "Food"}], "next": ""},
            {"items": [{"id": "t1", "text": "Rent"}], "next": "n2"},
            {"items": [{"id": "t4", "text": "Fee", "status": "pending"}]},
            {"items": []},
        ],
        "OrderStore/events": [
            {"events": [{"type": "created"}, {"type": "executed", "amount": "50"}, {"type": "failed"}]},
            {"events": [{"type": "pause"}, {"type": "resume"}, {"type": "executed", "amount": "20"}]},
            {"events": []},
        ],
        "OrderStore/find": [
            {"items": [order("o1", "nord", "active"), order("o2", "sparwell", "paused")], "next": "n2"},
            {"items": [order("o1", "heritage", "active", failures=2), order("o2", "nord", "active")]},
            {"items": [order("o1", "nord", "cancelled")]},
            {"items": []},
        ],
        "OrderStore/get": [
            {"item": order("o1", "nord", "active")},
            {"item": order("o1", "nord", "paused")},
            {"item": order("o1", "nord", "cancelled")},
            {"item": order("o1", "nord", "active", user="u2")},
            {"item": None},
        ],
        "PaymentStore/begin": [{"tx": "tx1"}],
        "PaymentStore/find": [
            {"items": [payment("p1", "nord", "submitted")]},
            {"items": [payment("p1", "sparwell", "submitted", hold_id="")]},
            {"items": [payment("p1", "nord", "settled", score=3)]},
            {"items": []},
        ],
        "PaymentStore/get": [
            {"item": payment("p1", "nord", "pending_sca", reference="")},
            {"item": payment("p1", "heritage", "pending_sca", reference="")},
            {"item": payment("p1", "nord", "submitted")},
            {"item": payment("p1", "sparwell", "submitted")},
            {"item": payment("p1", "nord", "settled")},
            {"item": payment("p1", "nord", "rejected")},
            {"item": payment("p1", "nord", "submitted", user="u2")},
            {"item": None},
        ],
        "Prefs/get": [{"quiet": True}, {"muted": ["sync_done"]}, {"quiet": False, "muted": []}, {}],
        "Push/send": [{"ok": True}, {"ok": False}],
        "Rates/daily": [{"rate": 1.1}, {}],
        "Rates/quote": [{"rate": 1.08}, {"rate": 0}],
        "Risk/score": [{"score": 10}, {"score": 80}, {"score": 5, "hit": True}],
        "Sanctions/screen": [{"hit": False}, {"hit": True}],
        "Sanctions/screen-batch": [{"blocked": []}, {"blocked": ["SE2"]}, {"blocked": ["SE2", "DE7"]}],
        "Sca/challenge": [{"id": "ch1"}, {}],
        "Sca/verify": [{"ok": True}, {"ok": True}, {"ok": False, "attempts_left": 2}, {"ok": False}],
        "SearchIndex/query": [{"items": [{"id": "t1", "score": 5}, {"id": "t2", "score": 1}]}, {"items": []}],
        "Sparwell/accounts": [{"accounts": [{"id": "s1"}]}, {}],
        "Sparwell/balances": [{"balances": [{"amount": "9"}]}],
        "Sparwell/consent": [{"id": "c9"}, {"id": "c8", "redirect": "https://s/"}],
        "Sparwell/pay": [{"reference": "r2"}, {"status": "rejected", "reason": "funds"}],
        "Sparwell/payment": [{"status": "booked"}, {"status": "returned"}, {"status": "open"}],
        "Sparwell/transactions": [
            {"rows": [{"id": "t1", "text": "Rent"}], "more": False},
            {"rows": [{"id": "t2", "text": "Food"}], "more": True},
            {"rows": []},
        ],
        "Templates/get": [{"text": "Hello: {count} {id}"}, {"text": "News"}, {}],
        # services of our own, where somebody wants them stubbed
        "Consents/internal/check": [{"allowed": True, "consent_id": "c1"}, {"allowed": False}],
        "Payments/internal/execute": [{"id": "p1", "status": "submitted"}],
    },
)
