"""How are many models estimated quickly whose requests flow alike? What they have in common is kept.

That is found out for the first candidate with the same stations, that is, whose pools run out at the same
places; numbers alone change from one such candidate to the next.

The answer of ``Estimator`` is that of ``estimate``, to rounding: the same iteration takes the same steps,
from an empty system (`simulator.analytic.compiled`). So an answer does not depend on what was asked before,
and where the equations have several solutions it is the one that ``estimate`` finds. Iterations that begin
where another candidate ended might end elsewhere.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np

from mup.errors import MupError, UsageError
from mup.lqn.model import Model, Processor
from mup.native.libraries import ANALYTIC
from mup.native.loading import is_compiled, loaded
from simulator.analytic.candidates.changes import Candidate, Change, Skeleton, candidate_of
from simulator.analytic.candidates.layouts import is_compilable
from simulator.analytic.candidates.structures import Family, Structure
from simulator.analytic.compiled.iteration import CONVERGED, NO_ROOM, UNCONVERGED, solve
from simulator.analytic.fixed_point import TOLERANCE
from simulator.analytic.layers import Layers
from simulator.analytic.reports.report import Estimate, Reporter, Solution
from simulator.analytic.solver import ROUGHLY, estimate
from simulator.preparing import Load, at_load
from simulator.preparing.load_dependence import ROUNDS
from simulator.preparing.times import Times, processors_at

__all__ = ["Estimator"]

STRUCTURES: Final = 64
"""Prepared structures that are kept; candidates whose pools run out elsewhere have another one."""
AREA: Final = 200_000
"""Numbers that networks of one round keep, to begin with."""

_Found = tuple[Solution, tuple[Processor, ...], Reporter]
"""An operating point, the processors at its load, and what makes figures of both."""


class Estimator:
    """Estimates of a model and of its changes: what ``estimate`` returns.

    Those of models whose requests flow as in the first one, which compiled code takes, are quick: none
    with fan-outs, set-up after sleep, or too many clients or stations. All others are plain estimates, as all
    are where the code has not been compiled.

    Not for several threads at once; make one in each.

    Args:
        model: The model that candidates are changes of.
        compiling: Compile the code now if installing mup has not; that takes as long as some plain estimates.

    Raises:
        UncalibratedError, ModelError, SimulationError: As ``estimate``.
    """

    def __init__(self, model: Model, *, compiling: bool = True) -> None:
        self._model = model
        self._skeleton = Skeleton(model)
        self._area = np.zeros(AREA)
        self._structures: OrderedDict[Hashable, Structure] = OrderedDict()
        self._quick: Family | None = None
        if not _sleeps(model) and (compiling or is_compiled(ANALYTIC)):
            layers = Layers.of(at_load(model, Load(), awake=True))
            if is_compilable(layers) and _has_code():
                self._quick = Family(model)

    def at(self, changes: Iterable[Change] = ()) -> Estimate:
        """Estimate the model under some changes.

        Args:
            changes: Such as ``simulator.studies.whatif.Change``. Those of clients, think, pool, admission,
                replicas, cores, speed and place are quickest. Others make a whole model, as for ``of``.

        Returns:
            What ``estimate`` returns for the changed model.

        Raises:
            UsageError: A value is out of range, or a name unknown.
            UncalibratedError, ModelError, SimulationError: As ``estimate``.
        """
        started = time.perf_counter()
        all_changes = tuple(changes)
        candidate = None if self._quick is None else self._skeleton.changed(all_changes)
        if candidate is not None and self._quick is not None:
            return self._estimate(self._quick, candidate, started)
        changed = self._model
        for change in all_changes:
            changed = change.apply(changed)
        return self.of(changed)

    def of(self, model: Model) -> Estimate:
        """Estimate a model; it is quick if its requests flow as in the one this was made for.

        Raises:
            UncalibratedError, ModelError, SimulationError: As ``estimate``.
        """
        started = time.perf_counter()
        candidate = self._candidate(model)
        if candidate is None or self._quick is None:
            return estimate(model)
        return self._estimate(self._quick, candidate, started)

    def takes(self, model: Model) -> bool:
        """Tell whether requests of a model flow as in the one this was made for, so that it is quick."""
        return self._candidate(model) is not None

    def load(self, model: Model) -> Load | None:
        """Return the load that processor times of a model are taken at; None if it is not found quickly.

        It is what ``simulator.preparing.prepared`` finds by estimates.

        Args:
            model: It has times that depend on the load.
        """
        candidate = self._candidate(model)
        if candidate is None or self._quick is None:
            return None
        return self._load(self._quick, candidate, self._quick.times.base(candidate.tasks))

    def _candidate(self, model: Model) -> Candidate | None:
        """Return a model as a change of this one; None if it has no quick estimate."""
        return None if self._quick is None or _sleeps(model) else candidate_of(model, self._model)

    def _load(self, family: Family, candidate: Candidate, base: Times) -> Load | None:
        """Return the load of a candidate, found as ``prepared`` does it; None if it has no estimate."""
        load = Load()
        for number in range(ROUNDS):
            rough = self._solved(family, candidate, base, load, ROUGHLY, rates_only=True)
            if rough is None:
                return None
            solution, processors, reporter = rough
            figures = reporter.tasks(solution, candidate.tasks)
            shares = reporter.processors(solution, processors)
            before, load = load, family.load(candidate.tasks, figures, shares)
            if number and load.close_to(before):
                break
        return load

    def _estimate(self, family: Family, candidate: Candidate, started: float) -> Estimate:
        base = family.times.base(candidate.tasks)
        load: Load | None = None
        if any(t.load_dependence is not None for t in candidate.tasks) or any(
            p.idling for p in candidate.processors
        ):
            load = self._load(family, candidate, base)
            if load is None:
                return estimate(candidate.model())
        found = self._solved(family, candidate, base, load, TOLERANCE)
        if found is None:
            # What is wrong with a model that has no estimate is said in one place.
            return estimate(candidate.model())
        solution, processors, reporter = found
        return reporter.estimate(solution, candidate.tasks, processors, started)

    def _solved(
        self,
        family: Family,
        candidate: Candidate,
        base: Times,
        load: Load | None,
        tolerance: float,
        *,
        rates_only: bool = False,
    ) -> _Found | None:
        """Return what is found with the times of a load; None if nothing is."""
        times, processors = base, candidate.processors
        if load is not None:
            times = family.times.at(base, candidate.tasks, load)
            processors = processors_at(processors, load)
        structure = self._structure(family, candidate, times, load)
        if structure is None or not structure.take(candidate.tasks, processors, times):
            return None
        status = NO_ROOM
        while status == NO_ROOM:
            point, given = structure.point(self._area)
            status = solve(structure.layout, structure.numbers, given, tolerance, rates_only)
            if status == NO_ROOM:
                self._area = np.zeros(2 * len(self._area))
        if status not in (CONVERGED, UNCONVERGED):
            return None
        solution = structure.solution(candidate.tasks, point, converged=status == CONVERGED)
        return solution, processors, structure.reporter

    def _structure(
        self, family: Family, candidate: Candidate, times: Times, load: Load | None
    ) -> Structure | None:
        """Return what candidates have in common whose stations are the same ones."""
        key = family.key(candidate, times)
        known = None if key is None else self._structures.get(key)
        if known is not None and key is not None:
            self._structures.move_to_end(key)
            return known
        try:
            model = candidate.model()
            layers = Layers.of(at_load(model, load or Load(), awake=True))
        except MupError:
            return None
        if not is_compilable(layers):
            return None
        key = family.learn(candidate, times, layers)
        made = Structure(layers, model, family.times)
        self._structures[key] = made
        while len(self._structures) > STRUCTURES:
            self._structures.popitem(last=False)
        return made


def _sleeps(model: Model) -> bool:
    # What set-up after sleep costs depends on more than numbers of single times.
    return any(task.setup is not None for task in model.tasks)


def _has_code() -> bool:
    """Load the compiled code, or compile it; tell whether it is there."""
    try:
        loaded(ANALYTIC)
    except UsageError:  # no compiler: plain estimates are as right
        return False
    return True
