"""Requests to exports, ingestion and jobs."""

from corpus.execution import Case, Inputs

PAGING, LATER = "pages of results", "work after the response"
READINGS = [
    {"json": r}
    for r in (
        [],
        [{"sensor": 1, "value": 99}],
        [{"value": None}, {"sensor": 2, "value": 5}, {"sensor": 1, "value": 95}],
    )
]

INPUTS = Inputs(
    {
        "Export/all": Case(PAGING),
        "Export/first": Case(PAGING, [{"query": {"n": n}} for n in (0, 1, 3)]),
        "Export/loop": Case(PAGING),
        "Export/limited": Case(PAGING),
        "Export/walrus": Case(PAGING),
        "Export/find/{id}": Case(PAGING, [{"path": {"id": i}} for i in "abz"]),
        "Export/any": Case(PAGING),
        "Export/csv": Case("streaming"),
        "Export/while-else": Case("polling"),
        "Ingest/readings": Case("loop of calls", READINGS),
        "Ingest/bulk": Case("fire and forget", READINGS),
        "Ingest/nested": Case(
            "loop of calls", [{"json": s} for s in ({}, {"a": []}, {"a": ["x", "y"], "b": ["z"]})]
        ),
        "Ingest/import": Case(LATER, [{"json": {"lines": n}} for n in ([], ["a"], ["a", "b"])]),
        "Ingest/webhook": Case(LATER, [{"json": {"event": "e"}, "headers": {"x-signature": "s"}}, {}]),
        "Jobs/submit": Case(LATER),
        "Jobs/status/{job}": Case("query"),
        "Jobs/stream": Case("streaming"),
        "Search/page": Case("query"),
        "Search/detail": Case("query", [{"json": {"id": "1"}}]),
        "Search/state": Case("handler"),
        "Search/alarm": Case("handler"),
    },
    {
        "Search/page": [
            {"items": []},
            {"items": [{"id": "a"}, {"id": "b"}], "next": "b"},
            {"items": [{"id": "c"}], "next": None},
        ],
        "Search/state": [{"ready": True}, {}],
        "Search/detail": [{"id": "a"}],
    },
)
