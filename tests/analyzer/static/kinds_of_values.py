"""One value of every kind, and random ones made of them."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from analyzer.static.control import lower
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.source import Module, SourceTree
from analyzer.static.values import (
    COMM,
    LOST,
    NONE,
    RACED,
    UNKNOWN,
    Awaitable,
    Chained,
    ClassValue,
    Closure,
    Const,
    CopyFuture,
    Coroutine,
    DictRef,
    EnumMember,
    ExitStack,
    External,
    FunctionValue,
    Future,
    Generator,
    Group,
    Instance,
    Leaving,
    ListRef,
    Many,
    MapValue,
    Mark,
    Marked,
    Method,
    ModuleValue,
    Namespace,
    ObjectRef,
    Partial,
    Received,
    Semaphore,
    SetRef,
    Setting,
    SharedObject,
    Slot,
    Super,
    Suppressing,
    TupleValue,
    Unknown,
    Value,
    Variants,
    Waiting,
    join,
)
from analyzer.static.walk import Context
from mup.events.sites import Site

SOURCE = """
import enum

class Color(enum.StrEnum):
    RED = "red"

class Thing:
    def own(self, x):
        return x

def same(x):
    return x

def items():
    yield 1

nested = lambda x: x

same(1)
"""


@dataclass(frozen=True)
class Zoo:
    """A small source tree, and values of every kind about it."""

    names: Names
    module: Module
    call: cst.Call
    kinds: tuple[Value, ...]


def zoo() -> Zoo:
    """Return one value of every kind, of some kinds several: with and without a future in it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "app.py").write_text(SOURCE, encoding="utf-8")
        names = Names(SourceTree(Path(folder), Diagnostics()))
        module = names.tree.module("app")
        assert module is not None
    scope = names.scope(module)
    color, thing, same, items = (scope[name] for name in ("Color", "Thing", "same", "items"))
    assert isinstance(color, ClassInfo)
    assert isinstance(thing, ClassInfo)
    assert isinstance(same, FunctionInfo)
    assert isinstance(items, FunctionInfo)
    assert isinstance(items.node, cst.FunctionDef)
    own = thing.bindings["own"]
    assert isinstance(own, FunctionInfo)
    statement = module.tree.body[-1]
    call = statement.body[0].value  # type: ignore[union-attr, index]
    assert isinstance(call, cst.Call)
    written = scope["nested"]
    assert isinstance(written, Assigned)
    assert isinstance(written.value, cst.Lambda)
    nested = FunctionInfo(module, written.value, "nested")
    future = Future(0)
    kinds = (
        UNKNOWN,
        Unknown(known_truth=True),
        LOST,
        COMM,
        NONE,
        Const.of("text"),
        Const.of(1),
        future,
        Future(1),
        CopyFuture(future, 1),
        Many(CopyFuture(future, 0)),
        Many(UNKNOWN, most=3),
        Chained((Many(CopyFuture(future, 0)), future)),
        Variants(((), ((UNKNOWN, future),))),
        TupleValue((Const.of(1), Const.of(2))),
        TupleValue((future, NONE)),
        TupleValue((ListRef(1),)),
        MapValue(((Const.of("key"), future),)),
        ListRef(1),
        DictRef(2),
        SetRef(1),
        Slot("attribute"),
        ObjectRef(3, thing),
        Received(thing),
        Namespace(ObjectRef(3, thing)),
        Suppressing((External("builtins.ValueError"), UNKNOWN)),
        ExitStack(1),
        Setting("HOST", Const.of("B")),
        Semaphore(Site("a.py", "f", 1), 2),
        SharedObject(thing, (("x", NONE),)),
        EnumMember(color, "RED", Const.of("red"), textual=True, prints_as_value=True),
        ModuleValue(module),
        External("unknown.send"),
        Waiting(same, None, (("y", NONE),), Const.of(0), (("x", future),)),
        ClassValue(thing),
        Instance(thing),
        Super(thing, thing, ObjectRef(3, thing)),
        FunctionValue(same),
        FunctionValue(own, ObjectRef(3, thing)),
        Closure(nested, None),
        Closure(nested, None, (("x", future),), reaches=True),
        Partial(FunctionValue(same), (), (("x", future),)),
        Coroutine(FunctionValue(same), (("x", future),), call),
        Awaitable("gather", (future, Future(1)), call),
        Group(4),
        RACED,
        Generator(Context(module, items), lower(items.node.body), (("x", future),), 5, reaches=True),
        Leaving("return", future),
        Mark(Const.of("/x"), Const.of(""), UNKNOWN),
        Marked(FunctionValue(same), Mark(Const.of("/x"), Const.of(""), UNKNOWN)),
        Marked(Closure(nested, None, (("x", future),), reaches=True), UNKNOWN),
        Method(future, "get"),
        Method(ListRef(1), "append"),
        join([NONE, future]),
    )
    return Zoo(names, module, call, kinds)


def random_value(draw: random.Random, kinds: tuple[Value, ...], depth: int = 2) -> Value:
    """Return a value of any kind, or one that may be any of several."""
    if depth == 0 or draw.random() < 0.5:
        return draw.choice(kinds)
    several = [random_value(draw, kinds, depth - 1) for _ in range(draw.randrange(1, 4))]
    if draw.random() < 0.7:
        return join(several)
    if draw.random() < 0.5:
        return TupleValue(tuple(several))
    if draw.random() < 0.5:
        return Partial(several[0], tuple(several[1:]))
    many = [Const.of(draw.randrange(40)) for _ in range(draw.randrange(10, 30))]
    return join([*many, *several])
