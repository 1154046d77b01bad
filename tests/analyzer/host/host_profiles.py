"""Profiles with every field set, written down instead of measured."""

from __future__ import annotations

from analyzer.host.estimates import Estimate
from analyzer.host.profile import Cold, HostProfile, Identity, Scheduler, Timer, WakeUp
from mup.lqn import Migration

STICKY = Migration(wake=0.25, steal=0.1, balance=70.0)


def profile(*, cores: int = 2, speed: float = 1000.0, migration: Migration | None = STICKY) -> HostProfile:
    """Return a measured machine, sticky unless there is no migration."""
    return HostProfile(
        identity=Identity(hostname="elsewhere", kernel="6.1", cpu="Some CPU", cores=cores),
        scheduler=Scheduler(
            source="fit",
            discipline="ps" if migration is None else "cores",
            migration=migration,
            fitted=STICKY,
            loads=(0.5, 0.7),
            rounds=(0.02, 0.03),
            errors={"ps": (-0.1, -0.2), "fitted": (0.01, 0.02)},
            extra=(Estimate(2e-4, 1e-5), Estimate(1e-4, 1e-5)),
        ),
        date="2026-01-01T00:00:00+00:00",
        mup="0.1.0",
        python="3.11.7",
        measured=True,
        seconds=29.5,
        speed=tuple(Estimate(speed, 1.0) for _ in range(cores)),
        parallel=Estimate(0.99, 0.01),
        sharing=Estimate(1.03, 0.01),
        interpreter_lock=Estimate(1.05),
        switch_interval=0.005,
        timers=(Timer("sleep", Estimate(1e-4, 1e-5)),),
        wakeups=(WakeUp("free", Estimate(1e-5, 1e-6), Estimate(1e-5, 1e-6)),),
        cold=(Cold(0.001, 0.1, Estimate(2e-4, 1e-5)),),
    )
