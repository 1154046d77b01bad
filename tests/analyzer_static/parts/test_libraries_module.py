"""Tables of what functions of libraries do are about functions there are."""

from __future__ import annotations

import importlib

import pytest
from probing import Probe

from analyzer.static.libraries import (
    KNOWN,
    builtin_functions,
    collection_types,
    function_tools,
    iteration_tools,
)
from analyzer.static.values import UNKNOWN, Const

TABLES = [builtin_functions, collection_types, function_tools, iteration_tools]


@pytest.mark.parametrize("name", sorted(KNOWN))
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
    ],
)
def test_iteration_tools(probe: Probe, code: str, expected: object) -> None:
    assert probe(f"return {code}", "import itertools\n").value == Const.of(expected)


def test_futures_in_a_chain_are_still_known(probe: Probe) -> None:
    body = "a = [comm.call('B', '/b/')]\nb = [comm.call('B', '/c/')]\nfor f in itertools.chain(a, b):\n    f.get()"
    done = probe(body, "import itertools\n")
    assert done.ways == ["callB/b/ callB/c/ get get next"]
    assert done.codes == []


def test_what_stands_in_no_table_is_unknown(probe: Probe) -> None:
    assert probe("return math.sqrt(4)", "import math\n").value == UNKNOWN
