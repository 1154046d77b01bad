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


class Pages:
    def __init__(self, comm):
        self.comm = comm

    def __iter__(self):
        for _ in range(2):
            yield self.comm.call("B", "/b/").get()


class Key:
    def __init__(self, comm):
        self.comm = comm

    def __eq__(self, other):
        return self.same(other)

    def __hash__(self):
        return self.same(None)

    def __index__(self):
        return self.same(None)

    def same(self, other):
        return self.comm.call("B", "/b/").get()


class Shelf:
    def __init__(self, comm):
        self.comm = comm

    def ask(self):
        return self.comm.call("B", "/b/").get()

    def __getitem__(self, key):
        return self.ask()

    def keys(self):
        return ["a"]

    def __lt__(self, other):
        return self.ask()

    def __bool__(self):
        return self.ask()

    def __add__(self, other):
        return self.ask()


class Rows:
    def __init__(self, comm):
        self.comm = comm

    def __iter__(self):
        return (row for row in Pages(self.comm))


class Hooked:
    def __init__(self, hook):
        self.hook = hook

    def __lt__(self, other):
        return self.hook()


class Plain:
    def __init__(self, comm, price=1):
        self.comm = comm
        self.price = price

    def ask(self):
        return self.comm.call("B", "/b/").get()

    def _key(self):
        return self.price

    def __lt__(self, other):
        return self._key() < other._key()

    def __eq__(self, other):
        return self.price == other.price

    def __hash__(self):
        return hash(self.price)

    def __bool__(self):
        return self.price > 0

    def __index__(self):
        return 0


class Turns:
    def __init__(self, comm):
        self.comm = comm

    def __iter__(self):
        return self

    def __next__(self):
        return self.comm.call("B", "/b/").get()


def numbers(comm):
    yield 1
    comm.call("B", "/b/").get()
    yield 2


class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        stock, basket = Stock(comm), Basket(comm)
        pages, shelf, turns = Pages(comm), Shelf(comm), Turns(comm)
        key, plain = Key(comm), Plain(comm)
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
        pytest.param("n = [*pages]", ["cgcgr"], id="star"),
        pytest.param("n, m = pages", ["cgcgr"], id="unpack"),
        pytest.param("n, *m = pages", ["cgcgr"], id="unpack-star"),
        pytest.param("n = print(*pages)", ["cgcgr"], id="arguments"),
        pytest.param("n = list(pages), sum(pages)", ["cgcgcgcgr"], id="list-sum"),
        pytest.param("n = next(iter(pages))", ["cgr"], id="next"),
        pytest.param("n = any(pages)", ["cgcgr", "cgr"], id="any"),
        pytest.param("n = list(Rows(comm))", ["cgcgr"], id="list-of-what-is-returned"),
        pytest.param("n = [*Rows(comm)]", ["cgcgr"], id="star-of-what-is-returned"),
        pytest.param("n = 3 in pages", ["cgcgr", "cgr"], id="in"),
        pytest.param("n = 3 not in pages", ["cgcgr", "cgr"], id="not-in"),
        pytest.param("n = []\nn.extend(pages)", ["cgcgr"], id="extend"),
        pytest.param("n = [1]\nn[:] = pages", ["cgcgr"], id="part-of-a-list"),
        pytest.param("n = ','.join(pages)", ["cgcgr"], id="join"),
        pytest.param("n = shelf[1:2]", ["cgr"], id="slice"),
        pytest.param("n = shelf['a', 3]", ["cgr"], id="two-keys"),
        pytest.param("n = [shelf, 1][:1]", ["r"], id="slice-of-a-list"),
        pytest.param("n = sorted([plain, plain])", ["r"], id="plain-sorted"),
        pytest.param("n = [plain]\nn.sort()", ["r"], id="plain-sort"),
        pytest.param("n = any([plain, plain])", ["r"], id="plain-any"),
        pytest.param("n = {plain: 1}, {plain}, [1][plain], 3 in [plain]", ["r"], id="plain-keys"),
        pytest.param("n = [2, 1]\nn.sort(key=lambda x: -x)", ["r"], id="plain-sort-key"),
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
        pytest.param("n = [*turns]", id="star-of-itself"),
        pytest.param("n = list(turns)", id="list-of-itself"),
        pytest.param("n = any(turns)", id="any-of-itself"),
        pytest.param("n, m = turns", id="unpack-of-itself"),
        pytest.param("n = {**shelf}", id="mapping"),
        pytest.param("n = dict(shelf)", id="dict"),
        pytest.param("n = {}\nn.update(shelf)", id="update"),
        pytest.param("n = []\nn += pages", id="augmented"),
        pytest.param("n = sorted([shelf, shelf])", id="sorted"),
        pytest.param("n = any([shelf, shelf])", id="any"),
        pytest.param("n = [shelf]\nn.sort()", id="sort"),
        pytest.param("h = Hooked(stock.ask)\nn = sorted([h, h])", id="sorted-by-a-hook"),
        pytest.param("n = {key: 1}", id="key"),
        pytest.param("n = {key, 1}", id="member"),
        pytest.param("n = 3 in [key]", id="in-a-list"),
        pytest.param("n = key in [3]", id="in-another-list"),
        pytest.param("n = [1, 2][key]", id="index"),
    ],
)
def test_what_is_not_followed_is_a_finding(tmp_path: Path, body: str) -> None:
    """Communication the analyzer does not follow is never left out silently."""
    assert analysed(tmp_path, body)[1] == {"MUP030"}


@pytest.mark.parametrize(
    "code",
    [
        "dict(**shelf)",
        "sum([shelf, shelf])",
        "max(pages)",
        "zip(pages, 'ab')",
        "[2, 1].sort(key=lambda x: stock.ask())",
        "type('X', (), {'go': lambda self: stock.ask()})",
    ],
)
def test_what_a_function_may_do_with_it_is_a_finding(tmp_path: Path, code: str) -> None:
    """It is handed to what is not followed."""
    assert analysed(tmp_path, f"n = {code}")[1] & {"MUP030", "MUP041"}


def test_awaiting_an_object_that_communicates_is_a_finding(tmp_path: Path) -> None:
    """What ``__await__`` does is not followed."""
    (tmp_path / "app.py").write_text(
        dedent("""
            from mup import EP, MS, Communication

            class Later:
                def __init__(self, comm):
                    self.comm = comm

                def __await__(self):
                    return self.comm.call("A", "/b/").__await__()

            class A(MS):
                runtime = "async"

                @EP("/a/")
                async def a(self, comm: Communication) -> None:
                    comm.respond(await Later(comm))

                @EP("/b/")
                async def b(self, comm: Communication) -> None:
                    comm.respond(1)
        """),
        encoding="utf-8",
    )
    (found,) = (d for d in analyse(tmp_path).diagnostics if d.code == "MUP030")
    assert "'Later.__await__' runs here" in found.message


@pytest.mark.parametrize(
    "body",
    [pytest.param("assert basket, 'empty'", id="text"), pytest.param("assert 1, f'{basket.items}'", id="f")],
)
def test_assertion_with_a_message_that_only_computes(tmp_path: Path, body: str) -> None:
    """Most messages are texts."""
    assert not analysed(tmp_path, body)[1]
