"""Predictions named by ``mup explore --for``: changes of ``mup whatif``, several in one text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mup.cli.predictions.scenario_options import axes
from mup.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from analyzer.calibration.question import Question

__all__ = ["DEFAULT_WIDTH", "question", "share"]

DEFAULT_WIDTH = 0.05
CHANGE = re.compile(r"([a-z]+)(?::(.+))?=([^=]*)")
"""Kind, name and values; names may contain colons and equals signs, values may not."""


def question(texts: Iterable[str], width: float) -> Question:
    """Return what is asked.

    Args:
        texts: Each one list of changes, separated by spaces: ``clients=8,64 pool:A=4``. None = the system as
            it is.
        width: Relative half-width to know the predictions to.

    Raises:
        UsageError: A text is spelt wrongly.
    """
    from analyzer.calibration.question import Question
    from simulator.studies.whatif import KINDS

    changes = {}
    for text in texts:
        options: dict[str, list[str]] = {}
        for word in text.split():
            found = CHANGE.fullmatch(word)
            kind, name, values = found.groups() if found is not None else (word, None, "")
            if kind not in KINDS:
                raise UsageError(
                    f"--for: {word!r} changes nothing that is known; {did_you_mean(kind, KINDS)}",
                    hint="for example --for 'clients=64' or --for 'clients=32 pool:A=8'",
                )
            options.setdefault(kind, []).append(f"{name}={values}" if name else values)
        if not options:
            raise UsageError(
                "--for: no change is named",
                hint="for example --for 'clients=64'; leave it out to ask about the project's own client",
            )
        changes[text] = tuple(axes(options))
    return Question(changes, width)


def share(text: str, option: str) -> float:
    """Parse ``5%`` or ``0.05``.

    Raises:
        UsageError: It is no part of a whole.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = 0.0
    if rest or not 0 < value < 1:
        raise UsageError(
            f"{option}: must be a part between 0 and 1, or a percentage, got {text!r}",
            hint=f"for example {option} 5% or {option} 0.05",
        )
    return value
