"""Whatever a random program does was predicted; what was predicted can happen if conditions are independent."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from program_runs import CutOffError, Decisions, Run, Sites, accepts, load, run, shown, ways
from random_programs import LOOPS, SUPPORT, Line, Program, compiles, module_source, program, smaller

from analyzer.static.application import Path as ExecutionPath
from analyzer.static.catalogue import Catalogue
from analyzer.static.diagnostics import Diagnostic, Diagnostics
from analyzer.static.execution import Execution
from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.source import SourceTree

ADDRESSES = {"B": {"/b/": "/b/", "/c/": "/c/"}}
BATCHES, PER_FILE = 42, 25
EXACT_BATCHES = 10
RUNS = 14
MOST_WAYS = 3000
MOST_CUTS = 400

REFUSALS = {"MUP031", "MUP034", "MUP040", "MUP041"}
"""Codes a random program may get; MUP031 only with a loop without a visible bound."""


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


def is_path(one: Analysed, done: Run) -> bool:
    """Return whether an execution is one of the paths.

    A request that an exception ends may stop in the middle of one; at a ``raise`` of the program one must end.
    """
    raised = type(done.ended).__name__ in ("Refused", "VeryRefused")
    return accepts(one.paths, done.steps, prefix=done.ended is not None and not raised)


def unexplained(one: Analysed, seed: int, runs: int = RUNS) -> tuple[Decisions, int, Run] | None:
    """Return an execution that is none of the paths, and what it was told."""
    draw = random.Random(seed)
    for number in range(runs):
        decisions = Decisions(source=draw)
        failing = 0 if number % 3 == 0 else draw.randrange(1, 9)
        done = run(one.endpoint, one.sites, decisions, failing)
        # With a name that is not bound it is not a program that anybody has.
        if not isinstance(done.ended, NameError) and not is_path(one, done):
            return decisions, failing, done
    return None


def untaken(one: Analysed) -> tuple[int, list[ExecutionPath]]:
    """Return how many inputs there are, and the paths that none of them takes (none if there are too many)."""
    taken: set[tuple[object, ...]] = set()
    number = 0
    for decisions in ways():
        number += 1
        if number > MOST_WAYS:
            return number, []
        done = run(one.endpoint, one.sites, decisions, fresh=True)
        if isinstance(done.ended, NameError):
            return number, []
        taken.add(tuple((s.op, s.site, s.target) for s in done.steps))
    return number, [p for p in one.paths if tuple((o.op, o.site, o.target) for o in p.operations) not in taken]


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


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_a_program_does_is_a_path(tmp_path: Path, batch: int) -> None:
    """Random inputs and failures: the sequence of operations was predicted, site by site."""
    seeds = range(PER_FILE * batch, PER_FILE * (batch + 1))
    refused: Counter[str] = Counter()
    for seed, one in zip(seeds, analysed(tmp_path, [program(seed) for seed in seeds]), strict=True):
        codes = {finding.code for finding in one.findings}
        assert codes <= REFUSALS, (one.findings, one.program.source())
        assert "MUP031" not in codes or one.program.used & LOOPS, one.program.source()
        refused["programs"] += bool(codes)
        if not codes and unexplained(one, seed):
            pytest.fail(report(tmp_path, one.program, seed))
    assert refused["programs"] <= PER_FILE // 4


@pytest.mark.parametrize("batch", range(EXACT_BATCHES))
def test_every_path_can_be_taken(tmp_path: Path, batch: int) -> None:
    """Without handlers and unknown loops, and with independent conditions, some input takes each path."""
    seeds = range(PER_FILE * batch, PER_FILE * (batch + 1))
    explored = 0
    for one in analysed(tmp_path, [program(seed, exact=True) for seed in seeds]):
        if one.findings:
            continue
        number, missed = untaken(one)
        explored += number <= MOST_WAYS
        assert not missed, one.program.source() + "\n".join(shown(p.operations) for p in missed)
    assert explored >= PER_FILE * 3 // 4
