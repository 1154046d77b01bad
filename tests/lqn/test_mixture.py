"""Does a mixture of two versions of a model have exactly what was taken of each?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from versions import model_of

from mup.lqn import EntryRef, LoadDependence, Model, Names, Replicate, Uncertainty
from mup.lqn.mixture import in_common_names, mixture
from mup.lqn.model import Setup
from mup.lqn.refs import WorkNames

OLD = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        comm.respond(comm.call("B", "/b/", {}).get())

    @EP("/c/")
    def c(self, comm: Communication) -> None:
        comm.call("B", "/b/", {}).get()
        comm.respond(1)


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("A", "/a/", {})
        await comm.call("A", "/c/", {})
"""
NEW = "# A line more.\n" + OLD.replace(
    '        comm.respond(comm.call("B", "/b/", {}).get())\n',
    '        comm.call("B", "/b/", {}).get()\n        comm.respond(comm.call("B", "/b/", {}).get())\n',
).replace("pool_size = 4", "pool_size = 8")
A = EntryRef("A", "/a/")


def sure(model: Model, factor: float) -> Model:
    """Return the model with one replicate that has a factor on every demand."""
    names = Names(model.tasks)
    demands = {names.activity(ref): factor for ref in names.activities()}
    fronts = {task.name: factor for task in model.tasks if task.front is not None}
    return replace(model, uncertainty=Uncertainty(replicates=(Replicate(demands=demands, fronts=fronts),)))


def versions(folder: Path) -> tuple[Model, Model]:
    """Return two versions in common names: of the new one all times are twice as long."""
    old = sure(model_of(folder / "old", OLD, 0.001), 1.1)
    new = sure(model_of(folder / "new", NEW, 0.002), 1.2)
    return old, in_common_names(old, new)


def test_lines_do_not_matter_to_names(tmp_path: Path) -> None:
    """What both versions do is called the same; records of paths and replicates, too."""
    old, new = versions(tmp_path)
    before, after = (m.task("A").entry("/c/") for m in (old, new))
    assert [a.name for a in before.activities] == [a.name for a in after.activities]
    assert [p["segments"] for p in before.paths] == [p["segments"] for p in after.paths]
    assert [p["exchange"] for p in before.paths] == [p["exchange"] for p in after.paths]
    assert old.uncertainty is not None
    assert new.uncertainty is not None
    assert set(old.uncertainty.replicates[0].demands) < set(new.uncertainty.replicates[0].demands)


def with_times(model: Model, kind: str) -> Model:
    """Return the model with times, of every work of every task, that depend on its rate, or on its sleep."""
    for task in model.tasks:
        added = dict.fromkeys(WorkNames(task.entries).pairs, (0.001, 0.0))
        changed = (
            replace(task, load_dependence=LoadDependence(rates=(1.0, 10.0), demands=added, delays=added))
            if kind == "load"
            else replace(
                task, setup=Setup(gaps=(0.01,), worker=(1.0,), core=(0.0,), demands=added, delays=added)
            )
        )
        model = model.with_task(changed)
    return model


@pytest.mark.parametrize("kind", ["load", "sleep"])
def test_what_load_and_sleep_add_is_named_as_in_the_old_version(tmp_path: Path, kind: str) -> None:
    """Of the works of services and of the exchanges of the network."""
    shifted = f"# A line more.\n{OLD}"
    old, new = (
        with_times(model_of(tmp_path / name, source, 0.001), kind)
        for name, source in (("old", OLD), ("new", shifted))
    )
    named = in_common_names(old, new).tasks
    assert new.tasks != old.tasks
    for before, after in zip(old.tasks, named, strict=True):
        assert (before.load_dependence, before.setup) == (after.load_dependence, after.setup)
        assert before.load_dependence is not None or before.setup is not None


def test_what_is_not_taken_is_the_old_one_itself(tmp_path: Path) -> None:
    """Entries, exchanges, fronts and replicates of what did not change are those of the old version."""
    old, new = versions(tmp_path)
    mixed = mixture(old, new, entries=[A], deployed=["A", "B"], gone=False)
    assert mixed.task("A").entry("/a/") == new.task("A").entry("/a/")
    assert mixed.task("A").entry("/c/") is old.task("A").entry("/c/")
    assert mixed.task("B").entry("/b/") is old.task("B").entry("/b/")
    assert mixed.task("A").threads == 8
    (draw,) = mixed.uncertainty.replicates if mixed.uncertainty is not None else ()
    mine = Names(mixed.tasks)
    assert {draw.demands[mine.activity(ref)] for ref in mine.activities() if ref.owner == A} == {1.2}
    others = [ref for ref in mine.activities() if ref.task in ("A", "B", "User") and ref.owner != A]
    assert {draw.demands[mine.activity(ref)] for ref in others} == {1.1}


def test_nothing_taken_is_the_old_version(tmp_path: Path) -> None:
    """Whatever the new version has of other numbers."""
    old, new = versions(tmp_path)
    mixed = mixture(old, new, gone=False)
    assert {t.name: t for t in mixed.tasks} == {t.name: t for t in old.tasks}


def test_exchanges_go_with_those_who_use_them(tmp_path: Path) -> None:
    """Network times of a changed endpoint are the new ones, of another one the old ones."""
    old, new = versions(tmp_path)
    mixed = mixture(old, new, entries=[A], gone=False)
    times = {e.name: e.activities[0].delay for e in mixed.task("Net").entries}
    used = {
        owner: {c.entry for a in mixed.task("A").entry(owner).activities for c in a.calls if c.task == "Net"}
        for owner in ("/a/", "/c/")
    }
    assert len(used["/a/"]) == 2
    assert {times[name].mean for name in used["/a/"] if times[name] is not None} == {0.002}
    assert {times[name].mean for name in used["/c/"] if times[name] is not None} == {0.001}
