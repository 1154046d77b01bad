"""Profile of a machine, and the processor of a model that represents it.

A profile is measured once per machine (`mup host`), kept in a file, and travels with the models calibrated
there. It is data: how it is measured is in ``analyzer.host.measure``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from analyzer.host.behaviour import AMONG_SERVICES, USUAL, Behaviour
from analyzer.host.estimates import Estimate
from analyzer.host.falling import falling
from mup.errors import LogError, ProjectError
from mup.json_text import parse_json
from mup.lqn.model import Migration, Processor, Turns
from mup.whole_file import write_whole
from mup.workload.machine import Identity, cache_folder, this_machine

__all__ = [
    "FORMAT",
    "Cold",
    "HostProfile",
    "Identity",
    "Scheduler",
    "Timer",
    "WakeUp",
    "current_profile",
    "default_path",
    "default_profile",
    "load_profile",
    "save_profile",
    "this_machine",
]

FORMAT: Literal["mup-host/1"] = "mup-host/1"
CHECK_LIMIT = 0.25
"""Root mean square of the errors of a profile's own check up to which it is believed: on idle machines it was
up to 0.12 (docs/explanation/host.md)."""
REMEDY = "'mup host' measures this machine in half a minute"


@dataclass(frozen=True, slots=True)
class Timer:
    """How late timers of a kind are, in seconds."""

    kind: str
    late: Estimate


@dataclass(frozen=True, slots=True)
class WakeUp:
    """What it costs that one process wakes another one by a socket.

    Attributes:
        where: ``free``: wherever the system puts them; ``same``: both on one core; ``different``: on two.
        wall: Seconds from sending to having received.
        cpu: Processor seconds of both processes.
    """

    where: str
    wall: Estimate
    cpu: Estimate


@dataclass(frozen=True, slots=True)
class Cold:
    """Extra processor seconds of a piece of work because its process slept before.

    Attributes:
        work: Processor seconds of the work, back to back.
        idle: Seconds slept before.
        extra: What the work took longer.
    """

    work: float
    idle: float
    extra: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Which processor of a model schedules as this machine does.

    Attributes:
        source: Where the answer comes from: ``trace``, ``fit`` (a simulation of what an application saw), or
            ``assumed``.
        discipline: ``ps`` where no core idles while work waits (below 3 % of the time); else ``cores``.
        migration: Of the discipline ``cores``.
        behaviour: What the trace showed; None without one.
        fitted: What explains the times of the application best; None where the trace is good enough.
        loads: Busy share of the cores in the phases of the application.
        rounds: Mean seconds the application took per round, per phase.
        errors: Of models of the same application, by processor: relative error of the time per round, per
            phase.
        extra: Processor seconds a burst of the application took beyond the same work back to back, per
            phase; the median over its processes.
    """

    source: Literal["trace", "fit", "assumed"]
    discipline: Literal["ps", "cores"]
    migration: Migration | None = None
    behaviour: Behaviour | None = None
    fitted: Migration | None = None
    loads: tuple[float, ...] = ()
    rounds: tuple[float, ...] = ()
    errors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    extra: tuple[Estimate, ...] = ()

    @property
    def turns(self) -> Turns | None:
        """How threads take turns on a core: as traced, or as usual; None where the machine is ideal."""
        if self.discipline == "ps":
            return None
        return USUAL if self.behaviour is None else self.behaviour.turns

    @property
    def warning(self) -> str:
        """Return why this is not how the machine schedules: it does not explain the application; or ""."""
        chosen = {"trace": "traced", "fit": "fitted"}.get(self.source, "")
        errors = self.errors.get("ps" if self.discipline == "ps" else chosen, ())
        if not errors or math.sqrt(sum(e * e for e in errors) / len(errors)) <= CHECK_LIMIT:
            return ""
        listing = ", ".join(f"{error:+.0%}" for error in errors)
        return f"its own check, simulated time per round, is off by {listing} (limit {CHECK_LIMIT:.0%})"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """A machine, measured.

    Attributes:
        identity: Which one.
        date: When, as ISO 8601 with time zone; "" if it was not measured.
        mup, python: Versions that measured it; the speed is that of this Python.
        measured: False for the ideal machine that stands in for one that was not measured.
        disturbed: What disturbed the measurement of a profile that was to be kept all the same; "" = nothing.
        seconds: How long measuring took.
        speed: Units of reference work per second of processor time (``mup.workload.speed``), per core.
        parallel: Work done by all cores at once over work done by each alone.
        sharing: Factor on the processor time of short bursts while two processes share a core.
        interpreter_lock: Factor on the processor time of two threads of one Python process.
        switch_interval: Seconds after which the interpreter lock changes hands.
        timers: How late timers of a millisecond are.
        wakeups: What waking another process costs.
        cold: What work costs more after sleeping.
        idling: Utilization, and factor on processor time at it.
        scheduler: How cores are given to threads.
        format: Of the file.
    """

    identity: Identity
    scheduler: Scheduler
    date: str = ""
    mup: str = ""
    python: str = ""
    measured: bool = False
    disturbed: str = ""
    seconds: float = 0.0
    speed: tuple[Estimate, ...] = ()
    parallel: Estimate | None = None
    sharing: Estimate | None = None
    interpreter_lock: Estimate | None = None
    switch_interval: float | None = None
    timers: tuple[Timer, ...] = ()
    wakeups: tuple[WakeUp, ...] = ()
    cold: tuple[Cold, ...] = ()
    idling: tuple[tuple[float, Estimate], ...] = ()
    format: Literal["mup-host/1"] = FORMAT

    @property
    def cores(self) -> int:
        """Cores a deployment may use."""
        return self.identity.cores

    @property
    def warning(self) -> str:
        """Return why its figures are not to be believed, with the remedy; "" if nothing says so."""
        reason = self.disturbed or self.scheduler.warning
        if not reason:
            return ""
        return (
            f"the host profile of {self.identity.hostname!r} is doubtful ({reason}): speed, scheduler and"
            " what idling costs may be wrong. 'mup host' on the idle machine measures them again"
        )

    @property
    def mean_speed(self) -> float | None:
        """Units per second and core, on average over the cores; None if unknown."""
        return sum(core.mean for core in self.speed) / len(self.speed) if self.speed else None

    @property
    def moves_as_services_do(self) -> bool:
        """Whether models have how threads of services move, by utilization, and not those of the ring."""
        return self.scheduler.source == "trace" and self.scheduler.discipline == "cores" and self.cores == 2

    def processor(self, name: str) -> Processor:
        """Return the processor that schedules as this machine does, at the speed of calibration.

        How threads of services move is known by utilization for two traced cores; else it is as in the ring.
        """
        scheduler = self.scheduler
        migration = scheduler.migration if scheduler.discipline == "cores" else None
        if migration is not None and self.moves_as_services_do:
            migration = replace(migration, by_utilization=AMONG_SERVICES)
        return Processor(
            name=name,
            cores=self.cores,
            discipline=scheduler.discipline,
            migration=migration,
            turns=scheduler.turns,
            idling=falling(self.idling),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values: dict[str, Any] = msgspec.to_builtins(asdict(self))
        return {"format": values.pop("format"), **values}

    @classmethod
    def from_json(cls, data: object, *, where: str = "") -> HostProfile:
        """Return what `to_json` wrote.

        Raises:
            LogError: It is something else.
        """
        found = data.get("format") if isinstance(data, dict) else None
        if found != FORMAT:
            raise LogError(
                f"not a host profile: its format must be {FORMAT!r}, got {found!r}", where=where, hint=REMEDY
            )
        try:
            profile = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise LogError(f"not a host profile: {error}", where=where, hint=REMEDY) from error
        if profile.cores < 1 or (profile.scheduler.discipline == "cores" and not profile.scheduler.migration):
            raise LogError("not a host profile: no cores, or no migration", where=where, hint=REMEDY)
        return profile


def default_profile(cores: int) -> HostProfile:
    """Return an ideal machine with so many cores: shared without loss, at the speed of calibration."""
    return HostProfile(
        identity=replace(this_machine(), cores=cores),
        scheduler=Scheduler(source="assumed", discipline="ps"),
    )


def default_path() -> Path:
    """Return where the profile of this machine is kept: ``$XDG_CACHE_HOME/mup/host.json``."""
    return cache_folder() / "host.json"


def save_profile(profile: HostProfile, path: Path | None = None) -> Path:
    """Write a profile whole or not at all; returns where.

    Args:
        profile: What to write.
        path: Where; None = the place of this machine's profile.

    Raises:
        ProjectError: It cannot be written.
    """
    target = path or default_path()
    try:
        if path is None:
            target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProjectError(f"cannot write the profile: {error.strerror}", where=str(target)) from error
    text = msgspec.json.format(msgspec.json.encode(profile.to_json()), indent=1).decode()
    write_whole(target, text + "\n", what="the profile", error=ProjectError)
    return target


def load_profile(path: str | Path | None = None) -> HostProfile:
    """Read a profile.

    Args:
        path: A file, of whatever machine; None = the profile of this machine.

    Raises:
        ProjectError: There is no such file, or (without a path) it is another machine's.
        LogError: The file is no profile.
    """
    target = Path(path) if path is not None else default_path()
    try:
        data = parse_json(target.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ProjectError(
            f"cannot read the host profile: {error.strerror}", where=str(target), hint=REMEDY
        ) from error
    except (ValueError, RecursionError) as error:
        raise LogError(f"not a host profile: {error}", where=str(target), hint=REMEDY) from error
    profile = HostProfile.from_json(data, where=str(target))
    if path is None and profile.identity != (here := this_machine()):
        differing = [
            name for name in Identity.__slots__ if getattr(profile.identity, name) != getattr(here, name)
        ]
        listing = ", ".join(
            f"{name} {getattr(profile.identity, name)!r} instead of {getattr(here, name)!r}"
            for name in differing
        )
        raise ProjectError(f"the profile is of another machine: {listing}", where=str(target), hint=REMEDY)
    return profile


def current_profile() -> tuple[HostProfile, str]:
    """Return this machine's profile and ""; or an ideal one, and why it has to stand in."""
    try:
        return load_profile(), ""
    except (ProjectError, LogError) as error:
        return default_profile(this_machine().cores), error.message
