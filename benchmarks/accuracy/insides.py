"""Sources of an error: predicted and measured side by side, per service and kind of process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from accuracy.judge import Row, usable
from accuracy.store import Results, read_json

__all__ = ["inside_tables"]


def inside_tables(results: Results, kind: str, rows: Sequence[Row]) -> str:
    """Return, per point and service, times per request in ms, and where CPU time went."""
    head = (
        "system",
        "point",
        "service",
        "held",
        "measured",
        "queued",
        "measured",
        "CPU",
        "utilization error",
    )
    lines = [head, ["---"] * len(head)]
    roles = []
    for row in rows:
        record = read_json(results.prediction(kind, row.system))
        predicted = record["corrected"].get(row.point, record["points"][row.point])["tasks"]
        valid = usable(results.system(row.system).repeats(row.point))
        served = _services(valid)
        for service, figures in served.items():
            task = predicted.get(service, {})
            lines.append(
                (
                    row.system,
                    row.point,
                    service,
                    _ms(task.get("held")),
                    _ms(figures["service"]),
                    _ms(task.get("queued")),
                    _ms(figures["queued"]),
                    _ms(figures["cpu"]),
                    f"{row.shares.get(service, 0.0):+.3f}",
                )
            )
        roles.append(f"{row.system} {row.point}: {_roles(valid)}")
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return (
        table
        + "\n\nCPU per cycle in ms, by kind of process; think times:\n\n"
        + "\n".join(f"- {line}" for line in roles)
    )


def _services(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return means over all endpoints and repeats, by service."""
    found: dict[str, dict[str, float]] = {}
    for record in records:
        for label, figures in record["entries"].items():
            sums = found.setdefault(label.partition("/")[0], dict.fromkeys(("count", *_TIMES), 0.0))
            sums["count"] += figures["count"]
            for name in _TIMES:
                sums[name] += figures["count"] * figures[name]
    return {s: {n: sums[n] / sums["count"] for n in _TIMES} for s, sums in found.items()}


_TIMES = ("service", "queued", "cpu")


def _roles(records: Sequence[Mapping[str, Any]]) -> str:
    cycles = sum(r["measurement"]["cycles"] for r in records)
    seconds: dict[str, float] = {}
    for record in records:
        for role, used in record["measurement"]["cpu"]["seconds"].items():
            seconds[role] = seconds.get(role, 0.0) + used
    think = fmean(r["think"] for r in records)
    late = fmean(r["measurement"]["think_lateness"] for r in records)
    parts = [f"{role} {1000 * used / cycles:.3f}" for role, used in seconds.items()]
    return ", ".join([*parts, f"think {1000 * think:.2f} (late {1000 * late:.2f})"])


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.2f}"
