"""No name of a model is taken apart: references are data, and their texts are read in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("mup", "simulator", "analyzer", "mup_registry")
REFERENCES = "mup/lqn/refs.py"

CUTS = {"rpartition", "partition", "split", "rsplit", "removeprefix", "removesuffix", "endswith"}
MARKS = (":", "/", ".", "->", "&", ">", " ")
"""What stands between the names in a text, and before or behind them."""

PYTHON = "dotted names of Python, whose parts are identifiers"
TARGET = "'module:name' of a class or function in mup.toml, both Python names"
URL = "URLs and addresses, which escape what separates their parts"
PATHS = "paths of HTTP and files, whose segments cannot hold a slash"
OPTION = "the syntax of an option: no name of a model is in it"

ALLOWED = {
    "analyzer/access_logs/formats.py": f"{OPTION} (--field ROLE=NAME:UNIT); directives of a log format",
    "analyzer/access_logs/json_lines.py": "paths of fields of JSON",
    "analyzer/access_logs/targets.py": PATHS,
    "analyzer/data_checks/of_windows.py": "the kind before and the figure behind a measure; the name stays whole",
    "analyzer/learning/visit_tables.py": "names of files",
    "analyzer/static/analysis_cache.py": f"{PYTHON}; {TARGET}; names of files",
    "analyzer/static/calls.py": PYTHON,
    "analyzer/static/decorators.py": PYTHON,
    "analyzer/static/discovery.py": f"{PYTHON}; {TARGET}; {PATHS}",
    "analyzer/static/enumerations.py": PYTHON,
    "analyzer/static/exceptions.py": PYTHON,
    "analyzer/static/generators.py": PYTHON,
    "analyzer/static/libraries/blocking.py": PYTHON,
    "analyzer/static/libraries/function_tools.py": PYTHON,
    "analyzer/static/making.py": PYTHON,
    "analyzer/static/names.py": PYTHON,
    "analyzer/static/own_exceptions.py": PYTHON,
    "analyzer/static/patterns.py": PYTHON,
    "analyzer/static/shared.py": PYTHON,
    "analyzer/static/source.py": PYTHON,
    "analyzer/static/annotations.py": PYTHON,
    "analyzer/static/values/callables.py": PYTHON,
    "analyzer/static/attaching.py": PYTHON,
    "mup/cli/help/docs.py": "names of pages",
    "mup/cli/help/documentation.py": "names of pages, which are files",
    "mup/cli/learning/fit_options.py": OPTION,
    "mup/cli/measurements/identify.py": f"{OPTION} (--header NAME:VALUE); names of files",
    "mup/cli/measurements/load.py": f"{OPTION} (--header NAME:VALUE, --ramp FROM:TO)",
    "mup/cli/predictions/machine_speeds.py": f"{OPTION} (--machine-speed LOW..HIGH)",
    "mup/cli/optional_parts.py": PYTHON,
    "mup/cli/options.py": f"{OPTION} (--header NAME:VALUE)",
    "mup/cli/vocabulary.py": "options themselves (--x/--no-x)",
    "mup/databases/address.py": URL,
    "mup/databases/load.py": TARGET,
    "mup/databases/mongo.py": f"{URL}; messages of the driver",
    "mup/databases/server.py": f"{URL}; messages of the driver",
    "mup/lqn/lqnx/elements.py": "prefixes of XML namespaces",
    "mup/native/libraries.py": PYTHON,
    "mup/native/subset.py": PYTHON,
    "mup/project.py": TARGET,
    "mup/routes.py": PATHS,
    "mup/runtime/": f"the runtime knows no model: {URL}; {PATHS}; {PYTHON}; {TARGET}",
    "mup/tls.py": "names of files",
    "mup/workload/sampled_work.py": "headers of HTTP",
    "mup/workload/driver.py": TARGET,
    "mup/workload/machine.py": "lines of /proc/cpuinfo",
}
"""Files, or folders, where something else than a name of a model is taken apart, and what it is."""


def cuts(file: Path) -> Iterator[str]:
    """Yield every call that takes a text apart at one of the marks, with its line."""
    source = file.read_text(encoding="utf-8")
    if not any(f".{cut}(" in source for cut in CUTS):
        return
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in CUTS:
            continue
        given = [inner for argument in node.args for inner in ast.walk(argument)]
        texts = [a.value for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if any(mark in text for text in texts for mark in MARKS):
            yield f"line {node.lineno}: {ast.unparse(node)}"


@cache
def cutting() -> dict[str, list[str]]:
    """Return the calls of every file that has some, but for the module of the references."""
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    found = {file.relative_to(ROOT).as_posix(): list(cuts(file)) for file in files}
    return {name: calls for name, calls in found.items() if calls and name != REFERENCES}


def test_names_are_taken_apart_in_the_module_of_the_references_only() -> None:
    """Whatever else is taken apart is listed with the reason why it can be."""
    others = {name: calls for name, calls in cutting().items() if not name.startswith(tuple(ALLOWED))}
    assert others == {}, "look the name up with mup.lqn.refs.Names, or keep it as a reference"


def test_the_list_of_exceptions_has_no_more_than_it_needs() -> None:
    """A file that no longer takes anything apart leaves the list."""
    found = cutting()
    assert [name for name in ALLOWED if not any(file.startswith(name) for file in found)] == []


@pytest.mark.parametrize(
    "source",
    ['key.rpartition(":")', 'x.split("/", 1)', 'a.b.removeprefix("join ")', 'l.endswith((".a", ".b"))'],
)
def test_the_search_finds_what_it_looks_for(tmp_path: Path, source: str) -> None:
    """Every way that names were taken apart once is found."""
    (tmp_path / "module.py").write_text(f"y = 1\nx = {source}\n", encoding="utf-8")
    assert list(cuts(tmp_path / "module.py")) == [f"line 2: {ast.unparse(ast.parse(source))}"]
