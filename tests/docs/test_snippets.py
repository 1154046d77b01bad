"""The code on the pages is valid."""

from __future__ import annotations

import ast
import importlib
import json
import re
import tempfile
import textwrap
import tomllib
from pathlib import Path

import pytest
from doc_pages import ROOT, Block, all_blocks

from analyzer.static import Diagnostic, analyse
from mup.project import load_project

PYTHON = all_blocks("python")
PROGRAMS = [block for block in PYTHON if re.search(r"^class \w+\((MS|Client)\):", block.text, re.MULTILINE)]

OURS = {"mup", "mup_registry", "analyzer", "simulator"}

# Pages show one side of a conversation; these stand in for the other.
OTHERS = {"A": "/epA/", "B": "/epB/", "Shop": "/order/", "Stock": "/price/"}


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_compiles(block: Block) -> None:
    """Every Python block is valid, also one that shows the inside of a method."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compile(textwrap.dedent(block.text), str(block), "exec", flags=flags, dont_inherit=True)


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_imports_exist(block: Block) -> None:
    """What a block imports from this project is there."""
    for node in ast.walk(ast.parse(textwrap.dedent(block.text))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in OURS:
            module = importlib.import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("block", all_blocks("toml"), ids=str)
def test_toml_parses(block: Block) -> None:
    """Every TOML block is valid."""
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", all_blocks("json"), ids=str)
def test_json_parses(block: Block) -> None:
    """Every JSON block is valid."""
    assert json.loads(block.text)


def _errors(program: str, folder: Path) -> list[Diagnostic]:
    """Analyse a program together with the services it calls, if it does not define them itself."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    others = ["from mup import EP, MS"]
    for name, path in OTHERS.items():
        if f"class {name}(" not in program:
            others.append(f"class {name}(MS):\n    @EP('{path}')\n    def go(self, comm): comm.respond(1)")
    (folder / "others.py").write_text("\n".join(others), encoding="utf-8")
    return [finding for finding in analyse(folder).diagnostics if finding.severity == "error"]


@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_programs_can_be_analysed(block: Block, tmp_path: Path) -> None:
    """Services and clients on the pages pass static analysis without errors."""
    assert _errors(block.text, tmp_path) == []


def test_a_wrong_program_is_noticed(tmp_path: Path) -> None:
    """The check above fails for a call to an endpoint that does not exist."""
    program = PROGRAMS[0].text.replace("/epB/", "/epX/")
    assert [finding.code for finding in _errors(program, tmp_path)] == ["MUP012"]


def test_the_reference_of_mup_toml_is_a_project() -> None:
    """The example on the page of mup.toml is accepted as it stands."""
    (block,) = [b for b in all_blocks("toml") if b.page == ROOT / "docs/reference/mup-toml.md"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mup.toml").write_text(block.text, encoding="utf-8")
        project = load_project(folder)
    assert (project.name, project.services[0].port, project.databases[0].database) == (
        "translator",
        8081,
        "dictionary",
    )
