"""What an exploration for a question does next, and when it ends, on looks that are made up."""

from collections import Counter
from dataclasses import replace

import pytest

from analyzer.calibration.answer import Answer, Look
from analyzer.calibration.inquiry import FIRST_ROUNDS, MOST_BURSTS, MOST_USERS, Inquiry
from analyzer.calibration.question import Question
from analyzer.calibration.rundir import Phase
from mup.errors import UsageError

WIDTH = 0.05


def answer(hot: float, cold: float, *, rest: float = 0.0, rounds: int = 100) -> Answer:
    """Return what is known about a figure if a round of each kind has these standard deviations."""
    variances: dict[Phase, float] = {"hot": hot**2 / rounds, "cold": cold**2 / rounds}
    return Answer(
        "64 clients", "response_time", 0.02, variances, 200.0, rest, "B/epB/ (demand known to +- 7 %)"
    )


def seen(*answers: Answer, beyond: float = 0.5, **refused: str) -> Look:
    """Return a look that took a second."""
    return Look(answers, refused, beyond, 1.0)


def inquiry(seconds: float = 90.0, width: float = WIDTH) -> Inquiry:
    """Return one about the project's own client."""
    return Inquiry(Question({}, width), seconds, 3.0)


def explored(asked: Inquiry, hot: float, cold: float, *, rest: float = 0.0) -> Counter[Phase]:
    """Run rounds until the inquiry, or the budget, is at its end; return them."""
    counts: Counter[Phase] = Counter({"hot": 0, "cold": 0})
    while sum(counts.values()) < 30:
        spent = 3.0 * sum(counts.values())
        if asked.due(counts, spent):
            one = answer(hot, cold, rest=rest)
            variances: dict[Phase, float] = {"hot": hot**2 / counts["hot"], "cold": cold**2 / counts["cold"]}
            asked.learn(seen(replace(one, variances=variances)), counts, spent)
            if asked.stop:
                break
        counts[asked.next_phase(counts)] += 1
    return counts


def test_the_first_rounds_are_of_both_kinds() -> None:
    """Nothing is looked at before; what is known then ends it at once."""
    asked = inquiry()
    assert explored(asked, 0.001, 0.001) == FIRST_ROUNDS
    assert asked.outcome == "known"
    assert "64 clients: mean response time known to +-" in asked.stop


def test_rounds_go_where_the_width_comes_from() -> None:
    """Four times as many hot rounds as cold ones, or the other way round, and no more than it takes."""
    hot, cold = explored(inquiry(), 0.1, 0.005), explored(inquiry(), 0.005, 0.1)
    assert hot["hot"] > 3 * hot["cold"]
    assert cold["cold"] > 1.5 * cold["hot"]
    assert sum(hot.values()) < 25
    assert sum(cold.values()) < 25


def test_a_narrower_width_takes_longer() -> None:
    """Until the time is up: then the last look says how far it got, and that there is no time for more."""
    wide, narrow = explored(inquiry(width=0.08), 0.1, 0.05), explored(inquiry(width=0.06), 0.1, 0.05)
    assert sum(wide.values()) < sum(narrow.values()) < 30
    late = inquiry(width=0.01)
    assert sum(explored(late, 0.1, 0.05).values()) == 30
    assert late.outcome == "open"
    assert "more than there is time for" in late.text()
    assert "B/epB/ (demand known to +- 7 %) decides" in late.text()


def test_what_exploring_cannot_narrow_ends_it() -> None:
    """Where a perfect calibration would be further off than the width, more rounds would change nothing."""
    asked = inquiry()
    counts = explored(asked, 0.06, 0.03, rest=0.2)
    assert asked.outcome == "narrowed"
    assert "which exploring cannot narrow" in asked.stop
    assert sum(counts.values()) < 30


@pytest.mark.parametrize(
    ("rest", "goal"),
    [(0.0, 0.05), (0.03, 0.04), (0.04, 0.04), (0.05, 0.05), (0.3, 0.05)],
)
def test_the_rest_takes_its_share_of_the_width(rest: float, goal: float) -> None:
    """All together within the width, else calibration no larger than the rest, and never beyond the width."""
    assert answer(1.0, 1.0, rest=rest).goal(WIDTH) == pytest.approx(goal)


def test_a_refused_scenario_ends_it() -> None:
    """With its reason; nothing is said to be known."""
    asked = inquiry()
    asked.learn(seen(**{"A/x/ = 0.5": "A/x/ has no demand"}), Counter(FIRST_ROUNDS), 27.0)
    assert asked.outcome == "refused"
    assert asked.stop == "A/x/ = 0.5: exploring cannot narrow this (A/x/ has no demand)"


@pytest.mark.parametrize(("beyond", "users"), [(1.2, 0), (1.6, 3), (40.0, MOST_USERS)])
def test_loads_beyond_the_explored_take_bursts(beyond: float, users: int) -> None:
    """Three rounds of two or three users, not more often than twice if they are void."""
    asked = inquiry()
    counts: Counter[Phase] = Counter(FIRST_ROUNDS)
    chosen = Counter[Phase]()
    for _ in range(20):
        asked.learn(seen(answer(0.1, 0.1, rounds=1000), beyond=beyond), counts, 27.0)
        if asked.stop:
            break
        for _ in range(3):
            chosen[asked.next_phase({"hot": 6, "cold": 3})] += 1  # void, each of them
    assert asked.users == users
    assert chosen["burst"] == (MOST_BURSTS if users else 0)
    assert asked.outcome == "known"


def test_looks_take_a_small_part_of_the_time() -> None:
    """After a look of ten seconds, the next one is a hundred seconds away, unless the plan is done."""
    asked = inquiry(seconds=1000.0, width=0.01)
    counts: Counter[Phase] = Counter({"hot": 6, "cold": 3})
    asked.learn(replace(seen(answer(0.2, 0.1)), seconds=10.0), counts, 27.0)
    assert not asked.due(Counter({"hot": 20, "cold": 10}), 90.0)
    assert asked.due(Counter({"hot": 40, "cold": 20}), 180.0)


def test_too_little_for_a_model_is_looked_at_again() -> None:
    """It is no answer, and no end."""
    asked = inquiry()
    asked.learn(None, Counter(FIRST_ROUNDS), 27.0)
    assert asked.text() == asked.stop == ""
    assert asked.due(Counter({"hot": 7, "cold": 3}), 30.0)


def test_a_run_remembers_the_question() -> None:
    """Shares of the kinds of rounds, figures, outcome, looks."""
    asked = inquiry()
    explored(asked, 0.2, 0.1)
    info = asked.info({"hot": 10, "cold": 5, "burst": 0})
    assert info.as_written == []
    assert info.rounds == {"hot": 10, "cold": 5}
    assert info.looks >= 2
    (found,) = info.answers
    assert sum(found.open.values()) == pytest.approx(1.0)
    assert found.half_width > 0
    assert found.goal == WIDTH


@pytest.mark.parametrize("width", [0.0, 1.0, -0.1, float("nan")])
def test_a_width_is_a_fraction(width: float) -> None:
    """Others are refused."""
    with pytest.raises(UsageError, match="width must be a fraction"):
        Question({}, width)
