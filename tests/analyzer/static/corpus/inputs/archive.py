"""Requests to the archive."""

from corpus.execution import Case, Inputs

TARGETS, OBJECTS = "assignments to attributes and items", "special methods of objects of a module"
PARTS, DRAWN = "parts of lists, and arguments with a star", "iterators and views"
IDS = [{"json": {"ids": ids}} for ids in ([], ["b"], ["b", "c", "d"])]
KEYS = [{"json": {"id": key}} for key in "abc"]

INPUTS = Inputs(
    {
        "Archive/scope": Case(TARGETS, [{"json": {"tenant": t}} for t in ("none", "a")]),
        "Archive/batches": Case(TARGETS, IDS),
        "Archive/sizes": Case(TARGETS, IDS),
        "Archive/session": Case(TARGETS, IDS),
        "Archive/stages": Case(TARGETS, [{"json": {"urgent": u}} for u in (True, False)]),
        "Archive/next": Case(TARGETS, IDS),
        "Archive/policy": Case(TARGETS),
        "Archive/routes": Case(TARGETS),
        "Archive/limits": Case(TARGETS),
        "Archive/grown": Case(TARGETS),
        "Archive/put": Case(OBJECTS, KEYS),
        "Archive/remove": Case(OBJECTS),
        "Archive/touch": Case(OBJECTS),
        "Archive/known": Case(OBJECTS),
        "Archive/index": Case(OBJECTS, KEYS),
        "Archive/stamped": Case(OBJECTS, KEYS),
        "Archive/released": Case(OBJECTS),
        "Archive/first-stage": Case(PARTS),
        "Archive/other-stages": Case(PARTS),
        "Archive/rest": Case(PARTS),
        "Archive/stage/{name}": Case(
            PARTS,
            [{"path": {"name": n}, "json": {"others": o}} for n in ("scan", "x") for o in ([], ["/text"])],
        ),
        "Archive/labels": Case(PARTS, [{"json": {"more": m}} for m in ([], [["a"]], [["a"], ["b", "c"]])]),
        "Archive/import": Case(DRAWN),
        "Archive/import/sent": Case(DRAWN, [{"json": {"lines": n}} for n in ([], ["a"], ["a", "b", "c"])]),
        "Archive/resume": Case(DRAWN),
        "Archive/pairs": Case(DRAWN),
        "Archive/late": Case(DRAWN, [{"json": {"urgent": u}} for u in (True, False)]),
        "Archive/view": Case(DRAWN),
        "Archive/view/empty": Case(DRAWN, KEYS),
        "Archive/view/loop": Case(DRAWN),
        "Archive/waiting": Case(DRAWN, IDS),
        "Archive/event": Case("tables of handlers", [{"json": {"event": e}} for e in (1, "a", 2.5)]),
        "Archive/note": Case("tables of handlers"),
        "Archive/ends": Case(DRAWN),
        **{f"Store/{name}": Case("stub") for name in ("begin", "scan", "text", "print", "drop")},
    },
    {"Store/text": [{}, {"text": "x"}], "Store/scan": [{}, {"busy": True}]},
)
