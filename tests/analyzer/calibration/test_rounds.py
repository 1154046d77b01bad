"""Which round comes next, how long a client may think in it, and what makes it void."""

import pytest

from analyzer.calibration.rounds import ClientPace, Rounds, doubt_about
from analyzer.calibration.rundir import Phase, Window
from mup.workload.result import Cycle, LoadResult


def window(phase: Phase = "hot", seconds: float = 1.0, jump: float = 0.0, foreign: float = 0.0) -> Window:
    return Window(0, int(seconds * 1e9), phase=phase, jump=jump, foreign=foreign)


def test_phases_take_turns() -> None:
    """The phase with fewer good rounds is next; a void round is repeated."""
    rounds = Rounds()
    assert rounds.next_phase(("hot", "cold"), 60) == "hot"
    rounds.add(0, window("hot"))
    assert rounds.next_phase(("hot", "cold"), 60) == "cold"
    rounds.add(0, window("cold"), "void")
    assert rounds.next_phase(("hot", "cold"), 60) == "cold"


def test_void_rounds_of_one_phase_leave_the_other_its_time() -> None:
    """Half of the time is the limit of each: five void hot rounds of ten seconds in all, then cold ones."""
    rounds = Rounds()
    for _ in range(5):
        assert rounds.next_phase(("hot", "cold"), 10) == "hot"
        rounds.add(0, window("hot"), "void")
    assert rounds.next_phase(("hot", "cold"), 10) == "cold"
    assert rounds.spent == 5


def test_the_steadiest_void_rounds_are_kept() -> None:
    """One good round and four void ones: the two with the smallest disturbance fill up to three."""
    rounds = Rounds()
    rounds.add(0, window())
    for jump, foreign in ((0.2, 0), (0.05, 0), (0, 0.03), (0.5, 0.5)):
        rounds.add(0, window(jump=jump, foreign=foreign), "disturbed")
    rounds.add(0, window(jump=0.0), "a process died", usable=False)
    assert rounds.keep_doubtful("hot") == 2
    kept = [r.window for r in rounds.good("hot")]
    assert [(w.jump, w.foreign, w.flaw) for w in kept] == [
        (0, 0, ""),
        (0.05, 0, "disturbed"),
        (0, 0.03, "disturbed"),
    ]
    assert rounds.keep_doubtful("hot") == 0
    assert not rounds.keep_doubtful("cold")


def test_enough_good_rounds_need_no_void_ones() -> None:
    """Nothing is kept in doubt then."""
    rounds = Rounds()
    for _ in range(3):
        rounds.add(0, window())
    rounds.add(0, window(jump=0.05), "jumped")
    assert rounds.keep_doubtful("hot") == 0


@pytest.mark.parametrize(
    ("jump", "foreign", "expected"),
    [
        (0.04, 0.02, ""),
        (0.041, 0.0, "the machine's speed jumped by 4.1%"),
        (0.0, 0.3, "other programs used 30.0% of the machine"),
        (0.1, 0.3, "the machine's speed jumped by 10.0% and other programs used 30.0% of the machine"),
    ],
)
def test_what_makes_a_round_void(jump: float, foreign: float, expected: str) -> None:
    """Jumps above 4 % and foreign programs above the limit, each with its size."""
    assert doubt_about(window(jump=jump, foreign=foreign), 0.02) == expected


def test_rounds_without_probes_are_not_doubted() -> None:
    """What is not known is not counted as a fault."""
    assert doubt_about(Window(0, 1), 0.02) == ""


@pytest.mark.parametrize(
    ("response", "think", "scale"),
    [
        (0.02, 0.1, 1.0),  # eight cycles a second: as it is
        (0.02, 0.98, 1.0),  # one a second: still
        (0.05, 10.0, 0.045),  # 6 cycles in 3 s: 0.5 s each, 0.45 s of it silent
        (0.5, 10.0, 0.05),  # at least half of a cycle is silent
        (5.0, 1.0, 1.0),  # never longer than the client would
        (0.02, 0.0, 0.0),
    ],
)
def test_how_long_the_client_thinks(response: float, think: float, scale: float) -> None:
    """Only cycles longer than a second are shortened, to 6 per round if the responses leave room."""
    assert ClientPace(response, think).cold_scale(3.0) == pytest.approx(scale)


def test_the_pace_follows_from_scaled_think_times() -> None:
    """Lateness of timers is taken off before the scale is: 12 ms realised of 10 ms wanted are 1 s."""
    result = LoadResult(
        clients=1,
        seed=0,
        start_ns=0,
        end_ns=10**9,
        cycles=(Cycle(0, 0.032, 0.012), Cycle(1, 0.032, 0.012)),
        completions=(),
        errors=0,
        first_error="",
        cpu_seconds=0.0,
        think_lateness=(0.002, 0.002),
    )
    pace = ClientPace.of(result, 0.01)
    assert pace.response == pytest.approx(0.02)
    assert pace.think == pytest.approx(1.0)
