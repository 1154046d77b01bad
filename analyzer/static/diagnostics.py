"""What could not be analysed, where is it, and what should the developer do about it?

Codes are stable: docs/reference/diagnostics.md explains each, scripts may rely on them.
"""

from __future__ import annotations

import io
import tokenize
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mup.events.sites import Site

__all__ = ["CODES", "Diagnostic", "Diagnostics", "Severity", "decode", "render", "summary", "text_of"]

Severity = Literal["error", "warning", "info"]

CODES: dict[str, tuple[Severity, str]] = {
    "MUP001": ("error", "a file is not Python"),
    "MUP002": ("error", "a file cannot be read"),
    "MUP003": ("error", "no services were found"),
    "MUP004": ("error", "@EP outside a class that derives from MS"),
    "MUP005": ("error", "two endpoints of a service share a path or name"),
    "MUP006": ("error", "a setting or endpoint path is not known from the source"),
    "MUP007": ("error", "a class the project names was not found"),
    "MUP008": ("warning", "a service has no endpoint"),
    "MUP009": ("error", "an endpoint or service is made in a way that is not followed"),
    "MUP010": ("error", "what an operation addresses is not known from the source"),
    "MUP011": ("error", "call to a service that is not defined"),
    "MUP012": ("error", "call to an endpoint the service does not have"),
    "MUP013": ("error", "query on a database the project does not have"),
    "MUP014": ("error", "a query the runtime refuses"),
    "MUP015": ("info", "a variable of the environment is taken to be its default"),
    "MUP020": ("error", "an endpoint can end without a response"),
    "MUP021": ("error", "an endpoint can respond twice"),
    "MUP022": ("info", "an endpoint goes on working after its response"),
    "MUP023": ("warning", "an exception behind a response is answered again"),
    "MUP030": ("error", "a construct that communicates and is not analysed yet"),
    "MUP031": ("error", "a loop without a visible bound waits for an operation made before it"),
    "MUP032": ("error", "a helper that communicates calls itself"),
    "MUP033": ("error", "endpoints call each other in a circle"),
    "MUP034": ("error", "too many paths"),
    "MUP040": ("error", "get on a future of unknown origin"),
    "MUP041": ("error", "communication leaves the code that can be analysed"),
    "MUP042": ("error", "an operation its owner does not have"),
    "MUP043": ("warning", "a think time is not known from the source"),
    "MUP050": ("error", "two concurrent flows wait for the same operation"),
    "MUP051": ("warning", "a sleep in a scenario"),
    "MUP052": ("error", "a list of futures is shared with a task"),
    "MUP060": ("error", "the runtime of a service does not fit an endpoint"),
    "MUP061": ("warning", "a coroutine that nothing awaits"),
    "MUP062": ("error", "a response that is a future"),
    "MUP063": ("error", "a wait that an event loop refuses"),
    "MUP064": ("warning", "a wait that the model does not know of"),
    "MUP065": ("warning", "a semaphore or lock that the model does not know of"),
    "MUP070": ("info", "an endpoint is measured as a whole"),
    "MUP071": ("error", "the project names an endpoint that does not exist"),
    "MUP072": ("warning", "a comment for mup that says nothing"),
    "MUP099": ("error", "the analyzer itself failed"),
}
"""Severity and meaning of every code."""


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One finding.

    Attributes:
        file: Relative to the source folder; "" if it is about the whole tree.
        line: From 1; 0 if it is about the whole file.
        column: In characters, from 1.
        code: A key of ``CODES``.
        message: One sentence that names the culprit.
        hint: The remedy, "" if there is none to give.
        end_line, end_column: Behind the last character of the culprit; 0 if its end is not known.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str = ""
    end_line: int = 0
    end_column: int = 0

    @property
    def severity(self) -> Severity:
        """Return how bad it is; an error makes a model impossible."""
        return CODES[self.code][0]

    def to_json(self) -> dict[str, str | int]:
        """Return the JSON object of ``mup paths --json``."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line or self.line,
            "end_column": self.end_column or self.column,
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
        }


class Diagnostics:
    """Collects findings; the same finding (a helper inlined twice) counts once."""

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found = set(found)

    def add(
        self,
        code: str,
        message: str,
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        end_line: int = 0,
        end_column: int = 0,
        hint: str = "",
    ) -> None:
        """Record one finding."""
        self._found.add(Diagnostic(file, line, column, code, message, hint, end_line, end_column))

    def at(self, site: Site, code: str, message: str, hint: str) -> None:
        """Record one finding about an operation or loop."""
        self.add(code, message, file=site.file, line=site.line, column=site.column, hint=hint)

    def extend(self, other: Diagnostics) -> None:
        """Take over the findings of another collection."""
        self._found |= other._found

    def all(self) -> tuple[Diagnostic, ...]:
        """Return the findings in order of file and line."""
        return tuple(sorted(self._found))


def render(diagnostic: Diagnostic, root: Path) -> str:
    """Return the finding as text with the source line and carets below the culprit."""
    place = diagnostic.file or str(root)
    if diagnostic.line:
        place += f":{diagnostic.line}:{diagnostic.column}"
    lines = [f"{place}: {diagnostic.severity} {diagnostic.code}: {diagnostic.message}"]
    source = _source_line(root / diagnostic.file, diagnostic.line) if diagnostic.line else ""
    if source.strip():
        lines += _marked(source, diagnostic)
    if diagnostic.hint:
        lines.append(f"  {diagnostic.hint}")
    return "\n".join(lines)


def _marked(source: str, diagnostic: Diagnostic) -> list[str]:
    """Return a source line and the line with the carets, both cut to what fits beside the culprit."""
    start = min(diagnostic.column - 1, len(source))
    end = diagnostic.end_column - 1 if diagnostic.end_line == diagnostic.line else len(source.rstrip())
    width = max(1, min(end, len(source)) - start) if diagnostic.end_line else 1
    first = max(0, start - SHOWN) if len(source) > 2 * SHOWN else 0
    shown = source[first : first + 2 * SHOWN].rstrip()
    # Tabs keep their width only if the line of the carets repeats them.
    margin = "".join("\t" if c == "\t" else " " * _columns(c) for c in source[first:start])
    marks = "^" * sum(_columns(c) for c in source[start : min(start + width, first + 2 * SHOWN)])
    return [
        f"    {''.join(c if c.isprintable() or c == chr(9) else '?' for c in shown)}",
        f"    {margin}{marks or '^'}",
    ]


SHOWN = 120
"""Characters of a long line that are shown before and behind the place of a finding."""


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Return ``2 errors, 1 warning``."""
    parts = []
    for severity in ("error", "warning", "info"):
        count = sum(d.severity == severity for d in diagnostics)
        if count:
            parts.append(f"{count} {severity}{'s' if count > 1 and severity != 'info' else ''}")
    return ", ".join(parts) or "no findings"


def _source_line(file: Path, number: int) -> str:
    lines = (text_of(file) or "").split("\n")
    return lines[number - 1] if number <= len(lines) else ""


def text_of(file: Path) -> str | None:
    """Return the text of a file of source; None if it cannot be read."""
    try:
        return decode(file.read_bytes())
    except (OSError, SyntaxError, ValueError, LookupError):
        return None


def decode(data: bytes) -> str:
    """Return source text with newlines as line ends, decoded as the interpreter would.

    Raises:
        SyntaxError, ValueError, LookupError: It cannot be.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding, newline=None).read()
