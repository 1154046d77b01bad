"""``mup data``: look at data before anything is learned from them."""

from __future__ import annotations

import click

from mup.cli.lazy_group import LazyGroup

# name: (module with a click command called ``command``, line of help).
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("mup.cli.learning.data_check", "Check laws, clocks, stationarity and numbers of samples."),
}


@click.group(cls=LazyGroup, commands_by_name=COMMANDS)
def command() -> None:
    """Look at data before anything is learned from them."""
