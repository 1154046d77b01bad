"""Limit of open connections, raised as far as the system allows: each client needs one."""

from __future__ import annotations

import contextlib
import resource

__all__ = ["allow_many_files"]


ENOUGH = 2**20
"""Files that are enough for every program: some programs look at every number up to the limit."""


def allow_many_files() -> None:
    """Let this process, and those it will start, open as many files as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a limit of their own below the hard one.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
