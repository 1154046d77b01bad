"""Attributes whose names a program makes of texts."""

from __future__ import annotations

import libcst as cst
import pytest
from probing import Probe

from analyzer.static.attribute_texts import MOST, attributes_like, text_affixes

CLASS = """
class Base:
    def get_all(self): pass
class A(Base):
    get_limit = 3
    def __init__(self):
        self.get_cached = None
    def get_one(self): pass
    def get_one_json(self): pass
    def put_one(self): pass
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('f"get_{kind}"', ("get_", "")),
        ('f"get_{kind}_json"', ("get_", "_json")),
        ('f"get_{kind}_{form}"', ("get_", "")),
        ('"get_" + kind', ("get_", "")),
        ('"get_" + "one"', ("get_", "one")),
        ('f"{kind}_json"', None),
        ('kind + "_json"', None),
        ("kind", None),
        ('"get_%s" % kind', None),
        ('f"get-{kind}"', None),
    ],
)
def test_what_a_text_begins_and_ends_with(code: str, expected: tuple[str, str] | None) -> None:
    assert text_affixes(cst.parse_expression(code)) == expected


def test_attributes_are_found_in_bases_and_objects_too(probe: Probe) -> None:
    done = probe("pass", CLASS)
    found = attributes_like(done.of_class("A"), "get_", "", done.walk.names)
    assert found is not None
    assert sorted(found) == ["get_all", "get_cached", "get_limit", "get_one", "get_one_json"]
    assert attributes_like(done.of_class("A"), "get_", "_json", done.walk.names) == ["get_one_json"]


@pytest.mark.parametrize("base", ["ABC", "Generic[T]", "Protocol", "Base, ABC"])
def test_bases_that_add_nothing_are_known(probe: Probe, base: str) -> None:
    source = f"""
from abc import ABC
from typing import Generic, Protocol, TypeVar
T = TypeVar("T")
class Base:
    pass
class B({base}):
    def get_one(self): pass
"""
    done = probe("pass", source)
    assert attributes_like(done.of_class("B"), "get_", "", done.walk.names) == ["get_one"]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(
            "import other\nclass B(other.Base):\n    def get_one(self): pass", id="base-of-a-library"
        ),
        pytest.param("class B(made()):\n    def get_one(self): pass", id="base-that-is-made"),
        pytest.param(
            "class B:\n    def get_one(self): pass\n    def set(self, n, v): setattr(self, n, v)",
            id="set-by-name",
        ),
        pytest.param(
            "class B:\n    def get_one(self): pass\ndef put(b):\n    b.get_two = print", id="set-from-outside"
        ),
        pytest.param(
            "class B:\n" + "".join(f"    def get_{n}(self): pass\n" for n in range(MOST + 1)), id="too-many"
        ),
    ],
)
def test_what_is_not_known(probe: Probe, more: str) -> None:
    done = probe("pass", more)
    assert attributes_like(done.of_class("B"), "get_", "", done.walk.names) is None


def test_each_of_them_may_be_called(probe: Probe) -> None:
    source = """
class A:
    def get_b(self, comm):
        return comm.call("B", "/b/").get()
    def get_c(self, comm):
        return comm.call("B", "/c/").get()
    def put(self, comm):
        return 1
"""
    done = probe("getattr(A(), f'get_{comm.params}')(comm)", source)
    assert done.ways == ["callB/b/ get next", "callB/c/ get next"]
    assert done.codes == []
    done = probe("f = getattr(A(), f'get_{comm.params}', None)\nif f is not None:\n    f(comm)", source)
    assert done.ways == ["callB/b/ get next", "callB/c/ get next", "next"]
