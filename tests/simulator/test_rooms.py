"""Packages of the simulator: no imports upwards, and short folder lists."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from simulator.moved import MOVED

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = ROOT / "simulator"
FLOORS = (
    {"preparing", "moved"},
    {"program"},
    {"machine"},
    {"figures", "analytic"},
    {"api"},
    {"fluid", "studies"},
    {"networks"},
)
"""From the ground up: a room imports from its own and from lower floors."""
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
MOST_ENTRIES = 12


def _modules() -> dict[str, Path]:
    found = {}
    for path in SIMULATOR.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imports(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules of the simulator that a file imports, at its beginning or within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            inner = {f"{node.module}.{name.name}" for name in node.names}
            found |= {name for name in inner if name in modules} or {node.module}
    return found


def test_every_room_has_a_floor() -> None:
    """A new room needs a place among the others."""
    rooms = {name.split(".")[1] for name in _modules() if "." in name}
    assert rooms == set(FLOOR_OF)


def test_no_import_goes_up() -> None:
    """What a room needs lies on its floor or below, wherever the import stands."""
    modules = _modules()
    wrong = [
        f"{name} -> {target}"
        for name, path in modules.items()
        if "." in name
        for target in _imports(path, modules)
        if FLOOR_OF[target.split(".")[1] if "." in target else "api"] > FLOOR_OF[name.split(".")[1]]
    ]
    assert wrong == []


def test_no_imports_in_circles() -> None:
    """Not even within functions."""
    modules = _modules()
    left = {name: _imports(path, modules) - {name} for name, path in modules.items()}
    while ground := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in ground}
    assert left == {}


def test_folder_lists_are_short() -> None:
    """At most a dozen entries each."""
    folders = [SIMULATOR, *(f for f in SIMULATOR.rglob("*") if f.is_dir() and f.name != "__pycache__")]
    for folder in folders:
        entries = [p.name for p in folder.iterdir() if p.name != "__pycache__"]
        assert len(entries) <= MOST_ENTRIES, folder


@pytest.mark.parametrize("old", MOVED)
def test_documented_names_go_on_working(old: str) -> None:
    """The same module by both names, and a word about the new one."""
    with pytest.warns(DeprecationWarning, match=MOVED[old]):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])
