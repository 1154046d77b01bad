"""What has to hold? Service level objectives, and how the figures of a simulation compare with them.

Times are in seconds, throughputs per second, utilizations fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from mup.errors import UsageError, did_you_mean
from mup.lqn.lowered import sources_of
from mup.lqn.model import Model
from mup.lqn.refs import Names, ResourceRef
from simulator.analytic import Estimate
from simulator.figures.result import CycleResult, EntryResult, Figure, ResponseTime, Result, TaskResult
from simulator.studies.calibration_spread import Key
from simulator.studies.whatif import utilizations

__all__ = ["FIGURES", "PERCENTILES", "SURE", "Slo", "Verdict", "objective"]

PERCENTILES: Final = ("p50", "p90", "p95", "p99")
FIGURES: Final = ("mean", *PERCENTILES, "throughput", "utilization")
"""What an objective can be about: a response time, cycles or requests per second, busy shares."""

SURE: Final = 1.25
"""So many 95 % half-widths from its limit a figure has to be: at 1.25, chance takes it to the wrong side less
than once in a hundred times. A search looks at many deployments near the limit."""


class Verdict(Enum):
    """What a simulation says about an objective."""

    MEETS = "meets"
    FAILS = "fails"
    CLOSE = "too close to call"


@dataclass(frozen=True, slots=True)
class Slo:
    """One objective.

    Attributes:
        figure: One of ``FIGURES``; a response time excludes think time.
        of: What it is about: the cycle of all clients, one kind of clients, an entry (endpoint, query), or a
            task or processor; of a utilization ``cycle`` is the fullest of all tasks and processors.
        name: As results name it; "" for the cycle.
        limit: An upper one, of a throughput a lower one.
    """

    figure: str
    of: Literal["cycle", "clients", "entry", "server"]
    name: str
    limit: float
    server: ResourceRef | None = None

    @property
    def at_least(self) -> bool:
        """Whether the limit is a lower one."""
        return self.figure == "throughput"

    @property
    def is_time(self) -> bool:
        """Whether it is about a response time."""
        return self.figure not in ("throughput", "utilization")

    @property
    def label(self) -> str:
        """Return what it is about, ``B/epB/ p95``."""
        return f"{self.name} {self.figure}".strip()

    @property
    def factor(self) -> float:
        """Return the factor to the unit that is printed."""
        return 1e3 if self.is_time else 100.0 if self.figure == "utilization" else 1.0

    @property
    def unit(self) -> str:
        """Return the unit that is printed."""
        return "ms" if self.is_time else "%" if self.figure == "utilization" else "1/s"

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{self.label} {sign} {self.limit * self.factor:.6g} {self.unit}"

    @property
    def key(self) -> Key:
        """Return the figure with a prediction interval whose parts count for this one."""
        if self.figure == "utilization":
            name = "" if self.server is None or self.server.kind != "task" else self.server.name
            return ("utilization", name)
        if self.figure in PERCENTILES:
            return ("p95", "")
        return ("throughput" if self.at_least else "response_time", "")

    def measured(self, result: Result) -> Figure | None:
        """Return the figure of a simulation; None if there was nothing to measure."""
        if self.figure == "utilization":
            shares = utilizations(result)
            if self.server is not None:
                return shares.get(self.server)
            return max(shares.values(), key=lambda figure: figure.mean, default=None)
        group: CycleResult | TaskResult | EntryResult | None = result.cycle
        if self.of == "clients":
            group = result.tasks.get(self.name)
        elif self.of == "entry":
            group = result.entries.get(self.name)
        if group is None:
            return None
        if self.at_least:
            return group.throughput
        time: ResponseTime | None = group.response_time
        if time is None or self.figure == "mean":
            return time
        found: Figure = getattr(time, self.figure)
        return found

    def estimated(self, estimate: Estimate) -> float | None:
        """Return the figure of an estimate, of percentiles the mean; None if it has none."""
        if self.figure == "utilization":
            tasks = {ResourceRef("task", n): t.utilization for n, t in estimate.tasks.items()}
            processors = {ResourceRef("processor", n): u for n, u in estimate.processors.items()}
            shares = {ref: share for ref, share in (tasks | processors).items() if share is not None}
            if self.server is not None:
                return shares.get(self.server)
            return max(shares.values(), default=None)
        if self.of == "entry":
            rate, time = estimate.entries.get(self.name, (0.0, None))
            return rate if self.at_least else time
        if self.of == "clients":
            task = estimate.tasks[self.name]
            return task.throughput if self.at_least else task.response_time
        return estimate.cycle.throughput if self.at_least else estimate.cycle.response_time

    def limit_ratio(self, value: float) -> float:
        """Return how far a value is on its way to the limit: 1 at the limit, more beyond it."""
        if self.at_least:
            return self.limit / value if value > 0 else math.inf
        return value / self.limit

    def verdict(self, result: Result, *, scale: float = 1.0, sure: float = SURE) -> Verdict:
        """Return what a simulation says.

        Args:
            result: Of the simulation.
            scale: Loosen the limit by this factor.
            sure: Half-widths that the figure has to be away from the limit.
        """
        figure = self.measured(result)
        if figure is None:
            # What is never asked takes no time, and is not often enough.
            return Verdict.FAILS if self.at_least else Verdict.MEETS
        limit = self.limit / scale if self.at_least else self.limit * scale
        room = figure.mean - limit if self.at_least else limit - figure.mean
        if abs(room) <= sure * figure.ci95:
            return Verdict.CLOSE if room != 0 or figure.ci95 else Verdict.MEETS
        return Verdict.MEETS if room > 0 else Verdict.FAILS

    def scaled(self, factor: float) -> Slo:
        """Return the objective with a looser (> 1) or tighter (< 1) limit."""
        return replace(self, limit=self.limit / factor if self.at_least else self.limit * factor)


def objective(model: Model, figure: str, name: str, limit: float) -> Slo:
    """Return an objective of a model.

    Args:
        model: What it is about.
        figure: One of ``FIGURES``.
        name: Of an endpoint, a query, a kind of clients, a task or a processor; "" = of all clients.
        limit: Seconds, per second, or a fraction.

    Raises:
        UsageError: There is no such figure or name, or the limit is out of range.
    """
    if figure not in FIGURES:
        if figure[:1] == "p" and figure[1:].isdigit():
            raise UsageError(
                f"--slo: there is no {figure}: simulations tell {', '.join(PERCENTILES)}",
                hint="take the next higher one",
            )
        raise UsageError(f"--slo: no figure {figure!r}; {did_you_mean(figure, FIGURES)}")
    if not 0 < limit < math.inf:
        raise UsageError(f"--slo: the limit of {figure} must be a number > 0, got {limit:g}")
    if figure == "utilization":
        if limit > 1:
            raise UsageError(f"--slo: a utilization is at most 100 %, got {100 * limit:g} %")
        if not name:
            return Slo(figure, "cycle", "", limit)
        ref = _server(model, name)
        return Slo(figure, "server", ref.label, limit, ref)
    if not name:
        return Slo(figure, "cycle", "", limit)
    clients = [t.name for t in model.reference_tasks]
    if name in clients:
        return Slo(figure, "clients", name, limit)
    names = Names(model.tasks)
    entry = names.spoken_entry(name)
    if entry is None:
        raise UsageError(
            f"--slo: no endpoint, query or kind of clients {name!r};"
            f" {did_you_mean(name, [*clients, *names.entries.values()])}"
        )
    own = {source.key for source in sources_of(model) if source.task.is_reference}
    if entry in own:
        return Slo(figure, "clients", entry.task, limit)
    return Slo(figure, "entry", names.entries[entry], limit)


def _server(model: Model, name: str) -> ResourceRef:
    """Return the task or processor of a name, or of a label such as ``task B``.

    Raises:
        UsageError: There is none, or both.
    """
    refs = [ResourceRef("task", t.name) for t in model.tasks if not t.is_reference and t.threads < math.inf]
    refs += [ResourceRef("processor", p.name) for p in model.processors if p.cores < math.inf]
    found = [ref for ref in refs if name in (ref.name, ref.label)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"--slo: {name!r} can be several things",
            hint=f"write one of {', '.join(repr(r.label) for r in found)}",
        )
    raise UsageError(
        f"--slo: nothing that can be full is called {name!r}; {did_you_mean(name, [r.name for r in refs])}"
    )
