"""What a service class has as endpoints, and where each of them comes from."""

from __future__ import annotations

import libcst as cst
from probing import Probe

from analyzer.static.attached import Attachments, endpoint_decorator, import_time
from analyzer.static.values import Closure

MODULE = """
from mup import EP, MS

def reader(name):
    @EP(f"/{name}")
    def read(self, comm):
        comm.respond(name)
    return read

def outside(self, comm):
    comm.respond(1)

class A(MS):
    a = reader("a")
    b = EP("/b")(outside)

    @EP("/c", name="see")
    def c(self, comm):
        comm.respond(1)

def shard(number):
    class Shard(MS):
        @EP("/get")
        def get(self, comm):
            comm.respond(number)
    Shard.__name__ = f"Shard{number}"
    return Shard

Shard7 = shard(7)
"""


def test_endpoints_of_a_class(probe: Probe) -> None:
    """In the order of its attributes; what only decorators have touched runs as the method it is."""
    done = probe("return 1", MODULE)
    attachments = Attachments(done.walk)
    info = done.of_class("A")
    found = attachments.of([info])[info]
    assert [(one.attribute, one.function.qualname, one.mark.path.python()[1]) for one in found] == [
        ("a", "reader.<locals>.read", "/a"),
        ("b", "outside", "/b"),
        ("c", "A.c", "/c"),
    ]
    assert isinstance(found[0].served, Closure)
    assert [one.served for one in found[1:]] == [None, None]
    assert [len(one.made_by) for one in found] == [1, 1, 0]
    assert {one.function for one in found} <= attachments.functions
    attachments.check_all_attached()
    assert done.codes == []


def test_services_that_functions_make(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    attachments = Attachments(done.walk)
    ((name, info),) = attachments.made_services(done.function.module)
    assert name == "Shard7"
    assert [one.attribute for one in attachments.of([info])[info]] == ["get"]


def test_decorator_of_a_method(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    method = done.of_class("A").bindings["c"]
    names, module = done.walk.names, done.function.module
    assert endpoint_decorator(names, module, method.node) is not None  # type: ignore[union-attr]
    assert endpoint_decorator(names, module, done.function.node) is None


def test_parts_that_run_when_a_statement_does() -> None:
    statement = cst.parse_statement("if A:\n    def f(): pass\n    g(1)\nelse:\n    for x in B: h = x\n")
    shown = [cst.Module([]).code_for_node(part) for part in import_time(statement)]
    assert shown == ["A", "g(1)", "B", "h = x"]
