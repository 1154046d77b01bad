"""Report of errors: tables per point and their distribution, as Markdown or JSON.

What was promised comes first, the halves apart. Errors are (predicted - measured) / measured; of utilization
and host, predicted - measured. Throughput, p95, utilization and host are compared with the speed-corrected
prediction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from accuracy.goals import (
    DATA_HEAD,
    GROUP_HEAD,
    data_lines,
    feature_lines,
    goal_lines,
    kind_lines,
    name_of,
    open_questions,
)
from accuracy.insides import inside_tables
from accuracy.judge import Row, judge, measured
from accuracy.jumps import deviations, jump_table
from accuracy.plots import draw_errors, draw_system
from accuracy.points import Point
from accuracy.predictions import correct, points_of
from accuracy.store import Results, read_json
from accuracy.work_speed import ENDPOINT_HEAD, HEAD, endpoint_works, work_speeds
from mup.errors import UsageError

__all__ = ["Selection", "distribution", "rows_of", "write_report"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which systems belong to which half."""

    train: tuple[str, ...]
    test: tuple[str, ...]

    def half(self, system: str) -> str:
        """Return ``train`` or ``test``; what is in neither was looked at, so it counts as training."""
        return "test" if system in self.test else "train"


def rows_of(
    results: Results, selection: Selection, kind: str, names: Sequence[str] | None = None
) -> list[Row]:
    """Return every point of a set of predictions that was measured."""
    rows = []
    for folder in results.systems():
        if (names is not None and folder.name not in names) or not results.prediction(
            kind, folder.name
        ).exists():
            continue
        record = correct(results, folder.name, kind)
        for name, predicted in record["points"].items():
            found = measured(folder.repeats(name))
            if found is not None:
                change = str(Point.from_json(predicted["point"]))
                rows.append(judge(folder.name, selection.half(folder.name), name, change, record, found))
    return rows


def distribution(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of the table of distributions, of at least one row.

    Shares are fractions, None where nothing counts.
    """

    def share(good: Callable[[Row], bool], among: Callable[[Row], bool] = lambda _: True) -> float | None:
        counted = [good(row) for row in rows if among(row)]
        return sum(counted) / len(counted) if counted else None

    found: dict[str, Any] = {"points": len(rows), "systems": len({r.system for r in rows})}
    errors: Mapping[str, Callable[[Row], float]] = {
        "corrected": lambda r: r.corrected,
        "raw": lambda r: r.raw,
    }
    for name, error in errors.items():
        found[name] = _shares([(error(r), r.measured.response_width) for r in rows])
    tails = [r for r in rows if r.measured.p95_width <= 0.05]
    found["p95_within_15"] = share(lambda r: abs(r.p95) <= 0.15, lambda r: r.measured.p95_width <= 0.05)
    found["p95_points"] = len(tails)
    found["throughput_within_5"] = share(lambda r: abs(r.throughput) <= 0.05)
    found["throughput_worst"] = max((abs(r.throughput) for r in rows), default=None)
    found["utilization_within_0.03"] = share(lambda r: r.utilization <= 0.03)
    found["utilization_worst"] = max((r.utilization for r in rows), default=None)
    found["inside"] = share(lambda r: bool(r.inside), lambda r: r.inside is not None)
    found["inside_corrected"] = share(lambda r: bool(r.inside_corrected), lambda r: r.inside is not None)
    found["inside_per_system"] = _inside_per_system(rows)
    found["narrow_below_0.9"] = share(
        lambda r: (r.width or 0.0) <= 0.15, lambda r: r.width is not None and r.load < 0.9
    )
    return found


def _shares(errors: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return how errors are distributed, from (error, half-width of the measurement)."""
    sizes = [abs(error) for error, _ in errors]
    allowed = [0.10 + width for _, width in errors]
    count = len(errors)
    return {
        "within_5": sum(size <= 0.05 for size in sizes) / count,
        "within_10": sum(size <= 0.10 for size in sizes) / count,
        "within_10_and_width": sum(s <= a for s, a in zip(sizes, allowed, strict=True)) / count,
        "within_20": sum(size <= 0.20 for size in sizes) / count,
        "worst": max(sizes),
        "median": median(sizes),
        "bias": fmean(error for error, _ in errors),
    }


def _inside_per_system(rows: Sequence[Row]) -> float | None:
    """Return the mean over systems of the share of their points inside the prediction interval."""
    shares = []
    for system in {r.system for r in rows}:
        inside = [bool(r.inside_corrected) for r in rows if r.system == system and r.inside is not None]
        if inside:
            shares.append(sum(inside) / len(inside))
    return fmean(shares) if shares else None


def write_report(
    results: Results,
    selection: Selection,
    kinds: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    as_json: bool = False,
    details: bool = False,
    plots: Path | None = None,
) -> str:
    """Return the report of one set of predictions, or the distributions of several.

    Raises:
        UsageError: Nothing was measured yet.
    """
    every = {kind: rows_of(results, selection, kind, names) for kind in kinds}
    rows = {kind: covered for kind, found in every.items() if (covered := [r for r in found if r.covered])}
    if not rows:
        raise UsageError("nothing was measured and predicted yet", where=str(results.path))
    if plots is not None:
        _draw(plots, next(iter(rows.values())))
    if as_json:
        document = {
            kind: {
                "halves": {half: distribution(part) for half, part in _halves(found).items()},
                "points": [asdict(r) for r in found],
            }
            for kind, found in rows.items()
        }
        return json.dumps(document, indent=1)
    if len(kinds) > 1:
        return _ladder(rows)
    ((kind, found),) = rows.items()
    halves = _halves(found)
    parts = [
        _table(("figure", "promised", *map(name_of, halves)), goal_lines(halves)),
        _points(found),
        _distribution(halves),
        _notes(results, kind, found),
        _table(("point", "half", *GROUP_HEAD), kind_lines(halves)),
    ]
    if features := feature_lines(halves):
        parts.append(_table(("systems with", "half", *GROUP_HEAD), features))
    if data := data_lines(every[kind]):
        parts.append("More data than explored: not covered by predictions.\n\n" + _table(DATA_HEAD, data))
    if questions := open_questions(found):
        parts.append("Points that want an explanation:\n\n" + "\n".join(questions))
    jumps = jump_table(
        [
            deviation
            for name in dict.fromkeys(r.system for r in found)
            for point in points_of(results.system(name))
            for deviation in deviations(results.system(name).repeats(point.name))
        ]
    )
    if jumps:
        parts.append(_table(("change of speed within a repeat", "repeats", "scatter"), jumps))
    if details:
        names = list(dict.fromkeys(r.system for r in found))
        parts.append(_table(HEAD, work_speeds(results, kind, names)))
        parts.append(_table(ENDPOINT_HEAD, endpoint_works(results, kind, names)))
        parts.append(inside_tables(results, kind, found))
    return "\n\n".join(parts)


def _halves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    halves = {half: [r for r in rows if r.half == half] for half in ("train", "test")}
    return {half: found for half, found in halves.items() if found}


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _percent(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.1%}" if sign else f"{value:.1%}"


POINT_COLUMNS = (
    "system",
    "point",
    "scenario",
    "load",
    "predicted ms",
    "measured ms",
    "+-",
    "repeats",
    "speed",
    "error raw",
    "error corrected",
    "inside raw",
    "inside corrected",
    "p95",
    "throughput",
    "utilization",
    "host",
)


def _yes(inside: bool | None) -> str:
    return "-" if inside is None else "yes" if inside else "**no**"


def _points(rows: Sequence[Row]) -> str:
    lines = [
        (
            f"{r.system} ({r.half})",
            r.point,
            r.change,
            f"{r.load:.2f}",
            f"{1000 * r.predicted:.2f}",
            f"{1000 * r.measured.response:.2f}",
            _percent(r.measured.response_width),
            str(r.measured.repeats) + (f" ({r.measured.void} void)" if r.measured.void else ""),
            f"{r.ratio:.3f}",
            _percent(r.raw, sign=True),
            _percent(r.corrected, sign=True),
            _yes(r.inside),
            _yes(r.inside_corrected),
            f"{_percent(r.p95, sign=True)} (+-{r.measured.p95_width:.0%})",
            _percent(r.throughput, sign=True),
            f"{r.utilization:.3f}",
            f"{r.host:+.3f}",
        )
        for r in rows
    ]
    return _table(POINT_COLUMNS, lines)


def _lines(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the table of distributions says about some points."""
    lines = [("systems, points", f"{found['systems']}, {found['points']}")]
    for name in ("corrected", "raw"):
        part = found[name]
        lines += [
            (f"{name}: within 5 %", _percent(part["within_5"])),
            (f"{name}: within 10 %", _percent(part["within_10"])),
            (f"{name}: within 10 % + measured half-width", _percent(part["within_10_and_width"])),
            (f"{name}: within 20 %", _percent(part["within_20"])),
            (f"{name}: largest", _percent(part["worst"])),
            (f"{name}: median, bias", f"{_percent(part['median'])}, {_percent(part['bias'], sign=True)}"),
        ]
    return [
        *lines,
        (
            "p95 within 15 %, where known to 5 %",
            f"{_percent(found['p95_within_15'])} of {found['p95_points']}",
        ),
        ("throughput within 5 %", _percent(found["throughput_within_5"])),
        ("throughput: largest", _percent(found["throughput_worst"])),
        ("utilization within 0.03", _percent(found["utilization_within_0.03"])),
        (
            "utilization: largest",
            "-" if found["utilization_worst"] is None else f"{found['utilization_worst']:.3f}",
        ),
        (
            "corrected: inside the prediction interval, mean over systems",
            _percent(found["inside_per_system"]),
        ),
        ("corrected: inside the prediction interval, all points", _percent(found["inside_corrected"])),
        ("raw: inside the prediction interval, all points", _percent(found["inside"])),
        ("interval within +-15 %, load below 0.9", _percent(found["narrow_below_0.9"])),
    ]


def _distribution(halves: Mapping[str, Sequence[Row]]) -> str:
    columns = {half: dict(_lines(distribution(rows))) for half, rows in halves.items()}
    names = next(iter(columns.values()))
    return _table(
        ("mean response time", *columns), [(n, *(column[n] for column in columns.values())) for n in names]
    )


def _notes(results: Results, kind: str, rows: Sequence[Row]) -> str:
    """Return how long it took to come to predictions, and which points have no valid repeat."""
    systems = list(dict.fromkeys(r.system for r in rows))
    took = []
    for name in systems:
        seconds = read_json(results.prediction(kind, name))["seconds"]["all"]
        took.append(read_json(results.system(name).explored)["seconds"] + seconds)
    lines = [
        f"Exploring, calibrating and predicting: {median(took):.0f} s (median), {max(took):.0f} s (longest)."
    ]
    compared = {(r.system, r.point) for r in rows}
    for name in systems:
        folder = results.system(name)
        for point in points_of(folder):
            void = [r["void"] for r in folder.repeats(point.name)]
            if (name, point.name) not in compared and void:
                lines.append(f"Not compared: {name} {point.name}, {len(void)} void repeats ({void[-1]}).")
    return "\n".join(lines)


LADDER_COLUMNS = (
    *("predictions", "half", "points", "5 %", "10 %", "10 % + width", "20 %", "largest", "median", "bias"),
    *("p95 15 %", "X 5 %", "U 0.03", "inside"),
)


def _ladder(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return one line per set and half."""
    lines = []
    for kind, found in rows.items():
        for half, part in _halves(found).items():
            d = distribution(part)
            c = d["corrected"]
            shares = (c["within_5"], c["within_10"], c["within_10_and_width"], c["within_20"], c["worst"])
            lines.append(
                (
                    kind,
                    half,
                    str(d["points"]),
                    *map(_percent, (*shares, c["median"])),
                    _percent(c["bias"], sign=True),
                    _percent(d["p95_within_15"]),
                    _percent(d["throughput_within_5"]),
                    _percent(d["utilization_within_0.03"]),
                    _percent(d["inside_corrected"]),
                )
            )
    return _table(LADDER_COLUMNS, lines)


def _draw(folder: Path, rows: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "errors.svg").write_text(draw_errors(rows), encoding="utf-8")
    for system in dict.fromkeys(r.system for r in rows):
        # Where users come at a rate, there is no number of them to draw over.
        drawn = [r for r in rows if r.system == system and " client" in r.change]
        if not drawn:
            continue
        picture = draw_system(system, drawn)
        (folder / f"{system}.svg").write_text(picture, encoding="utf-8")
