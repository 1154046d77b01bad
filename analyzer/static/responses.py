"""What an endpoint does after its response.

Not an error: the caller has its answer, and the model has a second phase. But the worker is held until the
method returns, which few people expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.static.application import Operation, Path
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import FunctionInfo

__all__ = ["report_second_phase"]


def report_second_phase(function: FunctionInfo, paths: Iterable[Path], diagnostics: Diagnostics) -> None:
    """Report every response that work follows, once, with the first thing that does."""
    found: dict[Operation, str] = {}
    for path in paths:
        for response, work in _responses(path):
            if work:
                found.setdefault(response, work)
    for response, work in found.items():
        what = f"{function.qualname!r} goes on after this response: {work}"
        hint = "the worker is held until the method returns; the model has this as a second phase"
        diagnostics.at(response.site, "MUP022", what, hint)


def _responses(path: Path) -> Iterator[tuple[Operation, str]]:
    """Yield the responses of a path, each with the first thing that follows it."""
    for index, operation in enumerate(path.operations):
        if operation.op == "respond":
            yield operation, _work_after(path, index)
        for body in operation.bodies:
            for response, work in _responses(body):
                yield response, work or _work_after(path, index)


def _work_after(path: Path, index: int) -> str:
    """Return the first thing a path does after an operation, "" if that was the last."""
    for later in range(index + 1, len(path.operations) + 1):
        if line := path.local_lines[later]:
            return f"local work from line {line} on"
        # Another response is an error of its own.
        if later < len(path.operations) and path.operations[later].op != "respond":
            operation = path.operations[later]
            return f"{operation.op} {operation.target}".strip() + f" in line {operation.site.line}"
    return ""
