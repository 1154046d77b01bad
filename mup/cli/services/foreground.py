"""The service that ``mup run --debug`` runs in the foreground, and the terminal it leaves behind."""

from __future__ import annotations

import importlib.util
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mup.errors import UsageError

if TYPE_CHECKING:
    from mup.project import Project

__all__ = ["kept_terminal", "the_service"]


def the_service(project: Project, services: Sequence[str], port: int) -> str:
    """Return the service to debug.

    Args:
        project: That has it.
        services: The ones that were asked for; empty = all of the project.
        port: For debugpy; 0 = it is not used.

    Raises:
        UsageError: There are several, or debugpy is wanted and not installed.
    """
    names = list(services) or [service.name for service in project.services]
    if len(names) != 1:
        raise UsageError(
            f"--debug runs one service in the foreground, not {len(names)} ({', '.join(names)})",
            hint=f"for example --service {names[0]} --debug; run the others in another terminal",
        )
    if port and importlib.util.find_spec("debugpy") is None:
        raise UsageError("--debug-port: debugpy is not installed here", hint="pip install debugpy")
    return names[0]


@contextmanager
def kept_terminal() -> Iterator[None]:
    """Leave the terminal as it was: a debugger that is killed at its prompt cannot."""
    if not sys.stdin or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
