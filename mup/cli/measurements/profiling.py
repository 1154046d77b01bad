"""Measure once what this machine adds to the work of services, unless it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mup.cli.output.display import say

if TYPE_CHECKING:
    from rich.console import Console

    from mup.lqn.model import Model

__all__ = ["ensure_profile", "profiling", "report_host_warning"]


def ensure_profile(out: Console, *, wanted: bool) -> None:
    """Measure this machine and store its profile, unless there is one already.

    A machine that cannot be measured (others use it, say), or a profile that cannot be stored, is said and no
    reason to stop: models then take the machine as ideal, and say so. A profile that is not to be believed is
    said, too.
    """
    from analyzer.host.measure import profile_host
    from analyzer.host.profile import current_profile, save_profile
    from mup.errors import MupError

    known = current_profile()[0]
    if known.warning:
        say(out, f"note: {known.warning}")
    if not wanted or known.measured:
        return
    say(
        out,
        "this machine has no profile yet: measuring it, once, for about 45 s (--no-profile-host skips this); "
        "nothing else should run meanwhile",
    )
    try:
        with profiling() as show:
            written = save_profile(profile_host(show))
    except MupError as error:
        say(out, f"no profile of this machine: {error}")
        say(out, "until there is one, models take its cores to be shared ideally")
    else:
        say(out, f"profile written to {written}; 'mup host' shows and renews it")


def report_host_warning(out: Console, model: Model) -> None:
    """Say that a model has the profile of a machine that is not to be believed."""
    if "host" not in model.provenance:
        return  # it was calibrated without one, or by hand
    from analyzer.host.profile import HostProfile
    from mup.errors import LogError

    try:
        profile = HostProfile.from_json(model.provenance["host"])
    except LogError:
        return  # nor is that one
    if profile.warning:
        say(out, f"note: {profile.warning}")


@contextmanager
def profiling() -> Iterator[Callable[[float, str], None]]:
    """Show how far the measurement is, on stderr."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from mup.cli.output.display import console

    columns = (
        TextColumn("measuring"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        bar = bars.add_task("host", total=1.0, what="")
        yield lambda share, what: bars.update(bar, completed=share, what=what)
