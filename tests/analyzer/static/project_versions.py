"""Two versions of a project, to be compared."""

from __future__ import annotations

from pathlib import Path

from analyzer.static import analyse_project
from analyzer.static.project_version import Version
from analyzer.static.versions import differences
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
