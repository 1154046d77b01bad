"""Deploy a stored system: its project, with the database it needs."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from accuracy.fan_out import FAN_OUT_SYSTEMS, FAN_PREFIX, fan_out
from accuracy.features import SYSTEMS
from accuracy.generate import system
from accuracy.mongod import mongod
from accuracy.project import write_project
from accuracy.store import SystemFolder
from accuracy.system import LETTERS, System
from accuracy.wide import PREFIX, wide
from mup.errors import UsageError
from mup.project import Project, load_project

__all__ = ["ROOT", "TRANSLATOR", "circumstances", "deployable", "generated", "prepare", "seed_of"]

TRANSLATOR = "translator"
ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "MUP_DATABASE_DB"
SCALE = "DATA_SCALE"
"""How much data a project of the wide bed has, for ``data.py``."""


def seed_of(name: str) -> int | None:
    """Return the seed of a generated system, None for an example."""
    found = generated(name)
    return found.seed if found else None


def generated(name: str) -> System | None:
    """Return the generated system of a name (``s203``, ``a203``, ``w303``, ``f501``), None for an example."""
    if name[:1] == PREFIX and name[1:].isdigit():
        return wide(int(name[1:])) if int(name[1:]) % 100 < SYSTEMS else None
    if name[:1] == FAN_PREFIX and name[1:].isdigit():
        return fan_out(int(name[1:])) if int(name[1:]) % 100 < FAN_OUT_SYSTEMS else None
    for runtime, letter in LETTERS.items():
        if name[:1] == letter and name[1:].isdigit():
            return system(int(name[1:]), runtime)
    return None


def prepare(folder: SystemFolder) -> None:
    """Write the sources of a system, generated or copied from the examples.

    Raises:
        UsageError: There is no such system, or other sources are there already.
    """
    found = generated(folder.name)
    if found is not None:
        write_project(found, folder.project)
    elif folder.name == TRANSLATOR:
        source = ROOT / "examples" / TRANSLATOR
        if not folder.project.exists():
            ignored = shutil.ignore_patterns(".mup", "__pycache__", "model.json")
            shutil.copytree(source, folder.project, ignore=ignored)
    else:
        raise UsageError(f"no system {folder.name!r}", hint=f"a seed such as 203, or {TRANSLATOR!r}")


@contextmanager
def deployable(folder: SystemFolder, data: float = 1.0) -> Iterator[Project]:
    """Give the project of a system, ready to be started on free ports; a real database runs meanwhile.

    Args:
        folder: Of the system.
        data: Times as much data as explored.
    """
    found = generated(folder.name)
    with ExitStack() as stack:
        if found is not None and found.data:
            stack.enter_context(_environment(SCALE, f"{data:g}"))
        if found is not None and found.database == "mongod":
            stack.enter_context(_environment(VARIABLE, stack.enter_context(mongod())))
        yield load_project(folder.project).with_any_ports()


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for the processes that are started meanwhile."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def circumstances() -> dict[str, Any]:
    """Return what figures depend on beside the system: versions, machine."""
    packages = ("mup-framework", "aiohttp", "uvloop", "pymongo", "numpy")
    git = shutil.which("git")
    revision = ""
    if git is not None:
        asked = [git, "rev-parse", "--short=12", "HEAD"]
        revision = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "revision": revision,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }
