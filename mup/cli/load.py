"""``mup load``: drive a real load run and measure it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from mup.workload.measure import Measurement

TOLERATED_FAILURES = 0.01
"""Share of failed cycles above which the run answers "no" (exit 1)."""
CLIENT_LIMIT = 0.7
"""Share of a core above which the load driver may itself be what is measured."""
FOREIGN_LIMIT = 0.02
"""Share of the host used by others above which a measurement is disturbed."""


@click.command()
@click.argument("project", default=".", type=click.Path())
@click.option("--clients", type=int, required=True, help="Concurrent clients.")
@click.option("--duration", default=20.0, show_default=True, help="Length of the measured window in seconds.")
@click.option("--warmup", default=3.0, show_default=True, help="Seconds of load before the window.")
@click.option("--repeats", default=1, show_default=True, help="Runs, each with fresh services.")
@click.option("--seed", default=0, show_default=True, help="Of everything random in the clients.")
@click.option("--pool", multiple=True, metavar="SERVICE=N", help="Pool size of a service; repeatable.")
@click.option("--replicas", multiple=True, metavar="SERVICE=N", help="Replicas of a service; repeatable.")
@click.option("--attach", metavar="URL", help="Registry of a running system; nothing is started.")
@click.option(
    "--log", "log_dir", type=click.Path(file_okay=False), help="Keep the event logs in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    project: str,
    clients: int,
    duration: float,
    warmup: float,
    repeats: int,
    seed: int,
    pool: tuple[str, ...],
    replicas: tuple[str, ...],
    attach: str | None,
    log_dir: str | None,
    as_json: bool,
) -> int:
    """Start PROJECT's services on free ports, drive them with its client, and measure.

    The load is closed: each of --clients users repeats the client's scenario. Response times exclude
    think time. Intervals are 95 % batch-means intervals. Exit status 1 = more than 1 % of the cycles failed.
    """
    import json
    from pathlib import Path

    from mup.cli.display import console
    from mup.cli.options import assignments
    from mup.project import load_project
    from mup.workload.measure import measure_load

    err = console(stderr=True)
    with err.status("") as status:
        measured = measure_load(
            load_project(project).with_any_ports(),
            clients=clients,
            duration=duration,
            warmup=warmup,
            pools=assignments(pool, "--pool"),
            replicas=assignments(replicas, "--replicas"),
            seed=seed,
            log_dir=Path(log_dir) if log_dir else None,
            attach=attach,
            repeats=repeats,
            progress=status.update,
        )
    if as_json:
        click.echo(json.dumps(measured.to_json(), indent=1))
    else:
        _show(measured, console())
    for warning in _warnings(measured):
        click.echo(f"mup: warning: {warning}", err=True)
    return 1 if measured.failed_share > TOLERATED_FAILURES else 0


def _show(measured: Measurement, out: Console) -> None:
    from rich.table import Table

    out.print(f"{_count(measured.clients, 'client')}, {measured.window_seconds:.1f} s measured")
    if not measured.cycles:
        # Every figure would be a zero that nobody measured.
        out.print(f"no cycle succeeded, {measured.errors} failed")
        return
    table = Table("figure", "value", "+- 95 %", "unit", box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    response = measured.response_time
    table.add_row("response time, mean", f"{response.mean * 1e3:.2f}", _ms(response.ci95), "ms")
    for name in ("p50", "p90", "p95", "p99"):
        table.add_row(f"response time, {name}", f"{getattr(response, name) * 1e3:.2f}", "", "ms")
    rate = measured.throughput
    table.add_row(
        "throughput", f"{rate.mean:.2f}", "?" if rate.ci95 is None else f"{rate.ci95:.2f}", "cycles/s"
    )
    for name, share in measured.utilization.items():
        if share is None:
            table.add_row(f"utilization of {name}", "?", "", "unknown: no log of an attached system")
        else:
            table.add_row(f"utilization of {name}", f"{share:.1%}", "", "of its workers")
    for name, seconds in measured.cpu.seconds.items():
        table.add_row(f"CPU of {name}", f"{seconds / measured.cycles * 1e3:.2f}", "", "ms per cycle")
    table.add_row("CPU of the host", f"{measured.cpu.host_utilization:.1%}", "", "of all cores")
    table.add_row("failed cycles", str(measured.errors), "", f"of {measured.cycles + measured.errors}")
    out.print(table)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds * 1e3:.2f}"


def _warnings(measured: Measurement) -> list[str]:
    warnings = []
    if measured.errors:
        warnings.append(f"{_count(measured.errors, 'cycle')} failed, the first with: {measured.first_error}")
    if not measured.cycles:
        return warnings
    if measured.cpu.client_utilization > CLIENT_LIMIT:
        share = f"{measured.cpu.client_utilization:.0%}"
        warnings.append(f"the load driver used {share} of a core: it may be the bottleneck itself")
    if len(measured.cpu.seconds) > 1 and measured.cpu.foreign > FOREIGN_LIMIT:
        warnings.append(f"other programs used {measured.cpu.foreign:.1%} of the host during the measurement")
    return warnings
