"""Local work that raises nothing makes no way into a handler."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from probing import Probe

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import Names
from analyzer.static.raising import raises_nothing
from analyzer.static.source import SourceTree
from analyzer.static.values import UNKNOWN

MODULE = """
import logging, time
from time import perf_counter as now
log = logging.getLogger(__name__)
"""


@pytest.mark.parametrize(
    "code",
    [
        *("1", "'a' 'b'", "None", "x", "(x, 1)", "x is None", "x is not y", "f'{x} is {1}'"),
        *("log.info('a %s', x)", "logging.warning(f'{x}')", "log.exception('a')", "print(x, 1)"),
        *("time.sleep(1)", "now()", "time.monotonic() - x", "log.info('%.1f', now() - x)"),
    ],
)
def test_what_raises_nothing(tmp_path: Path, code: str) -> None:
    assert told(tmp_path, code)


@pytest.mark.parametrize(
    "code",
    [
        *("z", "x.y", "x[0]", "x + 1", "x == y", "not x", "f'{x.y}'", "(x, x.y)", "[*x]", "f()"),
        *(
            "log.info('a', x.y)",
            "log.info(*x)",
            "other.info('a')",
            "time.strptime(x)",
            *("f'{x:.2f}'", "time.sleep(x)", "time.sleep(-1)"),
            "1 - now()",
            "x - now()",
        ),
    ],
)
def test_what_may_raise_something(tmp_path: Path, code: str) -> None:
    assert not told(tmp_path, code)


def told(folder: Path, code: str) -> bool:
    """Return what is said of an expression where ``x`` and ``y`` are local variables."""
    (folder / "app.py").write_text(MODULE, encoding="utf-8")
    names = Names(SourceTree(folder, Diagnostics()))
    module = names.tree.module("app")
    assert module is not None
    return raises_nothing(cst.parse_expression(code), {"x", "y"}, module, names)


@pytest.mark.parametrize(
    ("last", "caught"),
    [
        *(("return 1", False), ("log.info('done %s', x)", False), ("x = 1", False)),
        *(("return x.y", True), ("x += 1", True), ("x, y = x", True), ("del x", True)),
    ],
)
def test_a_response_is_not_given_twice(probe: Probe, last: str, caught: bool) -> None:
    body = f"try:\n    comm.respond(1)\n    {last}\nexcept Exception:\n    comm.respond(2)"
    probed = probe(body, MODULE, x=UNKNOWN)
    assert not any(way.count("respond") > 1 for way in probed.ways)
    assert ("MUP023" in probed.codes) is caught
