"""``mup graph MODEL``: what does a model look like?"""

from __future__ import annotations

from pathlib import Path

import click

from mup.cli.vocabulary import option

__all__ = ["command"]


@click.command(name="graph")
@click.argument("model", type=click.Path(path_type=Path))
@option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.svg",
    help="SVG file to write, '-' for standard output.",
    show_default="MODEL with .svg",
)
@option("--client", help="Client class that becomes the reference task, if MODEL is source.")
@option("--json")
def command(model: Path, output: Path | None, client: str | None, *, as_json: bool) -> int:
    """Draw a model as SVG: tasks in layers, entries, activities with their mean times, calls.

    MODEL is a file written by 'mup model', or .lqnx. It can also be a project, a folder of Python source or
    one file: that shows the model as far as the source tells it. '?' is what was never measured; grey is
    what the workload never reached.
    """
    import json

    from mup.cli.options import check_output
    from mup.cli.sources import is_source, uncalibrated
    from mup.errors import UsageError
    from mup.lqn.drawing import draw
    from mup.lqn.files import read_model
    from mup.whole_file import write_whole

    source = is_source(model)
    if client and not source:
        raise UsageError(
            f"--client chooses a class of the source, and {model} is a model",
            hint="leave it out, or name the project",
        )
    loaded = uncalibrated(model, client) if source else read_model(model)
    target = _picture(model) if output is None else output
    check_output(target, starts=("<",))
    write_whole(target, draw(loaded), what="the picture")
    if as_json:
        click.echo(json.dumps({"file": str(target), "tasks": len(loaded.tasks)}, indent=1))
    else:
        click.echo(f"wrote {target}: {loaded.name}, {len(loaded.tasks)} tasks")
    return 0


def _picture(model: Path) -> Path:
    """Return where the picture of a model goes: beside it, or into the folder of its source."""
    if model.suffix == ".toml":
        return model.with_name("model.svg")
    return model / "model.svg" if model.is_dir() else model.with_suffix(".svg")
