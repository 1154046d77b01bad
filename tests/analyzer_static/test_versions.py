"""Are two versions of a project compared by what they mean, and is each difference where it was made?"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.static import analyse, analyse_project
from analyzer.static.versions import Difference, Version, differences
from mup.project import load_project

SOURCE = """\
import asyncio

from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        words = comm.params["words"]
        first = self.ask(comm)
        comm.respond([first, len(words)])

    @EP("/plain/")
    def plain(self, comm: Communication) -> None:
        comm.respond(self.ask(comm))

    def ask(self, comm: Communication) -> object:
        return comm.call("B", "/b/", {}).get()


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(work(1000))


class C(MS):
    runtime = "async"

    @EP("/c/")
    async def c(self, comm: Communication) -> None:
        one, other = await asyncio.gather(self.one(comm), self.other(comm))
        comm.respond([one, other])

    async def one(self, comm: Communication) -> object:
        return await comm.call("B", "/b/", {})

    async def other(self, comm: Communication) -> object:
        return await comm.call("A", "/plain/", {})


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("A", "/a/", {"words": []})


class Other(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("A", "/plain/", {})


def work(number: int) -> int:
    return sum(range(number))
"""
TOML = """\
[project]
client = "services:User"

[registry]
port = 0

[services.A]
class = "services:A"

[services.B]
class = "services:B"
pool_size = 2

[services.C]
class = "services:C"

[databases.db]
"""


def project(folder: Path, source: str = SOURCE, toml: str = TOML, below: str = "") -> Version:
    """Analyse a project with one module of services, in a source folder below it or not."""
    (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / below / "services.py").write_text(source)
    (folder / "mup.toml").write_text(toml)
    found = load_project(folder)
    return Version(analyse_project(found, with_code=True), found)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def told(old: Version, new: Version) -> list[tuple[str, tuple[str, ...], str, str, int]]:
    return [(d.kind, d.subjects, d.text, d.file, d.line) for d in differences(old, new)]


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


TOML_CHANGES = [
    pytest.param("pool_size = 2", "pool_size = 3", ("deployment", "B", "pool 2 -> 3", "pool_size"), id="pool"),
    pytest.param("pool_size = 2", "pool_size = 2\nqueue_limit = 5",
                 ("deployment", "B", "queue_limit not set -> 5", "queue_limit"), id="another-setting"),
    pytest.param("pool_size = 2", 'pool_size = 2\nenv = { KEY = "secret" }',
                 ("deployment", "B", "environment changed: KEY", "env"), id="environment-without-its-values"),
    pytest.param("port = 0", "port = 0\ncache = 0.5",
                 ("deployment", "x", "registry cache 1 -> 0.5", "cache"), id="registry"),
    pytest.param("[databases.db]", "[databases.db]\n[databases.more]",
                 ("database", "more", "the database is new", "[databases.more]"), id="database-that-is-new"),
    pytest.param("[databases.db]", '[databases.db]\nuri = "mongodb://u:secret@h"',
                 ("database", "db", "another server", "uri"), id="server-without-its-address"),
    pytest.param('client = "services:User"', 'client = "services:Other"',
                 ("client", "Other", "the scenario was that of User, is that of Other: loads of the two versions are not the same", "client"),
                 id="another-client"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), TOML_CHANGES)
def test_one_change_of_the_project_is_one_difference(
    tmp_path: Path, old: str, new: str, expected: tuple[str, str, str, str]
) -> None:
    """Settings are told at their line of mup.toml, and nothing secret of them."""
    assert old in TOML
    toml = TOML.replace("[project]", '[project]\nname = "x"')
    changed = toml.replace(old, new)
    kind, subject, text, place = expected
    found = told(project(tmp_path / "1", toml=toml), project(tmp_path / "2", toml=changed))
    assert found == [(kind, (subject,), text, "mup.toml", line_of(changed, place))]


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
