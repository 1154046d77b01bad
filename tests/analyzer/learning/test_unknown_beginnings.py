"""Columns that do not tell where traces begin: it is said with the traces, or times are no better known than it."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from layered_services import TIMES as TRUTH
from layered_services import two_layers, unknown

from analyzer.learning.lqn import learn_lqn
from analyzer.learning.lqn_columns import column_names, match_columns
from analyzer.learning.trace_files import read_traces, write_traces
from analyzer.learning.traces import Start, Traces
from mup.errors import UsageError
from simulator.networks.inlined import TimeKey, inline
from simulator.networks.inlined_process import InlinedProcess

ENTRIES = ("C.cycle:think", "A.serve", "B.query")


def entries_only(traces: Traces) -> Traces:
    """The traces as event logs give them: a column per entry, which puts work before and after a call together."""
    lqn = inline(two_layers())
    fine = match_columns(lqn, traces.names).counts
    coarse = match_columns(lqn, ENTRIES).counts @ np.linalg.pinv(fine)
    return replace(traces, x=np.maximum(traces.x @ coarse.T, 0.0), names=ENTRIES)


def observed(count: int = 30, *, runs: int = 60, seed: int = 2) -> Traces:
    """Traces with the finest columns, from random beginnings."""
    lqn = inline(two_layers())
    process = InlinedProcess(lqn)
    starts = process.random_starts(count, seed=seed)
    found = process.simulate(lqn.means, starts, dt=0.05, samples=41, replications=runs, seed=seed)
    return Traces(x=found.x @ lqn.counts.T, dt=0.05, names=column_names(lqn))


@pytest.fixture(scope="module")
def traces() -> Traces:
    return observed()


def of(name: str) -> TimeKey:
    place = {"think": ("C", "cycle"), "q": ("B", "query")}.get(name, ("A", "serve"))
    return TimeKey(*place, name, "demand")


def started(traces: Traces) -> Traces:
    """The same with the finest columns at time 0."""
    return replace(entries_only(traces), start=Start(names=traces.names, x=traces.x[:, 0]))


@pytest.mark.slow
def test_a_beginning_that_is_told_tells_the_times(traces: Traces) -> None:
    """Work before the call was 40 % too long, that after it 26 % too short, of a beginning that was guessed."""
    learned = learn_lqn(unknown(), started(traces))
    assert not learned.warnings
    for name, true in TRUTH.items():
        assert learned.times[of(name)].mean == pytest.approx(true, rel=0.08), name
        assert learned.times[of(name)].known


@pytest.mark.slow
@pytest.mark.parametrize("where", ["anywhere", "before the call"])
def test_a_beginning_that_is_not_told_is_fitted(where: str, traces: Traces) -> None:
    """Times are not off by more than twice what is stated, or they are said not to be known."""
    seen = traces
    if where == "before the call":
        lqn = inline(two_layers())
        process = InlinedProcess(lqn)
        starts = process.random_starts(30, seed=3)
        late, early = (
            int(np.argmax(match_columns(lqn, [f"A.serve:{name}"]).counts[0])) for name in ("post", "pre")
        )
        starts[:, early] += starts[:, late]
        starts[:, late] = 0
        x = process.simulate(lqn.means, starts, dt=0.05, samples=41, replications=60, seed=3).x
        seen = Traces(x=x @ lqn.counts.T, dt=0.05, names=column_names(lqn))
    learned = learn_lqn(unknown(), entries_only(seen))
    assert any("where traces begin is fitted, too" in warning for warning in learned.warnings)
    for name, true in TRUTH.items():
        time = learned.times[of(name)]
        assert time.ci95 is not None
        assert not time.known or abs(time.mean - true) < 2 * time.ci95, name
        if not time.known:
            assert any(f":{name} demand changes with where the traces begin" in w for w in learned.warnings)
    assert learned.times[of("q")].known


def test_beginnings_are_read_and_written(traces: Traces, tmp_path: Path) -> None:
    """Arrays of an NPZ; columns of a CSV, of which the lines at time 0 count."""
    written = started(traces)
    assert written.start is not None
    write_traces(tmp_path / "t.npz", written)
    again = read_traces(tmp_path / "t.npz").start
    assert again is not None
    assert again.names == written.start.names
    assert np.array_equal(again.x, written.start.x)
    few = written.select([0, 1])
    assert few.start is not None
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trace", "time", *few.names, *(f"start:{n}" for n in few.start.names)])
        for r, trace in enumerate(few.x):
            for h, row in enumerate(trace):
                writer.writerow([r, h * few.dt, *row, *(few.start.x[r] if h == 0 else few.start.x[r] * 0)])
    table = read_traces(tmp_path / "t.csv").start
    assert table is not None
    assert table.names == few.start.names
    assert table.x == pytest.approx(few.start.x)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (Start(names=("A.serve:pre",), x=np.ones((3, 1))), r"start: must have the shape \(30, 1\)"),
        (Start(names=("A.serve:pre",), x=-np.ones((30, 1))), "start: must be numbers of requests >= 0"),
        (Start(names=("a", "a"), x=np.ones((30, 2))), "start_names: must be different"),
    ],
)
def test_other_beginnings_are_refused(traces: Traces, start: Start, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        replace(traces, start=start)


def test_a_beginning_must_fit_the_columns(traces: Traces) -> None:
    """More requests in one activity than in its entry, and an activity that there is not."""
    seen = entries_only(traces)
    many = Start(names=("A.serve:pre",), x=seen.x[:, 0, 1:2] + 5)
    with pytest.raises(UsageError, match="no state of the model looks like the beginning of trace"):
        learn_lqn(unknown(), replace(seen, start=many), correction=False)
    other = Start(names=("A.serve:before",), x=np.ones((30, 1)))
    with pytest.raises(UsageError, match=r"column 'A\.serve:before' counts nothing"):
        learn_lqn(unknown(), replace(seen, start=other), correction=False)


def test_half_of_a_beginning_does_not_make_a_file(traces: Traces, tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=traces.x, dt=traces.dt, names=np.array(traces.names), start=traces.x[:, 0])
    with pytest.raises(UsageError, match="start and start_names belong together"):
        read_traces(tmp_path / "t.npz")
