"""``mup identify``: a URL in, a queueing station out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.blackbox.experiment import Experiment, Progress
    from analyzer.blackbox.holdout import Comparison
    from analyzer.blackbox.policy import Limits
    from analyzer.blackbox.resources import CpuWatch
    from analyzer.blackbox.structure import Verdict
    from mup.workload.http import HttpLoad

TOLERATED_DRIFT = 0.2
"""Service that takes so much longer at high than at low load is worth a warning."""


@click.command(
    epilog=examples(
        "mup identify http://127.0.0.1:8080/items/ -o items.json",
        "mup identify http://127.0.0.1:8080/items/ --dry-run",
    )
)
@click.argument("url", required=False)
@option("--output", metavar="MODEL.json")
@option("--name", default="blackbox")
@option(
    "--http-method",
    "method",
    old=("--method",),
    default="",
    show_default="POST with a body, else GET",
)
@option("--body", default="")
@option("--header")
@option("--target")
@option("--start-rate", default=5.0)
@option("--max-rate", default=200.0)
@option("--max-seconds", default=180.0, help="Budget in seconds of load.")
@option(
    "--max-response",
    default=5.0,
    help="Raise the load no further when the 95th percentile of the response times is above this.",
)
@option(
    "--max-failures", default=3, help="Number of failed requests after which the load ends with the next."
)
@option(
    "--precision",
    default=0.05,
    help="Relative 95 % half-width of the mean service time to reach.",
)
@option("--pid", help="Process that serves the URL, to see how busy it is (with its children).")
@option("--metrics")
@option("--metric", default="", help="With --metrics: name of the counter of processor seconds.")
@option("--cores", type=int, help="Number of cores the target may use.", show_default="those of this machine")
@option("--seed")
@option(
    "--arrival-times",
    "arrivals",
    old=("--arrivals",),
    metavar="FILE|FOLDER",
    help="Load nothing: describe recorded times of arrivals in a file (seconds, one per line), or in "
    "event logs (with --service).",
)
@option("--service", old=("--of",), help="With --arrival-times FOLDER: take only arrivals at this service.")
@option("--dry-run", help="Say what would be done, and send nothing.")
@option("--json")
def command(
    url: str | None,
    output: str | None,
    name: str,
    method: str,
    body: str,
    header: tuple[str, ...],
    target: tuple[str, ...],
    start_rate: float,
    max_rate: float,
    max_seconds: float,
    max_response: float,
    max_failures: int,
    precision: float,
    pid: int | None,
    metrics: str | None,
    metric: str,
    cores: int | None,
    seed: int,
    arrivals: str | None,
    service: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Load URL step by step until it is saturated, and say which queueing station behaves like it.

    The result is an M/G/K station: how many requests it serves at once, how long service takes, how that
    varies, and up to which load this was seen. Requests to another machine need --target. Exit code 1: it
    does not predict the loads held back, or requests failed; then nothing more is sent, and the station is
    that of the loads before.

    --arrival-times loads nothing: it says how requests arrive at one place of a composed system.
    """
    import json

    from analyzer.blackbox.experiment import run_experiment
    from analyzer.blackbox.holdout import compare, verdict
    from analyzer.blackbox.http_injector import HttpInjector, check_target
    from analyzer.blackbox.policy import Limits
    from analyzer.blackbox.structure import judge_structure
    from mup.cli.options import body_text, check_result, header_lines
    from mup.whole_file import STANDARD_STREAM
    from mup.workload.http import HttpLoad

    if arrivals is not None:
        if url is not None or output is not None:
            raise UsageError("--arrival-times describes times that were recorded: leave out URL and --output")
        _show_arrivals(arrivals, service, seed, as_json=as_json)
        return 0
    if url is None or service is not None:
        raise UsageError(
            "name the URL to identify, or times with --arrival-times (and --service NAME for event logs)"
        )
    check_result(output, starts=("{",), as_json=as_json)
    if output not in (None, STANDARD_STREAM) and not str(output).endswith(".json"):
        raise UsageError("the model is written as JSON", where=output, hint="name it .json")
    load = HttpLoad(urls=(url,), method=method, body=body_text(body), headers=header_lines(header))
    check_target(url, target)
    limits = Limits(rate=max_rate, seconds=max_seconds, response=max_response, failures=max_failures)
    _check(start_rate=start_rate, precision=precision, cores=cores, name=name)
    watch = _watch(pid, metrics, metric, cores)
    if dry_run:
        _show_plan(load, limits, start_rate, as_json=as_json)
        return 0
    with HttpInjector(load, failures=max_failures, watch=watch) as injector:
        found = run_experiment(
            injector, limits=limits, start_rate=start_rate, precision=precision, seed=seed, tell=_tell
        )
    compared = compare(found.station, found.held_back, seed=seed)
    judged = judge_structure(found.station, found.steps, seed=seed)
    holds = verdict(compared)
    if judged is not None and not judged.one and holds is not False:
        holds = judged.one
    document = _document(found, compared, judged, holds, url)
    if output is not None:
        _save(found, document, name, output)
        document["model"] = output
    if as_json:
        click.echo(json.dumps(document, indent=1))
    else:
        _show(found, compared, judged, document)
    return 1 if holds is False or found.failed else 0


def _show_arrivals(source: str, service: str | None, seed: int, *, as_json: bool) -> None:
    import json
    from pathlib import Path

    from analyzer.blackbox.arrivals import arrivals_in_logs, identify_arrivals
    from mup.workload.times_file import read_trace

    if Path(source).is_dir():
        if service is None:
            raise UsageError("arrivals at which service?", where=source, hint="name it with --service NAME")
        times = arrivals_in_logs(Path(source), service)
        found = identify_arrivals(times, seed=seed)
    else:
        if service is not None:
            raise UsageError("--service goes with a folder of event logs", where=source)
        found = identify_arrivals(read_trace(source), seed=seed)
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
        return
    low, high = found.scv_interval
    click.echo(f"{found.rate:.4g} arrivals/s; squared cv {found.scv:.3f} ({low:.3f} to {high:.3f})")
    click.echo(f"distribution: {found.family.reason}")
    beyond = (
        "beyond chance: no distribution alone describes them" if found.correlated else "not beyond chance"
    )
    click.echo(f"correlation of neighbouring times: {found.correlation:+.3f}, {beyond}")
    click.echo("as Poisson arrivals would be" if found.poisson else "not Poisson arrivals")


def _check(*, start_rate: float, precision: float, cores: int | None, name: str) -> None:
    if not 0 < start_rate < float("inf"):
        raise UsageError(f"--start-rate: must be > 0 requests per second, got {start_rate!r}")
    if not 0 < precision < 1:
        raise UsageError(f"--precision: must be between 0 and 1, got {precision!r}", hint="0.05 means 5 %")
    if cores is not None and cores < 1:
        raise UsageError(f"--cores: must be >= 1, got {cores!r}")
    if not name.strip():
        raise UsageError("--name: a task needs a name")


def _watch(pid: int | None, metrics: str | None, metric: str, cores: int | None) -> CpuWatch | None:
    """Return what tells how busy the target is, tried once, so that it does not fail later."""
    from functools import partial

    from analyzer.blackbox.resources import CpuWatch, prometheus_seconds, tree_seconds
    from mup.project import is_http_url

    if pid is not None and metrics is not None:
        raise UsageError("--pid and --metrics tell the same: name one")
    if metric and metrics is None:
        raise UsageError("--metric names a counter of --metrics URL")
    if pid is None and metrics is None:
        return None
    if metrics is not None and not is_http_url(metrics):
        raise UsageError(f"--metrics: must be a URL such as http://127.0.0.1:8080/metrics, got {metrics!r}")
    read = (
        partial(tree_seconds, pid) if pid is not None else partial(prometheus_seconds, str(metrics), metric)
    )
    read()
    return CpuWatch(read, cores)


def _show_plan(load: HttpLoad, limits: Limits, start_rate: float, *, as_json: bool) -> None:
    import json

    from analyzer.blackbox.policy import LEVELS

    method = load.method or ("POST" if load.body else "GET")
    if as_json:
        plan = {
            "url": load.urls[0],
            "method": method,
            "start_rate": min(start_rate, limits.rate),
            "levels": list(LEVELS),
            "limits": {
                "rate": limits.rate,
                "seconds": limits.seconds,
                "requests": limits.rate * limits.seconds,
            },
        }
        click.echo(json.dumps({"dry_run": plan}, indent=1))
        return
    shares = ", ".join(f"{level:.0%}" for level in LEVELS)
    click.echo(f"{method} {load.urls[0]}")
    click.echo(f"first {min(start_rate, limits.rate):g} requests/s, then {shares} of the estimated capacity")
    click.echo(
        f"at most {limits.rate:g} requests/s for {limits.seconds:g} s, that is "
        f"{limits.rate * limits.seconds:.0f} requests; more than {limits.failures} failures end it"
    )
    click.echo("nothing was sent (--dry-run)")


def _tell(progress: Progress) -> None:
    text = f"{progress.phase}: {progress.rate:.3g} requests/s for {progress.seconds:.0f} s"
    if progress.servers is not None and progress.mean is not None:
        servers = f"{progress.servers.count}{'' if progress.servers.bounded else ' or more'} servers"
        text += f" (so far {servers}, {1e3 * progress.mean:.3g} ms, cv {progress.cv:.2f})"
    click.echo(text, err=True)


def _document(
    found: Experiment, compared: tuple[Comparison, ...], judged: Verdict | None, holds: bool | None, url: str
) -> dict[str, Any]:
    station = found.station
    low, high = found.validity
    return {
        "url": url,
        "servers": {
            "count": station.servers.count,
            "lower_bound": not station.servers.bounded,
            "without_negative_times": station.servers.at_least,
        },
        "service_time": {"mean": station.distribution.mean, "ci95": station.half_width},
        "cv": station.distribution.scv**0.5,
        "latency": station.servers.latency,
        "distribution": station.distribution.to_json(),
        "family": station.family.to_json(),
        "capacity": station.capacity,
        "validity": {"lowest_rate": low, "highest_rate": high, "saturated": found.saturated},
        "ended": found.ended,
        "failed": found.failed or None,
        "seconds": found.seconds,
        "steps": [step.to_json() for step in station.steps],
        "held_back": [comparison.to_json() for comparison in compared],
        "structure": None if judged is None else judged.to_json(),
        "holds": holds,
        "warnings": _warnings(found, compared, judged),
    }


def _warnings(found: Experiment, compared: tuple[Comparison, ...], judged: Verdict | None) -> list[str]:
    from analyzer.blackbox.holdout import verdict

    station, texts = found.station, []
    if judged is None:
        texts.append("too few loads to tell whether the target is a single station; raise --max-seconds")
    elif judged.one is None:
        texts.append(judged.text)
    elif not judged.one:
        texts.append(
            f"{judged.text}: the model of a single station is wrong beyond the loads it was measured at, and "
            "its capacity may be"
        )
    if not station.servers.bounded:
        texts.append(
            f"{station.servers.count} servers are a lower bound: too few requests had to wait to rule out "
            f"more, and nothing is known beyond {found.validity[1]:.3g} requests/s; raise --max-rate or "
            "--max-seconds if you may"
        )
    texts += station.servers.at_limit
    if abs(station.drift) > TOLERATED_DRIFT:
        texts.append(
            f"service times change by {station.drift:+.0%} from the lowest to the highest load: the target "
            "is no station of constant speed; its model holds near the loads it was measured at"
        )
    if found.failed:
        texts.append(
            f"{found.failed}; the station is that of the loads before: look at the target, or raise "
            "--max-failures"
        )
    elif not compared:
        texts.append("no time was left to validate the model; raise --max-seconds")
    elif verdict(compared) is None:
        texts.append(
            "cannot tell whether the model holds near saturation: the mean response time of the highest load "
            "that was held back varies too much by chance alone; raise --max-seconds"
        )
    return texts


def _save(found: Experiment, document: dict[str, Any], name: str, output: str) -> None:
    from datetime import UTC, datetime

    from analyzer.blackbox.station_model import station_model
    from mup.lqn import save_model

    provenance = {
        "method": "mup identify",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "identified": {key: value for key, value in document.items() if key != "distribution"},
    }
    save_model(station_model(found.station, found.validity[1] / 2, name=name, provenance=provenance), output)


def _show(
    found: Experiment, compared: tuple[Comparison, ...], judged: Verdict | None, document: dict[str, Any]
) -> None:
    from mup.cli.options import shown
    from mup.cli.output.display import console, say
    from mup.cli.output.tables import print_table

    out, station = console(), found.station
    headings = [
        "requests/s",
        "requests",
        "response ms",
        "p95 ms",
        "service ms",
        "cv",
        "waited",
        "load",
        "cpu",
    ]
    rows = [
        [
            f"{step.rate:.1f}",
            str(step.requests),
            f"{1e3 * step.response_time:.1f}",
            f"{1e3 * step.p95:.1f}",
            f"{1e3 * step.service_time:.2f}",
            f"{step.cv:.2f}",
            f"{step.waited:.0%}",
            f"{step.load:.2f}",
            "-" if step.utilization is None else f"{step.utilization:.0%}",
        ]
        for step in station.steps
    ]
    print_table(out, "", headings, rows, texts=0)
    least = "" if station.servers.bounded else "at least "
    say(
        out,
        f"servers: {least}{station.servers.count}; service time {1e3 * station.distribution.mean:.2f} +- "
        f"{1e3 * station.half_width:.2f} ms, cv {station.distribution.scv**0.5:.2f}; "
        f"latency outside of them {1e3 * station.servers.latency:.2f} ms; "
        f"capacity {station.capacity:.3g} requests/s",
    )
    say(out, f"distribution: {station.family.reason}")
    if judged is not None:
        say(out, f"structure: {judged.text}")
    low, high = found.validity
    say(out, f"seen from {low:.3g} to {high:.3g} requests/s; {found.ended}")
    for each in compared:
        verdict = "DOES NOT HOLD" if not each.holds else "holds" if each.tells else "cannot tell"
        say(
            out,
            f"held back: {each.rate:.3g} requests/s, response time {1e3 * each.measured:.1f} ms, "
            f"predicted {1e3 * each.predicted:.1f} "
            f"({1e3 * each.interval[0]:.1f} to {1e3 * each.interval[1]:.1f}): {verdict}",
        )
    if "model" in document:
        say(out, f"model: {shown(document['model'])}")
    for warning in document["warnings"]:
        click.echo(f"mup: warning: {warning}", err=True)
