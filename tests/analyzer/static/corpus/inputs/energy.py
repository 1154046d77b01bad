"""Requests to an energy utility: errors of calls together with concurrency."""

from typing import Any

from corpus.execution import Case, Inputs

STUBS = (
    "Audit/unknown",
    "Audit/parsed",
    "Audit/removed",
    "Audit/done",
    "Audit/billed",
    "Audit/slow",
    "Audit/gave-up",
    "Audit/waiting",
    "Audit/switched",
    "Audit/no-row",
    "Audit/no-price",
    "Pager/page",
    "Locks/lock",
    "Locks/unlock",
    "Billing/undo",
    "Billing/confirm",
    "Billing/create",
    "Registry/find",
    "Registry/activate",
    "Registry/remove",
    "Registry/force",
    "Head/latest",
    "Head/read",
    "Head/skip",
    "Head/hang-up",
    "Mirror/latest",
    "DeadLetters/raw",
    "DeadLetters/broken",
    "DeadLetters/partial",
    "DeadLetters/put",
    "DeadLetters/outage",
    "DeadLetters/stream",
    "DeadLetters/write",
    "Store/reading",
    "Store/batch",
    "Store/merge",
    "Store/close",
    "Store/rollback",
    "Store/prepare",
    "Store/commit",
    "Grid/load",
    "Grid/estimate",
    "Grid/wake",
    "Grid/state",
    "Grid/isolate",
    "Grid/restore",
    "Tariffs/price",
    "Tariffs/default",
    "Tariffs/of",
    "Tariffs/spot",
    "Export/send",
    "Outages/report",
    "Outages/known",
    "Outages/cancel",
    "Outages/create",
    "Outages/touch",
    "Outages/get",
    "Outages/later",
    "Weather/now",
    "Weather/yesterday",
    "Zones/north",
    "Zones/south",
    "Zones/estimate",
    "Zones/check",
    "Zones/repair",
    "Supply/fallback",
    "Supply/now",
    "Demand/register",
    "Demand/now",
    "Switches/reset",
    "Switches/verify",
    "Switches/open",
    "Switches/close",
    "Forecast/day",
    "Forecast/cheaper",
    "Forecast/fix",
)


def bodies(*given: Any) -> list[dict[str, Any]]:
    """Return requests with these bodies."""
    return [{"json": one} for one in given]


MORE = bodies({}, {"id": "1"}, {"id": "2"})
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        **{
            f"Meters/{n}": Case("errors of calls", MORE)
            for n in ("meter", "latest", "guarded", "tolerant", "export", "result", "handlers", "deadline")
        },
        **{
            f"Ops/{n}": Case("errors of tasks", MORE)
            for n in (
                "overview",
                "compare",
                "all-or-none",
                "switch",
                "nested",
                "lease",
                "stream",
                "patient",
                "shielded",
                "outage",
            )
        },
        "Meters/parse": Case(
            "errors of libraries",
            bodies({"text": "x"}, {"text": "{"}, {"text": "{}"}, {"text": '{"kwh": 5}'}, {}, {"text": "[1]"}),
        ),
        "Meters/batch": Case(
            "partly failed", bodies({"meters": ["a", "b", "c"]}, {"meters": ["a"]}, {"meters": []}, {})
        ),
        "Meters/bill": Case("exit stacks", bodies({}, {"test": True}, {"test": False})),
        "Ops/watched": Case("done callbacks", bodies({"zones": ["a", "b", "c"]}, {"zones": ["a"]}, {})),
    },
    {
        "Registry/find": [{}, {"active": True}],
        "Head/read": [{"kwh": 1}, {"end": True}, {}],
    },
)
