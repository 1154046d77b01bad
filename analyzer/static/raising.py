"""Which local work raises nothing?

Inside ``try`` local work may raise anything, which makes a way into the handlers. Where it cannot, such a way
would be an invention, and behind a response an error: a second response that never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

import libcst as cst

from analyzer.static.expressions import literal, operands
from analyzer.static.names import Names
from analyzer.static.source import Module
from analyzer.static.values import UNKNOWN, Awaitable, Future, ListRef, Method, Value, alternatives, of_kind

__all__ = ["only_waits", "raises_nothing"]

CLOCKS = {f"time.{name}" for name in ("monotonic", "perf_counter", "process_time", "time")}

QUIET = CLOCKS | {"builtins.print"}
QUIET |= {
    f"logging.{owner}{level}"
    for owner in ("", "getLogger.")
    for level in ("critical", "debug", "error", "exception", "info", "log", "warning")
}
"""Functions that raise nothing, whatever they are given: those of ``logging`` report their own mistakes."""


QUIET_METHODS = {"append"}
"""Methods of lists that raise nothing."""


def only_waits(
    node: cst.BaseExpression, local: Mapping[str, Value], keeps: Callable[[cst.BaseExpression], bool]
) -> bool:
    """Return whether an expression waits for a future in a variable, and at most puts what that gives away.

    What the wait raises is noted where it is, and nothing else is raised.

    Args:
        node: The expression: ``future.get()`` or ``await future``, also as ``op()`` where that is its method,
            and as what a list or an object is given.
        local: Local variables.
        keeps: Whether calling something only makes an object that keeps what it is given.
    """
    match node:
        case cst.Call(func=cst.Name(value=name), args=()):
            return all(map(_is_wait, alternatives(local.get(name, UNKNOWN))))
        case (
            cst.Await(expression=cst.Name(value=name))
            | cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="get")), args=())
        ):
            return all(isinstance(one, Awaitable | Future) for one in alternatives(local.get(name, UNKNOWN)))
        case cst.Call(func=function, args=(cst.Arg(value=given, star=""),)):
            return (_is_quiet_method(function, local) or keeps(function)) and only_waits(given, local, keeps)
    return False


def _is_wait(value: Value) -> bool:
    """Return whether calling a value waits for a future."""
    return type(value) is Method and value.name == "get" and isinstance(value.owner, Future)


def _is_quiet_method(node: cst.BaseExpression, local: Mapping[str, Value]) -> bool:
    """Return whether this is a method of a list in a local variable that raises nothing."""
    match node:
        case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)):
            return name in QUIET_METHODS and type(local.get(owner)) is ListRef
    return False


def raises_nothing(node: cst.BaseExpression, local: Container[str], module: Module, names: Names) -> bool:
    """Return whether evaluating an expression raises nothing.

    Args:
        node: The expression: a constant, a local variable, a tuple or text (without formats) of these, a
            comparison of them by identity, a difference of times, or a call of a function that is known to
            raise nothing.
        local: The local variables that are bound.
        module: Where it stands.
        names: Meaning of names in the source tree.
    """
    if literal(node) is not None:
        return True
    if type(node) is cst.Name:
        return node.value in local
    if type(node) is cst.Call:
        given = [argument.value for argument in node.args if not argument.star]
        name = names.library_name(module, node.func)
        if name == "time.sleep":
            return all(isinstance(one, cst.Integer | cst.Float) for one in given)
        known = len(given) == len(node.args) and name in QUIET
        return known and all(raises_nothing(one, local, module, names) for one in given)
    if type(node) is cst.Comparison:
        known = all(type(one.operator) in (cst.Is, cst.IsNot) for one in node.comparisons)
    elif type(node) is cst.BinaryOperation:
        left = node.left
        known = type(left) is cst.Call and names.library_name(module, left.func) in CLOCKS
    elif type(node) is cst.FormattedString:
        known = all(one.format_spec is None for one in of_kind(node.parts, cst.FormattedStringExpression))
    else:
        known = type(node) is cst.Tuple
    return known and all(raises_nothing(one, local, module, names) for one in operands(node))
