"""Methods that run without being called: when an object counts as true, is measured, printed or compared."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from analyzer.static import analyse

SOURCE = """
from mup import EP, MS, Communication


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class Stock:
    def __init__(self, comm):
        self.comm = comm

    def ask(self):
        return self.comm.call("B", "/b/").get()

    def __len__(self):
        return self.ask()

    def __str__(self):
        return self.ask()

    def __iadd__(self, other):
        self.ask()
        return self


class Basket:
    def __init__(self, comm):
        self.comm = comm
        self.items = []

    def __len__(self):
        return len(self.items)

    def __str__(self):
        return "basket"


def numbers(comm):
    yield 1
    comm.call("B", "/b/").get()
    yield 2


class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        stock, basket = Stock(comm), Basket(comm)
"""


def analysed(folder: Path, body: str) -> tuple[list[str], set[str]]:
    """Return the paths of an endpoint, each as the first letters of its operations, and the codes of findings."""
    text = SOURCE + indent(dedent(body).strip(), " " * 8) + "\n        comm.respond(1)\n"
    (folder / "app.py").write_text(text, encoding="utf-8")
    application = analyse(folder)
    (endpoint,) = (e for s in application.services for e in s.endpoints if e.path == "/a/")
    paths = ["".join(o.op[0] for o in path.operations) for path in endpoint.paths]
    return sorted(paths), {d.code for d in application.diagnostics}


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        pytest.param("n = len(stock)", ["cgr"], id="len"),
        pytest.param("n = str(stock)", ["cgr"], id="str"),
        pytest.param("n = bool(stock)", ["cgr"], id="bool"),
        pytest.param("print(stock, 1, stock)", ["cgcgr"], id="print"),
        pytest.param("if stock:\n    comm.call('B', '/b/')", ["cgcr", "cgr"], id="if"),
        pytest.param("n = 1 if stock else 2", ["cgr"], id="conditional"),
        pytest.param("n = stock and comm.call('B', '/b/')", ["cgcr", "cgr"], id="and"),
        pytest.param("n = [x for x in (1, 2) if stock]", ["cgcgr"], id="comprehension"),
        pytest.param("stock += 1", ["cgr"], id="augmented"),
        pytest.param("n = not stock", ["cgr"], id="not"),
        pytest.param("n = len(basket), str(basket), bool(basket)", ["r"], id="nothing-communicates"),
        pytest.param("if basket:\n    comm.call('B', '/b/')", ["r"], id="nothing-communicates-and-is-empty"),
        pytest.param("both = [stock, basket]\nn = len(both)", ["r"], id="only-the-list"),
    ],
)
def test_special_method_is_followed(tmp_path: Path, body: str, paths: list[str]) -> None:
    """What a special method communicates is part of the path, as if it was called."""
    assert analysed(tmp_path, body) == (paths, set())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("n = '{}'.format(stock)", id="format"),
        pytest.param("g = numbers(comm)\nnext(g)\ng.send(1)", id="send"),
        pytest.param("g = numbers(comm)\ng.close()", id="close"),
        pytest.param("assert comm.params['x'], comm.call('B', '/b/').get()", id="assertion"),
    ],
)
def test_what_is_not_followed_is_a_finding(tmp_path: Path, body: str) -> None:
    """Communication the analyzer does not follow is never left out silently."""
    assert analysed(tmp_path, body)[1] == {"MUP030"}


@pytest.mark.parametrize(
    "body",
    [pytest.param("assert basket, 'empty'", id="text"), pytest.param("assert 1, f'{basket.items}'", id="f")],
)
def test_assertion_with_a_message_that_only_computes(tmp_path: Path, body: str) -> None:
    """Most messages are texts."""
    assert not analysed(tmp_path, body)[1]
