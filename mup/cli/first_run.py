"""Does a command have to say that it is compiling? Only the first simulation after an installation does."""

from __future__ import annotations

import click

__all__ = ["announce_compilation"]


def announce_compilation() -> None:
    """Print a line to stderr if the simulator has not been compiled for this machine yet."""
    from simulator.machine.compiled.interpreter import advance

    # Looks at numba's index of compiled code, as numba itself will when the function is called; it also
    # notices that the source or Python has changed. Where there is no such index, nothing is said.
    cache = getattr(getattr(advance, "_cache", None), "_cache_file", None)
    if cache is not None and not cache._load_index():  # noqa: SLF001 - numba has no public way to ask
        click.echo("compiling the simulator, once (less than a minute) ...", err=True)
