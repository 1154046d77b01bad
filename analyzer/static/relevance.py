"""Which files of a folder can define services, endpoints or clients?

A class derives from the framework's only through imports: its file imports ``mup``, or imports a module
whose names come from there. So the words in a file's import statements tell whether it can matter, and files
that cannot are not even parsed. The test is made on the text and errs on the side of parsing: words of
comments and strings that look like imports count as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FRAMEWORK", "Facts", "facts", "relevant_files"]

FRAMEWORK = b"mup"

IMPORT = re.compile(rb"\b(?:import|from)\b((?:[^\n(\\]|\\\r?\n|\\)*(?:\((?:[^)#]|#[^\n]*)*\)?)?)")
"""The rest of an import statement: to the end of its line, its parenthesis or its last continuation line."""

WORD = re.compile(rb"\w+")
DEFINES = re.compile(rb"\bclass\b|@|\bEP\b|^[\w.]+(?:\(|[ \t]*=[ \t]*[\w.]+\()", re.MULTILINE)
"""Classes, decorators, endpoints; statements that call something and may be given classes of other files."""

COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
PLAIN = re.compile(rb"(?i)utf-?8|ascii|us-ascii|latin-?1|iso-?8859-?\d+|(?:cp|windows-)125\d|utf-8-sig")
"""Encodings in which ASCII letters look like ASCII letters."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the text of a file tells.

    Attributes:
        words: Of its import statements.
        relative: It may import from its own package or one above.
        defines: It may define a class, decorate something, or add to what other files define.
    """

    words: frozenset[bytes]
    relative: bool
    defines: bool


def relevant_files(root: Path, files: Iterable[Path], read: Callable[[Path], bytes | None]) -> list[Path]:
    """Return the files that have to be parsed to find every service and client.

    Args:
        root: The source folder.
        files: Those below it.
        read: Returns the content of one, None if it cannot.

    Returns:
        Files that may define something, and those nothing can be told about; in the order given.
    """
    known = {file: facts(read(file)) for file in files}
    reached = _reached(root, known)
    return [file for file, one in known.items() if one is None or (file in reached and one.defines)]


def facts(text: bytes | None) -> Facts | None:
    """Return what a text tells; None if its encoding may hide words."""
    if text is None:
        return None
    cookie = COOKIE.search(b"\n".join(text[:1000].splitlines()[:2]))
    if cookie and not PLAIN.fullmatch(cookie[1].replace(b"_", b"-")):
        return None
    words: set[bytes] = set()
    relative = False
    for statement in IMPORT.findall(text):
        words.update(WORD.findall(statement))
        relative = relative or statement.lstrip(b" \t\f\\\r\n").startswith(b".")
    return Facts(frozenset(words), relative, DEFINES.search(text) is not None)


def _reached(root: Path, files: Mapping[Path, Facts | None]) -> set[Path]:
    """Return the files that import the framework, directly or through each other."""
    users: dict[bytes, list[Path]] = {}
    inside: dict[Path, list[Path]] = {}
    for file, known in files.items():
        if known is None:
            continue
        for word in known.words:
            users.setdefault(word, []).append(file)
        if known.relative:
            for package in _packages(root, file):
                inside.setdefault(package, []).append(file)
    hidden = [file for file, known in files.items() if known is None]
    pending = [*users.get(FRAMEWORK, ()), *hidden]
    reached: set[Path] = set(pending)
    while pending:
        file = pending.pop()
        for user in _users_of(file, users, inside):
            if user not in reached:
                reached.add(user)
                pending.append(user)
    return reached


def _users_of(
    file: Path, users: Mapping[bytes, Sequence[Path]], inside: Mapping[Path, Sequence[Path]]
) -> Iterable[Path]:
    """Yield the files that may import a file: by its name, or as the package they are in."""
    package = file.stem == "__init__"
    name = file.parent.name if package else file.stem
    if name.isascii():
        yield from users.get(name.encode(), ())
    else:  # how it is written depends on the encoding
        yield from (user for found in users.values() for user in found)
    if package:
        yield from inside.get(file.parent, ())


def _packages(root: Path, file: Path) -> Iterable[Path]:
    """Yield the folders of the packages a relative import may mean."""
    folder = file.parent
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root
