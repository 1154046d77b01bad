"""Requests to a travel agency: state changed by helpers, aliases, closures, early ends, enumerations, tasks."""

from itertools import product
from typing import Any

from corpus.execution import Case, Inputs

STUBS = (
    "Flights/search",
    "Flights/hold",
    "Flights/release",
    "Flights/seat",
    "Hotels/search",
    "Hotels/hold",
    "Hotels/release",
    "Cars/quote",
    "Pay/charge",
    "Pay/refund",
    "Pay/points",
    "Mail/send",
    "Mail/alert",
    "Risk/score",
    "Risk/visa",
)


def bodies(key: str, *values: Any) -> list[dict[str, Any]]:
    """Return requests whose bodies have this key, with these values."""
    return [{"json": {key: value}} for value in values]


def paths(key: str, *values: Any) -> list[dict[str, Any]]:
    """Return requests whose paths have this part, with these values."""
    return [{"path": {key: value}} for value in values]


INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Travel/party": Case(
            "a list filled by a helper",
            [
                {"json": p}
                for p in (
                    {},
                    {"adults": 0, "children": 1},
                    {"adults": 0, "children": 12},
                    {"adults": 12},
                    {"adults": 2, "children": 2},
                )
            ],
        ),
        "Travel/options": Case(
            "an alias of a dict",
            [
                {"json": p}
                for p in (
                    {},
                    {"quiet": True},
                    {"quiet": False},
                    {"internal": 1},
                    {"x": 1},
                    {"mail": False},
                    {"x": 2, "quiet": True},
                    {"mail": True, "internal": 2},
                )
            ],
        ),
        "Travel/basket": Case(
            "loop else, __len__",
            bodies(
                "items",
                [],
                [{}],
                [{"banned": 1}],
                [{}, {}],
                [{}, {"banned": 1}, {}, {}],
                [{"banned": 1}, {"banned": 1}],
            ),
        ),
        "Travel/hold": Case("nonlocal counter", bodies("legs", 0, 1, 2, -1, 3)),
        "Travel/late": Case(
            "closures over a loop variable", bodies("prefix", "flight", "FL", "hotel", "otels", "x", "")
        ),
        "Travel/settle/{kind}": Case("return in finally", paths("kind", "skip", "gift", "force", "other")),
        "Travel/visa": Case(
            "own equality and order",
            bodies(
                "stops",
                [],
                ["vie"],
                ["vie", "muc:3"],
                ["nyc"],
                ["nyc:5", "vie:1"],
                ["vie", "vie"],
                ["vie", "nyc:2", "nyc"],
            ),
        ),
        "Travel/loyalty": Case(
            "properties, class attributes",
            [{"json": {"points": p, "verify": v}} for p, v in product((0, 50, 60, 150, 500), (True, False))],
        ),
        "Travel/perks/{perks}": Case(
            "flags", paths("perks", "x", "lounge", "bag", "car+bag", "lounge+bag+car", "all", "lounge+x")
        ),
        "Travel/cancel/{policy}": Case(
            "order of mixins",
            [
                {"path": {"policy": p}, "json": {"days": d}}
                for p, d in product(("strict", "weekend", "vip", "x"), (0, 5, 10, 20, 40))
            ],
        ),
        "Travel/itinerary": Case(
            "patterns",
            bodies(
                "legs",
                [],
                [{"type": "flight", "stops": 2}],
                [{"type": "charter", "stops": 3}, "x"],
                [{"type": "flight"}],
                ["stop"],
                [{"type": "flight"}, "stop", {"type": "flight"}],
                [[1, "hotel", 3]],
                [[1, "hotel"]],
                [["hotel"], None],
                [3, {"type": "charter", "stops": 1}],
            ),
        ),
        "Travel/cheapest": Case("sorted, then first"),
        "Journeys/compare": Case("gather with exceptions"),
        "Journeys/race": Case("a task that is cancelled", bodies("wait", True, False)),
        "Journeys/patient": Case("wait_for with fallback", bodies("points", 0, 5, -1)),
        "Journeys/keep": Case("an async context manager that swallows", bodies("seats", 0, 1, 5)),
        "Journeys/pages": Case("an async generator left early"),
        "Journeys/status/{name}": Case(
            "an enumeration with methods", paths("name", "draft", "held", "paid", "x")
        ),
        "Journeys/fare": Case(
            "dataclass replace",
            [
                {"json": {"cabin": c, "flexible": f}}
                for c, f in product(("economy", "business", "first"), (True, False))
            ],
        ),
        "Journeys/leg": Case(
            "dispatch by type",
            bodies("number", "air/1", "air/2", "air/333", "air/5", "air", "rail/1", "rail/123", "x"),
        ),
        "Journeys/route/{text}": Case(
            "a generator partly consumed",
            paths(
                "text",
                "vie",
                "vie-nyc",
                "vie-muc-nyc",
                "vie-muc-nyc-sfo",
                "vie-muc",
                "vie-muc-cdg",
                "end-end",
                "a-end-b",
            ),
        ),
        "Journeys/region/{region}": Case("flags set at import", paths("region", "eu", "us", "asia")),
        "Journeys/retry": Case("loops with several exits", bodies("most", 0, 1, 2, 3)),
        "Journeys/bundle": Case(
            "zip, setdefault, pop",
            [
                {"json": {"parts": p, "names": n}}
                for p, n in (
                    ([], []),
                    (["car"], ["a"]),
                    (["car", "car"], ["a", "b"]),
                    (["car", "bus"], ["a"]),
                    (["bus"], ["x", "y"]),
                    (["car", "bus"], ["a", "b"]),
                    (["bus"], []),
                )
            ],
        ),
    },
    {
        "Flights/search": [{"price": 3}, {"price": 8}, {}],
        "Hotels/search": [{"price": 2}, {"price": 9}],
        "Flights/hold": [{"ok": True}, {"ok": True}, {"ok": False}],
        "Hotels/hold": [{"ok": True}, {}],
        "Pay/charge": [{}, {"declined": True}],
        "Risk/visa": [{"needed": True}, {}],
        "Risk/score": [{}, {"score": 2}, {"score": 8}],
        "Cars/quote": [{"price": 1}, {"price": 5}, {}],
        "travel.offers": [
            [],
            [{"kind": "air", "price": 2}],
            [{"kind": "bed", "price": 2}],
            [{"kind": "air", "price": 3}, {"kind": "bed", "price": 3}],
            [{"kind": "air", "price": 5}, {"kind": "bed", "price": 3}],
            [{"kind": "bed", "price": 3}, {"kind": "bed", "price": 4}],
        ],
    },
)
