"""Tables of what functions of libraries do are about functions there are."""

from __future__ import annotations

import importlib

import pytest
from probing import Probe

from analyzer.static.libraries import (
    KNOWN,
    builtin_functions,
    collection_types,
    context_managers,
    environment,
    function_tools,
    inspection,
    iteration_tools,
    random_choices,
    retrying,
)
from analyzer.static.libraries.blocking import HOLDING, WAITING, blocks, blocks_loop
from analyzer.static.libraries.leaving import LEAVING
from analyzer.static.values import UNKNOWN, Const

TABLES = [
    builtin_functions,
    collection_types,
    context_managers,
    environment,
    function_tools,
    inspection,
    iteration_tools,
    random_choices,
    retrying,
]


@pytest.mark.parametrize(
    "name", sorted({*KNOWN, *LEAVING, *HOLDING, *WAITING} - {"typing_extensions.assert_never"})
)
def test_a_row_is_about_something_that_can_be_called(name: str) -> None:
    module, _, rest = name.partition(".")
    found: object = importlib.import_module(module)
    for part in rest.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_no_row_stands_in_two_tables() -> None:
    assert sum(len(table.FUNCTIONS) for table in TABLES) == len(KNOWN)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("list(itertools.chain((1, 2), [3]))[2]", 3),
        ("list(itertools.chain.from_iterable([(1,), (2,)]))[1]", 2),
        ("len(list(itertools.islice('abcd', 1, 3)))", 2),
        ("len(list(itertools.product('ab', (1, 2, 3))))", 6),
        ("list(itertools.pairwise((1, 2, 3)))[1][0]", 2),
        ("list(itertools.zip_longest((1, 2), (3,)))[1][1]", None),
        ("functools.reduce(lambda a, b: a * b, (2, 3), 4)", 24),
        ("callable(Thing.__init__) and callable(Thing) and callable(lambda: 1)", True),
        ("callable(None) or callable('len')", False),
        ("{Thing: 1, Other: 2}[Other]", 2),
        ("{'a': 1, 'b': 1}['a' if now else 'z']", 1),
        ("{Thing: 1, Other: 2}[type(Thing())]", 1),
        ("{int: 1, str: 2, IOError: 3}[type('a')] + {OSError: 3}.get(IOError)", 5),
        ("{Thing: 1}.get(Other, 4)", 4),
        ("hasattr(Thing(), 'known')", True),
        ("hasattr(Thing(), 'kind')", True),
        ("hasattr(Thing(), 'other')", False),
        ("sorted(('bb', 'a'), key=len)[0]", "a"),
        ("sorted(((1, 'b'), (2, 'a')), key=lambda row: row[1])[0][0]", 2),
        ("sorted(((1, 'b'), (2, 'a')), key=lambda row: row[1], reverse=True)[0][0]", 1),
    ],
)
def test_functions_of_what_is_known(probe: Probe, code: str, expected: object) -> None:
    module = "import functools, itertools\nclass Thing:\n    kind = 1\n    def __init__(self):\n        self.known = 2\nclass Other(Thing): pass\n"
    assert probe(f"return {code}", module, now=UNKNOWN).value == Const.of(expected)


FUNCTIONS = """
import functools, inspect, itertools, operator
async def later(comm):
    await comm.call("B", "/b/")
def now(comm):
    comm.call("B", "/b/").get()
def items(comm):
    for path in ("/b/", "/c/", "/b/"):
        yield comm.call("B", path).get()
"""


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (
            "fs = [comm.call('B', p) for p in ('/b/', '/c/')]\nfunctools.reduce(lambda a, f: a + f.get(), fs, 0)",
            ["callB/b/ callB/c/ get get next"],
        ),
        (
            "fs = sorted(((p, comm.call('B', p)) for p in ('/c/', '/b/')), key=lambda row: row[0])\nfs[0][1].get()",
            ["callB/c/ callB/b/ get next"],
        ),
        ("list(itertools.islice(items(comm), 2))", ["callB/b/ get callB/c/ get next"]),
        ("list(itertools.islice(items(comm), 0))", ["next"]),
        ("xs = []\nxs.extend(items(comm))", ["callB/b/ get callB/c/ get callB/b/ get next"]),
        ("xs = [0, *items(comm)]", ["callB/b/ get callB/c/ get callB/b/ get next"]),
        ("xs = [0]\nxs += items(comm)", ["callB/b/ get callB/c/ get callB/b/ get next"]),
        ("a, b, c = items(comm)", ["callB/b/ get callB/c/ get callB/b/ get next"]),
        ("functools.reduce(operator.add, items(comm), 0)", ["callB/b/ get callB/c/ get callB/b/ get next"]),
        ("xs = {}\nxs.update(k=1)\nxs.update((i, i) for i in items(comm))", None),
    ],
)
def test_generators_and_futures_in_functions_of_libraries(
    probe: Probe, body: str, ways: list[str] | None
) -> None:
    done = probe(body, FUNCTIONS)
    assert done.codes == []
    assert done.ways == (ways or ["callB/b/ get callB/c/ get callB/b/ get next"])


def test_reduce_of_a_generator_of_unknown_length(probe: Probe) -> None:
    """It runs to its end; what is reduced is not known."""
    rows = """
def some(comm, n):
    for row in comm.call('B', '/b/').get()[:n]:
        yield row
def fold(total, row):
    return {**total, 'row': row}
"""
    done = probe("return functools.reduce(fold, some(comm, n), {})", FUNCTIONS + rows, n=UNKNOWN)
    assert done.codes == []
    assert done.ways == ["callB/b/ get return"]


def test_islice_of_an_unknown_number(probe: Probe) -> None:
    done = probe("list(itertools.islice(items(comm), n))", FUNCTIONS, n=UNKNOWN)
    assert done.codes == []
    assert done.ways == [
        "callB/b/ get callB/c/ get callB/b/ get next",
        "callB/b/ get callB/c/ get next",
        "callB/b/ get next",
        "next",
    ]


def test_a_generator_must_not_be_lost_in_a_container(probe: Probe) -> None:
    body = "xs = set(x)\nxs.add(items(comm))"
    assert probe(body, FUNCTIONS, x=UNKNOWN).codes == ["MUP030"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("inspect.iscoroutinefunction(later)", True),
        ("inspect.iscoroutinefunction(now)", False),
        ("inspect.isgeneratorfunction(items)", True),
        ("inspect.iscoroutinefunction(functools.partial(later, 1))", True),
    ],
)
def test_what_inspect_says_of_functions(probe: Probe, code: str, expected: object) -> None:
    assert probe(f"return {code}", FUNCTIONS).value == Const.of(expected)


@pytest.mark.parametrize("name", sorted(LEAVING))
def test_what_never_returns_leaves(probe: Probe, name: str) -> None:
    module, _, function = name.rpartition(".")
    done = probe(f"from {module} import {function}\n{function}(1)\ncomm.call('B', '/b/')")
    assert done.ways == ["raise"]


@pytest.mark.parametrize(
    ("raised", "caught", "ways"),
    [
        ("sys.exit()", "Exception", ["next", "raise"]),
        ("sys.exit()", "BaseException", ["next"]),
        ("sys.exit()", "SystemExit", ["next"]),
        ("raise ValueError", "Exception", ["next"]),
    ],
)
def test_leaving_passes_what_catches_exceptions(
    probe: Probe, raised: str, caught: str, ways: list[str]
) -> None:
    assert probe(f"try:\n    {raised}\nexcept {caught}:\n    pass", "import sys\n").ways == ways


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("requests.get", True),
        ("httpx.AsyncClient", True),
        ("urllib.request.urlopen", True),
        ("subprocess.run", True),
        ("requests.exceptions.Timeout", False),
        ("httpx.HTTPError", False),
        ("urllib.parse.quote", False),
        ("http.HTTPStatus", False),
        ("time.sleep", False),
    ],
)
def test_which_functions_wait_for_other_programs(name: str, expected: bool) -> None:
    assert blocks(name) is expected
    assert blocks_loop("time.sleep")


def test_futures_in_a_chain_are_still_known(probe: Probe) -> None:
    body = "a = [comm.call('B', '/b/')]\nb = [comm.call('B', '/c/')]\nfor f in itertools.chain(a, b):\n    f.get()"
    done = probe(body, "import itertools\n")
    assert done.ways == ["callB/b/ callB/c/ get get next"]
    assert done.codes == []


def test_what_stands_in_no_table_is_unknown(probe: Probe) -> None:
    assert probe("return math.sqrt(4)", "import math\n").value == UNKNOWN


ASKED = """
class Plain: pass
class Asked:
    def __getattr__(self, name):
        return name
class Fussy:
    def __init__(self): self.there = 1
    def __getattribute__(self, name): ...
"""


@pytest.mark.parametrize(
    ("kind", "name", "surely"),
    [("Plain", "away", False), ("Asked", "away", None), ("Fussy", "there", None)],
)
def test_getattr_with_a_default_asks_the_object(
    probe: Probe, kind: str, name: str, surely: bool | None
) -> None:
    value = probe(f"return getattr({kind}(), '{name}', None) is None", ASKED).value
    assert value.truth({}) is (None if surely is None else not surely)
