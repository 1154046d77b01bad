"""What objects do."""

from __future__ import annotations

from probing import Probe

from analyzer.static.values import Const, Future
from analyzer.static.values.objects import ClassValue, ObjectRef, SharedObject

MODULE = "class Box:\n    def __init__(self, x=1):\n        self.x = x\nBOX = Box(2)\n"


def test_an_object_of_a_request_has_its_attributes_in_the_heap(probe: Probe) -> None:
    done = probe("return Box(comm.call('B', '/b/'))", MODULE)
    box = done.value
    assert isinstance(box, ObjectRef)
    assert box.attributes(done.state.heap) == {"x": Future(0)}
    changed = box.with_attribute("x", Const.of(3), done.state)
    assert box.attributes(changed.heap) == {"x": Const.of(3)}
    assert box.has("x", done.state, done.walk)
    assert not box.has("y", done.state, done.walk)


def test_an_object_of_the_module_has_what_it_was_made_with(probe: Probe) -> None:
    done = probe("return BOX.x", MODULE)
    shared = done.in_module("BOX")
    assert isinstance(shared, SharedObject)
    assert shared.own == (("x", Const.of(2)),)
    assert done.value == Const.of(2)
    assert shared.instance_of(ClassValue(done.of_class("Box")), done.walk) is True
