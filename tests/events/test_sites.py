"""Sites name the right expression, also when the source moves."""

from __future__ import annotations

import ast
import gc
import importlib.util
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest

from mup.events.reader import read_log
from mup.events.sites import MODULE, Site, SiteTable, site_index
from mup.events.writer import EventWriter

SOURCE = """
import sys

VALUE = len("x")

class A:
    table = dict(a=int("1"))

    def ep(self, see):
        first = see(len("é" * 2)); second = see(0)
        return [see(i) for i in range(2)], first, second

    def outer(self, see):
        def inner():
            return see(1)
        return inner(), (lambda: see(2))()
"""


def outline(source: str) -> list[tuple[str, int, int, int]]:
    """Return (function, ordinal, line, column) of every site in order."""
    sites = site_index(textwrap.dedent(source)).values()
    return sorted((s.function, s.ordinal, s.line, s.column) for s in sites)


def test_calls_are_numbered_by_where_they_end() -> None:
    """An inner call comes before the call it is an argument of."""
    assert outline("def f():\n    a(b(), c)(d())") == [
        ("f", 1, 2, 7),  # b()
        ("f", 2, 2, 5),  # a(b(), c)
        ("f", 3, 2, 15),  # d()
        ("f", 4, 2, 5),  # a(b(), c)(d())
    ]


def test_functions_are_named_as_in_qualname() -> None:
    """Methods, nested functions, lambdas, comprehensions and class bodies belong to the enclosing def."""
    functions = [function for function, *_ in outline(SOURCE)]
    assert {f: functions.count(f) for f in functions} == {
        MODULE: 3,
        "A.ep": 5,
        "A.outer": 3,
        "A.outer.<locals>.inner": 1,
    }


def test_await_and_its_call_are_two_sites() -> None:
    """The call counts before the await that ends at the same place."""
    index = site_index("async def f(c):\n    await c.call()\n")
    end = (2, 18)
    assert index[(*end, "call")].ordinal == 1
    assert index[(*end, "await")].ordinal == 2


def test_redefined_function_continues_the_numbering() -> None:
    """Two functions of one name do not share sites."""
    assert [o for _, o, *_ in outline("if x:\n  def f(): a()\nelse:\n  def f(): a()\n")] == [1, 2]


def test_decorators_and_defaults_belong_outside() -> None:
    """What runs when the function is defined is not part of the function."""
    names = {f for f, *_ in outline("@deco()\ndef f(a=g()):\n    h()\n")}
    assert outline("@deco()\ndef f(a=g()):\n    h()\n").count(("f", 1, 3, 5)) == 1
    assert names == {MODULE, "f"}


def run_and_record(source: str, folder: Path) -> list[Site]:
    """Run ``A().ep`` of a module and return the site of every call of its argument."""
    folder.mkdir()
    file = folder / "service_under_test.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("service_under_test", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    writer = EventWriter(folder / "a.mlog", {})
    table = SiteTable(writer, folder)
    seen: list[int] = []

    def see(value: object) -> object:
        caller: FrameType | None = sys._getframe(1)
        assert caller
        seen.append(table.of_frame(caller, "call"))
        return value

    module.A().ep(see)
    writer.close()
    sites = read_log(writer.path).sites
    return [sites[number] for number in seen]


def test_running_code_finds_its_sites(tmp_path: Path) -> None:
    """The frame of a caller leads to the site the index gives for that expression."""
    sites = run_and_record(SOURCE, tmp_path / "one")
    assert [(s.file, s.function, s.ordinal, s.line) for s in sites] == [
        ("service_under_test.py", "A.ep", 2, 10),
        ("service_under_test.py", "A.ep", 3, 10),
        ("service_under_test.py", "A.ep", 4, 11),
        ("service_under_test.py", "A.ep", 4, 11),
    ]


def test_sites_survive_comments_and_blank_lines(tmp_path: Path) -> None:
    """Inserting comments moves lines and nothing else."""
    moved = "# a comment\n\n" + SOURCE.replace("        return [see", "\n        # why\n        return [see")
    before, after = run_and_record(SOURCE, tmp_path / "one"), run_and_record(moved, tmp_path / "two")
    assert [(s.function, s.ordinal) for s in before] == [(s.function, s.ordinal) for s in after]
    assert [s.line for s in before] != [s.line for s in after]


def test_calls_over_several_lines(tmp_path: Path) -> None:
    """A chained method call over several lines is found, although Python moves its start."""
    source = """
class Chain:
    def __init__(self, see):
        self.see = see

class A:
    def ep(self, see):
        (
            Chain(see)
            .see(
                1,
            )
        )
"""
    (site,) = run_and_record(source, tmp_path / "one")
    assert (site.function, site.ordinal) == ("A.ep", 2)


@pytest.mark.slow
def test_threads_index_at_the_same_time() -> None:
    """Each gets all sites: the workers of a service read its source when their first requests come together."""
    source = Path(ast.__file__).read_text(encoding="utf-8")
    expected = site_index(source)

    def collected(_phase: str, _info: dict[str, int]) -> None:
        time.sleep(1e-5)

    # While Python makes a tree, others get their turn when the collector of cycles runs code, as that of objects
    # with a `__del__`.
    gc.callbacks.append(collected)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: site_index(source), range(12)))
    finally:
        gc.callbacks.remove(collected)
    assert found == [expected] * 12


def test_code_without_source_has_no_site(tmp_path: Path) -> None:
    """Generated code is site 0 instead of an error."""
    table = SiteTable(EventWriter(tmp_path / "a.mlog", {}), tmp_path)
    found: dict[str, int] = {}
    exec("found['site'] = see()", {"see": lambda: table.of_frame(sys._getframe(1), "call"), "found": found})
    assert found == {"site": 0}


def test_file_outside_the_source_folder_is_absolute(tmp_path: Path) -> None:
    """A site in a file outside of the project names the whole path."""
    (tmp_path / "source").mkdir()
    writer = EventWriter(tmp_path / "a.mlog", {})
    table = SiteTable(writer, tmp_path / "source")
    number = table.of_frame(sys._getframe(0), "call")
    writer.close()
    assert read_log(writer.path).sites[number].file == str(Path(__file__).resolve())


def test_source_that_does_not_parse() -> None:
    """The index refuses what Python refuses."""
    with pytest.raises(SyntaxError):
        site_index("def f(:")
