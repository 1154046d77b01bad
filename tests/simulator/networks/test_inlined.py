"""Inlined models: the exact process against exact chains, the fluid cell against its integrator."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ctmc import solve

sys.path.insert(0, str(Path(__file__).parents[2] / "analyzer" / "learning"))

from layered_systems import forked, running_example

from mup.errors import SimulationError, UsageError
from mup.lqn import Exponential, Model, Processor
from simulator.networks.inlined import InlinedLqn, inline
from simulator.networks.inlined_fluid import FluidCell
from simulator.networks.inlined_process import InlinedProcess


def column(lqn: InlinedLqn, name: str) -> np.ndarray:
    return sum(
        (row for p, row in zip(lqn.positions, lqn.counts, strict=True) if p.path[-1] == name), np.zeros(1)
    )


def test_the_thesis_example_is_inlined_as_figure_18() -> None:
    """Positions are the nodes that take time or wait: releases (q_B, q_D) take none."""
    lqn = inline(running_example())
    assert {str(p) for p in lqn.positions} == {
        "A.cycle:think1",
        "A.cycle:think1>B.serve:(waiting)",
        "A.cycle:think1>B.serve:comp",
        "A.cycle:think2",
        "A.cycle:think2>D.query:(waiting)",
        "A.cycle:think2>D.query:select",
    }
    assert [str(t) for t in lqn.times] == [
        "A.cycle:think1 demand", "B.serve:comp demand", "A.cycle:think2 demand", "D.query:select demand",
    ]  # fmt: skip


def test_a_fork_is_one_joint_jump() -> None:
    """All branches begin in one event; with anonymous joins a parked branch is taken with it."""
    siblings, anonymous = (inline(forked(), join=j) for j in ("siblings", "anonymous"))
    assert all(len(o.targets) == 1 for m in siblings.space.moves for o in m.effects.outcomes)
    ends = {m.op.activity: m.effects.outcomes for m in anonymous.space.moves}
    assert [len(o.targets) for o in ends["x"]] == [2]
    assert {str(p) for p in anonymous.positions} >= {"A.a:(r joined)", "U.cycle:go>A.a:(joining)"}


@pytest.mark.parametrize("kind", ["synchronous", "releasing"])
def test_process_has_the_means_of_the_exact_chain(kind: str) -> None:
    """Long runs of a forked system: throughput, queues and threads of the exact Markov chain."""
    model = forked(kind)
    exact = solve(model)
    lqn = inline(model)
    process = InlinedProcess(lqn)
    found = process.simulate(
        lqn.means, process.extreme_starts()[:1], dt=0.5, samples=400, replications=200, seed=5
    )
    mean = found.x[0, 40:].mean(axis=0)
    # 200 runs of 180 s, in which figures are correlated over about 2 s: 1.5 % is four standard errors.
    assert mean @ column(lqn, "U.cycle:(thinking)") == pytest.approx(exact.cycle_throughput, rel=0.015)
    waiting = mean @ column(lqn, "B.b:(waiting)")
    assert waiting == pytest.approx(exact.queue["B"], rel=0.05)
    assert mean @ column(lqn, "B.b:w") == pytest.approx(exact.busy["B"], rel=0.015)


def test_same_seed_same_numbers() -> None:
    lqn = inline(running_example())
    process = InlinedProcess(lqn)
    starts = process.random_starts(2, seed=1)
    runs = [
        process.simulate(lqn.means, starts, dt=0.1, samples=5, replications=3, seed=s).x for s in (4, 4, 5)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize(
    ("within", "alone"),
    [
        pytest.param({"part": 1, "host": 8}, 1, id="the part is full"),
        pytest.param({"part": 8, "host": 1}, 1, id="the host is full"),
        pytest.param({"part": 8, "middle": 2, "host": 3}, 2, id="the one between is full"),
    ],
)
def test_a_part_is_as_fast_as_the_narrowest_of_what_it_is_in(within: dict[str, int], alone: int) -> None:
    """The very same numbers as on a processor of its own."""

    def means(*processors: Processor) -> np.ndarray:
        model = forked(scale=3)
        tasks = tuple(replace(t, processor=t.processor and processors[0].name) for t in model.tasks)
        lqn = inline(replace(model, tasks=tasks, processors=processors))
        process = InlinedProcess(lqn)
        starts = process.random_starts(2, seed=1)
        return process.simulate(lqn.means, starts, dt=0.5, samples=20, replications=5, seed=3).x

    parents = [*list(within)[1:], None]
    nested = (
        Processor(name=name, cores=cores, parent=parent)
        for (name, cores), parent in zip(within.items(), parents, strict=True)
    )
    assert np.array_equal(means(*nested), means(Processor(name="alone", cores=alone)))


def test_no_client_is_lost_and_no_pool_overflows() -> None:
    """Clients are conserved, and at no moment are more threads held than there are."""
    lqn = inline(forked())
    process = InlinedProcess(lqn)
    found = process.simulate(lqn.means, process.random_starts(4), dt=0.2, samples=50, replications=5)
    assert found.x.sum(axis=2) == pytest.approx(np.full((4, 50), 4.0))
    assert (process.held @ found.x.reshape(-1, lqn.system.size).T <= process.capacity[:, None] + 1e-9).all()


def test_an_impossible_beginning_is_refused() -> None:
    lqn = inline(running_example())
    start = np.zeros((1, lqn.system.size))
    start[0, int(np.argmax(column(lqn, "B.serve:comp")))] = 30
    with pytest.raises(UsageError, match="more requests than places: threads of B"):
        InlinedProcess(lqn).simulate(lqn.means, start, dt=0.1, samples=3, replications=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [running_example(), forked(scale=20), forked("releasing", scale=20)],
    ids=["chain", "fork", "release"],
)
def test_cell_follows_the_integrator(model: Model) -> None:
    """On average 2 % of the clients are elsewhere than in the implicit integrator's smoother solution."""
    lqn = inline(model)
    cell = FluidCell(lqn)
    for start in InlinedProcess(lqn).random_starts(1, seed=7):
        x, _ = cell.trajectory(lqn.means, start, dt=0.05, samples=21, tangents=False)
        exact = lqn.system.trajectory(x[0], np.arange(21) * 0.05).T
        assert np.abs(x - exact).sum(axis=1).mean() < 0.02 * lqn.clients
        assert x.sum(axis=1) == pytest.approx(np.full(21, lqn.clients))


@pytest.mark.parametrize("model", [running_example(), forked("releasing", 20)], ids=["chain", "release"])
def test_tangents_are_the_derivatives_of_the_cell(model: Model) -> None:
    """Differences of the cell's own results: through admissions, sharing and joins."""
    lqn = inline(model)
    cell = FluidCell(lqn)
    start = InlinedProcess(lqn).random_starts(1, seed=3)[0]
    means = lqn.means * 1.01  # no step count changes for a change this small
    arguments = {"dt": 0.1, "samples": 11}
    _, tangents = cell.trajectory(means, start, **arguments)
    for i in range(len(means)):
        up, down = means.copy(), means.copy()
        up[i] *= np.exp(1e-6)
        down[i] *= np.exp(-1e-6)
        assert cell.steps(up, 0.1) == cell.steps(down, 0.1)
        values = [cell.trajectory(m, start, **arguments, tangents=False)[0] for m in (up, down)]
        assert tangents[:, :, i] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-5)


def test_places_given_back_at_once_cost_no_passes() -> None:
    """Who takes a thread again only to end frees it for the next one; that loop is summed, not iterated."""
    lqn = inline(forked("releasing"))
    cell = FluidCell(lqn)
    assert cell.returned.max() == 1.0
    assert cell.passes <= 3


def test_open_arrivals_are_refused() -> None:
    model = running_example()
    task = model.task("A")
    entry = replace(task.entries[0], arrivals=Exponential(1.0))
    model = model.with_task(replace(task, entries=(entry,), threads=float("inf")))
    with pytest.raises(SimulationError, match="arrive from outside"):
        inline(model)
