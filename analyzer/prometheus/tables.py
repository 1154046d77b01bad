"""Series of a Prometheus server as a table: windows for ``mup estimate``, trials for ``mup fit``.

Values belong to the step that ends at their moment, as those of ``rate(...[STEP])`` do.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import WEIGHTS
from analyzer.fitting.measures import is_measure
from analyzer.fitting.parameters import parameter
from analyzer.prometheus.api import Answer, FloatArray, Range, Series
from mup.errors import UsageError

__all__ = ["Table", "trial_role", "trials", "window_role", "windows"]

THROUGHPUT, RESPONSE = "throughput", "response_time"
OVER: Final = 1.05
"""Utilizations up to it are 1: rates are extrapolated to the ends of a step."""
SHOWN: Final = 5
MOST_CLASSES: Final = 100
"""Series of one query; more are labels that should have been summed over."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be written.

    Attributes:
        text: CSV.
        rows: How many it has.
        notes: What was left out or changed.
    """

    text: str
    rows: int
    notes: tuple[str, ...]


def window_role(name: str) -> tuple[str, str]:
    """Return what a query of ``mup estimate`` tells, and of which class; "" = its labels say that.

    Raises:
        UsageError: It is nothing that windows have.
    """
    for role, names in (
        ("utilization", ("utilization",)),
        (THROUGHPUT, (THROUGHPUT,)),
        (RESPONSE, (RESPONSE, "response")),
    ):
        for known in names:
            if name == known:
                return role, ""
            if role != "utilization" and name.startswith(f"{known}_") and len(name) > len(known) + 1:
                return role, name[len(known) + 1 :]
    raise UsageError(
        f"--query: no {name!r}: what is asked for are utilization, throughput and response",
        hint="throughput_CLASS and response_CLASS name the class of a single series",
    )


def windows(answers: Mapping[str, Answer], span: Range) -> Table:
    """Return the table of windows that ``mup estimate`` reads.

    Args:
        answers: By the names of queries, as ``window_role`` knows them.
        span: Of all of them.

    Raises:
        UsageError: Utilization or throughput is missing, is no share, or there is no moment with both.
    """
    roles = {name: window_role(name) for name in answers}
    found: dict[str, dict[str, Series]] = {"utilization": {}, THROUGHPUT: {}, RESPONSE: {}}
    for name, (role, kind) in roles.items():
        for label, series in _classes(name, kind, answers[name].series, single=role == "utilization").items():
            if label in found[role]:
                raise UsageError(f"--query {name}: {role} of class {label!r} is asked for twice")
            found[role][label] = series
    for role in ("utilization", THROUGHPUT):
        if not found[role]:
            raise UsageError(f"--query: nothing tells the {role}", hint=f"add --query {role}=EXPRESSION")
    rates, times = found[THROUGHPUT], found[RESPONSE]
    if len(rates) == len(times) == 1:
        times = dict(zip(rates, times.values(), strict=True))
    for label in times:
        if label not in rates:
            raise UsageError(
                f"--query response: there is no throughput of class {label!r}",
                hint=f"classes: {_listed(list(rates))}; sum both by the same labels",
            )
    (busy,) = found["utilization"].values()
    notes = _server_notes(answers)
    share = busy.values
    if (worst := float(np.nanmax(share, initial=0.0))) > OVER:
        raise UsageError(
            f"--query utilization: up to {worst:.4g}, and it must be a share of all cores, 0 to 1",
            hint="divide by the number of cores, or by 100",
        )
    if worst > 1:
        notes.append(f"{int((share > 1).sum())} utilizations just above 1 are taken to be 1")
        share = np.minimum(share, 1.0)
    flows = np.array([s.values for s in rates.values()])
    seen = np.array([s.there for s in rates.values()])
    # A class without requests so far has no series yet; if none has, nothing was measured.
    flows = np.where(~seen & seen.any(axis=0), 0.0, flows)
    usable = np.isfinite(share) & np.isfinite(flows).all(axis=0)
    if not usable.any():
        raise UsageError(
            "no moment has both a utilization and all throughputs: they are missing or NaN",
            hint="do the expressions divide by 0, or is --step shorter than what is measured?",
        )
    head = ["time", "utilization", *(f"{THROUGHPUT}_{c}" for c in rates), *(f"{RESPONSE}_{c}" for c in times)]
    columns = [share, *flows, *(s.values for s in times.values())]
    return _table(head, columns, span, usable, notes, name_moments=True)


def trials(answers: Mapping[str, Answer], span: Range) -> Table:
    """Return the table of trials that ``mup fit`` reads; every moment is a period.

    Args:
        answers: By names of columns of the table: figures, and paths of what was set.
        span: Of all of them.

    Raises:
        UsageError: An expression has several series, or there is no moment with a figure.
    """
    head = ["period"]
    columns: list[FloatArray] = []
    settings: list[FloatArray] = []
    figures: list[FloatArray] = []
    for name, answer in answers.items():
        (series,) = _classes(name, "", answer.series, single=True).values()
        column = RESPONSE if name == "response" else name
        if column in head:
            raise UsageError(f"--query: {column} is asked for twice")
        head.append(column)
        columns.append(series.values)
        (settings if trial_role(name) == "setting" else figures).append(series.values)
    if not figures:
        raise UsageError(
            "--query: nothing was measured", hint="add figures, such as --query throughput=EXPRESSION"
        )
    usable = np.asarray(np.isfinite(figures).any(axis=0))
    if settings:
        usable &= np.isfinite(settings).all(axis=0)
    notes = _server_notes(answers)
    if not usable.any():
        raise UsageError(
            "no moment has a figure and all settings: they are missing or NaN",
            hint="do the expressions divide by 0, or is --step shorter than what is measured?",
        )
    return _table(head, columns, span, usable, notes, name_moments=False)


def trial_role(name: str) -> str:
    """Return whether a query of ``mup fit`` tells a ``setting`` or a ``figure``.

    Raises:
        UsageError: It is neither.
    """
    if is_measure(RESPONSE if name == "response" else name):
        return "figure"
    if name not in WEIGHTS:
        parameter(name)
    return "setting"


def _classes(name: str, kind: str, series: Sequence[Series], *, single: bool) -> dict[str, Series]:
    """Return series by class: what their labels differ in, or the name that is given."""
    for one in series:
        values = one.values[one.there]
        if not np.isfinite(values).any():
            raise UsageError(
                f"--query {name}: every value of {_labels(one)} is NaN, infinite or missing",
                hint="does the expression divide by 0, or is its range shorter than two scrapes?",
            )
        if (values[np.isfinite(values)] < 0).any():
            raise UsageError(f"--query {name}: {_labels(one)} has negative values")
    most = 1 if single or kind else MOST_CLASSES
    if len(series) > most:
        there = _listed([_labels(s) for s in series])
        raise UsageError(
            f"--query {name}: {len(series)} series, and at most {most} is wanted: {there}",
            hint="put them together in the expression, such as sum by (route) (...) or avg(...)",
        )
    if single or kind:
        return {kind: series[0]}
    keys = sorted({key for s in series for key in s.labels})
    # What is the same everywhere, such as the job, is no name of a class.
    telling = [k for k in keys if len({s.labels.get(k, "") for s in series}) > 1] or keys
    names = [" ".join(s.labels[k] for k in telling if s.labels.get(k)) or "all" for s in series]
    return dict(zip(names, series, strict=True))


def _labels(series: Series) -> str:
    return "{" + ", ".join(f"{k}={v!r}" for k, v in sorted(series.labels.items())) + "}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def _server_notes(answers: Mapping[str, Answer]) -> list[str]:
    return [f"the server warns: {warning}" for a in answers.values() for warning in a.warnings]


def _table(
    head: Sequence[str],
    columns: Sequence[FloatArray],
    span: Range,
    usable: npt.NDArray[np.bool_],
    notes: Sequence[str],
    *,
    name_moments: bool,
) -> Table:
    if not usable.all():
        left_out = int((~usable).sum())
        notes = (*notes, f"{left_out} of {span.count} moments are left out: no numbers, or NaN")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for k in np.flatnonzero(usable).tolist():
        at = float(span.moments[k])
        first = (
            f"{at:.15g}" if name_moments else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        )
        writer.writerow([first, *(_cell(float(column[k])) for column in columns)])
    return Table(text.getvalue(), int(usable.sum()), tuple(notes))


def _cell(value: float) -> str:
    return repr(value) if math.isfinite(value) else ""
