"""Whatever a random program does was predicted; what was predicted can happen if conditions are independent."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from program_runs import CutOffError, Decisions, Run, Sites, accepts, load, run, shown, ways
from random_programs import LOOPS, SUPPORT, Program, compiles, module_source, program, smaller

from analyzer.static.application import Path as ExecutionPath
from analyzer.static.catalogue import Catalogue
from analyzer.static.diagnostics import Diagnostic, Diagnostics
from analyzer.static.execution import Execution
from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.source import SourceTree

ADDRESSES = {"B": {"/b/": "/b/", "/c/": "/c/"}}
PER_FILE = 25
RUNS = 14
MOST_CUTS = 400


@dataclass(frozen=True)
class Analysed:
    """A program, what the analyzer said, and how to run it."""

    program: Program
    paths: tuple[ExecutionPath, ...]
    findings: tuple[Diagnostic, ...]
    endpoint: Callable[[object], None]
    sites: Sites


def analysed(folder: Path, programs: Sequence[Program]) -> list[Analysed]:
    """Write programs into one module, analyse each on its own, and load them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "support.py").write_text(SUPPORT, encoding="utf-8")
    (folder / "app.py").write_text(module_source(programs), encoding="utf-8")
    names = Names(SourceTree(folder.resolve(), Diagnostics()))
    module = names.tree.module("app")
    assert module is not None
    service = names.scope(module)["A"]
    assert isinstance(service, ClassInfo)
    _, app = load(folder, "support", "app")
    sites, instance = Sites(folder), app.A()
    results = []
    for number, one in enumerate(programs):
        function = service.bindings[f"e{number}"]
        assert isinstance(function, FunctionInfo)
        # Findings in the helpers that all programs share belong to the program that is analysed.
        findings = Diagnostics()
        paths = Execution(names, Catalogue(ADDRESSES, None), findings).paths(function, service, "endpoint")
        errors = tuple(d for d in findings.all() if d.severity == "error")
        results.append(Analysed(one, paths, errors, getattr(instance, f"e{number}"), sites))
    return results


def unexplained(one: Analysed, seed: int, runs: int = RUNS) -> tuple[Decisions, int, Run] | None:
    """Return an execution that is none of the paths, and what it was told."""
    draw = random.Random(seed)
    for number in range(runs):
        decisions = Decisions(source=draw)
        failing = 0 if number % 3 == 0 else draw.randrange(1, 9)
        done = run(one.endpoint, one.sites, decisions, failing)
        if isinstance(done.ended, NameError):
            continue  # not a program that anybody has
        # A request that an exception ends may stop in the middle of a path; at a `raise` one must end.
        raised = type(done.ended).__name__ in ("Refused", "VeryRefused")
        if not accepts(one.paths, done.steps, prefix=done.ended is not None and not raised):
            return decisions, failing, done
    return None


def minimal(folder: Path, start: Program, fails: Callable[[Analysed], bool]) -> Program:
    """Return the smallest program that can be cut out of one and still fails."""
    found, cuts = start, 0
    improved = True
    while improved and cuts < MOST_CUTS:
        improved = False
        for candidate in smaller(found):
            if not compiles(candidate):
                continue
            cuts += 1
            if fails(analysed(folder / f"cut{cuts}", [candidate])[0]):
                found, improved = candidate, True
                break
            if cuts >= MOST_CUTS:
                break
    return found


def report(folder: Path, start: Program, seed: int) -> str:
    """Return the minimal program of a failure: source, inputs, what was observed, and the paths."""

    def fails(one: Analysed) -> bool:
        return not one.findings and unexplained(one, seed, 3 * RUNS) is not None

    smallest = minimal(folder, start, fails)
    one = analysed(folder / "smallest", [smallest])[0]
    failure = unexplained(one, seed, 3 * RUNS) or unexplained(analysed(folder / "whole", [start])[0], seed)
    assert failure is not None
    decisions, failing, done = failure
    numbered = "\n".join(
        f"{i:4} {line}" for i, line in enumerate(module_source([smallest]).splitlines(), 1) if i > 10
    )
    return "\n".join(
        [
            f"program {seed} does what no path says:",
            numbered,
            f"decisions {[choice for choice, _ in decisions.taken]}, failing operation {failing or 'none'}",
            f"observed: {shown(done.steps)}, then {done.ended!r}",
            "paths:",
            *(f"  {shown(p.operations)} {p.ends}" for p in one.paths),
        ]
    )
