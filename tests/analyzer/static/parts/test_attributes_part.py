"""What reading an attribute or item of an object does."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.attributes import Attributes

MODULE = """
import functools

class Base:
    kind = "base"
    @property
    def double(self):
        return self.x * 2

class Box(Base):
    def __init__(self, x):
        self.x = x
    def own(self):
        return super().kind
    def __getitem__(self, key):
        return (self.x, key)
    def __getattr__(self, name):
        return name
    def __call__(self, y):
        return self.x + y
    @staticmethod
    def still(y):
        return y
    @classmethod
    def made(cls):
        return cls(5)
"""
CASES = [
    ("Box(1).x", 1),
    ("Box(1).double", 2),
    ("Box(1).kind", "base"),
    ("Box(1).own()", "base"),
    ("Box(1)['k']", (1, "k")),
    ("Box(1).elsewhere", "elsewhere"),
    ("Box(1)(2)", 3),
    ("Box.still(7)", 7),
    ("Box.made().x", 5),
]


@pytest.mark.parametrize(("code", "expected"), CASES)
def test_an_attribute_is_what_python_finds(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", MODULE)
    assert isinstance(done.walk.attributes, Attributes)
    assert done.value.python() == (True, expected)


def test_a_method_is_found_by_the_first_of_several_names(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    found = done.walk.attributes.method_named(done.of_class("Box"), ("__bool__", "__call__"))
    assert found is not None
    assert found.qualname == "Box.__call__"
