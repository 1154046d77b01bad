"""What is sent to the application grid, and what its stubs may answer."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, grid"
STUBS = (
    "AlertStore/find",
    "AlertStore/get",
    "AlertStore/list",
    "AlertStore/save",
    "Approvals/request",
    "Audit/record",
    "Auth/introspect",
    "BackupPayments/charge",
    "Broker/price",
    "Bus/publish",
    "ColdStore/range",
    "Collections/open",
    "Contracts/get",
    "Contracts/list",
    "Contracts/update",
    "Crm/case",
    "Crm/customer",
    "Crm/note",
    "Crm/preferences",
    "CustomerIndex/search",
    "DeadLetters/put",
    "Dedup/claim",
    "Email/send",
    "Exchange/price",
    "Flags/evaluate",
    "Flexibility/candidates",
    "Gateway/cancel",
    "Gateway/configure",
    "Gateway/flash",
    "Gateway/presence",
    "Gateway/rollback",
    "Gateway/send",
    "Gateway/status",
    "Geo/lookup",
    "Idempotency/lookup",
    "Idempotency/store",
    "Imports/rejects",
    "Inventory/release",
    "Inventory/reserve",
    "InvoiceStore/get",
    "InvoiceStore/list",
    "InvoiceStore/mark",
    "InvoiceStore/save",
    "Jobs/create",
    "Jobs/fail",
    "Jobs/finish",
    "Jobs/progress",
    "Layouts/get",
    "Ledger/balance",
    "Ledger/post",
    "Limiter/take",
    "Locks/acquire",
    "Locks/release",
    "MeterIndex/search",
    "MeterStore/get",
    "MeterStore/insert",
    "MeterStore/list",
    "MeterStore/update",
    "Oncall/schedule",
    "PagerHub/resolve",
    "PagerHub/trigger",
    "Payments/charge",
    "Payments/refund",
    "Pdf/render",
    "Pki/issue",
    "Pki/revoke",
    "Profiles/baseline",
    "Profiles/expected",
    "Push/send",
    "RunStore/append",
    "RunStore/create",
    "RunStore/events",
    "SiteIndex/search",
    "Sms/send",
    "Spool/append",
    "Suppliers/offer",
    "TariffStore/get",
    "TariffStore/save",
    "Tsdb/latest",
    "Tsdb/range",
    "Tsdb/rollup",
    "Tsdb/write",
    "Weather/current",
    "Weather/forecast",
)

AUTH = {"authorization": "Bearer t0"}
KEYED = {**AUTH, "idempotency-key": "k1"}
READING = {"meter": "m1", "at": 10, "kwh": 1.5}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Meters/meters": Case(
            IDIOM,
            [
                {"json": {"serial": "s1", "site": "x", "model": "smart"}, "headers": AUTH},
                {"json": {"serial": "s1", "site": "x"}, "headers": KEYED},
                {"json": {"serial": "s1"}, "headers": AUTH},
                {"json": {"serial": "s1", "site": "x"}},
            ],
        ),
        "Meters/meters/{meter_id}": Case(
            IDIOM,
            [
                {"path": {"meter_id": "m1"}},
                {"path": {"meter_id": "m1"}, "query": {"expand": "latest,location,alerts"}},
                {"path": {"meter_id": "m1"}, "query": {"expand": "location,nonsense"}},
            ],
        ),
        "Meters/catalogue": Case(
            IDIOM,
            [{"headers": AUTH}, {"headers": AUTH, "query": {"cursor": "c1", "limit": "10"}}, {}],
        ),
        "Meters/meters/{meter_id}/transition": Case(
            IDIOM,
            [
                {"path": {"meter_id": "m1"}, "json": {"event": event}, "headers": AUTH}
                for event in ("install", "activate", "suspend", "explode")
            ]
            + [{"path": {"meter_id": "m1"}, "json": {"event": "install"}}],
        ),
        "Meters/import": Case(
            IDIOM,
            [
                {
                    "json": {"rows": [{"serial": "a", "site": "x"}, {"serial": "b", "site": "y"}]},
                    "headers": AUTH,
                },
                {"json": {"rows": [{"serial": "a", "site": "x"}, {"serial": "b"}]}, "headers": AUTH},
                {"json": {"rows": [{}] * 101}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
            ],
        ),
        "Meters/search": Case(
            IDIOM, [{"query": {"q": "kitchen"}}, {"query": {"q": "roof"}, "headers": {"x-client": "app"}}, {}]
        ),
        "Telemetry/ingest": Case(
            IDIOM,
            [
                {"json": READING},
                {"json": {**READING, "voltage": 260}},
                {"json": {**READING, "kwh": -1}},
                {"json": {"meter": "m1"}},
            ],
        ),
        "Telemetry/ingest/batch": Case(
            IDIOM,
            [
                {"json": {"readings": [READING, {**READING, "at": 11}, {**READING, "at": 12}]}},
                {"json": {"readings": [READING, {"meter": "m1"}]}},
                {"json": {"readings": [{}]}},
                {"json": {}},
            ],
        ),
        "Telemetry/readings/{meter_id}": Case(
            IDIOM,
            [
                {"path": {"meter_id": "m1"}},
                {"path": {"meter_id": "m2"}},
                {"path": {"meter_id": "m1"}, "query": {"start": "1", "end": "9"}},
                {"path": {"meter_id": "m1"}, "query": {"start": "1", "end": "9", "archive": "1"}},
                {"path": {"meter_id": "m1"}, "query": {"end": "soon"}},
            ],
        ),
        "Telemetry/backfill": Case(IDIOM, [{"json": {"meter": "m1"}}, {"json": {}}]),
        "Telemetry/aggregate": Case(
            IDIOM, [{}, {"query": {"regions": "north"}}, {"query": {"regions": "a,b,c"}}]
        ),
        "Telemetry/gateway/events": Case(
            IDIOM,
            [
                {"json": {"type": "online", "gateway": "g1"}},
                {"json": {"type": "offline", "gateway": "g1"}},
                {"json": {"type": "reading", "data": READING}},
                {"json": {"type": "reading", "data": {"meter": "m1"}}},
                {"json": {"type": "tamper", "meter": "m1"}},
                {"json": {"type": "reboot"}},
                {"json": {}},
            ],
        ),
        "Telemetry/quality/{meter_id}": Case(IDIOM, [{"path": {"meter_id": "m1"}}]),
        "Alerts/evaluate": Case(
            IDIOM,
            [
                {"json": {"meter": "m1", "kwh": 1}},
                {"json": {"meter": "m1", "kwh": 1, "voltage": 260}},
                {"json": {"meter": "m1", "kwh": 9}},
                {"json": {"meter": "m1", "kwh": 9, "voltage": 260, "kind": "heatpump"}},
                {"json": {"kwh": 9}},
            ],
        ),
        "Alerts/alerts/{alert_id}/ack": Case(
            IDIOM, [{"path": {"alert_id": "a1"}, "headers": AUTH}, {"path": {"alert_id": "a1"}}]
        ),
        "Alerts/alerts/{alert_id}/escalate": Case(IDIOM, [{"path": {"alert_id": "a1"}}]),
        "Alerts/notify": Case(
            IDIOM,
            [
                {"json": {"to": "c1", "text": "hello"}},
                {"json": {"to": "c1", "text": "fire", "urgent": True}},
                {"json": {}},
            ],
        ),
        "Alerts/open": Case(IDIOM, [{}, {"query": {"tenant": "t1", "severity": "critical"}}]),
        "Alerts/digest": Case(
            IDIOM, [{"json": {"tenants": ["t1", "t2"]}}, {"json": {"tenants": ["t1"]}}, {"json": {}}]
        ),
        "Billing/quote": Case(
            IDIOM,
            [
                {"json": {"customer": "c1"}},
                {"json": {"customer": "c1", "annual_kwh": 2000.0, "suppliers": ["a", "b", "c"]}},
            ],
        ),
        "Billing/spot": Case(IDIOM, [{}]),
        "Billing/tariffs/publish": Case(
            IDIOM,
            [
                {"json": {"id": "t1", "rate": 0.3, "version": 1}, "headers": AUTH},
                {"json": {"id": "t1", "rate": 0.9, "version": 1}, "headers": AUTH},
                {"json": {"id": "t1", "rate": 0.3}, "headers": AUTH},
                {"json": {"id": "t1"}, "headers": AUTH},
                {"json": {"id": "t1", "rate": 0.3}},
            ],
        ),
        "Billing/contracts/{contract_id}/switch": Case(
            IDIOM,
            [
                {"path": {"contract_id": "k1"}, "json": {"tariff": "green"}, "headers": AUTH},
                {"path": {"contract_id": "k2"}, "json": {}, "headers": AUTH},
            ],
        ),
        "Billing/runs": Case(IDIOM, [{"json": {"period": "2024-05"}}, {"json": {}}]),
        "Billing/runs/{run_id}": Case(
            IDIOM, [{"path": {"run_id": "r1"}}, {"path": {"run_id": "r1"}, "query": {"details": "1"}}]
        ),
        "Billing/runs/{run_id}/resume": Case(
            IDIOM, [{"path": {"run_id": "r1"}, "headers": AUTH}, {"path": {"run_id": "r1"}}]
        ),
        "Billing/invoices/{invoice_id}/pay": Case(
            IDIOM,
            [
                {"path": {"invoice_id": "i1"}},
                {"path": {"invoice_id": "i1"}, "headers": {"idempotency-key": "k1"}},
            ],
        ),
        "Billing/webhooks/payments": Case(
            IDIOM,
            [
                {
                    "json": {"type": kind, "id": "e1", "invoice": "i1"},
                    "headers": {"x-webhook-secret": "whsec"},
                }
                for kind in ("charge.settled", "charge.disputed", "charge.failed", "charge.other")
            ]
            + [{"json": {"type": "charge.settled", "id": "e1"}}],
        ),
        "Commands/commands": Case(
            IDIOM,
            [
                {"json": {"meter": "m1", "action": "ping"}, "headers": AUTH},
                {"json": {"meter": "m1", "action": "relay", "wait": True}, "headers": AUTH},
                {"json": {"meter": "m1", "action": "read", "wait": True}, "headers": AUTH},
                {"json": {"meter": "m1", "action": "explode"}, "headers": AUTH},
                {"json": {"meter": "m1"}},
            ],
        ),
        "Commands/commands/{command_id}/cancel": Case(
            IDIOM, [{"path": {"command_id": "c1"}, "headers": AUTH}, {"path": {"command_id": "c1"}}]
        ),
        "Commands/firmware/rollout": Case(
            IDIOM,
            [
                {"json": {"meters": ["m1", "m2", "m3"], "version": "2.1"}, "headers": AUTH},
                {"json": {"meters": ["m1"]}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
                {"json": {"meters": ["m1"]}},
            ],
        ),
        "Commands/demand-response": Case(IDIOM, [{"json": {"kw": 3}}, {"json": {"kw": 10}}, {"json": {}}]),
        "Dashboard/v1/overview": Case(IDIOM, [{}, {"query": {"tenant": "t1"}}]),
        "Dashboard/v2/overview": Case(IDIOM, [{"headers": AUTH}, {}]),
        "Dashboard/customers/{customer_id}": Case(IDIOM, [{"path": {"customer_id": "c1"}}]),
        "Dashboard/reports": Case(
            IDIOM,
            [
                {"json": {"sections": ["usage", "alerts", "billing"]}, "headers": AUTH},
                {"json": {"recipients": ["a@x", "b@x", "c@x"]}, "headers": AUTH},
                {"json": {"sections": ["alerts", "horoscope"]}, "headers": AUTH},
                {"json": {}},
            ],
        ),
    },
    {
        "AlertStore/find": [{"alert": {"id": "a1", "kind": "spike"}}, {}, {}],
        "AlertStore/get": [
            {"id": "a1", "status": "open", "severity": "critical"},
            {"id": "a1", "status": "open", "severity": "info", "team": "north"},
            {"id": "a1", "status": "acked"},
            {"id": "a1", "status": "closed"},
            {},
        ],
        "AlertStore/list": [
            {"alerts": [{"id": "a1", "kind": "spike"}, {"id": "a2", "kind": "frost"}]},
            {"alerts": [{"id": "a3"}]},
            {"alerts": []},
        ],
        "AlertStore/save": [{"id": "a7"}, {}],
        "Alerts/evaluate": [{"raised": []}, {"raised": ["a1"]}],
        "Alerts/notify": [{"channel": "email"}, {"muted": True}],
        "Alerts/open": [{"count": 1, "alerts": [{"id": "a1"}]}, {"count": 0, "alerts": []}],
        "Approvals/request": [{"approved": True}, {}],
        "Auth/introspect": [
            {"active": True, "sub": "u1", "tenant": "t1", "scopes": ["admin"]},
            {"active": True, "sub": "u3", "tenant": "t2", "scopes": ["admin"]},
            {"active": True, "sub": "root", "scopes": ["admin"]},
            {"active": True, "sub": "u2", "tenant": "t1", "scopes": ["meters:read", "dashboard:read"]},
            {"active": False},
        ],
        "BackupPayments/charge": [{"id": "b1"}],
        "Billing/spot": [{"price": 0.1, "source": "exchange"}, {"price": 0.2, "source": "broker"}],
        "Broker/price": [{"price": 0.21}],
        "ColdStore/range": [
            {"points": [{"at": 1, "kwh": 1.0}, {"at": 2, "kwh": 1.5}]},
            {"points": [{"at": 1, "kwh": 1.0}], "next": "c2"},
            {"points": [{"at": n, "kwh": 0.5} for n in range(10)], "next": "c3"},
            {"points": [], "next": "c4"},
            {},
        ],
        "Contracts/get": [
            {"id": "k1", "customer": "c1"},
            {"id": "k1", "customer": "c1", "locked": True},
            {"id": "k2"},
            {},
        ],
        "Contracts/list": [
            {"contracts": [{"id": "k1", "meter": "m1"}, {"id": "k2", "meter": "m2", "tariff": "green"}]},
            {"contracts": [{"id": "k3", "meter": "m3"}]},
            {"contracts": []},
        ],
        "Crm/customer": [
            {"name": "Ann", "meters": ["m1", "m2"], "vip": True},
            {"name": "Bob", "meters": ["m1"]},
            {"name": "Cy"},
            {},
        ],
        "Crm/preferences": [
            {"channels": ["push", "sms", "email"]},
            {"channels": ["fax", "sms"]},
            {"muted": True},
            {"channels": []},
            {},
        ],
        "CustomerIndex/search": [{"hits": [{"id": "c1"}]}, {"hits": []}],
        "Dedup/claim": [{"duplicate": True}, {}, {}],
        "Email/send": [{"accepted": True}, {"accepted": False}, {}],
        "Exchange/price": [{"price": 0.11}],
        "Flags/evaluate": [{"on": True}, {"on": False}, {}],
        "Flexibility/candidates": [
            {"meters": [{"id": "m1", "kw": 2.0}, {"id": "m2", "kw": 1.5}, {"id": "m3"}]},
            {"meters": [{"id": "m1", "kw": 12.0}]},
            {"meters": []},
        ],
        "Gateway/flash": [{"ok": True}, {"ok": False}, {}],
        "Gateway/send": [{"id": "g1", "accepted": True}, {"id": "g2", "accepted": False}, {"id": "g3"}],
        "Gateway/status": [{"status": "done"}, {"status": "failed"}, {"status": "sent"}, {"status": "sent"}],
        "Geo/lookup": [{"lat": 48.1, "lon": 11.5}],
        "Idempotency/lookup": [{"found": True, "reply": {"id": "old"}}, {}],
        "Inventory/reserve": [{"id": "r1"}, {"id": "r2"}, {}],
        "InvoiceStore/get": [
            {"id": "i1", "amount": 10, "contract": "k1"},
            {"id": "i1", "amount": 12, "contract": "k1", "reminders": 3},
            {"id": "i1", "amount": 10, "status": "paid"},
            {},
        ],
        "InvoiceStore/list": [{"invoices": [{"id": "i1", "overdue": True}, {"id": "i2"}]}, {"invoices": []}],
        "InvoiceStore/save": [{"id": "i9"}],
        "Jobs/create": [{"id": "j1"}],
        "Layouts/get": [
            {"widgets": ["alerts", "usage", "price"]},
            {"widgets": ["price", "clock"]},
            {"widgets": []},
            {},
        ],
        "Ledger/balance": [{"balance": 100}],
        "Ledger/post": [{"entry": "e1"}],
        "Limiter/take": [{"limited": True}, {}, {}],
        "Locks/acquire": [{"token": "x"}, {"token": "y"}, {}],
        "MeterIndex/search": [{"hits": [{"id": "m1"}, {"id": "m2"}]}, {}],
        "MeterStore/get": [
            {"id": "m1", "state": "registered", "site": "x"},
            {"id": "m1", "state": "installed", "site": "x", "model": "smart"},
            {"id": "m1", "state": "active", "site": "x", "model": "smart"},
            {"id": "m1", "state": "suspended", "site": "x"},
            {},
        ],
        "MeterStore/insert": [{"id": "s1"}],
        "MeterStore/list": [{"items": [{"id": "m1"}, {"id": "m2"}], "next": "c2"}, {"items": []}],
        "Oncall/schedule": [
            {"people": [{"name": "ann", "channels": ["push", "sms"]}, {"name": "bob"}]},
            {"people": [{"name": "cy", "channels": ["pigeon"]}]},
            {"people": []},
        ],
        "Payments/charge": [{"id": "ch1"}],
        "Pdf/render": [{"url": "https://files/1.pdf"}],
        "Pki/issue": [{"id": "cert1"}],
        "Profiles/baseline": [{"kwh": 1.0}, {"kwh": 8.0}, {}],
        "Profiles/expected": [{"points": 2}, {"points": 3}, {"points": 96}, {}],
        "Push/send": [{"accepted": True}, {"accepted": False}],
        "RunStore/create": [{"id": "r1"}, {}],
        "RunStore/events": [
            {
                "events": [
                    {"kind": "started", "data": {"period": "2024-05"}},
                    {"kind": "billed", "data": {"contract": "k1"}},
                    {"kind": "failed", "data": {"contract": "k2"}},
                    {"kind": "aborted", "data": {}},
                ]
            },
            {
                "events": [
                    {"kind": "started", "data": {"period": "2024-05"}},
                    {"kind": "billed", "data": {"contract": "k1"}},
                    {"kind": "finished", "data": {}},
                ]
            },
            {"events": [{"kind": "started", "data": {"period": "2024-06"}}]},
            {"events": []},
        ],
        "SiteIndex/search": [{"hits": [{"id": "x1"}]}, {}],
        "Sms/send": [{"accepted": True}, {"accepted": False}],
        "Suppliers/offer": [{"price": 700, "supplier": "a"}, {"price": 800, "supplier": "b"}, {}],
        "TariffStore/get": [
            {"id": "t1", "rate": 0.3, "base": 4, "version": 1},
            {"id": "t1", "rate": 0.35, "version": 1},
            {},
        ],
        "Telemetry/aggregate": [{"total": 12.5, "regions": {"north": 12.5}}, {}],
        "Telemetry/readings/{meter_id}": [{"points": [], "kwh": 120.0}, {"points": []}],
        "Tsdb/latest": [{"point": {"at": 1, "kwh": 2.0}}, {}],
        "Tsdb/range": [
            {"points": [{"at": 1, "kwh": 2.0}, {"at": 2, "kwh": 1.0}]},
            {"points": [{"at": 1}]},
            {},
        ],
        "Tsdb/rollup": [{"kwh": 4.5}, {}],
        "Tsdb/write": [{"written": 1}, {"written": 2}, {"written": 0}, {}],
        "Weather/current": [{"celsius": -4}, {"celsius": 12}],
        "Weather/forecast": [{"celsius": [1, 2, 3]}],
    },
)
