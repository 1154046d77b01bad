"""What is called with what, and what must not leave the code that is seen."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.calls import Calls
from analyzer.static.values import UNKNOWN, Const


def test_stars_are_spread(probe: Probe) -> None:
    module = "def three(a, b, c=0):\n    return (a, b, c)\n"
    done = probe("xs = (1, 2)\nmore = {'c': 3}\nreturn three(*xs, **more)", module)
    assert isinstance(done.walk.calls, Calls)
    assert done.value.python() == (True, (1, 2, 3))


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("send(comm)", ["MUP041"]),
        ("send(comm.call('B', '/b/'))", ["MUP041"]),
        ("send(lambda: comm.call('B', '/b/'))", ["MUP041"]),
        ("send([comm.call('B', '/b/')])", ["MUP041"]),
        ("send(comm.params)", []),
        ("send(lambda: 1)", []),
    ],
)
def test_what_leaves_is_reported(probe: Probe, body: str, codes: list[str]) -> None:
    assert probe(body, send=UNKNOWN).codes == codes


def test_what_an_unknown_function_gets_may_be_changed(probe: Probe) -> None:
    assert probe("x = [1]\nsend(x)\nreturn x[0]", send=UNKNOWN).value == UNKNOWN
    assert probe("x = [1]\nlog.info(x)\nreturn x[0]", log=UNKNOWN).value == Const.of(1)


TARGETS = """
from dataclasses import dataclass
from typing import NamedTuple
class Target(NamedTuple):
    service: str
    path: str
@dataclass(frozen=True)
class Place:
    service: str
    path: str
TARGETS = {1: Target("B", "/b/"), 2: Target("D", "/d/")}
PLACES = {1: Place("B", "/b/"), 2: Place("D", "/d/")}
ROWS = {1: ("B", "/b/"), 2: ("D", "/d/")}
"""


@pytest.mark.parametrize(
    "body",
    [
        "t = TARGETS[x]\ncomm.call(t.service, t.path).get()",
        "t = PLACES[x]\ncomm.call(t.service, t.path).get()",
        "t = ROWS[x]\ncomm.call(t[0], t[1]).get()",
        "comm.call(*ROWS[x]).get()",
        "comm.call(*TARGETS[x], {}).get()",
    ],
)
def test_service_and_path_of_one_record_stay_together(probe: Probe, body: str) -> None:
    done = probe(body, TARGETS, x=UNKNOWN)
    assert sorted(set(done.ways)) == ["callB/b/ get next", "callD/d/ get next"]


def test_service_and_path_of_different_records_are_combined(probe: Probe) -> None:
    done = probe("s, t = ROWS[x], ROWS[y]\ncomm.call(s[0], t[1])", TARGETS, x=UNKNOWN, y=UNKNOWN)
    assert len(set(done.ways)) == 4
