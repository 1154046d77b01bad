"""Requests whose options reach the code by reflection."""

from corpus.execution import Case, Inputs

DETAILED = [{"json": {"detailed": True}}, {}]
REFLECTION, MANAGERS = "reflective writes", "swallowing context managers"

INPUTS = Inputs(
    {
        "Reports/options": Case(REFLECTION, [{"json": {"detailed": True}}, {"json": {"cached": False}}, {}]),
        "Reports/settings": Case(REFLECTION, [{"json": {"verify": True}}, {"json": {"audit": True}}, {}]),
        "Reports/features": Case(
            "descriptors", [{"json": {"names": n}} for n in ([], ["beta"], ["beta", "fast"])]
        ),
        "Reports/features/set": Case("descriptors", [{"json": {"beta": True}}, {}]),
        "Reports/jobs": Case(REFLECTION, [{"json": {"name": n}} for n in ("a", "!a")]),
        "Reports/jobs/replaced": Case(
            "dataclasses", [{"json": {"name": "a", "urgent": u}} for u in (True, False)]
        ),
        "Reports/audited": Case("assigned methods", [{"json": {"remote": True}}, {}]),
        "Reports/vars": Case(REFLECTION, DETAILED),
        "Reports/field": Case(REFLECTION, [{"json": {"name": n}} for n in ("detailed", "limit")]),
        "Reports/namespace": Case(REFLECTION, DETAILED),
        "Reports/getattr": Case(REFLECTION, [{"json": {"what": w}} for w in ("details", "x")]),
        "Reports/remembered": Case("mutable defaults", [{"json": {"item": "a"}}]),
        "Reports/warm": Case("state of the worker"),
        "Reports/quiet": Case(MANAGERS),
        "Reports/quiet/two": Case(MANAGERS),
        "Reports/ignoring": Case(MANAGERS),
        "Reports/suppress": Case(MANAGERS),
        "Reports/stack": Case(MANAGERS),
        "Reports/nested": Case("closures", [{"json": {"deep": True}}, {}]),
        "Log/write": Case("handler"),
        "Log/verify": Case("handler"),
        "Log/beta": Case("handler"),
    },
    {"Log/verify": [{"name": "x"}, {}]},
)
