"""Split an LQNS text model into words with their lines.

Comments run from ``#`` to the end of a line. ``-1`` ends every list, so it is a word of its own and no
number.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from mup.errors import ModelError

__all__ = ["FORMAT_HINT", "Token", "Tokens"]

Kind = Literal["text", "end", "number", "variable", "name", "key", "infinity", "symbol", "nothing"]

FORMAT_HINT = "the file is read as an LQNS text model"

_KEYS = "fb|f|i|pu|pw[0-3]?|sys|s[0-3]?|time|usr|u[0-3]?|v[0-3]?|wv[0-3]?|w[0-3]?|x[0-3]?"
"""What a solver is asked to print is named behind ``%``."""

_TOKEN = re.compile(
    rf"""
      (?P<blank>   \s+ | \#[^\n]* | \$solver[^\n]* )
    | (?P<text>    "(?:[^"\\]|\\.)*"? )
    | (?P<end>     -1(?![\d.]) )
    | (?P<number>  (?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)? )
    | (?P<variable>\$\w+ )
    | (?P<name>    [A-Za-z_]\w* )
    | (?P<key>     %(?:{_KEYS})\b )
    | (?P<infinity>@infinity\b )
    | (?P<symbol>  ->|\*\*|==|!=|<=|>=|&&|\|\||. )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)

_SHOWN = 40
"""Characters of a word that messages repeat."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, and the line it begins on; the end of the file is of kind ``nothing``."""

    kind: Kind
    text: str
    line: int

    def __str__(self) -> str:
        if self.kind == "nothing":
            return "the end of the file"
        return repr(self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}...")


class Tokens:
    """The words of a text, read in order.

    Attributes:
        where: The name of the file, for messages.
    """

    def __init__(self, text: str, where: str, line: int = 1, hint: str = FORMAT_HINT) -> None:
        self.where = where
        self._hint = hint
        self._source = _tokens(text, line)
        self._ahead: deque[Token] = deque()

    def peek(self, distance: int = 0) -> Token:
        """Return the next word, or one a bit further, without taking it."""
        while len(self._ahead) <= distance:
            self._ahead.append(next(self._source))
        return self._ahead[distance]

    def take(self) -> Token:
        """Take the next word."""
        token = self.peek()
        if token.kind != "nothing":
            self._ahead.popleft()
        return token

    def at(self, *texts: str) -> bool:
        """Return True if the next word is one of these (a text in quotation marks is none of them)."""
        token = self.peek()
        return token.kind in ("name", "symbol", "end") and token.text in texts

    def skip(self, *texts: str) -> bool:
        """Take the next word if it is one of these, and return whether it was."""
        found = self.at(*texts)
        if found:
            self.take()
        return found

    def expect(self, text: str, what: str) -> Token:
        """Take a word that has to come now."""
        if not self.at(text):
            self.fail(f"{text!r} {what}")
        return self.take()

    def name(self, what: str) -> Token:
        """Take a name: a word, or a whole number."""
        token = self.peek()
        if token.kind != "name" and not (token.kind == "number" and token.text.isdigit()):
            self.fail(f"the name of {what}")
        return self.take()

    def fail(self, expected: str) -> NoReturn:
        """Report that something else has to come next.

        Raises:
            ModelError: Always; it has the line.
        """
        token = self.peek()
        self.error(f"expected {expected}, got {token}", token.line)

    def error(self, message: str, line: int, hint: str = "") -> NoReturn:
        """Report what is wrong on a line.

        Raises:
            ModelError: Always.
        """
        raise ModelError(message, where=f"{self.where}: line {line}", hint=hint or self._hint)


def _tokens(text: str, line: int) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        kind, word = found.lastgroup, found.group()
        if kind != "blank":
            yield Token(kind, word, line)  # type: ignore[arg-type]  # the groups are named after the kinds
        line += word.count("\n")
    while True:
        yield Token("nothing", "", line)
