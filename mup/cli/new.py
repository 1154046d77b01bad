"""``mup new``: a project that runs, to start from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Make a folder NAME with a project that runs: two services, a client, tests, mup.toml, README."""
    import shutil

    from mup.cli.demo import examples_folder
    from mup.errors import UsageError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("exists and is not empty", where=str(folder), hint="choose another name")
    try:
        shutil.copytree(
            examples_folder() / "starter",
            folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", ".mup", ".pytest_cache"),
        )
        (folder / ".gitignore").write_text("__pycache__/\n.mup/\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write: {error.strerror}", where=str(folder)) from error
    click.echo(f"made {folder}; next: cd {folder} && mup run")
