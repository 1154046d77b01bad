"""Parts of an expression, their order of evaluation, and its value given theirs.

Only pure parts of the language are here; calls, awaits, conditionals and comprehensions change what happens
next and belong to ``analyzer.static.execution``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache

import libcst as cst

from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Const,
    TupleValue,
    Value,
    alternatives,
    binary,
    compare,
    from_python,
    join,
    of_kind,
    unary,
)

__all__ = ["combine", "item_key", "literal", "operands"]


def literal(node: cst.BaseExpression) -> Value | None:
    """Return the constant an expression spells out, None if it is not a literal."""
    # Every expression is asked, and `isinstance` is slow for abstract classes like libcst's.
    if type(node) is cst.Name:
        return NAMED_CONSTANTS.get(node.value)
    if type(node) is cst.Integer or type(node) is cst.Float or type(node) is cst.SimpleString:
        return _worth(node.value)
    if type(node) is cst.ConcatenatedString:
        left, right = literal(node.left), literal(node.right)
        return None if left is None or right is None else binary("Add", left, right)
    return None


NAMED_CONSTANTS = {str(value): Const.of(value) for value in (True, False, None)}


@lru_cache(maxsize=4096)
def _worth(text: str) -> Value:
    """Return what a number or text is worth as it is written; the same ones come again and again."""
    return from_python(ast.literal_eval(text))


def operands(node: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
    """Return the expressions a pure expression evaluates, in order."""
    if type(node) is cst.BinaryOperation:
        return (node.left, node.right)
    if type(node) is cst.UnaryOperation:
        return (node.expression,)
    if type(node) is cst.Comparison:
        return (node.left, *(c.comparator for c in node.comparisons))
    if type(node) is cst.ConcatenatedString:
        return (node.left, node.right)
    parts: list[cst.BaseExpression | None] = []
    match node:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Set(elements=elements):
            return [element.value for element in elements]
        case cst.FormattedString(parts=pieces):
            return [one.expression for one in of_kind(pieces, cst.FormattedStringExpression)]
        case cst.Subscript(value=owner, slice=places):
            parts.append(owner)
            for place in places:
                match place.slice:
                    case cst.Index(value=key):
                        parts.append(key)
                    case cst.Slice(lower=lower, upper=upper, step=step):
                        parts += (lower, upper, step)
        case cst.Dict(elements=rows):
            for row in rows:
                parts += (getattr(row, "key", None), row.value)  # `**` has no key
        case cst.Yield(value=cst.From(item=value) | (cst.BaseExpression() as value)):
            parts.append(value)
    return [part for part in parts if part is not None]


def item_key(node: cst.Subscript, keys: Sequence[Value]) -> Value | None:
    """Return the key of ``owner[key]`` or ``owner[a, b]``, given the worth of its parts; None of a slice."""
    indices = [one.slice for one in node.slice]
    if not all(type(index) is cst.Index and index.star is None for index in indices):
        return None
    alone = len(indices) == 1 and type(node.slice[0].comma) is not cst.Comma
    return keys[0] if alone else TupleValue(tuple(keys))


def combine(node: cst.BaseExpression, values: Sequence[Value]) -> Value:
    """Return what a pure expression is worth, given the values of its operands.

    Lists, sets and dicts are not here: their contents live in the heap of a state.
    """
    if type(node) is cst.BinaryOperation:
        return binary(type(node.operator).__name__, values[0], values[1])
    if type(node) is cst.UnaryOperation:
        return unary(type(node.operator).__name__, values[0])
    if type(node) is cst.Comparison:
        if len(node.comparisons) == 1:
            return compare(type(node.comparisons[0].operator).__name__, values[0], values[1])
        return UNKNOWN
    if type(node) is cst.FormattedString:
        return _format(node, values)
    if type(node) is cst.ConcatenatedString:
        return binary("Add", values[0], values[1])
    return LOST if any(value.tracked() for value in values) else UNKNOWN


def _format(node: cst.FormattedString, values: Sequence[Value]) -> Value:
    """Return an f-string of constants as a constant."""
    result: Value = Const.of("")
    rest = list(values)
    for part in node.parts:
        match part:
            case cst.FormattedStringText(value=text):
                piece: Value = Const.of(_unescape(node, text))
            case cst.FormattedStringExpression(format_spec=parts, conversion=conversion, equal=None):
                spec = _spec(parts or ())
                if spec is None:
                    return UNKNOWN
                piece = join(_formatted_value(v, conversion, spec) for v in alternatives(rest.pop(0)))
            case _:
                return UNKNOWN
        result = binary("Add", result, piece)
    return result


def _spec(parts: Sequence[cst.BaseFormattedStringContent]) -> str | None:
    """Return a format specification; None if it is not constant."""
    texts = [part.value for part in of_kind(parts, cst.FormattedStringText)]
    return "".join(texts) if len(texts) == len(parts) else None


def _formatted_value(value: Value, conversion: str | None, spec: str) -> Value:
    known, constant = value.printed()
    if not known:
        return UNKNOWN
    converters: dict[str, Callable[[object], str]] = {"r": repr, "s": str, "a": ascii}
    try:
        plain = converters[conversion](constant) if conversion else constant
        return Const.of(format(plain, spec))
    except (TypeError, ValueError):
        return UNKNOWN


def _unescape(node: cst.FormattedString, text: str) -> str:
    text = text.replace("{{", "{").replace("}}", "}")
    if "\\" not in text or "r" in node.prefix.lower():
        return text
    quote = '"""' if '"' not in text else "'''"
    return str(cst.SimpleString(f"{quote}{text}{quote}").evaluated_value)
