"""Static analysis: source code in, application and uncalibrated model out; nothing is imported or run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from analyzer.static.application import Application, ClientClass, Endpoint, Operation, Path, Service
from analyzer.static.diagnostics import Diagnostic, render
from analyzer.static.translate import PathPlan, translate, translate_with_plan

if TYPE_CHECKING:
    from analyzer.static.analysis import analyse as analyse
    from analyzer.static.projects import analyse_project as analyse_project

__all__ = [
    "Application",
    "ClientClass",
    "Diagnostic",
    "Endpoint",
    "Operation",
    "Path",
    "PathPlan",
    "Service",
    "analyse",
    "analyse_project",
    "render",
    "translate",
    "translate_with_plan",
]

# Loaded at first use: an application that is remembered takes no parser.
_HOMES = {"analyse": "analyzer.static.analysis", "analyse_project": "analyzer.static.projects"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
