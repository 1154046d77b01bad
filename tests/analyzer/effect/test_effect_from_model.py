"""What does the calibrated model of the old version tell of the new one, and what not?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from versions import model_of

from analyzer.effect.from_model import predicted_from
from analyzer.effect.paired import FigureKey, effect
from analyzer.effect.touched import Touched
from analyzer.static import analyse
from analyzer.static.project_version import Version
from mup.errors import UncalibratedError
from mup.lqn import LoadDependence

OLD = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        words = comm.params["words"]
        comm.call("B", "/b/", {}).get()
        comm.respond(1)


class B(MS):
    pool_size = 4

    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.05)
        await comm.call("A", "/a/", {"words": []})
"""
CALL = '        comm.call("B", "/b/", {}).get()\n'
WHAT = Touched(frozenset({"A/a/"}), frozenset())


def version(folder: Path, source: str) -> Version:
    folder.mkdir()
    (folder / "services.py").write_text(source)
    return Version(analyse(folder))


@pytest.mark.parametrize(
    ("source", "grows"),
    [
        pytest.param(OLD.replace(CALL, CALL + CALL), 1, id="one-more-call"),
        pytest.param(OLD.replace(CALL, ""), -1, id="one-call-less"),
        pytest.param(f"# A comment.\n{OLD}", 0, id="other-lines"),
    ],
)
def test_calls_are_predicted(source: str, grows: int, tmp_path: Path) -> None:
    """A further call costs what the first one does; where nothing is done differently nothing changes."""
    old = model_of(tmp_path / "old", OLD, 0.001)
    found = predicted_from(old, version(tmp_path / "new", source), WHAT)
    relative = effect(found.before, found.after).figures[FigureKey("", "mean")].relative
    assert (relative.low > 0.2, relative.high < -0.2) == (grows > 0, grows < 0)
    if not grows:
        assert (relative.low, relative.high) == (0, 0)


def test_a_new_loop_is_not_guessed(tmp_path: Path) -> None:
    """How often it goes round is in no model of the old version."""
    loop = f"        for word in words:\n    {CALL}"
    old = model_of(tmp_path / "old", OLD, 0.001)
    found = predicted_from(old, version(tmp_path / "new", OLD.replace(CALL, loop)), WHAT)
    with pytest.raises(UncalibratedError):
        effect(found.before, found.after)


def test_what_the_load_adds_stays(tmp_path: Path) -> None:
    """Times that depend on the rate of requests do so in the new version as well."""
    old = model_of(tmp_path / "old", OLD, 0.001)
    task = old.task("A")
    key = f"/a/:{task.entry('/a/').start}"
    times = LoadDependence(rates=(1.0, 100.0), demands={key: (0.002, 0.0), "front": (0.001, 0.0)})
    old = old.with_task(replace(task, load_dependence=times))
    found = predicted_from(old, version(tmp_path / "new", f"# A comment.\n{OLD}"), WHAT)
    assert found.after.task("A").load_dependence == times


def test_what_the_load_adds_to_a_call_it_adds_to_a_further_one(tmp_path: Path) -> None:
    """Lookups and exchanges: with times that are longer at low rates, too, one more call costs what the first does."""
    old = model_of(tmp_path / "old", OLD, 0.001)
    lookup = next(a for a in old.task("A").entry("/a/").activities if a.kind == "registry")
    network = next(task for task in old.tasks if task.role == "network")
    exchange = next(e for e in network.entries if e.name.endswith("A/a/"))
    rates = (1.0, 1000.0)
    looking = LoadDependence(rates=rates, demands={f"/a/:{lookup.name}": (0.004, 0.0)})
    sending = LoadDependence(
        rates=rates, delays={f"{exchange.name}:{exchange.activities[0].name}": (0.004, 0.0)}
    )
    old = old.with_task(replace(old.task("A"), load_dependence=looking))
    old = old.with_task(replace(network, load_dependence=sending))
    found = predicted_from(old, version(tmp_path / "new", OLD.replace(CALL, CALL + CALL)), WHAT)
    for name, kind in (("A", "demands"), (network.name, "delays")):
        times = found.after.task(name).load_dependence
        assert times is not None
        assert list(getattr(times, kind).values()) == [(0.004, 0.0)] * 2
    relative = effect(found.before, found.after).figures[FigureKey("", "mean")].relative
    assert relative.low > 0.4
