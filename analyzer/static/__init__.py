"""Static analysis: source code in, application and uncalibrated model out; nothing is imported or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.static.application import Application, ClientClass, Endpoint, Operation, Path, Service
from analyzer.static.diagnostics import Diagnostic, render
from analyzer.static.projects import analyse_project
from analyzer.static.translate import PathPlan, translate, translate_with_plan

if TYPE_CHECKING:
    from analyzer.static.analysis import analyse as analyse

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


def __getattr__(name: str) -> Any:
    if name != "analyse":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Loaded at first use: an application that is remembered takes no parser.
    from analyzer.static.analysis import analyse  # noqa: PLC0415

    return analyse
