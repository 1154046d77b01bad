"""``mup``: find the command, run it, turn every deliberate error into one message.

Exit codes: 0 done; 1 completed, but a check failed; 2 could not run; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from mup.cli.ending import exit_code
from mup.cli.lazy_group import LazyGroup

COMPLETION_VARIABLE = "_MUP_COMPLETE"

# name: (module with a click command called ``command``, line of help shown by `mup --help`).
# The help lives here so that listing the commands imports none of them.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Services": {
        "new": ("mup.cli.services.new", "Make a project that runs, to start from."),
        "run": ("mup.cli.services.run", "Start a project's registry and services, and stop them cleanly."),
        "services": ("mup.cli.services.services", "List the replicas and databases a registry knows."),
        "pool": ("mup.cli.services.pool", "Change the pool size of a running service."),
        "log": ("mup.cli.services.log", "Summarise event logs, or convert them to JSON lines or spans."),
        "openapi": ("mup.cli.services.openapi", "Print the OpenAPI document of a service."),
    },
    "Measurements": {
        "host": ("mup.cli.measurements.host", "Profile this machine: speed, sharing, wake-ups, scheduler."),
        "explore": (
            "mup.cli.measurements.explore",
            "Run a single user against the project and log what happens.",
        ),
        "runs": (
            "mup.cli.measurements.runs",
            "List what was explored, and delete what is not needed any more.",
        ),
        "load": ("mup.cli.measurements.load", "Drive a real load run and measure it."),
        "identify": (
            "mup.cli.measurements.identify",
            "Find the queueing station behind a URL by loading it.",
        ),
    },
    "Models": {
        "paths": (
            "mup.cli.models.paths",
            "List the execution paths of every endpoint, and what cannot be analysed.",
        ),
        "model": ("mup.cli.models.model", "Derive the performance model from source, calibrated by a log."),
        "graph": ("mup.cli.models.graph", "Draw a model as SVG."),
        "stats": (
            "mup.cli.models.stats",
            "Count tasks, entries, activities, nodes, arcs and paths of a model.",
        ),
        "diff": ("mup.cli.models.diff", "List what changed between two models."),
        "compare": ("mup.cli.models.compare", "Say what a change to a project did, from its source alone."),
        "convert": ("mup.cli.models.convert", "Convert a model between the native format and lqnx."),
    },
    "Predictions": {
        "simulate": ("mup.cli.predictions.simulate", "Simulate one scenario of a model."),
        "whatif": ("mup.cli.predictions.whatif", "Predict changed clients, pools, replicas or cores."),
        "plan": (
            "mup.cli.predictions.plan",
            "Find the cheapest deployment that meets objectives, or the largest load.",
        ),
        "autoscale": (
            "mup.cli.predictions.autoscale",
            "Let an autoscaler scale a model while its clients double.",
        ),
        "validate": ("mup.cli.predictions.validate", "Predict, run for real, and compare."),
        "demo": (
            "mup.cli.predictions.demo",
            "The whole journey on a small example: code, model, prediction, reality.",
        ),
    },
    "Learning": {
        "estimate": ("mup.cli.learning.estimate", "Estimate demands from response times and queue lengths."),
        "data": ("mup.cli.learning.data", "Check data before anything is learned from them."),
        "learn": ("mup.cli.learning.learn", "Learn a model from visits, or from queue lengths over time."),
        "fit": (
            "mup.cli.learning.fit",
            "Fit parameters of a model to measurements, with confidence intervals.",
        ),
    },
    "Help": {
        "docs": ("mup.cli.help.docs", "Show a page of the documentation, or search it."),
        "completion": ("mup.cli.help.completion", "Print the script that completes mup's words in a shell."),
    },
}
"""All commands, under the headings of `mup --help`."""
COMMANDS = {name: known for group in GROUPS.values() for name, known in group.items()}


@click.group(
    cls=LazyGroup,
    commands_by_name=COMMANDS,
    groups=GROUPS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="mup-framework", prog_name="mup")
def cli() -> None:
    """Microservices whose performance model comes with the code."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; the entry point of the console script."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files and texts of source code can hold what no terminal can show.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(exit_code(lambda: _command(words), words))


def _command(words: list[str]) -> object:
    """Find a command and run it; return what it returns."""
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        # What a shell asks while a command line is typed; see `mup completion`.
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "mup", COMPLETION_VARIABLE, instruction)
    # Not cli.main: it handles interrupts and broken pipes in its own way before we see them.
    with cli.make_context("mup", words) as context:
        return cli.invoke(context)


if __name__ == "__main__":
    main()
