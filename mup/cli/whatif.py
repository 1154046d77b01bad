"""``mup whatif``: what would change under other clients, pools, replicas, cores, speeds, think times?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from simulator.result import Result
    from simulator.whatif import Axis, Scenario

MAX_COLUMNS = 6
WIDE = 120
"""Columns of a terminal from which on the utilization of several servers and p95 fit."""


@click.command()
@click.argument("model", type=click.Path())
@click.option("--clients", multiple=True, metavar="N[,N..]", help="Clients; NAME=N[,N..] if several kinds.")
@click.option("--pool", multiple=True, metavar="TASK=N[,N..]", help="Threads per replica; repeatable.")
@click.option("--replicas", multiple=True, metavar="TASK=N[,N..]", help="Replicas; repeatable.")
@click.option("--cores", multiple=True, metavar="PROCESSOR=N[,N..]", help="Cores; repeatable.")
@click.option(
    "--speed",
    multiple=True,
    metavar="PROCESSOR=F[,F..]",
    help="Speed of every core, 1 = as measured; repeatable.",
)
@click.option("--think", multiple=True, metavar="S[,S..]", help="Mean think time per cycle in seconds.")
@click.option(
    "--precision",
    type=float,
    default=0.01,
    show_default=True,
    help="Relative 95 % half-width of cycle response time and throughput.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same numbers.")
@click.option("--workers", type=int, help="Processes (default: one per core).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--csv", "csv_file", type=click.Path(), help="Also write one line per scenario to this file.")
def command(
    model: str,
    clients: tuple[str, ...],
    pool: tuple[str, ...],
    replicas: tuple[str, ...],
    cores: tuple[str, ...],
    speed: tuple[str, ...],
    think: tuple[str, ...],
    precision: float,
    seed: int,
    workers: int | None,
    as_json: bool,
    csv_file: str | None,
) -> None:
    """Predict the calibrated MODEL under other deployments and loads; the file is not changed.

    Every combination of the given values is one scenario, compared with the model as it is. All
    scenarios see the same random numbers, so that differences stand out from the noise.
    """
    import json

    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from mup.cli.display import console
    from mup.cli.options import check_output
    from mup.errors import UsageError
    from mup.lqn import load_model
    from simulator import simulate_many
    from simulator.whatif import Scenario, grid

    if workers is not None and workers < 1:
        raise UsageError(f"--workers: must be a whole number >= 1, got {workers}")
    check_output(csv_file)
    loaded = load_model(model)
    named = {"pool": pool, "replicas": replicas, "cores": cores, "speed": speed}
    axes = _plain_axes("clients", clients, names=True) + _plain_axes("think", think, names=False)
    for kind, texts in named.items():
        axes += _named_axes(kind, texts)
    if not axes:
        raise UsageError("nothing to change", hint="for example --clients 1,2,4,8 or --pool B=4")
    scenarios = [Scenario((), loaded), *grid(loaded, axes)]
    columns = (TextColumn("scenarios"), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        bar = bars.add_task("whatif", total=len(scenarios))
        results = simulate_many(
            [s.model for s in scenarios],
            precision=precision,
            seed=seed,
            workers=workers,
            progress=lambda done, total: bars.update(bar, completed=done, total=total),
        )
    if csv_file is not None:
        _write_csv(csv_file, scenarios, results)
    if as_json:
        document = {
            "baseline": results[0].to_json(),
            "scenarios": [
                {"change": s.to_json(), "result": r.to_json()}
                for s, r in zip(scenarios[1:], results[1:], strict=True)
            ],
        }
        click.echo(json.dumps(document, indent=1))
    else:
        _show(scenarios, results)


def _plain_axes(kind: str, texts: Iterable[str], *, names: bool) -> list[Axis]:
    """Parse ``1,2,4`` or, where several kinds of clients exist, ``NAME=1,2,4``."""
    from mup.errors import UsageError

    axes = []
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if equals and not (names and name):
            raise UsageError(f"--{kind}: must be numbers separated by commas, got {text!r}")
        axes.append(_axis(kind, name, numbers))
    return axes


def _named_axes(kind: str, texts: Iterable[str]) -> list[Axis]:
    """Parse ``B=2,4`` options."""
    from mup.errors import UsageError

    axes = []
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if not (equals and name):
            raise UsageError(
                f"--{kind}: must be NAME=NUMBER[,NUMBER..], got {text!r}", hint=f"for example --{kind} B=2,4"
            )
        axes.append(_axis(kind, name, numbers))
    return axes


def _axis(kind: str, name: str, numbers: str) -> Axis:
    from mup.errors import UsageError
    from simulator.whatif import Change

    changes = []
    for part in numbers.split(","):
        try:
            number = float(part)
        except ValueError:
            raise UsageError(
                f"--{kind}: must be numbers separated by commas, got {part!r}",
                hint=f"for example --{kind} {name + '=' if name else ''}1,2,4",
            ) from None
        value = int(number) if kind not in ("speed", "think") and number.is_integer() else number
        changes.append(Change(kind, name, value))
    return tuple(changes)


def _show(scenarios: Sequence[Scenario], results: Sequence[Result]) -> None:
    """Print one row per scenario, the baseline first."""
    from mup.cli.display import console
    from mup.cli.figures import change, interval, print_table
    from simulator.whatif import bottleneck, utilizations

    out = console()
    shares = [utilizations(r) for r in results]
    # The fullest servers somewhere in the grid are the interesting ones.
    peaks = {name: max(s[name].mean for s in shares if name in s) for share in shares for name in share}
    names = sorted(sorted(peaks, key=lambda n: -peaks[n])[:MAX_COLUMNS], key=list(peaks).index)
    if out.width < WIDE:
        names = []  # the bottleneck says which server matters; --json and --csv have all of them
    base = results[0].cycle
    rows = []
    for scenario, result, share in zip(scenarios, results, shares, strict=True):
        cycle, most = result.cycle, bottleneck(scenario.model, result)
        rows.append(
            [
                str(scenario),
                "-" if most is None else f"{most[0]} {100 * most[1].mean:.0f} %",
                interval(cycle.response_time, 1e3),
                change(cycle.response_time.mean, base.response_time.mean) if scenario.changes else "",
                *([interval(cycle.response_time.p95, 1e3)] if out.width >= WIDE else []),
                interval(cycle.throughput),
                change(cycle.throughput.mean, base.throughput.mean) if scenario.changes else "",
                *(f"{100 * share[n].mean:.1f}" if n in share else "-" for n in names),
            ]
        )
    print_table(
        out,
        "",
        (
            "scenario",
            "bottleneck",
            "response ms",
            "change",
            *(["p95 ms"] if out.width >= WIDE else []),
            "throughput 1/s",
            "change",
            *(f"{name} %" for name in names),
        ),
        rows,
        texts=2,
    )
    out.print(
        "Response times exclude think time; +- is the half-width of the 95 % interval; % is utilization."
    )
    for scenario, result in zip(scenarios, results, strict=True):
        for warning in result.warnings:
            out.print(f"warning: {scenario}: {warning}", markup=False)


def _write_csv(path: str, scenarios: Sequence[Scenario], results: Sequence[Result]) -> None:
    """Write one line per scenario; times in seconds, throughput per second, utilization as a fraction."""
    import csv
    from pathlib import Path

    from mup.errors import UsageError
    from simulator.whatif import utilizations

    keys = list(dict.fromkeys(f"{c.kind} {c.name}".strip() for s in scenarios for c in s.changes))
    servers = list(dict.fromkeys(name for r in results for name in utilizations(r)))
    figures = ["throughput", "response_time", "p50", "p90", "p95", "p99"]
    heading = [*keys, *(f"{f}{suffix}" for f in figures for suffix in ("", "_ci95"))]
    heading += [f"utilization {name}{suffix}" for name in servers for suffix in ("", " ci95")]
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(heading)
            for scenario, result in zip(scenarios, results, strict=True):
                values = {f"{c.kind} {c.name}".strip(): c.value for c in scenario.changes}
                time, share = result.cycle.response_time, utilizations(result)
                row: list[object] = [values.get(k, "") for k in keys]
                for figure in (result.cycle.throughput, time, time.p50, time.p90, time.p95, time.p99):
                    row += [figure.mean, figure.ci95]
                for name in servers:
                    row += [share[name].mean, share[name].ci95] if name in share else ["", ""]
                writer.writerow(row)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
