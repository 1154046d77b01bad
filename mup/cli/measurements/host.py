"""``mup host``: what this machine adds to the work of the services on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from analyzer.host.estimates import Estimate
    from analyzer.host.profile import HostProfile, Scheduler
    from analyzer.host.speed_variation import Variation

MINUTE = 60.0


@click.command(epilog=examples("mup host", "mup host --duration 60 -o production.json"))
@option("--output", show_default="~/.cache/mup/host.json, or $XDG_CACHE_HOME/mup/host.json")
@option(
    "--duration",
    "seconds",
    old=("--seconds",),
    default=25.0,
    help="Seconds to measure, 1 to 60; starting and simulating takes a few seconds more.",
)
@option("--accept-disturbed")
@option("--json")
def command(output: str | None, seconds: float, accept_disturbed: bool, as_json: bool) -> None:
    """Measure this machine: speed of its cores, cost of sharing them, timers, wake-ups, scheduler.

    Nothing else should run meanwhile: what other programs disturbed is measured again, and a machine that
    stays busy gets no profile.

    Models calibrated here use the profile from then on; 'mup whatif --host-profile FILE' predicts for the
    machine FILE was measured on. Without the permission to trace (root), the scheduler is inferred from a
    small application.
    """
    import json

    from analyzer.host.machine_speed import this_variation
    from analyzer.host.measure import profile_host
    from analyzer.host.names import HOST
    from analyzer.host.profile import save_profile
    from mup.cli.measurements.profiling import profiling
    from mup.cli.options import check_result, shown
    from mup.cli.output.display import console, say

    check_result(output, starts=("{",), as_json=as_json)
    with profiling() as show:
        profile = profile_host(show, seconds=seconds, accept_disturbed=accept_disturbed)
    written = save_profile(profile, None if output is None else Path(output))
    varied, notes = this_variation(profile.processor(HOST).slowness)
    if as_json:
        click.echo(json.dumps({**profile.to_json(), "speed_history": varied.to_json()}, indent=1))
        return
    out = console()
    _print(out, profile)
    if profile.warning:
        say(out, f"note: {profile.warning}")
    _print_history(out, varied, notes)
    say(out, f"written to {shown(written)}")


def _print(out: Console, profile: HostProfile) -> None:
    from mup.cli.output.display import say
    from mup.cli.output.tables import print_table

    machine = profile.identity
    say(
        out,
        f"{machine.hostname}: {machine.cpu}, {machine.cores} cores, Linux {machine.kernel}, "
        f"Python {profile.python}; measured in {profile.seconds:.0f} s",
    )
    rows = []
    for name, estimate, factor, unit in _rows(profile):
        half = "-" if estimate.half is None else _number(estimate.half * factor)
        rows.append([name, _number(estimate.mean * factor), half, unit])
    print_table(out, "", ["figure", "value", "+-", "unit"], rows, words=("unit",))
    out.print()
    _print_cold(out, profile)
    out.print()
    _print_scheduler(out, profile.scheduler)
    if profile.moves_as_services_do:
        from analyzer.host.behaviour import AMONG_SERVICES

        rates = ", ".join(f"{wake:.2f} and {steal:.2f} at {load:.0%}" for load, wake, steal in AMONG_SERVICES)
        say(out, f"  models of services have wake and steal by utilization, as traced beside such: {rates}")
    say(out, "+- is the half-width of the 95 % interval; times are medians.")


def _rows(profile: HostProfile) -> Iterator[tuple[str, Estimate, float, str]]:
    """Yield name, figure, factor to the unit, unit."""
    for number, speed in enumerate(profile.speed):
        yield f"speed of core {number}", speed, 1, "units per second of processor time"
    factor = "x processor time"
    named = (
        ("all cores at once: work done, relative to each alone", profile.parallel, "x"),
        ("two processes on one core, bursts of 1 ms", profile.sharing, factor),
        ("two threads of one Python process", profile.interpreter_lock, factor),
    )
    for name, estimate, unit in named:
        if estimate is not None:
            yield name, estimate, 1, unit
    for timer in profile.timers:
        yield f"timer of 1 ms is late: {timer.kind}", timer.late, 1e3, "ms"
    places = {"free": "anywhere", "same": "both on one core", "different": "on two cores"}
    for wakeup in profile.wakeups:
        yield f"waking a process, {places.get(wakeup.where, wakeup.where)}: time", wakeup.wall, 1e6, "us"
        yield "  processor time of both", wakeup.cpu, 1e6, "us"
    for level, slower in profile.idling:
        yield f"the same work at {level:.0%} utilization, relative to a busy machine", slower, 1, factor
    for load, extra in zip(profile.scheduler.loads, profile.scheduler.extra, strict=False):
        yield f"waking up among small services, {load:.0%} load: extra processor time", extra, 1e6, "us"


def _print_cold(out: Console, profile: HostProfile) -> None:
    from mup.cli.output.tables import print_table

    idles = sorted({case.idle for case in profile.cold})
    rows = []
    for work in sorted({case.work for case in profile.cold}):
        cells = {case.idle: case.extra for case in profile.cold if case.work == work}
        rows.append(
            [
                f"{work * 1e3:g} ms",
                *(
                    f"{cells[idle].mean * 1e6:.0f} +- {(cells[idle].half or 0) * 1e6:.0f}"
                    if idle in cells
                    else "-"
                    for idle in idles
                ),
            ]
        )
    headings = ["work", *(f"{idle * 1e3:g} ms idle" for idle in idles)]
    print_table(out, "extra processor time after idling, us", headings, rows)


def _print_scheduler(out: Console, scheduler: Scheduler) -> None:
    """Say which processor the machine is, and why."""
    from mup.cli.output.display import say

    loads = " / ".join(f"{load:.0%}" for load in scheduler.loads)
    seen = scheduler.behaviour
    if seen is not None:
        idle = " / ".join(f"{share:.1%}" for share in seen.idle_while_waiting)
        say(out, f"scheduler, traced at {loads} load: a core idles while work waits {idle} of the time")
        say(
            out,
            f"  woken while its core is busy and another idle, moves there {seen.wake.mean:.0%} of the time",
        )
        say(
            out,
            f"  a core falling idle takes waiting work {seen.steal.mean:.0%} of the time; "
            f"{seen.balance.mean:.0f} moves/s while queues differ by 2",
        )
        say(
            out,
            f"  woken onto a busy core, runs at once {seen.preempts.mean:.0%} of the time; "
            f"median turn of an awaited thread {1e3 * seen.turn[2]:.2f} ms",
        )
    else:
        say(out, f"scheduler, inferred without a trace from an application at {loads} load")
    moves = scheduler.migration
    what = "an ideal processor (ps)"
    if moves is not None:
        what = (
            f"a queue per core (cores): wake {moves.wake:.2f}, steal {moves.steal:.2f}, "
            f"balance {moves.balance:.0f}/s"
        )
    turns = scheduler.turns
    if turns is not None:
        what += f", with turns of {1e3 * turns.quantum:.1f} ms, woken threads at once {turns.preempt:.0%}"
    say(out, f"  the model's processor is {what}, by {scheduler.source}")
    for name, errors in scheduler.errors.items():
        listing = ", ".join(f"{error:+.1%}" for error in errors)
        say(out, f"  simulated time per round of that application, {name}: {listing}")


def _print_history(out: Console, varied: Variation, notes: Sequence[str]) -> None:
    """Say how the speed of this machine varies from run to run, as far as its history tells."""
    from mup.cli.output.display import say

    out.print()
    say(out, f"speed of the machine from run to run: {varied.source(None)}")
    if varied.runs > 1:
        soon, later = (100 * varied.between(lag, MINUTE, MINUTE).sd for lag in (0.0, None))
        say(
            out,
            f"  a run of a minute within ten minutes of an exploration as long differs by {soon:.0f} %"
            f" (standard deviation), a later one by {later:.0f} %",
        )
    if varied.within.freedom:
        say(out, f"  seconds of the same run differ by {100 * varied.within.sd:.0f} %")
    for note in notes:
        say(out, f"note: {note}")


def _number(value: float) -> str:
    """Return a number with three or four digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
