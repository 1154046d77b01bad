"""Engines record bins by themselves: the same ones as snapshot after snapshot, up to the same limits."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import LimitError
from simulator.machine.budget import Budget
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import MAX_BINS, Bins, Layout
from simulator.machine.reference.engine import ReferenceEngine
from simulator.program import Program, compile_model

Kind: TypeAlias = type[CompiledEngine | ReferenceEngine]

WIDTH = 0.7
"""Seconds; its multiples are rounded."""


@pytest.fixture
def program() -> Program:
    """A small queue."""
    return compile_model(
        model(
            clients(5, exp(0.5), "A.a"),
            service("A", entry("a", act("w", exp(0.1))), threads=2, processor="cpu"),
            processors=(ps(),),
        )
    )


def step_by_step(program: Program, bins: int, kind: Kind = CompiledEngine) -> Bins:
    """Return the bins of a run that is stopped for every snapshot."""
    layout, engine = Layout(program), kind(program, 1)
    found = Bins(layout.width, WIDTH)
    for _ in range(bins):
        engine.run_until(found.next_time)
        found.add(engine.snapshot())
    return found


@pytest.mark.parametrize("kind", [CompiledEngine, ReferenceEngine])
def test_bins_are_those_of_snapshots(program: Program, kind: Kind) -> None:
    """Up to the moment asked for, to the bit, however the run is divided into calls."""
    bins, engine = Bins(Layout(program).width, WIDTH), kind(program, 1)
    for end in (WIDTH, 5.0, 5.1, 7.0, 40 * WIDTH):
        engine.record(bins, end, 10**9)
        assert bins.end >= end > bins.end - WIDTH
    wanted = step_by_step(program, 40, kind)
    assert bins.count == wanted.count == 40
    assert np.array_equal(bins.rows, wanted.rows)
    assert np.array_equal(engine.snapshot(), bins.previous)


def test_full_bins_are_added_up_in_pairs(program: Program) -> None:
    """A call ends where they are full; the next one goes on with wider ones."""
    bins, engine = Bins(Layout(program).width, WIDTH), CompiledEngine(program, 1)
    engine.record(bins, 1e9, 10**9)
    assert (bins.count, bins.width) == (MAX_BINS // 2, 2 * WIDTH)
    engine.record(bins, (MAX_BINS + 9) * WIDTH, 10**9)
    assert bins.count == MAX_BINS // 2 + 5
    assert np.array_equal(bins.rows, step_by_step(program, MAX_BINS + 5).rows)


@pytest.mark.parametrize("kind", [CompiledEngine, ReferenceEngine])
def test_no_bin_begins_behind_the_last_event(program: Program, kind: Kind) -> None:
    """The first bin in which so many events have begun is the last one."""
    bins, engine = Bins(Layout(program).width, WIDTH), kind(program, 1)
    engine.record(bins, 1e9, 500)
    other = CompiledEngine(program, 1)
    other.run_until((bins.count - 1) * WIDTH)
    assert other.events < 500 <= engine.events
    # What a study has left ends a call likewise.
    budget = Budget("the test", events=400)
    engine.record(bins, 1e9, 10**9, budget)
    assert budget.left <= 0
    assert engine.events < 500 + 400 + 100


def test_bins_before_a_limit_are_kept(program: Program) -> None:
    """A bin that takes longer than its study may is not recorded; those before it are."""
    bins, engine = Bins(Layout(program).width, WIDTH), CompiledEngine(program, 1)
    engine.record(bins, 20 * WIDTH, 10**9)
    wide = Bins(Layout(program).width, 1e6)
    with pytest.raises(LimitError):
        engine.record(wide, 1e9, 10**9, Budget("the test", events=1000))
    assert wide.count == 0
    assert bins.count == 20
