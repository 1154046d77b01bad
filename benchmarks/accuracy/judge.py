"""Error of a prediction against a measured point, and the interval of the measurement.

The measured value of a point is the median of its repeats; its half-width is that of all repeats together,
by the rule of ``mup load`` (``mup.statistics.repeats``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

import numpy as np

from analyzer.calibration.placement import HOST
from analyzer.host.machine_speed import MONITORED, PROBED
from mup.workload.figures import ResponseTime, Sample, Window, rate, spread

__all__ = ["NORMAL", "Measured", "Row", "judge", "measured", "response_times", "usable"]

MACHINE_SPEED = "machine_speed"
NOISE = "measurement"
"""The parts of an interval that the speed of the machine makes, and the length of a real run."""
NORMAL = 1.96
"""Standard deviations in the half-width of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The repeats of a point, together; times in seconds.

    Attributes:
        repeats, void: Valid ones, and those that say nothing.
        seconds: Observed in the valid ones.
        response, p95, throughput, utilization, host: Medians over the repeats.
        response_width, p95_width, throughput_width: 95 % half-widths as fractions of the value, infinite
            where there are too few data to tell.
        speed: Mean of the probes.
        monitored: Mean speed while the windows lasted; None if it is not known of all repeats.
        think: Mean realised think time per cycle.
    """

    repeats: int
    void: int
    seconds: float
    response: float
    response_width: float
    p95: float
    p95_width: float
    throughput: float
    throughput_width: float
    utilization: dict[str, float]
    host: float
    speed: float
    monitored: float | None
    think: float


def usable(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the valid repeats."""
    return [r for r in records if not r["void"]]


def response_times(records: Sequence[Mapping[str, Any]]) -> ResponseTime:
    """Return mean and percentiles over all given repeats, with their half-widths."""
    return spread(
        [
            Sample(
                _window(record),
                np.array(record["starts_us"], dtype=np.int64) * 1000,
                np.array(record["responses_us"], dtype=np.float64) * 1e-6,
            )
            for record in records
        ]
    )


def _window(record: Mapping[str, Any]) -> Window:
    return Window(0, record["window_us"] * 1000)


def measured(records: Sequence[Mapping[str, Any]]) -> Measured | None:
    """Return the figures of a point; None if no repeat is valid."""
    valid = usable(records)
    if not valid:
        return None
    documents = [r["measurement"] for r in valid]
    together = response_times(valid)
    completed = rate([(_window(r), np.array(r["ends_us"], dtype=np.int64) * 1000) for r in valid])
    response = median(d["response_time"]["mean"] for d in documents)
    p95 = median(d["response_time"]["p95"] for d in documents)
    throughput = median(d["throughput"]["mean"] for d in documents)
    services = [n for n, t in documents[0]["tasks"].items() if t["utilization"] is not None]
    cycles = sum(len(r["responses_us"]) for r in valid)
    return Measured(
        repeats=len(valid),
        void=len(records) - len(valid),
        seconds=sum(r["window_us"] for r in valid) * 1e-6,
        response=response,
        response_width=_relative(together.ci95, response),
        p95=p95,
        p95_width=_relative(together.p95_ci95, p95),
        throughput=throughput,
        throughput_width=_relative(completed.ci95, throughput),
        utilization={n: median(d["tasks"][n]["utilization"] for d in documents) for n in services},
        host=median(d["cpu"]["host_utilization"] for d in documents),
        speed=fmean(r["speed"] for r in valid),
        monitored=_mean_of_known([r.get("monitored") for r in valid]),
        think=sum(r["think"] * len(r["responses_us"]) for r in valid) / cycles,
    )


def _mean_of_known(speeds: Sequence[float | None]) -> float | None:
    known = [speed for speed in speeds if speed is not None]
    return fmean(known) if len(known) == len(speeds) else None


def _relative(half_width: float | None, value: float) -> float:
    return math.inf if half_width is None else half_width / value


@dataclass(frozen=True, slots=True)
class Row:
    """One point, predicted and measured. Errors are (predicted - measured) / measured.

    Attributes:
        load: Predicted utilization of what is busiest.
        raw, corrected: Error of the mean response time; corrected = predicted at the measured speed.
        host: Error of the utilization of the machine; what interpreters do is in it.
        ratio: Speed of the machine when it was measured, relative to the calibration.
        inside: Whether the measured value is inside the prediction interval; None without one.
        inside_corrected: The same for the interval moved by as much as the prediction is by the correction,
            and without what the speed of the machine adds to it, but for how well that was measured.
        width: Half-width of that interval as a fraction of the prediction.
        width_without: The same without what the speed of the machine adds to it.
        width_model: And without the noise of the run: what calibration, simulation and the model itself add.
        inside_p95, inside_throughput: Whether the measured value is inside the interval of that figure.
        covered: The model was asked about what was measured. False: about as much data as explored, and there
            was more.
        known: Standard deviation of the error that calibration and simulation explain, by figure; relative,
            of utilization absolute. Empty without prediction intervals.
        utilization: The largest absolute error among services; ``shares`` has them all, signed.
        noise: Standard deviation that the corrected error would have if the model were exact: of calibration
            and simulation, of the measured mean, and of the measured speed. None if one of them is not known.
    """

    system: str
    half: str
    point: str
    change: str
    load: float
    predicted: float
    measured: Measured
    raw: float
    corrected: float
    p95: float
    throughput: float
    utilization: float
    host: float
    ratio: float
    inside: bool | None = None
    inside_corrected: bool | None = None
    width: float | None = None
    width_without: float | None = None
    width_model: float | None = None
    inside_p95: bool | None = None
    inside_throughput: bool | None = None
    covered: bool = True
    known: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    noise: float | None = None


def judge(
    system: str,
    half: str,
    point: str,
    change: str,
    record: Mapping[str, Any],
    found: Measured,
) -> Row:
    """Compare one point of a prediction record with what was measured."""
    raw = record["points"][point]
    fair = record["corrected"].get(point, raw)
    prediction = raw["prediction"] or {}
    interval = prediction.get("response_time")
    left = (MONITORED if found.monitored is not None and record.get("monitored") else PROBED).sd
    fairly = None if interval is None else _for_measured_speed(prediction, left)
    predicted = raw["response_time"]["mean"]
    shares = {n.partition(" ")[2]: u for n, u in fair["utilization"].items() if n.startswith("task ")}
    gaps = {n: shares[n] - u for n, u in found.utilization.items() if n in shares}
    known = {} if raw["prediction"] is None else _known(raw["prediction"], max(gaps, key=_size(gaps)))
    return Row(
        system=system,
        half=half,
        point=point,
        change=change,
        load=raw["load"],
        predicted=predicted,
        measured=found,
        raw=predicted / found.response - 1,
        corrected=fair["response_time"]["mean"] / found.response - 1,
        p95=fair["response_time"]["p95"] / found.p95 - 1,
        throughput=fair["throughput"]["mean"] / found.throughput - 1,
        utilization=max(map(abs, gaps.values()), default=0.0),
        host=fair["utilization"][f"processor {HOST}"] - found.host,
        ratio=fair.get("ratio", 1.0),
        inside=_inside(interval, found.response),
        inside_corrected=_inside(fairly, found.response * predicted / fair["response_time"]["mean"]),
        width=None if interval is None else (interval["high"] - interval["low"]) / 2 / predicted,
        width_without=None if interval is None else _length(interval, MACHINE_SPEED) / 2 / predicted,
        width_model=None if interval is None else _length(interval, MACHINE_SPEED, NOISE) / 2 / predicted,
        inside_p95=_inside(prediction.get("p95"), found.p95),
        inside_throughput=_inside(prediction.get("throughput"), found.throughput),
        covered=raw.get("point", {}).get("data", 1.0) == 1.0,
        known=known,
        shares=gaps,
        noise=_noise(known.get("response_time"), found.response_width, left),
    )


def _noise(known: float | None, width: float, left: float) -> float | None:
    """Return the standard deviation of the error of an exact model.

    Args:
        known: What calibration and simulation contribute.
        width: 95 % half-width of the measured mean, relative.
        left: Of a measured speed.
    """
    if known is None or not math.isfinite(width):
        return None
    return math.hypot(known, width / NORMAL, left)


def _inside(interval: Mapping[str, Any] | None, value: float) -> bool | None:
    return None if interval is None else bool(interval["low"] <= value <= interval["high"])


def _length(interval: Mapping[str, Any], *known: str) -> float:
    """Return how long an interval would be without some of its parts."""
    low, high = _shortened(interval, 1.0 - sum(interval["parts"].get(part, 0.0) for part in known))
    return high - low


def _for_measured_speed(prediction: Mapping[str, Any], left: float) -> dict[str, float]:
    """Return the interval of the mean response time if the speed of the machine was measured.

    Args:
        prediction: With the interval of every figure.
        left: Standard deviation of the logarithm of a measured speed.
    """
    interval = prediction["response_time"]
    share = interval["parts"].get(MACHINE_SPEED, 0.0)
    sd = (prediction.get(MACHINE_SPEED) or {}).get("sd", 0.0)
    still = share * min(1.0, left / sd) ** 2 if sd else 0.0
    low, high = _shortened(interval, 1.0 - share + still)
    return {"low": low, "high": high}


def _shortened(interval: Mapping[str, Any], share: float) -> tuple[float, float]:
    """Return the ends of an interval with a share of its variance, which adds up on the logarithmic scale."""
    low, high = float(interval["low"]), float(interval["high"])
    if share == 1.0 or low <= 0.0:
        return low, high
    middle, length = math.log(low * high) / 2, math.log(high / low) / 2 * math.sqrt(max(share, 0.0))
    return math.exp(middle - length), math.exp(middle + length)


def _size(gaps: Mapping[str, float]) -> Callable[[str], float]:
    return lambda name: abs(gaps[name])


def _known(prediction: Mapping[str, Any], task: str) -> dict[str, float]:
    """Return what the parts of prediction intervals say about calibration and simulation."""
    found = {}
    for figure in ("response_time", "p95", "throughput"):
        interval = prediction[figure]
        if interval["low"] > 0:
            length = math.log(interval["high"] / interval["low"])
            found[figure] = length / 2 / NORMAL * _share(interval)
    interval = prediction["utilization"].get(task)
    if interval is not None:
        found["utilization"] = (interval["high"] - interval["low"]) / 2 / NORMAL * _share(interval)
    return found


def _share(interval: Mapping[str, Any]) -> float:
    """Return the standard deviation due to calibration and simulation, as a share of all of it."""
    parts = interval["parts"]
    return math.sqrt(parts.get("calibration", 0.0) + parts.get("simulation", 0.0))
