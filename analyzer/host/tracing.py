"""Record a trace of the scheduler, where that is permitted.

Linux's tracefs, in an instance of its own: no other trace is touched, and removing the instance ends it.
If tracefs was not mounted, it is mounted for the time of the recording. A file of the instance stays open
meanwhile. So another profile, which may run in a container and see none of our processes, cannot remove the
instance, and tracefs cannot be unmounted.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

__all__ = ["Recording", "recorded", "tracing_permitted"]

TRACEFS = Path("/sys/kernel/tracing")
EVENTS = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task")
BUFFER_KB = 24576
"""Per core: the scheduler's events of a stage of some seconds."""
PREFIX = "mup-host-"


class Recording:
    """A trace; complete when the `recorded` block has ended.

    Attributes:
        text: What tracefs' ``trace`` file said, times on the monotonic clock; empty if it was lost.
    """

    def __init__(self) -> None:
        self.text = ""


def tracing_permitted() -> bool:
    """Whether this process may record the scheduler's events."""
    if os.geteuid() != 0:
        return os.access(TRACEFS / "instances", os.W_OK)
    return TRACEFS.is_dir()


@contextmanager
def recorded() -> Iterator[Recording | None]:
    """Record the scheduler's events during the block; yields None where that is impossible."""
    mounted_here = False
    if tracing_permitted() and not (TRACEFS / "instances").is_dir():
        mounted_here = _mount()
    _remove_orphans()
    instance = TRACEFS / "instances" / f"{PREFIX}{os.getpid()}"
    held = ExitStack()
    try:
        try:
            instance.mkdir()
            held.enter_context((instance / "tracing_on").open(encoding="ascii"))
            _switch_on(instance)
        except OSError:
            yield None
            return
        recording = Recording()
        yield recording
        with suppress(OSError):
            (instance / "tracing_on").write_text("0", encoding="ascii")
            recording.text = (instance / "trace").read_text(encoding="utf-8", errors="replace")
    finally:
        held.close()
        with suppress(OSError):
            (instance / "tracing_on").write_text("0", encoding="ascii")
        with suppress(OSError):
            # The kernel removes what is in an instance with it.
            instance.rmdir()
        if mounted_here:
            subprocess.run(["umount", str(TRACEFS)], check=False, capture_output=True)  # noqa: S603, S607


def _remove_orphans() -> None:
    """End the traces of processes that were killed before they could.

    Those of other containers look the same, but are held.
    """
    found: list[Path] = []
    with suppress(OSError):
        found = list((TRACEFS / "instances").glob(f"{PREFIX}*"))
    for instance in found:
        if not Path(f"/proc/{instance.name.removeprefix(PREFIX)}").exists():
            with suppress(OSError):
                instance.rmdir()


def _mount() -> bool:
    done = subprocess.run(  # noqa: S603
        ["mount", "-t", "tracefs", "nodev", str(TRACEFS)],  # noqa: S607
        check=False,
        capture_output=True,
    )
    return done.returncode == 0


def _switch_on(instance: Path) -> None:
    def write(name: str, text: str) -> None:
        (instance / name).write_text(text, encoding="ascii")

    write("tracing_on", "0")
    write("trace_clock", "mono")
    write("buffer_size_kb", str(BUFFER_KB))
    for event in EVENTS:
        write(f"events/sched/{event}/enable", "1")
    write("tracing_on", "1")
