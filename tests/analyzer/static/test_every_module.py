"""Every module of the static analysis has a test of its own."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[2] / "analyzer" / "static"
THROUGH = {"libraries.library_call": "every function of a library is handed one"}
"""Modules that tests reach by others, and how."""


def imported() -> set[str]:
    """Return the modules that the tests import, and what they import from them."""
    found: set[str] = set()
    for file in HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_every_module_is_imported_by_a_test_or_has_one_of_its_name() -> None:
    known = imported()
    missing = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
        tested = f"analyzer.static.{name}" in known or (HERE / f"test_{name}.py").exists()
        if file.stem != "__init__" and not tested and name not in THROUGH:
            missing.append(name)
    # The analysis as a whole is what the other tests are about.
    assert missing == ["analysis"]


def test_no_class_is_a_tower() -> None:
    """Nor does it leave a method to a subclass, but for what every kind of value answers."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                assert len(methods) <= 40, f"{file.name}: {node.name}"
                left = [
                    one.name for one in methods if "abstractmethod" in map(ast.unparse, one.decorator_list)
                ]
                assert not left or node.name == "Value", f"{file.name}: {node.name} leaves {left}"
