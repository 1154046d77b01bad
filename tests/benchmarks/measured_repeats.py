"""Records of measured repeats as the test bed stores them, made up."""

from __future__ import annotations

from typing import Any

import numpy as np


def repeat(
    point: str,
    number: int,
    responses: list[float],
    *,
    void: str = "",
    speed: float = 1000.0,
    jump: float | None = None,
) -> dict[str, Any]:
    """Return the record of a window of 10 s in which the given times (s) were seen, evenly spread.

    With a jump, the speed was monitored.
    """
    count = len(responses)
    starts = [round(1e7 * k / count) for k in range(count)]
    p95 = float(np.percentile(responses, 95))
    return {
        "point": {"name": point, "clients": 1, "pools": {}, "replicas": {}},
        "repeat": number,
        "void": void,
        "speed": speed,
        "monitored": None,
        "think": 0.1,
        "measurement": {
            "response_time": {"mean": float(np.mean(responses)), "p95": p95},
            "throughput": {"mean": count / 10, "ci95": None},
            "tasks": {"A": {"utilization": 0.4}},
            "cpu": {"host_utilization": 0.5},
            "runs": [{"monitored": None if jump is None else {"speed": speed, "jump": jump}}],
        },
        "window_us": 10_000_000,
        "starts_us": starts,
        "responses_us": [round(1e6 * r) for r in responses],
        "ends_us": starts,
    }
