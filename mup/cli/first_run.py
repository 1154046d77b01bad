"""Announce compilation at the first run, where installing mup has not compiled already."""

from __future__ import annotations

import click

__all__ = ["announce_compilation"]


def announce_compilation() -> None:
    """Print a line to stderr if the simulator has not been compiled for this machine yet."""
    from mup.native.libraries import SIMULATOR
    from mup.native.loading import is_compiled

    if not is_compiled(SIMULATOR):
        click.echo("compiling the simulator, once (a few seconds) ...", err=True)
