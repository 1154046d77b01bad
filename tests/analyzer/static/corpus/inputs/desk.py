"""Requests to a help desk: ports and adapters, a unit of work, events, users as a mapping."""

from corpus.execution import Case, Inputs

TICKET = [{"path": {"id": "1"}}]
STUBS = (
    "Broker/publish",
    "Mail/send",
    "Survey/invite",
    "Users/user",
    "Users/exists",
    "Pager/page",
    "Phone/ring",
    "Archive/put",
)

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Desk/notify-closed": Case("tables of handlers"),
        "Desk/strict": Case("fallback"),
        "Desk/digest": Case("fan-out, dicts"),
        "Desk/archive": Case("page by page"),
        "Desk/tickets": Case("unit of work", [{"json": {"title": t}} for t in ("a", " ")]),
        "Desk/tickets/{id}/close": Case("unit of work", TICKET),
        "Desk/tickets/{id}/open": Case("repositories and services", TICKET),
        "Desk/tickets/{id}/assign": Case(
            "operators of objects", [{"path": {"id": "1"}, "json": {"user": "u"}}]
        ),
        "Desk/users/{user}/load": Case("generators", [{"path": {"user": "1"}}]),
        "Desk/notify/{kind}": Case(
            "tables of handlers", [{"path": {"kind": k}} for k in ("opened", "closed")]
        ),
        "Desk/team": Case("fan-out, waited for", [{"json": {"ids": ["a"] * n}} for n in (0, 1, 3)]),
        "Desk/escalate/{id}": Case("first that answers", TICKET),
    },
    {
        "desk.ticket": [[], [{"_id": "1", "status": "open"}], [{"_id": "1"}]],
        "Users/exists": [{"exists": True}, {"exists": False}],
        "Users/user": [{"name": "n"}],
        "desk.open": [[], [{"_id": "1", "status": "open"}]],
        "Mail/send": [{}, {"read": True}],
        "Pager/page": [{}, {"acknowledged": True}, {"acknowledged": False}],
        "desk.on_call": [[], [{"_id": "a"}, {"_id": "b"}]],
        "Phone/ring": [{}, {"answered": True}],
        "desk.all": [[], [{"assignee": "a"}, {"assignee": "b"}, {}]],
        "desk.old": [[], [{"_id": "1"}]],
    },
)
