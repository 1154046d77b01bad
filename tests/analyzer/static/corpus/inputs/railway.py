"""What the railway application is asked, and what the services behind it may answer."""

import hashlib
import hmac

from corpus.execution import Case, Inputs

IDIOM = "everyday code, railway"

STUBS = (
    "Approvals/request",
    "Audit/record",
    "Backoffice/alert",
    "Backoffice/enqueue",
    "Backoffice/retry_later",
    "BookingStore/begin",
    "BookingStore/commit",
    "BookingStore/get",
    "BookingStore/insert",
    "BookingStore/list",
    "BookingStore/rollback",
    "BookingStore/upcoming",
    "BookingStore/update",
    "Cache/invalidate",
    "Campaigns/factor",
    "CarPartner/rentals",
    "Coaches/emergency",
    "Coaches/search",
    "Customers/get",
    "Customers/mark_unreachable",
    "Customers/preferences",
    "Customers/put_preferences",
    "Documents/render",
    "Documents/status",
    "EventStore/append",
    "EventStore/read",
    "EventStore/version",
    "Flags/evaluate",
    "HotelPartner/stays",
    "Idempotency/abandon",
    "Idempotency/begin",
    "Idempotency/finish",
    "Identity/verify",
    "Inventory/block",
    "Inventory/confirm",
    "Inventory/load",
    "Inventory/lock",
    "Inventory/locked",
    "Inventory/release",
    "Inventory/seatmap",
    "Locks/acquire",
    "Locks/release",
    "Lounges/list",
    "Mail/send",
    "Metrics/count",
    "Offers/for",
    "Outbox/get",
    "Outbox/park",
    "Payments/authorize",
    "Payments/capture",
    "Payments/refund",
    "Payments/status",
    "Payments/void",
    "PriceBook/base",
    "PriceBook/cheapest",
    "PriceBook/estimate",
    "PriceBook/put_rule",
    "PriceBook/simulate",
    "PriceEngine/price",
    "Push/send",
    "Quotes/get",
    "Quotes/save",
    "Railcards/check",
    "RateLimit/hit",
    "Realtime/annotate",
    "Realtime/delay",
    "Realtime/delays",
    "Realtime/history",
    "Regional/search",
    "Risk/declined",
    "Risk/dispute",
    "Risk/score",
    "Sequences/next",
    "Sms/send",
    "Sms/verify",
    "Snapshots/get",
    "Snapshots/request",
    "Stations/suggest",
    "Storage/get",
    "Storage/put",
    "Subscribers/page",
    "Tenants/config",
    "Timetable/between",
    "Timetable/board",
    "Timetable/nearest",
    "Timetable/search",
    "Timetable/suspend",
    "Timetable/trip",
    "Timetable/upsert",
    "Vouchers/issue",
    "Vouchers/validate",
    "Waitlist/join",
    "Warehouse/aggregate",
    "Warehouse/previous",
)

AUTH = {"authorization": "Bearer t"}
KEYED = {**AUTH, "idempotency-key": "k1"}


def signed(event: str) -> dict[str, str]:
    return {"x-signature": hmac.new(b"test-secret", event.encode(), hashlib.sha256).hexdigest()}


ROLES = ["planner", "dispatcher", "revenue", "agent", "finance", "admin"]
JOURNEY = {"from": "Bern", "to": "Basel", "date": "2025-05-01"}
OPENED = {"kind": "opened", "data": {"booking": "b1", "cents": 1500, "customer": "u1"}}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Connections/search": Case(
            IDIOM,
            [
                {"query": JOURNEY},
                {"query": {**JOURNEY, "regional": "1", "modes": "rail,bus"}, "headers": {"x-api-key": "a"}},
                {"query": {**JOURNEY, "modes": "bus", "max_changes": "1", "limit": "1"}},
                {"query": {**JOURNEY, "regional": "true", "limit": "many"}},
                {"query": {"from": "Bern", "to": "Bern", "date": "2025-05-01"}},
                {"query": {**JOURNEY, "date": "tomorrow"}},
                {"query": {"from": "Bern"}},
            ],
        ),
        "Connections/stations/suggest": Case(
            IDIOM, [{"query": {"q": "be"}}, {"query": {"q": "b"}}, {"query": {}}, {"query": {"q": "Zür"}}]
        ),
        "Connections/departures/{station}": Case(
            IDIOM, [{"path": {"station": "Bern"}}, {"path": {"station": "X"}}]
        ),
        "Connections/alternatives/{trip_id}": Case(
            IDIOM, [{"path": {"trip_id": "t1"}}, {"path": {"trip_id": "t2"}}]
        ),
        "Connections/timetable/import": Case(
            IDIOM,
            [
                {
                    "json": {
                        "rows": [
                            {"train": "IC1", "departs": "08:00"},
                            {"train": "IC2", "departs": "09:00"},
                            {"train": "IC3", "departs": "10:00"},
                            {"train": ""},
                        ]
                    },
                    "headers": AUTH,
                },
                {"json": {"csv": "train,departs\nIC1,08:00\nIC2,09:00\n"}, "headers": AUTH},
                {"json": {"rows": [{"train": "IC1", "departs": "08:00"}]}, "headers": AUTH},
                {"json": {"rows": [{"train": "IC1"}]}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
                {"json": {"rows": []}},
            ],
        ),
        "Connections/disruptions": Case(
            IDIOM,
            [
                {"json": {"line": "S1", "severity": "minor"}, "headers": AUTH},
                {"json": {"line": "S1", "severity": "major", "text": "points"}, "headers": AUTH},
                {"json": {"line": "S1", "severity": "closure", "text": "tree"}, "headers": AUTH},
                {"json": {"line": "S1", "severity": "odd"}, "headers": AUTH},
                {"json": {"line": "S1"}, "headers": AUTH},
                {"json": {"line": "S1", "severity": "minor"}, "headers": {"authorization": "Basic x"}},
            ],
        ),
        "Fares/quote": Case(
            IDIOM,
            [
                {"json": {"train": "IC1"}},
                {"json": {"train": "IC1", "passengers": 7}, "headers": {"x-api-version": "1"}},
                {"json": {"train": "IC1", "passengers": 12, "railcard": "R1", "voucher": "V1"}},
                {"json": {"train": "IC1", "railcard": "R1", "class": 1, "voucher": "V1"}},
                {"json": {"train": "IC1", "voucher": "V1"}, "headers": {"x-api-version": "2"}},
                {"json": {"train": "IC1"}, "headers": {"x-api-version": "9"}},
                {"json": {}},
            ],
        ),
        "Fares/quotes/{quote_id}": Case(IDIOM, [{"path": {"quote_id": "q1"}}, {"path": {"quote_id": "q2"}}]),
        "Fares/calendar": Case(
            IDIOM,
            [
                {"query": {"from": "Bern", "to": "Basel", "start": "2025-05-01"}},
                {
                    "query": {"from": "Bern", "to": "Basel", "start": "2025-05-01", "days": "1"},
                    "headers": {"x-tenant": "sob"},
                },
                {
                    "query": {"from": "Bern", "to": "Basel", "start": "2025-05-01", "days": "0"},
                    "headers": {"x-tenant": "bls"},
                },
                {"query": {"from": "Bern", "to": "Basel", "start": "soon"}},
                {"query": {"to": "Basel"}},
            ],
        ),
        "Fares/rules": Case(
            IDIOM,
            [
                {"json": {"name": "r", "when": {"weekday": 5}, "then": {"percent": 10}}, "headers": AUTH},
                {"json": {"name": "r", "when": {"load": 0.9}, "then": {"percent": 60}}, "headers": AUTH},
                {
                    "json": {"name": "r", "when": {"train": "IC1"}, "then": {"percent": 5}, "dry_run": True},
                    "headers": AUTH,
                },
                {"json": {"name": "r", "when": {"moon": "full"}, "then": {"percent": 200}}, "headers": AUTH},
                {"json": {"name": "r"}, "headers": AUTH},
                {"json": {"name": "r"}},
            ],
        ),
        "Fares/compare": Case(
            IDIOM, [{"json": {"train": "IC1"}}, {"json": {"train": "IC2", "passengers": 2}}, {"json": {}}]
        ),
        "Bookings/holds": Case(
            IDIOM,
            [
                {"json": {"trains": ["IC1"]}, "headers": AUTH},
                {"json": {"trains": ["IC1", "S3"], "seats": 2}, "headers": KEYED},
                {"json": {"trains": ["IC1", "S3", "B5"], "seats": 1}, "headers": KEYED},
                {"json": {"trains": [], "seats": 1}, "headers": KEYED},
                {"json": {"trains": ["IC1"], "seats": 20}, "headers": AUTH},
                {"json": {"trains": ["IC1"]}},
            ],
        ),
        "Bookings/bookings/{booking_id}/pay": Case(
            IDIOM,
            [
                {"path": {"booking_id": "b1"}, "json": {"quote": "q1"}, "headers": AUTH},
                {
                    "path": {"booking_id": "b1"},
                    "json": {"quote": "q1", "method": "invoice"},
                    "headers": KEYED,
                },
                {"path": {"booking_id": "b1"}, "json": {"quote": "q1", "max_cents": 1000}, "headers": KEYED},
                {"path": {"booking_id": "b1"}, "json": {}},
            ],
        ),
        "Bookings/bookings/{booking_id}": Case(
            IDIOM,
            [
                {"path": {"booking_id": "b1"}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "query": {"expand": "payment,seats,delay"}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "query": {"expand": "delay"}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "query": {"expand": "weather"}, "headers": AUTH},
                {"path": {"booking_id": "b1"}},
            ],
        ),
        "Bookings/bookings": Case(
            IDIOM,
            [
                {"query": {}, "headers": AUTH},
                {"query": {"customer": "u9", "state": "paid", "limit": "1"}, "headers": AUTH},
                {"query": {"limit": "2", "offset": "2"}, "headers": AUTH},
                {"query": {"limit": "x"}, "headers": AUTH},
                {"query": {}},
            ],
        ),
        "Bookings/bookings/{booking_id}/cancel": Case(
            IDIOM,
            [
                {"path": {"booking_id": "b1"}, "json": {"hours_before": 80}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {"hours_before": 30}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {"hours_before": 2}, "headers": AUTH},
                {
                    "path": {"booking_id": "b1"},
                    "json": {"hours_before": -1, "flexible": True},
                    "headers": AUTH,
                },
                {"path": {"booking_id": "b1"}, "json": {}},
            ],
        ),
        "Bookings/bookings/{booking_id}/exchange": Case(
            IDIOM,
            [
                {"path": {"booking_id": "b1"}, "json": {"train": "IC5"}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {"train": "IC5", "flexible": True}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {}},
            ],
        ),
        "Bookings/bookings/{booking_id}/seats": Case(
            IDIOM,
            [
                {"path": {"booking_id": "b1"}, "json": {}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {"wishes": ["window"]}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {"wishes": ["bath"], "strict": True}, "headers": AUTH},
                {"path": {"booking_id": "b1"}, "json": {}},
            ],
        ),
        "Bookings/groups": Case(
            IDIOM,
            [
                {"json": {"train": "IC1", "passengers": ["a", "b", "c", "d", "e"]}, "headers": AUTH},
                {
                    "json": {"train": "IC1", "passengers": ["a", "b", "c", "d"], "together": True},
                    "headers": AUTH,
                },
                {"json": {"train": "IC1", "passengers": ["a"]}, "headers": AUTH},
                {"json": {"train": "IC1"}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Bookings/tickets/{booking_id}/pdf": Case(
            IDIOM, [{"path": {"booking_id": "b1"}, "headers": AUTH}, {"path": {"booking_id": "b1"}}]
        ),
        "Refunds/claims": Case(
            IDIOM,
            [
                {"json": {"booking": "b1", "cents": 1500}},
                {"json": {"booking": "b1", "cents": 9000}},
                {"json": {"booking": "b1"}},
            ],
        ),
        "Refunds/claims/{claim_id}/decide": Case(
            IDIOM,
            [
                {"path": {"claim_id": "7"}, "json": {"decision": "approve"}, "headers": AUTH},
                {"path": {"claim_id": "7"}, "json": {"decision": "deny"}, "headers": AUTH},
                {"path": {"claim_id": "7"}, "json": {"decision": "ponder"}, "headers": AUTH},
                {"path": {"claim_id": "7"}, "json": {"decision": "deny"}},
            ],
        ),
        "Refunds/claims/{claim_id}": Case(
            IDIOM,
            [
                {"path": {"claim_id": "7"}, "headers": AUTH},
                {"path": {"claim_id": "7"}, "headers": {"x-internal": "1"}},
                {"path": {"claim_id": "7"}},
            ],
        ),
        "Refunds/delay-compensation": Case(
            IDIOM,
            [
                {"json": {"booking": "b1", "payout": "card"}, "headers": AUTH},
                {"json": {"booking": "b1", "payout": "voucher"}, "headers": KEYED},
                {"json": {"booking": "b1", "payout": "points"}, "headers": KEYED},
                {"json": {"booking": "b1", "payout": "gold"}, "headers": KEYED},
                {"json": {"booking": "b1"}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Refunds/batches": Case(
            IDIOM,
            [
                {"json": {"claims": ["7"]}, "headers": AUTH},
                {"json": {"claims": ["7", "8", "7"]}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Refunds/webhooks/payments": Case(
            IDIOM,
            [
                {
                    "json": {"id": "e1", "type": "refund.settled", "data": {"claim": "7"}},
                    "headers": signed("e1"),
                },
                {
                    "json": {"id": "e2", "type": "refund.failed", "data": {"claim": "7"}},
                    "headers": signed("e2"),
                },
                {
                    "json": {"id": "e3", "type": "dispute.opened", "data": {"id": "d1"}},
                    "headers": signed("e3"),
                },
                {"json": {"id": "e4", "type": "card.expired"}, "headers": signed("e4")},
                {"json": {"id": "e5", "type": "refund.settled"}, "headers": {"x-signature": "forged"}},
                {"json": {"id": "e6"}},
            ],
        ),
        "Refunds/reports/monthly": Case(
            IDIOM,
            [
                {"query": {"month": "2025-04"}, "headers": AUTH},
                {"query": {"month": "2025-04", "compare": "1", "format": "csv"}, "headers": AUTH},
                {"query": {"month": "2025-04", "compare": "yes"}, "headers": AUTH},
                {"query": {}, "headers": AUTH},
                {"query": {}},
            ],
        ),
        "Notify/send": Case(
            IDIOM,
            [
                {"json": {"customer": "u1", "template": "ticket"}},
                {"json": {"customer": "u1", "template": "offers"}},
                {"json": {"customer": "u1"}},
            ],
        ),
        "Notify/broadcast": Case(
            IDIOM,
            [
                {"json": {"topic": "line:S1", "text": "late"}},
                {"json": {"topic": "line:S1", "text": "closed", "urgent": True}},
                {"json": {"topic": "line:S1"}},
            ],
        ),
        "Notify/preferences": Case(
            IDIOM,
            [
                {"json": {"channels": ["email", "push"]}, "headers": AUTH},
                {"json": {"channels": ["sms"]}, "headers": AUTH},
                {"json": {"channels": ["pigeon"]}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Notify/callbacks/delivery": Case(
            IDIOM,
            [
                {"json": {"events": [{"status": "delivered"}]}},
                {"json": {"events": [{"status": "bounced", "message": "m1"}, {"status": "delivered"}]}},
                {
                    "json": {
                        "events": [
                            {"status": "bounced", "message": "m1"},
                            {"status": "bounced", "message": "m2"},
                        ]
                    }
                },
                {"json": {}},
            ],
        ),
        "Notify/digests": Case(IDIOM, [{"json": {"customer": "u1"}}, {"json": {}}]),
        "Loyalty/accounts/{member_id}": Case(
            IDIOM, [{"path": {"member_id": "u1"}}, {"path": {"member_id": "u2"}}]
        ),
        "Loyalty/earn": Case(
            IDIOM,
            [
                {"json": {"member": "u1", "points": 50}},
                {"json": {"member": "u1", "points": 700}},
                {"json": {"member": "u1", "points": -5}},
                {"json": {"member": "u1"}},
            ],
        ),
        "Loyalty/redeem": Case(
            IDIOM,
            [
                {"json": {"points": 100}, "headers": AUTH},
                {"json": {"points": 5000}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Loyalty/transfer": Case(
            IDIOM,
            [
                {"json": {"to": "u7", "points": 100}, "headers": AUTH},
                {"json": {"to": "u1", "points": 100}, "headers": AUTH},
                {"json": {"to": "u7", "points": 800}, "headers": {**AUTH, "x-tenant": "sob"}},
                {"json": {"to": "u7", "points": 9000}, "headers": AUTH},
                {"json": {"to": "u7"}, "headers": AUTH},
                {"json": {}},
            ],
        ),
        "Loyalty/partners/sync": Case(
            IDIOM,
            [
                {"json": {}},
                {"json": {"partners": ["hotel"], "since": "2025-01-01"}},
                {"json": {"partners": ["car"]}},
                {"json": {"partners": ["hotel", "airline"]}},
            ],
        ),
    },
    {
        "Approvals/request": [{"id": "a1"}, {}],
        "BookingStore/begin": [{"tx": "x1"}],
        "BookingStore/get": [
            {"id": "b1", "customer": "u1", "state": "held", "train": "IC1", "locks": ["l1"]},
            {"id": "b1", "customer": "u1", "state": "held", "train": "IC1", "locks": ["l1", "l2"]},
            {
                "id": "b1",
                "customer": "u1",
                "state": "paid",
                "train": "IC1",
                "locks": ["l1"],
                "payment": "p1",
                "cents": 4000,
            },
            {
                "id": "b1",
                "customer": "u1",
                "state": "paid",
                "train": "IC1",
                "payment": "p1",
                "cents": 1500,
                "gift": True,
            },
            {
                "id": "b1",
                "customer": "u5",
                "state": "travelled",
                "train": "IC1",
                "locks": ["l1"],
                "cents": 3000,
            },
            {"id": "b1", "customer": "u1", "state": "cancelled", "train": "IC1"},
            {},
        ],
        "BookingStore/insert": [{"id": "b1"}, {}],
        "BookingStore/list": [
            {"items": [{"id": "b1", "state": "paid"}, {"id": "b2", "state": "held"}], "total": 9},
            {"items": [{"id": "b1", "state": "paid"}], "total": 1},
            {},
        ],
        "BookingStore/upcoming": [{"trips": [{"train": "IC1", "departs": "08:00"}]}, {}],
        "BookingStore/update": [{}, {"ok": True}, {"conflict": True, "version": 4}],
        "Campaigns/factor": [{"factor": 2}, {}],
        "CarPartner/rentals": [{"items": [{"member": "u1", "points": 20}, {"points": 9}]}, {}],
        "Coaches/emergency": [{"coach": "c1"}, {}],
        "Coaches/search": [{"trips": [{"id": "c1", "departs": "08:10"}]}, {}],
        "Customers/get": [{"member": True}, {"member": True, "name": "Ann"}, {}],
        "Customers/preferences": [
            {"channels": ["push", "sms"]},
            {"channels": ["fax", "email"], "muted": ["offers"]},
            {"channels": []},
            {},
        ],
        "Customers/put_preferences": [{"phone_verified": True}, {}],
        "Documents/render": [
            {"state": "done", "url": "u"},
            {"state": "failed"},
            {"id": "j1", "state": "queued"},
            {"id": "j1", "state": "running"},
        ],
        "Documents/status": [
            {"id": "j1", "state": "running"},
            {"id": "j1", "state": "done", "url": "u"},
            {"state": "failed"},
        ],
        "EventStore/append": [{"version": 3}, {"version": 8}, {"conflict": True}],
        "EventStore/read": [
            {"events": [OPENED]},
            {"events": [OPENED], "next": None},
            {"events": [OPENED, {"kind": "approved"}]},
            {"events": [OPENED, {"kind": "viewed"}, {"kind": "denied"}]},
            {
                "events": [
                    {"kind": "earned", "data": {"points": 900}},
                    {"kind": "earned", "data": {"points": 4500}},
                ]
            },
            {"events": [{"kind": "earned", "data": {"points": 300}}] * 4},
            {"events": [{"kind": "earned", "data": {"points": 60}}], "next": "p2"},
            {"events": []},
        ],
        "EventStore/version": [{"version": 2}, {}],
        "Flags/evaluate": [{"on": True}, {"on": False}, {}],
        "HotelPartner/stays": [
            {"items": [{"member": "u1", "points": 50}, {"member": "u2", "points": 10}]},
            {"items": [{"member": "u1", "points": 5}]},
            {},
        ],
        "Idempotency/begin": [
            {"state": "new"},
            {},
            {"state": "done", "body": {"booking": "b1"}, "status": 201},
            {"state": "running"},
        ],
        "Identity/verify": [
            {"active": True, "sub": "u1", "roles": ROLES},
            {"active": True, "sub": "u1", "roles": ROLES, "tenant": "sob"},
            {"active": True, "sub": "u1", "roles": ROLES[:-1]},
            {"active": True, "sub": "u1"},
            {"active": True, "sub": "u2", "roles": []},
            {"active": False, "sub": "u1"},
        ],
        "Inventory/load": [{"load": 0.95}, {"load": 0.2}, {}],
        "Inventory/lock": [
            {"lock": "l7", "seats": ["12A"]},
            {"lock": "l8"},
            {"lock": "l9", "seats": ["1A", "1B"]},
            {},
        ],
        "Inventory/locked": [{"seats": ["12A"]}, {}],
        "Inventory/seatmap": [
            {"seats": [{"id": "1A", "free": True, "features": ["window"]}, {"id": "1B", "free": True}]},
            {"seats": [{"id": "1B", "free": True, "features": ["aisle"]}]},
            {"seats": [{"id": "1A", "free": False}]},
        ],
        "Locks/acquire": [{"token": "k"}, {"token": "k2"}, {}],
        "Lounges/list": [{"lounges": ["Bern"]}, {}],
        "Offers/for": [{"offers": ["spring"]}, {}],
        "Outbox/get": [
            {"channel": "email", "attempts": 1},
            {"channel": "push", "attempts": 3},
            {"channel": "sms"},
            {},
        ],
        "Payments/authorize": [
            {"id": "p1"},
            {"id": "p2", "status": "ok"},
            {"status": "declined", "reason": "funds"},
        ],
        "Payments/refund": [{"id": "r1"}, {}],
        "Payments/status": [{"state": "captured"}, {}],
        "PriceBook/base": [{"cents": 2000}, {"cents": 5000}, {"cents": 4000}, {"cents": 0}, {}],
        "PriceBook/cheapest": [{"cents": 1900}, {"cents": 2900}, {}],
        "PriceBook/estimate": [{"cents": 2500}, {}],
        "PriceBook/simulate": [{"revenue": 0.02}, {}],
        "PriceEngine/price": [{"cents": 2010}, {"cents": 9000}, {}],
        "Quotes/get": [
            {"id": "q1", "cents": 3000},
            {"id": "q1", "cents": 500},
            {"id": "q1", "cents": 500, "expired": True, "request": {"train": "IC1"}},
            {"id": "q1", "cents": 9000, "expired": True},
            {},
        ],
        "Quotes/save": [{"id": "q1"}, {}],
        "Railcards/check": [
            {"valid": True, "kind": "50"},
            {"valid": True, "kind": "25"},
            {"valid": True},
            {"valid": False},
        ],
        "RateLimit/hit": [{"count": 1}, {"count": 20}, {}, {"count": 500, "reset": 10}],
        "Realtime/delay": [{"delay": 12}, {}],
        "Realtime/delays": [{"minutes": {"IC1": 4}}, {}],
        "Realtime/history": [{"delay": 10}, {"delay": 45}, {"delay": 75}, {"delay": 200}, {}],
        "Regional/search": [
            {"trips": [{"id": "r1", "departs": "08:05", "changes": 2}, {"id": "t1", "departs": "08:00"}]},
            {},
        ],
        "Risk/score": [{"score": 10}, {"score": 90}, {}],
        "Sequences/next": [{"value": 7}, {}],
        "Snapshots/get": [{"points": 950}, {"points": 4990}, {}],
        "Stations/suggest": [{"stations": ["Bern", "Bex"]}, {}],
        "Storage/get": [{"url": "https://files/ticket"}, {}, {}],
        "Subscribers/page": [
            {"members": ["a", "b", "c"], "next": "p2"},
            {"members": ["d"]},
            {"members": ["e", "f"], "next": None},
            {},
        ],
        "Tenants/config": [{"show_estimates": True}, {"transfer_limit": 500}, {}],
        "Timetable/between": [
            {"options": [{"id": "o1", "seats": 0}, {"id": "o2", "seats": 3}]},
            {"options": [{"id": "o1", "seats": 0}]},
            {},
        ],
        "Timetable/board": [
            {"departures": [{"train": "IC1"}, {"train": "S3"}], "more": True},
            {"departures": [{"train": "IC1"}]},
            {"departures": [], "more": False},
            {},
        ],
        "Timetable/nearest": [{"trips": [{"id": "n1", "departs": "23:10"}]}, {}],
        "Timetable/search": [
            {
                "trips": [
                    {"id": "t1", "departs": "08:00", "changes": 0},
                    {"id": "t2", "departs": "08:30", "changes": 3},
                ]
            },
            {"trips": []},
            {},
        ],
        "Timetable/suspend": [{"trains": ["IC1", "S3"]}, {"trains": ["IC1"]}, {}],
        "Timetable/trip": [
            {"legs": [{"id": "g1", "from": "Bern", "to": "Olten", "cancelled": True}, {"id": "g2"}]},
            {
                "legs": [
                    {"id": "g1", "from": "Bern", "to": "Olten", "cancelled": True},
                    {"id": "g2", "from": "Olten", "to": "Basel", "cancelled": True},
                ]
            },
            {"legs": [{"id": "g1"}]},
            {},
        ],
        "Timetable/upsert": [{"written": 2}, {"written": 0}, {}],
        "Vouchers/issue": [{"id": "v1", "code": "V1"}, {}],
        "Vouchers/validate": [{"cents": 500}, {"cents": 90000}, {"used": True}, {}],
        "Warehouse/aggregate": [{"total": 5}, {"total": 11}, {}],
        "Warehouse/previous": [{"total": 4}, {}],
        "Fares/quotes/{quote_id}": [{"id": "q1", "cents": 3000}, {"id": "q1", "cents": 500}, {}],
        "Loyalty/accounts/{member_id}": [{"balance": 1200, "tier": "silver"}, {"balance": 0}, {}],
        "Loyalty/earn": [{"version": 4}, {}],
        "Refunds/claims": [{"id": 7, "cents": 1500, "state": "approved"}, {}],
    },
)
