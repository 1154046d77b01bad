"""Ask a Prometheus server for values over a range of time.

One request per expression, ``GET /api/v1/query_range``, limited in time and size. A server is believed in
nothing: what is no answer of Prometheus ends in a message. Redirects are not followed, for a header that
names a user must not reach another host.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/ (range queries; formats of values).
"""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from mup.errors import UsageError

__all__ = ["MOST_POINTS", "Answer", "Range", "Series", "query_range"]

FloatArray = npt.NDArray[np.float64]

SECONDS: Final = 30.0
"""For one answer, from the first byte asked to the last one read."""
SILENCE: Final = 10.0
"""Without a byte of it."""
LARGEST: Final = 64 * 2**20
"""Bytes of an answer."""
MOST_POINTS: Final = 11_000
"""Moments of a series that a server answers."""
SHOWN: Final = 300
"""Characters of what a server says that a message repeats."""
CHUNK: Final = 2**16
JITTER: Final = 1e-3
"""Seconds that a moment may be off its step: servers count in milliseconds."""


@dataclass(frozen=True, slots=True)
class Range:
    """Moments to be asked for: ``start``, ``start + step``, ... up to ``end``.

    Attributes:
        start, end: Seconds since 1970.
        step: Seconds.

    Raises:
        UsageError: There are none, or more than a server answers.
    """

    start: float
    end: float
    step: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start < self.end):
            raise UsageError(
                f"--start must be before --end, got {self.start:.15g} and {self.end:.15g} s since 1970"
            )
        if not 0 < self.step < math.inf:
            raise UsageError(f"--step: must be a number of seconds > 0, got {self.step:g}")
        if self.count < 2:
            raise UsageError(
                f"--step: {self.step:g} s is as long as the whole range: there is one moment in it"
            )
        if self.count > MOST_POINTS:
            raise UsageError(
                f"--step: {self.step:g} s makes {self.count} moments, and a server answers {MOST_POINTS}",
                hint=f"ask for less time, or with --step {math.ceil((self.end - self.start) / MOST_POINTS)}",
            )

    @property
    def count(self) -> int:
        """Number of moments."""
        return math.floor((self.end - self.start) / self.step + 1e-9) + 1

    @property
    def moments(self) -> FloatArray:
        """All of them, seconds since 1970."""
        return np.asarray(self.start + self.step * np.arange(self.count, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one set of labels.

    Attributes:
        labels: Without ``__name__``.
        values: At the moments of the range, NaN where there is none; shape (K,).
        there: Where the server has a value, which may be NaN; shape (K,).
    """

    labels: Mapping[str, str]
    values: FloatArray
    there: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says to one expression.

    Attributes:
        series: At least one.
        warnings: Of the server.
    """

    series: tuple[Series, ...]
    warnings: tuple[str, ...]


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Return nothing, which makes the answer an error."""


_OPENER: Final = urllib.request.build_opener(_Stay)


def query_range(
    url: str,
    expression: str,
    span: Range,
    *,
    headers: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    largest: int = LARGEST,
) -> Answer:
    """Ask for the values of an expression.

    Args:
        url: Of the server, such as ``http://127.0.0.1:9090``, with the path in front of ``/api`` if any.
        expression: In PromQL.
        span: When.
        headers: To send as well.
        seconds: The longest that an answer may take.
        largest: The most bytes it may have.

    Raises:
        UsageError: There is no such server, it refuses, or it knows nothing of the expression at that time.
    """
    words = {
        "query": expression,
        "start": f"{span.start:.3f}",
        "end": f"{span.end:.3f}",
        "step": f"{span.step:.15g}",
    }
    address = f"{url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(words)}"
    body = _body(url, address, expression, headers or {}, seconds, largest)
    return _answer(url, expression, span, body)


def _body(
    url: str, address: str, expression: str, headers: Mapping[str, str], seconds: float, largest: int
) -> bytes:
    request = urllib.request.Request(address, headers=dict(headers))  # noqa: S310 - always http
    until = time.monotonic() + seconds
    try:
        with _OPENER.open(request, timeout=min(SILENCE, seconds)) as answer:
            return _read(answer, url, until, seconds, largest)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(LARGEST if error.code in (400, 422) else SHOWN)
        raise _refused(url, expression, error.code, said) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(url, seconds) from error
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise UsageError(
            f"no Prometheus server answers: {reason}",
            where=url,
            hint="is it running, and is the URL its own?",
        ) from error
    except TimeoutError as error:
        raise _late(url, seconds) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"the answer of the server broke off: {error}", where=url) from error


def _read(answer: Any, url: str, until: float, seconds: float, largest: int) -> bytes:
    parts, size = [], 0
    while part := answer.read1(CHUNK):
        parts.append(part)
        size += len(part)
        if size > largest:
            raise UsageError(
                f"the answer is larger than {largest / 2**20:.3g} MiB",
                where=url,
                hint="sum up series in the expression, or ask for less time or a larger --step",
            )
        if time.monotonic() > until:
            raise _late(url, seconds)
    return b"".join(parts)


def _late(url: str, seconds: float) -> UsageError:
    return UsageError(
        f"no whole answer within {min(SILENCE, seconds):g} s of silence or {seconds:g} s in all",
        where=url,
        hint="ask for less time, a larger --step, or a simpler expression",
    )


def _refused(url: str, expression: str, code: int, said: bytes) -> UsageError:
    text = said.decode("utf-8", "replace").strip()
    try:
        document = json.loads(text)
        text = str(document["error"])
    except (ValueError, KeyError, TypeError):
        document = None
    text = " ".join(text.split())[:SHOWN]
    if code in (401, 403):
        return UsageError(
            f"the server wants to know who asks (HTTP {code})",
            where=url,
            hint="say it with --header 'Authorization:Bearer TOKEN' (or Basic ...)",
        )
    if code in (400, 422) and document is not None:
        return UsageError(f"the server refuses {expression!r}: {text}", where=url)
    if 300 <= code < 400:
        return UsageError(
            f"the server sends to another address (HTTP {code}), which is not followed",
            where=url,
            hint="give that URL, if you trust it",
        )
    if code == 404:
        return UsageError(
            "there is no API of Prometheus there (HTTP 404)",
            where=url,
            hint="give the URL in front of /api/v1, for example http://127.0.0.1:9090",
        )
    return UsageError(f"the server answers with HTTP {code}: {text or 'nothing'}", where=url)


def _answer(url: str, expression: str, span: Range, body: bytes) -> Answer:
    try:
        document = json.loads(body)
        data = document["data"]
        kind, result = data["resultType"], list(data["result"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(
            "what answers there is no Prometheus server",
            where=url,
            hint="give the URL in front of /api/v1, for example http://127.0.0.1:9090",
        ) from None
    if kind != "matrix":
        raise UsageError(f"the answer to {expression!r} is no series over time but a {kind}", where=url)
    if not result:
        raise UsageError(
            f"there is no series of {expression!r} in that time",
            where=url,
            hint="is every name in it right, and was anything measured then (--start, --end)?",
        )
    series = tuple(_series(url, expression, span, one) for one in result)
    warnings = document.get("warnings") or ()
    return Answer(series, tuple(str(w)[:SHOWN] for w in warnings))


def _series(url: str, expression: str, span: Range, one: Any) -> Series:
    try:
        labels = {str(k): str(v) for k, v in one["metric"].items() if k != "__name__"}
        if "values" not in one and "histograms" in one:
            raise UsageError(
                f"{expression!r} is a histogram, not a number",
                where=url,
                hint="take its mean: rate of the sum / rate of the count, or histogram_avg",
            )
        pairs = [(float(moment), float(value)) for moment, value in one["values"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(f"the answer to {expression!r} is not as Prometheus says it is", where=url) from None
    values, there = np.full(span.count, np.nan), np.zeros(span.count, dtype=bool)
    for moment, value in pairs:
        k = (moment - span.start) / span.step
        near = round(k) if math.isfinite(k) else -1
        if 0 <= near < span.count and abs(k - near) * span.step <= JITTER + 1e-6 * span.step:
            values[near], there[near] = value, True
    return Series(labels, values, there)
