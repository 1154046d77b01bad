"""Requests to a catalogue with caches."""

from corpus.execution import Case, Inputs

NAMES = [{"path": {"name": n}} for n in "abcdefgh"]

INPUTS = Inputs(
    {
        "Catalog/page/{name}": Case("cache", NAMES),
        "Catalog/aside/{name}": Case("cache", NAMES),
        "Catalog/tree/{root}": Case("cache", [{"path": {"root": r}} for r in "ab"]),
        "Catalog/stale/{name}": Case("cache", NAMES),
        "Catalog/etag/{name}": Case("cache", NAMES),
        "Catalog/limited": Case("rate limit"),
        "Catalog/session": Case("sessions", [{"cookies": {"session": "s"}}, {}]),
        "Catalog/invalidate/{name}": Case("tables of targets"),
        "Catalog/many": Case("cache", [{"json": {"names": n}} for n in ([], ["a"], ["x", "y"])]),
        "Pages/render": Case("queries side by side", [{"json": {"name": "a"}}]),
        "Pages/render-many": Case("query", [{"json": {"names": ["a"]}}]),
    },
    {"Pages/render": [{"page": 1}], "Pages/render-many": [{"a": 1}, {}]},
)
