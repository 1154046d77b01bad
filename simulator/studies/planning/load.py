"""What is the largest load under which a deployment meets the objectives?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mup.errors import LimitError, SimulationError, UsageError
from mup.lqn.edits import with_arrivals, with_clients
from mup.lqn.lowered import sources_of
from mup.lqn.model import Model
from simulator.api import simulate
from simulator.machine.budget import Budget
from simulator.studies.planning.capacity import alone
from simulator.studies.planning.judge import FINEST, MAX_EVENTS, ROUGH, Seen
from simulator.studies.planning.plan import MAX_SECONDS, check_floor
from simulator.studies.planning.slo import Slo, Verdict
from simulator.studies.whatif import Change, Scenario

__all__ = ["LargestLoad", "largest_load"]

RESOLUTION: Final = 0.01
"""Part of the load up to which the largest one is found."""
MOST_CLIENTS: Final = 100_000
"""What serves more is not limited by its deployment."""
MOST_DOUBLINGS: Final = 30
"""Of the load, from one per second or client to 10^9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestLoad:
    """The largest load that meets the objectives.

    Attributes:
        slos: The objectives.
        change: The load.
        scenario: The model under it.
        seen: What its simulation says.
        beyond: The smallest load that was found to fail; None if even the largest one tried meets the
            objectives.
        beyond_seen: What its simulation says.
        beyond_verdicts: Per objective.
        simulations: How many it took.
    """

    slos: tuple[Slo, ...]
    change: Change
    scenario: Scenario
    seen: Seen
    beyond: Change | None
    beyond_seen: Seen | None
    beyond_verdicts: tuple[Verdict, ...]
    simulations: int

    @property
    def failing(self) -> list[Slo]:
        """The objectives that fail beyond it."""
        return [s for s, v in zip(self.slos, self.beyond_verdicts, strict=True) if v is Verdict.FAILS]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup plan --max-load``, without what is asked in addition."""

        def figures(seen: Seen) -> list[dict[str, Any]]:
            found = seen.figures or (None,) * len(self.slos)
            return [
                {"slo": str(slo), "figure": None if figure is None else figure.to_json()}
                for slo, figure in zip(self.slos, found, strict=True)
            ]

        return {
            "slo": [str(slo) for slo in self.slos],
            "load": {self.change.kind: self.change.value},
            "figures": figures(self.seen),
            "beyond": None
            if self.beyond is None or self.beyond_seen is None
            else {
                "load": {self.beyond.kind: self.beyond.value},
                "figures": figures(self.beyond_seen),
                "failing": [str(slo) for slo in self.failing],
            },
            "simulations": self.simulations,
        }


def largest_load(
    model: Model,
    slos: Sequence[Slo],
    *,
    seed: int = 0,
    max_seconds: float = MAX_SECONDS,
    on_progress: Callable[[str], None] = lambda _: None,
) -> LargestLoad:
    """Find the largest number of clients, or rate of arrivals, under which a model meets objectives.

    Args:
        model: The deployment; its load comes from one source.
        slos: At least one objective.
        seed: Of all simulations.
        max_seconds: Wall time.
        on_progress: Called with what has been found so far, one sentence each.

    Raises:
        UsageError: There are several sources of load, or the objectives are not even met for one client.
        UncalibratedError: The model lacks numbers.
        LimitError: The time was over.
    """
    if not slos:
        raise UsageError("no objective: nothing to plan for", hint="for example --slo 'p95<=200ms'")
    if any(slo.at_least for slo in slos):
        raise UsageError(
            "--max-load: a lower limit of throughput is met from some load on, not up to one",
            hint="ask for response times or utilizations",
        )
    sources = sources_of(model)
    if len(sources) != 1:
        names = ", ".join(source.task.name for source in sources)
        raise UsageError(
            f"--max-load: the load has to come from one source; this model has {len(sources)} ({names})",
            hint="'mup whatif --clients NAME=1,2,4' varies one of them",
        )
    (source,) = sources
    budget = Budget("the search of the largest load", seconds=max_seconds)
    check_floor(slos, alone(model, seed=seed, budget=budget), "this deployment")
    loads = _Loads(model, tuple(slos), is_open=source.is_open, seed=seed, budget=budget)
    low, high = loads.bracket(1 if not source.is_open else source.rate)
    while high is not None and high - low > max(loads.step, RESOLUTION * low):
        middle = loads.between(low, high)
        if loads.verdict(middle) is Verdict.MEETS:
            low = middle
        else:
            high = middle
        on_progress(f"between {low:g} and {high:g}")
    while not loads.confirmed(low):
        below = loads.lower(low)
        if below is None:
            raise UsageError(
                "the objectives are too close to what the smallest load shows to find the largest one",
                hint="loosen them a little",
            )
        low = below
    failing = [load for load in loads.seen if load > low and loads.verdict(load) is Verdict.FAILS]
    beyond = min(failing, default=None)
    return LargestLoad(
        slos=tuple(slos),
        change=loads.change(low),
        scenario=Scenario((loads.change(low),), loads.model(low)),
        seen=loads.seen[low],
        beyond=None if beyond is None else loads.change(beyond),
        beyond_seen=None if beyond is None else loads.seen[beyond],
        beyond_verdicts=() if beyond is None else tuple(loads.seen[beyond].verdicts(slos)),
        simulations=loads.simulations,
    )


class _Loads:
    """The loads of one model, and what simulations say about them."""

    def __init__(
        self, model: Model, slos: tuple[Slo, ...], *, is_open: bool, seed: int, budget: Budget
    ) -> None:
        self._model, self._slos, self._is_open = model, slos, is_open
        self._seed, self._budget = seed, budget
        self.step = 0.0 if is_open else 1.0
        self.seen: dict[float, Seen] = {}
        self.simulations = 0

    def change(self, load: float) -> Change:
        return Change("arrivals", "", load) if self._is_open else Change("clients", "", int(load))

    def model(self, load: float) -> Model:
        return with_arrivals(self._model, load) if self._is_open else with_clients(self._model, int(load))

    def between(self, low: float, high: float) -> float:
        """Return the geometric middle: loads differ by factors."""
        middle = math.sqrt(low * high)
        return middle if self._is_open else float(min(max(round(middle), low + 1), high - 1))

    def lower(self, load: float) -> float | None:
        """Return the next smaller load worth a try."""
        less = load * (1 - RESOLUTION)
        if self._is_open:
            return less
        return float(min(math.floor(less), load - 1)) if load > 1 else None

    def bracket(self, start: float) -> tuple[float, float | None]:
        """Return a load that meets the objectives, and a larger one that does not.

        Raises:
            UsageError: Even the smallest load does not meet them.
        """
        low: float | None = None
        high: float | None = None
        load = float(start)
        for _ in range(MOST_DOUBLINGS):
            if self.verdict(load) is Verdict.MEETS:
                low = load
                if high is not None:
                    break
                if not self._is_open and load >= MOST_CLIENTS:
                    break
                load *= 2
            else:
                high = load
                if low is not None:
                    break
                if not self._is_open and load <= 1:
                    break
                load /= 2
        if low is None:
            raise UsageError(
                f"no load meets the objectives: not even {self.change(load)} does for sure",
                hint="loosen them, or make something faster: 'mup plan --explain'",
            )
        return low, high

    def verdict(self, load: float) -> Verdict:
        """Return what simulations of a load say, the first one rough."""
        precision = ROUGH
        if load in self.seen:
            return self.seen[load].verdict(self._slos)
        while True:
            seen = self.seen[load] = self._look(load, precision, self._seed)
            verdict = seen.verdict(self._slos)
            cut = seen.result is not None and seen.result.limit is not None
            if verdict is not Verdict.CLOSE or precision <= FINEST or cut:
                return verdict
            precision = max(FINEST, precision / 2)

    def confirmed(self, load: float) -> bool:
        """Tell whether other random numbers agree that a load meets the objectives."""
        if self.verdict(load) is not Verdict.MEETS:
            return False
        known = self.seen[load].result
        precision = ROUGH if known is None else known.precision.requested or ROUGH
        while True:
            verdict = self._look(load, precision, self._seed + 1).verdict(self._slos)
            if verdict is not Verdict.CLOSE or precision <= FINEST:
                return verdict is Verdict.MEETS
            precision = max(FINEST, precision / 2)

    def _look(self, load: float, precision: float, seed: int) -> Seen:
        self.simulations += 1
        try:
            result = simulate(
                self.model(load),
                precision=precision,
                seed=seed,
                max_events=MAX_EVENTS,
                budget=self._budget,
            )
        except LimitError:
            raise
        except SimulationError as error:
            return Seen(None, error.message)
        return Seen(result, "", tuple(slo.measured(result) for slo in self._slos))
