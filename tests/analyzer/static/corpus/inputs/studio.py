"""Requests to small endpoints, each with another shape of the language."""

from corpus.execution import Case, Inputs

SHAPES, TASKS = "shapes of the language", "tasks and asynchronous managers"

INPUTS = Inputs(
    {
        "Studio/genexp-live": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/level": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/heap": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/sorted-jobs": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/hooks": Case(
            SHAPES, [{"json": {"code": "a"}}, {"json": {"code": "b"}}, {"json": {"code": "c"}}]
        ),
        "Studio/hooks-both": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/lazy": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/breaker": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/memo": Case(
            SHAPES, [{"json": {"code": "a"}}, {"json": {"code": "b"}}, {"json": {"code": "c"}}]
        ),
        "Studio/lru": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/partialmethod": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/bound-table": Case(
            SHAPES,
            [
                {"json": {"code": "on"}},
                {"json": {"code": "has"}},
                {"json": {"code": "both"}},
                {"json": {"code": "z"}},
            ],
        ),
        "Studio/pages": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/pages-for": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/pages-first": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/locked": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/counted": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/global-count": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/contextvar": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/ttl": Case(
            SHAPES, [{"json": {"code": "a"}}, {"json": {"code": "b"}}, {"json": {"code": "c"}}]
        ),
        "Studio/retry-gen": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/retry-rec": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/saga": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/fan": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Studio/fan-timeout": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Studio/tenant": Case(
            SHAPES, [{"json": {"tenant": "a"}}, {"json": {"tenant": "b-x"}}, {"json": {"tenant": "c"}}]
        ),
        "Studio/typed": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/groupby": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Studio/pairwise": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/product": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/reduce": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/simple-ns": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/except-star": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/except-name": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/nested-try": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/return-finally": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Studio/loop-finally": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/gather": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/gather-errors": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/group": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/group-error": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/timeout": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/wait-for": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/wait": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/session": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/apages": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/apages-comp": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/queue": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/queue-workers": Case(
            TASKS,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "AsyncStudio/lock": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/event": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/task-result": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/finally-await": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/shield": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/walrus-await": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "AsyncStudio/to-thread": Case(
            TASKS, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        **{f"Tools/{name}": Case("stub") for name in ("on", "has", "set", "delete", "off", "page")},
    },
    {
        "Tools/on": [{"on": True}, {}],
        "Tools/has": [{}, {"x": 1}],
        "Tools/page": [{"items": [1, 2], "next": 2}, {"items": [1]}, {}],
    },
)
