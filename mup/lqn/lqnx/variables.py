"""Numbers behind the variables of an lqnx file.

A file may have ``<parameters>``: assignments in the language of LQNS's text models. Where a number stands,
``$x`` is then the value of x.
"""

from __future__ import annotations

from mup.lqn.lqntext.expressions import Variables
from mup.lqn.lqntext.tokens import Tokens
from mup.lqn.lqnx.elements import Element
from mup.lqn.lqnx.losses import number_text
from mup.lqn.lqnx.reading import NUMBERS

__all__ = ["put_in_values"]

_HINT = "<parameters> holds assignments such as $x = 2 * $y"


def put_in_values(root: Element, where: str) -> None:
    """Replace the variables of a file by their values; those that have none stay.

    Raises:
        ModelError: An assignment is wrong, or gives a variable several values.
    """
    variables = Variables()
    for block in root.all("parameters"):
        tokens = Tokens(block.content, where, block.line, _HINT)
        variables.assignments(tokens)
        if tokens.peek().kind != "nothing":
            tokens.fail("a variable and '='")
    if not variables.values:
        return
    for element in root.walk():
        for name in NUMBERS.intersection(element.attributes):
            value = variables.values.get(element.attributes[name].strip())
            if value is not None:
                element.attributes[name] = number_text(value)
