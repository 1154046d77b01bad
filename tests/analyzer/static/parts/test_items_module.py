"""Which containers change whose items have got other names."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.items import containers_changed, taken_from
from analyzer.static.source import SourceTree

CASES = [
    ("handlers = table[name]\nhandlers.append(1)", ["table"]),
    ("handlers = self.table.get(name, [])\nhandlers.append(1)", ["self.table"]),
    ("handlers = table.setdefault(name, {})[key]\nhandlers['x'] = 1", ["table"]),
    ("for one in tables:\n    one.clear()", ["tables"]),
    ("for one in table.values():\n    del one[0]", ["table"]),
    ("bisect.insort(table[name], 1)", ["table"]),
    ("handlers = table[name]\nprint(handlers)", []),
    ("handlers = list(table)\nhandlers.append(1)", []),
    ("def put(where):\n    where.append(1)\nput(table[name])", ["table"]),
    ("def look(where):\n    print(where)\nlook(table[name])", []),
    ("def one():\n    items = table[0]\ndef two():\n    items = []\n    items.append(1)", []),
    ("def one():\n    (items := table[0])\n    def two():\n        items.append(1)", ["table"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_container_changes_under_other_names_of_its_items(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    module = SourceTree(tmp_path, Diagnostics()).module("app")
    assert module is not None
    assert [module.tree.code_for_node(one) for one in containers_changed(module)] == expected


def test_what_an_item_is_taken_from() -> None:
    node = cst.parse_expression("a.b[c].get(d)[e]")
    assert cst.Module([]).code_for_node(taken_from(node)) == "a.b"
