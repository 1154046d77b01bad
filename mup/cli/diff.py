"""``mup diff A B``: what changed between two models?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from mup.cli.vocabulary import examples, option

__all__ = ["command"]


@click.command(name="diff", epilog=examples("mup diff before.json after.json"))
@click.argument("old", metavar="A", type=click.Path(path_type=Path))
@click.argument("new", metavar="B", type=click.Path(path_type=Path))
@option("--json")
def command(old: Path, new: Path, *, as_json: bool) -> int:
    """List what is added, removed and changed in model B against model A.

    Both may be native (.json) or lqnx files. Elements are matched by name; their order, source lines and
    where the numbers come from are not compared. Exits 0 if nothing changed, 1 if something did, 2 if a file
    cannot be read.
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
    from mup.cli.display import console, percent
    from mup.cli.tables import print_table

    rows = [
        [
            change.where,
            change.field or change.kind,
            *change.texts(),
            percent(change.relative) if change.relative else "",
        ]
        for change in changes
    ]
    print_table(
        console(),
        f"{old} -> {new} (times in seconds)",
        ["element", "change", "old", "new", "relative"],
        rows,
        texts=4,
    )
    click.echo(f"{len(changes)} difference{'s' if len(changes) > 1 else ''}")
    return 1
