"""Attributes whose names a program makes of texts: ``getattr(self, f"get_{kind}")``."""

from __future__ import annotations

import libcst as cst

from analyzer.static.making import PLAIN_BASES
from analyzer.static.names import ClassInfo, Names, mup_name
from analyzer.static.values import ClassValue, External

__all__ = ["attributes_like", "text_affixes"]

MOST = 16
"""Methods that one text may stand for: as many values as an unknown one stands for, too."""


def text_affixes(node: cst.BaseExpression) -> tuple[str, str] | None:
    """Return what a text that is made begins and ends with; None if it begins with nothing that is known."""
    match node:
        case cst.FormattedString(parts=[cst.FormattedStringText(value=begin), *rest]):
            end = rest[-1].value if rest and isinstance(rest[-1], cst.FormattedStringText) else ""
        case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
            begin, end = _constant(left), _constant(right)
        case _:
            return None
    return (begin, end) if begin.isidentifier() and (not end or f"_{end}".isidentifier()) else None


def _constant(node: cst.BaseExpression) -> str:
    match node:
        case cst.SimpleString(evaluated_value=str(value)):
            return value
    return ""


def attributes_like(info: ClassInfo, begin: str, end: str, names: Names) -> list[str] | None:
    """Return the attributes of a class whose names begin and end like this; None if that is not known.

    It is not where a base is not in the source, where code sets attributes whose names its text does not
    tell, or attributes of such a name of other objects, and where there are too many. Names that Python gives
    a meaning (``__class__``) are left out: no program makes them of a text that comes with a request.
    """
    found: dict[str, None] = {}
    for base in names.mro(info):
        if not isinstance(base, ClassInfo):
            if base.name not in PLAIN_BASES and mup_name(base) not in ("MS", "Client"):
                return None
            continue
        known = (names.dotted(base.module, one.value) for one in base.node.bases)
        if base.set_by_name or not all(isinstance(one, ClassValue | External) for one in known):
            return None
        found |= dict.fromkeys([*base.bindings, *base.set_by_methods, *base.annotated])
    if names.sets_anything():
        return None
    fitting = [n for n in found if n.startswith(begin) and n.endswith(end) and len(n) >= len(begin + end)]
    fitting = [name for name in fitting if not name.startswith("__")]
    elsewhere = any(n.startswith(begin) and n.endswith(end) for n in names.attributes_assigned())
    return None if elsewhere or len(fitting) > MOST else fitting
