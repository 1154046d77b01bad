"""Orders that keys of ``sorted``, ``min`` and ``max`` make, and functions of ``operator``."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

MODULE = """
from dataclasses import dataclass
from operator import attrgetter, getitem, itemgetter, methodcaller
@dataclass
class Model:
    name: str
    cost: int
    def path(self):
        return "/" + self.name + "/"
MODELS = [Model("b", 2), Model("c", 1)]
JOBS = [(2, "/b/"), (1, "/c/")]
"""
BOTH = "call:B/c/ get:0 call:B/b/ get:2 respond"
B, C = "call:B/b/ get:0 respond", "call:B/c/ get:0 respond"


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("for _, path in sorted(JOBS, key=itemgetter(0)): call(path)", BOTH),
        ("for _, path in sorted(JOBS): call(path)", BOTH),
        ("for m in sorted(MODELS, key=attrgetter('cost')): call(m.path())", BOTH),
        ("for m in sorted(MODELS, key=lambda m: -m.cost, reverse=True): call(m.path())", BOTH),
        ("call(min(MODELS, key=lambda m: m.cost).path())", C),
        ("call(max(MODELS, key=attrgetter('cost')).path())", B),
        # Of equal ones both functions return the first.
        ("call(max(MODELS, key=lambda m: 0).path())", B),
        ("call(min(MODELS, key=lambda m: 0).path())", B),
        ("call(max(JOBS)[1])", B),
        ("call(methodcaller('path')(MODELS[0]))", B),
        ("call(itemgetter(1, 0)(['/c/', '/b/'])[0])", B),
        ("call('/' + attrgetter('cost', 'name')(MODELS[1])[1] + '/')", C),
        ("call(getitem({'x': '/b/'}, 'x'))", B),
        ("itemgetter('x')({'x': comm.call('B', '/b/')}).get()", B),
    ],
)
def test_a_known_order(tmp_path: Path, expression: str, path: str) -> None:
    code = f"call = lambda path: comm.call('B', path).get()\n{expression}\ncomm.respond(1)"
    found = analyse_files(tmp_path, a=endpoint_source(code, module=MODULE))
    assert codes(found) == []
    assert outline(found) == [path]


def test_an_unknown_order_is_every_order(tmp_path: Path) -> None:
    code = (
        "load = comm.params['load']\n"
        "for m in sorted(MODELS, key=lambda m: load[m.name]):\n    comm.call('B', m.path()).get()\n"
        "comm.respond(1)"
    )
    found = analyse_files(tmp_path, a=endpoint_source(code, module=MODULE))
    assert codes(found) == []
    assert {BOTH, "call:B/b/ get:0 call:B/c/ get:2 respond"} <= set(outline(found))


def test_one_of_an_unknown_order_is_any(tmp_path: Path) -> None:
    code = (
        "load = comm.params['load']\ncomm.call('B', min(MODELS, key=lambda m: load[m.name]).path()).get()\n"
        "comm.respond(1)"
    )
    found = analyse_files(tmp_path, a=endpoint_source(code, module=MODULE))
    assert codes(found) == []
    assert sorted(outline(found)) == [B, C]


def test_keys_that_cannot_be_compared_are_no_order(tmp_path: Path) -> None:
    code = "for m in sorted(MODELS, key=lambda m: m.cost if m.cost > 1 else 'x'):\n    comm.call('B', m.path()).get()\ncomm.respond(1)"
    found = analyse_files(tmp_path, a=endpoint_source(code, module=MODULE))
    assert len(outline(found)) == 4
