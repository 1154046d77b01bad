"""What binding a value to a target changes."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.assignment import Assignment
from analyzer.static.values import LOST, UNKNOWN, Const, TupleValue

CASES = [
    ("a, (b, c) = 1, (2, 3)\nreturn (a, b, c)", (1, 2, 3)),
    ("a, *b, c = (1, 2, 3, 4)\nreturn (a, b[0], b[1], c)", (1, 2, 3, 4)),
    ("d = {}\nd['x'] = 1\nd['x'] += 1\nreturn d['x']", 2),
    ("x = [1, 2, 3]\ndel x[0]\nreturn x[0]", 2),
    ("x = y = [1]\nx += [2]\nreturn y[1]", 2),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_was_assigned_is_found(probe: Probe, body: str, expected: object) -> None:
    done = probe(body)
    assert isinstance(done.walk.assignment, Assignment)
    assert done.value.python() == (True, expected)


def test_an_item_at_an_unknown_place_may_be_any(probe: Probe) -> None:
    assert probe("x = [1, 2]\nx[i] = 3\nreturn x[0]", i=UNKNOWN).value == UNKNOWN
    assert probe("x = [1]\nx[i] = comm.call('B', '/b/')\nreturn x[0]", i=UNKNOWN).value == LOST


def test_an_attribute_is_set_on_the_object_every_name_has(probe: Probe) -> None:
    module = "class Box:\n    def __init__(self):\n        self.x = 1\n"
    done = probe("a = Box()\nb = a\nb.x = 2\nreturn (a.x, b.x)", module)
    assert done.value == TupleValue((Const.of(2), Const.of(2)))


CUSTOM = """
class Cart:
    kind = 'plain'
    def __init__(self): self.level = 'plain'
    def __setitem__(self, key, value): self.level = value
    def __delitem__(self, key): self.level = 'gold'
    def __iter__(self):
        self.level = 'gold'
        return iter(())
    def __len__(self):
        self.level = 'gold'
        return 0
    @property
    def paid(self): return 1
    @paid.setter
    def paid(self, value):
        if value: self.kind = 'gold'
    @paid.deleter
    def paid(self): self.level = 'gold'
cart = Cart()
"""


@pytest.mark.parametrize(
    ("change", "attribute", "surely"),
    [
        *(
            ("cart['a'] = 'gold'", "level", True),
            ("del cart['a']", "level", True),
            ("len(cart)", "level", True),
        ),
        *(("list(cart)", "level", True), ("cart.paid = x", "kind", None), ("del cart.paid", "level", None)),
    ],
)
def test_methods_that_syntax_runs_change_their_object(
    probe: Probe, change: str, attribute: str, surely: bool | None
) -> None:
    done = probe(f"cart = Cart()\n{change}\nreturn cart.{attribute} == 'gold'", CUSTOM, x=UNKNOWN)
    assert done.value.truth({}) is surely


def test_items_of_an_object_that_communicates(probe: Probe) -> None:
    module = """
class Store:
    def __init__(self, comm): self.comm = comm
    def __setitem__(self, key, value): self.comm.call('B', '/b/').get()
    def __delitem__(self, key): self.comm.call('B', '/c/').get()
    @property
    def one(self): return 1
    @one.deleter
    def one(self): self.comm.call('B', '/d/').get()
"""
    done = probe("store = Store(comm)\nstore['a'] = 1\ndel store['a']", module)
    assert done.ways == ["callB/b/ get callB/c/ get next"]
    assert probe("store = Store(comm)\ndel store.one", module).codes == ["MUP030"]


def test_an_item_of_one_of_several_objects(probe: Probe) -> None:
    body = "cart, other = Cart(), Cart()\nheld = cart if x else other\nheld['a'] = 'gold'\nreturn cart.level == 'gold'"
    assert probe(body, CUSTOM, x=UNKNOWN).value.truth({}) is None
    module = CUSTOM.replace("self.level = value", "value.call('B', '/b/').get()")
    assert probe(body.replace("'gold'\nreturn", "comm\nreturn"), module, x=UNKNOWN).codes == ["MUP041"]


PROFILE = """
class Profile:
    def __init__(self, comm, name): self.comm, self._name, self.count = comm, name, 0
    @property
    def name(self): return self._name
    @name.setter
    def name(self, value):
        if value != self._name: self.comm.call('B', '/b/').get()
        self._name = value
    @property
    def visits(self):
        if self.count: self.comm.call('B', '/c/').get()
        return self.count
    @visits.setter
    def visits(self, value): self.count = value
    def __setitem__(self, key, value):
        if key: self.comm.call('B', '/b/').get()
"""
EITHER = ["callB/b/ get next", "next"]


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("profile.name = x", EITHER),
        ("profile.name = 'old'", ["next"]),
        ("profile.name = 'new'\nprofile.name = 'new'", ["callB/b/ get next"]),
        ("kept = profile.name = x", EITHER),
        ("setattr(profile, 'name', x)", EITHER),
        ("profile.name += 'er'", ["callB/b/ get next"]),
        ("profile.count = x\nprofile.visits += 1", ["callB/c/ get next", "next"]),
        ("profile[x] = 1", EITHER),
        ("other = Profile(comm, 'new')\n(profile if x else other).name = 'new'", EITHER),
        ("for profile.name in ('old',):\n    pass", ["next"]),
    ],
)
def test_what_setting_an_attribute_runs_may_communicate_in_several_ways(
    probe: Probe, body: str, ways: list[str]
) -> None:
    done = probe(f"profile = Profile(comm, 'old')\n{body}", PROFILE, x=UNKNOWN)
    assert done.codes == []
    assert done.ways == ways


def test_one_of_several_targets_must_not_communicate_in_several_ways(probe: Probe) -> None:
    body = "profile = Profile(comm, 'old')\nprofile.name, y = x, 1"
    assert probe(body, PROFILE, x=UNKNOWN).codes == ["MUP030"]
