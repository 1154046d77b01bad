"""Features of a model that lqnx cannot express, or only approximately."""

from __future__ import annotations

import math

from mup.errors import ModelError
from mup.lqn.distributions import Distribution, Exponential, Hyperexponential, Pareto
from mup.lqn.lqnx.shapes import burst_scv, ordinary_moments

__all__ = ["Losses", "free_name", "number_text"]

Place = tuple[str, str, str]
"""Task, entry and activity."""


class Losses:
    """Collects what is lost on the way to lqnx.

    Attributes:
        approximate: True if approximations are allowed.
        problems: What makes the export impossible.
        approximated: What was written as the nearest thing lqnx has.
        notes: What was left out or renamed without changing any figure.
    """

    def __init__(self, *, approximate: bool, reached: set[Place]) -> None:
        self.approximate = approximate
        self.reached = reached
        self.problems: list[str] = []
        self.approximated: list[str] = []
        self._notes: dict[str, None] = {}
        self._can_approximate = False

    def problem(self, what: str, where: str) -> None:
        """Add what cannot be said at all."""
        self.problems.append(f"{where}: {what}")

    def nearly(self, what: str, instead: str, where: str) -> None:
        """Add what can only be approximated."""
        text = f"{where}: {what}; approximately: {instead}"
        if self.approximate:
            self.approximated.append(text)
        else:
            self._can_approximate = True
            self.problems.append(text)

    def note(self, text: str) -> None:
        """Add a note, once."""
        self._notes[text] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted, in order."""
        return tuple(self._notes)

    def raise_problems(self, model: str) -> None:
        """Refuse the export if there is a problem.

        Raises:
            ModelError: Naming all of them.
        """
        if self.problems:
            raise ModelError(
                "lqnx cannot express the model\n" + "\n".join(f"  {p}" for p in self.problems),
                where=model,
                hint="--approximate writes what follows 'approximately'" if self._can_approximate else "",
            )

    def measured(
        self, value: Distribution | None, place: Place, where: str, default: Distribution
    ) -> Distribution:
        """Return a number; one that was never measured can at most be made up where nothing comes by."""
        if value is not None:
            return value
        if place in self.reached:
            self.problem("it was never measured", where)
        else:
            self.nearly("it was never measured, nor reached", number_text(default.mean), where)
        return default

    def exponential(self, time: Distribution, where: str) -> float:
        """Return the mean of a time that lqnx takes as exponential."""
        if not isinstance(time, Exponential):
            self.nearly(f"a time that is {time.family}", "exponential with its mean", where)
        return time.mean

    def moments(self, demand: Distribution, scheduling: str, where: str) -> tuple[float, float]:
        """Return mean and squared coefficient of variation of a demand as lqnx needs them."""
        if scheduling == "uniform":
            return demand.mean, 1.0
        if scheduling == "burst" and isinstance(demand, Pareto):
            return demand.mean, burst_scv(demand) or 0.0
        found = ordinary_moments(demand)
        if found is not None:
            return found
        if not math.isfinite(demand.scv):
            self.problem(f"a demand that is {demand.family} with infinite variance", where)
            return demand.mean, 1.0
        what = f"a demand that is {demand.family}"
        if isinstance(demand, Hyperexponential):
            what += " with these phases"
        self.nearly(what, "the distribution lqnx has for its mean and variance", where)
        return demand.mean, demand.scv


def number_text(value: float) -> str:
    """Return the shortest text that reads as exactly this number."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, with as many underscores behind it as make it unique."""
    while name in taken:
        name += "_"
    return name
