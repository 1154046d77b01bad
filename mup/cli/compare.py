"""``mup compare BASE HEAD [PROJECT]``: what did a change to a project do?"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option
from mup.errors import MupError, UsageError

if TYPE_CHECKING:
    from analyzer.static.application import Application
    from analyzer.static.project_version import Difference, Version
    from mup.cli.git_versions import Repository
    from mup.project import Project

__all__ = ["command", "compared"]


@click.command(
    name="compare",
    epilog=examples(
        "mup compare main HEAD shop",
        "mup compare origin/main . --annotations",
        "mup compare old/shop new/shop --markdown",
    ),
)
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.argument("project", metavar="[PROJECT]", default="", type=click.Path())
@option("--markdown")
@option("--annotations")
@option("--sarif")
@option("--json")
def command(
    base: str,
    head: str,
    project: str,
    *,
    markdown: bool,
    annotations: bool,
    sarif: str | None,
    as_json: bool,
) -> int:
    """Say what changed in meaning from BASE to HEAD, from source and mup.toml alone.

    BASE and HEAD are git commits (branches, tags) of the repository that PROJECT is in, or folders: '.' as
    HEAD is what is there now, committed or not. Nothing is run. Told are calls, queries and replies that are
    made more often, in loops, in another order or no longer in parallel; local work that changed; endpoints,
    services and databases that came and went; pools, replicas and other settings. Comments, layout, names of
    local variables and the order of functions, methods and imports mean nothing. Exits 0 if nothing changed,
    1 if something did, 2 if one of the versions cannot be analysed.
    """
    from analyzer.static.versions import differences
    from mup.cli.options import check_output

    if markdown and as_json:
        raise UsageError("--markdown and --json are two forms of the same output", hint="choose one of them")
    check_output(sarif, starts=("{",))
    with _sides(base, head, project) as (old, new):
        before = _analysed(old)
        _reject_errors(old, before.application)
        after = _analysed(new)
        usable = not after.application.errors
        found = differences(before, after) if usable else []
        _beside_lines(new, after, found, sarif=sarif, shown=annotations, on_stderr=markdown or as_json)
        # Last, for what makes a model impossible is shown beside its line, too.
        _reject_errors(new, after.application)
        if as_json:
            findings = [finding.to_json() for finding in after.application.diagnostics]
            document = {
                "base": base,
                "head": head,
                "equal": not found,
                "differences": [one.to_json() for one in found],
                "findings": findings,
            }
            click.echo(json.dumps(document, indent=1))
        else:
            _show(base, head, found, as_markdown=markdown)
    return int(bool(found))


def compared(base: str, head: str, project: str) -> tuple[Difference, ...]:
    """Return what changed in meaning; the arguments are those of the command.

    Raises:
        UsageError: One of the versions is not there, or cannot be analysed.
    """
    from analyzer.static.versions import differences

    with _sides(base, head, project) as sides:
        before, after = (_analysed(side) for side in sides)
        for side, version in zip(sides, (before, after), strict=True):
            _reject_errors(side, version.application)
        return tuple(differences(before, after))


# Which two.


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two versions.

    Attributes:
        role: ``BASE`` or ``HEAD``.
        name: What it was called on the command line.
        path: The project, or folder or file of source.
        written: Where a commit was written to; None if it is a folder of the user's.
        prefix: Path of the project's folder in the repository, with a slash behind it; "" if it is the whole.
    """

    role: str
    name: str
    path: Path
    written: Path | None
    prefix: str


@contextmanager
def _sides(base: str, head: str, project: str) -> Iterator[tuple[_Side, _Side]]:
    """Find both versions; those that are commits are written to a folder for as long as they are needed.

    Raises:
        UsageError: One is neither a folder nor a commit, or can be both.
    """
    from mup.cli.git_versions import prefix_in_repository, repository_of

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
                sides.append(_Side(role, name, path, None, prefix_in_repository(path)))
            else:
                sides.append(_commit(role, name, home, Path(folder)))
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


def _commit(role: str, name: str, home: Path, folder: Path) -> _Side:
    from mup.cli.git_versions import find_repository, prefix_in_repository

    try:
        repository = find_repository(home)
    except UsageError as error:
        raise UsageError(
            f"{name!r} is no folder, so it must be a commit: {error.message}",
            where=error.where,
            hint=error.hint,
        ) from error
    written = folder / role
    path = repository.write(repository.commit(name), written)
    if home.is_file():
        path /= home.name
    return _Side(role, name, path, written, prefix_in_repository(home))


def _say_what_is_left_out(home: Path) -> None:
    """Say that commits do not have what was not committed."""
    from mup.cli.git_versions import repository_of

    repository = repository_of(home)
    files = [] if repository is None else repository.changed_files()
    if files:
        listed = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
        click.echo(
            f"mup: changes that are not committed are left out ({listed}); '.' as HEAD has them", err=True
        )


def _analysed(side: _Side) -> Version:
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
            _in_words_of(side, error.message),
            where=_in_words_of(side, error.where) or side.name,
            hint=error.hint,
        ) from error
    # A project can be named by its file, which can have another name than mup.toml.
    return Version(application, project, side.path if side.path.is_file() else None)


def _in_words_of(side: _Side, text: str) -> str:
    """Return a message about the folder a commit was written to as one about the commit."""
    if side.written is None:
        return text
    for path in (side.written.resolve(), side.written):
        text = text.replace(f"{path}/", f"{side.name}:").replace(str(path), f"{side.name}:")
    return text


def _reject_errors(side: _Side, application: Application) -> None:
    from mup.cli.display import reject_errors

    try:
        reject_errors(application)
    except MupError as error:
        text = f"{side.role} cannot be analysed: {_in_words_of(side, error.message)}"
        raise UsageError(text, where=side.name) from error


# What is said.


def _beside_lines(
    side: _Side,
    version: Version,
    found: Sequence[Difference],
    *,
    sarif: str | None,
    shown: bool,
    on_stderr: bool,
) -> None:
    """Write what other programs show beside lines of the source."""
    from mup.cli import difference_formats
    from mup.whole_file import write_whole

    # An empty name of a file of the source folder is the folder.
    source = side.prefix + version.file("x")[:-1]
    given = found, version.application.diagnostics, side.prefix, source
    if sarif is not None:
        write_whole(
            sarif, json.dumps(difference_formats.sarif(*given), indent=1) + "\n", what="the SARIF log"
        )
    if shown:
        for line in difference_formats.workflow_commands(*given):
            click.echo(line, err=on_stderr)


def _show(base: str, head: str, found: Sequence[Difference], *, as_markdown: bool) -> None:
    from mup.cli import difference_formats
    from mup.cli.display import console
    from mup.cli.tables import print_table

    if as_markdown:
        click.echo(difference_formats.markdown(base, head, found), nl=False)
        return
    if not found:
        click.echo(f"{base} -> {head}: nothing changed in meaning")
        return
    rows = [
        [one.kind, difference_formats.subjects(one), one.text, difference_formats.place(one)] for one in found
    ]
    print_table(console(), f"{base} -> {head}", ["what", "where", "difference", "place"], rows, texts=4)
    click.echo(f"{len(found)} difference{'s' if len(found) > 1 else ''}")
