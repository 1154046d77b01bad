"""What do the operators of the language, and methods of texts, make of constants?

Both compute only what is cheap: source code may say ``10 ** 10 ** 10``.
"""

from __future__ import annotations

import operator
import re
import string
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from typing import Any

from analyzer.static.values.constants import Const, answer, negated
from analyzer.static.values.containers import TupleValue, tuple_of
from analyzer.static.values.value import UNKNOWN, Value, alternatives, any_of, join, of_kind

__all__ = ["binary", "compare", "from_python", "text_method", "unary"]

MAX_TEXT = 10_000
"""Longer constants are not computed: no destination is that long."""

MAX_BITS = 4_000
"""Larger numbers are not computed; the interpreter refuses to write them as text."""

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Power": operator.pow,
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}


def _equal(one: object, other: object) -> bool:
    """Return whether two constants are equal.

    Raises:
        TypeError: Two sequences with the same items: whether both are tuples, lists or ranges is not known.
    """
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        if all(item in other for item in one):
            raise TypeError
        return False
    return one == other


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": _equal,
    "NotEqual": lambda a, b: not _equal(a, b),
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
    # Of constants; for None, the use that matters, it is the same.
    "Is": lambda a, b: type(a) is type(b) and _equal(a, b),
    "IsNot": lambda a, b: type(a) is not type(b) or not _equal(a, b),
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}

_UNARY: dict[str, Callable[[Any], Any]] = {
    "Minus": operator.neg,
    "Plus": operator.pos,
    "BitInvert": operator.invert,
}


def _apply(function: Callable[..., Any], *values: Value) -> Value:
    """Apply a pure function to every combination of constants; anything else is unknown."""
    results: list[Value] = []
    for combination in product(*map(alternatives, values)):
        arguments = [value.python() for value in combination]
        if not all(known for known, _ in arguments):
            return UNKNOWN
        try:
            result = function(*(value for _, value in arguments))
        except (TypeError, ValueError, ArithmeticError, LookupError):
            return UNKNOWN
        results.append(from_python(result))
    return join(results)


def from_python(value: object) -> Value:
    """Return the abstract value of a plain Python one; one that is too large is not known."""
    match value:
        case None | float():
            return Const.of(value)
        case str() | bytes() if len(value) <= MAX_TEXT:
            return Const.of(value)
        case int() if value.bit_length() <= MAX_BITS:
            return Const.of(value)
        case range():
            return _numbers(value)
        case tuple() | list() if len(value) <= MAX_TEXT:
            return TupleValue(tuple(map(from_python, value)))
    return UNKNOWN


@lru_cache(maxsize=64)
def _numbers(value: range) -> Value:
    """Return a range; inside of loops the same one is asked for again and again."""
    # Not len(range(...)), which has a limit of its own.
    if (value.stop - value.start) // value.step > MAX_TEXT:
        return UNKNOWN
    return TupleValue(tuple(Const.of(number) for number in value))


def _affordable(name: str, left: Value, right: Value) -> bool:
    """Refuse arithmetic whose result would not fit: source code may say ``10 ** 10 ** 10``."""
    ones, others = alternatives(left), alternatives(right)
    if name == "Modulo":
        texts = of_kind((one.python()[1] for one in ones), str)
        return all(map(_PLAIN_TEMPLATE.fullmatch, texts))
    if name == "Multiply":
        # A text or tuple becomes that many times as long; numbers are small already.
        return all(
            _length(a) * _amount(b) + _length(b) * _amount(a) <= MAX_TEXT for a in ones for b in others
        )
    if name in ("Power", "LeftShift"):
        return all(_amount(v) <= MAX_TEXT for v in (*ones, *others))
    return True


_PLAIN_TEMPLATE = re.compile(r"(?:[^%]|%(?:\(\w*\))?[%sdr])*", re.DOTALL)
"""For ``%``: values as they are; a width could be a billion."""


def _length(value: Value) -> int:
    if isinstance(value, TupleValue):
        return len(value.values)
    text = value.python()[1]
    return len(text) if isinstance(text, str | bytes) else 0


def _amount(value: Value) -> float:
    number = value.python()[1]
    return abs(number) if isinstance(number, int | float) else 0


def binary(name: str, left: Value, right: Value) -> Value:
    """Return ``left <operator> right``; ``name`` is libcst's name of the operator."""
    if name == "Add" and isinstance(left, TupleValue) and isinstance(right, TupleValue):
        return tuple_of(left.values + right.values)
    function = _BINARY.get(name)
    if function is None or not _affordable(name, left, right):
        return UNKNOWN
    return _apply(function, left, right)


def compare(name: str, left: Value, right: Value) -> Value:
    """Return the comparison as a constant, or unknown."""
    if name in ("Is", "IsNot", "Equal", "NotEqual"):
        # A future is never None, so `if future is not None` tells the two apart.
        same = left.same(right)
        if same is not None:
            return Const.of(same is (name in ("Is", "Equal")))
    if name in ("In", "NotIn") and isinstance(right, TupleValue):
        found = any_of([compare("Equal", left, item).truth({}) for item in right.values])
        return answer(None if found is None else found is (name == "In"))
    return _apply(_COMPARE[name], left, right) if name in _COMPARE else UNKNOWN


def unary(name: str, value: Value) -> Value:
    """Return ``<operator> value``."""
    if name == "Not":
        return negated(value.truth({}))
    return _apply(_UNARY[name], value) if name in _UNARY else UNKNOWN


TEXT_METHODS = {
    "capitalize",
    "casefold",
    "count",
    "endswith",
    "find",
    "format",
    "isalpha",
    "isdigit",
    "join",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
}


def text_method(name: str, receiver: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """Return the result of a pure method of a constant text, or unknown."""
    if name not in TEXT_METHODS:
        return UNKNOWN
    if not all(a.python()[0] for a in (*arguments, *keywords.values())):
        return UNKNOWN
    plain = [a.python()[1] for a in arguments]
    named = {key: a.python()[1] for key, a in keywords.items()}
    return _apply(lambda text: _text_method(name, text, plain, named), receiver)


def _characters(arguments: Iterable[object]) -> int:
    """Return how much text there is in some arguments, and in tuples among them."""
    return sum(
        len(one) if isinstance(one, str) else 1 + _characters(one) if isinstance(one, tuple) else 1
        for one in arguments
    )


_NOT_KNOWN = object()
_PLAIN_FIELD = re.compile(r"\w*")
MAX_PRODUCT = 1_000_000
"""Characters a text may have before it is known how many it has."""


def _text_method(name: str, text: str, arguments: list[Any], keywords: dict[str, Any]) -> object:
    """Call a method of a text; the result is not known if it could be enormous.

    Raises:
        TypeError, ValueError, LookupError: As the method does.
    """
    if name == "format":
        fields = [(field, spec) for _, field, spec, _ in string.Formatter().parse(text) if field is not None]
        # A width could be a billion, and `{0.x}` asks an object.
        if any(spec or not _PLAIN_FIELD.fullmatch(field) for field, spec in fields):
            return _NOT_KNOWN
    if (
        name in ("join", "replace")
        and (len(text) + 1) * (_characters([*arguments, *keywords.values()]) + 1) > MAX_PRODUCT
    ):
        return _NOT_KNOWN
    if name == "zfill" and any(isinstance(one, int) and one > MAX_TEXT for one in arguments):
        return _NOT_KNOWN
    return getattr(text, name)(*arguments, **keywords)
