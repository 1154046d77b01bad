"""The application of a project: what it names is analysed, and nothing is loaded to remember it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.static.projects import analyse_project
from mup.errors import AnalysisError
from mup.project import load_project

SERVICE = """
from mup import EP, MS

class Shop(MS):
    @EP("/buy/")
    def buy(self, comm):
        comm.respond(1)
"""
USER = """
from mup import Client

class User(Client):
    async def scenario(self, comm):
        await comm.call("Shop", "/buy/")
"""
TOML = """
[project]
client = "user:User"
[services.Shop]
class = "shop:Shop"
pool_size = 5
"""
LOADED = """
import sys
from pathlib import Path
from analyzer.static import analyse_project
from mup.project import load_project

found = analyse_project(load_project(Path(sys.argv[1])), remember=True)
print(len(found.services), len(found.clients), "libcst" in sys.modules)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("shop.py", SERVICE), ("user.py", USER), ("mup.toml", TOML)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def loaded(project: Path) -> str:
    """Return how many services and clients a process of its own finds, and whether it loads the parser."""
    command = [sys.executable, "-c", LOADED, str(project)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_settings_of_the_project_count(project: Path) -> None:
    found = analyse_project(load_project(project))
    assert [(s.name, s.pool_size) for s in found.services] == [("Shop", 5)]
    assert [c.name for c in found.clients] == ["User"]


def test_what_has_not_changed_takes_no_parser(project: Path) -> None:
    """A change of the client alone is one, too; one of a file that neither uses is none."""
    assert loaded(project) == "1 1 True"
    assert loaded(project) == "1 1 False"
    (project / "user.py").write_text(USER + "# more\n", encoding="utf-8")
    assert loaded(project) == "1 1 True"
    (project / "other.py").write_text("x = 1\n", encoding="utf-8")
    assert loaded(project) == "1 1 False"


def test_a_client_that_cannot_be_found_is_an_error_every_time(project: Path) -> None:
    (project / "mup.toml").write_text(TOML.replace("User", "Nobody"), encoding="utf-8")
    for _ in range(2):
        found = analyse_project(load_project(project), remember=True)
        assert [d.code for d in found.errors] == ["MUP007"]


def test_a_source_folder_that_is_gone(project: Path) -> None:
    (project / "mup.toml").write_text(TOML + "[analysis]\nskip = []\n", encoding="utf-8")
    known = load_project(project)
    analyse_project(known, remember=True)
    for file in project.iterdir():
        if file.is_file():
            file.unlink()
    assert analyse_project(known, remember=True).errors
    for folder in (project / ".mup", project):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    with pytest.raises(AnalysisError, match="no such file or folder"):
        analyse_project(known)
