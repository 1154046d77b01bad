"""``mup diff A B``: the differences between two models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from mup.lqn.comparison import Change

__all__ = ["command"]

WORDS = {"threads": "pool", "replicas": "replicas"}
"""Fields of a task that are said in a sentence, and what they are called there."""


@click.command(name="diff", epilog=examples("mup diff before.json after.json", "mup diff before.json shop"))
@click.argument("old", metavar="A", type=click.Path(path_type=Path))
@click.argument("new", metavar="B", type=click.Path(path_type=Path))
@option("--json")
def command(old: Path, new: Path, *, as_json: bool) -> int:
    """List what is added, removed and changed in model B against model A.

    Models that come from source are compared by what their endpoints do: calls, queries, what runs in
    parallel, in which order; inserting or moving a line changes nothing. Other elements are matched by name;
    their order, source lines and the origin of numbers are not compared. Exit code 0: nothing changed; 1:
    something did; 2: a file cannot be read.
    """
    from mup.cli.sources import read_model_of
    from mup.lqn.comparison import compare

    changes = compare(read_model_of(old), read_model_of(new))
    if as_json:
        document = {
            "old": str(old),
            "new": str(new),
            "equal": not changes,
            "changes": [change.to_json() for change in changes],
        }
        click.echo(json.dumps(document, indent=1, allow_nan=False))
        return int(bool(changes))
    if not changes:
        click.echo(f"{old} and {new}: the same model")
        return 0
    _show(f"{old} -> {new}", changes)
    return 1


def _show(title: str, changes: list[Change]) -> None:
    """Print sentences about what is done and deployed, and a table of the other elements and numbers."""
    from mup.cli.output.display import console, percent, say
    from mup.cli.output.tables import print_table

    out = console()
    described = {id(change): text for change in changes if (text := sentence(change))}
    for text in described.values():
        say(out, text)
    rows = [
        [
            change.where,
            change.field or change.kind,
            *change.texts(),
            percent(change.relative) if change.relative else "",
        ]
        for change in changes
        if id(change) not in described
    ]
    if rows:
        headings = ["element", "change", "old", "new", "relative"]
        print_table(out, f"{title} (times in seconds)", headings, rows, texts=4)
    click.echo(f"{len(changes)} difference{'s' if len(changes) > 1 else ''}")


def sentence(change: Change) -> str:
    """Return a difference in words; "" for one that a table says better."""
    if change.operations is not None:
        found = change.operations
        place = f" ({found.file}:{found.line})" if found.line else ""
        return f"{change.subject}: {found.text}{place}"
    if change.kind != "changed" or not change.subject:
        return ""
    if change.field == "source":
        return f"{change.subject}: local work changed"
    if change.field in WORDS:
        old, new = change.texts()
        return f"{change.subject}: {WORDS[change.field]} {old} -> {new}"
    return ""
