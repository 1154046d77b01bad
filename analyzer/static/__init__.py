"""Static analysis: source code in, application and uncalibrated model out; nothing is imported or run."""

from analyzer.static.analysis import analyse, analyse_project
from analyzer.static.application import Application, ClientClass, Endpoint, Operation, Path, Service
from analyzer.static.diagnostics import Diagnostic, render
from analyzer.static.translate import PathPlan, translate, translate_with_plan

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
