"""Is a definition another one exactly when what it does is, and is the line right where it begins to differ?"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from source_outline import HEAD

from analyzer.static import analyse
from analyzer.static.application import Definition
from analyzer.static.definitions import changed_line

APP = """\
from math import sqrt
from work import LIMIT, Table, burn

class A(MS):
    def setup(self):
        self.cpu = 5

    @EP("/a/")
    def a(self, comm):
        total = 0
        for item in comm.params["items"]:
            if item > LIMIT:
                total += burn(item)
                total += self.cpu
            else:
                total -= sqrt(item)
        comm.respond({"total": Table().size(total)})
"""
WORK = """\
LIMIT = 3

def burn(n):
    result = n
    return result + 1

class Table:
    def size(self, n):
        half = n / 2
        return half

    def other(self):
        return 1
"""


def code(folder: Path, app: str = APP, work: str = WORK, **others: str) -> dict[str, Definition]:
    """Return the definitions behind the endpoint by name; that of a constant is ""."""
    folder.mkdir()
    files = {"app": HEAD + app, "work": work, **others}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")
    application = analyse(folder, with_code=True)
    assert application.errors == ()
    return {definition.name: definition for definition in application.endpoint("A/a/").code}


def digests(found: dict[str, Definition]) -> dict[str, str]:
    return {name: definition.digest for name, definition in found.items()}


def test_everything_behind_an_endpoint_is_listed_with_its_place(tmp_path: Path) -> None:
    """Its method first, then what it refers to: functions, classes, constants, what setup stores."""
    found = code(tmp_path / "1")
    assert next(iter(found)) == "A.a"
    assert {name: (d.file, d.line) for name, d in found.items()} == {
        "A.a": ("app.py", 11),
        "A.setup": ("app.py", 7),
        "": ("work.py", 1),
        "burn": ("work.py", 3),
        "Table": ("work.py", 7),
    }


def test_code_is_only_told_if_asked_for(tmp_path: Path) -> None:
    """Other commands do not pay for it."""
    (tmp_path / "app.py").write_text(
        HEAD + "class A(MS):\n    @EP('/a/')\n    def a(self, comm):\n        comm.respond(1)\n"
    )
    assert analyse(tmp_path).endpoint("A/a/").code == ()


SAME = [
    pytest.param("app", "        total = 0", "        # why\n\n        total = 0  # so", id="comments"),
    pytest.param("app", "total", "whole", id="renamed-local"),
    pytest.param("work", "half", "part", id="renamed-local-of-a-method-of-a-class"),
    pytest.param("work", "result", "value", id="renamed-local-of-a-helper"),
    pytest.param("work", "def other", "\n\n    def other", id="moved-lines"),
]


@pytest.mark.parametrize(("file", "old", "new"), SAME)
def test_what_means_nothing_is_the_same(tmp_path: Path, file: str, old: str, new: str) -> None:
    """Layout, comments and names of local variables, those of methods of a class that is used included."""
    texts = {"app": APP, "work": WORK}
    # The key of the answer stays.
    changed = {**texts, file: texts[file].replace(old, new).replace(f'"{new}":', f'"{old}":')}
    assert digests(code(tmp_path / "1")) == digests(code(tmp_path / "2", **changed))


def test_where_a_definition_stands_does_not_count(tmp_path: Path) -> None:
    """Moved to another file, or methods in another order: the same definitions."""
    before = digests(code(tmp_path / "1"))
    helper, rest = "def burn(n):\n    result = n\n    return result + 1\n", WORK.replace("result", "result")
    moved = "from more import burn\n" + rest.replace(helper, "")
    assert digests(code(tmp_path / "2", work=moved, more=helper)) == before
    size = "    def size(self, n):\n        half = n / 2\n        return half\n"
    other = "    def other(self):\n        return 1\n"
    turned = WORK.replace(f"{size}\n{other}", f"{other}\n{size}")
    assert turned != WORK
    assert digests(code(tmp_path / "3", work=turned)) == before


DIFFERENT = [
    pytest.param("app", "total += burn(item)", "total -= burn(item)", "A.a", 15, id="operator"),
    pytest.param("app", "                total += self.cpu\n            else:\n                total -= sqrt(item)",
                 "            else:\n                total += self.cpu\n                total -= sqrt(item)", "A.a", 11, id="moved-to-another-branch"),
    pytest.param("app", "                total += self.cpu\n", "            total += self.cpu\n".replace("            total", "                total -= 1\n                total"), "A.a", 16, id="inserted"),
    pytest.param("app", "                total += burn(item)\n", "", "A.a", 15, id="deleted"),
    pytest.param("app", "self.cpu = 5", "self.cpu = 6", "A.setup", 8, id="what-setup-stores"),
    pytest.param("work", "LIMIT = 3", "LIMIT = 4", "", 1, id="constant"),
    pytest.param("work", "result + 1", "result + 2", "burn", 5, id="helper"),
    pytest.param("work", "half = n / 2", "half = n / 3", "Table", 9, id="class"),
    pytest.param("app", "from math import sqrt", "from cmath import sqrt", "A.a", 11, id="function-of-another-library"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "name", "line"), DIFFERENT)
def test_a_change_is_in_one_definition_at_its_line(
    tmp_path: Path, file: str, old: str, new: str, name: str, line: int
) -> None:
    """Only the definition it was made in is another one, and the line is that of the first other statement."""
    texts = {"app": APP, "work": WORK}
    assert old in texts[file]
    before = code(tmp_path / "1")
    after = code(tmp_path / "2", **{**texts, file: texts[file].replace(old, new)})
    changed = [n for n in after if after[n].digest != before[n].digest]
    assert changed == [name]
    assert changed_line(before[name], after[name]) == line
