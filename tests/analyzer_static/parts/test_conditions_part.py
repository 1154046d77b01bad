"""What a condition tells about the values it is about."""

from __future__ import annotations

from probing import Probe

from analyzer.static.conditions import TRUTH, Conditions
from analyzer.static.values import NONE, UNKNOWN, Const, Unknown, join


def test_what_is_known_decides(probe: Probe) -> None:
    done = probe("x = [1]\nif x and not []:\n    return 1\nreturn 2")
    assert isinstance(done.walk.conditions, Conditions)
    assert done.value == Const.of(1)


def test_none_is_told_from_what_is_not(probe: Probe) -> None:
    maybe = join([NONE, Const.of("a")])
    assert probe("if x is not None:\n    return x", x=maybe).flows[0].value == Const.of("a")
    assert probe("if x is None:\n    return x", x=maybe).flows[0].value == NONE


def test_a_text_that_was_compared_is_known(probe: Probe) -> None:
    done = probe("if x in ('a', 'b'):\n    return x\nreturn 'c'", x=UNKNOWN)
    assert done.value == join([Const.of("a"), Const.of("b"), Const.of("c")])


def test_the_answer_is_kept_for_the_next_condition(probe: Probe) -> None:
    done = probe("if x:\n    return x\nreturn x", x=UNKNOWN)
    assert {flow.value for flow in done.flows} <= {Unknown(told=True), Unknown(told=False), UNKNOWN}
    assert TRUTH[0] == "__bool__"
