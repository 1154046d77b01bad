"""Variation of this machine's speed between an exploration and a later run.

The answer is the mean square of the difference of two runs' logarithmic speeds, read off the machine's
history (``mup.workload.speed_history``), for two lags: a run that begins within ten minutes of the
exploration, and any later one. (Of a stationary process this is twice the semivariogram; G. Matheron,
"Principles of geostatistics", 1963.) Speeds are those of a busy machine: what idling does to work is in the
model already (``Processor.idling``). What else the utilization does to the speed is in the differences, for
the runs of a history differ in it.

A short run meets one moment of a restless machine, a long one its average: windows of one run differ by a
variance that falls with their length. What it explains of the difference of two runs of a history, with
their lengths, is taken off; what it does to a run of another length is added (``Variation.between``).

A machine with little history is taken to be like others: the *prior* counts as a few degrees of freedom, and
the machine's own differences are added to it as in a scaled inverse chi-square distribution, the conjugate
one of a variance (A. Gelman et al., "Bayesian data analysis", 2.6). So predictive quantiles stay Student's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

from mup.workload.cpu import STOLEN_LIMIT
from mup.workload.machine import Identity
from mup.workload.speed_history import SpeedRecord

__all__ = ["PRIOR", "SOON", "Run", "Selection", "Variance", "Variation", "runs_of", "selected", "variation"]

SOON: Final = 600.0
"""Lag in seconds up to which a run follows an exploration at once."""
MOST: Final = 500
"""Runs that count, the newest ones: more tell hardly more, and every pair of them is compared."""
DAY: Final = 86_400.0
SLACK: Final = 60.0
"""Seconds by which clocks may disagree: they are set now and then."""
ENOUGH: Final = 10.0
"""Degrees of freedom from which on the variance within runs counts: a wrong one would be taken off all."""


@dataclass(frozen=True, slots=True)
class Variance:
    """Of the logarithm of a run's speed relative to an exploration's.

    Attributes:
        value: The variance.
        freedom: Its degrees of freedom.
    """

    value: float
    freedom: float

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.value)

    def with_(self, other: Variance) -> Variance:
        """Return what both say together."""
        freedom = self.freedom + other.freedom
        if freedom == 0:
            return Variance(0.0, 0.0)
        return Variance((self.value * self.freedom + other.value * other.freedom) / freedom, freedom)


PRIOR: Final = Variance(0.14**2, 4.0)
"""Of a machine without a history. In 52 runs after eight explorations a shared virtual machine with 2 cores
was 0.63 to 1.25 times as fast as during the exploration. The root mean square of the logarithms is 0.12 in
the 32 runs that are known one by one; the others went farther down, so 0.14 is taken. It counts as half of
the eight explorations, for it is another machine."""
PRIOR_SOURCE: Final = (
    "taken from runs on a shared virtual machine, 0.63 to 1.25 times as fast as during the exploration"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One exploration, or one measured load.

    Attributes:
        at: Middle of it, in seconds since the epoch.
        monitored, probed: Logarithm of its speed by either means; None = unknown.
        windows: Logarithmic speeds of its windows, by the monitor.
        seconds: Length of all of them together.
    """

    at: float
    monitored: float | None
    probed: float | None
    windows: tuple[float, ...] = ()
    seconds: float = math.inf

    def difference(self, other: Run) -> float | None:
        """Return the difference of the logarithmic speeds by the same means; None if there is none."""
        if self.monitored is not None and other.monitored is not None:
            return self.monitored - other.monitored
        if self.probed is not None and other.probed is not None:
            return self.probed - other.probed
        return None


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a history can be used.

    Attributes:
        runs: By time.
        notes: What was left out, and why, one sentence each.
    """

    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()


def selected(
    records: Sequence[SpeedRecord],
    here: Identity,
    boot: str,
    booted: float,
    slowness: Callable[[float], float] = lambda _: 1.0,
) -> Selection:
    """Return the runs of a machine that say something about its speed.

    Args:
        records: Of a history.
        here: The machine.
        boot: The start of the machine it is running since; "" = unknown.
        booted: When that was, in seconds since the epoch.
        slowness: How much longer work takes at a utilization than on the busy machine.
    """
    notes = []
    mine = [r for r in records if r.machine == here]
    if len(mine) < len(records):
        others = {r.machine.hostname for r in records if r.machine != here}
        notes.append(
            f"{_count(len(records) - len(mine), 'record')} of the speed history left out: of another machine"
            f" ({', '.join(sorted(others)[:3])}; processor, kernel and cores have to be the same, too)"
        )
    elsewhere = _elsewhere(mine, boot, booted)
    if elsewhere:
        lost = sum(r.boot in elsewhere for r in mine)
        mine = [r for r in mine if r.boot not in elsewhere]
        notes.append(
            f"{_count(lost, 'record')} of the speed history left out: taken on another host of this name that"
            " was running at the same time (a container that was moved)"
        )
    dated, changed = _dated(mine)
    if changed:
        notes.append(
            f"the clock was set back or forth while {_count(changed, 'record')} of the speed history were"
            " written: their time is that of the clock since the start of the machine, or they are left out"
        )
    good = [(at, r) for at, r in dated if not r.disturbed and (r.stolen or 0.0) <= STOLEN_LIMIT]
    if len(good) < len(dated):
        notes.append(
            f"{_count(len(dated) - len(good), 'record')} of the speed history left out: other programs used"
            " the machine meanwhile, or its hypervisor withheld it"
        )
    return Selection(tuple(runs_of(good, slowness)), tuple(notes))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _elsewhere(records: Iterable[SpeedRecord], boot: str, booted: float) -> set[str]:
    """Return the starts of other hosts: records of theirs are younger than the start of this one."""
    if not boot:
        return set()
    last: dict[str, float] = {}
    for r in records:
        last[r.boot] = max(last.get(r.boot, -math.inf), r.time.timestamp())
    return {other for other, at in last.items() if other not in ("", boot) and at > booted + SLACK}


def _dated(records: Sequence[SpeedRecord]) -> tuple[list[tuple[float, SpeedRecord]], int]:
    """Return records with their times by clocks that run forwards only, and how many others were wrong.

    A clock on the wall that disagrees with the clock since the start of the machine was set. What has no
    other clock and lies before its predecessor in the file has no place in time.
    """
    offsets: dict[str, list[float]] = {}
    for r in records:
        offsets.setdefault(r.boot, []).append(r.time.timestamp() - r.since_boot)
    started = {boot: statistics.median(values) for boot, values in offsets.items()}
    found, changed, latest = [], 0, -math.inf
    for r in records:
        at = r.time.timestamp()
        if r.boot:
            true = started[r.boot] + r.since_boot
            changed += abs(true - at) > SLACK
            found.append((true, r))
        elif at < latest - SLACK:
            changed += 1
        else:
            latest = max(latest, at)
            found.append((at, r))
    return sorted(found, key=lambda pair: pair[0]), changed


def runs_of(
    dated: Iterable[tuple[float, SpeedRecord]], slowness: Callable[[float], float] = lambda _: 1.0
) -> list[Run]:
    """Return the runs that records belong to, by time.

    Args:
        dated: Records, and when they ended.
        slowness: As in ``selected``.
    """
    groups: dict[str, list[tuple[float, SpeedRecord]]] = {}
    for at, r in dated:
        if r.monitored is not None or r.probed is not None:
            groups.setdefault(r.run, []).append((at, r))
    runs = []
    for members in groups.values():
        monitored = [
            (r.seconds, r.monitored * (1.0 if r.utilization is None else slowness(r.utilization)))
            for _, r in members
            if r.monitored is not None
        ]
        probed = [(r.seconds, r.probed) for _, r in members if r.probed is not None]
        first = min(at - r.seconds for at, r in members)
        runs.append(
            Run(
                (first + max(at for at, _ in members)) / 2,
                _mean_speed(monitored) if len(monitored) == len(members) else None,
                _mean_speed(probed) if len(probed) == len(members) else None,
                tuple(math.log(speed) for _, speed in monitored),
                sum(r.seconds for _, r in members),
            )
        )
    return sorted(runs, key=lambda run: run.at)


def _mean_speed(speeds: Sequence[tuple[float, float]]) -> float:
    """Return the logarithm of the speed at which all seconds together did their work."""
    # The mean time of a unit of work is what averages; speeds do not.
    return math.log(sum(s for s, _ in speeds) / sum(s / speed for s, speed in speeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """How the speed of a machine varies.

    Attributes:
        soon: Of a run that begins within ten minutes of the exploration, if both are long.
        later: Of any later one, if both are long.
        within: Of the mean over one second in a run; that over s seconds has a variance s times smaller. From
            the history alone; 0 degrees of freedom if unknown.
        runs: How many runs of this machine it comes from.
        ratio: Fastest of them relative to the slowest, today if there are several; 1 if unknown.
        today: Whether ``ratio`` is that of the last 24 hours.
        since: Time of the first run, in seconds since the epoch.
    """

    soon: Variance
    later: Variance
    within: Variance = Variance(0.0, 0.0)
    runs: int = 0
    ratio: float = 1.0
    today: bool = False
    since: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``speed_history`` of ``mup host --json``."""
        return {
            "runs": self.runs,
            "since": datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
            if self.runs
            else None,
            "ratio": self.ratio,
            "today": self.today,
            **{
                name: {"sd": v.sd, "freedom": v.freedom}
                for name, v in (("soon", self.soon), ("later", self.later), ("within", self.within))
            },
        }

    def after(self, lag: float | None) -> Variance:
        """Return the variance at a lag in seconds; None = any lag."""
        return self.soon if lag is not None and lag <= SOON else self.later

    def between(self, lag: float | None, run: float, explored: float) -> Variance:
        """Return the variance of a run relative to an exploration.

        Args:
            lag: Seconds from one to the other; None = any.
            run: Length in seconds.
            explored: That of the exploration.
        """
        slow = self.after(lag)
        return Variance(slow.value + self.within.value * (1 / run + 1 / explored), slow.freedom)

    def source(self, lag: float | None) -> str:
        """Return where the variance at a lag comes from, as the end of a sentence."""
        own = self.after(lag).freedom - PRIOR.freedom
        if self.runs < 2:
            return f"it has no history of its own, so its spread is {PRIOR_SOURCE}"
        when = "today" if self.today else f"since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d}"
        text = f"its speed varied by {100 * (self.ratio - 1):.0f} % {when} ({self.runs} runs in its history)"
        return text if own >= PRIOR.freedom else f"{text}; so few that the rest is {PRIOR_SOURCE}"


def variation(runs: Sequence[Run], now: float, prior: Variance = PRIOR) -> Variation:
    """Return how the speed varies over runs of one machine.

    Args:
        runs: By time.
        now: In seconds since the epoch.
        prior: What is known of machines without a history.
    """
    runs = runs[-MOST:]
    within = _within(runs)
    following, apart = _following(runs, within.value), _apart(runs, within.value)
    soon, later = following.with_(prior), apart.with_(prior)
    if later.value < soon.value:
        # What changes within minutes changes within hours, too. Estimates that say otherwise are pooled (the
        # pool-adjacent-violators algorithm); they share runs, so degrees of freedom do not add up.
        both = following.with_(apart).with_(prior)
        soon = later = Variance(both.value, max(following.freedom, apart.freedom) + prior.freedom)
    recent = [run for run in runs if run.at > now - DAY]
    today = len(recent) > 1
    ratio = _ratio(recent if today else runs)
    return Variation(
        soon=soon,
        later=later,
        within=within,
        runs=len(runs),
        ratio=ratio,
        today=today,
        since=runs[0].at if runs else now,
    )


def _excess(squares: Sequence[float], within: Sequence[float]) -> float:
    """Return the mean of squared differences beyond what runs vary within themselves; at least 0."""
    return max(0.0, (math.fsum(squares) - math.fsum(within)) / len(squares))


def _stretches(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs by stretches of time of ten minutes, each of which begins with a run."""
    stretches: list[list[Run]] = []
    for run in runs:
        if stretches and run.at - stretches[-1][0].at <= SOON:
            stretches[-1].append(run)
        else:
            stretches.append([run])
    return stretches


def _following(runs: Sequence[Run], within: float) -> Variance:
    """Return the mean square of the differences of runs within ten minutes of each other.

    Of that, what the variance ``within`` a run of a second explains does not count. Neighbours alone would
    not do: the speed drifts, and runs a few seconds apart differ by half as much as those minutes apart, as
    a run and its exploration are. All pairs of a stretch count, all stretches alike, and each has one degree
    of freedom: what drifts has in ten minutes hardly more than one value.
    """
    squares, known = [], []
    for stretch in _stretches(runs):
        found = [
            (difference**2, within * (1 / one.seconds + 1 / other.seconds))
            for one, other in combinations(stretch, 2)
            if (difference := one.difference(other)) is not None
        ]
        if found:
            squares.append(statistics.fmean(square for square, _ in found))
            known.append(statistics.fmean(own for _, own in found))
    return Variance(_excess(squares, known), len(squares)) if squares else Variance(0.0, 0.0)


def _apart(runs: Sequence[Run], within: float) -> Variance:
    """Return the mean square of the differences of runs that are farther apart.

    Of that, what the variance ``within`` a run of a second explains does not count. Runs within ten minutes
    of each other say the same: of k such stretches of time, all pairs count alike, and have k - 1 degrees of
    freedom.
    """
    stretches = _stretches(runs)
    squares, known, used = [], [], set()
    for i, earlier in enumerate(stretches):
        for k in range(i + 1, len(stretches)):
            pairs = [(one, other) for one in earlier for other in stretches[k] if other.at - one.at > SOON]
            found = [
                (difference**2, within * (1 / one.seconds + 1 / other.seconds))
                for one, other in pairs
                if (difference := one.difference(other)) is not None
            ]
            if found:
                squares.append(statistics.fmean(square for square, _ in found))
                known.append(statistics.fmean(own for _, own in found))
                used |= {i, k}
    return Variance(_excess(squares, known), len(used) - 1) if squares else Variance(0.0, 0.0)


def _within(runs: Iterable[Run]) -> Variance:
    """Return the variance of the mean over one second, around the speed of the run it is in."""
    total = Variance(0.0, 0.0)
    for run in runs:
        if len(run.windows) > 1:
            # Longer windows differ by less.
            length = run.seconds / len(run.windows)
            total = total.with_(Variance(statistics.variance(run.windows) * length, len(run.windows) - 1))
    return total if total.freedom >= ENOUGH else Variance(0.0, 0.0)


def _ratio(runs: Sequence[Run]) -> float:
    ratios = [1.0]
    for speeds in ([r.monitored for r in runs], [r.probed for r in runs]):
        known = [speed for speed in speeds if speed is not None]
        if len(known) > 1:
            ratios.append(math.exp(max(known) - min(known)))
            break
    return ratios[-1]
