"""Compare what endpoints do when executed with what the analyzer says.

An endpoint is modelled *right* if each of its executions is one of its paths: the whole path where the request was
completed, the beginning of one where an exception has ended it. It is *wrong* if an execution is no path, or the
endpoint is missing, and no error says so. It is *refused* if an error says so.

Paths that no execution takes are counted: they are what the model says can happen and no input has shown.
"""

from __future__ import annotations

import ast
import inspect
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import copytree

from corpus.execution import Case, Inputs, Served, execute

from analyzer.calibration.executions import Execution
from analyzer.calibration.matching import Matched, match
from analyzer.static import Application, Diagnostic, analyse
from analyzer.static.application import Path as ExecutionPath

__all__ = ["APPLICATIONS", "Expected", "Verdict", "expectations", "inputs_of", "judge"]

HERE = Path(__file__).parent
APPLICATIONS = tuple(sorted(p.stem for p in (HERE / "inputs").glob("*.py")))
ENDS = "it ends after"
"""How `match` begins to say that an execution is the beginning of a path."""


@dataclass(frozen=True)
class Verdict:
    """What is to be said of an endpoint.

    Attributes:
        label: ``APPLICATION SERVICE/path``.
        idiom: What it is an example of.
        outcome: ``right``, ``refused`` or ``wrong``.
        codes: Of the errors that refuse it.
        why: The first of them with its place, or what is wrong.
        executions: How many there were.
        completed: How many of them no exception has ended.
        sequences: How many of them did not do the same as another.
        paths: How many there are, bodies of loops and choices included.
        untaken: How many of these no execution took.
    """

    label: str
    idiom: str
    outcome: str
    codes: tuple[str, ...] = ()
    why: str = ""
    executions: int = 0
    completed: int = 0
    sequences: int = 0
    paths: int = 0
    untaken: int = 0


@dataclass(frozen=True)
class Expected:
    """What is known of an endpoint that is not modelled right.

    Attributes:
        outcome: ``refused`` or ``wrong``.
        codes: Of the errors.
        cause: In a line.
    """

    outcome: str
    codes: tuple[str, ...]
    cause: str


def expectations() -> dict[str, Expected]:
    """Return what is known of the endpoints that are not modelled right, by label."""
    table = tomllib.loads((HERE / "outcomes.toml").read_text(encoding="utf-8"))
    found: dict[str, Expected] = {}
    for cause in table["cause"]:
        for codes, labels in {"": cause.get("wrong", ()), **cause.get("refused", {})}.items():
            for label in labels:
                assert label not in found, f"{label} has two causes"
                found[label] = Expected("refused" if codes else "wrong", tuple(codes.split()), cause["is"])
    return found


def inputs_of(application: str) -> Inputs:
    """Return what is sent to an application."""
    file = HERE / "inputs" / f"{application}.py"
    spec = spec_from_file_location(f"corpus_inputs_{application}", file)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = module.INPUTS
    assert isinstance(inputs, Inputs)
    return inputs


def judge(application: str) -> Iterator[Verdict]:
    """Execute and analyse one application; yield what is to be said of each of its endpoints."""
    folder, inputs = HERE / "applications" / application, inputs_of(application)
    with tempfile.TemporaryDirectory() as logs:
        served = execute(folder, inputs, Path(logs))
    unknown = set(inputs.cases) - set(served)
    assert not unknown, f"{application} has no endpoints {sorted(unknown)}"
    analysed = analyse(folder)
    known = {e.label: e.paths for e in analysed.endpoints()}
    blamed = _blamed(folder, analysed, served)
    for label, one in served.items():
        yield _judged(
            f"{application} {label}", inputs.cases.get(label), one, known.get(label), blamed.get(label, ())
        )
    # With one of two methods missing, the other has another label.
    for label in sorted(known.keys() - served.keys() - {label.partition(" ")[0] for label in served}):
        yield Verdict(f"{application} {label}", "invented", "wrong", why="nothing serves this endpoint")


def _judged(
    label: str,
    case: Case | None,
    served: Served,
    paths: Collection[ExecutionPath] | None,
    errors: Iterable[Diagnostic],
) -> Verdict:
    idiom = "handler" if case is None else case.idiom
    first = next(iter(errors), None)
    if first is not None:
        codes = tuple(sorted({d.code for d in errors}))
        why = f"{first.code} {first.file}:{first.line} {first.message}"
        return Verdict(label, idiom, "refused", codes, why, len(served.executions))
    if paths is None:
        return Verdict(label, idiom, "wrong", why="the endpoint is missing, and there is no error")
    if not served.executions:
        return Verdict(label, idiom, "wrong", why="no request reached the endpoint")
    plans = [_Plan(path) for path in paths]
    completed = [e for e in served.executions if not e.failed]
    failed = [_own(e) for e in served.executions if e.failed]
    whole = match(plans, completed, waits=True)  # type: ignore[arg-type]  # a path is all it looks at
    begun = match(plans, failed, waits=True)  # type: ignore[arg-type]
    strange = [*whole.unmatched, *(u for u in begun.unmatched if not u.reason.startswith(ENDS))]
    counts = {
        "executions": len(served.executions),
        "completed": len(completed),
        "sequences": len({_words(e) for e in served.executions}),
        "paths": sum(path.size for path in paths),
    }
    if strange:
        words = _words(strange[0].execution)
        why = f"{len(strange)} of {len(served.executions)} executions, such as [{words}]: {strange[0].reason}"
        return Verdict(label, idiom, "wrong", why=why, **counts)
    return Verdict(label, idiom, "right", untaken=_untaken(paths, (whole, begun)), **counts)


def _own(execution: Execution) -> Execution:
    """Return an execution that failed without the answer that the framework gives then."""
    return replace(execution, steps=[s for s in execution.steps if s.op != "respond" or s.site is not None])


@dataclass(frozen=True)
class _Plan:
    """What matching looks at: a path."""

    path: ExecutionPath


def _words(execution: Execution) -> str:
    return " ".join(
        f"{s.op}{'' if s.site is None else f'@{s.site[1]}.{s.site[2]}'}"
        + (f":{execution.operations[s.seq].dest}" if s.op in ("call", "query") else "")
        for s in execution.steps
    )


def _untaken(paths: Collection[ExecutionPath], matched: Iterable[Matched]) -> int:
    """Return how many paths, and bodies of loops and choices in them, no execution took."""
    all_: set[object] = set()
    for number, path in enumerate(paths):
        all_.add(number)
        all_.update((number, *body) for body in _bodies(path, ()))
    for some in matched:
        for number, found in enumerate(some.taken):
            for one in found:
                all_.discard(number)
                for decision in one.shape.choices:
                    all_.discard((number, decision.choice, decision.body))
                for entry in one.shape.loops:
                    for body in entry.bodies:
                        all_.discard((number, entry.loop, body))
    return len(all_)


def _bodies(path: ExecutionPath, place: tuple[int, ...]) -> Iterator[tuple[object, int]]:
    """Yield the bodies of loops and choices, by where these are, as matching names them."""
    for index, operation in enumerate(path.operations):
        for number, body in enumerate(operation.bodies):
            if operation.op != "task":
                yield (place, index), number
            yield from _bodies(body, (*place, index, number))


# Which endpoints an error is about.


def _blamed(
    folder: Path, analysed: Application, served: Mapping[str, Served]
) -> dict[str, tuple[Diagnostic, ...]]:
    """Return the errors by the endpoints that they make impossible.

    Those inside the method of an endpoint are about this one. Where others are left, each endpoint is analysed
    with nothing else in the others.
    """
    spans = {label: _span(folder, one) for label, one in served.items()}
    found: dict[str, list[Diagnostic]] = {}
    shared = False
    for error in analysed.errors:
        owners = [label for label, span in spans.items() if error in span]
        shared |= len(owners) != 1
        if len(owners) == 1:
            found.setdefault(owners[0], []).append(error)
    if shared:
        found.update(_apart(folder, [label for label in served if label not in found], spans))
    return {label: tuple(errors) for label, errors in found.items() if errors}


@dataclass(frozen=True)
class _Span:
    """Where the method of an endpoint is.

    Attributes:
        file: Relative to the source folder.
        first, body, last: Lines of its start, its first statement and its end.
        around: First and last lines of the decorators beside ``@EP``.
        comm: Name of the parameter that responds.
        nested: Whether it is made by another function, which may make those of other endpoints, too.
    """

    file: str
    first: int
    body: int
    last: int
    around: tuple[tuple[int, int], ...]
    comm: str
    nested: bool

    def __contains__(self, error: Diagnostic) -> bool:
        return self.file == error.file and self.first <= error.line <= self.last


@cache
def _functions(text: str) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """Return the functions of a module, parsed once for all its endpoints."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, functions))


def _span(folder: Path, served: Served) -> _Span:
    """Return where the method of an endpoint is; if it is wrapped, where what is wrapped is."""
    function = inspect.unwrap(getattr(served.service, served.info.method))
    code = function.__code__
    file = Path(code.co_filename)
    for node in _functions(file.read_text(encoding="utf-8")):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        if first == code.co_firstlineno and node.end_lineno is not None:
            name = file.relative_to(folder).as_posix()
            marked = [d for d in node.decorator_list if ast.unparse(d).startswith("EP(")]
            others = [d for d in node.decorator_list if marked and d not in marked]
            around = tuple((d.lineno, d.end_lineno or d.lineno) for d in others)
            body = node.body[0]
            begins = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", ()))])
            comm = [*node.args.posonlyargs, *node.args.args][1].arg
            nested = "<locals>" in function.__qualname__
            return _Span(name, first, begins, node.end_lineno, around, comm, nested)
    raise AssertionError(f"{served.info.path} is served by a function without a source")


def _apart(
    folder: Path, labels: Sequence[str], spans: Mapping[str, _Span]
) -> Iterator[tuple[str, list[Diagnostic]]]:
    """Yield some endpoints with the errors that are left when nothing is in the others.

    Where several together have none, none of them has.
    """
    beside = {label: span for label, span in spans.items() if label not in labels}
    skipped = [label for label, span in beside.items() if span.nested]
    others = {span for span in beside.values() if not span.nested} - {spans[label] for label in labels}
    errors = [e for e in _without(folder, others, skipped).errors if not any(e in span for span in others)]
    assert all(error.code != "MUP001" for error in errors), f"{labels} alone are not Python"
    if not errors or len(labels) < 2:
        yield from ((label, errors) for label in labels)
        return
    for half in (labels[: len(labels) // 2], labels[len(labels) // 2 :]):
        yield from _apart(folder, half, spans)


def _without(folder: Path, others: Iterable[_Span], skip: Collection[str]) -> Application:
    """Analyse an application some of whose endpoints do nothing but respond, or are not followed."""
    with tempfile.TemporaryDirectory() as copy:
        root = Path(copy) / "app"
        copytree(folder, root)
        for span in others:
            lines = (root / span.file).read_text(encoding="utf-8").splitlines()
            first = lines[span.body - 1]
            indent = first[: len(first) - len(first.lstrip())]
            nothing = [""] * (span.last - span.body)
            lines[span.body - 1 : span.last] = [f"{indent}{span.comm}.respond(None)", *nothing]
            for low, high in span.around:
                lines[low - 1 : high] = [""] * (high - low + 1)
            (root / span.file).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return analyse(root, skip=skip)
