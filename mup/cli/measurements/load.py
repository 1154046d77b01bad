"""``mup load``: drive a real load run and measure it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from mup.cli.stopping import stop_cleanly
from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from mup.workload.arrivals import Arrivals
    from mup.workload.figures import Figure, ResponseTime
    from mup.workload.http import HttpLoad
    from mup.workload.measurement import Measurement

TOLERATED_FAILURES = 0.01
"""Share of failed cycles above which the run answers "no" (exit 1)."""
DURATION = 20.0


@click.command(
    epilog=examples(
        "mup load shop --clients 8",
        "mup load shop --arrivals 40 --duration 60",
        "mup load --http http://127.0.0.1:8080/ --clients 4",
    )
)
@click.argument("project", default=".", type=click.Path())
@option("--clients", type=int)
@option("--arrivals", type=float)
@option(
    "--arrival-process",
    type=click.Choice(["poisson", "constant"]),
    default="poisson",
    metavar="poisson|constant",
)
@option(
    "--arrival-times",
    "trace",
    old=("--trace",),
    help="Open load: arrivals at the times in this file (seconds, one per line).",
)
@option(
    "--ramp",
    help="Change arrivals per second (or, with --clients, clients) linearly over the measured window.",
)
@option(
    "--duration",
    show_default=f"{DURATION:g}, or with --arrival-times the rest of them",
)
@option("--warmup", default=3.0)
@option("--repeats", default=1)
@option(
    "--precision",
    "until",
    old=("--until",),
    help="Repeat until the 95 % half-width of the mean response time is this fraction of it, e.g. 0.03.",
)
@option(
    "--max-seconds",
    default=60.0,
    help="With --precision: budget in measured seconds.",
)
@option("--void-retries", "retries", old=("--retries",), default=0)
@option("--seed")
@option("--pool", multiple=True, metavar="SERVICE=N")
@option("--replicas")
@option("--attach")
@option("--external")
@option("--http")
@option(
    "--http-method",
    "method",
    old=("--method",),
    default="",
    show_default="POST with a body, else GET",
)
@option("--body", default="")
@option("--header")
@option(
    "--think",
    default="0",
    metavar="SECONDS|@FILE",
    help="With --http: mean think time between cycles in seconds, or @FILE of think times.",
)
@option(
    "--think-distribution",
    type=click.Choice(["constant", "exponential"]),
    default="exponential",
    metavar="constant|exponential",
    help="With --http: distribution of the think times.",
)
@option("--log", "log_dir")
@option("--json")
def command(
    project: str,
    clients: int | None,
    arrivals: float | None,
    arrival_process: str,
    trace: str | None,
    ramp: str | None,
    duration: float | None,
    warmup: float,
    repeats: int,
    until: float | None,
    max_seconds: float,
    retries: int,
    seed: int,
    pool: tuple[str, ...],
    replicas: tuple[str, ...],
    attach: str | None,
    external: tuple[str, ...],
    http: tuple[str, ...],
    method: str,
    body: str,
    header: tuple[str, ...],
    think: str,
    think_distribution: str,
    log_dir: str | None,
    as_json: bool,
) -> int:
    """Start PROJECT's services on free ports, drive them with its client, and measure.

    A closed load (--clients) has users who repeat the client's scenario: while one waits, it sends nothing.
    An open load (--arrivals, --arrival-times, --ramp) starts a scenario at each arrival, whatever is still
    under way, and its response times count from the moment it should have started. Intervals are 95 %
    batch-means intervals. A run is void if the machine changed its speed, or other programs used more than 2
    % of it. Exit code 1: more than 1 % of the cycles failed.
    """
    stop_cleanly()
    import json
    from pathlib import Path

    from mup.cli.options import assignments, check_least, check_share
    from mup.cli.output.display import console
    from mup.project import load_project
    from mup.workload.measure import measure_load

    check_share(until, "--precision")
    check_least(retries, 0, "--void-retries")
    load = _load(clients, arrivals, arrival_process, trace, ramp)
    opened: Arrivals | None = load.get("arrivals")
    if duration is None:
        duration = _rest(opened, warmup) if opened is not None and opened.process == "trace" else DURATION
    if http:
        if attach or external or pool or replicas:
            raise UsageError(
                "--http drives no project: leave out --attach, --external, --pool and --replicas"
            )
        target: Any = _requests(http, method, body, header, think, think_distribution)
    else:
        if method or body or header or think != "0":
            raise UsageError(
                "--http-method, --body, --header and --think need --http: a project's client says them"
            )
        target = load_project(project).with_any_ports().with_externals(_pairs(external, "--external"))
    with _display() as show:
        measured = measure_load(
            target,
            duration=duration,
            warmup=warmup,
            pools=assignments(pool, "--pool"),
            replicas=assignments(replicas, "--replicas"),
            seed=seed,
            log_dir=Path(log_dir) if log_dir else None,
            attach=attach,
            repeats=repeats,
            retries=retries,
            until_width=until,
            max_seconds=max_seconds,
            progress=show,
            **load,
        )
    if as_json:
        click.echo(json.dumps(measured.to_json(), indent=1))
    else:
        _show(measured, console())
    for warning in measured.warnings:
        click.echo(f"mup: warning: {warning}", err=True)
    return 1 if measured.failed_share > TOLERATED_FAILURES else 0


def _load(
    clients: int | None, arrivals: float | None, process: str, trace: str | None, ramp: str | None
) -> dict[str, Any]:
    """Return what load the options mean, as arguments of `measure_load`.

    Raises:
        UsageError: They mean none, or several.
    """
    from mup.workload.arrivals import Arrivals
    from mup.workload.times_file import read_trace

    given = [
        name
        for name, value in (("--clients", clients), ("--arrivals", arrivals), ("--arrival-times", trace))
        if value is not None
    ]
    if len(given) > 1:
        raise UsageError(f"a load is closed or open, one of: {', '.join(given)}")
    if not given and ramp is None:
        raise UsageError(
            "which load? name --clients N (closed), or --arrivals R or --arrival-times FILE (open)",
            hint="for example --clients 8",
        )
    if trace is not None:
        if ramp is not None:
            raise UsageError("--ramp changes a rate, and --arrival-times have none")
        return {"arrivals": Arrivals(process="trace", trace=read_trace(trace))}
    ends = None if ramp is None else _ramp(ramp)
    if clients is not None:
        if ends is None:
            return {"clients": clients}
        first, last = (int(end) for end in ends)
        if not (first == ends[0] and last == ends[1]) or clients not in (first, last):
            raise UsageError(
                f"--ramp {ramp} must be whole numbers of clients, one of them --clients {clients}",
                hint=f"for example --clients {clients} --ramp 1:{clients}",
            )
        return {"clients": last, "clients_from": first}
    if ends is None:
        return {"arrivals": Arrivals(rate=arrivals or 0.0, process=process)}  # type: ignore[arg-type]
    if arrivals is not None and arrivals not in ends:
        raise UsageError(
            f"--ramp {ramp} must begin or end with --arrivals {arrivals:g}", hint="leave out --arrivals"
        )
    return {"arrivals": Arrivals(rate=ends[0], to_rate=ends[1], process=process)}  # type: ignore[arg-type]


def _ramp(text: str) -> tuple[float, float]:
    import math

    first, _, last = text.partition(":")
    try:
        ends = float(first), float(last)
    except ValueError:
        ends = math.nan, math.nan
    if not all(math.isfinite(end) for end in ends):
        raise UsageError(f"--ramp: must be FROM:TO, got {text!r}", hint="for example --ramp 10:100")
    return ends


def _rest(arrivals: Arrivals, warmup: float) -> float:
    """Return how long a trace is after the warm-up."""
    rest = arrivals.trace[-1] - warmup
    if rest <= 0:
        raise UsageError(
            f"the trace ends after {arrivals.trace[-1]:g} s, within the warm-up of {warmup:g} s",
            hint="shorten it with --warmup",
        )
    return rest


def _requests(
    urls: tuple[str, ...], method: str, body: str, header: tuple[str, ...], think: str, distribution: str
) -> HttpLoad:
    from mup.cli.options import body_text, header_lines
    from mup.workload.http import HttpLoad

    seconds: float | str = think[1:]
    if think.startswith("@"):
        distribution = "recorded"
    else:
        try:
            seconds = float(think)
        except ValueError:
            raise UsageError(f"--think: must be seconds or @FILE, got {think!r}") from None
    return HttpLoad(
        urls=urls,
        method=method,
        body=body_text(body),
        headers=header_lines(header),
        think=seconds,
        think_distribution=distribution,  # type: ignore[arg-type]
    )


def _pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"{option}: must be NAME=URL, got {text!r}")
        pairs[name] = value
    return pairs


@contextmanager
def _display() -> Iterator[Callable[[str], None]]:
    """Show what happens on one line of a terminal; without a thread that would use the machine meanwhile."""
    from rich.live import Live
    from rich.text import Text

    from mup.cli.output.display import console

    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda _: None
        return
    with Live(console=err, auto_refresh=False, transient=True) as live:
        yield lambda text: live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)


def _show(measured: Measurement, out: Console) -> None:
    from mup.cli.output.display import say
    from mup.cli.output.tables import print_table

    runs = f" in {_count(measured.repeats, 'run')}" if measured.repeats > 1 else ""
    say(out, f"{measured.load}, {measured.window_seconds:.1f} s measured{runs}")
    if measured.void:
        say(out, f"VOID: {measured.void}")
    if not measured.cycles:
        # Every figure would be a zero that was not measured.
        say(out, f"no cycle succeeded, {measured.errors} failed")
        return
    rows: list[tuple[str, str, str, str]] = []
    since = ", from the intended start" if measured.kind == "open" else ""
    _times(rows, "response time", measured.response_time, since)
    if measured.service_response is not None:
        service = measured.service_response
        rows.append(
            ("response time, mean", f"{service.mean * 1e3:.2f}", _ms(service.ci95), "ms, from the real start")
        )
    if measured.repeats > 1:
        rows.append(
            (
                "response time, median",
                f"{measured.median_response_time * 1e3:.2f}",
                "",
                "ms, of the runs' means",
            )
        )
    rows.append(("throughput", *_rate(measured.throughput), "cycles/s"))
    for name, share in measured.utilization.items():
        if share is None:
            rows.append((f"utilization of {name}", "?", "", "unknown: no log of an attached system"))
        else:
            half = measured.utilization_ci95[name]
            rows.append(
                (
                    f"utilization of {name}",
                    f"{share:.1%}",
                    "?" if half is None else f"{half:.1%}",
                    "of its workers",
                )
            )
    for name, seconds in measured.cpu.seconds.items():
        rows.append((f"CPU of {name}", f"{seconds / measured.cycles * 1e3:.2f}", "", "ms per cycle"))
    rows.append(("CPU of the host", f"{measured.cpu.host_utilization:.1%}", "", "of all cores"))
    for label, late in (("think times", measured.late_thinks), ("starts", measured.late_starts)):
        if late is not None:
            rows.append(
                (
                    f"lateness of {label}",
                    f"{late.mean * 1e3:.2f}",
                    "",
                    f"ms; 95 % below {late.p95 * 1e3:.2f}, all below {late.max * 1e3:.2f}",
                )
            )
    rows.append(("failed cycles", str(measured.errors), "", f"of {measured.cycles + measured.errors}"))
    speed = measured.speed
    rows.append(
        (
            "speed of the machine",
            f"{speed.speed:.0f}",
            "",
            f"units/s per core; changed by {speed.jump:.1%} from before to after the run",
        )
    )
    if measured.monitored_speed is not None:
        rows.append(("speed during the window", f"{measured.monitored_speed:.0f}", "", "units/s per core"))
    print_table(out, "", ["figure", "value", "+- 95 %", "unit"], rows, words=("unit",))
    _show_endpoints(measured, out)
    if not measured.steady:
        _show_course(measured, out)


def _show_endpoints(measured: Measurement, out: Console) -> None:
    from mup.cli.output.tables import print_table

    rows = [
        [label, "clients", *_cells(seen.response_time), _rate_text(seen.throughput), "", str(seen.errors)]
        for label, seen in measured.calls.items()
    ]
    for label, figures in measured.endpoints.items():
        busy = figures.utilization
        half = "?" if busy.ci95 is None else f"{busy.ci95:.1%}"
        rows.append(
            [
                label,
                "service",
                *_cells(figures.response_time),
                _rate_text(figures.throughput),
                f"{busy.mean:.1%} +- {half}",
                str(figures.errors),
            ]
        )
    if rows:
        out.print()
        headings = ["endpoint", "seen by", "mean ms", "p95 ms", "per second", "busy", "failed"]
        print_table(out, "", headings, rows, words=("seen by",), spare=("busy",))


def _show_course(measured: Measurement, out: Console) -> None:
    from mup.cli.output.tables import print_table

    rows = []
    for point in measured.series:
        mean = "-" if point.response_time is None else f"{point.response_time * 1e3:.2f}"
        rows.append([f"{point.seconds:.1f}", f"{point.starts:.2f}", f"{point.throughput:.2f}", mean])
    out.print()
    print_table(out, "", ["second", "starts/s", "cycles/s", "response ms"], rows, texts=0)


def _times(rows: list[tuple[str, str, str, str]], name: str, times: ResponseTime, since: str) -> None:
    rows.append((f"{name}, mean", f"{times.mean * 1e3:.2f}", _ms(times.ci95), f"ms{since}"))
    for percentile in ("p50", "p90", "p95", "p99"):
        half = _ms(times.p95_ci95) if percentile == "p95" else ""
        rows.append((f"{name}, {percentile}", f"{getattr(times, percentile) * 1e3:.2f}", half, "ms"))


def _cells(times: ResponseTime) -> tuple[str, str]:
    """Return mean and 95th percentile in milliseconds with their intervals."""
    return (
        f"{times.mean * 1e3:.2f} +- {_ms(times.ci95)}",
        f"{times.p95 * 1e3:.2f} +- {_ms(times.p95_ci95)}",
    )


def _rate(figure: Figure) -> tuple[str, str]:
    return f"{figure.mean:.2f}", "?" if figure.ci95 is None else f"{figure.ci95:.2f}"


def _rate_text(figure: Figure) -> str:
    return " +- ".join(_rate(figure))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds * 1e3:.2f}"
