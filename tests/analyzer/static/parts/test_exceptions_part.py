"""Which handler catches what goes wrong."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.exceptions import ANCESTORS, Exceptions
from analyzer.static.values import UNKNOWN
from mup import errors

CALL = "comm.call('B', '/b/').get()"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (f"try:\n    {CALL}\nexcept CallError:\n    return 1", ["callB/b/ get next", "callB/b/ get return"]),
        ("try:\n    raise ValueError\nexcept KeyError:\n    return 1", ["raise"]),
        ("try:\n    raise KeyError\nexcept LookupError:\n    return 1", ["return"]),
        (f"try:\n    return 1\nfinally:\n    {CALL}", ["callB/b/ get return"]),
        (
            f"try:\n    return comm.params['x']\nfinally:\n    {CALL}",
            ["callB/b/ get raise", "callB/b/ get return"],
        ),
        (f"try:\n    pass\nexcept ValueError:\n    return 1\nelse:\n    {CALL}", ["callB/b/ get next"]),
    ],
)
def test_a_handler_gets_what_it_names(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, "from mup.errors import CallError\n")
    assert isinstance(done.walk.exceptions, Exceptions)
    assert done.ways == ways


@pytest.mark.parametrize("name", sorted(ANCESTORS))
def test_the_frameworks_exceptions_are_as_in_mup_errors(name: str) -> None:
    kind = getattr(errors, name)
    assert [one.__name__ for one in kind.__mro__ if one.__name__ in ANCESTORS] == [name, *ANCESTORS[name]]


PARTS = """
from mup.errors import CallError
def checked(x):
    if x:
        raise ExceptionGroup("g", [ValueError(), KeyError()])
"""
FIRST = "except* ValueError:\n    comm.call('B', '/b/').get()"
SECOND = "except* KeyError:\n    comm.call('B', '/c/').get()"
B, C = "callB/b/ get", "callB/c/ get"


@pytest.mark.parametrize(
    "body",
    ["raise ExceptionGroup('g', [ValueError(), KeyError()])", "checked(x)", "raise x"],
)
def test_each_handler_takes_its_part_of_a_group(probe: Probe, body: str) -> None:
    ways = probe(f"try:\n    {body}\n{FIRST}\n{SECOND}", PARTS, x=UNKNOWN).ways
    assert {f"{B} next", f"{C} next", f"{B} {C} next", f"{B} {C} raise"} <= set(ways)
    assert f"{C} {B} next" not in ways


def test_handlers_behind_one_that_fails_take_their_parts(probe: Probe) -> None:
    body = f"try:\n    raise ExceptionGroup('g', xs)\n{FIRST}\n{SECOND}"
    ways = probe(body, PARTS, xs=UNKNOWN).ways
    assert f"callB/b/ {C} raise" in ways  # the first has begun its call, and got no answer
    raising = probe(body.replace(FIRST, f"{FIRST}\n    raise TypeError"), PARTS, xs=UNKNOWN).ways
    assert f"{B} {C} raise" in raising
    assert f"{B} {C} next" not in raising


def test_a_handler_of_everything_leaves_nothing(probe: Probe) -> None:
    rest = "except* Exception:\n    comm.call('B', '/c/').get()"
    ways = probe(f"try:\n    raise ExceptionGroup('g', xs)\n{FIRST}\n{rest}", PARTS, xs=UNKNOWN).ways
    assert {f"{C} next", f"{B} {C} next"} <= set(ways)
    alone = probe(f"try:\n    raise ExceptionGroup('g', xs)\n{rest}", PARTS, xs=UNKNOWN).ways
    assert alone == [f"{C} next"]


def test_only_a_group_has_parts(probe: Probe) -> None:
    ways = probe(f"try:\n    raise KeyError\n{FIRST}\n{SECOND}", PARTS).ways
    assert ways == [f"{C} next"]
    failed = probe("try:\n    comm.call('B', '/a/').get()\nexcept* CallError:\n    return 1", PARTS).ways
    assert failed == ["callB/a/ get next", "callB/a/ get return"]


STANDARD = """
import json, unknown
from mup.errors import CallError
class Wrong(json.JSONDecodeError): pass
class Foreign(unknown.Error): pass
"""


@pytest.mark.parametrize(
    ("raised", "caught", "ways"),
    [
        ("comm.call('B', '/b/').get()", "json.JSONDecodeError", ["callB/b/ get next", "return"]),
        ("raise Wrong()", "json.JSONDecodeError", ["return"]),
        ("raise KeyError()", "json.JSONDecodeError", ["raise"]),
        # What is no built-in class may derive from one.
        ("raise Wrong()", "ValueError", ["raise", "return"]),
        ("raise Foreign()", "ValueError", ["raise", "return"]),
        ("raise Foreign()", "CallError", ["raise"]),
    ],
)
def test_what_the_library_has_is_no_exception_of_mup(
    probe: Probe, raised: str, caught: str, ways: list[str]
) -> None:
    done = probe(f"try:\n    {raised}\nexcept {caught}:\n    return 1", STANDARD)
    assert sorted(set(done.ways)) == ways
