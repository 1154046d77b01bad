"""Options of ``mup whatif``: lists of values become the axes of a grid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mup.errors import UsageError

if TYPE_CHECKING:
    import click
    from click.core import ParameterSource

    from simulator.studies.whatif import Axis

__all__ = ["axes", "check_engine"]

EXAMPLES = {
    "pool": "B=2,4",
    "admission": "B=fifo,random",
    "replicas": "B=1,2",
    "cores": "host=2,4",
    "speed": "host=1.5",
    "place": "B=host2",
    "probability": "A/epA/:cached=0.5,0.9",
    "calls": "A/epA/:ask->B/epB/=1,2",
    "fan-out": "A/epA/:fetch=geometric(3)",
    "demand": "A/epA/=0.5x",
}
"""For the hints of kinds that need a name."""
LOADS = ("clients", "arrivals")
"""Kinds that take a name only if there are several sources of load."""
TEXTS = {"place": "processor", "admission": "order"}
"""Kinds whose values are no numbers, and what they are."""
WHOLE = ("clients", "pool", "replicas", "cores")


ENGINES = ("compiled", "analytic", "fluid")
SIMULATED = {
    "precision": "--precision",
    "seed": "--seed",
    "difference": "--difference",
    "saturation": "--saturation",
    "interval": "--interval",
    "run_seconds": "--duration",
    "run_repeats": "--repeats",
    "machine_speed": "--machine-speed",
    "max_seconds": "--max-seconds",
    "workers": "--jobs",
    "dask": "--dask",
}
"""Options that are about simulations."""


def check_engine(engine: str) -> None:
    """Refuse an engine that does not exist, and options of the command line that mean nothing to it.

    Raises:
        UsageError: The option is named.
    """
    import click
    from click.core import ParameterSource

    from mup.errors import did_you_mean

    context = click.get_current_context()
    if engine not in ENGINES:
        raise UsageError(f"--engine: no {engine!r}; {did_you_mean(engine, ENGINES)}")
    given = {name for name in context.params if _given(context, name, ParameterSource.COMMANDLINE)}
    if engine == "compiled":
        if {"dask", "workers"} <= given:
            raise UsageError(
                "--dask and --jobs exclude each other: the workers of a cluster are started there"
            )
        return
    for name, option in SIMULATED.items():
        if name in given:
            raise UsageError(f"{option} means nothing to --engine {engine}, which does not simulate")


def _given(context: click.Context, name: str, source: ParameterSource) -> bool:
    return context.get_parameter_source(name) is source


def axes(options: Mapping[str, Iterable[str]]) -> list[Axis]:
    """Return one axis per option given, in their order.

    Args:
        options: The texts of each option, by kind of change: ``1,2,4``, or ``NAME=1,2,4``.

    Raises:
        UsageError: A text is spelt wrongly; nothing else is checked here.
    """
    found = [_axis(kind, text) for kind, texts in options.items() for text in texts]
    closed, opened = ({axis[0].name for axis in found if axis[0].kind == kind} for kind in LOADS)
    if both := closed & opened:
        of = f" of {min(both)}" if any(both) else ""
        raise UsageError(
            f"--clients and --arrivals{of} exclude each other: one is a closed load, the other an open one",
            hint="ask for one of them at a time",
        )
    return found


def _axis(kind: str, text: str) -> Axis:
    from simulator.studies.whatif import Change

    # Names may contain "=", values may not.
    name, equals, values = text.rpartition("=")
    if kind in EXAMPLES and not (equals and name):
        what = TEXTS[kind].upper() if kind in TEXTS else "NUMBER"
        what = f"{what}[,{what}..]"
        raise UsageError(
            f"--{kind}: must be NAME={what}, got {text!r}", hint=f"for example --{kind} {EXAMPLES[kind]}"
        )
    if equals and kind not in EXAMPLES and not (kind in LOADS and name):
        raise UsageError(f"--{kind}: must be numbers separated by commas, got {text!r}")
    return tuple(Change(kind, name, _value(kind, name, part)) for part in _parts(values))


def _parts(values: str) -> list[str]:
    """Split values at commas, but for those within brackets."""
    return re.split(r",(?![^()]*\))", values)


def _value(kind: str, name: str, text: str) -> float | str:
    if kind in TEXTS:
        if not text.strip():
            raise UsageError(f"--{kind}: the {TEXTS[kind]} of {name!r} is missing")
        return text.strip()
    if kind == "demand" and text.strip().endswith("x"):
        return f"{_number(kind, text.strip()[:-1]):g}x"
    if kind == "fan-out" and text.strip().endswith(")"):
        return text.strip()
    number = _number(kind, text)
    return int(number) if kind in WHOLE and number.is_integer() else number


def _number(kind: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        example = EXAMPLES.get(kind, "1,2,4")
        raise UsageError(
            f"--{kind}: must be numbers separated by commas, got {text!r}",
            hint=f"for example --{kind} {example}",
        ) from None
