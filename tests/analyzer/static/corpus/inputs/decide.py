"""Requests to endpoints that decide between all cases there are."""

from corpus.execution import Case, Inputs

CHANNELS = [{"json": {"channel": c}} for c in ("mail", "sms", "push")]
SIZES = [{"json": {"size": s}} for s in ("small", "large")]
PAYMENTS = [{"json": {"kind": k, "number": "1", "address": "a"}} for k in ("card", "invoice", "cash")]
EXHAUSTIVE, TABLE = "exhaustive decisions", "tables of targets"

INPUTS = Inputs(
    {
        "Decide/enum/match": Case(EXHAUSTIVE, CHANNELS),
        "Decide/enum/respond": Case(EXHAUSTIVE, CHANNELS),
        "Decide/enum/never": Case(EXHAUSTIVE, CHANNELS),
        "Decide/enum/elif": Case(EXHAUSTIVE, [{"json": {"paid": True}}, {}]),
        "Decide/literal/match": Case(EXHAUSTIVE, SIZES),
        "Decide/literal/elif": Case(EXHAUSTIVE, SIZES),
        "Decide/bool/match": Case(EXHAUSTIVE, [{"json": {"urgent": u}} for u in (True, False)]),
        "Decide/union/match": Case(EXHAUSTIVE, PAYMENTS),
        "Decide/union/isinstance": Case(EXHAUSTIVE, PAYMENTS),
        "Decide/union/dispatch": Case("singledispatch", PAYMENTS),
        "Decide/assert": Case(EXHAUSTIVE, [{"json": {"n": n}} for n in (0, 1)]),
        "Decide/exit": Case(EXHAUSTIVE, [{"json": {"stop": True}}, {}]),
        "Decide/unreachable": Case("polling"),
        "Decide/table": Case(TABLE, CHANNELS),
        "Decide/table/unpacked": Case(TABLE, CHANNELS),
        "Decide/table/all": Case(TABLE),
        "Decide/table/items": Case(TABLE, [{"json": {"skip": ["sms"]}}, {}]),
        "Decide/table/get": Case(TABLE, [{"json": {"name": n}} for n in "abc"]),
        "Decide/imports": Case("optional imports", [{"json": {"name": "x"}}]),
        "Decide/ternary": Case("calls by a condition", [{"json": {"kind": k}} for k in ("sms", "mms")]),
        "Decide/guards": Case(
            "calls by a condition",
            [{"json": {"op": o, "value": v}} for o in ("add", "clear", "x") for v in (1, 0)] + [{}],
        ),
        "Mailer/mail": Case("handler"),
        "Texter/sms": Case("handler"),
        "Texter/mms": Case("handler"),
        "Pusher/push": Case("query"),
    },
)
