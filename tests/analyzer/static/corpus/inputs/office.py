"""Requests to the people of an office."""

from corpus.execution import Case, Inputs

WHO = [{"json": {"who": who}} for who in ("ada", "grace")]
EVENTS = [
    {"json": {"kind": "hired", "office": "o", "person": "p"}},
    {"json": {"kind": "promoted", "office": "o", "person": "p", "grade": 3}},
    {"json": {"kind": "left", "office": "o", "person": "p"}},
    {"json": {"kind": "moved", "office": "o", "to": "q"}},
    {"json": {"kind": "other"}},
]
KEPT, BY_NAME, DISPATCH = "background task", "getattr of a text that is made", "singledispatch"

INPUTS = Inputs(
    {
        "Office/hire": Case(KEPT, WHO),
        "Office/touch": Case(KEPT, [{"json": {"who": "ada", "quiet": quiet}} for quiet in (True, False)]),
        "Office/spawned-twice": Case(KEPT, WHO),
        "Office/find/{kind}": Case(
            BY_NAME, [{"path": {"kind": k}, "json": {"value": "v"}} for k in ("name", "room", "nothing", "x")]
        ),
        "Office/step/{name}": Case(BY_NAME, [{"path": {"name": n}} for n in ("open", "close")]),
        "Events/announce": Case(DISPATCH, EVENTS),
        "Events/weigh": Case(DISPATCH, EVENTS),
        "Events/enter": Case(DISPATCH, EVENTS),
        "Events/promote": Case(DISPATCH, WHO),
        "Mail/welcome": Case("handler"),
        "Mail/farewell": Case("handler"),
        "Mail/audit": Case("handler"),
        "Pay/raise": Case("handler"),
    },
)
