"""Variables of the environment that have a default."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.libraries import environment
from analyzer.static.values import COMM, UNKNOWN, Const
from analyzer.static.values.constants import Setting

MODULE = """
import os
from os import environ, getenv
HOST = os.environ.get("HOST", "B")
PATH = getenv("PATH_OF_B", default="b")
"""


@pytest.mark.parametrize(
    "code",
    ["HOST", "environ.get('HOST', 'B')", "getenv('HOST', 'b').upper()", "os.getenv('HOST', default='B')"],
)
def test_what_has_a_default_is_a_setting(probe: Probe, code: str) -> None:
    assert probe(f"return {code}", MODULE).value == Setting("HOST", Const.of("B"))
    assert set(environment.FUNCTIONS) == {"os.environ.get", "os.getenv"}


@pytest.mark.parametrize(
    "code",
    ["getenv('A')", "getenv('A', 1)", "environ['A']", "getenv(x, 'b')", "int(HOST)", "f'{HOST}'", "HOST[0]"],
)
def test_of_others_nothing_is_known(probe: Probe, code: str) -> None:
    assert probe(f"return {code}", MODULE, x=UNKNOWN).value == UNKNOWN


def test_an_address_is_the_default_and_a_finding_says_so(probe: Probe) -> None:
    done = probe("comm.call(HOST, '/b/').get()", MODULE, comm=COMM)
    assert (done.ways, done.codes) == (["callB/b/ get next"], ["MUP015"])


@pytest.mark.parametrize("condition", ["HOST == 'B'", "HOST != 'B'", "HOST", "HOST in ('B', 'C')"])
def test_no_branch_is_left_out(probe: Probe, condition: str) -> None:
    done = probe(f"if {condition}:\n    comm.call('B', '/b/').get()", MODULE, comm=COMM)
    assert done.ways == ["callB/b/ get next", "next"]
