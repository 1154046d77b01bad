"""Whatever a random program does was predicted; what was predicted can happen if conditions are independent."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import dedent

import pytest
from program_runs import Decisions, Recorder, Run, Sites, accepts, load, run, shown, ways
from random_programs import LOOPS, SUPPORT, Line, Program, compiles, module_source, program, smaller
from repeating import repeats_after

from analyzer.static.application import Operation
from analyzer.static.application import Path as ExecutionPath
from analyzer.static.catalogue import Catalogue
from analyzer.static.diagnostics import Diagnostic, Diagnostics
from analyzer.static.execution import Execution
from analyzer.static.failures import room
from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.source import SourceTree

pytestmark = [
    pytest.mark.slow,
    # What fails in the `finally` of a generator that was dropped is ignored by Python, which says so.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ADDRESSES = {"B": {"/b/": "/b/", "/c/": "/c/"}}
PER_FILE = 25
PROGRAMS = 625
MORE = int(os.environ.get("MUP_TEST_PROGRAMS", PROGRAMS)) / PROGRAMS
BATCHES, EXACT_BATCHES, FOLDED_BATCHES = (max(1, round(batches * MORE)) for batches in (15, 4, 6))
RUNS = 14
MOST_PATHS = 150
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


class Workshop:
    """Writes programs into modules of one folder, analyses each on its own, and loads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        (self.folder / "support.py").write_text(SUPPORT, encoding="utf-8")
        self._names = Names(SourceTree(self.folder, Diagnostics()))
        self._sites = Sites(self.folder)
        self._modules = 0

    def analysed(self, programs: Sequence[Program]) -> list[Analysed]:
        """Return what becomes of some programs."""
        self._modules += 1
        name = f"app{self._modules}"
        (self.folder / f"{name}.py").write_text(module_source(programs), encoding="utf-8")
        with room():
            module = self._names.tree.module(name)
        assert module is not None
        service = self._names.scope(module)["A"]
        assert isinstance(service, ClassInfo)
        _, app = load(self.folder, "support", name)
        instance = app.A()
        results = []
        for number, one in enumerate(programs):
            function = service.bindings[f"e{number}"]
            assert isinstance(function, FunctionInfo)
            # Findings in the helpers that all programs share belong to the program that is analysed.
            findings = Diagnostics()
            execution = Execution(self._names, Catalogue(ADDRESSES, None), findings)
            with room():
                paths = execution.paths(function, service, "endpoint")
            errors = tuple(d for d in findings.all() if d.severity == "error")
            results.append(Analysed(one, paths, errors, getattr(instance, f"e{number}"), self._sites))
        return results


@pytest.fixture(autouse=True)
def few_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a program with very many paths up earlier than usual: it shows nothing that smaller ones do not."""
    for module in ("evaluation", "execution"):
        monkeypatch.setattr(f"analyzer.static.{module}.MAX_PATHS", MOST_PATHS)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A source tree for one batch: what may raise is looked for in all modules of a tree."""
    return Workshop(tmp_path)


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
        done = run(one.endpoint, Recorder(one.sites, decisions, failing))
        # With a name that is not bound it is not a program that runs.
        if not isinstance(done.ended, NameError) and not is_path(one, done):
            return decisions, failing, done
    return None


Word = tuple[tuple[object, ...], ...]
"""What the steps of an execution are to tell it from others."""


def words(operations: Sequence[Operation]) -> Iterator[Word]:
    """Yield the sequences of steps that some operations without loops stand for: choices are several."""
    if not operations:
        yield ()
        return
    head, *rest = operations
    heads: Iterable[Word] = [((head.op, head.site, head.target),)]
    if head.op == "choice":
        heads = (one for body in head.bodies for one in words(body.operations))
    for first in heads:
        for more in words(rest):
            yield (*first, *more)


def untaken(one: Analysed) -> tuple[int, list[ExecutionPath]]:
    """Return how many inputs there are, and the paths that none of them takes (none if there are too many)."""
    taken: set[Word] = set()
    number = 0
    for decisions in ways():
        number += 1
        if number > MOST_WAYS:
            return number, []
        done = run(one.endpoint, Recorder(one.sites, decisions, fresh=True))
        if isinstance(done.ended, NameError):
            return number, []
        taken.add(tuple((s.op, s.site, s.target) for s in done.steps))
    return number, [p for p in one.paths if not taken.issuperset(words(p.operations))]


def minimal(workshop: Workshop, start: Program, fails: Callable[[Analysed], bool]) -> Program:
    """Return the smallest program that can be cut out of one and still fails."""
    found, cuts = start, 0
    improved = True
    while improved and cuts < MOST_CUTS:
        improved = False
        for candidate in smaller(found):
            if not compiles(candidate):
                continue
            cuts += 1
            if fails(workshop.analysed([candidate])[0]):
                found, improved = candidate, True
                break
            if cuts >= MOST_CUTS:
                break
    return found


def report(workshop: Workshop, start: Program, seed: int) -> str:
    """Return the minimal program of a failure: source, inputs, what was observed, and the paths."""

    def fails(one: Analysed) -> bool:
        return not one.findings and unexplained(one, seed, 3 * RUNS) is not None

    smallest = minimal(workshop, start, fails)
    one = workshop.analysed([smallest])[0]
    failure = unexplained(one, seed, 3 * RUNS) or unexplained(workshop.analysed([start])[0], seed)
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


@pytest.mark.parametrize("batch", repeats_after(6, range(BATCHES)))
def test_whatever_a_program_does_is_a_path(workshop: Workshop, batch: int) -> None:
    """Random inputs and failures: the sequence of operations was predicted, site by site."""
    seeds = range(PER_FILE * batch, PER_FILE * (batch + 1))
    refused: Counter[str] = Counter()
    for seed, one in zip(seeds, workshop.analysed([program(seed) for seed in seeds]), strict=True):
        codes = {finding.code for finding in one.findings}
        assert codes <= REFUSALS, (one.findings, one.program.source())
        assert "MUP031" not in codes or one.program.used & LOOPS, one.program.source()
        refused["programs"] += bool(codes)
        if not codes and unexplained(one, seed):
            pytest.fail(report(workshop, one.program, seed))
    assert refused["programs"] <= PER_FILE // 4


@pytest.mark.parametrize("batch", repeats_after(2, range(FOLDED_BATCHES)))
def test_whatever_a_program_does_is_among_the_choices(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """The same, if everything that can be folded into a choice is."""
    monkeypatch.setattr("analyzer.static.execution.MAX_ENUMERATED", 1)
    seeds = range(1_000_000 + PER_FILE * batch, 1_000_000 + PER_FILE * (batch + 1))
    with_choices = 0
    for seed, one in zip(seeds, workshop.analysed([program(seed) for seed in seeds]), strict=True):
        with_choices += any(o.op == "choice" for path in one.paths for o in path.walk())
        if not one.findings and unexplained(one, seed):
            pytest.fail(report(workshop, one.program, seed))
    assert with_choices >= PER_FILE // 4


@pytest.mark.parametrize("batch", repeats_after(2, range(EXACT_BATCHES)))
def test_every_path_can_be_taken(workshop: Workshop, batch: int) -> None:
    """Without handlers and unknown loops, and with independent conditions, some input takes each path."""
    seeds = range(PER_FILE * batch, PER_FILE * (batch + 1))
    explored = 0
    for one in workshop.analysed([program(seed, exact=True) for seed in seeds]):
        if one.findings:
            continue
        number, missed = untaken(one)
        explored += number <= MOST_WAYS
        assert not missed, one.program.source() + "\n".join(shown(p.operations) for p in missed)
    assert explored >= PER_FILE * 3 // 4


FOUND = {
    "local-failure-behind-a-get": """
        try:
            x = comm.call("B", "/b/").get()["k"]
        except KeyError:
            comm.call("B", "/c/")
    """,
    "failing-assertion": """
        try:
            assert comm.call("B", "/b/").get()
        except AssertionError:
            comm.call("B", "/c/")
    """,
    "unpacking-fails": """
        try:
            a, b, c = comm.call("B", "/b/").get()
        except ValueError:
            comm.call("B", "/c/")
    """,
    "walrus-in-a-comprehension": """
        made = [(f := comm.call("B", p)) for p in PATHS]
        f.get()
    """,
    "reraised-by-a-base-class": """
        try:
            try:
                comm.call("B", "/b/").get()
            except Exception:
                raise
        except CallError:
            comm.call("B", "/c/")
    """,
    "reraised-by-a-tuple": """
        try:
            try:
                n = int(comm.params["n1"])
            except (CallError, ValueError):
                raise
        except ValueError:
            comm.call("B", "/c/")
    """,
    "reraised-behind-another-handler": """
        try:
            try:
                comm.call("B", "/b/").get()
            except CallError:
                try:
                    comm.query("db", "q", "c", {}).get()
                except QueryError:
                    pass
                raise
        except CallError:
            comm.call("B", "/c/")
    """,
    "finally-behind-a-failing-else": """
        try:
            pass
        except MupError:
            pass
        else:
            comm.call("B", "/b/").get()
        finally:
            comm.call("B", "/c/").get()
    """,
    "finally-inside-a-try-that-does-not-catch": """
        try:
            try:
                comm.query("db", "q", "c", {})
            finally:
                comm.call("B", "/c/").get()
        except KeyError:
            pass
    """,
    "pattern-captures-futures": """
        match (comm.call("B", "/b/"), comm.call("B", "/c/")):
            case (a, b):
                b.get()
    """,
    "pattern-does-not-match-and-the-guard-holds": """
        sure = True
        match comm.params.get("m1"):
            case "1" if sure:
                comm.call("B", "/b/")
            case _:
                comm.call("B", "/c/")
    """,
    "guard-sees-what-the-pattern-captured": """
        word = ""
        match comm.params.get("m1"):
            case word if word:
                comm.call("B", "/b/")
    """,
    "lists-added": """
        a, b = [comm.call("B", "/b/")], [comm.call("B", "/c/")]
        for f in a + b:
            f.get()
    """,
    "tuple-repeated": """
        pair = (comm.call("B", "/b/"),) * 2
        pair[1].get()
    """,
    "starred-list": """
        a = [comm.call("B", "/b/")]
        for f in [*a, comm.call("B", "/c/")]:
            f.get()
    """,
    "item-deleted": """
        d = {"b": comm.call("B", "/b/"), "c": comm.call("B", "/c/")}
        del d["b"]
        for f in d.values():
            f.get()
    """,
    "item-deleted-from-a-list": """
        paths = ["/b/", "/c/"]
        del paths[0]
        for p in paths:
            comm.call("B", p)
    """,
    "overwritten-item-keeps-its-place": """
        d = {"b": comm.call("B", "/b/"), "c": comm.call("B", "/c/")}
        d["b"] = comm.call("B", "/b/")
        for f in d.values():
            f.get()
    """,
    "equal-keys": """
        d = {comm.params.get("c1"): comm.call("B", "/b/"), comm.params.get("c2"): comm.call("B", "/c/")}
        for f in d.values():
            f.get()
    """,
    "sorted-in-reverse": """
        for p in sorted(["/b/", "/c/"], reverse=True):
            comm.call("B", p)
    """,
    "sorted-by-a-key": """
        for p in sorted(["/b/", "/c/"], key=lambda p: -ord(p[1])):
            comm.call("B", p)
    """,
    "enumerate-from-one": """
        for i, p in enumerate(PATHS, start=1):
            if i == 1:
                comm.call("B", p)
    """,
    "fails-again-when-asked-again": """
        f = comm.call("B", "/b/")
        try:
            f.get()
        except CallError:
            pass
        try:
            f.get()
        except CallError:
            comm.call("B", "/c/")
    """,
    "list-changed-between-two-tests": """
        words = comm.params["items"]
        if words:
            comm.call("B", "/b/")
            words.clear()
        if words:
            comm.call("B", "/c/")
        else:
            comm.query("db", "q", "c", {})
    """,
    "list-emptied-in-a-loop": """
        words = comm.params["items"]
        if words:
            while words:
                words.pop()
        if words:
            comm.call("B", "/b/")
        comm.call("B", "/c/")
    """,
    "list-changed-under-another-name": """
        words = comm.params["items"]
        same = words
        if words:
            same.pop()
            if not words:
                comm.call("B", "/b/")
    """,
    "helper-that-makes-the-exception": """
        def refused():
            comm.call("B", "/b/").get()
            return Refused("no")
        if comm.params.get("c1"):
            raise refused()
    """,
    "default-of-a-lambda": """
        f = comm.call("B", "/b/")
        ask = lambda f=f: f.get()
        f = comm.call("B", "/c/")
        ask()
    """,
    "default-of-a-nested-function": """
        f = comm.call("B", "/b/")
        def ask(g=f):
            return g.get()
        ask()
    """,
    "list-that-shrinks-in-its-loop": """
        fs = [comm.call("B", "/b/"), comm.call("B", "/c/")]
        for f in fs:
            f.get()
            fs.pop()
    """,
    "list-that-grows-in-its-loop": """
        paths = ["/b/"]
        for p in paths:
            comm.call("B", p)
            if len(paths) < 2:
                paths.append("/c/")
    """,
    "item-that-is-counted": """
        seen = [1, 2]
        seen[0] += 1
        if seen[0] == 2:
            comm.call("B", "/b/")
    """,
    "index-that-communicates-perhaps": """
        seen = {}
        seen[comm.call("B", "/b/").get() if comm.params.get("c1") else "x"] = 1
    """,
    "variables-as-a-dictionary": """
        f = comm.call("B", "/b/")
        locals()["f"].get()
    """,
    "lambdas-of-a-comprehension": """
        asks = [lambda: f.get() for f in [comm.call("B", "/b/"), comm.call("B", "/c/")]]
        asks[0]()
    """,
    "lambdas-with-defaults-of-a-comprehension": """
        asks = [lambda f=f: f.get() for f in [comm.call("B", "/b/"), comm.call("B", "/c/")]]
        asks[0]()
    """,
    "function-in-a-function": """
        def outer():
            def inner():
                x = comm.call("B", "/b/").get()
                return x
            y = inner()
            return y
        outer()
    """,
    "lambda-of-each-item": """
        asks = []
        for f in [comm.call("B", "/b/"), comm.call("B", "/c/")]:
            asks.append(lambda f=f: f.get())
        asks[0]()
    """,
    "consumer-fails-while-a-generator-with-finally-waits": """
        def items():
            try:
                yield comm.call("B", "/c/").get()
            finally:
                comm.call("B", "/b/")
        for v in items():
            comm.call("B", "/c/").get()
    """,
    "finally-of-a-dropped-generator-fails": """
        def items():
            try:
                yield comm.call("B", "/b/").get()
            finally:
                comm.call("B", "/c/")
                comm.call("B", "/b/")
        any(1 for v in items())
    """,
    "consumer-of-a-generator-in-a-generator-fails": """
        try:
            for v in (a.get() for a, b in support.pairs([comm.call("B", "/b/"), comm.call("B", "/b/")])):
                comm.call("B", "/c/").get()
        finally:
            pass
    """,
    "one-is-not-true": """
        n = 1
        if n is True:
            comm.call("B", "/b/")
        else:
            comm.call("B", "/c/")
    """,
}


@pytest.mark.parametrize("body", [pytest.param(dedent(b).strip(), id=name) for name, b in FOUND.items()])
def test_program_that_was_misjudged(workshop: Workshop, body: str) -> None:
    """Each was once analysed into paths that lacked one; a finding instead of paths is fine, too."""
    (one,) = workshop.analysed([Program((Line(body), Line("comm.respond(1)")))])
    ran = 0
    for failing in range(7):
        for decisions in islice(ways(), 100):
            done = run(one.endpoint, Recorder(one.sites, decisions, failing))
            ran += 1
            assert one.findings or is_path(one, done), (failing, shown(done.steps))
    assert ran >= 7
    assert {finding.code for finding in one.findings} <= {"MUP010", "MUP030", "MUP040", "MUP041"}


def test_failure_is_reported_with_a_minimal_program(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An analyzer that forgets what follows `else` is found out with a program of a few lines."""
    monkeypatch.setattr("analyzer.static.control._orelse", lambda node: ())
    for seed in range(100):
        (one,) = workshop.analysed([program(seed, {"for-known", "try", "call-and-wait", "if"})])
        if not one.findings and unexplained(one, seed):
            break
    text = report(workshop, one.program, seed)
    source = text.split("paths:")[0]
    assert "else:" in source
    assert source.count("comm.") <= 4
    assert "observed: " in text
