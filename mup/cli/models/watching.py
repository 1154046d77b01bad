"""``mup paths --watch``: what a source says, again after each change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mup.cli.sources import analysed, is_project
from mup.errors import MupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from analyzer.static.application import Application

__all__ = ["watch"]

PAUSE: Final = 0.3
"""Seconds between two looks at the files."""


def watch(src: Path, show: Callable[[Application, Application | None], None]) -> int:
    """Analyse what a path names, and again whenever a file has changed, until Ctrl-C.

    Args:
        src: As for ``analysed``.
        show: Called with the result, and with the one before.

    Returns:
        The exit code that the last state deserves: 1 if it has errors, or could not be analysed at all.

    Raises:
        MupError: The path names nothing that can be analysed, at the start.
    """
    import click

    from mup.project import load_project
    from mup.runtime.deployment.watching import SourceWatcher

    folder = src if src.is_dir() else src.parent
    settings = folder / "mup.toml"
    # What changes during the first analysis must not be missed: the files are looked at before.
    watcher = SourceWatcher(load_project(src).source if is_project(src) else folder, [settings])
    before = analysed(src)
    show(before, None)
    broken = False
    try:
        while True:
            time.sleep(PAUSE)
            changed = watcher.changed()
            if not changed:
                continue
            names = ", ".join(sorted(path.name for path in changed))
            click.echo(f"\n{time.strftime('%H:%M:%S')}: {names} changed")
            try:
                now = analysed(src)
            except MupError as error:
                broken = True
                click.echo(f"mup: error: {error}", err=True)
                continue
            show(now, before)
            before, broken = now, False
    except KeyboardInterrupt:
        return 1 if broken or before.errors else 0
