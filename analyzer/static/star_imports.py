"""Which names does ``from MODULE import *`` bind, for modules outside the source tree?"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

__all__ = ["exported"]

MODULES: Final = {
    *("abc", "asyncio", "collections", "collections.abc", "contextlib", "contextvars", "copy"),
    *("dataclasses", "datetime", "decimal", "enum", "functools", "inspect", "itertools", "json"),
    *("logging", "math", "operator", "os", "random", "re", "statistics", "string", "threading"),
    *("time", "types", "typing", "uuid"),
    *("mup", "mup.errors"),
}
"""Of the standard library and mup, the modules that code imports everything from.

The analyzer looks into these to see what they define; it imports nothing that a project could bring along.
"""


@cache
def exported(module: str) -> frozenset[str]:
    """Return the names that a star import of a module binds; none of a module that is not known."""
    if module not in MODULES:
        return frozenset()
    found = import_module(module)
    public = (name for name in dir(found) if not name.startswith("_"))
    return frozenset(getattr(found, "__all__", public))
