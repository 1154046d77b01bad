"""Values of the options of ``mup fit``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.fitting.fit import Wanted
    from analyzer.fitting.forward import Settings

__all__ = ["settings", "wanted"]


def wanted(estimate: Iterable[str], bounds: Iterable[str], expert: Iterable[str]) -> list[Wanted]:
    """Return the parameters to fit, in the order given; those with an expert's interval are among them.

    Raises:
        UsageError: A text is spelt wrongly, or bounds are for a parameter that is not fitted.
    """
    from analyzer.fitting.fit import Wanted
    from analyzer.fitting.parameters import parameter
    from analyzer.fitting.regression import Expert

    found: dict[str, Wanted] = {}
    for text in estimate:
        for part in text.split(","):
            path, start = _assigned(part.strip())
            if path in found:
                raise UsageError(f"--estimate: {path!r} is given twice")
            found[path] = Wanted(parameter(path), None if not start else _number("--estimate", part, start))
    for text in expert:
        path, interval = _assigned(text)
        numbers = [_number("--expert", text, n) for n in interval.split("..")]
        if len(numbers) != 3 or not numbers[0] < numbers[1] < numbers[2]:
            raise UsageError(
                f"--expert: must be PATH=LOW..LIKELY..HIGH with three ascending numbers, got {text!r}",
                hint="for example --expert demand.B/epB/=0.01..0.02..0.05",
            )
        known = found.get(path, Wanted(parameter(path)))
        found[path] = replace(known, expert=Expert(*numbers))
    for text in bounds:
        path, interval = _assigned(text)
        if path not in found:
            raise UsageError(f"--bounds: {path!r} is not fitted", hint=f"add --estimate {path}")
        low, dots, high = interval.partition("..")
        own = found[path].parameter
        least = _number("--bounds", text, low) if low else own.low
        most = _number("--bounds", text, high) if high else own.high
        if not dots or not own.low <= least < most <= own.high:
            raise UsageError(
                f"--bounds: must be PATH=LOW..HIGH within {own.low:g} .. {own.high:g}, got {text!r}",
                hint="for example --bounds demand.B/epB/=0.01..0.05",
            )
        found[path] = replace(found[path], parameter=replace(own, low=least, high=most))
    if not found:
        raise UsageError("nothing to fit", hint="for example --estimate demand.B/epB/,think")
    return list(found.values())


def settings(text: str, option: str) -> Settings:
    """Return the configuration ``PATH=VALUE,PATH=VALUE`` stands for.

    Raises:
        UsageError: It is spelt wrongly.
    """
    from analyzer.fitting.data import settings_of

    values = {}
    for part in text.split(","):
        path, value = _assigned(part.strip())
        if not value:
            raise UsageError(
                f"{option}: must be PATH=VALUE[,PATH=VALUE..], got {text!r}", hint="for example clients=50"
            )
        values[path] = _number(option, part, value)
    return settings_of(values)


def _assigned(text: str) -> tuple[str, str]:
    """Return what is left and right of the last ``=``; names may contain others."""
    path, equals, value = text.rpartition("=")
    return (path, value) if equals else (text, "")


def _number(option: str, text: str, part: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{option}: {part!r} is no number, in {text!r}")
    return number
