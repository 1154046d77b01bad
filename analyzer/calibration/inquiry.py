"""Next step of an exploration for a question, and its end.

It first runs a few rounds of each kind, then looks at what they tell (``answer.look``), and from then on runs
the rounds that narrow the figures asked for (``allocation.allocate``). A look costs as long as it takes to
calibrate, which grows with the run: the next one is due when about half as many rounds have been added again,
or as many as are thought to be enough, and when looks take a small part of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from analyzer.calibration.allocation import Need, allocate
from analyzer.calibration.answer import NEARBY, Answer, Look
from analyzer.calibration.question import Question
from analyzer.calibration.rounds import BURST_ROUNDS, MIN_ROUNDS
from analyzer.calibration.rundir import AnswerInfo, Phase, QuestionInfo
from mup.statistics.student import t_quantile

__all__ = ["FIRST_ROUNDS", "Inquiry"]

FIRST_ROUNDS: Final[Mapping[Phase, int]] = {"hot": 6, "cold": MIN_ROUNDS}
"""Before the first look. From fewer hot rounds, predictions of the test bed's systems were worse by far,
which no interval from so few rounds can be trusted to say."""
FORESEEN = 2000
"""Rounds that are planned at most: over an hour."""
GROWTH = 1.5
"""Of the rounds from one look to the next, at most."""
LOOKING = 0.1
"""Share of the time that looks may take, about."""
MOST_USERS = 3
"""In bursts: enough to meet each other, too few to queue for long."""
MOST_BURSTS = 2 * BURST_ROUNDS
"""Rounds of several users that are tried; the void ones are not counted as rounds."""
KINDS_OF_ROUNDS: Final[Mapping[Phase, str]] = {
    "hot": "without think times",
    "cold": "with think times",
    "burst": "of several users at once",
}


class Inquiry:
    """A question while it is being explored for.

    Args:
        question: What is asked.
        seconds: Budget, under load.
        round_seconds: Length of a round.

    Attributes:
        outcome: ``open``; ``known``: to the width asked for; ``narrowed``: as far as exploring can, because
            predictions of the system would be further off however well it were calibrated; ``refused``:
            exploring tells nothing about a scenario.
        users: In the bursts that the question takes; 0 = it takes none.
    """

    def __init__(self, question: Question, seconds: float, round_seconds: float) -> None:
        self.question = question
        self.outcome = "open"
        self.users = 0
        self._seconds = seconds
        self._round_seconds = round_seconds
        self._last: Look | None = None
        self._plan: list[Phase] = []
        self._bursts = 0
        self._lacking = 0.0
        self._next = 0
        self._looked_at = 0.0
        self._looking = 0.0
        self._looks = 0

    def due(self, counts: Mapping[Phase, int], spent: float) -> bool:
        """Return whether it is time for a look.

        Args:
            counts: Rounds so far that count, of every kind the client has.
            spent: Seconds under load.
        """
        if self._seconds - spent < self._round_seconds / 2:
            return False  # it is looked at once more when everything has ended
        if any(n < FIRST_ROUNDS.get(phase, 0) for phase, n in counts.items()):
            return False
        if self._last is None:
            return True
        patient = self._last.seconds <= LOOKING * (spent - self._looked_at)
        return sum(counts.values()) >= self._next and (patient or not self._plan)

    def learn(self, found: Look | None, counts: Mapping[Phase, int], spent: float) -> None:
        """Take notice of a look.

        Args:
            found: None if there was too little to see anything.
            counts: Rounds that it saw.
            spent: Seconds under load.
        """
        self._looks += 1
        self._looked_at = spent
        total = sum(counts.values())
        if found is None:
            self._next = total + 1
            return
        self._last = found
        self._looking += found.seconds
        if found.refused:
            self.outcome = "refused"
            return
        width = self.question.width
        if found.beyond > NEARBY:
            self.users = min(MOST_USERS, 1 + round(found.beyond))
        open_ = [answer for answer in found.answers if not answer.known(width)]
        limit = max(0, int((self._seconds - spent) / self._round_seconds))
        needs = [Need(a.variances, (a.goal(width) / t_quantile(a.freedom)) ** 2) for a in open_]
        chosen: dict[Phase, int] = {phase: n for phase, n in counts.items() if phase != "burst" and n}
        planned, enough = allocate(needs, chosen, FORESEEN)
        self._plan = planned[:limit]
        self._lacking = (len(planned) - len(self._plan)) * self._round_seconds if enough else math.inf
        bursts = BURST_ROUNDS - counts.get("burst", 0) if self.users else 0
        bursts = max(0, min(bursts, limit, MOST_BURSTS - self._bursts))
        self._plan[:0] = ["burst"] * bursts
        if not self._plan and not open_:
            rest = any(self._total(a) > width for a in found.answers)
            self.outcome = "narrowed" if rest else "known"
        self._next = total + max(1, min(len(self._plan), round((GROWTH - 1) * total)))

    @staticmethod
    def _total(answer: Answer) -> float:
        return float((answer.half_width**2 + answer.rest**2) ** 0.5)

    def next_phase(self, counts: Mapping[Phase, int]) -> Phase:
        """Return the kind of the next round.

        Args:
            counts: Rounds so far that count, of every kind that can be chosen.
        """
        behind = [phase for phase, n in counts.items() if n < FIRST_ROUNDS.get(phase, 0)]
        if behind:
            return min(behind, key=lambda phase: counts[phase] / FIRST_ROUNDS[phase])
        while self._plan:
            phase = self._plan.pop(0)
            self._bursts += phase == "burst"
            if phase in counts or phase == "burst":
                return phase
        return min(counts, key=lambda phase: counts[phase])

    @property
    def worst(self) -> Answer | None:
        """The answer that is furthest from what it should be; None before the first look."""
        if self._last is None or not self._last.answers:
            return None
        width = self.question.width
        return max(self._last.answers, key=lambda a: a.half_width / max(a.goal(width), 1e-12))

    def text(self) -> str:
        """Return what the last look showed and what follows from it, in one line; "" before the first."""
        if self._last is None:
            return ""
        for scenario, reason in self._last.refused.items():
            return f"{scenario}: exploring cannot narrow this ({reason})"
        worst = self.worst
        if worst is None:
            return ""
        width = self.question.width
        known = f"{worst.scenario}: {_named(worst.figure)} known to +-{worst.half_width:.1%}"
        if self.outcome == "known":
            return f"{known}, {width:.2%} was asked for"
        if self.outcome == "narrowed":
            return (
                f"{known} by exploring; predictions at this load are off by up to {worst.rest:.1%} however"
                " well a system is calibrated, which exploring cannot narrow"
            )
        decides = f"; {worst.decides} decides" if worst.decides else ""
        ahead = ", ".join(
            f"{n} more round{'s' * (n != 1)} {KINDS_OF_ROUNDS[phase]}"
            for phase in ("hot", "cold", "burst")
            if (n := self._plan.count(phase))
        )
        late = ""
        if self._lacking:
            seconds = f"{self._lacking:.0f} s" if math.isfinite(self._lacking) else "hours"
            late = f"; it takes about {seconds} more than there is time for"
        return f"{known}, {worst.goal(width):.1%} wanted{decides}{ahead and ': '}{ahead}{late}"

    @property
    def stop(self) -> str:
        """Why the exploration ends; "" while it goes on."""
        return "" if self.outcome == "open" else self.text()

    def info(self, counts: Mapping[Phase, int]) -> QuestionInfo:
        """Return what a run remembers of it.

        Args:
            counts: Rounds of every kind that count.
        """
        answers = () if self._last is None else self._last.answers
        return QuestionInfo(
            as_written=list(self.question.as_written),
            width=self.question.width,
            outcome=self.outcome,
            answers=[_info(answer, self.question.width) for answer in answers],
            refused={} if self._last is None else dict(self._last.refused),
            rounds={phase: n for phase, n in counts.items() if n},
            users=self.users,
            looks=self._looks,
            look_seconds=round(self._looking, 3),
        )


def _info(answer: Answer, width: float) -> AnswerInfo:
    return AnswerInfo(
        scenario=answer.scenario,
        figure=answer.figure,
        mean=answer.mean,
        half_width=answer.half_width,
        goal=answer.goal(width),
        rest=answer.rest,
        open={phase: _share(answer, phase) for phase in answer.variances},
        decides=answer.decides,
    )


def _share(answer: Answer, phase: Phase) -> float:
    total = sum(answer.variances.values())
    return answer.variances[phase] / total if total > 0 else 0.0


def _named(figure: str) -> str:
    return {"response_time": "mean response time"}.get(figure, figure)
