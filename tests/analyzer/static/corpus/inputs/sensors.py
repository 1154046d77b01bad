"""Requests to an async service of readings: breakers, leases, windows, loaders, alarms, jobs that are polled."""

from corpus.execution import Case, Inputs

STUBS = (
    "Store/one", "Store/window", "Backup/one", "Locks/acquire", "Locks/drop", "Notify/page", "Notify/mail",
    "Jobs/start", "Jobs/state", "Jobs/cancel",
)  # fmt: skip
KEYS = [{"json": {"keys": list(keys)}} for keys in ("", "a", "aba", "abcd")]
INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Sensors/one": Case("errors in a decorator", [{"json": {"key": "a"}}, {}]),
        "Sensors/breaker": Case("circuit breaker"),
        "Sensors/stale": Case("cache", [{"json": {"key": key}} for key in "abab"]),
        "Sensors/lease": Case("context managers"),
        "Sensors/leases": Case("context managers"),
        "Sensors/windows": Case("page by page"),
        "Sensors/first": Case("page by page"),
        "Sensors/loader": Case("loop", KEYS),
        "Sensors/limited": Case("fan-out", KEYS),
        "Sensors/tokens": Case("rate limit"),
        "Sensors/alarm": Case("decide", [{"json": {"level": level}} for level in (1, 2, 3, 4, "x")]),
        "Sensors/summary": Case("fan-out, waited for"),
        "Sensors/groups": Case("fan-out, waited for"),
        "Sensors/poll": Case("polling"),
        "Sensors/accept": Case(
            "validate",
            [
                {"json": {"readings": [{"kind": k, "value": v} for k, v in pairs]}}
                for pairs in ([], [("a", 1)], [("a", 1), ("b", 2.0), ("a", 3)], [("a", "x")])
            ],
        ),
        "Sensors/pick": Case("fallbacks"),
        "Sensors/chain": Case("loop"),
        "Sensors/compare": Case("fan-out, waited for"),
        "Sensors/fallback": Case("fallbacks"),
    },
    {
        "Store/one": [{"value": 1}, {"value": 2}, {}],
        "Store/window": [{"value": 1}, {"value": 4}, {"end": True}],
        "Backup/one": [{"value": 1}],
        "Locks/acquire": [{"ok": True}, {}],
        "Locks/drop": [{}],
        "Notify/page": [{}],
        "Notify/mail": [{}],
        "Jobs/start": [{"id": 1}],
        "Jobs/state": [{"state": "done"}, {"state": "failed"}, {"state": "busy"}],
        "Jobs/cancel": [{}],
        "readings.of_kind": [[], [{"value": 1}]],
        "readings.add": [1],
        "readings.differences": [1],
    },
)
