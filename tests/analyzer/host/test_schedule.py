"""From the text of a scheduler trace to figures."""

from __future__ import annotations

import pytest
from scheduler_traces import SHORT, moved, switch, trace, woken

from analyzer.host.behaviour import USUAL, behaviour
from analyzer.host.schedule import parse_trace, replay
from mup.errors import LogError
from mup.lqn import Turns

OWN = (11, 12, 13)


def test_lines_become_events() -> None:
    """A switch, a wake-up and a migration are read with their threads, cores, times and flags."""
    first, waking, wakeup, move = parse_trace(
        trace(switch(1.5, 0, 11, "R+", 12), woken(1.6, 1, 12, 13, 0, timer=True), moved(1.7, 1, 13, 0, 1))
    )
    assert (first.time, first.cpu, first.kind, first.pid, first.to, first.blocked) == (
        1.5,
        0,
        "switch",
        11,
        12,
        False,
    )
    assert (waking.kind, waking.pid, waking.cpu, waking.by_timer) == ("waking", 13, 1, True)
    assert (wakeup.kind, wakeup.to) == ("wakeup", 0)
    assert (move.kind, move.pid, move.to) == ("migrate", 13, 1)


def test_no_trace_is_refused() -> None:
    """Text that is no trace is named with its line."""
    with pytest.raises(LogError, match="line 2: not a line of a scheduler trace: 'hello'"):
        list(parse_trace("# tracer: nop\nhello\n"))


def test_pieces_say_who_ran_until_when() -> None:
    """A thread that is interrupted runs in two pieces, and is awaited from the moment another one waits."""
    pieces = [p for p in replay(parse_trace(SHORT), (0, 1)).pieces if p.pid == 11]
    assert [(p.start, p.end, p.blocked) for p in pieces] == [
        (0.9002, 1.00001, False),
        (1.002, 1.005, True),
    ]
    assert pieces[0].awaited == 1.0
    assert pieces[1].awaited is None


def test_wakeups_know_where_all_threads_were() -> None:
    """A wake-up has its waker, the last core, the chosen one, who ran, and when the thread ran."""
    by_thread, by_timer = (w for w in replay(parse_trace(SHORT), (0, 1)).wakeups if w.pid in OWN)
    assert (by_thread.waker, by_thread.home, by_thread.target, by_thread.running) == (11, 0, 0, (11, 0))
    assert by_thread.ran == 1.00001
    assert (by_timer.waker, by_timer.home, by_timer.target, by_timer.ran) == (0, 0, 1, 1.00305)


def test_figures_of_a_known_trace() -> None:
    """One of two threads woken beside an idle core moves there; 11 waits 1.99 ms while core 1 idles."""
    seen = behaviour(replay(parse_trace(SHORT), (0, 1)), OWN, [(1.0, 1.005)])
    assert seen.wake.mean == 0.5
    assert seen.wake_by_timer.mean == 1.0
    assert seen.wake_by_thread.mean == 0.0
    assert seen.idle_while_waiting == pytest.approx((2.0e-3 / 5e-3,), abs=1e-6)
    assert seen.utilization == pytest.approx((6e-3 / 1e-2,), abs=0.01)
    assert seen.preempts.mean == 1.0
    # Nobody's turn ended for one who had been waiting: the usual length.
    assert seen.expired == ()
    assert seen.turns == Turns(quantum=USUAL.quantum, preempt=1.0)


def test_a_turn_ends_for_one_who_has_been_waiting() -> None:
    """12 wakes up beside 11, which goes on for 1.5 ms; that is how long turns are."""
    lines = trace(
        switch(0.900000, 0, 12, "S", 0),
        switch(0.900200, 0, 0, "R", 11),
        switch(0.900300, 1, 7, "S", 0),
        woken(1.000000, 0, 11, 12, 0),
        switch(1.001500, 0, 11, "R", 12),
        switch(1.002000, 0, 12, "S", 11),
        switch(1.003000, 0, 11, "S", 0),
    )
    seen = behaviour(replay(parse_trace(lines), (0, 1)), OWN, [(0.9, 1.005)])
    assert seen.expired == pytest.approx((1.0015 - 0.9002,) * 5)
    assert seen.preempts.mean == 0.0


def test_who_runs_at_once_is_counted_where_nobody_waits() -> None:
    """Thirty times 12 is woken beside 11 alone and runs at once; thirty times beside 13 that waits, and does not."""
    lines = [
        switch(0.900000, 0, 12, "S", 0),
        switch(0.900100, 0, 0, "R", 13),
        switch(0.900200, 0, 13, "S", 11),
        switch(0.900300, 1, 7, "S", 0),
    ]
    for number in range(30):
        start = 1.0 + 0.01 * number
        lines += [
            woken(start, 0, 11, 12, 0),
            switch(start + 0.00001, 0, 11, "R+", 12),
            switch(start + 0.001, 0, 12, "S", 11),
            woken(start + 0.002, 0, 11, 13, 0),
            woken(start + 0.003, 0, 11, 12, 0),
            switch(start + 0.005, 0, 11, "R", 13),
            switch(start + 0.006, 0, 13, "S", 12),
            switch(start + 0.007, 0, 12, "S", 11),
        ]
    seen = behaviour(replay(parse_trace(trace(*lines)), (0, 1)), OWN, [(1.0, 1.3)])
    # Beside nobody: 12 at once, 13 not.
    assert seen.preempts_alone is not None
    assert seen.preempts_alone.mean == seen.turns.preempt == 0.5
    assert seen.preempts.mean == pytest.approx(1 / 3)


def test_a_waker_about_to_sleep_has_left_its_core() -> None:
    """A thread woken by one that sleeps 20 us later finds its core free, not busy."""
    text = trace(
        switch(0.9000, 0, 12, "S", 11),
        switch(0.9001, 1, 7, "S", 0),
        woken(1.0, 0, 11, 12, 0),
        switch(1.00002, 0, 11, "S", 12),
        switch(1.003, 0, 12, "S", 0),
    )
    seen = behaviour(replay(parse_trace(text), (0, 1)), OWN, [(0.95, 1.003)])
    assert seen.stays_home.mean == 1.0
    assert seen.wake.half is None, "there was no case of a busy core"


def test_an_idle_core_that_pulls_steals() -> None:
    """A core that falls idle while two threads are on the other one counts, and whether it took one."""
    common = (
        switch(0.9000, 0, 12, "S", 11),
        switch(0.9001, 1, 7, "S", 13),
        woken(1.0, 0, 11, 12, 0),
    )
    stays = trace(*common, switch(1.001, 1, 13, "S", 0), switch(1.002, 0, 11, "S", 12))
    pulls = trace(
        *common, moved(1.001, 1, 12, 0, 1), switch(1.001, 1, 13, "S", 12), switch(1.002, 0, 11, "S", 0)
    )
    assert [(i[1], i[2], i[3]) for i in replay(parse_trace(stays), (0, 1)).idled] == [(1, (2, 0), False)]
    assert [(i[1], i[2], i[3]) for i in replay(parse_trace(pulls), (0, 1)).idled] == [(1, (2, 0), True)]


def test_switches_that_are_not_shown_are_inferred() -> None:
    """A kernel that leaves out switches from idle threads does not leave threads waiting for ever."""
    text = trace(
        switch(0.9000, 0, 12, "S", 0),
        switch(0.9001, 1, 13, "S", 0),
        woken(1.0, 0, 0, 13, 1, timer=True),
        switch(1.004, 1, 13, "S", 0),
        switch(1.005, 0, 0, "R", 99),
        woken(1.006, 0, 0, 12, 0, timer=True),
        switch(1.007, 0, 12, "S", 0),
    )
    schedule = replay(parse_trace(text), (0, 1))
    assert [(p.pid, p.start, p.end) for p in schedule.pieces] == [(13, 1.0, 1.004), (12, 1.006, 1.007)]
    assert schedule.pieces[0].implied
    assert not any(sum(waiting) for _, _, waiting in schedule.changes)


def test_a_trace_without_the_threads_is_useless() -> None:
    """Figures of threads that do not occur are refused, not zero."""
    with pytest.raises(ValueError, match="none of the threads"):
        behaviour(replay(parse_trace(SHORT), (0, 1)), (99,), [(1.0, 1.005)])
