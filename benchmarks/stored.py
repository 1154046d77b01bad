"""Results of a long benchmark by key, in a file of JSON lines: stopped and started again it goes on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from mup.errors import MupError

__all__ = ["Store", "add_results", "run_resumable"]

FOLDER = Path(__file__).resolve().parent / "results"
"""Where benchmarks keep their results unless told otherwise."""


def add_results(parser: argparse.ArgumentParser, name: str) -> None:
    """Let users say in which file a benchmark keeps its results.

    Args:
        parser: Gets the option.
        name: Of the file they are in otherwise.
    """
    parser.add_argument(
        "--results", type=Path, default=FOLDER / name, help="where to go on [default: %(default)s]"
    )


def run_resumable(main: Callable[[], int]) -> NoReturn:
    """Run a benchmark that goes on where it ended; end with its exit status. Errors and Ctrl-C take a line.

    Args:
        main: The benchmark.
    """
    try:
        sys.exit(main())
    except MupError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        sys.exit(130)


class Store:
    """Results by key; in a file if there is one.

    Args:
        path: The file; None = nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Any] = {}
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            text = path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                path.write_text(whole, encoding="utf-8")  # the last line was cut off with its writer
            self._known = {entry["key"]: entry["value"] for entry in map(json.loads, whole.splitlines())}

    def get(self, key: str) -> Any:
        """Return a result, None if there is none yet."""
        return self._known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a result."""
        self._known[key] = value
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
