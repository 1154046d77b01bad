"""Which local work may raise what the source defines."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.own_exceptions import OwnExceptions
from analyzer.static.values import UNKNOWN

OWN = """
import enum
import functools
class Bad(Exception):
    pass
def check(x):
    if not x:
        raise Bad(x)
    return x
def fine(x):
    return x
ALIAS = check
class Strict:
    def __init__(self, x):
        check(x)
class Kind(enum.Enum):
    A = 1
    @classmethod
    def _missing_(cls, value):
        check(None)
class Tool:
    def __init__(self, fine):
        self.fine = fine
"""
LATER = """
def lazily(xs):
    for x in xs:
        yield check(x)
"""


def handled(probe: Probe, work: str, module: str) -> bool:
    """Return whether a handler of ``Bad`` is a way to end after a call and some work."""
    body = f"comm.call('B', '/b/').get()\ntry:\n    y = {work}\nexcept Bad:\n    comm.call('B', '/c/').get()"
    done = probe(body, module, xs=UNKNOWN, f=UNKNOWN)
    assert isinstance(done.walk.own_exceptions, OwnExceptions)
    return any("callB/c/" in way for way in done.ways)


@pytest.mark.parametrize(
    "work",
    [
        "len(xs)",
        "xs['key'] + 1",
        "[x.strip() for x in xs]",
        "fine(xs)",
        "sum(filter(None, xs))",
        "dict(zip(xs, range(3)))",
        "xs.get('key', {})",
    ],
)
def test_built_in_work_raises_nothing_of_ones_own(probe: Probe, work: str) -> None:
    assert not handled(probe, work, OWN)


@pytest.mark.parametrize(
    "work",
    [
        "check(xs)",
        "ALIAS(xs)",
        "Strict(xs)",
        "f(xs)",
        "list(map(check, xs))",
        "sorted(xs, key=check)",
        "functools.partial(check, xs)()",
        "f.result()",
        "f.get()",
        "xs.sort(key=f)",
        "Kind(xs)",
        "Tool(check)",
    ],
)
def test_code_that_is_not_followed_may(probe: Probe, work: str) -> None:
    assert handled(probe, work, OWN)


def test_an_attribute_may_be_any_function(probe: Probe) -> None:
    """Also if a function of the source has its name."""
    body = "tool = Tool(check)\ntry:\n    y = tool.fine(xs)\nexcept Bad:\n    comm.call('B', '/c/').get()"
    assert any("callB/c/" in way for way in probe(body, OWN, xs=UNKNOWN).ways)


def test_where_generators_raise_any_loop_may(probe: Probe) -> None:
    """Whether a variable holds such a generator is not known."""
    assert handled(probe, "[x for x in xs]", OWN + LATER)


def test_a_failed_step_of_a_fan_out_is_no_other_code(probe: Probe) -> None:
    body = (
        "try:\n    fs = [comm.call('B', '/b/') for x in xs]\n    for f in fs: f.get()\nexcept Bad:\n    pass"
    )
    assert all(way.startswith(("fan-out", "next")) for way in probe(body, OWN, xs=UNKNOWN).ways)
