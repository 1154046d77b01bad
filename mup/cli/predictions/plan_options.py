"""What do the options of ``mup plan`` ask for? Objectives, what may be varied, and prices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from mup.cli.measurements.question_options import CHANGE
from mup.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from mup.lqn.model import Model
    from simulator.studies.planning.prices import Prices
    from simulator.studies.planning.slo import Slo
    from simulator.studies.whatif import Axis, Change

__all__ = ["loads", "objectives", "prices", "varied"]

OBJECTIVE = re.compile(
    r"(?:(?P<name>.+):)?\s*(?P<figure>[A-Za-z0-9]+)\s*(?P<sign><=|>=|<|>|=)\s*(?P<limit>[^<>=]*)"
)
"""Names may contain colons and signs; the last sign ends what it is about, figures have no colon."""
LIMIT = re.compile(r"(?P<number>[0-9.eE+-]+)\s*(?P<unit>\D*)")
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
RATES = {"": 1.0, "/s": 1.0, "/min": 1 / 60}
SHARES = {"": 1.0, "%": 0.01}
MOST_VALUES = 1000
"""Values of one axis: more is a slip of the pen."""
SPAN = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+)\s*")


def objectives(model: Model, texts: Iterable[str]) -> list[Slo]:
    """Return what ``--slo`` asks for.

    Raises:
        UsageError: A text is spelt wrongly, or the model has no such thing.
    """
    from simulator.studies.planning.slo import objective

    found = []
    for text in texts:
        match = OBJECTIVE.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"--slo: must be [NAME:]FIGURE<=LIMIT, got {text!r}",
                hint="for example --slo 'p95<=200ms' or --slo 'A/epA/:mean<=50ms'",
            )
        name, figure, sign, limit = (
            match["name"] or "",
            match["figure"].lower(),
            match["sign"],
            match["limit"],
        )
        wanted = ">=" if figure == "throughput" else "<="
        if sign not in (wanted, wanted[0]):
            why = "a throughput has a lower limit" if wanted == ">=" else "it has an upper limit"
            raise UsageError(f"--slo: {text!r}: {why}", hint=f"write {figure}{wanted}{limit.strip()}")
        found.append(objective(model, figure, name.strip(), _limit(text, figure, limit)))
    if len(set(found)) < len(found):
        raise UsageError("--slo: an objective is given twice")
    return found


def _limit(text: str, figure: str, limit: str) -> float:
    """Return a limit in seconds, per second, or as a fraction."""
    units = {"throughput": RATES, "utilization": SHARES}.get(figure, TIMES)
    example = {"throughput": "50/s", "utilization": "80%"}.get(figure, "200ms")
    match = LIMIT.fullmatch(limit.strip())
    number = math.nan
    if match is not None:
        try:
            number = float(match["number"])
        except ValueError:
            match = None
    if match is None:
        raise UsageError(f"--slo: {text!r}: {limit.strip()!r} is no limit", hint=f"for example {example}")
    unit = match["unit"].strip()
    if unit not in units:
        known = ", ".join(u for u in units if u)
        what = f"no unit {unit!r}" if unit else "the unit is missing"
        raise UsageError(f"--slo: {text!r}: {what}; known: {known}", hint=f"for example {example}")
    return number * units[unit]


def varied(model: Model, texts: Iterable[str]) -> list[Axis]:
    """Return the axes that ``--vary`` asks for.

    Args:
        model: What is to be deployed.
        texts: Each one or several of ``KIND:NAME=VALUES``, separated by spaces; values are a range or a list,
            and ``*`` in a name stands for anything.

    Raises:
        UsageError: A text is spelt wrongly, or the model has nothing of the name.
    """
    found: list[Axis] = []
    for word in (word for text in texts for word in text.split()):
        found += _axes(model, word)
    return found


def _axes(model: Model, word: str) -> list[Axis]:
    from simulator.studies.planning.space import KINDS
    from simulator.studies.whatif import Change

    match = CHANGE.fullmatch(word)
    kind, name, values = match.groups() if match is not None else (word, None, "")
    if kind not in KINDS or not name:
        known = did_you_mean(kind, KINDS) if kind not in KINDS else "the name is missing"
        raise UsageError(
            f"--vary: must be KIND:NAME=LOW..HIGH, got {word!r}; {known}",
            hint="for example --vary 'pool:*=1..16' or --vary replicas:B=1,2,4",
        )
    numbers = _numbers(word, values)
    names = [name] if "*" not in name else _fitting(model, kind, name, word)
    return [tuple(Change(kind, each, number) for number in numbers) for each in names]


def _fitting(model: Model, kind: str, pattern: str, word: str) -> list[str]:
    """Return the names that a pattern stands for: of pools and replicas, those of services."""
    if kind == "cores":
        names = [p.name for p in model.processors if p.parent is None and p.cores < math.inf]
    else:
        services = [t for t in model.tasks if t.role == "service"]
        names = [t.name for t in services if kind == "replicas" or t.threads < math.inf]
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise UsageError(f"--vary: {word!r}: nothing fits {pattern!r}; known: {', '.join(names) or 'none'}")
    return found


def _numbers(word: str, text: str) -> list[int]:
    """Return ascending whole numbers: ``1..8``, ``1,2,4``, or both."""
    found: set[int] = set()
    for part in text.split(","):
        span = SPAN.fullmatch(part)
        low, high = (span[1], span[2]) if span is not None else (part.strip(), part.strip())
        if not (low.isdigit() and high.isdigit()) or not 1 <= int(low) <= int(high):
            raise UsageError(
                f"--vary: {word!r}: must be whole numbers >= 1, LOW..HIGH or N,N,.., got {part!r}",
                hint="for example 1..8 or 1,2,4,8",
            )
        if int(high) - int(low) >= MOST_VALUES:
            raise UsageError(f"--vary: {word!r}: at most {MOST_VALUES} values are compared")
        found |= set(range(int(low), int(high) + 1))
    return sorted(found)


def prices(path: str | None, model: Model) -> Prices:
    """Return the prices of a TOML file; without one the usual weights.

    Raises:
        UsageError: The file cannot be read, or a price in it is wrong; the message names the field.
    """
    import tomllib

    from simulator.studies.planning.prices import DEFAULT, prices_from

    if path is None:
        return DEFAULT
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read the prices: {reason}", where=path) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"no TOML: {error}", where=path, hint="for example core = 40.0") from None
    try:
        found = prices_from(data)
        found.check(model)
    except UsageError as error:
        error.where = path
        raise
    return found


def loads(axes: Iterable[Axis]) -> list[Change]:
    """Return the changes of the load, of which each has one value.

    Raises:
        UsageError: One has several.
    """
    found = []
    for axis in axes:
        if len(axis) > 1:
            kind = axis[0].kind
            raise UsageError(
                f"--{kind}: a plan is for one load, got {len(axis)} values",
                hint="name the largest one; 'mup whatif' compares several",
            )
        found.append(axis[0])
    return found
