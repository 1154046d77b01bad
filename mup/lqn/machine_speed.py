"""Distribution of the machine's speed in a run that a prediction is compared with.

The speed of a machine is not the same from one run to the next. What is known about that is data here:
where it comes from (the machine's own history, or others' experience) is decided where predictions are
asked for, what it does to a prediction in ``simulator.studies.calibration_spread``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mup.errors import UsageError
from mup.lqn.model import Model
from mup.statistics.student import t_quantile

__all__ = ["MachineSpeed", "on_machine_of_speed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpeed:
    """The speed of a machine during a real run, relative to the one a model predicts for.

    Either the logarithm of that ratio is random around 0, or all of a range has to be covered.

    Attributes:
        processors: Those of the model that stand for the machine.
        sd: Standard deviation of the logarithm.
        freedom: Degrees of freedom of ``sd``.
        reach: Half the length of the range to cover, of the logarithm; ``sd`` is 0 then.
        source: Where this comes from, for people.
        probed: Whether a probe right before the run has told the speed, as far as a probe can.
    """

    processors: tuple[str, ...]
    sd: float
    freedom: float = math.inf
    reach: float = 0.0
    source: str = ""
    probed: bool = False

    def __post_init__(self) -> None:
        for name in ("sd", "reach"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UsageError(f"{name} of a machine's speed must be >= 0, got {getattr(self, name)!r}")
        if self.sd and self.reach:
            raise UsageError("a machine's speed is either random or in a range, not both")
        if not self.freedom > 0:
            raise UsageError(f"degrees of freedom must be > 0, got {self.freedom!r}")

    @property
    def quantile(self) -> float:
        """How many standard deviations the 95 % interval of the logarithm is long, to either side."""
        return t_quantile(self.freedom)

    @property
    def factor(self) -> float:
        """Return how many times as fast, or as slow, the machine may be."""
        return math.exp(self.reach + self.quantile * self.sd if self.sd else self.reach)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"low", "high", "sd", "freedom", "source"}``; infinite degrees of freedom are null."""
        return {
            "low": 1 / self.factor,
            "high": self.factor,
            "sd": self.sd,
            "freedom": None if math.isinf(self.freedom) else self.freedom,
            "source": self.source,
        }


def on_machine_of_speed(model: Model, processors: tuple[str, ...], factor: float) -> Model:
    """Return the model with these processors faster by a factor; their parts share their speed."""
    changed = tuple(
        replace(p, speed=p.speed * factor) if p.name in processors else p for p in model.processors
    )
    return replace(model, processors=changed)
