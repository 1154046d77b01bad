"""Requests to a digest of several sources."""

from corpus.execution import Case, Inputs

COMPLETED, WAIT, SET, FIRST = (
    "fan-out, as completed",
    "fan-out, waited for",
    "fan-out, set of tasks",
    "first of several",
)
TOPIC = [{"query": {"topic": "t"}}]
TOPICS = [{"json": {"topics": topics}} for topics in ([], ["a"], ["a", "b"], list("abcde"))]
FOUND = [[], [{"id": "n"}], [{"id": "m"}, {"id": "n"}]]

INPUTS = Inputs(
    {
        "Digest/digest": Case(COMPLETED, TOPIC),
        "Digest/digest/tolerant": Case(COMPLETED, TOPIC),
        "Digest/digest/or-nothing": Case(COMPLETED, TOPIC),
        "Digest/digest/calls": Case(COMPLETED, TOPIC),
        "Digest/digest/wait": Case(WAIT, TOPIC),
        "Digest/digest/set": Case(SET, [{"query": {"topic": "t", "old": o}} for o in ("true", "false")]),
        "Digest/digest/loop": Case(SET, TOPIC),
        "Digest/digest/exception": Case(WAIT, TOPIC),
        "Digest/topics": Case(COMPLETED, TOPICS),
        "Digest/topics/tolerant": Case(COMPLETED, TOPICS),
        "Digest/topics/calls": Case(COMPLETED, TOPICS),
        "Digest/topics/wait": Case(WAIT, TOPICS),
        "Digest/topics/first": Case(FIRST, TOPICS),
        "Digest/topics/in-turn": Case(FIRST, TOPICS),
        "Digest/first": Case(FIRST, TOPIC),
        "Digest/first/completed": Case(FIRST, TOPIC),
        "Digest/first/in-turn": Case(FIRST, TOPIC),
        "Digest/drain": Case(COMPLETED, TOPIC),
        "Digest/late": Case("timeouts", TOPIC),
        "Digest/late/timeout": Case("timeouts", TOPIC),
        "Digest/set-of-calls": Case(SET, TOPIC),
        "Papers/headlines": Case("query"),
        "Wire/latest": Case("query"),
        "Archive/search": Case("query"),
    },
    {"Papers/headlines": FOUND, "Wire/latest": FOUND, "Archive/search": FOUND},
)
