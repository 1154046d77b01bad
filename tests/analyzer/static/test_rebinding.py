"""Names of a module that functions rebind through ``globals()``, and sequences whose class is not known."""

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
