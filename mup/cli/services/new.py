"""``mup new``: a project that runs, to start from."""

from __future__ import annotations

from pathlib import Path

import click

from mup.cli.vocabulary import examples


@click.command(epilog=examples("mup new shop"))
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Make a folder NAME with a project that runs: two services, a client, tests, mup.toml, README."""
    from mup.cli.services.example_copy import copy_example
    from mup.errors import UsageError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("exists and is not empty", where=str(folder), hint="choose another name")
    copy_example("starter", folder, {".gitignore": "__pycache__/\n.mup/\n"})
    click.echo(f"made {folder}; next: cd {folder} && mup run")
