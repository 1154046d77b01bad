"""``mup``: find the command, run it, turn every deliberate error into one message.

Exit codes: 0 done; 1 ran, and the answer is no; 2 could not run.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from mup.cli.lazy_group import LazyGroup
from mup.cli.optional_parts import missing_part
from mup.errors import MupError

# name: (module with a click command called ``command``, line of help shown by `mup --help`).
# The help lives here so that listing the commands imports none of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("mup.cli.demo", "The whole journey on a small example: code, model, prediction, reality."),
    "new": ("mup.cli.new", "Make a project that runs, to start from."),
    "run": ("mup.cli.run", "Start a project's registry and services, and stop them cleanly."),
    "openapi": ("mup.cli.openapi", "Print the OpenAPI document of a service."),
    "services": ("mup.cli.services", "List the replicas and databases a registry knows."),
    "pool": ("mup.cli.pool", "Change the pool size of a running service."),
    "host": ("mup.cli.host", "Profile this machine: speed, sharing, wake-ups, scheduler."),
    "explore": ("mup.cli.explore", "Run a single user against the project and log what happens."),
    "runs": ("mup.cli.runs", "List what was explored, and delete what is not needed any more."),
    "log": ("mup.cli.log", "Summarise event logs, or convert them to JSON lines or spans."),
    "paths": ("mup.cli.paths", "List the execution paths of every endpoint, and what cannot be analysed."),
    "model": ("mup.cli.model", "Derive the performance model from source, calibrated by a log."),
    "convert": ("mup.cli.convert", "Convert a model between the native format and lqnx."),
    "diff": ("mup.cli.diff", "List what changed between two models."),
    "graph": ("mup.cli.graph", "Draw a model as SVG."),
    "stats": ("mup.cli.stats", "Count tasks, entries, activities, nodes, arcs and paths of a model."),
    "estimate": ("mup.cli.estimate", "Estimate demands from response times and queue lengths."),
    "simulate": ("mup.cli.simulate", "Simulate one scenario of a model."),
    "whatif": ("mup.cli.whatif", "Predict changed clients, pools, replicas or cores."),
    "autoscale": ("mup.cli.autoscale", "Let an autoscaler scale a model while its clients double."),
    "learn": ("mup.cli.learn", "Learn a model from queue lengths over time."),
    "load": ("mup.cli.load", "Drive a real load run and measure it."),
    "identify": ("mup.cli.identify", "Find the queueing station behind a URL by loading it."),
    "fit": ("mup.cli.fit", "Fit parameters of a model to measurements, with confidence intervals."),
    "validate": ("mup.cli.validate", "Predict, run for real, and compare."),
}


@click.group(
    cls=LazyGroup, commands_by_name=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
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
    try:
        status = cli.main(words, prog_name="mup", standalone_mode=False)
    except click.exceptions.Abort:
        status = 130
    except click.ClickException as error:
        if "--json" in words:
            _print_json_error(error.format_message())
        else:
            error.show()
        status = 2
    except MupError as error:
        status = _refuse(error, words)
    except ModuleNotFoundError as error:
        refusal = missing_part(error, words[0] if words else "")
        if refusal is None:
            raise
        status = _refuse(refusal, words)
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: nothing left to say.
        sys.stderr.close()
        status = 0
    sys.exit(status if isinstance(status, int) else 0)


def _refuse(error: MupError, words: Sequence[str]) -> int:
    if "--json" in words:
        _print_json_error(error.message, where=error.where, hint=error.hint)
    else:
        click.echo(f"mup: error: {error}", err=True)
    return 2


def _print_json_error(message: str, **details: Any) -> None:
    error = {"message": message, **{k: v for k, v in details.items() if v}}
    click.echo(json.dumps({"error": error}, indent=1))


if __name__ == "__main__":
    main()
