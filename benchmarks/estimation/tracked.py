"""False alarms of tracking, and its delay after a step: systems whose demands change once.

The systems are those of ``estimation.station``, which shares nothing with the method. A case is simulated
with its demands as they are for 1000 s, then with larger ones for 500 s, and every request is known. An alarm
within 20 periods of the step is a true one, every other one is false.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from analyzer.estimation.samples import Trace
from analyzer.estimation.tracking import track
from estimation.station import LOAD_OF_ONE, System, simulate, system

__all__ = ["CASES", "PERIOD", "Case", "Noticed", "followed"]

PERIOD = 5.0
"""Seconds; mean demands are 0.1 and 0.05 s."""
BEFORE, AFTER = 1000.0, 500.0
"""Seconds before the step, and after it."""
SOON, LATEST = 10, 20
"""Periods after the step within which it is to be noticed, and beyond which an alarm is a false one."""


@dataclass(frozen=True)
class Case:
    """A system and its step.

    Attributes:
        users: Of the system.
        scv: Squared coefficient of variation of demands.
        factor: By what demands grow.
        lognormal: Demands that vary more than exponential ones are lognormal instead of hyperexponential.
    """

    users: int
    scv: float
    factor: float
    lognormal: bool = False

    @property
    def work(self) -> str:
        """What demands are distributed as."""
        if self.scv == 1.0:
            return "exponential"
        return f"{'lognormal' if self.lognormal else 'hyperexp.'}, {self.scv:g}"


CASES = (
    Case(40, 1.0, 1.3),
    Case(100, 1.0, 1.2),
    Case(100, 1.0, 1.3),
    Case(100, 4.0, 1.3),
    Case(100, 4.0, 1.3, lognormal=True),
    Case(160, 1.0, 1.3),
    Case(160, 4.0, 1.3),
    Case(160, 4.0, 1.3, lognormal=True),
)


@dataclass(frozen=True)
class Noticed:
    """What tracking said of a case.

    Attributes:
        requests: Per period before the step.
        false: False alarms per 1000 of the periods that can have one: not learned from, not after the step.
        soon, within: Shares of steps noticed within 10 and within 20 periods.
        delay: Periods until the alarm, median of the steps that were noticed; NaN if none was.
        error: Mean relative error of demands from 20 periods after the step on.
    """

    requests: float
    false: float
    soon: float
    within: float
    delay: float
    error: float


def followed(case: Case, repeats: int) -> Noticed:
    """Simulate and track a case with the seeds 0 to ``repeats`` - 1."""
    before = system(4, 16, case.users, scv=case.scv, lognormal=case.lognormal)
    after = replace(before, demand=before.demand * case.factor)
    periods, false, delays, errors, requests = 0, 0, [], [], []
    for seed in range(repeats):
        first, second = _seconds_of(before, BEFORE, seed), _seconds_of(after, AFTER, seed + 1000)
        data, change = _joined(first, second)
        requests.append(len(first.kind) * PERIOD / BEFORE)
        found = track(data, cores=4, period=PERIOD)
        ends = [float(found.end[alarm.period]) for alarm in found.alarms]
        true = [end for end in ends if change < end <= change + LATEST * PERIOD]
        periods += len(found.end) - found.learning - LATEST
        false += len(ends) - len(true)
        delays += [(end - change) / PERIOD for end in true[:1]]
        late = found.end > change + LATEST * PERIOD
        errors.append(float(np.abs(found.demand[late] / after.demand - 1).mean()))
    return Noticed(
        requests=float(np.mean(requests)),
        false=1e3 * false / periods,
        soon=sum(delay <= SOON for delay in delays) / repeats,
        within=len(delays) / repeats,
        delay=float(np.median(delays)) if delays else float("nan"),
        error=float(np.mean(errors)),
    )


def _seconds_of(model: System, seconds: float, seed: int) -> Trace:
    """Return the requests of a system that are admitted within some seconds."""
    # More than the slower class can have: its users have gone through a cycle of thinking at least.
    samples = int(
        seconds * model.users / len(model.demand) / (LOAD_OF_ONE * model.demand.mean() / model.cores)
    )
    trace = simulate(model, samples, seed).trace
    chosen = trace.start < trace.start[0] + seconds
    return Trace(
        trace.classes, trace.kind[chosen], trace.owner[chosen], trace.start[chosen], trace.end[chosen]
    )


def _joined(first: Trace, second: Trace) -> tuple[Trace, float]:
    """Return one trace after the other, and the moment of the change."""
    change = float(first.end.max()) + 0.01
    shift = change - float(second.start.min())
    joined = Trace(
        first.classes,
        np.concatenate([first.kind, second.kind]),
        np.concatenate([first.owner, second.owner + len(first.kind)]),
        np.concatenate([first.start, second.start + shift]),
        np.concatenate([first.end, second.end + shift]),
    )
    return joined, change
