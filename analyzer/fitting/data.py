"""Measurements of several configurations: a CSV file in, trials with their means and scatter out.

One row per trial, or per batch of one; rows of equal configuration belong together and tell how much
measurements vary. Read as a series, rows are periods in the order of time instead. docs/reference/fit-data.md
describes the columns.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.fitting.forward import Settings
from analyzer.fitting.measures import SHORT, is_measure, long_name
from analyzer.fitting.parameters import KINDS, parameter
from mup.errors import UsageError, did_you_mean
from mup.lqn.refs import FigureRef, ParameterRef

__all__ = ["WEIGHTS", "Data", "Series", "Trial", "grouped", "read_data", "read_series", "settings_of"]

FloatArray = npt.NDArray[np.float64]

PERIOD: Final = "period"
"""The column that says which rows of a series are batches of one period."""
LABELS: Final = ("trial", "batch", PERIOD)
WEIGHTS: Final = ("count", "seconds")
TIMES: Final = ("response_time", "cycle_time")
"""Figures that are means per request; the others are means over time."""
HALF_WIDTHS: Final = (".ci95", "±")
NORMAL_95: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Trial:
    """What was measured under one configuration.

    Attributes:
        settings: The configuration.
        rows: Repeated measurements or batches, shape (rows, measures); NaN = not measured.
        half_widths: Their 95 % half-widths as far as stated, else NaN; same shape.
        weights: How much each figure stands for, same shape: requests for times, seconds for everything else;
            1 unless stated.
        lines: Of the file, one per row; empty if they are from none.
        means: Weighted means of the rows; NaN where nothing was measured.
    """

    settings: Settings
    rows: FloatArray
    half_widths: FloatArray
    weights: FloatArray
    lines: tuple[int, ...] = ()
    means: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        weights = np.where(np.isnan(self.rows), 0.0, self.weights)
        total = weights.sum(axis=0)
        sums = np.where(np.isnan(self.rows), 0.0, self.rows * weights).sum(axis=0)
        found = np.divide(sums, total, out=np.full(len(total), math.nan), where=total > 0)
        object.__setattr__(self, "means", found)


@dataclass(frozen=True, slots=True)
class Data:
    """Trials of different configurations, and the names of what was measured.

    Attributes:
        measures: Names of the figures.
        trials: One per configuration.
        path: Of the file; empty if they are from none.
    """

    measures: tuple[str, ...]
    trials: tuple[Trial, ...]
    path: str = ""

    @property
    def values(self) -> int:
        """How many figures were measured, those of equal configuration counted once."""
        return int(sum(np.isfinite(t.means).sum() for t in self.trials))


@dataclass(frozen=True, slots=True)
class Series:
    """Measurements in the order of time.

    Attributes:
        data: A trial per period, whose rows are its batches; configurations may come again and again.
        names: Of the periods.
    """

    data: Data
    names: tuple[str, ...]


def grouped(trials: Iterable[Trial], measures: tuple[str, ...], path: str = "") -> Data:
    """Return trials of which those of equal configuration are one, in the order of first appearance."""
    together: dict[Settings, list[Trial]] = {}
    for trial in trials:
        together.setdefault(trial.settings, []).append(trial)
    return Data(
        measures,
        tuple(
            Trial(
                settings,
                np.concatenate([t.rows for t in same]),
                np.concatenate([t.half_widths for t in same]),
                np.concatenate([t.weights for t in same]),
                tuple(line for t in same for line in t.lines),
            )
            for settings, same in together.items()
        ),
        path,
    )


def read_data(path: str | Path) -> Data:
    """Read a CSV file of measurements.

    Raises:
        UsageError: It cannot be read, has unknown columns, or a cell is no number; file and line are named.
    """
    head, lines = _read(path)
    data = grouped((row.trial for row in head.rows(lines)), tuple(head.measures.values()), str(path))
    _check_something_happened(data, str(path))
    return data


def read_series(path: str | Path) -> Series:
    """Read a CSV file of measurements whose rows are in the order of time.

    Every row is a period of its own, named by its number from 1, unless a column ``period`` says which ones
    belong together.

    Raises:
        UsageError: As ``read_data``; or the rows of a period are not consecutive, or of several
            configurations.
    """
    head, lines = _read(path)
    periods: dict[str, list[_Row]] = {}
    for number, row in enumerate(head.rows(lines), 1):
        name = str(number) if head.period is None else row.period
        if name in periods and name != next(reversed(periods)):
            raise UsageError(
                f"line {row.line}: period {name!r} was there before, and another one since then",
                where=str(path),
                hint="rows must be in the order of time",
            )
        same = periods.setdefault(name, [])
        if same and same[0].trial.settings != row.trial.settings:
            raise UsageError(
                f"line {row.line}: the configuration changes within period {name!r}", where=str(path)
            )
        same.append(row)
    measures = tuple(head.measures.values())
    trials = [grouped((row.trial for row in rows), measures).trials[0] for rows in periods.values()]
    data = Data(measures, tuple(trials), str(path))
    _check_something_happened(data, str(path))
    return Series(data, tuple(periods))


def _check_something_happened(data: Data, path: str) -> None:
    """Refuse figures that are 0 throughout: no demand explains them, and errors relative to 0 are none."""
    for name, column in zip(data.measures, np.array([t.means for t in data.trials]).T, strict=True):
        if np.any(np.isfinite(column)) and np.nanmax(column) == 0:
            raise UsageError(
                f"column {name!r} is 0 in every row",
                where=path,
                hint="begin its name with '#' to leave it out",
            )


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a file: its number, the name of its period, and what was measured as a trial of one row."""

    line: int
    period: str
    trial: Trial


def _read(path: str | Path) -> tuple[_Columns, list[tuple[int, list[str]]]]:
    """Return what the columns of a file mean, and the cells of its other lines with their numbers."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file))
    except OSError as error:
        raise UsageError(f"cannot read the measurements: {error.strerror}", where=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"is no CSV file in UTF-8: {error}", where=str(path)) from error
    numbered = [(n, [cell.strip() for cell in line]) for n, line in enumerate(lines, 1)]
    numbered = [(n, line) for n, line in numbered if any(line) and not line[0].startswith("##")]
    if len(numbered) < 2:
        raise UsageError(
            "has no measurements",
            where=str(path),
            hint="a first line with the names of the columns, for example clients,response_time,throughput",
        )
    return _Columns(str(path), numbered[0][1]), numbered[1:]


class _Columns:
    """What the columns of a file mean."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.path, self.names = path, names
        self.settings: dict[int, str] = {}
        self.measures: dict[int, str] = {}
        self.half_widths: dict[int, str] = {}
        self.weights: dict[str, int] = {}
        self.period = names.index(PERIOD) if PERIOD in names else None
        for index, name in enumerate(names):
            self._add(index, name)
        repeated = sorted({n for n in names if n and names.count(n) > 1})
        if repeated:
            raise UsageError(f"column {repeated[0]!r} is there twice", where=path)
        if not self.measures:
            raise UsageError(
                "no column holds a measured figure",
                where=path,
                hint="for example response_time, tasks.B.utilization or entries.B/epB/.response_time",
            )
        for name in self.half_widths.values():
            if name not in self.measures.values():
                raise UsageError(f"there is a half-width of {name!r}, but no column {name!r}", where=path)

    def _add(self, index: int, name: str) -> None:
        if not name or name.startswith("#") or name in LABELS:
            return
        if name in WEIGHTS:
            self.weights[name] = index
            return
        for suffix in HALF_WIDTHS:
            if name.endswith(suffix) and is_measure(name.removesuffix(suffix)):
                self.half_widths[index] = name.removesuffix(suffix).strip()
                return
        if is_measure(name):
            self.measures[index] = name
        elif ParameterRef.parse(name).kind in KINDS:
            parameter(name)
            self.settings[index] = name
        else:
            known = [*KINDS, *SHORT, "cycle", "tasks", "entries", "processors", *WEIGHTS, *LABELS]
            raise UsageError(
                f"column {name!r} is neither a setting nor a measured figure; {did_you_mean(name, known)}",
                where=self.path,
                hint="begin the name of a column that is to be left out with '#'",
            )

    def rows(self, lines: Iterable[tuple[int, list[str]]]) -> Iterator[_Row]:
        """Yield what each line says, in their order."""
        for number, cells in lines:
            if len(cells) > len(self.names):
                raise UsageError(
                    f"line {number} has {len(cells)} cells, the first line {len(self.names)}", where=self.path
                )
            row = [*cells, *[""] * (len(self.names) - len(cells))]
            key = tuple(self._number(number, row, i, empty=False) for i in self.settings)
            self._check_settings(number, key)
            means = [self._number(number, row, i) for i in self.measures]
            for name, mean in zip(self.measures.values(), means, strict=True):
                if mean < 0:
                    raise UsageError(
                        f"line {number}, column {name!r}: must be >= 0, got {mean:g}", where=self.path
                    )
            widths = {name: self._number(number, row, i) for i, name in self.half_widths.items()}
            halves = [widths.get(name, math.nan) for name in self.measures.values()]
            weigh = {name: self._number(number, row, i, empty=False) for name, i in self.weights.items()}
            if any(w <= 0 for w in (*halves, *weigh.values())):
                raise UsageError(
                    f"line {number}: half-widths, counts and seconds must be > 0", where=self.path
                )
            weights = [
                weigh.get("count" if FigureRef.parse(long_name(m)).figure in TIMES else "seconds", 1.0)
                for m in self.measures.values()
            ]
            settings = settings_of(dict(zip(self.settings.values(), key, strict=True)))
            trial = Trial(settings, np.array([means]), np.array([halves]), np.array([weights]), (number,))
            yield _Row(number, "" if self.period is None else row[self.period], trial)

    def _check_settings(self, line: int, values: Sequence[float]) -> None:
        for name, value in zip(self.settings.values(), values, strict=True):
            setting = parameter(name)
            if not setting.low <= value <= setting.high or (setting.whole and value != int(value)):
                what = (
                    "a whole number >= 1"
                    if setting.whole
                    else f"between {setting.low:g} and {setting.high:g}"
                )
                raise UsageError(
                    f"line {line}, column {name!r}: must be {what}, got {value:g}", where=self.path
                )

    def _number(self, line: int, row: Sequence[str], index: int, *, empty: bool = True) -> float:
        text = row[index]
        if not text and empty:
            return math.nan
        try:
            value = float(text)
        except ValueError:
            value = math.inf
        if not math.isfinite(value):
            raise UsageError(
                f"line {line}, column {self.names[index]!r}: must be a number, got {text!r}", where=self.path
            )
        return value


def settings_of(values: Mapping[str, float]) -> Settings:
    """Return the configuration that sets some paths to some values.

    Raises:
        UsageError: A path names nothing that can be set.
    """
    return tuple((parameter(path), value) for path, value in values.items())
