"""Measure the profile of a machine.

One cost after the other, each in a process of its own; last the ring, traced where that is permitted, and
simulated: with the processors that come into question, the one that takes as long as the ring did is the
machine's. What was measured while others used the machine is measured again, a few times; a machine that
stays busy has no profile.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import Literal, TypeVar

import msgspec

from analyzer.host.behaviour import USUAL, Behaviour, behaviour
from analyzer.host.costs import COLD_IDLES, COLD_WORKS
from analyzer.host.estimates import Estimate, typical
from analyzer.host.fitting import fit_migration, predict_rounds, rms_error
from analyzer.host.idling import LEVELS
from analyzer.host.names import HOST
from analyzer.host.profile import Cold, HostProfile, Scheduler, Timer, WakeUp, this_machine
from analyzer.host.quiet import watched
from analyzer.host.ring import Phase, RingReport
from analyzer.host.schedule import parse_trace, replay
from analyzer.host.stage import measure
from analyzer.host.tracing import recorded
from mup.errors import DeploymentError, LogError, UsageError
from mup.lqn.model import Migration, Processor, Turns
from mup.workload.speed_history import append, record

__all__ = ["DEFAULT_SECONDS", "IDLE_LIMIT", "profile_host", "select_scheduler"]

Result = TypeVar("Result")

DEFAULT_SECONDS = 42.0
"""With starts, the 45 s that `mup explore` announces."""
MIN_SECONDS = 1.0
MAX_SECONDS = 60.0
MIN_PHASE = 0.6  # seconds; several rounds of every token

IDLE_LIMIT = 0.03
"""Share of time with an idle core and waiting work up to which a host is an ideal processor."""

REPEATS = 2
"""How often one part is measured again after it was disturbed."""
MAX_REPEATS = 6
"""How often that happens in all: a machine that is busy now and then must not be measured for ever."""
PAUSE = 1.0
"""Seconds before a part is measured again: what disturbed it may end."""

FIT_MARGIN = 0.05
"""By how much another way to find the migration must explain the ring better than the trace."""

# What each part takes of the time, and what it is called while it runs.
PARTS: dict[str, tuple[float, str]] = {
    "speeds": (0.03, "speed of each core"),
    "parallel": (0.05, "all cores at once"),
    "sharing": (0.06, "two processes on one core"),
    "interpreter_lock": (0.05, "two threads of one process"),
    "timers": (0.03, "timers"),
    "wakeups": (0.03, "wake-ups"),
    "cold": (0.13, "work after idling"),
    "idling": (0.4, "work while mostly idle"),
    "ring": (0.22, "scheduler"),
}


def profile_host(
    progress: Callable[[float, str], None] = lambda _share, _what: None,
    *,
    seconds: float = DEFAULT_SECONDS,
    accept_disturbed: bool = False,
) -> HostProfile:
    """Measure this machine. It should be idle otherwise.

    Args:
        progress: Called with the share done and what is done next.
        seconds: How long to measure; starting processes and simulating takes some seconds more.
        accept_disturbed: Whether a profile is returned, and says what is wrong with it, where others used the
            machine or where it does not explain its own measurement.

    Raises:
        UsageError: ``seconds`` is out of range.
        DeploymentError: A measurement failed, or it was disturbed again and again.
    """
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise UsageError(
            f"must be {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds, got {seconds:g}", where="seconds"
        )
    if not hasattr(os, "sched_setaffinity"):
        raise UsageError("this system cannot bind a process to a core; profiling needs Linux")
    began = time.monotonic()
    machine = this_machine()
    parts = _Parts(progress, accept_disturbed=accept_disturbed)
    results: dict[str, Mapping[str, list[float]]] = {
        name: json.loads(parts.measured(name, partial(measure, name, part * seconds)))
        for name, (part, _) in PARTS.items()
        if name != "ring"
    }

    def ring() -> tuple[RingReport, str | None]:
        length = max(MIN_PHASE, PARTS["ring"][0] * seconds / 3)
        with recorded() as recording:
            answer = measure("ring", length, cores=machine.cores)
        trace = None if recording is None else recording.text or None
        return msgspec.json.decode(answer, type=RingReport), trace

    def explained() -> tuple[Scheduler, str]:
        report, trace = parts.measured("ring", ring)
        progress(0.95, "simulating the same")
        scheduler = _scheduler(report, None if trace is None else _behaviour(trace, report))
        return scheduler, scheduler.warning

    scheduler = parts.repeated("ring", explained)
    speeds = results["speeds"]
    profile = HostProfile(
        identity=machine,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        mup=_version(),
        python=platform.python_version(),
        measured=True,
        disturbed=parts.disturbed,
        speed=tuple(typical(speeds[core]) for core in sorted(speeds, key=int)),
        parallel=typical(results["parallel"]["efficiency"]),
        sharing=typical(results["sharing"]["factor"]),
        interpreter_lock=typical(results["interpreter_lock"]["factor"]),
        switch_interval=results["interpreter_lock"]["interval"][0],
        timers=tuple(Timer(kind, typical(late)) for kind, late in results["timers"].items()),
        wakeups=tuple(
            WakeUp(
                where,
                typical(results["wakeups"][f"{where} wall"]),
                typical(results["wakeups"][f"{where} cpu"]),
            )
            for where in ("free", "same", "different")
            if f"{where} wall" in results["wakeups"]
        ),
        cold=tuple(
            Cold(work, idle, typical(results["cold"][f"{work:g}/{idle:g}"]))
            for work in COLD_WORKS
            for idle in COLD_IDLES
        ),
        idling=tuple(
            (level, typical(factors)) for level in LEVELS if (factors := results["idling"].get(f"{level:g}"))
        ),
        scheduler=scheduler,
        seconds=round(time.monotonic() - began, 1),
    )
    probed = profile.mean_speed
    append(record("profile", f"profile-{profile.date}", seconds, probed=probed, disturbed=parts.disturbed))
    return profile


class _Parts:
    """Measures one part after the other, again where one was disturbed.

    Attributes:
        disturbed: What disturbed the parts that count all the same, "" if nothing did.
    """

    def __init__(self, progress: Callable[[float, str], None], *, accept_disturbed: bool) -> None:
        self.disturbed = ""
        self._progress = progress
        self._accept = accept_disturbed
        self._left = MAX_REPEATS
        self._done = 0.0

    def measured(self, name: str, measurement: Callable[[], Result]) -> Result:
        """Return what was measured while the machine was ours.

        Raises:
            DeploymentError: It was not, however often it was tried.
        """
        share, label = PARTS[name]
        self._progress(self._done, label)
        result = self.repeated(name, lambda: watched(measurement))
        self._done += share
        return result

    def repeated(self, name: str, attempt: Callable[[], tuple[Result, str]]) -> Result:
        """Return the first result nothing is wrong with; raises as `measured` does."""
        _, label = PARTS[name]
        result, reason = attempt()
        for _ in range(0 if self._accept else REPEATS):
            if not reason or not self._left:
                break
            self._left -= 1
            self._progress(self._done, f"{label}, again: {reason}")
            time.sleep(PAUSE)
            result, reason = attempt()
        if reason and not self._accept:
            raise DeploymentError(
                f"this machine cannot be profiled now: while measuring {label!r}, {reason}",
                hint="stop what else runs and repeat 'mup host'; 'mup host --accept-disturbed' keeps a"
                " profile all the same, and marks it",
            )
        self.disturbed = self.disturbed or (f"{label}: {reason}" if reason else "")
        return result


def _behaviour(trace: str, report: RingReport) -> Behaviour | None:
    """Return what a trace shows; None if it is of no use (no events recorded, say)."""
    try:
        schedule = replay(parse_trace(trace), report.cores)
        return behaviour(schedule, report.pids, [(p.start / 1e9, p.end / 1e9) for p in report.phases])
    except (ValueError, LogError):
        return None


def _scheduler(report: RingReport, traced: Behaviour | None) -> Scheduler:
    measured = report.mean_rounds
    errors: dict[str, tuple[float, ...]] = {}

    def off(name: str, processor: Processor) -> float:
        """Note the errors of a processor; return the root of their mean square."""
        predicted = predict_rounds(report, processor)
        errors[name] = tuple(p / m - 1 for p, m in zip(predicted, measured, strict=True))
        return rms_error(predicted, measured)

    turns = USUAL if traced is None else traced.turns
    sizes = {"ps": off("ps", Processor(name=HOST, cores=len(report.cores)))}
    if traced is not None:
        sizes["traced"] = off("traced", _cores(report, traced.migration, turns))
    fitted = None
    # The fit takes longest. No fit is better than a trace by more than its whole error.
    if traced is None or (max(traced.idle_while_waiting) >= IDLE_LIMIT and sizes["traced"] > FIT_MARGIN):
        fitted = fit_migration(report, turns=turns).migration
        sizes["fitted"] = off("fitted", _cores(report, fitted, turns))
    discipline, migration, source = select_scheduler(
        idle_while_waiting=max(traced.idle_while_waiting) if traced else None,
        traced=traced.migration if traced else None,
        fitted=fitted,
        errors=sizes,
    )
    used = [
        sum(b.cpu for p in report.processes for b in p.within(phase)) + phase.hub_cpu
        for phase in report.phases
    ]
    lengths = [(phase.end - phase.start) / 1e9 * len(report.cores) for phase in report.phases]
    return Scheduler(
        source=source,
        discipline=discipline,
        migration=migration,
        behaviour=traced,
        fitted=fitted,
        loads=tuple(u / length for u, length in zip(used, lengths, strict=True)),
        rounds=measured,
        errors=errors,
        extra=tuple(_extra(report, phase) for phase in report.phases),
    )


def select_scheduler(
    *,
    idle_while_waiting: float | None,
    traced: Migration | None,
    fitted: Migration | None,
    errors: Mapping[str, float],
) -> tuple[Literal["ps", "cores"], Migration | None, Literal["trace", "fit"]]:
    """Return discipline, migration and source of the scheduler.

    An ideal processor, where cores do not idle while work waits, or, without a trace, where it explains
    the ring as well as anything else. Else the traced migration, unless the fitted one explains the ring
    better by more than 5 points.

    Args:
        idle_while_waiting: Share of time, at the load where it is largest; None without a trace.
        traced: Migration found in the trace; None without one.
        fitted: Migration that explains the ring best; None where there is a trace that is good enough.
        errors: Root mean square of the relative errors in the ring, by ``ps``, ``traced`` and ``fitted``.
    """
    if idle_while_waiting is not None and traced is not None:
        if idle_while_waiting < IDLE_LIMIT:
            return "ps", None, "trace"
        if fitted is None or errors["traced"] <= errors["fitted"] + FIT_MARGIN:
            return "cores", traced, "trace"
        return "cores", fitted, "fit"
    if errors["ps"] <= errors["fitted"] + IDLE_LIMIT / 2:
        return "ps", None, "fit"
    return "cores", fitted, "fit"


def _cores(report: RingReport, migration: Migration, turns: Turns) -> Processor:
    cores = len(report.cores)
    return Processor(name=HOST, cores=cores, discipline="cores", migration=migration, turns=turns)


def _extra(report: RingReport, phase: Phase) -> Estimate:
    """Return the processor seconds of a burst beyond those of its work back to back; a sample per process."""
    bursts = [process.within(phase) for process in report.processes]
    return typical([fmean(b.cpu - b.work for b in mine) for mine in bursts if mine])


def _version() -> str:
    try:
        return version("mup-framework")
    except PackageNotFoundError:
        return ""
