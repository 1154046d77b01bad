"""Evaluate the variables and expressions of an LQNS file.

A file may compute its numbers from variables (the language is called SPEX). If every variable has one
value, the file is one model, and the values are put in. Variables that take several values make the file
an experiment with many models; those are refused, and so is everything that is not arithmetic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from mup.errors import ModelError
from mup.lqn.lqntext.tokens import Token, Tokens

__all__ = ["Variables"]

MAX_DEPTH = 50
"""Of brackets inside each other."""

_SUMS: dict[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: dict[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "%": math.fmod,
}

_ONE_MODEL = "give the variable one value; 'mup whatif' varies a model"


class Variables:
    """The values of the variables of a file, in the order the file gives them."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def assignments(self, tokens: Tokens) -> None:
        """Read ``$name = value`` as often as it comes.

        Raises:
            ModelError: A variable has several values, or none that can be computed.
        """
        while tokens.peek().kind == "variable":
            name = tokens.take()
            if tokens.at(","):
                tokens.error(f"{name} takes several values, one per value of another variable", name.line)
            tokens.expect("=", f"behind the variable {name.text}")
            if tokens.at("["):
                self.values[name.text] = self._only_value(tokens, name)
            elif tokens.peek().kind == "text":
                tokens.error(f"{name} is a text; only numbers can be read", name.line)
            else:
                self.values[name.text] = self._finite(tokens, name)

    def _only_value(self, tokens: Tokens, name: Token) -> float:
        """Read a list: one value is a number, several are an experiment."""
        tokens.take()
        value = self._finite(tokens, name)
        if not tokens.skip("]"):
            tokens.error(
                f"{name} takes several values: the file is many models, not one", name.line, _ONE_MODEL
            )
        return value

    def _finite(self, tokens: Tokens, name: Token) -> float:
        value = self.expression(tokens)
        if tokens.at("?", "<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            tokens.error(f"{name} depends on a condition; only + - * / % ** are computed", tokens.peek().line)
        return value

    def value(self, token: Token, tokens: Tokens) -> float:
        """Return the value of a variable.

        Raises:
            ModelError: It has none.
        """
        if token.text not in self.values:
            tokens.error(
                f"the variable {token.text} has no value",
                token.line,
                f"give it one at the top of the file, as in {token.text} = 1",
            )
        return self.values[token.text]

    def expression(self, tokens: Tokens, depth: int = 0) -> float:
        """Read an expression and return its value.

        Raises:
            ModelError: It is none, or its value is no finite number.
        """
        first = tokens.peek()
        if depth > MAX_DEPTH:
            tokens.error(f"more than {MAX_DEPTH} brackets inside each other", first.line)
        value = self._chain(tokens, _SUMS, depth)
        if not math.isfinite(value):
            tokens.error("the value is no finite number", first.line)
        return value

    def _chain(
        self, tokens: Tokens, operators: dict[str, Callable[[float, float], float]], depth: int
    ) -> float:
        def operand() -> float:
            return self._chain(tokens, _PRODUCTS, depth) if operators is _SUMS else self._power(tokens, depth)

        value = operand()
        while tokens.at(*operators):
            sign = tokens.take()
            right = operand()
            value = _computed(operators[sign.text], value, right, sign, tokens)
        return value

    def _power(self, tokens: Tokens, depth: int) -> float:
        value = self._factor(tokens, depth)
        if not tokens.at("**"):
            return value
        sign = tokens.take()
        if depth > MAX_DEPTH:
            tokens.error(f"more than {MAX_DEPTH} powers of powers", sign.line)
        return _computed(math.pow, value, self._power(tokens, depth + 1), sign, tokens)

    def _factor(self, tokens: Tokens, depth: int) -> float:
        token = tokens.peek()
        if tokens.skip("("):
            value = self.expression(tokens, depth + 1)
            tokens.expect(")", "behind the expression")
        elif token.kind == "number":
            value = float(tokens.take().text)
        elif token.kind == "variable":
            value = self.value(tokens.take(), tokens)
        elif token.kind == "name":
            if token.text == "array_create":
                tokens.error(
                    "array_create makes several values: the file is many models, not one",
                    token.line,
                    _ONE_MODEL,
                )
            tokens.error(f"the function {token.text} is not computed; only + - * / % ** are", token.line)
        else:
            tokens.fail("a number, a variable or '('")
        if tokens.at("["):
            tokens.error("elements of lists are not computed", token.line)
        return value


def _computed(
    rule: Callable[[float, float], float], left: float, right: float, sign: Token, tokens: Tokens
) -> float:
    try:
        return rule(left, right)
    except (ArithmeticError, ValueError) as error:
        place = f"{tokens.where}: line {sign.line}"
        raise ModelError(f"{left:g} {sign.text} {right:g} has no value", where=place) from error
