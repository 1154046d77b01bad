"""Spread the jobs of many scenarios over the cores of this machine.

Scenarios begin one after the other, as soon as there are cores without a job, and all that are under way
share the cores job by job.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.studies.grids.scenario_study import Found, Rounds, Step
from simulator.studies.parallel import Workers

__all__ = ["run_here", "run_in_turn"]

AHEAD: Final = 2
"""Jobs that are ready, per core: none waits while a scenario takes note of what it was waiting for."""


@dataclass(slots=True)
class _Open:
    """A scenario under way, and the answers to its round so far."""

    rounds: Rounds
    answers: list[Any] = field(default_factory=list)
    missing: int = 0


class _Board:
    """Which jobs are under way, and who waits for them."""

    def __init__(self, pool: Workers) -> None:
        self._pool = pool
        self._known: dict[Hashable, Any] = {}
        self._waiting_for: dict[Hashable, list[tuple[int, int]]] = {}
        self.open: dict[int, _Open] = {}
        self.found: dict[int, Found] = {}
        self.submitted = self.finished = 0

    @property
    def under_way(self) -> int:
        """Jobs that have no result yet."""
        return self.submitted - self.finished

    def begin(self, number: int, rounds: Rounds) -> None:
        """Begin a scenario."""
        self.open[number] = _Open(rounds)
        self._go_on(number, None)

    def take(self) -> None:
        """Wait for a job, and go on with those who waited for it."""
        name, result = self._pool.get()
        self.finished += 1
        waiting = self._waiting_for.pop(name)
        if not isinstance(name, int):
            self._known[name] = result
        for number, place in waiting:
            self._answer(number, place, result)

    def _answer(self, number: int, place: int, result: Any) -> None:
        scenario = self.open[number]
        scenario.answers[place] = result
        scenario.missing -= 1
        if not scenario.missing:
            self._go_on(number, scenario.answers)

    def _go_on(self, number: int, answers: list[Any] | None) -> None:
        scenario = self.open[number]
        while True:
            try:
                steps = next(scenario.rounds) if answers is None else scenario.rounds.send(answers)
            except StopIteration as end:
                self.found[number] = end.value
                del self.open[number]
                return
            scenario.answers = answers = [None] * len(steps)
            scenario.missing = 0
            for place, step in enumerate(steps):
                if step.key is not None and step.key in self._known:
                    answers[place] = self._known[step.key]
                else:
                    scenario.missing += 1
                    self._ask(step, number, place)
            if scenario.missing:
                return

    def _ask(self, step: Step, number: int, place: int) -> None:
        name = self.submitted if step.key is None else step.key
        if name in self._waiting_for:
            self._waiting_for[name].append((number, place))
            return
        self._waiting_for[name] = [(number, place)]
        self.submitted += 1
        self._pool.put(name, step.job)


def run_here(
    scenarios: Iterator[Rounds], workers: int | None, progress: Callable[[int, int], None] | None
) -> dict[int, Found]:
    """Run scenarios to their end.

    Args:
        scenarios: The rounds of each.
        workers: Jobs at once; default: as many as cores.
        progress: Called with (finished, all so far) jobs.

    Returns:
        What was found, by the place of the scenario.

    Raises:
        Exception: Of the first job that fails; the others are given up.
    """
    with Workers(workers) as pool:
        board, left = _Board(pool), enumerate(scenarios)
        while True:
            while board.under_way < AHEAD * pool.count and (following := next(left, None)) is not None:
                board.begin(*following)
            if not board.open:
                return board.found
            board.take()
            if progress is not None:
                progress(board.finished, board.submitted)


def run_in_turn(rounds: Rounds, known: dict[Hashable, Any]) -> Found:
    """Run one scenario to its end in this thread.

    Args:
        rounds: Of the scenario.
        known: Results by key, those of scenarios before and after.
    """
    answers: list[Any] | None = None
    while True:
        try:
            steps = next(rounds) if answers is None else rounds.send(answers)
        except StopIteration as end:
            found: Found = end.value
            return found
        answers = []
        for step in steps:
            if step.key is None:
                answers.append(step.job(lambda _: None))
            else:
                if step.key not in known:
                    known[step.key] = step.job(lambda _: None)
                answers.append(known[step.key])
