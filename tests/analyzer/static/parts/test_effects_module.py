"""What a function that is not walked can have changed."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.effects import declared_elsewhere, effects_of


@pytest.mark.parametrize(
    ("body", "contents"),
    [
        ("return len(comm)", False),
        ("comm.append(1)", True),
        ("comm.x = 1", True),
        ("comm[0] = 1", True),
        ("log.info(comm)", False),
        ("send(comm)", True),
        ("y = comm", False),
    ],
)
def test_contents_may_change(probe: Probe, body: str, contents: bool) -> None:
    function = probe("return 1", f"def f(comm):\n    {body}\n").in_module("f")
    (info,) = [getattr(function, "info")]  # noqa: B009  (only functions have one)
    assert effects_of(info).contents is contents


def test_variables_of_functions_around(probe: Probe) -> None:
    module = "def f():\n    x = 1\n    def g():\n        nonlocal x\n        global y\n        x = y = 2\n    return g\n"
    info = getattr(probe("return 1", module).in_module("f"), "info")  # noqa: B009
    assert effects_of(info).outer == {"x"}
    assert effects_of(info).defines
    assert declared_elsewhere(info) == frozenset()
