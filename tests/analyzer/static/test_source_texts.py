"""Does the source say what is asked of a line?"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.static.source_texts import SourceTexts, toml_line

SOURCE = """\
class A:
    pool_size: int = 4
    runtime = "async"

    def a(self, words):
        for word in words:
            print( word )  # twice
        for _, size in words:
            pass
        while words:
            words.pop()
        return [len(line) for line in words]
"""
TOML = """\
[project]
name = "x"

[services."B"]  # quoted
pool_size = 3

[services.A]
replicas = 2
# pool_size = 9
pool_size = 4
"""


@pytest.fixture
def texts(tmp_path: Path) -> SourceTexts:
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("for x in (")
    return SourceTexts(tmp_path)


@pytest.mark.parametrize(("line", "name"), [(6, "word"), (8, ""), (10, ""), (12, "line"), (7, ""), (99, "")])
def test_the_variable_of_a_loop(texts: SourceTexts, line: int, name: str) -> None:
    """Of ``for`` and of comprehensions with one variable; nothing of other lines."""
    assert texts.loop_name("a.py", line) == name


def test_a_file_that_says_nothing(texts: SourceTexts) -> None:
    """One that is not there, or no Python, is no reason to fail."""
    assert texts.loop_name("none.py", 1) == texts.statement("none.py", 1) == ""
    assert texts.loop_name("broken.py", 1) == ""
    assert texts.attribute_line("broken.py", 1, "x") == 0


def test_statements_and_attributes(texts: SourceTexts) -> None:
    """The text of a line has no blanks; the body of a class says where an attribute is set."""
    assert texts.statement("a.py", 6) == "forwordinwords:"
    assert texts.attribute_line("a.py", 1, "pool_size") == 2
    assert texts.attribute_line("a.py", 1, "runtime") == 3
    assert texts.attribute_line("a.py", 1, "replicas") == 0


@pytest.mark.parametrize(
    ("table", "key", "line"),
    [
        ("services.A", "pool_size", 10),
        ("services.B", "pool_size", 5),
        ("services.A", "cpus", 7),
        ("services.C", "pool_size", 0),
        ("project", "name", 2),
    ],
)
def test_the_line_of_a_setting(table: str, key: str, line: int) -> None:
    """That of the key, else of its table, else none."""
    assert toml_line(TOML, table, key) == line
