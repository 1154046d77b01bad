"""Does ``mup compare`` tell what a change does to figures, and say what is wrong with what it is asked?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import run

from analyzer.effect.paired import Changed, Effect, FigureKey, Range
from mup.cli.models.effect_formats import effect_lines
from mup.cli.models.effect_of_change import EffectOfChange
from mup.cli.models.fail_conditions import conditions, judged
from mup.errors import UsageError

SERVICES = """\
from mup import EP, MS, Client, Communication


def work(n: int) -> int:
    return sum(i * i for i in range(n))


class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        x = work(2000)
        comm.call("B", "/b/", {}).get()
        comm.respond(x)

    @EP("/c/")
    def c(self, comm: Communication) -> None:
        comm.respond(work(2000))


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(work(4000))


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.01)
        await comm.call("A", "/a/", {})
        await comm.call("A", "/c/", {})
"""
MORE_WORK = SERVICES.replace("work(4000)", "work(4000) + work(20000)")
TOML = """\
[project]
name = "shop"
client = "services:User"
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""


def written(folder: Path, services: str = SERVICES, toml: str = TOML) -> Path:
    folder.mkdir(parents=True)
    (folder / "services.py").write_text(services)
    (folder / "mup.toml").write_text(toml)
    return folder


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.usefixtures("short_probes")
def test_measured_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six times the work of an endpoint: its own time grows for sure, an untouched one's not at all."""
    old = written(tmp_path / "old")
    new = written(tmp_path / "new", MORE_WORK)
    words = ("compare", str(old), str(new), "--measure", "--budget", "20", "--json")
    code, out, err = run(capsys, *words, "--fail-if", "B/b/:mean>+30%", "--fail-if", "A/c/:mean>+50%")
    document = json.loads(out)
    assert code == 1, err
    effect = document["effect"]
    assert effect["measured"] is True
    assert effect["load"] == "1 client"
    grown = effect["endpoints"]["B/b/"]["mean"]["relative"]
    assert grown["low"] > 0.3
    assert effect["cycle"]["mean"]["relative"]["mean"] > 0.1
    assert effect["cycle"]["capacity"]["relative"]["mean"] < 0
    # With one client nothing of B is in the way of what does not call it.
    same = effect["endpoints"]["A/c/"]["mean"]["relative"]
    assert abs(same["mean"]) < 0.1
    assert [(one["condition"], one["fails"]) for one in effect["conditions"]] == [
        ("B/b/:mean>+30%", True),
        ("A/c/:mean>+50%", False),
    ]
    (share,) = effect["shares"]
    assert [one["line"] for one in share["differences"]] == [23]


def test_nothing_is_measured_where_nothing_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comment cannot change a figure; every condition holds, within a moment."""
    old, new = written(tmp_path / "old"), written(tmp_path / "new", f"# A comment.\n{SERVICES}")
    words = ("compare", str(old), str(new), "--measure", "--fail-if", "p95>+0%")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "nothing changed in meaning, so no figure did; nothing was measured" in out
    assert "holds: p95>+0%: nothing changed" in out
    code, out, _ = run(capsys, *words, "--markdown")
    assert (code, "- holds: p95\\>+0%: nothing changed" in out) == (0, True)


GONE = SERVICES.replace('        await comm.call("A", "/c/", {})\n', "").replace(
    '    @EP("/c/")\n    def c(self, comm: Communication) -> None:\n        comm.respond(work(2000))\n', ""
)
ALONE = SERVICES.replace('        await comm.call("A", "/c/", {})\n', "")
BAD = [
    pytest.param(SERVICES, SERVICES, ("--fail-if", "p95>5"), r"must be \[NAME:\]FIGURE>\+PERCENT%", id="no-percent"),
    pytest.param(SERVICES, SERVICES, ("--fail-if", "p97>+5%"), "no figure 'p97'.*p9", id="no-such-figure"),
    pytest.param(SERVICES, SERVICES, ("--fail-if", "p95>-5%"), "would fail if nothing changed", id="wrong-sign"),
    pytest.param(SERVICES, SERVICES, ("--fail-if", "A/a/:capacity<-5%"), "one of the whole project", id="capacity"),
    pytest.param(SERVICES, SERVICES, ("--fail-if", "A/x/:p95>+5%"), "no endpoint 'A/x/'; did you mean", id="endpoint"),
    pytest.param(ALONE, GONE, ("--fail-if", "A/c/:p95>+5%"), "A/c/ is gone in HEAD", id="endpoint-removed"),
    pytest.param(SERVICES, SERVICES, ("--measure", "--budget", "3"), "--budget: .* takes at least 20 s", id="budget"),
    pytest.param(SERVICES, SERVICES, ("--measure", "--clients", "1,2"), "--clients: .* one load", id="two-loads"),
    pytest.param(
        SERVICES, SERVICES.replace("think(0.01)", "think(0.02)"), ("--measure",),
        "the scenario of User is another one", id="other-scenario",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "words", "message"), BAD)
def test_bad_input_is_one_message(
    before: str,
    after: str,
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It says what is wrong; exit code 2, no traceback, nothing started."""
    old, new = written(tmp_path / "old", before), written(tmp_path / "new", after)
    code, _, err = run(capsys, "compare", str(old), str(new), *words)
    assert code == 2
    assert re.search(message, err, re.DOTALL), err
    assert err.count("mup: error:") == 1
    assert "Traceback" not in err


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.usefixtures("short_probes")
def test_a_base_that_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which version it is, and why."""
    broken = SERVICES.replace("class B(MS):\n", "class B(MS):\n    broken = 1 // 0\n\n")
    old, new = written(tmp_path / "old", broken), written(tmp_path / "new", MORE_WORK)
    code, _, err = run(capsys, "compare", str(old), str(new), "--measure", "--budget", "20")
    assert code == 2
    assert "BASE does not start" in err
    assert err.count("mup: error:") == 1
    assert "Traceback (most" not in err.split("mup: error:")[0]


def test_conditions_are_read() -> None:
    """Figure, endpoint, direction and limit; spaces and case do not matter."""
    first, second = conditions(["A/x:y/: P95 > +5 %", "capacity<-2.5%"])
    assert (first.name, first.figure, first.above, first.limit) == ("A/x:y/", "p95", True, 0.05)
    assert (second.name, second.figure, second.above, second.limit) == ("", "capacity", False, -0.025)
    with pytest.raises(UsageError, match="would fail if nothing changed"):
        conditions(["capacity<+5%"])


def test_a_condition_on_a_figure_that_is_not_there_is_not_known() -> None:
    """Neither does it fail, nor does it hold; beside it conditions hold and fail by the near ends of intervals."""
    grown = Changed(Range(1.0, 0.9, 1.1), Range(1.2, 1.1, 1.3), Range(0.2, 0.1, 0.3))
    whole = Effect({FigureKey("", "mean"): grown}, 100.0, (1,))
    asked = conditions(["mean>+15%", "mean>+5%", "capacity<-10%"])
    found = EffectOfChange("4 clients", measured=True, effect=whole, shares=(), judged=judged(asked, whole))
    assert found.fails
    assert effect_lines(found) == [
        "holds: mean>+15%: +20.0% (+10.0% .. +30.0%)",
        "FAILS: mean>+5%: +20.0% (+10.0% .. +30.0%)",
        "not known: capacity<-10%: there is no such figure in both versions",
    ]
