"""What changes nothing that it is handed, and why a value must not leave."""

from __future__ import annotations

import libcst as cst
import pytest
from probing import Probe

from analyzer.static.values import UNKNOWN
from analyzer.static.values.escape import HERE
from analyzer.static.values.reading import READING_METHODS, READING_MODULES, called_name


@pytest.mark.parametrize(("code", "name"), [("a.b(1)", "b"), ("a(1)", ""), ("a.b.c()", "c"), ("a.b", "b")])
def test_the_name_of_a_method_that_is_called(code: str, name: str) -> None:
    assert called_name(cst.parse_expression(code)) == name


def test_facts_survive_what_only_reads(probe: Probe) -> None:
    body = "if not x:\n    return 1\n{}\nif x:\n    return 2\nreturn 3"
    assert [len(probe(body.format(c), x=UNKNOWN).value.parts()) for c in ("y.lower()", "y.change(x)")] == [
        2,
        3,
    ]
    assert "lower" in READING_METHODS
    assert "json" in READING_MODULES


def test_a_function_that_communicates_is_to_be_called_here(probe: Probe) -> None:
    done = probe("send(lambda: comm.respond(1))", send=UNKNOWN)
    assert [finding.hint for finding in done.walk.diagnostics.all()] == [HERE]
