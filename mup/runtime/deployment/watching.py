"""Source files that have changed, found by their modification times."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterable
from pathlib import Path

__all__ = ["SourceWatcher", "Stamps", "stamps_of", "syntax_errors"]

Stamps = dict[Path, tuple[int, int]]


class SourceWatcher:
    """The Python files below a folder; hidden folders and virtual environments left out.

    Args:
        folder: Where to look.
        others: Files that count as well, whatever they are called.
    """

    def __init__(self, folder: Path, others: Iterable[Path] = ()) -> None:
        self._folder, self._others = folder, tuple(others)
        self._known = self._last = self._stamps()

    def changed(self) -> set[Path]:
        """Return the files written, added or removed since they were last returned.

        Nothing while files still change from one call to the next: an editor or a checkout may be half way.
        """
        last, self._last = self._last, self._stamps()
        if self._last != last:
            return set()
        known, self._known = self._known, self._last
        return {path for path, _ in known.items() ^ self._last.items()}

    def _stamps(self) -> Stamps:
        return {
            **stamps_of(self._folder),
            **{path: stamp for path in self._others if (stamp := _stamp(path))},
        }


def syntax_errors(files: Iterable[Path]) -> dict[Path, str]:
    """Return which of some Python files cannot be parsed, and what is wrong: place, reason and line."""
    found = {}
    for file in sorted(files):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(file.read_bytes(), str(file))
        except SyntaxError as error:
            line = f"\n    {error.text.strip()}" if error.text else ""
            found[file] = f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}{line}"
        except ValueError as error:
            found[file] = f"{file}: {error}"
        except OSError:
            continue  # it has gone meanwhile
    return found


def stamps_of(folder: Path) -> Stamps:
    """Return when each Python file below a folder was written, in ns since 1970, and its bytes.

    Hidden folders and virtual environments are left out.
    """
    found: Stamps = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__pycache__")) and not Path(place, name, "pyvenv.cfg").exists()
        ]
        for name in files:
            if name.endswith(".py"):
                path = Path(place, name)
                if stamp := _stamp(path):
                    found[path] = stamp
    return found


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None  # it has gone meanwhile
    return status.st_mtime_ns, status.st_size
