"""Checks of averages: over windows of time, or of trials for ``mup fit``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from analyzer.data_checks.findings import Checked, Finding, FloatArray, Needed, trend
from analyzer.estimation.methods import estimate
from analyzer.estimation.samples import Windows
from analyzer.fitting.data import Data
from analyzer.fitting.measures import long_name
from mup.errors import UsageError

__all__ = ["check_trials", "check_windows"]

UNEXPLAINED = 0.2
"""Relative scatter of the utilization around what throughputs explain that is noticed."""
BELOW = 0.9
"""A response time may be this part of the demand in it: both have errors."""
DIFFERENT = 0.3
"""Relative difference of think times, or of times per request, that configurations imply."""
NEGATIVE = 0.05
"""Part of a cycle by which it may be shorter than its response time."""


def check_windows(windows: Windows, *, cores: float, precision: float) -> Checked:
    """Check utilizations and throughputs over windows.

    Args:
        windows: K windows.
        cores: The utilization is a share of.
        precision: Relative half-width that numbers of windows are given for.
    """
    count = len(windows.utilization)
    facts = {
        "windows": float(count),
        "utilization, mean": float(windows.utilization.mean()),
        "per second": float(windows.throughput.sum(axis=1).mean()),
    }
    findings: list[Finding] = []
    samples: tuple[Needed, ...] = ()
    try:
        found = estimate(windows, cores=cores, resamples=200)
    except UsageError as error:
        findings.append(Finding("laws", "problem", f"utilization law: {error.message}"))
        return Checked("windows", facts, tuple(findings), (), precision)
    busy = windows.utilization * cores
    explained = windows.throughput @ found.demand
    scatter = float(np.sqrt(np.mean((busy - explained) ** 2)) / max(busy.mean(), 1e-12))
    text = f"utilization law: throughputs explain the busy cores to {scatter:.1%}"
    findings.append(Finding("laws", "problem" if scatter > UNEXPLAINED else "ok", text))
    findings += _times_below(windows, found.demand)
    for name, value in zip(windows.classes, found.demand.tolist(), strict=True):
        if value == 0:
            findings.append(
                Finding(
                    "laws", "problem", f"{name} would need no processor time at all: is its throughput right?"
                )
            )
    change, real = trend(busy / np.maximum(explained, 1e-12))
    if real and abs(change) > UNEXPLAINED:
        text = f"the same throughputs take {change:+.0%} more processor time at the end than at the beginning"
        findings.append(Finding("stationarity", "problem", text))
    else:
        findings.append(Finding("stationarity", "ok", "what throughputs cost does not drift"))
    half = (found.high - found.low) / 2 / np.where(found.demand > 0, found.demand, np.nan)
    samples = tuple(
        Needed(
            name,
            count,
            float(found.demand[r]),
            math.nan,
            float(half[r]) if math.isfinite(half[r]) else None,
            math.ceil(count * (half[r] / precision) ** 2) if math.isfinite(half[r]) else None,
        )
        for r, name in enumerate(windows.classes)
    )
    return Checked("windows", facts, tuple(findings), samples, precision)


def _times_below(windows: Windows, demand: FloatArray) -> Iterator[Finding]:
    for r, name in enumerate(windows.classes):
        times = windows.response_time[:, r]
        known = times[np.isfinite(times)]
        if len(known) and known.mean() < BELOW * demand[r]:
            yield Finding(
                "laws",
                "problem",
                f"{name}: the mean response time, {known.mean():.3g} s, is below the demand that the "
                "utilization "
                f"law gives, {demand[r]:.3g} s: units, cores, or work that requests do not wait for",
            )


def check_trials(data: Data, *, precision: float) -> Checked:
    """Check measurements of several configurations, as ``mup fit`` reads them.

    Little's law of a closed system, clients = throughput x (response time + think time), gives a think time
    for every configuration, which must not be negative, and be the same in all that do not set it. The
    utilization law gives a time per request for every utilization.
    """
    names = [long_name(measure) for measure in data.measures]
    facts = {"configurations": float(len(data.trials)), "figures": float(data.values)}
    findings = [*_think_times(data, names), *_times_per_request(data, names)]
    if not findings:
        findings.append(
            Finding(
                "laws",
                "note",
                "no law connects these figures: clients with throughput and response time would",
            )
        )
    rows = min(len(trial.rows) for trial in data.trials)
    few = rows < 3
    text = f"at least {rows} measurements of every configuration"
    findings.append(
        Finding("samples", "note" if few else "ok", text + (": their errors are guesses" if few else ""))
    )
    return Checked("trials", facts, tuple(findings), (), precision)


def _settings(trial_settings: object) -> Mapping[str, float]:
    return {parameter.path: value for parameter, value in trial_settings}  # type: ignore[attr-defined]


def _think_times(data: Data, names: list[str]) -> Iterator[Finding]:
    wanted = ("cycle.throughput", "cycle.response_time")
    if not set(wanted) <= set(names):
        return
    x, r = (names.index(name) for name in wanted)
    implied: list[float] = []
    for trial in data.trials:
        set_to = _settings(trial.settings)
        rate, time = float(trial.means[x]), float(trial.means[r])
        if "clients" not in set_to or not (rate > 0 and math.isfinite(time)):
            continue
        clients = set_to["clients"]
        cycle = clients / rate
        think = cycle - time
        if think < -NEGATIVE * max(cycle, time):
            yield Finding(
                "laws",
                "problem",
                f"{clients:g} clients, but throughput x response time = {rate * time:.4g} are in the system "
                "at once: "
                "are times in milliseconds, or is a throughput of all instead of one?",
            )
        elif "think" in set_to and abs(think - set_to["think"]) > DIFFERENT * max(cycle, 1e-12):
            yield Finding(
                "laws",
                "problem",
                f"{clients:g} clients with {set_to['think']:g} s of think time, but clients / throughput - "
                "response "
                f"time = {think:.3g} s",
            )
        else:
            implied.append(think)
    if len(implied) > 1 and "think" not in {p for t in data.trials for p in _settings(t.settings)}:
        low, high = min(implied), max(implied)
        if high - low > DIFFERENT * max(abs(high), 1e-12) and high - low > 0.1 * _shortest_cycle(data, x):
            yield Finding(
                "laws",
                "problem",
                f"Little's law gives think times from {low:.3g} to {high:.3g} s, which no setting explains: "
                "a figure "
                "of some configuration is wrong",
            )
            return
    if implied:
        low, high = min(implied), max(implied)
        yield Finding(
            "laws", "ok", f"Little's law: think times of {low:.3g} to {high:.3g} s in {len(implied)} loads"
        )


def _shortest_cycle(data: Data, x: int) -> float:
    return min(
        _settings(t.settings)["clients"] / float(t.means[x])
        for t in data.trials
        if "clients" in _settings(t.settings) and t.means[x] > 0
    )


def _times_per_request(data: Data, names: list[str]) -> Iterator[Finding]:
    if "cycle.throughput" not in names:
        return
    x = names.index("cycle.throughput")
    for u, name in enumerate(names):
        if not name.endswith(".utilization"):
            continue
        servers = {"tasks": "pool.", "processors": "cores."}.get(name.partition(".")[0], "")
        what = name.partition(".")[2].removesuffix(".utilization")
        times = []
        for trial in data.trials:
            number = _settings(trial.settings).get(servers + what, 1.0)
            if trial.means[x] > 0 and math.isfinite(trial.means[u]):
                times.append(float(trial.means[u]) * number / float(trial.means[x]))
                if trial.means[u] > 1:
                    yield Finding(
                        "laws", "problem", f"{name} is {trial.means[u]:.3g}: it must be a share, 0 to 1"
                    )
        if len(times) > 1 and max(times) > 2 * max(min(times), 1e-12):
            yield Finding(
                "laws",
                "note",
                f"{name} / throughput is {min(times) * 1e3:.3g} to {max(times) * 1e3:.3g} ms: the busy time "
                "per cycle "
                "depends on the configuration by more than a factor of 2",
            )
        elif times:
            yield Finding(
                "laws", "ok", f"utilization law: {what} is busy for {np.mean(times) * 1e3:.3g} ms per cycle"
            )
