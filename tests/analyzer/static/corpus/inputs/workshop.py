"""Requests to small endpoints, each with another shape of the language."""

from corpus.execution import Case, Inputs

SHAPES = "shapes of the language"

INPUTS = Inputs(
    {
        "Workshop/perm": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/state": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/raised": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/plugin": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/descriptor": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/invoice": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/options": Case(
            SHAPES,
            [
                {"json": {"more": {}}},
                {"json": {"more": {"a": 2}}},
                {"json": {"more": {"retries": 3, "z": 1}}},
                {"json": {"more": {"path": "/x"}}},
            ],
        ),
        "Workshop/send": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/yield-from": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/repo": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/hooks": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/deepcopy": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/copy-obj": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/from-base": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/orjson": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/regex": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/dates": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/windows": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/version": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/built-name": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/kwargs-call": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/kwargs-merge": Case(
            SHAPES,
            [
                {"json": {"more": {}}},
                {"json": {"more": {"a": 2}}},
                {"json": {"more": {"retries": 3, "z": 1}}},
                {"json": {"more": {"path": "/x"}}},
            ],
        ),
        "Workshop/counter-common": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/grouped": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/chunks": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/window-deque": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/two-pointers": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/flags-any": Case(
            SHAPES,
            [
                {"json": {"more": {}}},
                {"json": {"more": {"a": 2}}},
                {"json": {"more": {"retries": 3, "z": 1}}},
                {"json": {"more": {"path": "/x"}}},
            ],
        ),
        "Workshop/pipeline": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/compose": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/currying": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/any-of": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/hedged": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/status-table": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/backoff": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/partial-failures": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/swallow-return": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/loop-var": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/del-item-loop": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/while-true": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/nested-fn": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/bool-result": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/ordered": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/slice-step": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/set-ops": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/sort-attr": Case(
            SHAPES,
            [
                {"json": {"x": []}},
                {"json": {"x": ["b"]}},
                {"json": {"x": ["b", "c", "d"]}},
                {"json": {"x": ["b", "b"]}},
            ],
        ),
        "Workshop/round": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/type-check": Case(SHAPES, [{"json": {"v": 1}}, {"json": {"v": "a"}}, {"json": {"v": 2.5}}]),
        "Workshop/isinstance": Case(SHAPES, [{"json": {"v": 1}}, {"json": {"v": "a"}}, {"json": {"v": 2.5}}]),
        "Workshop/none-or": Case(SHAPES, [{"json": {"v": None}}, {"json": {"v": 3}}, {"json": {"v": 4}}]),
        "Workshop/global-hooks": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/ep-timed": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/ep-validated": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/ep-both": Case(
            SHAPES,
            [
                {"json": {"code": "a"}},
                {"json": {"code": "b"}},
                {"json": {"code": "c"}},
                {"json": {"code": "mail"}},
                {"json": {"code": "chat"}},
            ],
        ),
        "Workshop/class-flag": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        "Workshop/class-counter": Case(
            SHAPES, [{"json": {"n": 0}}, {"json": {"n": 1}}, {"json": {"n": 2}}, {"json": {"n": 3}}]
        ),
        **{
            f"Streams/{name}": Case(SHAPES, [{"json": {}}])
            for name in (
                "until-off",
                "act-until",
                "skip-until",
                "off-only",
                "both-sources",
                "first-then",
                "flat",
                "flat-list",
                "truthy",
                "first-truthy",
            )
        },
        **{
            f"Streams/{name}": Case(
                SHAPES, [{"json": {"ids": ids}} for ids in ([], [1], [1, 2], [1, 2, 3, 4])]
            )
            for name in ("known-first", "after-known")
        },
        **{
            f"Gates/{name}": Case(SHAPES, [{"json": {"ids": ids}} for ids in ([], [1], [1, 2], [1, 2, 3, 4])])
            for name in ("group-limited", "tasks-limited", "tasks-in-turn")
        },
        **{f"Tools/{name}": Case("stub") for name in ("on", "has", "set", "delete", "off", "page")},
    },
    {
        "Tools/on": [{"on": True}, {}],
        "Tools/has": [{}, {"x": 1}],
        "Tools/page": [{"items": [1, 2], "next": 2}, {"items": [1]}, {}],
    },
)
