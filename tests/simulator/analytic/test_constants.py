"""Every number of the analytic estimate has a name, and a row on its effect."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from analytic_ablation import constants, home, shown

ROOT = Path(__file__).resolve().parents[3]
ANALYTIC = ROOT / "simulator" / "analytic"
PLAIN = (0, 0.5, 1, 2)
"""Numbers that say what they are where they stand."""
OF_OTHER_METHODS = ("product_form.py",)


def test_every_constant_has_a_row() -> None:
    """Of its name and its present value, or a place among those without effect; none of a constant that has gone."""
    page = (ROOT / "benchmarks" / "published" / "analytic.md").read_text(encoding="utf-8")
    found = {f"{home(c)}.{c.name}": shown(c.value) for c in constants()}
    assert len(found) > 30
    rows = re.findall(r"^\| `([a-z_]+\.[A-Z_]+)` \| ([^|]+) \|", page, re.MULTILINE)
    rows += re.findall(r"`([a-z_]+\.[A-Z_]+)`\s\(([^)]+)\)", page)
    assert dict(rows) == found


def test_no_number_without_a_name() -> None:
    """Functions of the estimate compute with names, and with numbers that need none."""
    wrong = []
    for path in (*ANALYTIC.glob("*.py"), *(ANALYTIC / "approximations").glob("*.py")):
        if path.name in OF_OTHER_METHODS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
        inside = {id(part) for statement in named for part in ast.walk(statement)}
        counts = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "range"]
        inside |= {id(part) for call in counts for part in ast.walk(call)}
        wrong += [
            f"{path.name}:{n.lineno}: {n.value}"
            for n in ast.walk(tree)
            if isinstance(n, ast.Constant)
            and type(n.value) in (int, float)
            and id(n) not in inside
            and n.value not in PLAIN
        ]
    assert wrong == []
