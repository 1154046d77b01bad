"""What expressions are worth, and in which order they run."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.evaluation import Expressions, merge_results
from analyzer.static.state import State
from analyzer.static.values import UNKNOWN, Const, join


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("[1, *(2, 3)][2]", 3),
        ("{'a': 1, **{'b': 2}}['b']", 2),
        ("(1, 2, 3)[1:][0]", 2),
        ("'abc'[::-1]", "cba"),
        ("(x := 3) + x", 6),
        ("'%(a)s' % {'a': 1}", "1"),
        ("not [1]", False),
        ("(lambda a, b=2: a + b)(1)", 3),
    ],
)
def test_an_expression_is_worth_what_python_says(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}")
    assert isinstance(done.walk.expressions, Expressions)
    assert done.value == Const.of(expected)


def test_parts_run_from_left_to_right(probe: Probe) -> None:
    done = probe("return (comm.call('B', '/c/'), comm.call('B', '/b/').get())")
    assert done.ways == ["callB/c/ callB/b/ get return"]


def test_an_attribute_that_is_not_there_raises(probe: Probe) -> None:
    assert probe("return None.x").ways == ["raise"]


def test_equal_ways_become_one() -> None:
    state = State(({},))
    both = merge_results([(state, Const.of(1)), (state, Const.of(2))])
    assert both == [(state, join([Const.of(1), Const.of(2)]))]
    assert merge_results([(state, UNKNOWN)]) == [(state, UNKNOWN)]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return TABLE['eu', True]", "/b"),
        ("return TABLE[('eu', True)]", "/b"),
        ("d = {}\nd['a', 1] = 'x'\nreturn d['a', 1]", "x"),
        ("d = {('a', 1): 'x', ('a', 2): 'y'}\ndel d['a', 1]\nreturn list(d.values())[0]", "y"),
        ("d = {(1,): 'x', 1: 'y'}\nreturn d[1,]", "x"),
        ("return Grid()[1, 2]", (1, 2)),
    ],
)
def test_a_key_of_several_parts(probe: Probe, body: str, value: object) -> None:
    module = """
TABLE = {("eu", True): "/b", ("eu", False): "/c", ("us", True): "/b"}
class Grid:
    def __getitem__(self, key):
        return key
"""
    assert probe(body, module).value.python() == (True, value)


def test_a_key_of_which_a_part_is_unknown_may_be_any(probe: Probe) -> None:
    module = "TABLE = {('eu', True): '/b/', ('eu', False): '/c/'}"
    done = probe("comm.call('B', TABLE['eu', bool(x)]).get()", module, x=UNKNOWN)
    assert (done.ways, done.codes) == (["callB/b/ get next", "callB/c/ get next"], [])
