"""Which code can make endpoints or services."""

from __future__ import annotations

import libcst as cst
import pytest
from probing import Probe

from analyzer.static.mentions import Mentions
from analyzer.static.names import FunctionInfo

MODULE = """
import mup
from mup import EP, MS

get = lambda path: EP(path)

class Router:
    def get(self, path):
        return get(path)

router = Router()

def ping(n): return pong(n)
def pong(n): return ping(n) or router

def plain(): return other()
def other(): return plain()

class Service(MS):
    @EP("/x")
    def x(self, comm): pass

def shard():
    class Shard(MS): pass
    return Shard

def shards():
    return [shard()]
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("EP('/x')", True),
        ("mup.EP('/x')", True),
        ("mup.Client", False),
        ("router.get('/x')", True),
        ("ping(1)", True),
        ("pong(1)", True),
        ("plain()", False),
        ("Service()", False),
        ("print(1)", False),
    ],
)
def test_what_can_make_endpoints(probe: Probe, code: str, expected: bool) -> None:
    """Through any number of definitions, in circles too; a service makes no endpoints of others."""
    done = probe("return 1", MODULE)
    mentions = Mentions(done.walk.names)
    for _ in range(2):  # what is known from before changes nothing
        assert mentions.of(done.function.module, cst.parse_expression("plain()")) is False
        assert mentions.of(done.function.module, cst.parse_expression(code)) is expected


def test_functions_and_classes_around(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    mentions = Mentions(done.walk.names)
    ping = done.walk.names.scope(done.function.module)["ping"]
    assert isinstance(ping, FunctionInfo)
    assert mentions.in_function(ping)
    inside = done.of_class("Service")
    assert mentions.of(done.function.module, cst.parse_expression("x"), owner=inside)
    assert not mentions.of(done.function.module, cst.parse_expression("x"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("shard()", True),
        ("shards()", True),
        ("type('A', (MS,), {})", True),
        ("type('A', (Service,), {})", True),
        ("type(Service)", False),
        ("ping(1)", False),
    ],
)
def test_what_makes_services(probe: Probe, code: str, expected: bool) -> None:
    done = probe("return 1", MODULE)
    mentions = Mentions(done.walk.names)
    assert mentions.makes_services(done.function.module, cst.parse_expression(code)) is expected
