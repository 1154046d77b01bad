"""Requests to a fleet: descriptors as tables, tariffs that register themselves, compensation, locks."""

from corpus.execution import Case, Inputs

STUBS = (
    "Surge/factor",
    "Maps/route",
    "Maps/ping",
    "Drivers/hold",
    "Drivers/release",
    "Drivers/offer",
    "Payments/authorize",
    "Payments/void",
    "Vehicles/reserve",
    "Vehicles/free",
    "Vehicles/quote",
    "Vehicles/state",
    "Notify/notify-low",
    "Notify/notify-high",
    "Pager/page",
    "Accounts/costs",
    "Locks/lock",
    "Locks/unlock",
)
ID = [{"path": {"id": "1"}}]
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Fleet/vehicles/{id}": Case("descriptors", ID),
        "Fleet/price/{code}": Case(
            "registries", [{"path": {"code": c}} for c in ("flat", "dynamic", "contract", "x")]
        ),
        "Fleet/surge": Case("registries"),
        "Fleet/route": Case("calls in a row"),
        "Fleet/round-trip": Case("cache"),
        "Fleet/book": Case("compensation", [{"json": {"trip": "t"}}]),
        "Fleet/offers": Case(
            "fan-out, waited for", [{"query": {"kind": k}} for k in ("standard", "premium", "x")]
        ),
        "Fleet/alert/{level}": Case("enumerations", [{"path": {"level": n}} for n in ("1", "2", "3")]),
        "Fleet/positions": Case(
            "queries, in batches", [{"json": {"rows": r}} for r in ([], [{"vehicle": "a"}, {"vehicle": "b"}])]
        ),
        "Fleet/assign/{trip}": Case("first that answers", [{"path": {"trip": "1"}}]),
        "Fleet/health": Case("tables of handlers"),
        "Fleet/total": Case("calls in a row"),
        "Fleet/watch/{id}": Case("polling", ID),
        "Fleet/swap": Case("locks", [{"json": {"a": "1", "b": "2"}}]),
        "Fleet/maybe/{id}": Case(
            "optional calls", [{"path": {"id": "1"}, "query": {"deep": d}} for d in ("true", "false")]
        ),
    },
    {
        "fleet.find": [
            [],
            [{"_id": "1", "plate": "x", "price": 2}],
            [{"_id": "1", "price": 2}, {"_id": "2", "price": 3}, {"_id": "3", "price": 3}],
        ],
        "Surge/factor": [{"factor": 2}],
        "Maps/route": [{"km": 3}],
        "Vehicles/quote": [{"price": 3}],
        "Drivers/offer": [{"accepted": True}, {}],
        "Vehicles/state": [{}, {"state": "arrived"}],
        "Locks/lock": [{"lock": "l"}],
    },
)
