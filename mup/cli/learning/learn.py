"""``mup learn``: models from visits or queue lengths over time; one command per kind of data."""

from __future__ import annotations

import click

from mup.cli.lazy_group import LazyGroup

# name: (module with a click command called ``command``, line of help).
COMMANDS: dict[str, tuple[str, str]] = {
    "qn": ("mup.cli.learning.learn_qn", "Learn a closed queueing network: service rates and routing."),
    "lqn": ("mup.cli.learning.learn_lqn", "Learn the unknown times of a layered queueing network."),
    "visits": ("mup.cli.learning.learn_visits", "Learn rates, and routing or calls, from visits with ids."),
    "traces": ("mup.cli.learning.learn_traces", "Make traces of queue lengths from logs."),
}


@click.group(cls=LazyGroup, commands_by_name=COMMANDS)
def command() -> None:
    """Learn a model from visits, or from queue lengths over time, without the source of the system."""
