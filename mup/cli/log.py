"""``mup log FILE...``: what is in event logs; as JSON lines or spans for other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import option

if TYPE_CHECKING:
    from mup.events.reader import LogStream

_LINES_AT_ONCE = 512


@click.command(name="log")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("--jsonl")
@option("--otlp")
@option("--json")
def command(paths: tuple[Path, ...], *, jsonl: bool, otlp: bool, as_json: bool) -> int:
    """Summarise event logs, or convert them for other tools.

    FILE is a log, or a folder: all logs in it. The segments of a process are read as one log. Logs of any
    size are read in constant memory.
    """
    from mup.errors import UsageError
    from mup.events.convert import json_records, otlp_spans

    if jsonl + otlp + as_json > 1:
        raise UsageError("--jsonl, --otlp and --json exclude each other")
    streams = _streams(paths)
    if jsonl:
        for stream in streams:
            _print_lines(json_records(stream))
    elif otlp:
        for stream in streams:
            _print_lines(_documents(stream, otlp_spans(stream)))
    else:
        logs = [_summary(stream) for stream in streams]
        click.echo(json.dumps({"logs": logs}, indent=1) if as_json else _table(logs))
    for stream in streams:
        if stream.truncated:
            click.echo(f"mup: {stream.path} is cut off: its process was killed; the rest is here", err=True)
        if stream.missing:
            click.echo(
                f"mup: {stream.path} was off for a while: {stream.missing} records are missing", err=True
            )
    return 0


def _streams(paths: tuple[Path, ...]) -> list[LogStream]:
    from mup.errors import LogError
    from mup.events.reader import LogStream, log_files

    streams: list[LogStream] = []
    for path in paths:
        if path.is_dir():
            found = log_files(path)
            if not found:
                raise LogError("no event logs in this folder", where=str(path))
            streams += [LogStream(segments) for segments in found]
        else:
            streams.append(LogStream(path))
    return streams


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


def _summary(stream: LogStream) -> dict[str, Any]:
    from collections import Counter

    import numpy as np

    from mup.events.record import LEFT_BECAUSE, Event

    records, first, last = 0, 0, 0
    counts: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for batch in stream:
        first = first or int(batch["time"][0])
        last = int(batch["time"][-1])
        records += len(batch)
        ends = Event.ARRIVE if stream.header.get("role") == "front" else Event.DONE
        names, numbers = np.unique(batch["name"][batch["event"] == ends], return_counts=True)
        for name, number in zip(names.tolist(), numbers.tolist(), strict=True):
            counts[stream.names.get(name, "")] += number
        for record in batch[batch["event"] == Event.LEFT]:
            counts[stream.names.get(int(record["name"]), "")] -= 1
            left[LEFT_BECAUSE[int(record["seq"]) - 1]] += 1
    return {
        "file": str(stream.path),
        **{key: stream.header.get(key) for key in ("role", "service", "replica", "worker", "pid")},
        "sample": stream.header.get("sample", 1),
        "records": records,
        "seconds": (last - first) / 1e9,
        "executions": dict(sorted(counts.items())),
        "left": dict(sorted(left.items())),
        "truncated": stream.truncated,
        "missing": stream.missing,
    }


def _table(logs: list[dict[str, Any]]) -> str:
    lines = []
    for log in logs:
        sample = f", 1 in {log['sample']} logged" if log["sample"] > 1 else ""
        lines.append(f"{log['file']}: {log['records']} records in {log['seconds']:.1f} s{sample}")
        lines += [f"  {number:9d}  {name}" for name, number in log["executions"].items()]
        lines += [f"  {number:9d}  had no worker: {why}" for why, number in log["left"].items()]
    return "\n".join(lines)
