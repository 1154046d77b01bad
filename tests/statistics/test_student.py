"""Student's t: one home for its quantiles, which need no scipy where a command should start at once."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import stats

from mup.statistics.student import near_t_quantile, t_quantile

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("freedom", [0.7, 1, 2.5, 19, 400, math.inf])
def test_quantile_is_that_of_scipy(freedom: float, level: float) -> None:
    """Whatever the level; of infinitely many degrees of freedom that of the normal distribution."""
    assert t_quantile(freedom, level) == pytest.approx(stats.t.ppf(0.5 + level / 2, freedom), rel=1e-7)


def test_a_load_does_not_wait_for_scipy() -> None:
    """What a load test takes from here imports no scipy."""
    code = """
import sys
from mup.statistics.repeats import ratio_half_width
from mup.statistics.student import t_quantile
for freedom in range(1, 99):
    t_quantile(freedom)
print("scipy" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_quantiles_have_one_home() -> None:
    """No other module makes intervals from scipy's quantile by itself; a test of hypotheses may."""
    users = set()
    for package in ("mup", "simulator", "analyzer"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "stdtrit" in text else ():
                if isinstance(node, ast.ImportFrom) and any(n.name == "stdtrit" for n in node.names):
                    users.add(path.relative_to(ROOT).as_posix())
    assert users == {"mup/statistics/student.py", "analyzer/kalman.py", "analyzer/steps.py"}


def test_the_usual_cases_are_those_of_scipy() -> None:
    """Bit for bit in the table, to 2e-6 between and beyond its degrees of freedom."""
    from scipy.special import stdtrit

    for freedom in (*range(1, 65), 2.5):
        assert t_quantile(freedom) == float(stdtrit(freedom, 0.975))
    between = [3 + k / 7 for k in range(500)]
    for freedom in (*between, 39.5, 64.5, 65, 1e5, 1e12):
        assert t_quantile(freedom) == pytest.approx(float(stdtrit(min(freedom, 1e9), 0.975)), rel=2e-6)
    assert t_quantile(39, 0.9) == float(stdtrit(39, 0.95))


def test_what_lies_between_needs_no_scipy() -> None:
    """Degrees of freedom of several parts together are no whole numbers; a what-if should start at once."""
    code = "from mup.statistics.student import t_quantile as t; import sys; t(7.3), t(99.5), t(float('inf'))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; print('scipy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "False\n"


def test_thresholds_need_no_exact_quantile() -> None:
    """Of any level and from ten degrees of freedom on it is near the exact one."""
    for freedom in (10, 16, 38):
        for level in (0.95, 0.99, 0.9999):
            assert near_t_quantile(freedom, level) == pytest.approx(t_quantile(freedom, level), rel=0.01)
