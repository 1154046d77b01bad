"""Requests to asynchronous services: authentication, timeouts, tasks and groups of tasks."""

from corpus.execution import Case, Inputs

AUTH = {"headers": {"authorization": "Bearer x"}}
STUBS = (
    "Index/page",
    "Index/put",
    "Index/search",
    "Index/related",
    "Index/delete",
    "Accounts/whoami",
    "Accounts/limits",
    "Accounts/like",
    "Accounts/hook",
    "Packager/low-manifest",
    "Packager/high-manifest",
    "Rails/continue",
    "Rails/trending",
    "Rails/new",
    "Thumbs/render",
    "Thumbs/delete",
    "Storage/ticket",
    "Storage/delete",
    "Scanner/scan",
    "Scanner/deep",
    "Pricing/fast",
    "Pricing/exact",
)

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Media/reindex": Case("page by page"),
        "Media/feed": Case("fan-out, as completed"),
        "Media/stats": Case("queries side by side"),
        "Media/webhook": Case("work after the response"),
        "Media/videos/{id}": Case("query", [{"path": {"id": "1"}}]),
        "Media/videos/{id}/play": Case(
            "decorators that answer errors",
            [{"path": {"id": "1"}, "json": {"quality": q}, **a} for q in ("low", "high") for a in (AUTH, {})],
        ),
        "Media/home": Case("fan-out, tolerant", [AUTH, {}]),
        "Media/thumbs": Case(
            "fan-out, limited concurrency", [{"json": {"ids": ["a"] * n}} for n in (0, 1, 7)]
        ),
        "Media/search": Case(
            "fallback", [{"query": {"q": "a", "mode": m}} for m in ("exact", "fuzzy", "zz")]
        ),
        "Media/upload": Case("groups of tasks", [{"json": {"name": "a", "size": n}} for n in (1, 10000000)]),
        "Media/settings/{key}": Case("locks", [{"path": {"key": "1"}}]),
        "Media/events": Case(
            "tables of handlers",
            [{"json": {"events": e}} for e in ([], [{"type": "played"}, {"type": "liked"}, {"type": "z"}])],
        ),
        "Media/related/{id}": Case("fan-out in a loop", [{"path": {"id": "1"}}]),
        "Media/price/{id}": Case("timeouts", [{"path": {"id": "1"}}]),
        "Media/purge/{id}": Case("compensation", [{"path": {"id": "1"}}]),
    },
    {
        "media.video": [[], [{"_id": "1", "premium": True}], [{"_id": "1"}]],
        "Accounts/whoami": [{"id": "u"}],
        "Accounts/limits": [{"premium": True}, {}],
        "Index/page": [
            {"rows": [{"_id": "1"}, {"_id": "2"}], "next": "x"},
            {"rows": []},
            {"rows": [{"_id": "1"}]},
        ],
        "Rails/continue": [[], [1]],
        "Rails/trending": [[], [1]],
        "Rails/new": [[1]],
        "Index/related": [["a", "b"], []],
        "Scanner/scan": [{}, {"suspicious": True}],
    },
)
