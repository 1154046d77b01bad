"""What is sent to the insurance platform, and what the services behind it may answer."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, insurance"
STUBS = (
    "Assessors/book",
    "Assessors/near",
    "Assessors/of_claim",
    "Audit/write",
    "BackupPayments/charge",
    "Cache/get",
    "Cache/put",
    "Calendar/add",
    "Calendar/due",
    "CaseStore/assign",
    "CaseStore/close",
    "CaseStore/get",
    "CaseStore/open",
    "ClaimStore/evidence",
    "ClaimStore/get",
    "ClaimStore/put",
    "Collections/hand_over",
    "Contracts/tier",
    "Customers/create",
    "Customers/find",
    "Customers/get",
    "Customers/merge",
    "Documents/list",
    "Documents/ocr",
    "Documents/render",
    "Documents/store",
    "EventStore/append",
    "EventStore/read",
    "EventStore/save_snapshot",
    "EventStore/snapshot",
    "Features/flags",
    "Garages/book",
    "Geo/risk",
    "Idempotency/begin",
    "Idempotency/finish",
    "Identity/introspect",
    "Identity/login",
    "Identity/verify",
    "InvoiceStore/attempts",
    "InvoiceStore/get",
    "InvoiceStore/mark",
    "InvoiceStore/overdue",
    "Jobs/create",
    "Jobs/finish",
    "Ledger/balance",
    "Ledger/post",
    "Ledger/reverse",
    "Locks/acquire",
    "Locks/release",
    "Models/explain",
    "Models/score",
    "Mutual/bind",
    "Mutual/rate",
    "Mutual/session",
    "News/latest",
    "NordicRe/bind",
    "NordicRe/cancel",
    "NordicRe/quote",
    "Notifications/email",
    "Notifications/letter",
    "Notifications/schedule",
    "Notifications/sms",
    "Outbox/publish",
    "Payments/charge",
    "Payments/list",
    "Payments/payout",
    "Payments/recall",
    "Payments/refund",
    "Payments/status",
    "QuoteStore/count",
    "QuoteStore/get",
    "QuoteStore/put",
    "RateLimit/take",
    "Reserves/draw",
    "Reserves/set",
    "Sales/page",
    "Sales/summary",
    "Sanctions/screen",
    "Search/claims",
    "Search/customers",
    "Search/policies",
    "Statistics/average_premium",
    "Syndicate/decision",
    "Syndicate/stamp",
    "Syndicate/submit",
    "Syndicate/withdraw",
    "Tasks/create",
    "Vehicles/history",
    "Watchlist/add",
    "Watchlist/contains",
)

AUTH = {"authorization": "Bearer t"}
COOKIE = {"session": "s"}


def sent(**parts: object) -> dict[str, object]:
    """A request with credentials."""
    return {"headers": AUTH, **parts}


HOME = {"product": "home", "holder": "h1", "sum_insured": 200_000}
MOTOR = {"product": "motor", "holder": "h1", "sum_insured": 20_000, "vehicle": "v1"}
LARGE = {"product": "commercial", "holder": "h2", "sum_insured": 5_000_000, "remind": True}
LIFE = {"product": "life", "holder": "h2", "sum_insured": 2_000_000}
OFFER = {"carrier": "nordic", "reference": "n1", "premium": 400.0}
OFFERS = [OFFER, {"carrier": "mutual", "reference": "m1", "premium": 350.0}]
SYNDICATE = {"carrier": "syndicate", "reference": "s1", "premium": 900.0}

ISSUED = {"type": "Issued", "data": {"holder": "u1", "product": "home", "premium": 500.0}}
TRAVEL = {"type": "Issued", "data": {"holder": "u2", "product": "travel", "premium": 50.0}}
DEAR = {"type": "Issued", "data": {"holder": "u1", "product": "home", "premium": 9000.0}}
ENDORSED = {"type": "Endorsed", "data": {"change": "cover", "delta": 20.0}}
RENEWED = {"type": "Renewed", "data": {"premium": 600.0}}
CANCELLED = {"type": "Cancelled", "data": {"reason": "customer"}}

P = {"policy_id": "p1"}
Q = {"quote_id": "q1"}
C = {"claim_id": "c1"}
INVOICE = {"invoice_id": "i1"}
HOOK = {"x-webhook-token": "whsec"}
CLAIM = {"id": "c1", "policy": "p1", "amount": 900.0}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Quotes/quotes": Case(
            IDIOM,
            [
                sent(json=HOME),
                sent(json=MOTOR),
                sent(json=LARGE),
                sent(json=LIFE),
                sent(json={**HOME, "remind": True}),
                sent(json={"product": "home"}),
                sent(json={**MOTOR, "vehicle": ""}),
                {"json": HOME},
                {"json": HOME, "cookies": COOKIE},
            ],
        ),
        "Quotes/quotes/{quote_id}": Case(IDIOM, [sent(path=Q), {"path": Q, "cookies": COOKIE}, {"path": Q}]),
        "Quotes/quotes/{quote_id}/accept": Case(
            IDIOM,
            [
                sent(path=Q, json={}),
                sent(path=Q, json={"carrier": "nordic"}),
                sent(path=Q, json={"carrier": "mutual"}),
                sent(path=Q, json={"carrier": "syndicate"}),
                sent(path=Q, json={"carrier": "other"}),
                {"path": Q, "json": {}, "cookies": COOKIE},
            ],
        ),
        "Quotes/quotes/fleet": Case(
            IDIOM,
            [
                sent(json={"vehicles": ["v1", "v2", "v3"]}),
                sent(json={"vehicles": ["v1"], "carrier": "mutual"}),
                sent(json={"vehicles": ["v1", "v2"], "carrier": "syndicate"}),
                sent(json={}),
            ],
        ),
        "Policies/policies/issue": Case(
            IDIOM,
            [
                sent(json={"holder": "u1", "premium": 300}),
                sent(json={"holder": "u1", "product": "travel", "premium": "40"}),
                {"json": {"holder": "u1", "premium": 300}, "headers": {**AUTH, "idempotency-key": "k1"}},
                sent(json={"holder": "u1"}),
                sent(json={"holder": "u1", "premium": "much"}),
                {"json": {"holder": "u1", "premium": 300}, "cookies": COOKIE},
            ],
        ),
        "Policies/policies/{policy_id}": Case(
            IDIOM, [sent(path=P), {"path": P, "cookies": COOKIE}, {"path": P}]
        ),
        "Policies/policies/{policy_id}/endorse": Case(
            IDIOM,
            [
                sent(path=P, json={"change": "address"}),
                sent(path=P, json={"change": "driver", "delta": 35}),
                sent(path=P, json={"change": "cover", "delta": "9000"}),
                sent(path=P, json={"change": "name"}),
                {
                    "path": P,
                    "json": {"change": "cover", "delta": 1},
                    "headers": {**AUTH, "idempotency-key": "k2"},
                },
            ],
        ),
        "Policies/policies/{policy_id}/cancel": Case(
            IDIOM,
            [
                sent(path=P, json={}),
                sent(path=P, json={"reason": "sold"}),
                {"path": P, "json": {}, "headers": {**AUTH, "idempotency-key": "k3"}},
            ],
        ),
        "Policies/policies/{policy_id}/history": Case(
            IDIOM,
            [
                sent(path=P),
                sent(path=P, query={"limit": "1"}),
                sent(path=P, query={"kinds": "Endorsed,Renewed"}),
                sent(path=P, query={"kinds": "Issued", "limit": "2"}),
            ],
        ),
        "Policies/renewals/run": Case(
            IDIOM, [sent(json={}), sent(json={"before": "2025-01-01"}), {"json": {}}]
        ),
        "Claims/claims": Case(
            IDIOM,
            [
                sent(json={"policy": "p1", "amount": 300}),
                sent(json={"policy": "p1", "amount": 7000, "parties": ["a", "b"]}),
                sent(json={"policy": "p1", "amount": 250_000}),
                sent(json={"policy": "p1", "amount": 450, "parties": ["a"]}),
                sent(json={}),
                {"json": {"policy": "p1"}, "cookies": COOKIE},
            ],
        ),
        "Claims/claims/{claim_id}": Case(
            IDIOM,
            [
                sent(path=C),
                sent(path=C, query={"include": "documents"}),
                sent(path=C, query={"include": "documents,payments,assessors"}),
                sent(path=C, query={"include": "payments,other"}),
            ],
        ),
        "Claims/claims/{claim_id}/transition": Case(
            IDIOM,
            [sent(path=C, json={"event": e}) for e in ("inspect", "approve", "reject", "appeal", "forget")],
        ),
        "Claims/claims/{claim_id}/settle": Case(
            IDIOM, [sent(path=C, json={}), sent(path=C, json={"repair": True}), {"path": C, "json": {}}]
        ),
        "Claims/claims/{claim_id}/documents": Case(
            IDIOM,
            [
                sent(path=C, json={"documents": ["a.pdf"]}),
                sent(path=C, json={"documents": ["a.pdf", "b.jpg"]}),
            ],
        ),
        "Claims/claims/import": Case(
            IDIOM,
            [
                sent(json={"rows": [{"id": "1", "policy": "p"}, {"id": "2"}]}),
                sent(json={"rows": [{"id": str(n), "policy": "p"} for n in range(5)], "notify": True}),
                sent(json={"rows": [{"id": str(n), "policy": "p"} for n in range(3)]}),
                sent(json={}),
            ],
        ),
        "Fraud/assess": Case(
            IDIOM,
            [
                {"json": {**CLAIM, "parties": []}},
                {"json": {**CLAIM, "parties": ["a", "b"]}},
                {"json": {**CLAIM, "amount": 200_000}},
                {"json": {**CLAIM, "amount": 1000, "parties": ["a"]}},
            ],
        ),
        "Fraud/screen": Case(
            IDIOM,
            [
                sent(json={"parties": ["a"]}),
                sent(json={"parties": ["b", "c"]}),
                sent(json={"parties": ["d", "e", "f"]}),
                sent(json={"parties": ["a", "g"]}),
                sent(json={}),
            ],
        ),
        "Fraud/cases/{case_id}/decide": Case(
            IDIOM,
            [
                sent(path={"case_id": "k"}, json=j)
                for j in (
                    {"decision": "fraud", "reason": "staged"},
                    {"decision": "fraud"},
                    {"decision": "clear"},
                    {"decision": "escalate", "to": "u9"},
                    {"decision": "escalate"},
                )
            ],
        ),
        "Fraud/rescore": Case(IDIOM, [sent(json={}), sent(json={"model": "m2"})]),
        "Billing/invoices/{invoice_id}/pay": Case(
            IDIOM,
            [
                {"path": INVOICE, "json": {}, "headers": {**AUTH, "idempotency-key": "k4"}},
                {"path": INVOICE, "json": {}, "headers": {"idempotency-key": "k5"}, "cookies": COOKIE},
                sent(path=INVOICE, json={}),
            ],
        ),
        "Billing/payments/{payment_id}/wait": Case(IDIOM, [sent(path={"payment_id": "y"})]),
        "Billing/webhooks/psp": Case(
            IDIOM,
            [
                *(
                    {"headers": HOOK, "json": {"id": "e1", "type": kind, "invoice": "i1", "amount": 10}}
                    for kind in ("charge.succeeded", "charge.failed", "dispute.opened", "payout.created")
                ),
                {"json": {"id": "e1", "type": "charge.failed"}},
            ],
        ),
        "Billing/invoices/{invoice_id}/refund": Case(
            IDIOM,
            [
                sent(path=INVOICE, json={}),
                sent(path=INVOICE, json={"amount": 20}),
                sent(path=INVOICE, json={"amount": 9999}),
            ],
        ),
        "Billing/dunning/run": Case(IDIOM, [sent(json={}), sent(json={"dry_run": True})]),
        "Brokers/login": Case(
            IDIOM,
            [
                {"json": {"user": "u", "password": "p"}},
                {"form": {"user": "u", "password": "p", "code": "123"}},
                {"json": {"user": "u"}},
            ],
        ),
        "Brokers/dashboard": Case(IDIOM, [sent(), sent(query={"news": "1"}), {"cookies": COOKIE}]),
        "Brokers/search": Case(
            IDIOM,
            [
                sent(query={"q": "smith"}),
                sent(query={"q": "smith", "in": "claims"}),
                sent(query={"q": "smith", "in": "policies"}),
                sent(query={"q": "smith", "in": "x"}),
                sent(query={"q": "s"}),
            ],
        ),
        "Brokers/commissions/{month}": Case(
            IDIOM,
            [
                sent(path={"month": "2024-05"}, json={}),
                sent(path={"month": "2024-05"}, json={"pay": True}),
                sent(path={"month": "2024-05"}, json={"broker": "b9"}),
            ],
        ),
        "Brokers/leads/import": Case(
            IDIOM,
            [
                sent(json={"leads": [{"email": "a@b.c"}, {"email": "bad"}]}),
                sent(json={"leads": [{"email": "a@b.c"}, {"email": "d@b.c"}, {"email": "e@b.c"}]}),
                sent(json={}),
            ],
        ),
    },
    {
        "Identity/introspect": [
            {
                "active": True,
                "sub": "u1",
                "tenant": "t1",
                "roles": ["customer", "broker", "operator", "adjuster", "senior", "analyst", "underwriter"],
            },
            {"active": True, "sub": "u1", "roles": ["customer", "broker", "operator", "adjuster", "analyst"]},
            {"active": True, "sub": "u1", "roles": ["broker", "operator", "adjuster"]},
            {"active": True, "sub": "u1", "tenant": "t1", "roles": ["customer"]},
            {"active": True, "sub": "u2", "tenant": "t1", "roles": ["broker"]},
            {"active": False},
        ],
        "Identity/login": [{"token": "t"}, {"mfa": "challenge"}],
        "Identity/verify": [{"token": "t"}],
        "RateLimit/take": [{}, {"exhausted": False}, {"exhausted": True}],
        "Features/flags": [
            {},
            {"disabled": ["mutual"]},
            {"disabled": ["nordic", "syndicate"]},
            {"disabled": []},
        ],
        "NordicRe/quote": [
            {"ref": "n1", "premium": 380.0},
            {"ref": "n2", "premium": 500.0},
            {"declined": True},
        ],
        "NordicRe/bind": [{"policy": "np1"}, {}],
        "Mutual/session": [{"token": "m1"}, {"token": "m2", "member": True}, {}],
        "Mutual/rate": [{"premium": 320.0}, {"premium": 450.0}, {}],
        "Mutual/bind": [{"contract": "mc1"}],
        "Syndicate/submit": [{"id": "s1"}, {"id": "s2"}],
        "Syndicate/decision": [
            {"status": "quoted", "premium": 300.0},
            {"status": "quoted", "premium": 1200.0},
            {"status": "declined"},
            {"status": "open"},
            {},
        ],
        "Syndicate/stamp": [{"umr": "B0001"}, {}],
        "QuoteStore/get": [
            {"risk": {"product": "home", "holder": "h1", "sum_insured": 200_000}, "offers": OFFERS},
            {"risk": MOTOR, "offers": [OFFER], "status": "open"},
            {
                "risk": {"product": "commercial", "holder": "h2", "sum_insured": 5_000_000},
                "offers": [SYNDICATE, OFFER],
            },
            {
                "risk": {"product": "commercial", "holder": "h2", "sum_insured": 5_000_000},
                "offers": [SYNDICATE],
            },
            {"risk": {"product": "home", "holder": "h1", "sum_insured": 90_000}, "offers": []},
            {"risk": MOTOR, "offers": OFFERS, "status": "accepted"},
            {},
        ],
        "QuoteStore/count": [{"open": 3}],
        "Cache/get": [{}, {"value": {"id": "q1"}}],
        "Statistics/average_premium": [{"premium": 410.0}, {}],
        "Vehicles/history": [{}, {"owners": 2}, {"stolen": True}],
        "EventStore/snapshot": [
            {},
            {},
            {
                "state": {
                    "version": 3,
                    "status": "active",
                    "holder": "u1",
                    "product": "home",
                    "premium": 700.0,
                }
            },
            {
                "state": {
                    "version": 2,
                    "status": "active",
                    "holder": "u2",
                    "product": "motor",
                    "premium": 450.0,
                }
            },
        ],
        "EventStore/read": [
            {"events": [ISSUED]},
            {"events": [ISSUED, ENDORSED], "next": None},
            {"events": [TRAVEL, ENDORSED]},
            {"events": [DEAR]},
            {"events": [ISSUED, RENEWED], "next": 2},
            {"events": [ISSUED, CANCELLED]},
            {"events": []},
            {},
        ],
        "Idempotency/begin": [{}, {"done": False}, {"done": True, "result": {"id": "p1"}}],
        "Sanctions/screen": [{}, {"hit": False}, {"hit": True}],
        "Customers/get": [{}, {"id": "u1"}, {"blocked": True}],
        "Customers/find": [{}, {"id": "k1"}, {"id": "k1", "owner": "u1"}, {"id": "k2", "owner": "u7"}],
        "Geo/risk": [{}, {"loading": 0.1}, {"loading": 20.0}],
        "Ledger/balance": [{}, {"unearned": 120.0}, {"unearned": 0}],
        "Ledger/reverse": [{"id": "r1"}],
        "Calendar/due": [{"policies": ["p1", "p2"]}, {"policies": ["p1"]}, {}],
        "Documents/render": [{"url": "/d/1"}, {}],
        "Documents/store": [{"ids": ["d1"]}, {"ids": ["d1", "d2"]}, {}],
        "Documents/ocr": [{"kind": "invoice", "total": 120.0}, {"kind": "photo"}, {"kind": "invoice"}],
        "Documents/list": [{"ids": ["d1"]}],
        "ClaimStore/get": [
            CLAIM,
            {**CLAIM, "amount": 8000.0, "parties": ["a"]},
            {**CLAIM, "state": "inspection"},
            {**CLAIM, "state": "inspection", "amount": 70_000.0},
            {**CLAIM, "state": "approved"},
            {**CLAIM, "state": "approved", "amount": 100.0},
            {**CLAIM, "state": "rejected"},
            {},
        ],
        "Locks/acquire": [{}, {"granted": True}, {"granted": False}],
        "Assessors/near": [{"assessors": ["a1", "a2"]}, {"assessors": ["a1"]}, {}],
        "Payments/payout": [{"id": "y1"}],
        "Payments/charge": [{"id": "y1"}, {"id": "y2", "pending": True}],
        "BackupPayments/charge": [{"id": "b1"}, {"id": "b2", "pending": True}],
        "Payments/status": [{"state": "pending"}, {}, {"state": "done"}, {"state": "failed"}],
        "Search/claims": [{"ids": ["c1"]}, {"ids": ["c1", "c2", "c3", "c4"]}, {"ids": []}, {}],
        "Search/policies": [{"ids": ["p1"]}, {"ids": []}, {}],
        "Search/customers": [{"ids": ["k1"]}, {}],
        "Models/score": [{"score": 0.1}, {"score": 0.7}, {"score": 0.95}, {}],
        "Models/explain": [{"reason": "pattern"}, {}],
        "Watchlist/contains": [{}, {"hit": False}, {"hit": True}],
        "CaseStore/get": [
            {},
            {"parties": ["a", "b"]},
            {"parties": ["a"], "assignee": "u1"},
            {"parties": [], "assignee": "u5"},
        ],
        "Jobs/create": [{"id": "j1"}, {"id": "j2", "exists": True}],
        "InvoiceStore/get": [
            {"amount": 50},
            {"amount": 120.0, "state": "open"},
            {"state": "paid", "amount": 80},
            {},
        ],
        "InvoiceStore/attempts": [{"count": 1}, {"count": 3}, {}],
        "InvoiceStore/overdue": [
            {"invoices": [{"id": "i1", "overdue": 70, "policy": "p1"}]},
            {"invoices": [{"id": "i1", "overdue": 40}, {"id": "i2", "overdue": 10, "phone": "+1"}]},
            {"invoices": [{"id": "i1", "overdue": 9}, {"id": "i2", "overdue": 2}]},
            {},
        ],
        "Sales/page": [
            {
                "sales": [{"product": "home", "premium": 2000}, {"product": "motor", "premium": 100}],
                "more": True,
            },
            {"sales": [{"product": "motor", "premium": 300}, {"premium": 80, "cancelled": True}]},
            {"sales": [{"product": "life", "premium": 3000}], "more": False},
            {},
        ],
        "Sales/summary": [{"sum": 1000}],
        "Contracts/tier": [{"tier": "gold"}, {"tier": "silver"}, {}],
        "News/latest": [{"items": ["n"]}],
    },
)
