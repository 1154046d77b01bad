"""Functions that the class of their first argument chooses."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probe
from source_outline import HEAD, OTHERS, analyse_files, codes

from analyzer.static.dispatching import Dispatching
from analyzer.static.names import FunctionInfo

MODULE = """
from functools import singledispatch, singledispatchmethod
class Base: pass
class One(Base): pass
class Two(Base): pass
class Three(Two): pass
@singledispatch
def send(what, comm):
    raise NotImplementedError(what)
@send.register
def _(what: One, comm):
    return comm.call("B", "/b/").get()
@send.register(Two)
def _(what, comm):
    return comm.call("B", "/c/").get()
@send.register
def _(what: int | str, comm):
    return 1
@singledispatch
def quiet(what):
    raise NotImplementedError
@quiet.register
def _(what: Base):
    return 1
class Sender:
    @singledispatchmethod
    def deliver(self, what, comm):
        return comm.call("B", "/c/").get()
    @deliver.register
    def _(self, what: One, comm):
        return comm.call("B", "/b/").get()
"""


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        pytest.param("send(One(), comm)", ["callB/b/ get next"], id="class"),
        pytest.param("send(Three(), comm)", ["callB/c/ get next"], id="base-of-a-class"),
        pytest.param("send(Base(), comm)", ["raise"], id="none-registered"),
        pytest.param("send(1, comm)", ["next"], id="union-of-built-in-classes"),
        pytest.param("send(True, comm)", ["next"], id="base-of-a-built-in-class"),
        pytest.param("send(1.5, comm)", ["raise"], id="another-built-in-class"),
        pytest.param(
            "send(One() if comm.params else Two(), comm)",
            ["callB/b/ get next", "callB/c/ get next"],
            id="either-of-two",
        ),
        pytest.param(
            "send(comm.params, comm)",
            ["callB/b/ get next", "callB/c/ get next", "next", "raise"],
            id="unknown",
        ),
        pytest.param("quiet(One())", ["next"], id="without-communication"),
        pytest.param("Sender().deliver(One(), comm)", ["callB/b/ get next"], id="method"),
        pytest.param("Sender().deliver(Two(), comm)", ["callB/c/ get next"], id="method-none-registered"),
    ],
)
def test_the_class_of_the_argument_decides(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, MODULE)
    assert isinstance(done.walk.dispatching, Dispatching)
    assert done.ways == ways
    assert done.codes == []


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("send.register(Base, print)", id="by-a-call"),
        pytest.param("register = send.register", id="under-another-name"),
        pytest.param("if One:\n    @send.register\n    def other(what: Base, comm): pass", id="perhaps"),
    ],
)
def test_what_else_registers_is_not_followed(probe: Probe, more: str) -> None:
    assert probe("send(One(), comm)", MODULE + more).codes == ["MUP030"]


def test_an_implementation_may_be_in_another_module(tmp_path: Path) -> None:
    sends = """
from functools import singledispatch
class Mail: pass
@singledispatch
def send(what, comm): raise TypeError(what)
"""
    handlers = """
from sends import Mail, send
@send.register
def by_mail(what: Mail, comm): comm.call("B", "/b/").get()
"""
    service = """
import handlers
from sends import Mail, send
class A(MS):
    @EP("/a")
    def a(self, comm):
        send(Mail(), comm)
        comm.respond(1)
"""
    found = analyse_files(tmp_path, app=HEAD + service + OTHERS, sends=sends, handlers=handlers)
    assert codes(found) == []


def test_implementations_are_part_of_what_was_measured(probe: Probe) -> None:
    """Another body of a registered function is another fingerprint of what calls the function."""
    from analyzer.static.fingerprints import Fingerprints

    prints = []
    for path in ("/b/", "/c/"):
        source = MODULE.replace('what: One, comm):\n    return comm.call("B", "/b/")',
                                f'what: One, comm):\n    return comm.call("B", "{path}")')  # fmt: skip
        done = probe("send(One(), comm)", source)
        receiver = done.of_class("Base")
        assert isinstance(done.function, FunctionInfo)
        prints.append(Fingerprints(done.walk.names).of(done.function, receiver))
    assert prints[0] != prints[1]
