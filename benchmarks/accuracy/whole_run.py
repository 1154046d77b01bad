"""Explore to the end, or not at all."""

from __future__ import annotations

from pathlib import Path

from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.rundir import load_run
from analyzer.static import Application
from mup.project import Project

__all__ = ["explore_to_the_end"]


def explore_to_the_end(
    project: Project, application: Application, settings: ExploreSettings, directory: Path
) -> None:
    """Explore into a folder.

    Ctrl-C ends an exploration early and keeps what there is. A campaign must not go on with that as if
    nothing had happened.

    Raises:
        KeyboardInterrupt: It was ended early.
    """
    explore(project, application, settings, directory=directory)
    if not load_run(directory).info.complete:
        raise KeyboardInterrupt
