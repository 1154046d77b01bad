"""Names of a module that others rebind or ``globals()`` does, and sequences whose class is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.static import analyse

SOURCE = """
from mup import EP, MS, Communication

MODE = "slow"
OTHER = "slow"
PAIRS = [1, 2]


def change(name, value):
    {change}


class B(MS):
    @EP("/b")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class S(MS):
    @EP("/s")
    def s(self, comm: Communication) -> None:
        if {condition}:
            comm.call("B", "/b").get()
        comm.respond(1)
"""


def calls(root: Path, change: str, condition: str) -> set[int]:
    """Return how many calls the paths of the endpoint make."""
    (root / "services.py").write_text(SOURCE.format(change=change, condition=condition), encoding="utf-8")
    found = analyse(root)
    assert not found.errors
    return {
        sum(operation.op == "call" for operation in path.operations)
        for endpoint in found.endpoints()
        if endpoint.label == "S/s"
        for path in endpoint.paths
    }


@pytest.mark.parametrize(
    "change",
    [
        'globals()["MODE"] = value',
        "globals()[name] = value",
        'globals()["MODE"] += value',
        'del globals()["MODE"]',
        "globals().update({name: value})",
        "everything = globals()\n    everything[name] = value",
    ],
)
def test_what_globals_may_rebind_is_not_known(tmp_path: Path, change: str) -> None:
    assert calls(tmp_path, change, 'MODE == "slow"') == {0, 1}


@pytest.mark.parametrize(
    "change",
    [
        'globals()["OTHER"] = value',
        'return globals()["MODE"], globals()[name], globals().get(name), name in globals()',
    ],
)
def test_what_it_does_not_rebind_stays(tmp_path: Path, change: str) -> None:
    assert calls(tmp_path, change, 'MODE == "slow"') == {1}


@pytest.mark.parametrize(
    ("condition", "made"),
    [
        ("range(1, 3) == (1, 2)", {0, 1}),
        ("PAIRS == (1, 2)", {0, 1}),
        ("(1, 2) != (1, 2)", {0, 1}),
        ("(1, 2) is (1, 2)", {0, 1}),
        ("(1, 2) == (1, 3)", {0}),
        ("(1, 2) != (1, 2, 3)", {1}),
        ("(1, 2) in ((3, 4), (1, 2, 3))", {0}),
        ("'a' in ('a', 'b')", {1}),
    ],
)
def test_sequences_with_the_same_items_may_be_of_other_classes(
    tmp_path: Path, condition: str, made: set[int]
) -> None:
    assert calls(tmp_path, "pass", condition) == made


CONFIGURATION = """
LIMITS = {"scan": 1}
ROWS = ["a"]
MODE = "slow"


class Flags:
    slow = True


flags = Flags()
"""

CHANGING = """
{imports}
from mup import EP, MS, Communication


class B(MS):
    @EP("/b")
    def b(self, comm: Communication) -> None:
        {change}
        comm.respond(1)
"""

READING = """
import changing
{imports}
from mup import EP, MS, Communication


class S(MS):
    @EP("/s")
    def s(self, comm: Communication) -> None:
        if {condition}:
            comm.call("B", "/b").get()
        comm.respond(1)
"""

BY_NAME = "from configuration import LIMITS, ROWS, MODE"


@pytest.mark.parametrize(
    ("imports", "change", "condition", "made"),
    [
        (BY_NAME, 'LIMITS["scan"] = 2', 'LIMITS["scan"] == 1', {0, 1}),
        (BY_NAME, 'LIMITS["scan"] = 2', 'configuration.LIMITS["scan"] == 1', {0, 1}),
        ("from configuration import LIMITS as L", 'L["scan"] += 1', 'LIMITS["scan"] == 1', {0, 1}),
        ("from configuration import *", "LIMITS.update(scan=2)", 'LIMITS["scan"] == 1', {0, 1}),
        (BY_NAME, 'ROWS.append("b")', "len(ROWS) == 1", {0, 1}),
        ("import configuration", 'configuration.LIMITS["scan"] = 2', 'LIMITS["scan"] == 1', {0, 1}),
        ("import configuration", 'configuration.MODE = "fast"', 'configuration.MODE == "slow"', {0, 1}),
        ("import configuration", "configuration.flags = None", "configuration.flags is not None", {0, 1}),
        (BY_NAME, 'ROWS.append("b")', 'LIMITS["scan"] == 1', {1}),
        ("import configuration", 'configuration.LIMITS["scan"] = 2', 'MODE == "slow"', {1}),
    ],
)
def test_other_modules_change_what_a_module_binds(
    tmp_path: Path, imports: str, change: str, condition: str, made: set[int]
) -> None:
    """By any way the name is imported, and whichever module reads it."""
    read = f"import configuration\n{BY_NAME}"
    (tmp_path / "configuration.py").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "changing.py").write_text(CHANGING.format(imports=imports, change=change), encoding="utf-8")
    (tmp_path / "services.py").write_text(READING.format(imports=read, condition=condition), encoding="utf-8")
    found = analyse(tmp_path)
    assert not found.errors
    (endpoint,) = [one for one in found.endpoints() if one.label == "S/s"]
    assert {sum(o.op == "call" for o in path.operations) for path in endpoint.paths} == made
