"""Does a test with objectives fail when the model of its project says so, and is it told what changed?"""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import saved, shop
from test_compare_command import SERVICES, SLOW, TEXT, git, written
from versions import model_of

from mup.lqn import save_model

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _plugin_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the plugins of the environment, whose entry point would load the same plugin again."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def outcome(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    """Run a file of tests with the plugin alone."""
    pytester.makepyfile(test_it=f"import pytest\n\n{test}")
    # In a process of its own: numpy cannot be loaded again once pytester has taken it out.
    return pytester.runpytest_subprocess("-p", "mup.pytest_plugin", "--strict-markers", "-q")


@pytest.mark.slow
def test_objectives_are_decided_by_the_end_of_the_interval_that_is_asked_for(
    pytester: pytest.Pytester,
) -> None:
    """The predicted p95 is some 60 ms: a run of a second has a wide interval around it, with 60 ms inside."""
    saved(pytester.path, shop())
    result = outcome(
        pytester,
        """
@pytest.mark.mup_slo("p95<=1s", "utilization<=100%", clients=4)
def test_met(): pass

@pytest.mark.mup_slo("p95<=1s")
@pytest.mark.mup_slo("p95<=10ms", "mean<=1s", clients=4)
def test_missed(): raise SystemExit("it does not run")

@pytest.mark.mup_slo("throughput>=1000", arrivals=20)
def test_too_slow(): pass

@pytest.mark.mup_slo("p95<=50ms", seconds=1)
def test_near(): pass

@pytest.mark.mup_slo("p95<=50ms", seconds=1, end="far")
def test_far(): pass

@pytest.mark.mup_slo("p95<=1s", end="far")
def test_certain(): raise ValueError("it runs")
""",
    )
    result.assert_outcomes(passed=2, failed=4)
    text = result.stdout.str()
    assert "mup_slo: p95 <= 10 ms: predicted" in text
    assert "meets it with a probability of less than 0.1%" in text
    assert "mup_slo: throughput >= 1000 1/s: predicted" in text
    assert "mup_slo: p95 <= 50 ms" in text
    assert "mup_slo: mean" not in text
    assert "ValueError: it runs" in text
    assert "SystemExit" not in text


WRONG = [
    ("'p95<250'", "the unit is missing"),
    ("'p97<=1s'", "there is no p97"),
    ("'p95<=1s', users=3", "unexpected keyword argument 'users'"),
    ("'p95<=1s', clients=0", "clients"),
    ("'p95<=1s', clients=3, arrivals=3", "exclude each other"),
    ("'p95<=1s', end='middle'", "end must be 'near' or 'far', got 'middle'"),
    ("'p95<=1s', seconds=0", "must be a number of seconds > 0, got 0"),
    ("'p95<=1s', project='none'", "none"),
    ("", "no objective"),
]
"""Arguments of a marker, and what is said of them."""


@pytest.mark.slow
def test_what_is_wrong_with_a_marker_is_said(pytester: pytest.Pytester) -> None:
    """The test fails with one line, without a traceback."""
    saved(pytester.path, shop())
    pytester.makeini("[pytest]\nmup_project = model.json")
    tests = [
        f"@pytest.mark.mup_slo({arguments})\ndef test_{n}(): pass\n" for n, (arguments, _) in enumerate(WRONG)
    ]
    result = outcome(pytester, "\n".join(tests))
    result.assert_outcomes(failed=len(WRONG))
    said = [line for line in result.outlines if line.startswith("mup_slo: ")]
    for line, (_, message) in zip(said, WRONG, strict=True):
        assert message in line
    assert "Traceback" not in result.stdout.str()


@pytest.mark.slow
def test_what_changed_is_told_to_a_test(pytester: pytest.Pytester) -> None:
    """Between commits, and from a commit to what is there now, of the project that the settings name."""
    git(pytester.path, "init", "-q")
    for tag, services in (("v1", SERVICES), ("v2", f"# new\n{SERVICES}")):
        written(pytester.path / "shop", services)
        git(pytester.path, "add", "-A")
        git(pytester.path, "commit", "-qm", tag)
        git(pytester.path, "tag", tag)
    written(pytester.path / "shop", SLOW)
    pytester.makeini("[pytest]\nmup_project = shop")
    result = outcome(
        pytester,
        f"""
def test_it(mup_compare):
    assert not mup_compare("v1", "v2")
    (one,) = mup_compare("v1")
    assert (one.kind, one.text, one.file, one.line) == ("calls", {TEXT!r}, "services.py", 11)

def test_nothing(mup_compare):
    mup_compare("v3")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    (line,) = [line for line in result.outlines if line.startswith("mup_compare: ")]
    assert "no commit 'v3' in this repository" in line


@pytest.mark.slow
def test_a_test_fails_with_a_condition(pytester: pytest.Pytester) -> None:
    """Judged from the model of the base; what is wrong with the arguments is one line."""
    git(pytester.path, "init", "-q")
    written(pytester.path / "shop", SERVICES)
    git(pytester.path, "add", "-A")
    git(pytester.path, "commit", "-qm", "base")
    save_model(model_of(pytester.path / "base", SERVICES, 0.001), pytester.path / "shop" / "model.json")
    line = '        answer = comm.call("B", "/b/", {}).get()\n'
    written(pytester.path / "shop", SERVICES.replace(line, line + line))
    pytester.makeini("[pytest]\nmup_project = shop")
    result = outcome(
        pytester,
        """
def test_it(mup_compare):
    (one,) = mup_compare("HEAD", fail_if=["mean>+500%"], clients=2)
    assert one.kind == "calls"

def test_slower(mup_compare):
    mup_compare("HEAD", fail_if=["mean>+5%", "p95>+500%"])

def test_wrong(mup_compare):
    mup_compare("HEAD", fail_if=["mean>5"])
""",
    )
    result.assert_outcomes(passed=1, failed=2)
    slower, wrong = [line for line in result.outlines if line.startswith("mup_compare: ")]
    assert slower.startswith("mup_compare: FAILS: mean>+5%: +")
    assert "must be [NAME:]FIGURE>+PERCENT%" in wrong


def test_the_plugin_loads_nothing_that_tests_do_not_use() -> None:
    """Simulation and analysis are imported by the first test with a marker."""
    check = (
        "import sys, mup.pytest_plugin; sys.exit(any(n in sys.modules for n in ('numpy', 'click', 'libcst')))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
