"""What is sent to the freight platform, and what its stubs may answer."""

from typing import Any

from corpus.execution import Case, Inputs

IDIOM = "everyday code, freight"
STUBS = (
    "Ace/bond",
    "Ace/entry",
    "Ace/query",
    "Approvals/request",
    "Atlas/lodge",
    "Atlas/status",
    "Audit/append",
    "BookingStore/get",
    "BookingStore/put",
    "BookingStore/search",
    "Cache/get",
    "Cache/put",
    "Catalogue/lookup",
    "ClaimStore/get",
    "ClaimStore/put",
    "ClaimStore/search",
    "Compliance/alert",
    "Credit/hold",
    "Credit/release",
    "DeclarationStore/get",
    "DeclarationStore/put",
    "Dhl/book",
    "Dhl/cancel",
    "Dhl/rates",
    "Dhl/surcharges",
    "Dhl/track",
    "Docks/reserve",
    "Documents/attach",
    "Documents/goods-receipt",
    "Documents/list",
    "EtaModel/predict",
    "EventStore/append",
    "EventStore/read",
    "Evidence/scan",
    "Flags/evaluate",
    "Fleet/assign",
    "Fleet/unassign",
    "Fx/rate",
    "History/average",
    "HsModel/classify",
    "Idempotency/get",
    "Idempotency/put",
    "Identity/verify",
    "Insurance/policy",
    "InvoiceStore/find",
    "InvoiceStore/put",
    "InvoiceStore/search",
    "Ledger/accrue",
    "Ledger/charge",
    "Ledger/charges",
    "Ledger/revenue",
    "Ledger/reverse",
    "Ledger/unbilled",
    "Limits/take",
    "Locks/acquire",
    "Locks/release",
    "Maersk/book",
    "Maersk/cancel",
    "Maersk/spot",
    "Maersk/track",
    "Mail/send",
    "Notifications/send",
    "Numbers/next",
    "Orders/open",
    "Parties/get",
    "Payments/payout",
    "PortCalls/estimate",
    "Ports/fees",
    "Pricing/surcharge",
    "Purchasing/expected",
    "QuoteStore/get",
    "QuoteStore/put",
    "Recovery/open",
    "Routing/legs",
    "Sanctions/check",
    "Schenker/book",
    "Schenker/cancel",
    "Schenker/rates",
    "Schenker/track",
    "Secrets/verify",
    "ShipmentIndex/stale",
    "Sites/near",
    "Subscriptions/of",
    "Tariffs/rate",
    "Tasks/open",
    "Tax/rate",
    "Warehousing/revenue",
    "Wms/receive",
    "Wms/release",
    "Wms/reserve",
    "Wms/stock",
    "Wms/wave",
)

AUTH = {"authorization": "Bearer t"}
BASIC = {"authorization": "Basic dTpw"}


def post(json: Any, **more: Any) -> Any:
    return {"json": json, "headers": AUTH, **more}


LANE = {"origin": "HAM", "destination": "NYC", "weight": 1200.0}
ROAD = {"origin": "HAM", "destination": "MUC", "weight": 300.0, "mode": "road"}
SEA = {"origin": "HAM", "destination": "SHA", "weight": 9000.0, "mode": "sea"}
ADR = {"origin": "HAM", "destination": "MUC", "weight": 80.0, "mode": "road", "hazardous": True}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Quoting/quotes": Case(
            IDIOM,
            [
                post(LANE),
                post(ROAD),
                post(SEA),
                post(ADR),
                post({**LANE, "mode": "pipeline"}),
                post({**LANE, "weight": 0}),
                post({"origin": "HAM"}),
                {"json": LANE},
                {"json": LANE, "headers": BASIC},
            ],
        ),
        "Quoting/quotes/{quote_id}": Case(
            IDIOM,
            [
                {"path": {"quote_id": "q1"}, "headers": AUTH},
                {"path": {"quote_id": "q1"}, "query": {"refresh": "1"}, "headers": AUTH},
                {"path": {"quote_id": "q2"}},
            ],
        ),
        "Quoting/quotes/compare": Case(
            IDIOM,
            [post(LANE), post({**LANE, "wanted": 1}), post({**LANE, "wanted": 5}), post(ADR), {"json": SEA}],
        ),
        "Quoting/quotes/multileg": Case(IDIOM, [post(LANE), post({**LANE, "fast": True}), post(ADR)]),
        "Quoting/quotes/{quote_id}/accept": Case(
            IDIOM,
            [
                post({}, path={"quote_id": "q1"}),
                {"json": {}, "path": {"quote_id": "q1"}, "headers": {**AUTH, "idempotency-key": "k1"}},
                {"json": {}, "path": {"quote_id": "q1"}},
            ],
        ),
        "Bookings/bookings": Case(
            IDIOM,
            [
                post({"quote": "q1", "carrier": "dhl"}),
                post({"quote": "q1", "carrier": "maersk", "weight": 900.0}),
                post({"quote": "q1", "carrier": "schenker"}),
                post({"quote": "q1", "carrier": "nobody"}),
                post({"carrier": "dhl"}),
                {"json": {"quote": "q1", "carrier": "dhl"}},
            ],
        ),
        "Bookings/bookings/{booking_id}/cancel": Case(
            IDIOM,
            [
                post({}, path={"booking_id": "B1"}),
                post({"reason": "changed plans"}, path={"booking_id": "B2"}),
                {"path": {"booking_id": "B3"}},
            ],
        ),
        "Bookings/bookings/{booking_id}/amend": Case(
            IDIOM,
            [
                post({"weight": 5.0}, path={"booking_id": "B1"}),
                post({"weight": 0.5}, path={"booking_id": "B1"}),
                post({}, path={"booking_id": "B1"}),
            ],
        ),
        "Bookings/bookings/{booking_id}/advance": Case(
            IDIOM,
            [
                {"path": {"booking_id": "B1"}, "json": {"trigger": trigger}}
                for trigger in ("confirm", "depart", "deliver", "cancel", "explode")
            ]
            + [{"path": {"booking_id": "B1"}, "json": {}}],
        ),
        "Bookings/bookings/{booking_id}": Case(
            IDIOM,
            [
                {"path": {"booking_id": "B1"}, "headers": AUTH},
                {"path": {"booking_id": "B1"}, "query": {"expand": "tracking,invoices"}, "headers": AUTH},
                {"path": {"booking_id": "B1"}, "query": {"expand": "documents,nonsense"}, "headers": AUTH},
                {
                    "path": {"booking_id": "B1"},
                    "query": {"expand": "documents,invoices,tracking"},
                    "headers": AUTH,
                },
                {"path": {"booking_id": "B1"}},
            ],
        ),
        "Bookings/bookings/import": Case(
            IDIOM,
            [
                post({"rows": []}),
                post({"rows": [{"quote": "q1", "carrier": "dhl"}]}),
                post({"rows": [{"quote": "q1", "carrier": "maersk"}, {"carrier": "dhl"}], "strict": True}),
                post({"rows": [{"quote": "q1", "carrier": "schenker"}, {"quote": "q2", "carrier": "dhl"}]}),
                post({"rows": [{"quote": "q1", "carrier": "x"}]}),
            ],
        ),
        "Tracking/webhooks/{carrier}": Case(
            IDIOM,
            [
                {
                    "path": {"carrier": "dhl"},
                    "headers": {"x-signature": "s"},
                    "json": {"shipment": "B1", "event": event},
                }
                for event in (
                    {"type": "departed", "place": "HAM"},
                    {"type": "delayed", "hours": 2},
                    {"type": "delayed", "hours": 24},
                    {"type": "delivered"},
                    {"type": "delivered", "signature": "sig"},
                    {"type": "arrived", "place": "MUC"},
                    {},
                )
            ]
            + [{"path": {"carrier": "nobody"}, "json": {}}, {"path": {"carrier": "maersk"}, "json": {}}],
        ),
        "Tracking/shipments/{shipment_id}/timeline": Case(
            IDIOM,
            [
                {"path": {"shipment_id": "B1"}},
                {"path": {"shipment_id": "B1"}, "query": {"carrier": "dhl"}},
                {"path": {"shipment_id": "B1"}, "query": {"carrier": "maersk"}},
                {"path": {"shipment_id": "B1"}, "query": {"carrier": "schenker"}},
                {"path": {"shipment_id": "B1"}, "query": {"carrier": "nobody"}},
            ],
        ),
        "Tracking/shipments/{shipment_id}/refresh": Case(
            IDIOM,
            [
                post({}, path={"shipment_id": "B1"}),
                post({"carrier": "maersk", "status": "departed"}, path={"shipment_id": "B1"}),
                post({"carrier": "schenker", "status": "arrived"}, path={"shipment_id": "B1"}),
                post({"carrier": "nobody"}, path={"shipment_id": "B1"}),
            ],
        ),
        "Tracking/shipments/{shipment_id}/eta": Case(IDIOM, [{"path": {"shipment_id": "B1"}}]),
        "Tracking/sweep": Case(IDIOM, [{"json": {}}, {"json": {"hours": 48}}]),
        "Customs/declarations": Case(
            IDIOM,
            [
                post({"importer": "p1", "goods": [{"hs": "8471", "value": 500.0}]}),
                post(
                    {
                        "importer": "p1",
                        "country": "US",
                        "goods": [{"hs": "8471", "value": 5.0}, {"value": 7.0}],
                    }
                ),
                post({"importer": "p1", "goods": []}),
                post({}),
                {"json": {}},
            ],
        ),
        "Customs/declarations/{declaration_id}/submit": Case(
            IDIOM, [post({}, path={"declaration_id": "d1"}), {"path": {"declaration_id": "d1"}, "json": {}}]
        ),
        "Customs/declarations/{declaration_id}/wait": Case(
            IDIOM,
            [
                {"path": {"declaration_id": "d1"}, "json": {"country": country}}
                for country in ("EU", "US", "XX")
            ],
        ),
        "Customs/classify": Case(
            IDIOM, [{"json": {"text": "laptop"}}, {"json": {"text": "  "}}, {"json": {}}]
        ),
        "Customs/screening": Case(
            IDIOM,
            [
                post({"parties": ["A Ltd"]}),
                post({"parties": ["A Ltd", "B Inc"], "thorough": True}),
                post({"parties": []}),
                {"json": {"parties": ["A Ltd"]}},
            ],
        ),
        "Warehouse/allocations": Case(
            IDIOM,
            [
                post({"sku": "s1", "quantity": 1}),
                post({"sku": "s1", "quantity": 7, "region": "us"}),
                post({"sku": "s1", "quantity": 100, "region": "apac"}),
                post({"sku": "s1", "quantity": 0}),
                {"json": {"sku": "s1"}},
            ],
        ),
        "Warehouse/stock/{sku}": Case(
            IDIOM,
            [
                {"path": {"sku": "s1"}},
                {"path": {"sku": "s1"}, "query": {"region": "us"}},
                {"path": {"sku": "s2"}, "query": {"region": "apac"}},
            ],
        ),
        "Warehouse/inbound": Case(
            IDIOM,
            [
                post({"lines": [{"sku": "s1", "quantity": 5, "booking": "B1"}]}),
                post(
                    {
                        "lines": [
                            {"sku": "s1", "quantity": 5},
                            {"sku": "s2", "quantity": 0},
                            {"sku": "s3", "quantity": 1},
                        ]
                    }
                ),
                post({"lines": [{"sku": "s1", "quantity": -1}]}),
                post({}),
            ],
        ),
        "Warehouse/pick-waves": Case(IDIOM, [{"json": {}}, {"json": {"size": 1}}, {"json": {"size": 10}}]),
        "Warehouse/transfers": Case(
            IDIOM,
            [post({"sku": "s1", "quantity": 2, "from": "A", "to": "B"}), post({}), {"json": {"sku": "s1"}}],
        ),
        "Billing/invoices": Case(
            IDIOM,
            [
                post({"booking": "B1"}),
                post({"booking": "B1", "currency": "USD"}),
                {"json": {"booking": "B1"}},
            ],
        ),
        "Billing/invoices/run": Case(IDIOM, [{"json": {}}, {"json": {"month": "2024-02"}}]),
        "Billing/claims": Case(
            IDIOM,
            [
                {"json": {"booking": "B1", "amount": 100}},
                {"json": {"booking": "B1", "kind": "loss", "amount": 100, "files": ["a"]}},
                {"json": {"booking": "B1", "kind": "delay", "files": ["a", "b", "c"]}},
                {"json": {"booking": "B1", "kind": "boredom"}},
                {"json": {}},
            ],
        ),
        "Billing/claims/{claim_id}/decide": Case(
            IDIOM,
            [
                post({"decision": decision}, path={"claim_id": "c1"})
                for decision in ("approve", "reject", "recover", "ponder")
            ]
            + [{"json": {"decision": "approve"}, "path": {"claim_id": "c1"}}],
        ),
        "Billing/search": Case(
            IDIOM,
            [
                {"query": {"q": "acme"}, "headers": AUTH},
                {"query": {"q": "acme", "in": "invoices,claims", "limit": "1"}, "headers": AUTH},
                {"query": {"in": "bookings"}, "headers": AUTH},
                {"query": {"in": "letters"}, "headers": AUTH},
                {"query": {}},
            ],
        ),
        "Billing/reports/revenue": Case(
            IDIOM,
            [
                {"query": {}, "headers": AUTH},
                {"query": {"regions": "eu,us"}, "headers": AUTH},
                {"query": {"regions": "eu,us,apac"}},
            ],
        ),
    },
    {
        "Identity/verify": [
            {"sub": "u1", "tenant": "acme", "scopes": ["*"]},
            {"sub": "u2", "scopes": ["*"]},
            {"sub": "u3", "tenant": "umbrella", "scopes": ["*"]},
            {"sub": "u4", "tenant": "acme", "scopes": ["quotes:read", "bookings:read", "bookings:write"]},
            {"sub": "u5", "active": False},
            {},
        ],
        "Flags/evaluate": [
            {"flags": {}},
            {"flags": {"carrier.dhl": False}},
            {"flags": {"carrier.maersk": False}},
            {},
        ],
        "Limits/take": [{"allowed": True}, {"allowed": True}, {"allowed": False, "retry_after": 3}, {}],
        "Maersk/spot": [{"price": 700, "days": 28}, {"price": 1400}, {}],
        "Schenker/rates": [
            {"rates": [{"amount": 400, "days": 4}, {"amount": 350}]},
            {"rates": [{"amount": 90, "days": 9}]},
            {"rates": []},
        ],
        "Dhl/rates": [
            {"id": "r1", "price": 480, "days": 2},
            {"id": "r2", "price": 300, "variable": True},
            {},
        ],
        "Dhl/surcharges": [{"surcharges": {"fuel": 20, "adr": 35}}, {"surcharges": {}}, {}],
        "Dhl/track": [{"status": "departed", "position": "LEJ"}, {"status": "arrived"}, {}],
        "Maersk/track": [
            {"status": "departed", "position": "at sea"},
            {"status": "arrived", "position": "NYC"},
            {},
        ],
        "Schenker/track": [{"status": "arrived", "position": "MUC"}, {"status": "delivered"}, {}],
        "Dhl/book": [{"confirmation": "D1"}, {"status": "full"}, {}],
        "Maersk/book": [{"confirmation": "M1"}, {"status": "full"}, {}],
        "Schenker/book": [{"confirmation": "S1"}, {"status": "full"}, {}],
        "QuoteStore/get": [
            {"id": "q1", "tenant": "acme", "offers": [{"carrier": "dhl", "price": 480, "days": 2}]},
            {
                "id": "q1",
                "weight": 1200.0,
                "offers": [{"carrier": "maersk", "price": 700}, {"carrier": "schenker", "price": 400}],
            },
            {"id": "q1", "expired": True, "request": LANE, "offers": []},
            {"id": "q1", "tenant": "acme", "expired": True, "request": ADR, "offers": []},
            {"id": "q1", "tenant": "acme", "expired": True},
            {},
        ],
        "QuoteStore/put": [{"id": "q1"}, {}],
        "Routing/legs": [
            {
                "legs": [
                    {"from": "MUC", "to": "HAM", "mode": "road"},
                    {"from": "HAM", "to": "NYC", "mode": "sea", "port": "HAM"},
                ]
            },
            {"legs": [{"from": "HAM", "to": "NYC"}]},
            {"legs": [{"from": "HAM", "to": "LEJ", "mode": "rail"}]},
            {"legs": []},
            {},
        ],
        "Ports/fees": [{"fee": 120}, {}],
        "Idempotency/get": [{}, {}, {"body": {"booking": "B1"}, "status": 201}],
        "Locks/acquire": [{"token": "l1"}, {"token": "l2"}, {"token": "l3"}, {}],
        "Bookings/bookings": [{"id": "B1", "status": "confirmed"}, {}],
        "BookingStore/get": [
            {"id": "B1", "status": "draft"},
            {
                "id": "B1",
                "status": "confirmed",
                "carrier": "dhl",
                "weight": 1.0,
                "confirmation": "D1",
                "version": 3,
            },
            {"id": "B1", "status": "confirmed", "carrier": "maersk", "weight": 2.0, "confirmation": "M1"},
            {"id": "B1", "status": "confirmed", "carrier": "schenker", "weight": 9.0, "confirmation": "S1"},
            {"id": "B1", "status": "in_transit", "carrier": "maersk", "version": 4},
            {"id": "B1", "status": "delivered"},
            {"id": "B1", "status": "cancelled"},
            {},
        ],
        "Credit/hold": [{"hold": "h1"}, {}],
        "Numbers/next": [{"number": "B7"}, {}],
        "Pricing/surcharge": [{"amount": 12.5}, {"amount": 0}, {}],
        "Documents/list": [{"documents": ["bill of lading"]}, {}],
        "InvoiceStore/find": [{"invoices": ["i1"]}, {}],
        "Secrets/verify": [{"valid": True}, {"valid": True}, {"valid": True}, {"valid": False}, {}],
        "EventStore/append": [{"id": 1}, {"id": 2}, {"duplicate": True}],
        "EventStore/read": [
            {"events": [{"type": "departed", "place": "HAM"}, {"type": "delayed", "hours": 3}]},
            {"events": [{"type": "departed", "place": "HAM"}], "next": "e2"},
            {"events": [{"type": "arrived", "place": "NYC"}, {"type": "delayed"}], "next": "e4"},
            {"events": [{"type": "delivered"}, {"type": "archived"}], "next": "e9"},
            {"events": [{"type": "departed", "place": "LEJ"}]},
            {"events": [{"type": "scanned"}]},
            {},
        ],
        "Subscriptions/of": [
            {"contacts": ["a@example.org"]},
            {"contacts": ["a@example.org", "b@example.org"]},
            {},
        ],
        "EtaModel/predict": [
            {"eta": "2024-03-01", "confidence": 0.9},
            {"eta": "2024-03-04", "confidence": 0.2},
            {},
        ],
        "PortCalls/estimate": [
            {"eta": "2024-03-02", "confidence": 0.7},
            {"eta": "2024-03-07", "confidence": 0.1},
        ],
        "History/average": [{"eta": "2024-03-05"}, {"eta": "2024-03-06", "confidence": 0.4}],
        "ShipmentIndex/stale": [{"ids": ["s1", "s2", "s3"]}, {"ids": ["s1"]}, {"ids": []}, {}],
        "Tariffs/rate": [{"duty": 0.04}, {}],
        "Parties/get": [{"eori": "DE123"}, {"eori": "DE456"}, {}],
        "DeclarationStore/put": [{"id": "d1"}, {}],
        "DeclarationStore/get": [
            {"id": "d1", "country": "EU", "value": 500.0},
            {"id": "d1", "country": "US", "value": 500.0},
            {"id": "d1", "country": "US"},
            {"id": "d1", "country": "XX"},
            {"id": "d1", "country": "EU", "reference": "mrn1"},
            {},
        ],
        "Atlas/lodge": [{"mrn": "mrn1"}, {"mrn": ""}, {}],
        "Atlas/status": [
            {"state": "pending"},
            {"state": "pending"},
            {"state": "released"},
            {"state": "held"},
            {},
        ],
        "Ace/bond": [{"bond": "b1"}, {"bond": "b2"}, {}],
        "Ace/entry": [{"entry": "e1"}, {}],
        "Ace/query": [{"state": "pending"}, {"state": "released"}, {"state": "rejected"}, {}],
        "Catalogue/lookup": [{"hs": "8471"}, {}, {}],
        "HsModel/classify": [{"hs": "8471", "score": 0.9}, {"hs": "8473", "score": 0.4}, {}],
        "Tasks/open": [{"id": "t1"}, {}],
        "Sanctions/check": [{"hit": True}, {"hit": False}, {}, {}],
        "Sites/near": [{"sites": ["A", "B", "C"]}, {"sites": ["A"]}, {"sites": []}],
        "Wms/stock": [{"quantity": 0}, {"quantity": 3}, {"quantity": 12}, {}],
        "Wms/reserve": [{"reservation": "w1"}, {"reservation": "w2"}, {"short": True}],
        "Wms/receive": [{"ok": True}, {"damaged": True}, {}],
        "Wms/wave": [{"id": "v1"}, {"id": "v2", "overload": True}, {}],
        "Purchasing/expected": [{"date": "2024-04-01"}, {}],
        "Orders/open": [
            {"orders": [{"id": "o1"}, {"id": "o2", "urgent": True}, {"id": "o3"}]},
            {"orders": [{"id": "o1"}]},
            {"orders": []},
            {},
        ],
        "Fleet/assign": [{"id": "truck1"}, {}],
        "Docks/reserve": [{"dock": "D4"}, {}, {}],
        "Billing/claims": [{"id": "c1", "status": "open"}],
        "Ledger/charges": [
            {"charges": [{"amount": 100}, {"amount": 25.5}]},
            {"charges": [{"amount": 700}]},
            {"charges": []},
            {},
        ],
        "Tax/rate": [{"rate": 0.07}, {"rate": 0.0}, {}],
        "Fx/rate": [{"rate": 1.08}, {}],
        "InvoiceStore/put": [{"id": "i1"}, {}],
        "Ledger/unbilled": [
            {"items": [{"booking": "B1"}, {"booking": "B2", "currency": "USD"}], "next": "p2"},
            {"items": [{"booking": "B1"}, {"booking": "B2"}, {"booking": "B3"}, {"booking": "B4"}]},
            {"items": [{"booking": "B3", "currency": "GBP"}]},
            {"items": []},
            {},
        ],
        "Insurance/policy": [{"covered": True}, {"covered": False}, {}],
        "Evidence/scan": [{"suspicious": False}, {"suspicious": True}, {}],
        "ClaimStore/put": [{"id": "c1"}, {}],
        "ClaimStore/get": [
            {"status": "open", "amount": 100},
            {"status": "open", "amount": 5000},
            {"status": "investigate", "amount": 2500},
            {"status": "paid", "amount": 100},
            {},
        ],
        "Approvals/request": [{"granted": True}, {"granted": False}, {}],
        "Payments/payout": [{"id": "pay1"}, {}],
        "Recovery/open": [{"case": "r1"}, {}],
        "InvoiceStore/search": [{"hits": [{"id": "i1", "score": 3}, {"id": "i2"}]}, {"hits": []}, {}],
        "ClaimStore/search": [{"hits": [{"id": "c1", "score": 1}]}, {}],
        "BookingStore/search": [{"hits": [{"id": "B1", "score": 2}]}, {}],
        "Cache/get": [{}, {}, {"value": {"eu": 10}}],
        "Ledger/revenue": [
            {"items": [{"region": "eu", "amount": 10}, {"region": "us", "amount": 4}], "next": "p2"},
            {"items": [{"region": "eu", "amount": 1}]},
            {"items": []},
            {},
        ],
        "Warehousing/revenue": [{"amount": 7}, {}],
    },
)
