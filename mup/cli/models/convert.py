"""``mup convert IN OUT``: the same model in another format."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mup.cli.vocabulary import examples, option

__all__ = ["command"]


@click.command(
    name="convert",
    epilog=examples(
        "mup convert model.json model.lqnx", "mup convert model.lqnx - | mup graph - > model.svg"
    ),
)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@option("--approximate")
@option("--json")
def command(source: Path, target: Path, *, approximate: bool, as_json: bool) -> int:
    """Convert a model between the native format (.json) and lqnx (.lqnx, .xml).

    lqnx is the format of LQNS and LQSIM; their text format (.lqn, .in, .xlqn) is read, too. What one format
    says and the other cannot is named: as an error if it changes figures, else as a note.
    """
    from mup.cli.options import check_result, shown
    from mup.cli.sources import model_file
    from mup.lqn.files import format_of_input, format_of_output, read_model, write_model
    from mup.whole_file import STANDARD_STREAM

    output = format_of_output(target)
    check_result(target, ("{",) if output == "json" else ("<",), as_json=as_json)
    source = model_file(source)
    model = read_model(source)
    foreign = str(source) == STANDARD_STREAM or format_of_input(source) != "json"
    notes = model.provenance.get("lqnx", {}).get("notes", []) if foreign else []
    approximated, left_out = write_model(model, target, approximate=approximate)
    notes = [*notes, *left_out]
    if as_json:
        click.echo(
            json.dumps(
                {
                    "file": str(target),
                    "format": output,
                    "tasks": len(model.tasks),
                    "approximated": approximated,
                    "notes": notes,
                },
                indent=1,
            )
        )
        return 0
    click.echo(f"wrote {shown(target)}: {model.name}, {len(model.tasks)} tasks")
    for text in approximated:
        click.echo(f"approximated: {text}")
    for text in notes:
        click.echo(f"note: {text}")
    return 0
