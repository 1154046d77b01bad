"""What functions of the standard library return."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.library import Library
from analyzer.static.values import UNKNOWN, Const

CASES = [
    ("len([1, 2])", 2),
    ("sorted([3, 1, 2])[0]", 1),
    ("max(1, 5)", 5),
    ("list(zip('ab', (1, 2)))[1]", ("b", 2)),
    ("list(enumerate('ab', start=1))[0]", (1, "a")),
    ("any([False, True])", True),
    ("all([])", True),
    ("dict(a=1)['a']", 1),
    ("dict([('a', 2)])['a']", 2),
    ("isinstance('x', str)", True),
    ("int('7')", 7),
    ("'-'.join(['a', 'b'])", "a-b"),
    ("'{} {x}'.format(1, x=2)", "1 2"),
    ("list(reversed((1, 2)))[0]", 2),
    ("functools.partial(max, 4)(3)", 4),
    ("collections.defaultdict(list, )['k'] == []", None),
    ("collections.deque([1, 2]).popleft()", 1),
    ("collections.namedtuple('P', 'x y')(1, 2).y", 2),
    ("types.SimpleNamespace(x=3).x", 3),
    ("getattr(types.SimpleNamespace(x=3), 'x')", 3),
]


@pytest.mark.parametrize(("code", "expected"), CASES)
def test_a_function_returns_what_python_says(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", "import collections, functools, types\n")
    assert isinstance(done.walk.library, Library)
    known, value = done.value.python()
    assert (value == expected) if known else expected is None
    assert done.codes == []


@pytest.mark.parametrize("name", ["sorted", "min", "max"])
@pytest.mark.parametrize(
    ("key", "codes"),
    [
        ("lambda x: comm.call('B', '/b/').get()", ["MUP041"]),
        ("comm.call", ["MUP041"]),
        ("lambda x: -x", []),
    ],
)
def test_a_key_must_not_communicate_out_of_sight(probe: Probe, name: str, key: str, codes: list[str]) -> None:
    assert probe(f"return {name}([1, 2], key={key})").codes == codes


VIEWS = [
    ("types.MappingProxyType({'a': 1})['a']", 1),
    ("types.MappingProxyType({'a': 1}).get('b', 2)", 2),
    ("len(types.MappingProxyType(dict(a=1)))", 1),
    ("types.MappingProxyType(x).get('a')", None),
    ("collections.ChainMap({'a': 1}, {'a': 2, 'b': 3})['a']", 1),
    ("collections.ChainMap({'a': 1}, {'a': 2, 'b': 3})['b']", 3),
    ("collections.ChainMap(TABLE, {'a': 2})['b']", 5),
    ("collections.ChainMap(x, {'a': 2})['a']", None),
    ("max([3, 1], key=lambda n: -n)", 1),
    ("max([(1, 'a'), (1, 'b')], key=lambda row: row[0])[1]", "a"),
    ("min([(1, 'a'), (1, 'b')], key=lambda row: row[0])[1]", "a"),
]


@pytest.mark.parametrize(("code", "expected"), VIEWS)
def test_a_view_of_mappings_has_what_they_have(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", "import collections, types\nTABLE = {'b': 5}\n", x=UNKNOWN)
    known, value = done.value.python()
    assert (value == expected) if known else expected is None


def test_a_view_shows_what_changes_and_a_chain_of_what_may_change_is_not_known(probe: Probe) -> None:
    shown = "table = {}\nview = types.MappingProxyType(table)\ntable['a'] = 1\nreturn view['a']"
    assert probe(shown, "import types\n").value == Const.of(1)
    chain = "own = {'a': 1}\nchain = collections.ChainMap(own)\nchain['a'] = 2\nreturn own['a']"
    assert probe(chain, "import collections\n").value == UNKNOWN
