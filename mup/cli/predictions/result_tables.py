"""Tables of ``mup simulate``, one per kind of element, from the result's JSON.

The documents of all engines have one shape, so they share the tables; an estimate has no intervals and
fewer figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mup.cli.output.display import say
from mup.cli.output.figures import interval
from mup.cli.output.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["SHOWN", "print_result"]

SHOWN = 25
"""Rows of a table unless all are asked for."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Column:
    """A heading with its unit, where the figure is, and the factor from the unit of the JSON."""

    heading: str
    path: tuple[str, ...]
    factor: float = 1.0

    def of(self, element: Document) -> Any:
        """Return the figure; None if it does not exist."""
        found: Any = element
        for name in self.path:
            found = found.get(name) if found is not None else None
        return found


def _time(what: str, *path: str) -> _Column:
    return _Column(f"{what} ms", path, 1e3)


_RATE = _Column("throughput 1/s", ("throughput",))
_SHARE = _Column("utilization %", ("utilization",), 100)
_BUSY = (_Column("busy threads", ("busy",)), _Column("waiting requests", ("queue",)))
_TIMES = (
    _time("response time", "response_time"),
    *(_time(p, "response_time", p) for p in ("p50", "p90", "p95", "p99")),
)

_TABLES: tuple[tuple[str, str, tuple[_Column, ...]], ...] = (
    ("tasks", "task", (_RATE, _SHARE, *_BUSY)),
    ("replicas", "replica", (_SHARE, *_BUSY)),
    ("entries", "entry", (_RATE, *_TIMES)),
    ("processors", "processor", (_SHARE, _Column("cores", ("cores",)))),
    ("calls", "call", (_RATE, _time("waiting for a thread", "waiting"))),
    ("joins", "join", (_RATE, _time("fork to join", "delay"))),
    (
        "activities",
        "activity",
        (
            _RATE,
            _time("service time", "service_time"),
            _time("waiting for the processor", "processor_waiting"),
        ),
    ),
)


def print_result(out: Console, document: Document, *, everything: bool) -> None:
    """Print all figures of a result.

    Args:
        out: Where.
        document: The result's JSON; of an estimate, too.
        everything: Print long tables whole.
    """
    cycle = (_RATE, *_TIMES, _time("with think time", "cycle_time"))
    _print(out, "cycle of a client", [("", document["cycle"])], "", cycle)
    clients = {n: t for n, t in document["tasks"].items() if t.get("response_time") is not None}
    if len(clients) > 1:
        _print(out, "cycles by kind of client", list(clients.items()), "clients", cycle)
    for kind, heading, columns in _TABLES:
        group = _replicas(document) if kind == "replicas" else document.get(kind, {})
        rows = list(group.items())
        shown = rows if everything else _most(rows, columns)
        if rows:
            _print(out, kind, shown, heading, columns)
        if len(shown) < len(rows):
            weight = "time" if columns[1].factor == 1e3 else "use"
            say(
                out,
                f"  the {len(shown)} of {len(rows)} {kind} with the most {weight}; --all prints every one",
            )


def _replicas(document: Document) -> dict[str, Document]:
    """Return the replicas of all tasks, named ``TASK 1``, ..."""
    return {
        f"{name} {number}": replica
        for name, task in document["tasks"].items()
        for number, replica in enumerate(task.get("replicas", ()), start=1)
    }


def _most(rows: list[tuple[str, Document]], columns: Sequence[_Column]) -> list[tuple[str, Document]]:
    """Return the rows that matter most, in their order: by utilization, or by throughput x time."""

    def weight(row: tuple[str, Document]) -> float:
        amounts = [_mean(c.of(row[1])) for c in columns[:2]]
        return amounts[0] * amounts[1] if columns[0] is _RATE and columns[1] is not _SHARE else max(amounts)

    kept = {id(row) for row in sorted(rows, key=weight, reverse=True)[:SHOWN]}
    return [row for row in rows if id(row) in kept]


def _mean(figure: Any) -> float:
    return float(figure["mean"]) if isinstance(figure, Mapping) else 0.0


def _print(
    out: Console,
    title: str,
    rows: Sequence[tuple[str, Document]],
    heading: str,
    columns: Sequence[_Column],
) -> None:
    """Print one table without the columns that no element has a figure for."""
    used = [c for c in columns if any(c.of(element) is not None for _, element in rows)]
    named = [heading] if heading else []
    cells = [
        [*([name] if heading else []), *(_cell(c.of(element), c.factor) for c in used)]
        for name, element in rows
    ]
    headings = [*named, *(c.heading for c in used)]
    print_table(out, title, headings, cells, texts=len(named))


def _cell(figure: Any, factor: float) -> str:
    return f"{figure:g}" if isinstance(figure, int | float) else interval(figure, factor)
