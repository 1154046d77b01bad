"""``mup stats MODEL``: the size of a model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from mup.cli.vocabulary import option

__all__ = ["command"]

ROWS = ("tasks", "entries", "activities", "nodes", "or_nodes", "arcs", "paths")


@click.command(name="stats")
@click.argument("model", default=".", type=click.Path(path_type=Path))
@option("--json")
def command(model: Path, *, as_json: bool) -> int:
    """Count tasks, entries, activities, nodes, arcs and paths of a model.

    "Table 3" counts as the table of the thesis does (reached endpoints and observed paths, databases opaque);
    "full" adds queries and counts every arc; "all paths" adds what the workload never reached.
    """
    from mup.cli.sources import read_model_of
    from mup.lqn.statistics import statistics

    loaded = read_model_of(model)
    found = statistics(loaded)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
        return 0
    from mup.cli.output.display import console
    from mup.cli.output.tables import print_table

    rows = []
    views = [asdict(view) for view in (found.table3, found.full, found.all_paths)]
    for row in ROWS:
        rows.append([row.replace("or_nodes", "OR-nodes"), *(str(view[row]) for view in views)])
        if row == "arcs":
            rows.append(["arcs, every branch counted", str(found.correct_arcs), "", ""])
    print_table(console(), f"Size of {loaded.name}", ["count of", "Table 3", "full", "all paths"], rows)
    return 0
