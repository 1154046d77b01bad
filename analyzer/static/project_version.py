"""What is a version of a project, and what is a difference between two? Data, with places in the source."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any, Literal

from analyzer.static.application import Application
from analyzer.static.source_texts import SourceTexts, toml_line
from analyzer.static.translate import translated_entries
from mup.lqn.model import Entry
from mup.lqn.refs import EntryRef
from mup.project import Project

__all__ = ["Difference", "DifferenceKind", "TomlFile", "Version"]

DifferenceKind = Literal[
    "calls",
    "parallelism",
    "order",
    "paths",
    "local work",
    "think time",
    "deployment",
    "service",
    "endpoint",
    "client",
    "database",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is another one than before.

    Attributes:
        kind: What it is about.
        subjects: The endpoints, scenarios, services or databases it is about.
        text: What happened, as a phrase that goes on after the subjects.
        file: In the new version, relative to the project's folder; "" if nothing of it is there.
        line: From 1; 0 if no line says it.
    """

    kind: DifferenceKind
    subjects: tuple[str, ...]
    text: str
    file: str = ""
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of ``mup compare --json``."""
        return {**asdict(self), "subjects": list(self.subjects)}


class Version:
    """One of two versions of a project.

    Args:
        application: Result of static analysis with its code; without errors.
        project: Its ``mup.toml``; None for a folder of source without one.
        toml: The file of the project, if it has another name.
    """

    def __init__(
        self, application: Application, project: Project | None = None, toml: FilePath | None = None
    ) -> None:
        self.application = application
        self.project = project
        self.services = {service.name: service for service in application.services}
        self.source = SourceTexts(application.root)
        self.toml = None if project is None else TomlFile(toml or project.root / "mup.toml")

    @cached_property
    def entries(self) -> dict[EntryRef, Entry]:
        """Endpoints and scenarios, as the entries they are translated to."""
        return translated_entries(self.application)

    def file(self, name: str) -> str:
        """Return a file of the source folder as the project calls it."""
        if not name or self.project is None:
            return name
        source = self.application.root.resolve()
        root = self.project.root.resolve()
        return (source / name).relative_to(root).as_posix() if source.is_relative_to(root) else name


class TomlFile:
    """The file of a project, to say where in it a setting is.

    Args:
        file: In the project's folder.
    """

    def __init__(self, file: FilePath) -> None:
        self._file = file

    @cached_property
    def _text(self) -> str:
        return self._file.read_text(encoding="utf-8-sig")

    def place(self, table: str = "", key: str = "") -> tuple[str, int]:
        """Return the file and the line of a setting, of its table, or the first."""
        return self._file.name, toml_line(self._text, table, key) or 1
