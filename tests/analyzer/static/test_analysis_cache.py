"""Services are analysed again exactly when something has changed that they can depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.static import Application, analyse_project, analysis_cache
from analyzer.static.translate import translate
from mup.cli import sources
from mup.project import load_project

FRONT = """\
from mup import EP, MS
from shared.base import Base

class Front(Base):
    @EP("/page/")
    def page(self, comm):
        for _ in comm.params["list"]:
            self.ask(comm)
        if comm.params:
            comm.respond(1)
            self.log()
            return
        comm.respond(0)

    def log(self):
        return 1
"""
BASE = """\
from mup import MS
from .paths import PATH

class Base(MS):
    def ask(self, comm):
        return comm.call("Back", PATH).get()
"""
BACK = """\
import helper
from mup import EP, MS

class Back(MS):
    @EP("/job/", name="job")
    def job(self, comm):
        comm.respond(helper.work())

    @EP("/other/")
    def other(self, comm):
        comm.respond(2)
"""
ALONE = """\
from mup import EP, MS

class Alone(MS):
    @EP("/x/")
    def x(self, comm):
        comm.respond(comm.query("db", "find", "c", {}).get())
"""
FILES = {
    "front.py": FRONT,
    "shared/__init__.py": "",
    "shared/base.py": BASE,
    "shared/paths.py": "PATH = '/job/'\n",
    "back.py": BACK,
    "helper.py": "import math\ndef work():\n    return math.sqrt(2)\n",
    "alone.py": ALONE,
    "user.py": "from mup import Client\nclass User(Client):\n    async def scenario(self, comm):\n"
    "        await self.think(0.5)\n        await comm.call('Front', '/page/')\n",
    "unrelated.py": "def f(:\n",
    "mup.toml": "[project]\nclient = 'user:User'\n"
    + "".join(f"[services.{n}]\nclass = '{n.lower()}:{n}'\n" for n in ("Front", "Back", "Alone"))
    + "[databases.db]\n",
}
ALL = {"Front", "Back", "Alone"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert set(analysed(tmp_path).remembered) == set()
    return tmp_path


def analysed(folder: Path) -> Application:
    """Analyse with the cache; the result is the same as without."""
    project = load_project(folder)
    found = analyse_project(project, remember=True)
    assert replace(found, remembered=()) == analyse_project(project)
    return found


def put(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return edit


def add(name: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    return edit


EDITS = [
    pytest.param(lambda folder: None, set(), id="nothing"),
    pytest.param(put("unrelated.py", "f", "g"), set(), id="file-nobody-uses"),
    pytest.param(put("user.py", "0.5", "0.6"), set(), id="client"),
    pytest.param(put("alone.py", "find", "search"), {"Alone"}, id="service"),
    pytest.param(put("alone.py", "import EP", "import  EP"), {"Alone"}, id="layout"),
    pytest.param(put("helper.py", "sqrt(2)", "sqrt(3)"), {"Back"}, id="helper"),
    pytest.param(put("shared/paths.py", "job", "other"), {"Front"}, id="constant-two-modules-away"),
    pytest.param(put("back.py", "/job/", "/task/"), ALL, id="path-others-call"),
    pytest.param(put("back.py", '"job"', '"x"'), ALL, id="name-others-call"),
    pytest.param(put("mup.toml", "[services.Back]", "[services.Back]\npool_size = 7"), ALL, id="settings"),
    pytest.param(add("math.py", "def sqrt(n): return n\n"), {"Back"}, id="module-that-hides-another-one"),
    pytest.param(add("shared/more.py", "x = 1\n"), {"Front"}, id="module-in-a-package"),
    pytest.param(add("shared/mup.py", "x = 1\n"), ALL, id="module-called-like-the-framework"),
    pytest.param(lambda folder: (folder / "helper.py").unlink(), {"Back"}, id="module-that-is-gone"),
    pytest.param(add("helper.py", "def work(:\n"), {"Back"}, id="syntax-error"),
    pytest.param(put("alone.py", "comm.respond", "print"), {"Alone"}, id="error"),
]


@pytest.mark.parametrize(("edit", "again"), EDITS)
def test_what_depends_on_a_change_is_analysed_again(
    project: Path, edit: Callable[[Path], None], again: set[str]
) -> None:
    """Everything else is not; the result is the same as that of a complete analysis, also the time after."""
    edit(project)
    assert ALL - set(analysed(project).remembered) == again
    later = analysed(project)
    assert set(later.remembered) == (ALL - again if later.errors else ALL)


def test_a_model_of_what_is_remembered(project: Path) -> None:
    """Destinations and everything else have their types again: equal tuples would not do."""
    found = analysed(project)
    assert set(found.remembered) == ALL
    assert translate(found, name="m") == translate(analyse_project(load_project(project)), name="m")


def test_findings_are_remembered(project: Path) -> None:
    """Information about a service that is not analysed again is shown all the same."""
    for _ in range(2):
        assert [d.code for d in analysed(project).diagnostics] == ["MUP022"]


DAMAGE: list[Callable[[str], str]] = [
    lambda text: "",
    lambda text: text[: len(text) // 2],
    lambda text: "[]",
    lambda text: json.dumps({**json.loads(text), "stamp": "other"}),
    lambda text: json.dumps({**json.loads(text), "nodes": [{"plain": 1}] * 9}),
    lambda text: json.dumps({**json.loads(text), "nodes": [{"class": "Path", "fields": {}}]}),
    lambda text: text.replace('"class": "Endpoint"', '"class": "Popen"'),
    lambda text: json.dumps({**json.loads(text), "whole": 0}),
    lambda text: json.dumps({**json.loads(text), "services": dict.fromkeys(ALL, 0)}),
]


@pytest.mark.parametrize(
    "damage", DAMAGE, ids=["empty", "cut", "list", "stamp", "plain", "fields", "class", "whole", "services"]
)
def test_a_damaged_cache_is_made_again(project: Path, damage: Callable[[str], str]) -> None:
    """Whatever is in the file, the result is right, and the file is whole again."""
    file = project / ".mup" / "analysis.json"
    file.write_text(damage(file.read_text()))
    assert set(analysed(project).remembered) == set()
    assert set(analysed(project).remembered) == ALL


def test_a_place_that_cannot_be_written_does_not_matter(project: Path) -> None:
    """The analysis works without."""
    (project / ".mup" / "analysis.json").unlink()
    (project / ".mup").rmdir()
    (project / ".mup").write_text("a file")
    assert set(analysed(project).remembered) == set()


def test_commands_that_only_read_remember_too(project: Path) -> None:
    """What ``mup paths`` or ``mup model --static`` analyses need not be analysed by the next command."""
    (project / ".mup" / "analysis.json").unlink()
    assert set(sources.analysed(project).remembered) == set()
    assert set(sources.analysed(project).remembered) == ALL
    put("alone.py", "find", "search")(project)
    assert set(sources.analysed(project).remembered) == ALL - {"Alone"}


def test_every_part_of_the_analyzer_counts() -> None:
    """What another version of any of its modules has found is not used."""
    folder = Path(analysis_cache.__file__).parent
    used = set(analysis_cache._tools())
    for module in folder.rglob("*.py"):
        assert hashlib.sha256(module.read_bytes()).hexdigest() in used, module.relative_to(folder)


def test_a_linked_file_counts_for_what_it_says(project: Path) -> None:
    """The link stays, the text behind it changes."""
    (project / "helper.py").rename(project / "elsewhere.txt")
    (project / "helper.py").symlink_to("elsewhere.txt")
    assert set(analysed(project).remembered) == ALL
    (project / "elsewhere.txt").write_text("def work(): return 3\n")
    assert set(analysed(project).remembered) == ALL - {"Back"}


def test_a_file_whose_imports_cannot_be_read_is_not_trusted(project: Path) -> None:
    """What uses it is analysed every time."""
    (project / "helper.py").write_bytes(b"# coding: utf-7\ndef work(): return 1\n")
    for _ in range(2):
        assert set(analysed(project).remembered) == ALL - {"Back"}


def test_folders_no_search_enters_are_not_trusted(project: Path) -> None:
    """An import can name a folder called build; what is in there is not known, so nothing is remembered."""
    (project / "build").mkdir()
    (project / "build" / "tool.py").write_text("def work(): return 1\n")
    put("back.py", "import helper", "import helper, build.tool")(project)
    for _ in range(2):
        assert set(analysed(project).remembered) == {"Front", "Alone"}
