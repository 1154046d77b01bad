"""``mup runs``: list exploratory runs, and delete those that are not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from analyzer.calibration.run_list import RunEntry
    from mup.project import Project


@click.command(epilog=examples("mup runs shop", "mup runs shop --prune --keep 2"))
@click.argument("project", default=".", type=click.Path())
@option("--prune")
@option(
    "--keep",
    help="With --prune: number of newest runs that stay.",
    show_default="1, or 0 with --older-than",
)
@option("--older-than", help="With --prune: delete only runs older than so many days.")
@option(
    "--include-used", "used_too", old=("--all",), help="With --prune: also delete runs a model was made from."
)
@option("--yes", help="With --prune: do not ask for confirmation.")
@option("--json")
def command(
    project: str,
    prune: bool,
    keep: int | None,
    older_than: float | None,
    used_too: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """List PROJECT's run directories, newest first, or delete old ones.

    The source of a run is fresh if 'mup model' would accept its log, and stale if it has changed since.
    """
    import json
    import sys

    from analyzer.calibration.run_list import delete_runs, list_runs, prunable
    from mup.cli.options import check_least
    from mup.cli.output.display import console, say
    from mup.errors import UsageError
    from mup.project import load_project

    if not prune and (keep is not None or older_than is not None or used_too or yes):
        raise UsageError(
            "--keep, --older-than, --include-used and --yes say what to delete", hint="add --prune"
        )
    check_least(keep, 0, "--keep")
    check_least(older_than, 0, "--older-than")
    loaded = load_project(project)
    runs = list_runs(loaded.state, loaded.root, _current_fingerprints(loaded))
    out = console()
    if not prune:
        if as_json:
            click.echo(json.dumps({"runs": [run.to_json() for run in runs]}, indent=1))
        elif runs:
            _print(out, runs)
        else:
            say(out, f"no runs below {loaded.state / 'runs'}; 'mup explore' makes one")
        return
    if keep is None:
        keep = 1 if older_than is None else 0
    going = prunable(runs, keep=keep, older_than=older_than, used_too=used_too)
    if going and not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError(
                f"{len(going)} runs would be deleted, and there is no terminal to ask on",
                hint="add --yes to delete them",
            )
        err = console(stderr=True)
        _print(err, going)
        if not click.confirm(f"Delete these {len(going)} of {len(runs)} runs?", err=True):
            say(out, "nothing was deleted")
            return
    delete_runs(going)
    if as_json:
        left = [run.to_json() for run in runs if run not in going]
        click.echo(json.dumps({"deleted": [str(run.path) for run in going], "runs": left}, indent=1))
        return
    freed = sum(run.size for run in going)
    say(out, f"deleted {len(going)} of {len(runs)} runs ({_size(freed)})")


def _current_fingerprints(project: Project) -> Mapping[str, str] | None:
    """Return what the source is now; None if it cannot be analysed."""
    from analyzer.calibration.rundir import fingerprints
    from analyzer.static import analyse_project
    from mup.errors import MupError

    try:
        application = analyse_project(project, remember=True)
    except MupError:
        return None
    return None if application.errors else fingerprints(application)


def _print(out: Console, runs: Sequence[RunEntry]) -> None:
    from mup.cli.output.tables import print_table

    rows = [
        [
            run.path.name,
            info.created[:16].replace("T", " ") if (info := run.info) else "",
            f"{info.observed_seconds:.0f}" if info else "",
            str(len(info.widths)) if info else "",
            _size(run.size),
            _state(run),
            run.source,
            ", ".join(run.used_by),
        ]
        for run in runs
    ]
    headings = ["run", "created", "observed s", "endpoints", "size", "state", "source", "used by"]
    spare = ("created", "endpoints")
    print_table(out, "", headings, rows, words=("created", "state", "source", "used by"), spare=spare)


def _state(run: RunEntry) -> str:
    if run.active:
        return "going on"
    if run.info is None:
        return "unreadable"
    if run.info.complete:
        return "complete"
    return run.info.stop or "broken off"


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
