"""Are the figures of two versions compared so that only what differs makes a difference?"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import variance

import numpy as np
import pytest
from versions import model_of

from analyzer.calibration.observed import Observed
from analyzer.calibration.rundir import Part, PartInfo, Window
from analyzer.effect.paired import FigureKey, effect, interval_of
from analyzer.effect.shares import shares
from analyzer.effect.touched import Touched, check_same_client, stamped, touched
from analyzer.effect.two_models import by_starts, refs_of
from analyzer.static import analyse_project
from analyzer.static.project_version import Version
from analyzer.static.versions import differences
from mup.errors import UsageError
from mup.lqn import Names, Replicate, Uncertainty
from mup.lqn.mixture import in_common_names, mixture
from mup.lqn.model import Model
from mup.project import load_project
from mup.statistics.student import t_quantile

OLD = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        word = comm.params["word"]
        comm.call("B", "/b/", {}).get()
        comm.respond(word)


class B(MS):
    pool_size = 4

    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.05)
        await comm.call("A", "/a/", {"word": "x"})
"""
CALL = '        comm.call("B", "/b/", {}).get()\n'
MORE = OLD.replace(CALL, CALL + CALL)
WORK = OLD.replace("        comm.respond(1)\n", "        x = sum(range(9))\n        comm.respond(x)\n")
BOTH = MORE.replace("        comm.respond(1)\n", "        x = sum(range(9))\n        comm.respond(x)\n")
TOML = """\
[project]
name = "shop"
client = "services:User"
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""
CYCLE = FigureKey("", "mean")


def version(folder: Path, source: str, toml: str = TOML) -> Version:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "services.py").write_text(source)
    (folder / "mup.toml").write_text(toml)
    project = load_project(folder)
    return Version(analyse_project(project, with_code=True), project)


def models(folder: Path, new: str, *, clients: int = 2) -> tuple[Model, Model]:
    old = model_of(folder / "m1", OLD, 0.001, clients=clients)
    return old, in_common_names(old, model_of(folder / "m2", new, 0.001, clients=clients))


@pytest.mark.slow
def test_what_is_equal_differs_by_nothing(tmp_path: Path) -> None:
    """Not even by chance: with the same random numbers, however unsure the numbers are."""
    old, _ = models(tmp_path, OLD)
    names = Names(old.tasks)
    draws = tuple(
        Replicate(demands={names.activity(ref): factor for ref in names.activities()})
        for factor in (0.8, 0.9, 1.1, 1.2)
    )
    old = replace(old, uncertainty=Uncertainty(replicates=draws))
    found = effect(old, old)
    for changed in found.figures.values():
        assert (changed.relative.mean, changed.relative.low, changed.relative.high) == (0, 0, 0)
    assert found.figures[CYCLE].before.high > 1.1 * found.figures[CYCLE].before.low


def test_a_call_more_is_told_with_its_interval(tmp_path: Path) -> None:
    """Mean and percentile go up, the capacity goes down, all beyond doubt."""
    found = effect(*models(tmp_path, MORE)).figures
    for figure in ("mean", "p95"):
        assert found[FigureKey("", figure)].relative.low > 0.1, figure
    assert found[FigureKey("", "capacity")].relative.high < -0.1
    assert found[FigureKey("A/a/", "mean")].sure


@pytest.mark.slow
def test_what_replicates_leave_open_widens_the_interval(tmp_path: Path) -> None:
    """The replicates of the two versions are compared pair by pair; few starts widen it more."""
    old, new = models(tmp_path, MORE)
    sure = effect(old, new).figures[CYCLE].relative

    def unsure(model: Model, factors: tuple[float, ...]) -> Model:
        names = Names(model.tasks)
        draws = tuple(
            Replicate(demands={names.activity(ref): f for ref in names.activities() if ref.task == "A"})
            for f in factors
        )
        return replace(model, uncertainty=Uncertainty(replicates=draws))

    one, other = (0.8, 1.2, 1.0, 0.9, 1.1), (1.2, 0.8, 1.0, 1.1, 0.9)
    together = effect(unsure(old, one), unsure(new, one)).figures[CYCLE].relative
    apart = effect(unsure(old, one), unsure(new, other)).figures[CYCLE].relative
    few = effect(unsure(old, one), unsure(new, other), freedom=1).figures[CYCLE].relative
    widths = [r.high - r.low for r in (sure, together, apart, few)]
    assert widths == sorted(widths)
    assert widths[2] > 2 * widths[1]


def test_the_only_change_is_the_whole_change(tmp_path: Path) -> None:
    """Its share is 100 %, at the line that the differences tell."""
    before, after = version(tmp_path / "1", OLD), version(tmp_path / "2", MORE)
    found = differences(before, after)
    old, new = models(tmp_path, MORE)
    whole = effect(old, new)
    (share,) = shares(old, new, found, touched(before, after, found), whole)
    assert share.share == {"mean": 1.0, "p95": 1.0}
    assert [(one.file, one.line) for one in share.differences] == [("services.py", 11)]


def test_two_changes_are_told_apart(tmp_path: Path) -> None:
    """One call more, and work of the callee that takes ten times as long: each has its part."""
    before, after = version(tmp_path / "1", OLD), version(tmp_path / "2", BOTH)
    found = differences(before, after)
    what = touched(before, after, found)
    assert what == Touched(frozenset({"A/a/", "B/b/"}), frozenset())
    old = model_of(tmp_path / "m1", OLD, 0.001, clients=2)
    slow = in_common_names(old, model_of(tmp_path / "m2", BOTH, 0.01, clients=2))
    more = in_common_names(old, model_of(tmp_path / "m3", BOTH, 0.001, clients=2))
    new = mixture(
        old,
        mixture(more, slow, entries=refs_of(slow, frozenset({"B/b/"}))),
        entries=refs_of(slow, what.endpoints),
        gone=False,
    )
    whole = effect(old, new)
    first, second = shares(old, new, found, what, whole)
    assert [one.kind for one in first.differences] == ["local work"]
    assert [one.kind for one in second.differences] == ["calls"]
    assert 0.1 < second.effect["mean"] < first.effect["mean"] < whole.figures[CYCLE].relative.mean


def unsure(model: Model) -> Model:
    """Return a model in which the demands of B are known to a factor."""
    names = Names(model.tasks)
    draws = tuple(
        Replicate(demands={names.activity(ref): factor for ref in names.activities() if ref.task == "B"})
        for factor in (0.7, 0.8, 0.9, 1.1, 1.2, 1.3)
    )
    return replace(model, uncertainty=Uncertainty(replicates=draws))


@pytest.mark.slow
def test_each_part_has_an_interval(tmp_path: Path) -> None:
    """It contains the effect, and is wider where the calibration leaves more open."""
    before, after = version(tmp_path / "1", OLD), version(tmp_path / "2", BOTH)
    found = differences(before, after)
    what = touched(before, after, found)
    old, new = models(tmp_path, BOTH)
    new = mixture(old, new, entries=refs_of(new, what.endpoints), gone=False)
    whole = effect(old, new)
    widths = []
    for one, other in ((old, new), (unsure(old), unsure(new))):
        parts = shares(one, other, found, what, whole)
        assert len(parts) == 2
        calls = next(part for part in parts if [d.kind for d in part.differences] == ["calls"])
        low, high = calls.interval["mean"]
        assert 0 < low < calls.effect["mean"] < high
        assert calls.to_json()["interval"]["mean"] == [low, high]
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]


def test_a_client_with_another_scenario_is_refused(tmp_path: Path) -> None:
    """Loads would not be the same; so are another client, and none."""
    before = version(tmp_path / "1", OLD)
    for source, toml, message in (
        (
            OLD.replace("think(0.05)", "think(0.1)"),
            TOML,
            r"the scenario of User is another one \(a think time",
        ),
        (
            OLD + "\n\nclass Two(User):\n    pass\n",
            TOML.replace("User", "Two"),
            "was that of User, is that of Two",
        ),
        (OLD, TOML.replace('client = "services:User"\n', ""), "has no client"),
    ):
        after = version(tmp_path / "2", source, toml)
        with pytest.raises(UsageError, match=message):
            check_same_client(before, after, differences(before, after))


def test_a_service_that_runs_in_another_way_is_measured_anew(tmp_path: Path) -> None:
    """Its source is the same, its times need not be; a larger pool changes no time."""
    before = version(tmp_path / "1", OLD)
    after = version(tmp_path / "2", OLD, TOML.replace('"services:B"', '"services:B"\nenv = {X = "1"}'))
    found = differences(before, after)
    what = touched(before, after, found)
    assert what == Touched(frozenset({"B/b/"}), frozenset({"B"}))
    marks = [stamped(v.application, what.endpoints, m) for v, m in ((before, "base"), (after, "head"))]
    assert marks[0].endpoint("B/b/").fingerprint != marks[1].endpoint("B/b/").fingerprint
    assert marks[0].endpoint("A/a/").fingerprint == marks[1].endpoint("A/a/").fingerprint
    larger = version(tmp_path / "3", OLD, TOML.replace('"services:B"', '"services:B"\npool_size = 9'))
    assert touched(before, larger, differences(before, larger)) == Touched(frozenset(), frozenset())


def observed(starts: int, rounds: int) -> tuple[Observed, dict[Path, str]]:
    """Return windows of as many starts of two versions, in turns."""
    windows, parts, versions = [], [], {}
    for start in range(2 * starts):
        path = Path(f"run-{start}")
        versions[path] = ("old", "new")[start % 2]
        own = tuple(Window(start=n * 10**9, end=(n + 1) * 10**9, phase="hot") for n in range(rounds))
        part = Part(path, PartInfo(windows=list(own)), ())
        windows += own
        parts += [part] * rounds
    flat = np.ones(len(windows))
    return (
        Observed(tuple(windows), tuple(parts), (), {}, {}, flat, None, None, ()),
        versions,
    )


def test_whole_starts_are_drawn(tmp_path: Path) -> None:
    """Rounds of one start are drawn together, of each version as many as there are."""
    seen, versions = observed(4, 3)
    draws = by_starts(versions, count=50)(seen)
    for weights in draws:
        by_start = weights.reshape(8, 3)
        assert (by_start == by_start[:, :1]).all()
    mean = np.mean(draws, axis=0)
    assert abs(mean.mean() - 1) < 0.15
    few, versions = observed(2, 3)
    apart = by_starts(versions, count=50)(few)
    assert any(len(set(weights.reshape(4, 3)[0])) > 1 for weights in apart)
    assert all(
        (one == other).all()
        for one, other in zip(
            draws,
            by_starts(versions | {Path(f"run-{n}"): ("old", "new")[n % 2] for n in range(8)}, count=50)(seen),
            strict=True,
        )
    )


def test_chance_counts_once_where_it_is_most_of_what_replicates_show() -> None:
    """Four runs of the model and of replicates spread alike: then calibration leaves nothing open."""
    own, others = [0.01, -0.01, 0.02, -0.02], [0.02, 0.00, 0.03, -0.01]
    chance = variance(own)
    assert interval_of(own, others, 5)[1] == pytest.approx(t_quantile(5) * sqrt(chance / 4 + chance))
    assert interval_of(own, others, 5, chance_apart=True)[1] == pytest.approx(
        t_quantile(5) * sqrt(chance / 4)
    )
