"""Identity of this machine, and the time since its start."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Identity", "boot_id", "cache_folder", "since_boot", "this_machine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which machine; what was measured is of the same machine if all of this is equal."""

    hostname: str
    kernel: str
    cpu: str
    cores: int


def this_machine() -> Identity:
    """Return which machine this is; the cores are those this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Identity(hostname=platform.node(), kernel=platform.release(), cpu=_cpu_model(), cores=cores)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def boot_id() -> str:
    """Return what tells one start of a machine's kernel from all others; "" where the system does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def since_boot() -> float:
    """Return the seconds since the machine started: a clock that is never set, and runs while it sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def cache_folder() -> Path:
    """Return where what is known about this machine is kept: ``$XDG_CACHE_HOME/mup`` or ``~/.cache/mup``."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "mup"
