"""Compile a library with any C compiler, without its headers or libraries.

Nothing of C's library is included, so a compiler alone is enough: the machine's own, or that of the package
``ziglang``, which comes as a wheel. What is compiled is the same for all versions of Python.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mup.native.libraries import ROOT, Library
from mup.native.library import library_text
from mup.native.sealing import seal

__all__ = ["NoCompilerError", "build", "compilers", "works"]

FLAGS: Final = (
    # The same bits everywhere: no operations merged, none reordered; whole numbers wrap around.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fwrapv",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
    "-w",
)
LINKING: Final = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-nostdlib",)


class NoCompilerError(Exception):
    """No compiler made the library; says what was tried, and what the last one answered."""


def compilers() -> Iterator[list[str]]:
    """Yield the commands of the C compilers there are, the one that is asked for first."""
    if chosen := os.environ.get("CC"):
        yield shlex.split(chosen)
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            yield [path]
    if importlib.util.find_spec("ziglang") is not None:
        # Not for this machine's processor alone: what is built may be carried to another one.
        yield [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]


def works(command: list[str]) -> bool:
    """Tell whether a compiler makes a shared library."""
    with tempfile.TemporaryDirectory() as folder:
        return not _compile(command, "int answer(void) { return 1; }\n", Path(folder))


def build(library: Library, folder: Path, root: Path = ROOT, *, checked: bool = False) -> Path:
    """Compile a library into a folder; return its file, which comes into being whole or not at all.

    Args:
        library: What to compile.
        folder: Where to put it; is created.
        root: Where the packages are.
        checked: Let compiled code stop at an index outside of an array.

    Raises:
        NoCompilerError: There is no compiler, or none that can.
        OSError: The folder cannot be written to.
        Refusal: A source has something that cannot be compiled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text, _ = library_text(root, library.modules, checked=checked)
    answer = ""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as scratch:
        tried = []
        for command in compilers():
            tried.append(shlex.join(command))
            answer = _compile(command, text, Path(scratch), "-O1" if checked else "-O2")
            if not answer:
                made = Path(scratch) / "made.so"
                seal(made)
                final = folder / library.file_name(root)
                made.replace(final)
                return final
    raise NoCompilerError(
        f"none of these could compile it: {', '.join(tried)}\n{answer}" if tried else "there is no C compiler"
    )


def _compile(command: list[str], text: str, scratch: Path, effort: str = "-O2") -> str:
    """Compile a text to ``made.so``; return what went wrong, "" if nothing did."""
    source, made = scratch / "text.c", scratch / "made.so"
    source.write_text(text, encoding="utf-8")
    caches = {name: str(scratch / name.lower()) for name in ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR")}
    try:
        done = subprocess.run(  # noqa: S603 - a compiler of this machine, or the one asked for
            [*command, effort, *FLAGS, *LINKING, str(source), "-o", str(made)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **caches},
        )
    except OSError as error:
        return str(error)
    if done.returncode == 0 and made.is_file():
        return ""
    return "\n".join(done.stderr.strip().splitlines()[-5:]) or f"exit code {done.returncode}"
