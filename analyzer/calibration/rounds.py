"""Choice of the next round of load, and the check of the one that has just ended.

Rounds without think times (*hot*) and with them (*cold*) alternate: a mostly idle system uses more processor
time per request than a busy one, so a model needs both. Rounds of several clients (*bursts*) show what
requests need on a busy machine. A round is *void* when the machine's speed changed too much while it lasted,
when other programs used too much of the machine, or when a process died; it is repeated while there is time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from analyzer.calibration.rundir import Phase, VoidWindow, Window
from mup.errors import UsageError
from mup.statistics.groups import MIN_BATCHES
from mup.workload.cpu import STOLEN_LIMIT
from mup.workload.machine import this_machine
from mup.workload.result import LoadResult
from mup.workload.speed import JUMP_LIMIT
from mup.workload.speed_monitor import MonitoredSpeed

__all__ = [
    "BURST_ROUNDS",
    "FOREIGN_LIMIT",
    "MIN_ROUNDS",
    "ClientPace",
    "ExploreSettings",
    "Round",
    "Rounds",
    "doubt_about",
    "usual_burst",
]

FOREIGN_LIMIT = 0.02
"""Share of the machine that other programs may use during a round."""
MIN_ROUNDS = MIN_BATCHES
"""Of each phase: with fewer there is no interval."""
BURST_ROUNDS = 3
BURST_PER_CORE = 4
"""So many clients for each core, back to back, keep a machine busy although some of them wait."""
SLOW_CYCLE = 1.0
"""A client whose cycles take longer (seconds) thinks less than it would, or it would show nothing."""
COLD_CYCLES = 6
"""So many cycles a round with think times should hold then: enough to average over, and pauses not much
shorter than those beyond which nothing changes any more (``mup.lqn.model.LOAD_DEPENDENCE_BELOW``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreSettings:
    """How long and how precisely to explore.

    Attributes:
        width: Relative half-width to reach for every endpoint's mean execution time.
        full_width: Read ``width`` as the whole width of the interval, as the thesis may be read.
        max_seconds: Cap on the time under load: repeated rounds included, warm-up and bursts excluded.
        round_seconds: Length of one round = one batch.
        warmup_seconds: Load before the first round, not observed; at least 0.2 s.
        idle_seconds: Silence before the load, in which housekeeping is measured.
        think_scale: Factor on the client's think times in the rounds with think times; None = 1, or less if a
            cycle would take more than a second.
        foreign_limit: Share of the machine that other programs may use during a round that counts.
        burst: Clients of three additional rounds at the end, back to back; 0 = no such rounds.
        seed: Of the client's choices.
    """

    width: float = 0.01
    full_width: bool = False
    max_seconds: float = 90.0
    round_seconds: float = 3.0
    warmup_seconds: float = 2.0
    idle_seconds: float = 2.0
    think_scale: float | None = None
    burst: int = 0
    foreign_limit: float = FOREIGN_LIMIT
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.width < 1:
            raise UsageError(f"width must be a fraction below 1, got {self.width!r}")
        for name in ("width", "max_seconds", "round_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{name} must be > 0, got {getattr(self, name)!r}")
        for name in ("warmup_seconds", "idle_seconds", "burst", "foreign_limit"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{name} must be >= 0, got {getattr(self, name)!r}")
        if self.think_scale is not None and not 0 < self.think_scale < float("inf"):
            raise UsageError(f"think_scale must be > 0, got {self.think_scale!r}")

    @property
    def goal(self) -> float:
        """The relative half-width to reach."""
        return self.width / 2 if self.full_width else self.width


def usual_burst() -> int:
    """Return how many clients the rounds at the end of an exploration usually have on this machine."""
    return BURST_PER_CORE * this_machine().cores


@dataclass(frozen=True, slots=True)
class ClientPace:
    """How long one cycle of the client takes: response and think time in seconds."""

    response: float
    think: float

    @classmethod
    def of(cls, result: LoadResult, think_scale: float) -> ClientPace:
        """Return the pace that a round with scaled think times shows."""
        cycles = len(result.cycles)
        if not cycles:
            return cls(0.0, 0.0)
        wanted = sum(c.think for c in result.cycles) - sum(result.think_lateness)
        return cls(sum(result.response_times) / cycles, max(0.0, wanted / cycles / think_scale))

    def cold_scale(self, round_seconds: float) -> float:
        """Return the factor on think times for rounds of this length; 0 if the client does not think."""
        if self.think < 1e-6:
            return 0.0
        if self.response + self.think <= SLOW_CYCLE:
            return 1.0
        # Half of a cycle has to be silence, however few cycles a round holds then.
        pause = max(round_seconds / COLD_CYCLES - self.response, self.response)
        return min(1.0, pause / self.think)


@dataclass(slots=True)
class Round:
    """One round that was run.

    Attributes:
        number: In the run.
        part: Number of the part.
        window: What was observed.
        reason: Why it does not count; "" = it does.
        usable: Whether it may count after all.
    """

    number: int
    part: int
    window: Window
    reason: str = ""
    usable: bool = True


class Rounds:
    """Everything that was run so far, over all parts of a run."""

    def __init__(self) -> None:
        self.all: list[Round] = []

    def add(self, part: int, window: Window, reason: str = "", *, usable: bool = True) -> None:
        """Remember a round."""
        self.all.append(Round(len(self.all), part, window, reason, usable))

    def good(self, phase: Phase) -> list[Round]:
        """Return the rounds of a phase that count."""
        return [r for r in self.all if r.window.phase == phase and not r.reason]

    def windows(self, part: int) -> dict[int, Window]:
        """Return the windows of one part by the number of their round, in order of time."""
        return {r.number: r.window for r in self.all if r.part == part}

    def of_part(self, part: int, before: int | None = None) -> tuple[list[Window], list[VoidWindow]]:
        """Return what counts and what does not of one part, in order of time.

        Args:
            part: Number of the part.
            before: Only rounds that ended before this time (monotonic ns).
        """
        mine = [r for r in self.all if r.part == part and (before is None or r.window.end < before)]
        return (
            [r.window for r in mine if not r.reason],
            [VoidWindow(window=r.window, reason=r.reason) for r in mine if r.reason],
        )

    @property
    def spent(self) -> float:
        """Seconds under load, bursts excluded."""
        return sum(r.window.seconds for r in self.all if r.window.phase != "burst")

    @property
    def spent_in_all(self) -> float:
        """Seconds under load, with bursts."""
        return sum(r.window.seconds for r in self.all)

    def next_phase(self, phases: Sequence[Phase], seconds: float) -> Phase:
        """Return the phase with the fewest good rounds.

        Args:
            phases: To choose from.
            seconds: That all phases may take. One whose rounds are void again and again must not use up the
                time of the others.
        """
        open_ = [phase for phase in phases if self._spent(phase) < seconds / len(phases)]
        return min(open_ or phases, key=lambda phase: len(self.good(phase)))

    def steady(self, phases: Sequence[Phase], limit: int) -> Sequence[Phase]:
        """Return the phases with fewer void rounds than a limit; all if there is none."""
        return [p for p in phases if self._void(p) < limit] or phases

    def _void(self, phase: Phase) -> int:
        return sum(1 for r in self.all if r.window.phase == phase and r.reason)

    def _spent(self, phase: Phase) -> float:
        return sum(r.window.seconds for r in self.all if r.window.phase == phase)

    def keep_doubtful(self, phase: Phase) -> int:
        """Let void rounds of a phase count after all where too few are left; return how many.

        The steadiest ones first. Rounds in which a process died stay out: their processor time is unknown.
        """
        missing = MIN_ROUNDS - len(self.good(phase))
        usable = [r for r in self.all if r.window.phase == phase and r.reason and r.usable]
        usable.sort(
            key=lambda r: (r.window.jump or 0.0) + (r.window.foreign or 0.0) + (r.window.stolen or 0.0)
        )
        kept = usable[: max(0, missing)]
        for found in kept:
            found.window = msgspec.structs.replace(found.window, flaw=found.reason)
            found.reason = ""
        return len(kept)


def doubt_about(window: Window, foreign_limit: float, monitored: MonitoredSpeed | None = None) -> str:
    """Return what makes a window worthless; "" if nothing does.

    Where the speed of the machine is known for the whole time, times are scaled by it, and only changes too
    large for that count. Where it is known before and after only, any change of more than 4 % does.

    Args:
        window: What was observed.
        foreign_limit: Share of the machine that other programs may use.
        monitored: The speed meanwhile; None = unknown.
    """
    reasons = []
    if monitored is not None:
        if monitored.unsteady:
            reasons.append(monitored.unsteady)
    elif window.jump is not None and window.jump > JUMP_LIMIT:
        reasons.append(f"the machine's speed jumped by {window.jump:.1%}")
    if window.foreign is not None and window.foreign > foreign_limit:
        reasons.append(f"other programs used {window.foreign:.1%} of the machine")
    if window.stolen is not None and window.stolen > STOLEN_LIMIT:
        reasons.append(f"the hypervisor withheld {window.stolen:.1%} of the machine")
    return " and ".join(reasons)
