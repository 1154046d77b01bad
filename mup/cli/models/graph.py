"""``mup graph MODEL``: a picture of a model."""

from __future__ import annotations

from pathlib import Path

import click

from mup.cli.vocabulary import examples, option
from mup.whole_file import STANDARD_STREAM

__all__ = ["command"]


@click.command(
    name="graph", epilog=examples("mup graph shop", "mup graph model.json --around cart --output cart.svg")
)
@click.argument("model", default=".", type=click.Path(path_type=Path))
@option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.svg",
    show_default="MODEL with .svg",
)
@option("--client")
@option("--static", "static_only")
@option("--around")
@option("--json")
def command(
    model: Path,
    output: Path | None,
    client: str | None,
    around: str | None,
    *,
    static_only: bool,
    as_json: bool,
) -> int:
    """Draw a model as SVG: tasks in layers, entries, activities with their mean times, calls.

    A project without model.json (or with --static), a folder of Python source and a single file are drawn as
    far as the source tells. '?' is what was never measured; grey is what the workload never reached. A model
    with more than 1000 tasks and entries is drawn in part only, with --around.
    """
    import json

    from mup.cli.options import check_ending, check_result, shown
    from mup.cli.sources import has_model, is_source, read_model_of, uncalibrated
    from mup.errors import UsageError
    from mup.lqn.drawing import around as part_around
    from mup.lqn.drawing import check_size, draw
    from mup.whole_file import write_whole

    source = is_source(model) and (bool(client) or static_only or not has_model(model))
    if (client or static_only) and not source:
        raise UsageError(
            f"{'--client' if client else '--static'} is about source, and {model} is a model",
            hint="leave it out, or name the project",
        )
    loaded = uncalibrated(model, client) if source else read_model_of(model)
    drawn = loaded if around is None else part_around(loaded, around)
    check_size(drawn, around=around is not None)
    target = _picture(model) if output is None else output
    check_ending(target)
    check_result(target, starts=("<",), as_json=as_json)
    write_whole(target, draw(drawn, loaded), what="the picture")
    if as_json:
        click.echo(json.dumps({"file": str(target), "tasks": len(drawn.tasks)}, indent=1))
    else:
        click.echo(f"wrote {shown(target)}: {drawn.name}, {len(drawn.tasks)} tasks")
    return 0


def _picture(model: Path) -> Path:
    """Return where the picture of a model goes: beside it, or into the folder of its source."""
    if str(model) == STANDARD_STREAM:
        return model
    if model.suffix == ".toml":
        return model.with_name("model.svg")
    return model / "model.svg" if model.is_dir() else model.with_suffix(".svg")
