"""Requests to endpoints in which members of enumerations and objects of modules say what is called."""

from corpus.execution import Case, Inputs

MEMBERS = "enumerations"
FILLED = "objects that imports fill"
VIEWS = "views of tables"
SETTERS = "attributes that communicate where they are set"


def each(name: str, *values: object) -> list[dict[str, object]]:
    """Return requests with one parameter, with each of some values."""
    return [{"json": {name: value}} for value in values]


PLANS = each("plan", "free", "pro", "team", "other")
NAMES = each("name", "FREE", "PRO", "TEAM", "other")

STUBS = (
    "Tools/rename",
    "Tools/index",
    "Tools/unindex",
    "Tools/accepted",
    "Tools/alarm",
    "Tools/bike",
    "Tools/cell/a",
    "Tools/cell/b",
    "Tools/charge",
    "Tools/chat",
    "Tools/east",
    "Tools/high",
    "Tools/low",
    "Tools/mail",
    "Tools/normal",
    "Tools/off",
    "Tools/on",
    "Tools/post",
    "Tools/pro",
    "Tools/reduced",
    "Tools/refund",
    "Tools/refused",
    "Tools/release",
    "Tools/reserve",
    "Tools/ship",
    "Tools/team",
    "Tools/track",
    "Tools/west",
)

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "Plans/tier": Case(MEMBERS, PLANS),
        "Plans/known": Case(MEMBERS),
        "Plans/either": Case(MEMBERS, PLANS),
        "Plans/paid": Case(MEMBERS, NAMES),
        "Plans/upgrade": Case(MEMBERS, PLANS),
        "Plans/helper": Case(MEMBERS, PLANS),
        "Plans/first": Case(MEMBERS, PLANS),
        "Plans/all": Case(MEMBERS),
        "Plans/best": Case(MEMBERS),
        "Plans/named": Case(MEMBERS, NAMES),
        "Plans/pattern": Case(MEMBERS, PLANS),
        "Kinds/outcome": Case(MEMBERS, each("code", 202, 409, 410, 1)),
        "Kinds/outcome/known": Case(MEMBERS),
        "Kinds/topic": Case(MEMBERS, each("topic", "mail", "chat", "other")),
        "Kinds/topic/text": Case(MEMBERS),
        "Kinds/level": Case(MEMBERS, each("level", 10, 20, 30)),
        "Kinds/place": Case(MEMBERS, each("east", True, False)),
        "Kinds/shipping": Case(MEMBERS, each("name", "POST", "BIKE", "NONE", "other")),
        "Kinds/shipping/missing": Case(MEMBERS, each("way", "x")),
        "Kinds/tax": Case(MEMBERS, each("code", "n", "r", "x")),
        "Kinds/taxes": Case(MEMBERS),
        "Kinds/way": Case(MEMBERS, each("name", "POST", "BIKE")),
        "Kinds/way/called": Case(MEMBERS, each("fast", True, False)),
        "Kinds/steps": Case(MEMBERS, each("undo", True, False)),
        "Kinds/cell": Case(MEMBERS),
        "Kinds/counted": Case(MEMBERS),
        "Kinds/moving": Case(MEMBERS),
        "Kinds/move": Case(MEMBERS),
        "Events/create": Case(FILLED, each("mail", True, False)),
        "Events/delete": Case(FILLED),
        "Events/expire": Case(FILLED, each("expired", True, False)),
        "Events/any": Case(FILLED, each("event", "created", "deleted", "moved", "mailed", "x")),
        "Events/move": Case(FILLED),
        "Events/other": Case(FILLED),
        "Events/mailed": Case(FILLED),
        "News/topics": Case(FILLED),
        "Events/hooks": Case(FILLED),
        "Events/command": Case(FILLED, each("command", "on", "stop", "x")),
        "Events/command/known": Case(FILLED),
        "Events/route": Case(FILLED, each("method", "GET", "PUT", "x")),
        "Events/signals": Case(FILLED),
        "Events/logged": Case(FILLED),
        "Events/steps": Case(FILLED),
        "Events/platform": Case(FILLED),
        "Events/late": Case(FILLED),
        "Events/once": Case(FILLED),
        "Views/routes/{name}": Case(VIEWS, [{"path": {"name": name}} for name in "abc"]),
        "Views/constant": Case(VIEWS, each("name", "pro", "team", "x")),
        "Views/registered": Case(VIEWS, each("name", "post", "bike", "x")),
        "Views/menu": Case(VIEWS),
        "Views/paths": Case(VIEWS),
        "Views/layers": Case(VIEWS),
        "Views/layers/changed": Case(VIEWS),
        "Profiles/rename": Case(SETTERS, each("name", "old", "new")),
        "Profiles/rename/twice": Case(SETTERS, each("name", "old", "new")),
        "Profiles/rename/try": Case(SETTERS, each("name", "old", "new")),
        "Profiles/rename/either": Case(
            SETTERS, [{"json": {"old": old, "name": name}} for old in (0, 1) for name in ("old", "new")]
        ),
        "Profiles/rename/named": Case(SETTERS, each("name", "old", "new")),
        "Profiles/visits": Case(SETTERS, each("visits", 1, 10)),
        "Profiles/mail": Case(SETTERS, each("mail", "", "a@b")),
        "Profiles/cells": Case(
            SETTERS,
            [{"json": {"names": n, "value": v}} for n in ([], ["a"], ["a", "a", "b"]) for v in (1, None)],
        ),
        "Profiles/guarded": Case(SETTERS, each("where", "", "x")),
        "Profiles/both": Case(SETTERS, each("name", "old", "new")),
    }
)
