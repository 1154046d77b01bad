"""``mup log FILE...``: what is in event logs; as JSON lines or spans for other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option
from mup.errors import LogError

if TYPE_CHECKING:
    from mup.events.endpoint_figures import Figures
    from mup.events.reader import LogStream

_LINES_AT_ONCE = 512


@click.command(name="log", epilog=examples("mup log shop/.mup/runs", "mup log log --jsonl"))
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("--details", help="Also print what is in every file.")
@option("--jsonl")
@option("--otlp")
@option("--json")
def command(paths: tuple[Path, ...], *, details: bool, jsonl: bool, otlp: bool, as_json: bool) -> int:
    """Summarise event logs per endpoint, or convert them for other tools.

    FILE is a log, or a folder with logs; the segments of a process are read as one log.

    Times are from the moment a worker begins until the reply, and of whole cycles of clients. Exit code 1:
    some logs could not be read; 2: none could.
    """
    from mup.errors import UsageError
    from mup.events.convert import json_records, otlp_spans

    if jsonl + otlp + as_json + details > 1:
        raise UsageError("--details, --jsonl, --otlp and --json exclude each other")
    streams, unreadable = _streams(paths)
    found: list[dict[str, Any]] = []
    parts: list[dict[str, Figures]] = []
    for stream in streams:
        try:
            if jsonl:
                _print_lines(json_records(stream))
            elif otlp:
                _print_lines(_documents(stream, otlp_spans(stream)))
            else:
                about, figures = _summary(stream)
                found.append(about)
                parts.append(figures)
        except LogError as error:
            unreadable.append((stream.path, error))
    if unreadable and not (found or jsonl or otlp):
        raise unreadable[0][1]
    if as_json:
        document = {
            "logs": found,
            "endpoints": _endpoints(found, parts),
            "unreadable": [{"file": str(path), "message": str(error)} for path, error in unreadable],
        }
        click.echo(json.dumps(document, indent=1))
    elif found:
        _show(found, _endpoints(found, parts), details=details)
    for stream in streams:
        if stream.truncated:
            click.echo(f"mup: {stream.path} is cut off: its process was killed; the rest is here", err=True)
        if stream.missing:
            click.echo(
                f"mup: {stream.path} was off for a while: {stream.missing} records are missing", err=True
            )
    for path, reason in unreadable:
        click.echo(f"mup: {path} is left out: {reason.message}", err=True)
    if unreadable:
        number = len(streams) + len([path for path, _ in unreadable if path not in _paths(streams)])
        click.echo(f"mup: {len(unreadable)} of {number} logs could not be read", err=True)
    return 1 if unreadable else 0


def _paths(streams: list[LogStream]) -> set[Path]:
    return {stream.path for stream in streams}


def _streams(paths: tuple[Path, ...]) -> tuple[list[LogStream], list[tuple[Path, LogError]]]:
    """Return the logs that begin as one, and the others with the reason.

    Raises:
        LogError: There is none.
    """
    from mup.events.reader import LogStream, log_files

    streams: list[LogStream] = []
    unreadable: list[tuple[Path, LogError]] = []
    for path in paths:
        found: list[list[Path]] = [[path]]
        if path.is_dir():
            found = log_files(path)
            if not found:
                raise LogError("no event logs in this folder", where=str(path))
        for segments in found:
            try:
                streams.append(LogStream(segments))
            except LogError as error:
                unreadable.append((segments[0], error))
    if not streams:
        raise unreadable[0][1]
    return streams, unreadable


def _print_lines(objects: Any) -> None:
    import msgspec

    encode = msgspec.json.encode
    lines: list[bytes] = []
    out = sys.stdout.buffer
    for item in objects:
        lines.append(encode(item))
        if len(lines) == _LINES_AT_ONCE:
            out.write(b"\n".join(lines) + b"\n")
            lines.clear()
    if lines:
        out.write(b"\n".join(lines) + b"\n")
    out.flush()


def _documents(stream: LogStream, spans: Any) -> Any:
    """Yield spans in OTLP's envelopes, so that each line is a whole export request."""
    from itertools import islice

    header = stream.header
    who = {"service.name": header.get("service", ""), "process.pid": header.get("pid", 0)}
    who["service.instance.id"] = f"{header.get('service', '')}.{header.get('replica', 0)}"
    attributes = [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in who.items()
    ]
    while some := list(islice(spans, _LINES_AT_ONCE)):
        scope = {"scope": {"name": "mup"}, "spans": some}
        yield {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [scope]}]}


def _summary(stream: LogStream) -> tuple[dict[str, Any], dict[str, Figures]]:
    """Return what a log holds, and the figures of its endpoints."""
    from collections import Counter

    import numpy as np

    from mup.events.endpoint_figures import FileFigures
    from mup.events.record import LEFT_BECAUSE, Event

    records, first, last = 0, 0, 0
    counts: Counter[str] = Counter()
    left: Counter[str] = Counter()
    figures = FileFigures()
    for batch in stream:
        first = first or int(batch["time"][0])
        last = int(batch["time"][-1])
        records += len(batch)
        figures.add(batch)
        ends = Event.ARRIVE if stream.header.get("role") == "front" else Event.DONE
        names, numbers = np.unique(batch["name"][batch["event"] == ends], return_counts=True)
        for name, number in zip(names.tolist(), numbers.tolist(), strict=True):
            counts[stream.names.get(name, "")] += number
        for record in batch[batch["event"] == Event.LEFT]:
            counts[stream.names.get(int(record["name"]), "")] -= 1
            left[LEFT_BECAUSE[int(record["seq"]) - 1]] += 1
    about = {
        "file": str(stream.path),
        **{key: stream.header.get(key) for key in ("role", "service", "replica", "worker", "pid")},
        "sample": stream.header.get("sample", 1),
        "records": records,
        "seconds": (last - first) / 1e9,
        "first_ns": first,
        "last_ns": last,
        "executions": dict(sorted(counts.items())),
        "left": dict(sorted(left.items())),
        "truncated": stream.truncated,
        "missing": stream.missing,
    }
    return about, {stream.names.get(name, ""): each for name, each in figures.by_name.items()}


def _endpoints(logs: list[dict[str, Any]], parts: list[dict[str, Figures]]) -> dict[str, dict[str, Any]]:
    """Return the figures of every endpoint over all logs; times in seconds."""
    from mup.events.endpoint_figures import merged

    filled = [log for log in logs if log["records"]]
    span = (
        (max(log["last_ns"] for log in filled) - min(log["first_ns"] for log in filled)) / 1e9
        if filled
        else 0
    )
    sample = max((log["sample"] for log in filled), default=1)
    return {
        name: {
            "count": found.count,
            "mean": found.mean,
            "p95": found.percentile(0.95),
            "failed": found.failed,
            "per_second": sample * found.count / span if span else None,
            "arrived": found.arrived,
            "queued": found.queued,
        }
        for name, found in merged(parts).items()
    }


def _show(logs: list[dict[str, Any]], endpoints: dict[str, dict[str, Any]], *, details: bool) -> None:
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import plain
    from mup.cli.output.tables import print_table

    out = console()
    rows = []
    for name, found in endpoints.items():
        count, arrived = found["count"], found["arrived"]
        rows.append(
            [
                name,
                str(count),
                *("-" if found[key] is None else plain(1e3 * found[key]) for key in ("mean", "p95")),
                f"{found['failed'] / count:.1%}" if count else "-",
                "-" if found["per_second"] is None or not count else plain(found["per_second"]),
                f"{found['queued'] / arrived:.0%}" if arrived else "-",
            ]
        )
    headings = ["endpoint", "executions", "mean ms", "p95 ms", "failed", "per second", "queued"]
    print_table(out, "", headings, rows, spare=("queued",))
    filled = [log for log in logs if log["records"]]
    empty = len(logs) - len(filled)
    sample = max((log["sample"] for log in filled), default=1)
    records = sum(log["records"] for log in filled)
    say(
        out,
        f"{records} records in {len(filled)} log{'s' if len(filled) != 1 else ''}"
        + (f", {empty} more without any" if empty else "")
        + (
            f"; 1 in {sample} chains of requests is logged: per second is of all of them"
            if sample > 1
            else ""
        )
        + ". Times are from the begin of an execution to its reply; queued: requests that found no idle"
        " worker.",
    )
    left: dict[str, int] = {}
    for log in logs:
        for why, number in log["left"].items():
            left[why] = left.get(why, 0) + number
    for why, number in sorted(left.items()):
        say(out, f"{number} requests had no worker: {why}")
    if details:
        out.print()
        for log in filled:
            _show_file(log)


def _show_file(log: dict[str, Any]) -> None:
    sample = f", 1 in {log['sample']} logged" if log["sample"] > 1 else ""
    click.echo(f"{log['file']}: {log['records']} records in {log['seconds']:.1f} s{sample}")
    for name, number in log["executions"].items():
        click.echo(f"  {number:9d}  {name}")
    for why, number in log["left"].items():
        click.echo(f"  {number:9d}  had no worker: {why}")
