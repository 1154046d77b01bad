"""Iterators, which are gone through once, and views of dicts, which show what comes later."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from analyzer.static import analyse

SOURCE = """
import itertools

from mup import EP, MS, Communication


class B(MS):
    @EP("/a")
    def a(self, comm: Communication) -> None:
        comm.respond(1)

    @EP("/b")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class Kept:
    pass


class S(MS):
    @EP("/s")
    def s(self, comm: Communication, urgent: bool = False) -> None:
"""

CALLS = """
for path in it:
    comm.call("B", path).get()
"""


def analysed(root: Path, code: str) -> tuple[set[str], list[list[str]]]:
    """Return the codes of the errors, and what the paths of the endpoint call."""
    (root / "services.py").write_text(SOURCE + indent(dedent(code), " " * 8), encoding="utf-8")
    result = analyse(root)
    found = [e for e in result.endpoints() if e.label == "S/s"]
    calls = [[o.target for o in path.operations if o.op == "call"] for e in found for path in e.paths]
    return {error.code for error in result.errors}, calls


@pytest.mark.parametrize(
    "made",
    [
        "it = iter(['/a', '/b'])",
        "it = reversed(['/b', '/a'])",
        "it = itertools.chain(['/a'], ['/b'])",
        "it = {'x': '/a', 'y': '/b'}.values()",
        "it = {'/a': 1, '/b': 2}.keys()",
        "rows = ['/a']\nit = iter(rows)\nfirst = it\nrows = []\nit = itertools.chain(first, ['/b'])",
    ],
)
def test_what_is_gone_through_once_is_known(tmp_path: Path, made: str) -> None:
    assert analysed(tmp_path, f"{made}\n{CALLS}comm.respond(1)") == (set(), [["B/a", "B/b"]])


def test_a_view_is_gone_through_again(tmp_path: Path) -> None:
    errors, calls = analysed(tmp_path, f"it = {{'x': '/a'}}.values()\n{CALLS}{CALLS}comm.respond(1)")
    assert (errors, calls) == (set(), [["B/a", "B/a"]])


@pytest.mark.parametrize(
    "code",
    [
        "it = iter(['/a', '/b'])\nfirst = next(it)",
        "it = iter(['/a', '/b'])\nnames = [one for one in it]",
        "it = iter(['/a', '/b'])\nnames = list(it)",
        "it = iter(['/a', '/b'])\nfor one in it:\n    break",
        "it = iter(['/a', '/b'])\nif '/a' in it:\n    pass",
        "own = iter(['/a', '/b'])\nit = own\nnames = list(own)\nit = own",
        "its = [iter(['/a', '/b'])]\nnames = list(its[0])\nit = its[0]",
        "own = (iter(['/a', '/b']), 1)\nnames = list(own[0])\nit = own[0]",
        "own = Kept()\nown.it = iter(['/a', '/b'])\nnames = list(own.it)\nit = own.it",
        "rows = ['/a']\nit = iter(rows)\nrows.append('/b')",
        "rows = ['/a']\nit = itertools.chain(rows, ['/a'])\nif urgent:\n    rows.append('/b')",
        "table = {'x': '/a'}\nit = table.values()\ntable['y'] = '/b'",
        "rows = [['/a']]\nit = itertools.chain.from_iterable(rows)\nrows[0].append('/b')",
    ],
)
def test_what_is_left_of_it_is_not_known(tmp_path: Path, code: str) -> None:
    assert analysed(tmp_path, f"{code}\n{CALLS}comm.respond(1)")[0] == {"MUP010"}


@pytest.mark.parametrize(
    "code",
    [
        "rows = ['/a']\nfor number, path in enumerate(rows):\n    {call}\n    rows.append('/b')",
        "table = {{'x': '/a', 'y': '/a'}}\nfor name, path in table.items():\n    {call}\n    table['y'] = '/b'",
    ],
)
def test_what_a_loop_changes_that_it_goes_through_is_not_known(tmp_path: Path, code: str) -> None:
    call = 'comm.call("B", path).get()'
    assert analysed(tmp_path, f"{code.format(call=call)}\ncomm.respond(1)")[0] == {"MUP010"}


def test_a_view_that_was_empty_may_count_as_true(tmp_path: Path) -> None:
    code = """
        table = {}
        found = table.items()
        table["x"] = 1
        if found:
            comm.call("B", "/a").get()
        comm.respond(1)
        """
    assert analysed(tmp_path, code) == (set(), [["B/a"], []])


def test_futures_beside_names_are_known_in_a_variable(tmp_path: Path) -> None:
    code = """
        futures = [comm.call("B", "/a"), comm.call("B", "/b")]
        pairs = zip("ab", futures, strict=True)
        for _, future in pairs:
            future.get()
        comm.respond(1)
        """
    assert analysed(tmp_path, code) == (set(), [["B/a", "B/b"]])


def test_a_generator_whose_first_source_alone_communicates_may_go_anywhere(tmp_path: Path) -> None:
    """That is evaluated where the generator is made, before anything takes items of it."""
    code = """
    import collections
    seen = collections.Counter()
    seen.update(row["x"] for row in comm.call("B", "/a").get()["rows"] if row)
    comm.respond(len(seen))
    """
    assert analysed(tmp_path, code) == (set(), [["B/a"]])


def test_a_generator_that_communicates_later_may_not_go_anywhere(tmp_path: Path) -> None:
    code = """
    import collections
    seen = collections.Counter()
    seen.update(comm.call("B", "/a").get()["x"] for row in comm.call("B", "/b").get()["rows"])
    comm.respond(len(seen))
    """
    assert analysed(tmp_path, code)[0] == {"MUP030"}
