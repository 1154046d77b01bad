"""What do operators do whose operands are objects of the source tree?

``a | b`` calls ``a.__or__(b)``, or ``b.__ror__(a)``: a method like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import libcst as cst

from analyzer.static.evaluation import merge_results
from analyzer.static.expressions import combine
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Results, State
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Const,
    External,
    ObjectRef,
    Value,
    alternatives,
)
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part
from analyzer.static.walking import nodes_of

__all__ = ["Overloading"]

BINARY = {
    "Add": "add",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
    "Divide": "truediv",
    "FloorDivide": "floordiv",
    "LeftShift": "lshift",
    "MatrixMultiply": "matmul",
    "Modulo": "mod",
    "Multiply": "mul",
    "Power": "pow",
    "RightShift": "rshift",
    "Subtract": "sub",
}
COMPARING = {
    "Equal": ("__eq__", "__eq__"),
    "GreaterThan": ("__gt__", "__lt__"),
    "GreaterThanEqual": ("__ge__", "__le__"),
    "LessThan": ("__lt__", "__gt__"),
    "LessThanEqual": ("__le__", "__ge__"),
    "NotEqual": ("__ne__", "__ne__"),
}
"""The methods of the left and the right operand."""
UNARY = {"BitInvert": "__invert__", "Minus": "__neg__", "Plus": "__pos__"}
NEGATED = {"NotEqual": "Equal", "NotIn": "In"}
"""What these answer the contrary of, where an object has no method for them."""

SHOWING = ("__format__", "__str__", "__repr__")
"""What texts that objects are put into run."""
ORDERING = tuple(dict.fromkeys(method for pair in COMPARING.values() for method in pair))
ASKED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("builtins.max", "builtins.min", "builtins.sorted"), ORDERING),
    **dict.fromkeys(("builtins.all", "builtins.any"), ("__bool__", "__len__")),
    "builtins.sum": ("__add__", "__radd__"),
    "in": ("__eq__",),
}
"""Methods of the items of a container that functions run."""

NOT_IMPLEMENTED = External("builtins.NotImplemented")


class Try(NamedTuple):
    """A method that may answer for an operator, and what it is given."""

    owner: Value
    method: str
    given: tuple[Value, ...]


class Overloading(Part):
    """Calls the methods behind operators."""

    def of(self, node: cst.BaseExpression, values: Sequence[Value], state: State) -> Results | None:
        """Return what an operator does, given its operands; None if no object has a method for it."""
        if type(node) is cst.BinaryOperation:
            name = BINARY[type(node.operator).__name__]
            return self._each(node, values, state, _of_two(f"__{name}__", reflected=f"__r{name}__"))
        if type(node) is cst.UnaryOperation and type(node.operator).__name__ in UNARY:
            method = UNARY[type(node.operator).__name__]
            return self._each(node, values, state, lambda of: [Try(of[0], method, ())])
        if type(node) is cst.Comparison and len(node.comparisons) == 1:
            return self._compared(type(node.comparisons[0].operator).__name__, node, values, state)
        return None

    def augmented(
        self, operator: str, values: Sequence[Value], node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what ``left <operator>= right`` makes of both; None if no object has a method for it."""
        name = BINARY[operator]
        return self._each(
            node, values, state, _of_two(f"__i{name}__", f"__{name}__", reflected=f"__r{name}__")
        )

    def unfollowed(self, node: cst.CSTNode, values: Iterable[Value], state: State) -> None:
        """Report objects that communicate where methods of theirs run that are not followed."""
        methods: tuple[str, ...] = SHOWING
        if type(node) is cst.Comparison:
            methods = ORDERING if len(node.comparisons) > 1 else ()
        for value in values:
            self._report(value, methods, node, state)

    def unfollowed_method(self, method: FunctionInfo, node: cst.CSTNode) -> None:
        """Report a method that runs for an object that communicates, and is not followed."""
        what = f"{method.qualname!r} runs here for an object that communicates"
        self.walk.refuse(what, node, "call a method instead")

    def unfollowed_items(self, name: str, given: Iterable[Value], node: cst.CSTNode, state: State) -> None:
        """Report objects that communicate among what a function compares, adds or asks whether it is true."""
        methods = ASKED.get(name, ())
        for container in given if methods else ():
            for one in self.walk.expressions.items(container, state) or ():
                self._report(one, methods, node, state)

    def unfollowed_mappings(self, values: Iterable[Value], node: cst.CSTNode, state: State) -> None:
        """Report objects that communicate where all their items are read: ``**object``."""
        for one in values:
            self._report(one, ("keys", "__getitem__"), node, state)

    def unfollowed_iteration(self, value: Value, node: cst.CSTNode, state: State) -> None:
        """Report an object that communicates whose items are taken by what does not follow that."""
        self._report(value, ("__iter__",), node, state)

    def unfollowed_keys(self, values: Iterable[Value], node: cst.CSTNode, state: State) -> None:
        """Report objects that communicate when they are keys, members of sets, or indices."""
        for one in values:
            self._report(one, ("__hash__", "__eq__", "__index__"), node, state)

    def _report(self, value: Value, methods: Sequence[str], node: cst.CSTNode, state: State) -> None:
        for one in alternatives(value):
            if type(one) is ObjectRef and state.holds_tracked(one):
                named = filter(None, (self.walk.names.method(one.info, name) for name in methods))
                found = next((m for m in named if self._reaches(one, m, state, set())), None)
                if found is not None:
                    self.unfollowed_method(found, node)

    def _reaches(self, owner: ObjectRef, method: FunctionInfo, state: State, seen: set[str]) -> bool:
        """Return whether a method may communicate: by what it reads of objects of its class, or hands on.

        Told from names alone, and rather too much than too little.
        """
        seen.add(method.qualname)
        parameters = {one.name.value for one in nodes_of(method.node.params, (cst.Param,))}
        names = [one.value for one in nodes_of(method.node, (cst.Name,))]
        attributes = nodes_of(method.node, (cst.Attribute,))
        read = [one.attr.value for one in attributes if name_of(one.value) in parameters]
        if "super" in names or sum(name in parameters for name in names) > len(read) + len(parameters):
            return True
        known = owner.attributes(state.heap)
        for name in read:
            if name in known:
                if state.holds_tracked(known[name]) or known[name].communicates(state, self.walk):
                    return True
                continue
            found = self.walk.names.method(owner.info, name)
            if found is None or (found.qualname not in seen and self._reaches(owner, found, state, seen)):
                return True
        return False

    def _compared(
        self, name: str, node: cst.CSTNode, values: Sequence[Value], state: State
    ) -> Results | None:
        if name in COMPARING:
            own, reflected = COMPARING[name]
            results = self._each(node, values, state, _of_two(own, reflected=reflected))
        elif name == "In":
            results = self._each(node, values, state, lambda of: [Try(of[1], "__contains__", (of[0],))])
            results = results and [(after, _truth(value, after)) for after, value in results]
            if results is None:
                results = self.walk.generators.contained(values[1], node, state)
            if results is None:
                self.unfollowed_keys([values[0]], node, state)
                self.unfollowed_items("in", [values[1]], node, state)
        else:
            results = None
        if results is None and name in NEGATED:
            results = self._compared(NEGATED[name], node, values, state)
            results = results and [(after, _truth(value, after, negated=True)) for after, value in results]
        return results

    def _each(
        self,
        node: cst.CSTNode,
        values: Sequence[Value],
        state: State,
        tries: Callable[[Sequence[Value]], Sequence[Try]],
    ) -> Results | None:
        """Return what an operator does that asks some methods, for each of the operands there may be."""
        several = list(product(*map(alternatives, values)))
        found = [self._run(tries(operands), node, state) for operands in several]
        if all(one is None for one in found):
            return None
        results: Results = []
        for operands, one in zip(several, found, strict=True):
            results += [(state, _plain(node, operands, state))] if one is None else one
        return merge_results(results)

    def _run(self, tries: Sequence[Try], node: cst.CSTNode, state: State) -> Results | None:
        """Return what the first of some methods does that an object has; None if there is none."""
        for index, (owner, name, given) in enumerate(tries):
            method = self.walk.names.method(owner.info, name) if isinstance(owner, MadeObject) else None
            if method is None:
                continue
            results: Results = []
            for after, value in self.walk.functions.call_method(method, owner, given, node, state):
                if value == NOT_IMPLEMENTED:
                    results += self._run(tries[index + 1 :], node, after) or [(after, UNKNOWN)]
                else:
                    results.append((after, value))
            return results
        return None


def _of_two(*own: str, reflected: str) -> Callable[[Sequence[Value]], Sequence[Try]]:
    """Return what asks these methods of the left operand, and then one of the right one."""
    return lambda of: [*(Try(of[0], method, (of[1],)) for method in own), Try(of[1], reflected, (of[0],))]


def _plain(node: cst.CSTNode, values: Sequence[Value], state: State) -> Value:
    """Return the result for operands that are no objects with methods for it."""
    value = combine(node, values) if isinstance(node, cst.BaseExpression) else UNKNOWN
    return LOST if value.is_unknown and any(map(state.holds_tracked, values)) else value


def _truth(value: Value, state: State, *, negated: bool = False) -> Value:
    known = value.truth(state.heap)
    return UNKNOWN if known is None else Const.of(value=known is not negated)
