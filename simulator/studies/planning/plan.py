"""Which deployment is the cheapest that meets the objectives, and what lies around it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mup.errors import LimitError, UsageError
from mup.lqn.lowered import sources_of
from mup.lqn.model import Model
from simulator.figures.result import Result
from simulator.machine.budget import Budget, Reached
from simulator.studies.planning.capacity import alone
from simulator.studies.planning.judge import Effort, Judge, Seen
from simulator.studies.planning.search import Found, cheapest
from simulator.studies.planning.slo import Slo, Verdict
from simulator.studies.planning.space import Point, Space
from simulator.studies.whatif import Change, Scenario, bottleneck

__all__ = ["MAX_SECONDS", "Option", "Plan", "check_floor", "plan"]

MAX_SECONDS: Final = 3600.0
"""Wall time of a plan unless it says otherwise."""
LOOSER: Final = (2.0, 1.4)
TIGHTER: Final = (0.75, 0.5)
"""Factors on all limits for which the front shows the cheapest deployment, too."""
FRONT_CANDIDATES: Final = 40
"""Deployments that are looked at for each of them at most."""


@dataclass(frozen=True, slots=True)
class Option:
    """A deployment that was looked at.

    Attributes:
        changes: What makes it of the model.
        cost: What it costs.
        seen: What its simulation says.
        verdicts: Per objective.
    """

    changes: tuple[Change, ...]
    cost: float
    seen: Seen
    verdicts: tuple[Verdict, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.changes))

    def failing(self, slos: Sequence[Slo]) -> list[Slo]:
        """Return the objectives it does not meet for sure."""
        return [slo for slo, v in zip(slos, self.verdicts, strict=True) if v is not Verdict.MEETS]

    def to_json(self, slos: Sequence[Slo], model: Model) -> dict[str, Any]:
        """Return ``{"change", "cost", "figures"}``."""
        figures = self.seen.figures or (None,) * len(slos)
        return {
            "change": Scenario(self.changes, model).to_json(),
            "cost": self.cost,
            "figures": [
                {
                    "slo": str(slo),
                    "figure": None if figure is None else figure.to_json(),
                    "verdict": verdict.value,
                }
                for slo, figure, verdict in zip(slos, figures, self.verdicts, strict=True)
            ],
            **({"reason": self.seen.why} if self.seen.why else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cheapest deployment, and what lies around it.

    Attributes:
        slos: The objectives.
        space: Which deployments there are.
        best: The cheapest that meets the objectives.
        proven: All cheaper ones fail, or have no more of anything than one that fails.
        next_cheaper: The dearest deployment below it that was simulated, and does not meet the objectives
            for sure; None if there is no cheaper one.
        close: Cheaper ones that are too close to call.
        front: Simulated deployments of which none is both cheaper and better; cheapest first.
        effort: How much was looked at.
        limit: Of wall time, that ended the search of the front.
    """

    slos: tuple[Slo, ...]
    space: Space
    best: Option
    proven: bool
    next_cheaper: Option | None
    close: tuple[Option, ...]
    front: tuple[Option, ...]
    effort: Effort
    limit: Reached | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup plan``, without what is asked in addition."""
        slos, model = self.slos, self.space.model
        return {
            "slo": [str(slo) for slo in slos],
            "unit": self.space.prices.unit,
            "deployments": self.space.size,
            "best": self.best.to_json(slos, model),
            "proven": self.proven,
            "next_cheaper": None if self.next_cheaper is None else self.next_cheaper.to_json(slos, model),
            "close": [option.to_json(slos, model) for option in self.close],
            "front": [option.to_json(slos, model) for option in self.front],
            "effort": {
                "simulated": self.effort.simulated,
                "simulations": self.effort.simulations,
                "estimated": self.effort.estimated,
                "bounded": self.effort.bounded,
                "events": self.effort.events,
            },
            "limit": None if self.limit is None else self.limit.to_json(),
        }


def plan(
    space: Space,
    slos: Sequence[Slo],
    *,
    seed: int = 0,
    workers: int | None = None,
    front: bool = True,
    max_seconds: float = MAX_SECONDS,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Plan:
    """Find the cheapest deployment that meets objectives.

    Args:
        space: The deployments, with the load to plan for.
        slos: At least one objective.
        seed: Of all simulations.
        workers: Simulations at once; None = one per core. The result does not depend on it.
        front: Also search the cheapest deployments for looser and tighter limits.
        max_seconds: Wall time.
        on_progress: Called with what has been found so far, one sentence each.

    Raises:
        UsageError: No deployment meets the objectives; the message says how near the largest one comes.
        UncalibratedError: The model lacks numbers.
        LimitError: The time was over before there was an answer.
    """
    if not slos:
        raise UsageError("no objective: nothing to plan for", hint="for example --slo 'p95<=200ms'")
    budget = Budget("the plan", seconds=max_seconds)
    judge = Judge(space, slos, seed=seed, workers=workers, budget=budget)
    largest = space.scenario(space.largest).model
    single = alone(largest, seed=seed, budget=budget)
    check_floor(slos, single, "the largest deployment")
    first = judge.begin(single)
    if first.verdict(slos) is not Verdict.MEETS:
        raise _not_enough(largest, slos, first)
    dearest = space.cost(space.largest)
    on_progress(f"{space.size:,} deployments; the largest meets the objectives, and costs {dearest:g}")
    found = cheapest(judge)
    best = space.largest if found.best is None else found.best
    on_progress(f"{_option(judge, best)} costs {space.cost(best):g}; looking at what is next to it")
    best = _descend(judge, best)
    limit = None
    if front:
        try:
            _search_front(judge, found)
        except LimitError as error:
            limit = error.reached
    cost = space.cost(best)
    options = {point: _option(judge, point) for point in judge.seen}
    cheaper = [o for o in options.values() if o.cost < cost and o.failing(slos)]
    return Plan(
        slos=tuple(slos),
        space=space,
        best=options[best],
        proven=found.proven and found.best is not None,
        next_cheaper=max(cheaper, key=lambda o: (o.cost, -o.seen.limit_ratio(slos)), default=None),
        close=tuple(options[p] for p in found.close if space.rank(p) < space.rank(best)),
        front=tuple(_front(list(options.values()), slos)),
        effort=judge.effort,
        limit=limit,
    )


def check_floor(slos: Sequence[Slo], single: Result | None, what: str) -> None:
    """Refuse response times that not even a client who is alone has.

    Args:
        slos: The objectives.
        single: What one client shows; None = not known.
        what: Which deployment that is.

    Raises:
        UsageError: One of them cannot be met.
    """
    for slo in slos:
        if single is None or not slo.is_time:
            continue
        figure = slo.measured(single)
        if figure is not None and slo.verdict(single) is Verdict.FAILS:
            raise UsageError(
                f"{slo} cannot be met: a client who is alone has {figure.mean * slo.factor:.4g} {slo.unit}"
                f" ({what})",
                hint="'mup plan --explain' with a limit that can be met ranks what to make faster",
            )


def _not_enough(model: Model, slos: Sequence[Slo], seen: Seen) -> UsageError:
    """Return what to raise where the largest deployment does not meet the objectives."""
    if seen.result is None:
        return UsageError(f"the largest deployment cannot do the work: {seen.why}", hint="vary more of it")
    parts = []
    for slo, figure, verdict in zip(slos, seen.figures, seen.verdicts(slos), strict=True):
        if verdict is not Verdict.MEETS and figure is not None:
            about = "" if verdict is Verdict.FAILS else ", which is too close to call"
            parts.append(f"{slo}: it has {figure.mean * slo.factor:.4g} {slo.unit}{about}")
    full = bottleneck(model, seen.result)
    where = "" if full is None else f"{full[0]} is the bottleneck there ({100 * full[1].mean:.0f} % busy): "
    load = "fewer arrivals" if any(s.is_open for s in sources_of(model)) else "fewer clients"
    return UsageError(
        f"no deployment meets the objectives, not even the largest one ({'; '.join(parts)})",
        hint=f"{where}vary more of it, or ask for {load} or a looser limit",
    )


def _descend(judge: Judge, best: Point) -> Point:
    """Go to deployments one step below while one meets the objectives: more may have done harm."""
    while True:
        below = [(*best[:i], at - 1, *best[i + 1 :]) for i, at in enumerate(best) if at > 0]
        below = [point for point in below if not judge.lacks(point)]
        meeting = [
            point
            for point, seen in zip(below, judge.simulate(below), strict=True)
            if seen.verdict(judge.slos) is Verdict.MEETS
        ]
        for point in sorted(meeting, key=judge.space.rank):
            if judge.space.rank(point) < judge.space.rank(best) and judge.confirmed(point):
                best = point
                break
        else:
            return best


def _search_front(judge: Judge, found: Found) -> None:
    """Have the cheapest deployments for other limits simulated."""
    for scale in LOOSER:
        cheapest(judge, scale=scale, most=FRONT_CANDIDATES)
    failed = found.failed
    for scale in TIGHTER:
        if judge.seen[judge.space.largest].verdict(judge.slos, scale) is not Verdict.MEETS:
            return
        # What fails a limit fails a tighter one.
        failed = cheapest(judge, scale=scale, failed=failed, most=FRONT_CANDIDATES).failed


def _option(judge: Judge, point: Point) -> Option:
    seen = judge.seen[point]
    space = judge.space
    return Option(space.changes(point), space.cost(point), seen, tuple(seen.verdicts(judge.slos)))


def _front(options: Sequence[Option], slos: Sequence[Slo]) -> list[Option]:
    """Return those of which none is both cheaper and nearer to the objectives."""
    found: list[Option] = []
    best = math.inf
    for option in sorted(options, key=lambda o: (o.cost, o.seen.limit_ratio(slos))):
        limit_ratio = option.seen.limit_ratio(slos)
        if limit_ratio < best * (1 - VISIBLE):
            found.append(option)
            best = limit_ratio
    return found


VISIBLE: Final = 0.02
"""By so much a dearer deployment has to be better to be on the front."""
