"""Requests to bookings: commands, rules, states, resolvers."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, bookings"
STUBS = (
    "Flights/book",
    "Flights/cancel",
    "Flights/price",
    "Hotels/price",
    "Hotels/page",
    "Hotels/book",
    "Hotels/v1/rooms/free",
    "Hotels/v1/rooms/hold",
    "Cars/ship",
    "Cars/batch",
    "Cars/public",
    "Cars/private",
    "Cars/price",
    "Cars/book",
    "Rules/risk",
    "Rules/limit",
    "Rules/paid",
    "Rules/state",
    "Rules/audit",
    "Rules/price",
    "Rules/stock",
    "Rules/rate",
    "Rules/user",
    "Rules/lookup",
    "Rules/exists",
    "Rules/parent",
)
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Bookings/command": Case(
            IDIOM,
            [
                {"json": {"book": {"kind": "a", "id": "b"}}},
                {"json": {"cancel": "x"}},
                {"json": {"move": ["a", 2]}},
                {"json": {"z": 1}},
            ],
        ),
        "Bookings/allowed": Case(
            IDIOM,
            [
                {"json": {"policy": "strict", "amount": 1}},
                {"json": {"policy": "strict", "amount": 200}},
                {"json": {"policy": "loose", "amount": 1}},
                {"json": {"policy": "loose", "amount": 200}},
                {"json": {"policy": "off", "amount": 1}},
                {"json": {"policy": "off", "amount": 200}},
                {"json": {"policy": "z", "amount": 1}},
                {"json": {"policy": "z", "amount": 200}},
            ],
        ),
        "Bookings/event": Case(
            IDIOM, [{"json": {"event": "pay"}}, {"json": {"event": "ship"}}, {"json": {"event": "x"}}]
        ),
        "Bookings/rights": Case(IDIOM, [{"json": {"admin": 0}}, {"json": {"admin": 1}}]),
        "Bookings/sum": Case(IDIOM),
        "Bookings/resolve": Case(IDIOM),
        "Bookings/rest": Case(IDIOM),
        "Bookings/lookup": Case(IDIOM),
        "Bookings/all": Case(IDIOM),
        "Bookings/chunks": Case(
            IDIOM,
            [
                {"json": {"ids": []}},
                {"json": {"ids": [0]}},
                {"json": {"ids": [0, 1]}},
                {"json": {"ids": [0, 1, 2, 3, 4]}},
            ],
        ),
        "Bookings/serial": Case(IDIOM),
        "Bookings/route/{what}": Case(
            IDIOM,
            [
                {"path": {"what": "flight:a"}},
                {"path": {"what": "hotel:b"}},
                {"path": {"what": "car:c"}},
                {"path": {"what": "x"}},
            ],
        ),
        "Bookings/tenant": Case(IDIOM, [{"headers": {"X-Tenant": "public"}}, {"headers": {"X-Tenant": "a"}}]),
        "Bookings/handle": Case(
            IDIOM, [{"json": {"event": "opened"}}, {"json": {"event": "closed"}}, {"json": {"event": "x"}}]
        ),
        "Bookings/plan": Case(IDIOM),
        "Bookings/two": Case(
            IDIOM, [{"json": {"ids": []}}, {"json": {"ids": [0]}}, {"json": {"ids": [0, 1, 2]}}]
        ),
        "Bookings/flat": Case(
            IDIOM,
            [
                {"json": {"groups": {}}},
                {"json": {"groups": {"a": [1]}}},
                {"json": {"groups": {"a": [1, 2], "b": [3]}}},
            ],
        ),
        "Bookings/config": Case(IDIOM),
        "Bookings/walk": Case(IDIOM),
        "Bookings/tree": Case(
            IDIOM,
            [
                {"json": {"tree": {}}},
                {"json": {"tree": {"name": "a"}}},
                {
                    "json": {
                        "tree": {
                            "name": "a",
                            "children": [{"name": "b"}, {"name": "c", "children": [{"name": "d"}]}],
                        }
                    }
                },
            ],
        ),
        "Bookings/late": Case(
            IDIOM,
            [
                {"json": {"flight": 0, "hotel": 0}},
                {"json": {"flight": 0, "hotel": 1}},
                {"json": {"flight": 1, "hotel": 0}},
                {"json": {"flight": 1, "hotel": 1}},
            ],
        ),
        "Bookings/first-good": Case(IDIOM),
        "Bookings/zip": Case(IDIOM),
        "Bookings/cheapest": Case(IDIOM),
        "Bookings/version": Case(
            IDIOM,
            [
                {"headers": {"X-Version": "1.0"}},
                {"headers": {"X-Version": "2.1"}},
                {"headers": {"X-Version": "3"}},
            ],
        ),
        "Bookings/nested": Case(IDIOM),
        "Bookings/sampled": Case(IDIOM),
        "Bookings/weighted": Case(IDIOM),
        "Bookings/pooled": Case(IDIOM),
        "Bookings/expired": Case(IDIOM),
        "Bookings/counted": Case(
            IDIOM,
            [
                {"json": {"items": []}},
                {"json": {"items": [{"kind": "car"}]}},
                {"json": {"items": [{"kind": "car"}, {"kind": "car"}, {"kind": "hotel"}, {"kind": "x"}]}},
            ],
        ),
        "Bookings/guard": Case(IDIOM, [{"json": {"user": 0}}, {"json": {"user": 1}}]),
    },
    {
        "Rules/risk": [{"ok": 1}, {}],
        "Rules/limit": [{"free": 1}, {}],
        "Rules/state": [
            {"state": "NEW"},
            {"state": "PAID", "until": "2020-01-01T00:00:00+00:00"},
            {"until": "2999-01-01T00:00:00+00:00"},
        ],
        "Hotels/page": [{"rows": [1, 2]}, {"rows": [1]}, {}],
        "Rules/exists": [True, {}],
        "Rules/parent": [{"parent": "p"}, {}],
        "Flights/price": [{"p": 1}, {}],
        "Hotels/price": [{"p": 2}, {}],
        "Cars/price": [{"p": 2}, {}],
        "Hotels/v1/rooms/free": [[1], []],
    },
)
