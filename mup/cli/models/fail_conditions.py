"""What must a change not do? The conditions of ``mup compare --fail-if``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mup.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from analyzer.effect.paired import Changed, Effect, FigureKey

__all__ = ["Condition", "Judged", "check_names", "conditions", "judged"]

CONDITION = re.compile(
    r"(?:(?P<name>.+):)?\s*(?P<figure>[A-Za-z0-9]+)\s*(?P<sign>[<>])=?\s*(?P<limit>[+-]?[0-9]*\.?[0-9]+)\s*%"
)
"""Names may contain colons; figures have none."""
EXAMPLES = "for example --fail-if 'p95>+5%' or --fail-if 'capacity<-10%'"


@dataclass(frozen=True, slots=True)
class Condition:
    """A change of a figure that is not accepted.

    Attributes:
        text: As written.
        name: An endpoint; "" = the whole cycle.
        figure: One of ``analyzer.effect.paired.FIGURES``.
        above: Whether changes above the limit are meant, else those below it.
        limit: A fraction.
    """

    text: str
    name: str
    figure: str
    above: bool
    limit: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition and what became of it.

    Attributes:
        condition: Which.
        changed: The figure; None if it does not exist in both versions.
        fails: Whether the whole 95 % interval of its change is beyond the limit.
    """

    condition: Condition
    changed: Changed | None
    fails: bool

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``mup compare --json``."""
        relative = None if self.changed is None else self.changed.relative.to_json()
        return {"condition": self.condition.text, "relative": relative, "fails": self.fails}


def conditions(texts: Iterable[str]) -> list[Condition]:
    """Return what ``--fail-if`` asks for.

    Raises:
        UsageError: A text is spelt wrongly.
    """
    from analyzer.effect.paired import FIGURES

    found = []
    for text in texts:
        match = CONDITION.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"--fail-if: must be [NAME:]FIGURE>+PERCENT% or FIGURE<-PERCENT%, got {text!r}", hint=EXAMPLES
            )
        name, figure = (match["name"] or "").strip(), match["figure"].lower()
        if figure not in FIGURES:
            raise UsageError(f"--fail-if: no figure {figure!r}; {did_you_mean(figure, FIGURES)}")
        if name and figure in ("throughput", "capacity"):
            raise UsageError(
                f"--fail-if: {text!r}: a {figure} is one of the whole project", hint=f"leave out {name}:"
            )
        above, limit = match["sign"] == ">", float(match["limit"]) / 100
        if (limit < 0) if above else (limit > 0):
            raise UsageError(f"--fail-if: {text!r} would fail if nothing changed", hint="write >+5% or <-5%")
        found.append(Condition(text.strip(), name, figure, above, limit))
    return found


def check_names(wanted: Iterable[Condition], before: Collection[str], after: Collection[str]) -> None:
    """Refuse conditions about endpoints that are not in both versions.

    Args:
        wanted: The conditions.
        before: Labels of the endpoints of the old version.
        after: Those of the new one.

    Raises:
        UsageError: One is in one version only, or in none.
    """
    for condition in wanted:
        name = condition.name
        if not name or (name in before and name in after):
            continue
        if name in before:
            raise UsageError(
                f"--fail-if: {name} is gone in HEAD, so it has no figures there", hint="leave it out"
            )
        if name in after:
            raise UsageError(
                f"--fail-if: {name} is new in HEAD, so it has no figures in BASE", hint="leave it out"
            )
        raise UsageError(f"--fail-if: no endpoint {name!r}; {did_you_mean(name, sorted(after))}")


def judged(wanted: Iterable[Condition], effect: Effect | None) -> list[Judged]:
    """Return what became of conditions; without an effect nothing changed, and all hold."""
    from analyzer.effect.paired import FigureKey

    found = []
    for condition in wanted:
        changed = None
        if effect is not None:
            key: FigureKey = FigureKey(condition.name, condition.figure)
            changed = effect.figures.get(key)
        fails = changed is not None and (
            changed.relative.low > condition.limit
            if condition.above
            else changed.relative.high < condition.limit
        )
        found.append(Judged(condition, changed, fails))
    return found
