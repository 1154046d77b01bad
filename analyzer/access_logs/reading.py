"""Read an access log of any size: in blocks of lines, whose columns become numbers at once.

Of a request about 24 bytes stay: begin, end, class. Lines that are no requests are counted by reason and left
out: a log has requests that were aborted before they were complete, and attacks that are not HTTP.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from analyzer.access_logs.formats import COMMON, UNITS, Layout, Piece, Wanted, layout_of, recognised
from analyzer.access_logs.json_lines import Fields, fields_of
from analyzer.access_logs.moments import FloatArray, Moments, numbers
from analyzer.access_logs.requests import Codes, Labels, Requests, Skipped
from analyzer.access_logs.targets import Targets
from mup.errors import UsageError

__all__ = ["Source", "first_lines", "is_access_log", "read_requests"]

BLOCK = 1 << 21
"""Bytes read at a time."""
LONGEST = 1 << 24
"""A longer line is none: the file is no text."""
FIRST = 20
"""Lines the format is recognised by."""
Array = TypeVar("Array", FloatArray, Codes)
LABELS = ("station", "trace", "client")
MOST_BAD = 0.5
"""From this part of the lines on, those that cannot be read mean that the format is another one."""

NO_LINE = "not in the format"
NO_MOMENT = "no moment"
NO_DURATION = "no duration: aborted, or not answered by this server"
SEVERAL = "answered by several servers, one after another"


@dataclass(frozen=True)
class Source:
    """What the user says about a log.

    Attributes:
        log_format: A format; "" = recognise it.
        fields: Where roles are found.
        groups: Classes by name, as regular expressions.
    """

    log_format: str = ""
    fields: Mapping[str, Wanted] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


def first_lines(path: Path) -> list[bytes]:
    """Return some lines at the beginning that are not empty.

    Raises:
        UsageError: The file cannot be read.
    """
    with _opened(path) as stream:
        head = _checked_read(stream, BLOCK // 8, path)
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [line for line in lines if line.strip()][:FIRST]


def is_access_log(lines: Sequence[bytes]) -> bool:
    """Return whether a file with these first lines is an access log, of whatever format."""
    return bool(
        recognised(lines) is not None
        or any(COMMON.match(line) for line in lines)
        or any(_object(line) is not None for line in lines[:1])
    )


def read_requests(path: Path, source: Source) -> Requests:
    """Read an access log; one that ends in ``.gz`` is decompressed.

    Args:
        path: The file.
        source: What is known about it.

    Raises:
        UsageError: The format is unknown, or hardly a line has it, or there is no request.
    """
    lines = first_lines(path)
    if not lines:
        raise UsageError("is empty", where=str(path))
    form = _form_of(lines, source, path)
    reader = _Reader(path, form, source.groups)
    with _opened(path) as stream:
        for block in _blocks(stream, path):
            reader.add(block)
    return reader.requests()


def _form_of(lines: Sequence[bytes], source: Source, path: Path) -> Layout | Fields:
    document = _object(lines[0])
    if source.log_format and source.log_format != "json":
        return layout_of(source.log_format, source.fields)
    if document is not None:
        try:
            return fields_of(document, source.fields)
        except UsageError as error:
            raise UsageError(error.message, where=str(path), hint=error.hint) from error
    if source.log_format == "json":
        raise UsageError(f"the first line is no JSON object: {_shown(lines[0])}", where=str(path))
    found = recognised(lines)
    if found is not None:
        if source.fields:
            raise UsageError(
                f"--field: the lines have the format {found.name}, which says itself what is where",
                where=str(path),
                hint="write out the format with --log-format",
            )
        return found
    if any(COMMON.match(line) for line in lines):
        raise UsageError(
            "the common log format has whole seconds and no durations, which says too little",
            where=str(path),
            hint="log moments with fractions and durations: for nginx log_format demand "
            "'$msec $request_time $request_method $uri $status'; for Apache LogFormat "
            '"%{end:sec}t.%{end:usec_frac}t %D %m %U %>s" demand. If durations are there already, name the '
            "format with --log-format",
        )
    raise UsageError(
        f"not an access log of a known format; it begins with {_shown(lines[0])}",
        where=str(path),
        hint="say --log-format, in the words of the server's configuration",
    )


def _object(line: bytes) -> dict[str, object] | None:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _shown(line: bytes) -> str:
    return repr(line[:80].decode("utf-8", "replace"))


def _opened(path: Path) -> gzip.GzipFile | IO[bytes]:
    try:
        # A context manager of the caller closes it.
        return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error


def _checked_read(stream: gzip.GzipFile | IO[bytes], size: int, path: Path) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot read it: {error}", where=str(path)) from error


def _blocks(stream: gzip.GzipFile | IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield whole lines, many at a time."""
    rest = b""
    first = True
    while chunk := _checked_read(stream, BLOCK, path):
        text = rest + (chunk.removeprefix(b"\xef\xbb\xbf") if first else chunk)
        first = False
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if len(rest) > LONGEST:
            raise UsageError(f"has no end of a line for {LONGEST} bytes: it is no text", where=str(path))
        if cut:
            yield text[:cut]
    if rest:
        yield rest


class _Reader:
    """Takes blocks of lines, and keeps what requests they tell of."""

    def __init__(self, path: Path, form: Layout | Fields, groups: Mapping[str, str]) -> None:
        self._path = path
        self._form = form
        self._pieces = form.pieces
        self._moments = {
            i: Moments(piece.form)
            for i, piece in enumerate(self._pieces)
            if piece.role in ("start", "end") or piece.role.endswith("_fraction")
        }
        self._targets = Targets(groups)
        self._labels = {p.role: _Names() for p in self._pieces if p.role in LABELS}
        self._begin: list[FloatArray] = []
        self._end: list[FloatArray] = []
        self._codes: dict[str, list[Codes]] = {name: [] for name in ("class", *self._labels)}
        self._origin: float | None = None
        self._lines = 0
        self._skipped: Counter[str] = Counter()
        self._example = ""

    def add(self, block: bytes) -> None:
        """Take some lines."""
        before = self._lines
        if isinstance(self._form, Fields):
            lines = block.splitlines()
            self._lines += sum(1 for line in lines if line.strip())
            columns, bad = self._form.columns(lines)
            self._note_bad(bad, lines, before)
            self._take([list(column) for column in columns])
            return
        rows = self._form.pattern.findall(block)
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if len(rows) != count:
            lines = block.split(b"\n")
            count = sum(1 for line in lines if line.strip())
            if len(rows) != count:
                match = self._form.pattern.match
                bad = [i for i, line in enumerate(lines) if line.strip() and not match(line)]
                self._note_bad(bad, lines, before)
        self._lines += count
        self._take([list(column) for column in zip(*rows, strict=True)])

    def _note_bad(self, bad: Sequence[int], lines: Sequence[bytes], before: int) -> None:
        if bad:
            self._skipped[NO_LINE] += len(bad)
            if not self._example:
                self._example = f"line {before + bad[0] + 1}: {_shown(lines[bad[0]])}"

    def _take(self, columns: Sequence[Sequence[bytes | str]]) -> None:
        if not columns or not columns[0]:
            return
        begin, end = self._times(columns)
        good = np.isfinite(begin) & np.isfinite(end)
        self._begin.append(begin[good])
        self._end.append(end[good])
        chosen = None if good.all() else np.flatnonzero(good).tolist()
        self._codes["class"].append(self._targets.numbers(_chosen(self._what(columns), chosen)))
        for role, names in self._labels.items():
            column = next(c for p, c in zip(self._pieces, columns, strict=True) if p.role == role)
            self._codes[role].append(names.numbers(_chosen(column, chosen)))

    def _times(self, columns: Sequence[Sequence[bytes | str]]) -> tuple[FloatArray, FloatArray]:
        """Return begin and end in seconds since the origin; NaN where a line tells none, which is counted."""
        sums: dict[str, FloatArray] = {}
        several = np.zeros(len(columns[0]), dtype=bool)
        for i, (piece, column) in enumerate(zip(self._pieces, columns, strict=True)):
            if i in self._moments:
                found = self._moments[i].seconds(column)
                if piece.role in ("start", "end"):
                    # Small numbers keep the digits behind the point.
                    found = found - self._zero(found)
                role = piece.role.removesuffix("_fraction")
            elif piece.role in ("duration", "before", "after"):
                found, many = _spans(column, piece)
                several |= many
                role = piece.role
            else:
                continue
            sums[role] = sums[role] + found if role in sums else found
        duration = sums.get("duration")
        if "end" in sums:
            end = sums["end"] - sums.get("after", 0.0)
            begin = sums["start"] if duration is None else end - duration
        else:
            begin = sums["start"] + sums.get("before", 0.0)
            end = begin + duration if duration is not None else np.full(len(begin), np.nan)
        moment = np.isfinite(sums["end" if "end" in sums else "start"])
        timed = np.isfinite(begin) & np.isfinite(end) & (end >= begin)
        for reason, wrong in (
            (NO_MOMENT, ~moment),
            (SEVERAL, moment & several),
            (NO_DURATION, moment & ~several & ~timed),
        ):
            if count := int(np.count_nonzero(wrong)):
                self._skipped[reason] += count
        good = moment & timed & ~several
        return np.where(good, begin, np.nan), np.where(good, end, np.nan)

    def _zero(self, moments: FloatArray) -> float:
        if self._origin is None:
            known = moments[np.isfinite(moments)]
            if not len(known):
                return 0.0
            self._origin = float(np.floor(known[0]))
        return self._origin

    def _what(self, columns: Sequence[Sequence[bytes | str]]) -> Sequence[bytes | str]:
        roles = {piece.role: column for piece, column in zip(self._pieces, columns, strict=True)}
        if "what" in roles:
            return roles["what"]
        if "method" not in roles:
            return roles["uri"]
        pairs = zip(roles["method"], roles["uri"], strict=True)
        return [_text(method) + " " + _text(uri) for method, uri in pairs]

    def requests(self) -> Requests:
        """Return all requests.

        Raises:
            UsageError: There is none, or most lines are of another format.
        """
        skipped = Skipped(dict(self._skipped), self._example)
        if skipped.counts.get(NO_LINE, 0) > MOST_BAD * self._lines:
            raise UsageError(
                f"{skipped.counts[NO_LINE]} of {self._lines} lines are not in the format; {skipped.example}",
                where=str(self._path),
                hint="say --log-format as the server's configuration has it",
            )
        if not any(map(len, self._begin)):
            why = ", ".join(f"{count}: {reason}" for reason, count in skipped.counts.items())
            raise UsageError(f"has no requests in {self._lines} lines ({why})", where=str(self._path))
        begin, end = _joined(self._begin), _joined(self._end)
        names, place = self._targets.names()
        kind = place[_joined(self._codes["class"])]
        labels = {
            role: Labels(tuple(known.names), _joined(self._codes[role]))
            for role, known in self._labels.items()
        }
        return Requests(
            where=str(self._path),
            layout=self._form.name if isinstance(self._form, Layout) else "JSON",
            begin=begin,
            end=end,
            origin=self._origin or 0.0,
            classes=Labels(tuple(names), kind),
            labels=labels,
            fractions=any(moments.fractions for moments in self._moments.values()),
            lines=self._lines,
            skipped=skipped,
        )


class _Names:
    """Numbers texts as they come."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._known: dict[bytes | str, int] = {}

    def numbers(self, column: Sequence[bytes | str]) -> Codes:
        known = self._known
        for text in column:
            if text not in known:
                known[text] = len(self.names)
                self.names.append(_text(text))
        return np.fromiter(map(known.__getitem__, column), np.int32, len(column))


def _spans(column: Sequence[bytes | str], piece: Piece) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return durations in seconds, NaN where there is none, and which are those of several servers."""
    several = np.zeros(len(column), dtype=bool)
    if piece.form == "seconds_or_us":
        found = numbers(column)
        whole = np.fromiter(("." not in _text(text) for text in column), bool, len(column))
        return np.where(whole, found * UNITS["us"], found), several
    found = numbers(column) * UNITS[piece.form]
    for i in np.flatnonzero(~np.isfinite(found)).tolist():
        several[i] = re.search(r"\d[,: ]+\d", _text(column[i])) is not None
    # Minus one is how proxies say that there was no such time.
    return np.where(found < 0, np.nan, found), several


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _chosen(column: Sequence[bytes | str], rows: Iterable[int] | None) -> Sequence[bytes | str]:
    return column if rows is None else [column[i] for i in rows]


def _joined(parts: list[Array]) -> Array:
    """Return the parts in one piece, and forget them."""
    joined: Array = np.concatenate(parts)
    parts.clear()
    return joined
