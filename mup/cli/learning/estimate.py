"""``mup estimate DATA``: the processor time that each kind of request needs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.learning.prometheus import RangeQueries, prometheus_options, write_measurements
from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.estimation.methods import Estimate
    from analyzer.estimation.samples import FloatArray
    from analyzer.estimation.tracking import Alarm, Tracked

__all__ = ["command"]

FEWEST = 40
"""Resamples of which one is beyond either end of a 95 % interval."""
FEWEST_LEARNED = 5
"""Periods that say anything about how much periods vary."""
TICKS = 10
"""Moments written below a plot, about."""


@click.command(
    name="estimate",
    epilog=examples(
        "mup estimate access.log --cores 2 --pool 8",
        "mup estimate samples.csv --cores 4 --name legacy -o legacy.json",
        "mup estimate new.csv --cores 2 --prometheus http://127.0.0.1:9090"
        " --query 'utilization=avg(rate(process_cpu_seconds_total[1m])) / 2'"
        " --query 'throughput=sum by (route) (rate(http_requests_total[1m]))'",
    ),
)
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@option("--cores", type=int, required=True, help="Number of cores the requests in process share.")
@option(
    "--pool",
    "threads",
    old=("--threads",),
    type=int,
    metavar="N",
    help="Pool size: threads that process requests.",
    show_default="no limit",
)
@option("--method", default="auto")
@option("--service", "services", multiple=True, help="Take only this service of event logs; repeatable.")
@option("--log-format")
@option("--field")
@option("--group")
@prometheus_options
@option("--resamples", default=1000)
@option("--seed")
@option("--period", "track", old=("--track",))
@option(
    "--drift",
    default="auto",
    metavar="auto|FRACTION",
)
@option(
    "--learning-periods",
    "learn",
    default=20,
)
@option("--plot", help="With --period: also draw the demands into this file.")
@option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="MODEL.json",
)
@option("--name", default="", show_default="the only service, or 'station'")
@option("--json")
def command(
    data: Path,
    cores: int,
    threads: int | None,
    method: str,
    services: tuple[str, ...],
    log_format: str,
    field: tuple[str, ...],
    group: tuple[str, ...],
    server: RangeQueries | None,
    resamples: int,
    seed: int,
    track: float | None,
    drift: str,
    learn: int,
    plot: str | None,
    output: Path | None,
    name: str,
    *,
    as_json: bool,
) -> int:
    """Estimate mean demands of a station from what is monitored anyway.

    DATA is CSV of arrival samples ('class,response_time,n_CLASS...': what each request saw in process when it
    was admitted, itself included), of all requests ('arrival,departure,class'), or of windows
    ('utilization,throughput_CLASS...,response_time_CLASS...'); an access log, also .gz; or event logs of mup
    (a file or a folder). Response times must not contain waiting for other systems. With --prometheus, DATA
    are windows, from queries for utilization, throughput and response.

    Methods: auto (explains its choice); bl for all requests; ldps, rps, erps, mlps, minps, fmlps, fmlps-he
    and fcfs for arrival samples or all requests; ur and pf for windows.
    """
    from analyzer.access_logs.formats import wanted
    from analyzer.access_logs.reading import Source
    from analyzer.estimation.methods import estimate
    from analyzer.estimation.reading import read_observations
    from mup.cli.learning.fit_track import drift_of
    from mup.cli.options import check_picture, check_result, named_texts

    if cores < 1:
        raise UsageError(f"--cores: must be a whole number >= 1, got {cores}")
    if threads is not None and threads < 1:
        raise UsageError(f"--pool: must be a whole number >= 1, got {threads}")
    if resamples < FEWEST:
        raise UsageError(f"--resamples: must be a whole number >= {FEWEST}, got {resamples}")
    check_result(output, starts=("{",), as_json=as_json)
    check_picture(plot)
    if track is None and (plot is not None or drift != "auto" or learn != 20):
        raise UsageError(
            "--drift, --learning-periods and --plot are about demands over time",
            hint="say --period S, its seconds",
        )
    per_period = drift_of(drift)
    if track is not None:
        if not 0 < track < math.inf:
            raise UsageError(f"--period: must be a number of seconds > 0, got {track:g}")
        if learn < FEWEST_LEARNED:
            raise UsageError(f"--learning-periods: must be a whole number >= {FEWEST_LEARNED}, got {learn}")
        if output is not None or method != "auto":
            raise UsageError("--period takes neither -o nor --method: it follows demands over time")
    if server is not None:
        _read_server(server, data, track)
    source = Source(log_format, wanted(field), named_texts(group, "--group", "search=^GET /search"))
    pool = math.inf if threads is None else float(threads)
    observed = read_observations(data, threads=pool, services=services, source=source)
    if track is not None:
        from analyzer.estimation.tracking import track as follow

        tracked = follow(observed, cores=cores, threads=pool, period=track, drift=per_period, learning=learn)
        if plot is not None:
            _draw(tracked, plot)
        if as_json:
            click.echo(json.dumps(tracked.to_json(), indent=1))
        else:
            _print_track(tracked)
        return 1 if tracked.alarms else 0
    found = estimate(observed, cores=cores, threads=pool, method=method, resamples=resamples, seed=seed)
    if output is not None:
        from analyzer.estimation.station import station_model
        from mup.lqn import save_model

        save_model(station_model(found, name or _task_name(found)), output)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
    else:
        _print(found, output)
    return 0


def _read_server(server: RangeQueries, data: Path, period: float | None) -> None:
    """Write the windows that a Prometheus server tells."""
    from analyzer.prometheus.tables import window_role, windows
    from mup.cli.options import check_output

    check_output(data, starts=("time,utilization", "utilization"))
    if period is not None and server.step not in (None, period):
        raise UsageError(f"--step {server.step:g} and --period {period:g}: a period is a step; leave one out")
    write_measurements(data, windows(*server.answers(window_role, period)))


def _task_name(found: Estimate) -> str:
    """Return the service all classes are endpoints of, or ``station``."""
    from mup.lqn.refs import service_of

    owners = set(map(service_of, found.classes))
    only = owners.pop() if len(owners) == 1 else ""
    return only if only and " " not in only else "station"


def _print(found: Estimate, output: Path | None) -> None:
    from mup.cli.options import shown
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import span
    from mup.cli.output.tables import print_table

    rows = []
    for r, name in enumerate(found.classes):
        known = math.isfinite(found.demand[r])
        rows.append(
            (
                name,
                f"{found.demand[r] * 1e3:.4g}" if known else "-",
                span(found.low[r] * 1e3, found.high[r] * 1e3) if math.isfinite(found.low[r]) else "-",
                "-" if found.scv is None or not math.isfinite(found.scv[r]) else f"{found.scv[r]:.2f}",
                f"{found.rates[r]:.4g}",
                str(found.samples[r]),
            )
        )
    out = console()
    threads = "unlimited threads" if math.isinf(found.threads) else f"{found.threads:g} threads"
    title = f"Demands by {found.method}, {found.cores:g} cores, {threads}"
    print_table(out, title, ["class", "demand ms", "95 %", "scv", "per second", "samples"], rows)
    say(out, f"method {found.method}: {found.reason}")
    for note in found.notes:
        say(out, f"note: {note}")
    if output is not None:
        say(out, f"wrote {shown(output)}")


def _print_track(tracked: Tracked) -> None:
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import number
    from mup.cli.output.tables import print_table

    alarmed = {alarm.period: alarm.test for alarm in tracked.alarms}
    rows = []
    for t, end in enumerate(tracked.end.tolist()):
        cells = []
        for r in range(len(tracked.classes)):
            half = (tracked.high[t, r] - tracked.demand[t, r]) * 1e3
            if not math.isfinite(half):
                cells.append("-")
                continue
            cells.append(f"{number(tracked.demand[t, r] * 1e3, half)} +- {number(half, half)}")
        size = f"{tracked.size[t]:.2f}" if math.isfinite(tracked.size[t]) else "-"
        rows.append((f"{end:g}", *cells, size, alarmed.get(t, "")))
    headings = [
        "until s",
        *(f"{name} ms" for name in tracked.classes),
        "size of innovation (1 = expected)",
        "alarm",
    ]
    out = console()
    print_table(out, "Demands over time, 95 %", headings, rows, texts=0, words=("alarm",))
    say(
        out,
        f"drift {tracked.drift:.2g} per period; the first {tracked.learning} periods are learned from",
    )
    for alarm in tracked.alarms:
        say(out, f"alarm at {tracked.end[alarm.period]:g} s: {_what(tracked, alarm)}; the filter starts over")
    if not tracked.alarms:
        say(out, "no alarm: the demands explain what was measured")


def _what(tracked: Tracked, alarm: Alarm) -> str:
    """Return what an alarm says."""
    if alarm.test == "step":
        direction = "grown" if alarm.statistic > 0 else "fallen"
        return f"demands have {direction} since about {tracked.end[max(alarm.since - 1, 0)]:g} s"
    if alarm.test == "size":
        return "what was measured is too far from what the demands explain"
    if alarm.statistic > 0:
        return "what was measured errs to the same side again and again"
    return "what was measured swings from one side to the other"


def _draw(tracked: Tracked, path: str) -> None:
    from mup.cli.output.chart import Curve, Panel, draw_panels
    from mup.whole_file import write_whole

    count = len(tracked.end)
    every = max(1, round(count / TICKS))
    names = [f"{end:g}" if t % every == 0 else "" for t, end in enumerate(tracked.end.tolist())]
    at = [float(t) for t in range(count)]
    curves = {
        name: Curve(
            at,
            _zero_for_nan(1e3 * tracked.demand[:, r]),
            _zero_for_nan(1e3 * tracked.low[:, r]),
            _zero_for_nan(1e3 * tracked.high[:, r]),
        )
        for r, name in enumerate(tracked.classes)
    }
    size = Curve(at, _zero_for_nan(tracked.size), [None] * count, [None] * count)
    panels = [Panel("demand, ms", curves), Panel("innovation, 1 = as expected", {"innovation": size})]
    write_whole(path, draw_panels("Demands over time", "s", names, panels), what="the picture")


def _zero_for_nan(values: FloatArray) -> list[float]:
    """Return values to draw: a gap would end the line, so nothing measured is drawn at 0."""
    return [value if math.isfinite(value) else 0.0 for value in values.tolist()]
