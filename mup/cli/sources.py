"""What a command line argument names: a project, a folder of source, or one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.static import Application
    from mup.lqn import Model

__all__ = ["analysed", "has_model", "is_source", "model_file", "read_model_of", "uncalibrated"]

MODEL = "model.json"
"""Where 'mup model' writes the model of a project, in its folder."""


def is_project(path: Path) -> bool:
    """Return whether a path names a project."""
    return path.suffix == ".toml" or (path / "mup.toml").is_file()


def is_source(path: Path) -> bool:
    """Return whether a path names source code rather than a model."""
    return path.is_dir() or path.suffix in (".py", ".toml")


def has_model(path: Path) -> bool:
    """Return whether a path names a project that has a model."""
    return is_project(path) and (path.with_name(MODEL) if path.suffix == ".toml" else path / MODEL).is_file()


def model_file(name: str | Path) -> Path:
    """Return the file of what a MODEL on the command line names.

    Args:
        name: A model file; ``-`` for standard input; or a project, whose model is the one that ``mup model``
            has written.

    Raises:
        UsageError: It is a folder without a model.
    """
    path = Path(name)
    if not (path.is_dir() or path.suffix == ".toml"):
        return path
    file = path.with_name(MODEL) if path.suffix == ".toml" else path / MODEL
    if file.is_file():
        return file
    if not is_project(path):
        raise UsageError(
            f"the folder has no {MODEL} and no mup.toml",
            where=str(name),
            hint="name a model file or a project",
        )
    raise UsageError(
        f"the project has no {MODEL} yet",
        where=str(name),
        hint=f"run 'mup explore {name}', then 'mup model {name}'",
    )


def read_model_of(name: str | Path) -> Model:
    """Read the model that a MODEL on the command line names; see `model_file`.

    Raises:
        UsageError: There is none.
        ModelError: It cannot be read, or breaks rules.
    """
    from mup.lqn.files import read_model

    return read_model(model_file(name))


def analysed(path: Path) -> Application:
    """Analyse what a path names; of a project, only what has changed since the last time.

    Raises:
        ProjectError, AnalysisError: There is nothing of that kind.
    """
    if is_project(path):
        from analyzer.static import analyse_project
        from mup.project import load_project

        return analyse_project(load_project(path), remember=True)
    from analyzer.static import analyse

    return analyse(path)


def uncalibrated(path: Path, client: str | None = None) -> Model:
    """Return the model of what a path names, as far as its source tells.

    Args:
        path: A project, a folder of source, or a file.
        client: The client class that becomes the reference task; None = that of the project, or the only one.

    Raises:
        ProjectError, AnalysisError: It cannot be analysed, or there is no such client.
    """
    from analyzer.static import translate
    from mup.cli.output.display import reject_errors
    from mup.project import load_project

    application = analysed(path)
    reject_errors(application)
    name = path.resolve().stem
    if is_project(path):
        project = load_project(path)
        name, client = project.name, client or project.client_class or None
    elif client is None and len(application.clients) == 1:
        client = application.clients[0].name
    return translate(application, name=name, client=client)
