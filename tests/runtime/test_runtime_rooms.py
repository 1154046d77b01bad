"""Rooms of the runtime: no imports upwards, and short folder lists."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "mup" / "runtime"
FLOORS = (
    {"protocol", "process"},
    {"client", "server"},
    {"endpoint"},
    {"worker"},
    {"pool"},
    {"deployment"},
    {"replica"},
)
"""From the ground up: a room imports from its own and from lower floors."""
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
MOST_ENTRIES = 12
LONG = {"client": 20}
"""One family: the core of a call, its shells and their connections."""


def _files() -> list[Path]:
    return [file for file in sorted(RUNTIME.rglob("*.py")) if file != RUNTIME / "__init__.py"]


def _room(file: Path) -> str:
    return file.relative_to(RUNTIME).with_suffix("").parts[0]


def _rooms_imported(file: Path) -> set[str]:
    """Return the rooms a file imports from, at its beginning or within functions."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names if name.startswith("mup.runtime.")]
    return {room for _, _, room, *_ in parts}


def test_every_room_has_a_floor() -> None:
    """A new room needs a place among the others."""
    assert {_room(file) for file in _files()} == set(FLOOR_OF)


def test_no_import_goes_up() -> None:
    """What a room needs lies on its floor or below, wherever the import stands."""
    wrong = [
        f"{file.relative_to(RUNTIME)} -> {target}"
        for file in _files()
        for target in _rooms_imported(file)
        if FLOOR_OF[target] > FLOOR_OF[_room(file)]
    ]
    assert wrong == []


def test_rooms_of_one_floor_do_not_know_each_other() -> None:
    """Otherwise one of them would stand higher."""
    wrong = [
        f"{file.relative_to(RUNTIME)} -> {target}"
        for file in _files()
        for target in _rooms_imported(file) - {_room(file)}
        if FLOOR_OF[target] == FLOOR_OF[_room(file)]
    ]
    assert wrong == []


def test_folder_lists_are_short() -> None:
    """At most a dozen entries each, but for one family."""
    for folder in [RUNTIME, *(f for f in RUNTIME.iterdir() if f.is_dir() and f.name != "__pycache__")]:
        entries = [p.name for p in folder.iterdir() if p.name != "__pycache__"]
        assert len(entries) <= LONG.get(folder.name, MOST_ENTRIES), folder
