"""``mup data check``: do these data hold what a method takes for granted, and are there enough of them?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from analyzer.data_checks.findings import Checked


@click.command(
    epilog=examples(
        "mup data check access.log --cores 2", "mup data check trials.csv", "mup data check visits.csv"
    )
)
@click.argument("data", metavar="FILE", type=click.Path(path_type=Path))
@option("--cores", type=int, help="Number of cores the requests in process share.", show_default="not known")
@option(
    "--pool",
    "threads",
    type=int,
    metavar="N",
    help="Pool size: threads that process requests.",
    show_default="no limit",
)
@option("--precision", default=0.05, help="Relative half-width that numbers of samples are given for.")
@option("--log-format")
@option("--field")
@option("--group")
@option("--json")
def command(
    data: Path,
    cores: int | None,
    threads: int | None,
    precision: float,
    log_format: str,
    field: tuple[str, ...],
    group: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Check FILE: an access log, event logs, or a table of requests, samples, windows or trials.

    Checks lines, clocks, Little's law and the utilization law, changes over time, and numbers of samples. The
    exit code is 1 if results would be wrong.
    """
    import json
    import math

    from analyzer.access_logs.formats import wanted
    from analyzer.access_logs.reading import Source
    from analyzer.data_checks.checking import check_file
    from mup.cli.options import check_least, check_share, named_texts

    check_least(cores, 1, "--cores")
    check_least(threads, 1, "--pool")
    check_share(precision, "--precision")
    source = Source(log_format, wanted(field), named_texts(group, "--group", "search=^GET /search"))
    checked = check_file(
        data,
        source,
        cores=cores,
        threads=math.inf if threads is None else float(threads),
        precision=precision,
    )
    if as_json:
        click.echo(json.dumps(checked.to_json(), indent=1))
    else:
        _show(checked)
    return 0 if checked.sound else 1


def _show(checked: Checked) -> None:
    import math

    from mup.cli.output.display import console, say
    from mup.cli.output.figures import plain
    from mup.cli.output.tables import print_table

    out = console()
    facts = ", ".join(f"{name} {plain(value)}" for name, value in checked.facts.items())
    say(out, f"{checked.kind}: {facts}")
    out.print()
    rows = [(finding.check, finding.state, finding.text) for finding in checked.findings]
    print_table(out, "", ["check", "", "what was found"], rows, texts=3)
    if not checked.samples:
        return
    out.print()
    rows_needed = [
        (
            one.name,
            f"{one.mean * 1e3:.4g}",
            f"{one.scv:.2f}" if math.isfinite(one.scv) else "-",
            str(one.samples),
            "-" if one.half_width is None else f"{100 * one.half_width:.2g}",
            "-" if one.needed is None else str(one.needed),
        )
        for one in checked.samples
    ]
    headings = ["class", "mean ms", "scv", "samples", "+- %", f"needed for +- {100 * checked.precision:g} %"]
    print_table(out, "", headings, rows_needed)
