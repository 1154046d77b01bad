"""Names that logs and models could not tell from what stands beside them are refused wherever they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

from mup.errors import ProjectError
from mup.names import name_problem
from mup.project import load_project

SERVICES = """\
from mup import EP, MS, Client, Communication


class A(MS):
    @EP("/x/")
    def x(self, comm: Communication) -> None:
        comm.query("{database}", "find", "things", {{}}).get()
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("{service}", "/x/")
"""


def _project(folder: Path, service: str = "A", database: str = "db", more: str = "") -> Path:
    (folder / "services.py").write_text(SERVICES.format(service=service, database=database))
    (folder / "mup.toml").write_text(
        '[project]\nclient = "services:User"\n[registry]\nport = 0\n'
        f'[services."{service}"]\nclass = "services:A"\n[databases."{database}"]\n{more}'
    )
    return folder


@pytest.mark.parametrize("command", ["paths", "run", "explore", "model"])
def test_a_database_with_a_dot_is_refused_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """It is not silently another database: the message names file, table, and a name that is one."""
    code, out, err = run(capsys, command, str(_project(tmp_path, database="shop.v2")))
    assert code == 2
    assert out == ""
    assert str(tmp_path / "mup.toml") in err
    assert "[databases] 'shop.v2'" in " ".join(err.split())
    assert "call it 'shop_v2'" in " ".join(err.split())
    assert not (tmp_path / ".mup").exists()


@pytest.mark.parametrize("name", ["A.b", "A/b", "A:b", "A=2", "A,B", "A b", "A@2", "", "-A"])
def test_services_databases_and_externals_have_one_rule(tmp_path: Path, name: str) -> None:
    """The characters that separate names in logs, models and options are in no name of a project."""
    more = f'[external."{name}"]\nurl = "http://127.0.0.1:1"\n'
    with pytest.raises(ProjectError) as caught:
        load_project(_project(tmp_path, service=name, database=name, more=more))
    for table in ("services", "databases", "external"):
        assert f"[{table}] {name!r}: a name has letters" in str(caught.value)


@pytest.mark.parametrize("name", ["db", "auth-service", "_1", "2nd", "Bücher", "a_b-c"])
def test_ordinary_names_are_names(tmp_path: Path, name: str) -> None:
    """What needs no quotes in TOML, and letters of other alphabets, are fine."""
    assert name_problem(name) == ""
    project = load_project(_project(tmp_path, service=name, database=f"{name}x"))
    assert project.services[0].name == name


def test_an_external_of_the_command_line_has_the_rule(tmp_path: Path) -> None:
    """``mup load --external`` takes no name that a project could not have."""
    project = load_project(_project(tmp_path))
    with pytest.raises(ProjectError, match="call it 'api_example'"):
        project.with_externals({"api.example": "http://127.0.0.1:1"})


def test_a_folder_without_a_project_has_the_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where every database is fine, one with a dot is not: it is a finding at its place."""
    _project(tmp_path, database="shop.v2")
    (tmp_path / "mup.toml").unlink()
    code, _, err = run(capsys, "paths", str(tmp_path))
    assert code == 1
    assert "services.py:7:20: error MUP013: no database can be called 'shop.v2'" in err
    assert "call it 'shop_v2'" in err
