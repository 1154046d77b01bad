"""``mup docs``: the list of pages, a page, a section of it, and the search."""

from __future__ import annotations

import json
import re
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run
from terminals import printed

from mup.cli.help import documentation
from mup.cli.help.docs import show
from mup.cli.help.documentation import all_pages, find_page, search
from mup.cli.help.site import server

ROOT = Path(__file__).resolve().parents[2]


def test_all_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every page of the folder is in the list with its title, and the list can be read by programs."""
    code, out, _ = run(capsys, "docs")
    files = {file.relative_to(ROOT / "docs").with_suffix("").as_posix() for file in ROOT.glob("docs/**/*.md")}
    assert code == 0
    assert {page.name for page in all_pages()} == files - {"README"}
    assert "reference/mup-toml" in out
    document = json.loads(run(capsys, "docs", "--json")[1])
    assert {"page": "reference/mup-toml", "title": "mup.toml"}.items() <= next(
        page for page in document["pages"] if page["page"] == "reference/mup-toml"
    ).items()


@pytest.mark.parametrize(
    "name", ["reference/mup-toml", "mup-toml", "mup.toml", "docs/reference/mup-toml.md", "mup-toml.md"]
)
def test_a_page_has_several_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A page is found by its name with and without folder, and by the path that messages give."""
    code, out, _ = run(capsys, "docs", name)
    assert code == 0
    assert out.rstrip("\n") == (ROOT / "docs/reference/mup-toml.md").read_text(encoding="utf-8").rstrip("\n")


def test_names_without_folder_mean_one_page() -> None:
    """No two pages share the last part of their names."""
    names = [page.name.rpartition("/")[2] for page in all_pages()]
    assert len(names) == len(set(names))


def test_a_section_of_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """A heading shows what is below it, up to the next heading of its level."""
    code, out, _ = run(capsys, "docs", "simulation#processors")
    assert code == 0
    assert out.startswith("## Processors\n")
    assert "Sticky cores" in out
    assert "\n## " not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["docs", "simulatoin"], "did you mean simulation", id="misspelt"),
        pytest.param(["docs", "simulation#nothing"], "its headings: simulation, flows", id="heading"),
        pytest.param(["docs", "simulation", "--search", "x"], "leave out 'simulation'", id="both"),
        pytest.param(["docs", "--search", " "], "needs a word", id="no-word"),
    ],
)
def test_what_is_not_there(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One message says what to type, with exit code 2."""
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("width", [60, 100])
def test_pages_are_laid_out_for_terminals(width: int) -> None:
    """Headings lose their marks, prose is broken at the width, and code is shown."""
    shown = printed(lambda out: show(out, find_page("tutorial/first-prediction").text), width)
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= width
    assert "## 2. What the source says" not in shown
    assert "What the source says" in shown
    assert "mup paths shop" in shown


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    """Sections with all words are found; a heading with them comes before a text with them."""
    code, out, _ = run(capsys, "docs", "--search", "sticky cores")
    assert code == 0
    assert "explanation/simulation: Processors" in out
    assert search("prediction intervals")[0].heading.lower() == "prediction intervals"
    match = search("MUP011")[0]
    assert match.page.name == "reference/diagnostics"
    lines = match.page.text.splitlines()
    assert match.text == lines[match.line - 1].strip()
    code, out, err = run(capsys, "docs", "--search", "no such words anywhere")
    assert (code, out) == (1, "")
    assert "no section" in err


def test_comments_in_code_are_no_headings(tmp_path: Path) -> None:
    """A line of a code block that begins with a number sign does not end its section."""
    file = tmp_path / "page.md"
    file.write_text("# Title\n\n```console\n# comment\n```\n\n## Next\n", encoding="utf-8")
    page = documentation.Page("page", file)
    assert [(section.heading, section.line) for section in page.sections()] == [("Title", 1), ("Next", 7)]


def test_wheels_bring_every_page() -> None:
    """What is packed into a wheel are all folders and files that `mup docs` lists."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        packed = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    places = {source: target for source, target in packed.items() if source.startswith("docs/")}
    assert all(target == f"mup/{source}" for source, target in places.items())
    for page in all_pages():
        assert any(f"docs/{page.name}.md".startswith(source) for source in places), page.name


def test_hints_name_pages_that_exist() -> None:
    """Every `mup docs PAGE` in the source code leads to a page, and to a heading of it."""
    for folder in ("mup", "mup_registry", "analyzer", "simulator", "examples"):
        for file in sorted((ROOT / folder).rglob("*.py")) + sorted((ROOT / folder).rglob("mup.toml")):
            for name, anchor in re.findall(r"mup docs ([a-z][\w/-]*)(?:#([\w-]+))?", file.read_text("utf-8")):
                page = find_page(name)
                assert not anchor or page.part(anchor), f"{file}: {name}#{anchor}"


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Address of the served documentation."""
    with server() as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{pages.server_address[1]}"
        pages.shutdown()


@pytest.mark.parametrize(
    ("path", "kind", "shown"),
    [
        pytest.param("/", "text/html", '<a href="/reference/mup-toml.md">mup.toml</a>', id="list"),
        pytest.param("/explanation/simulation.md", "text/html", '<h2 id="limits">', id="page"),
        pytest.param("/reference/ports.md", "text/html", "<table>", id="table"),
        pytest.param("/?search=sticky+cores", "text/html", 'href="/explanation/simulation.md#', id="search"),
        pytest.param("/?search=%3Cb%3E", "text/html", "&lt;b&gt;", id="search-is-escaped"),
        pytest.param("/tutorial/pictures/shop-model.svg", "image/svg+xml", "<svg", id="picture"),
    ],
)
def test_pages_are_served(site: str, path: str, kind: str, shown: str) -> None:
    """A browser gets pages with headings to link to, pictures at their places, the list and the search."""
    with urllib.request.urlopen(site + path) as answer:
        assert answer.headers["Content-Type"].startswith(kind)
        assert shown in answer.read().decode()


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "/none.md", "/%00", "/generate.py"]
)
def test_nothing_else_is_served(site: str, path: str) -> None:
    """Neither files outside of the documentation, nor those beside the pages that are none of theirs."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(site + path)
    with refused.value as answer:
        assert answer.code == 404
