"""Are two versions of a project compared by what they mean, and is each difference where it was made?"""

from __future__ import annotations

from pathlib import Path

import pytest
from project_versions import SOURCE, TOML, line_of, project, told

from analyzer.static import analyse
from analyzer.static.project_version import Difference, Version
from analyzer.static.versions import differences

SOURCE_CHANGES = [
    pytest.param(
        "        first = self.ask(comm)\n",
        "        for word in words:\n            self.ask(comm)\n        first = self.ask(comm)\n",
        ("calls", ("A/a/",), "B/b/ was called once, is called once and once per word", "for word in words"),
        id="a-helper-called-in-a-loop",
    ),
    pytest.param(
        '        return comm.call("B", "/b/", {}).get()\n',
        '        comm.call("B", "/b/", {}).get()\n        return comm.call("B", "/b/", {}).get()\n',
        ("calls", ("A/a/", "A/plain/"), "B/b/ was called once, is called twice", 'comm.call("B", "/b/", {}).get()'),
        id="one-more-call-in-a-helper-of-two-endpoints",
    ),
    pytest.param(
        "one, other = await asyncio.gather(self.one(comm), self.other(comm))\n",
        "one = await self.one(comm)\n        other = await self.other(comm)\n",
        (
            "parallelism",
            ("C/c/",),
            "the call of B/b/ and the call of A/plain/ were parallel, are sequential",
            "one = await self.one(comm)",
        ),
        id="gather-became-two-awaits",
    ),
    pytest.param(
        "return sum(range(number))", "return sum(range(number)) + 1",
        ("local work", ("B/b/",), "local work changed in work", "return sum(range(number)) + 1"),
        id="local-work-of-a-helper",
    ),
    pytest.param(
        "await self.think(0.1)", "await self.think(0.2)",
        ("think time", ("User.scenario",), "a think time was 0.1 s constant, is 0.2 s constant", "await self.think(0.2)"),
        id="think-time",
    ),
    pytest.param(
        "pool_size = 4", "pool_size = 8",
        ("deployment", ("A",), "pool 4 -> 8", "pool_size = 8"), id="pool-in-the-class",
    ),
    pytest.param(
        '    runtime = "async"', '    runtime = "async"\n    replicas = 2',
        ("deployment", ("C",), "replicas 1 -> 2", "replicas = 2"), id="replicas-in-the-class",
    ),
    pytest.param(
        '    @EP("/plain/")', '    @EP("/more/")\n    def more(self, comm: Communication) -> None:\n'
        '        comm.respond(1)\n\n    @EP("/plain/")',
        ("endpoint", ("A/more/",), "the endpoint is new", "def more"), id="endpoint-that-is-new",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), SOURCE_CHANGES)
def test_one_change_of_source_is_one_difference(
    tmp_path: Path, old: str, new: str, expected: tuple[str, tuple[str, ...], str, str]
) -> None:
    """It is told once, for all endpoints it concerns, at the line that was changed."""
    assert old in SOURCE
    changed = SOURCE.replace(old, new)
    *head, place = expected
    found = told(project(tmp_path / "1"), project(tmp_path / "2", changed))
    assert found == [(*head, "services.py", line_of(changed, place))]


def test_what_came_and_went(tmp_path: Path) -> None:
    """Services and endpoints that are gone are told; with a place in what is left of them."""
    source = SOURCE.replace('    @EP("/plain/")\n', "").replace('"A", "/plain/"', '"A", "/a/"')
    before, after = project(tmp_path / "1"), project(tmp_path / "2", source)
    found = told(before, after)
    assert (
        "endpoint",
        ("A/plain/",),
        "the endpoint is gone",
        "services.py",
        line_of(source, "class A"),
    ) in found
    toml = TOML.replace('[services.C]\nclass = "services:C"\n', "")
    (gone,) = told(before, project(tmp_path / "3", toml=toml))
    assert gone == ("service", ("C",), "the service is gone", "mup.toml", 1)
    (come,) = told(project(tmp_path / "4", toml=toml), before)
    assert come == ("service", ("C",), "the service is new", "services.py", line_of(SOURCE, "class C"))


def test_files_are_named_from_the_folder_of_the_project(tmp_path: Path) -> None:
    """Where the source is in a folder below, places begin with it; moving it there is no difference."""
    toml = TOML.replace("[project]", '[project]\nsource = "src"')
    below = project(tmp_path / "1", toml=toml, below="src")
    changed = project(tmp_path / "2", SOURCE.replace("pool_size = 4", "pool_size = 8"), toml, below="src")
    (one,) = differences(below, changed)
    assert one.file == "src/services.py"
    assert differences(project(tmp_path / "3"), below) == []


def test_a_folder_without_a_project(tmp_path: Path) -> None:
    """All services and all clients are compared."""
    versions = []
    for number, source in enumerate(
        (SOURCE, SOURCE.replace('"/plain/", {})\n\n\ndef', '"/a/", {})\n\n\ndef'))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "services.py").write_text(source)
        versions.append(Version(analyse(folder, with_code=True)))
    assert {d.subjects for d in differences(*versions)} == {("Other.scenario",)}
    assert differences(versions[0], versions[0]) == []


def test_a_difference_as_json() -> None:
    """What programs read has all of it."""
    one = Difference("calls", ("A/a/",), "B/b/ was called once, is called twice", "a.py", 3)
    assert one.to_json() == {
        "kind": "calls",
        "subjects": ["A/a/"],
        "text": "B/b/ was called once, is called twice",
        "file": "a.py",
        "line": 3,
    }
