"""Code outside of the source tree that changes nothing of what it is given."""

from __future__ import annotations

import libcst as cst

__all__ = ["READING_METHODS", "READING_MODULES", "called_name"]

READING_MODULES = {
    "asyncio",
    "base64",
    "builtins",
    "copy",
    "datetime",
    "functools",
    "hashlib",
    "html",
    "itertools",
    "json",
    "logging",
    "math",
    "mup",
    "operator",
    "re",
    "statistics",
    "string",
    "time",
    "typing",
    "urllib",
    "uuid",
}
"""Nothing in these changes whether what it is handed is empty."""

READING_METHODS = {
    "casefold",
    "copy",
    "count",
    "critical",
    "debug",
    "decode",
    "encode",
    "endswith",
    "error",
    "exception",
    "find",
    "format",
    "get",
    "index",
    "info",
    "isalnum",
    "isalpha",
    "isdecimal",
    "isdigit",
    "issubset",
    "items",
    "join",
    "keys",
    "lower",
    "lstrip",
    "partition",
    "replace",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "union",
    "upper",
    "values",
    "warning",
}
"""Methods of unknown objects that change nothing: those of texts, looking into containers, writing logs."""


def called_name(node: cst.CSTNode) -> str:
    """Return the name of the method that is called, "" if it is none."""
    function = node.func if type(node) is cst.Call else node
    return function.attr.value if type(function) is cst.Attribute else ""
