"""Report of tracked parameters: the JSON of ``mup fit --track``, and the model of the last period."""

from __future__ import annotations

import math
from typing import Any

from analyzer.fitting.report import FORMER_NAME, REPLICATES, with_replicates
from analyzer.fitting.tracking import Alarm, Tracked
from mup.lqn.model import Model

__all__ = ["tracked_document", "tracked_model"]


def tracked_document(tracked: Tracked) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "parameters": _estimates(tracked, -1),
        "level": tracked.level,
        "drift": tracked.drift,
        "errors": tracked.noise,
        "factor": tracked.factor,
        "learned": tracked.learning,
        "exact": tracked.exact,
        "periods": [
            {
                "period": name,
                "settings": {s.path: v for s, v in trial.settings},
                "parameters": _estimates(tracked, t),
                "size": _finite(float(tracked.size[t])),
            }
            for t, (name, trial) in enumerate(
                zip(tracked.series.names, tracked.series.data.trials, strict=True)
            )
        ],
        "alarms": [_alarm(tracked, alarm) for alarm in tracked.alarms],
        "warnings": list(tracked.warnings),
        FORMER_NAME: list(tracked.warnings),
    }


def tracked_model(tracked: Tracked, source: str, seed: int) -> Model:
    """Return the model of the last period; it notes where its numbers come from and how sure they are."""
    note = {
        "measurements": source,
        "period": tracked.series.names[-1],
        "drift": tracked.drift,
        "parameters": _estimates(tracked, -1),
        "alarms": [_alarm(tracked, alarm) for alarm in tracked.alarms],
    }
    draws = tracked.draws(REPLICATES, seed)
    return with_replicates(tracked.model, tracked.parameters, tracked.values[-1], draws, {"track": note})


def _estimates(tracked: Tracked, period: int) -> dict[str, dict[str, float]]:
    return {
        p.path: {
            "value": float(tracked.values[period, k]),
            "deviation": float(tracked.deviations[period, k]),
            "low": float(tracked.low[period, k]),
            "high": float(tracked.high[period, k]),
        }
        for k, p in enumerate(tracked.parameters)
    }


def _alarm(tracked: Tracked, alarm: Alarm) -> dict[str, Any]:
    return {
        "period": tracked.series.names[alarm.period],
        "test": alarm.test,
        "verdict": alarm.verdict,
        "statistic": alarm.statistic,
        "limit": alarm.limit,
        "measure": alarm.measure or None,
        "measured": _finite(alarm.measured),
        "expected": _finite(alarm.expected),
        "deviation": _finite(alarm.deviation),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
