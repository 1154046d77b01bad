"""How many connections may a process have? As many as the system lets it, for each client needs one."""

from __future__ import annotations

import resource

__all__ = ["allow_many_files"]


def allow_many_files() -> None:
    """Raise the number of open files of this process, and of those it will start, to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
