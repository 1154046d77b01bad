"""Have activities names that do not move, and do options take them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.static import analyse, translate
from mup.errors import UsageError
from mup.lqn import Model
from mup.lqn.path_steps import routes, stable_names
from mup.lqn.refs import Names
from mup.lqn.routing_edits import place_of, probability_of, with_even_odds, with_probability

SOURCE = """\
from mup import EP, MS, Client, Communication


class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        if comm.params["cached"]:
            comm.respond(1)
            return
        first = comm.call("B", "/b/", {}).get()
        for word in first["words"]:
            if comm.query("db", "find", word, {}).get():
                comm.call("B", "/b/", {}).get()
        comm.respond(comm.call("B", "/b/", {}).get())


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond({"words": []})


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("A", "/a/", {"cached": False})
"""


def static_model(folder: Path, source: str) -> Model:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "services.py").write_text(source)
    return translate(analyse(folder), name="m", client="User")


def test_every_activity_has_a_stable_name_that_is_its_own(tmp_path: Path) -> None:
    """All activities that a path tells of have one, and no two of an entry have the same."""
    for task in static_model(tmp_path, SOURCE).tasks:
        if task.role not in ("network", "database"):
            for entry in task.entries:
                names = stable_names(entry)
                assert names.keys() == {activity.name for activity in entry.activities}
                assert len(set(names.values())) == len(names)


def test_stable_names_say_what_is_done(tmp_path: Path) -> None:
    """Calls are named after what they call and numbered, work after what it follows, branches by number."""
    names = set(stable_names(static_model(tmp_path, SOURCE).task("A").entry("/a/")).values())
    assert {"start", "comp@start#1", "comp@respond#1", "comm@B/b/#2", "comm@B/b/.2#2"} <= names
    assert {"loop#2", "comp@in-loop#2~1", "comm@db.find#2~2", "comm@B/b/#2~1", "comp@get-B/b/#2"} <= names


def test_stable_names_do_not_move_with_lines(tmp_path: Path) -> None:
    """A comment at the top moves the names of all activities, and none of these."""
    before = static_model(tmp_path / "1", SOURCE).task("A").entry("/a/")
    after = static_model(tmp_path / "2", "# one\n# two\n" + SOURCE).task("A").entry("/a/")
    assert stable_names(before).keys() != stable_names(after).keys()
    assert list(stable_names(before).values()) == list(stable_names(after).values())


def test_edits_take_stable_names(tmp_path: Path) -> None:
    """A branch can be named so that a script goes on working when lines are inserted above."""
    for number, source in enumerate((SOURCE, "# one\n" + SOURCE)):
        model = with_even_odds(static_model(tmp_path / str(number), source))
        changed = with_probability(model, "A/a/:comp@start#1", 0.9)
        assert probability_of(changed, "A/a/:comp@start#1") == pytest.approx(0.9)
        assert probability_of(changed, "A/a/:comp@start#2") == pytest.approx(0.1)
        call = Names(model.tasks).spoken_call("A/a/:comm@B/b/.2#2->B")
        assert call.target == ("B", "/b/")


def test_a_stable_name_that_does_not_exist_lists_those_that_do(tmp_path: Path) -> None:
    """What looks like one is answered with the names of that kind."""
    model = static_model(tmp_path, SOURCE)
    with pytest.raises(UsageError, match=r"no activity 'comm@C/c/'.*comm@B/b/#2"):
        place_of(model, "A/a/:comm@C/c/")


def test_records_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    """A path without its activities, as other programs may write it, is no path to compare by."""
    entry = static_model(tmp_path, SOURCE).task("A").entry("/a/")
    assert len(routes(entry)) == 2
    for broken in ({"segments": []}, {"operations": [{"op": "call"}]}, {"loops": {}}):
        object.__setattr__(entry, "paths", tuple({**path, **broken} for path in entry.paths))
        assert routes(entry) == ()
        assert stable_names(entry) == {}
