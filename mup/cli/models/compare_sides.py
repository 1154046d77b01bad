"""Which two versions does ``mup compare`` look at, and where are they?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.errors import MupError, UsageError

if TYPE_CHECKING:
    from analyzer.static.application import Application
    from analyzer.static.project_version import Version
    from mup.cli.models.git_versions import Repository
    from mup.project import Project

__all__ = ["Side", "analysed_side", "in_words_of", "reject_errors_of", "sides_of"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two versions.

    Attributes:
        role: ``BASE`` or ``HEAD``.
        name: What it was called on the command line.
        path: The project, or folder or file of source.
        written: Where a commit was written to; None if it is a folder of the user's.
        prefix: Path of the project's folder in the repository, with a slash behind it; "" if it is the whole.
        home: The same project among the user's own files.
    """

    role: str
    name: str
    path: Path
    written: Path | None
    prefix: str
    home: Path


@contextmanager
def sides_of(base: str, head: str, project: str, *, started: bool = False) -> Iterator[tuple[Side, Side]]:
    """Find both versions; those that are commits are written to a folder for as long as they are needed.

    Args:
        base: As the command's argument, like the next two.
        head: The other version.
        project: Where the project is.
        started: They will be started, for which they need all their files.

    Raises:
        UsageError: One is neither a folder nor a commit, or can be both.
    """
    from mup.cli.models.git_versions import prefix_in_repository, repository_of

    repository = repository_of(Path(project or "."))
    folders = [_is_folder(name, repository) for name in (base, head)]
    home = Path(project or ".")
    if not project and sum(folders) == 1:
        home = Path(base if folders[0] else head)
    with tempfile.TemporaryDirectory(prefix="mup-compare-") as folder:
        sides = []
        for role, name, is_folder in zip(("BASE", "HEAD"), (base, head), folders, strict=True):
            if is_folder:
                path = Path(name) / project if all(folders) and project else Path(name)
                sides.append(Side(role, name, path, None, prefix_in_repository(path), path))
            else:
                sides.append(_commit(role, name, home, Path(folder), started=started))
        if not any(folders):
            _say_what_is_left_out(home)
        yield sides[0], sides[1]


def _is_folder(name: str, repository: Repository | None) -> bool:
    if not Path(name).exists():
        return False
    if name.startswith((".", "/")) or repository is None or not repository.has(name):
        return True
    raise UsageError(
        f"{name!r} is a folder and a commit",
        hint=f"write ./{name} for the folder, refs/heads/{name} or refs/tags/{name} for the commit",
    )


def _commit(role: str, name: str, home: Path, folder: Path, *, started: bool) -> Side:
    from mup.cli.models.git_versions import find_repository, prefix_in_repository

    try:
        repository = find_repository(home)
    except UsageError as error:
        raise UsageError(
            f"{name!r} is no folder, so it must be a commit: {error.message}",
            where=error.where,
            hint=error.hint,
        ) from error
    written = folder / role
    write = repository.check_out if started else repository.write
    path = write(repository.commit(name), written)
    if home.is_file():
        path /= home.name
    return Side(role, name, path, written, prefix_in_repository(home), home)


def _say_what_is_left_out(home: Path) -> None:
    """Say that commits do not have what was not committed."""
    from mup.cli.models.git_versions import repository_of

    repository = repository_of(home)
    files = [] if repository is None else repository.changed_files()
    if files:
        listed = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
        click.echo(
            f"mup: changes that are not committed are left out ({listed}); '.' as HEAD has them", err=True
        )


def analysed_side(side: Side) -> Version:
    """Analyse a version.

    Raises:
        UsageError: There is nothing to analyse, or its ``mup.toml`` is wrong.
    """
    from analyzer.static import analyse, analyse_project
    from analyzer.static.project_version import Version
    from mup.cli.sources import is_project
    from mup.project import load_project

    project: Project | None = None
    try:
        if is_project(side.path):
            project = load_project(side.path)
            application = analyse_project(project, with_code=True)
        else:
            application = analyse(side.path, with_code=True)
    except MupError as error:
        raise UsageError(
            in_words_of(side, error.message),
            where=in_words_of(side, error.where) or side.name,
            hint=error.hint,
        ) from error
    # A project can be named by its file, which can have another name than mup.toml.
    return Version(application, project, side.path if side.path.is_file() else None)


def in_words_of(side: Side, text: str) -> str:
    """Return a message about the folder a commit was written to as one about the commit."""
    if side.written is None:
        return text
    for path in (side.written.resolve(), side.written):
        text = text.replace(f"{path}/", f"{side.name}:").replace(str(path), f"{side.name}:")
    return text


def reject_errors_of(side: Side, application: Application) -> None:
    """Refuse a version whose source has errors.

    Raises:
        UsageError: It has some; the message says which version it is.
    """
    from mup.cli.output.display import reject_errors

    try:
        reject_errors(application)
    except MupError as error:
        text = f"{side.role} cannot be analysed: {in_words_of(side, error.message)}"
        raise UsageError(text, where=side.name) from error
