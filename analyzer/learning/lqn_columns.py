"""Columns of a trace in terms of an inlined model, and the state in which a trace began.

A column is named after what it counts:

==========================  ====================================================================
``B``                       requests at task B: waiting for a thread, or having one
``B.serve``, ``B/path/``    the same for one entry
``B.serve:work``            requests that spend the demand or delay of one activity
``B.serve:(waiting)``       requests that wait for a thread to execute the entry
``client.cycle:(thinking)`` clients in their think time; ``(joining)``, ``(front)`` accordingly
``A.a:ask>B.serve:work``    only those that came by this call, with as many steps as needed
==========================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from analyzer.learning.traces import Start
from mup.errors import UsageError, did_you_mean
from mup.lqn.refs import Names
from simulator.networks.inlined import InlinedLqn, held_pools, requests_of

__all__ = ["Beginnings", "Columns", "beginnings", "column_names", "match_columns", "require_clients"]

FloatArray = npt.NDArray[np.float64]

MISFIT = 0.01
"""What the columns say may be off by this part of the clients."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of traces, seen from the states of an inlined model.

    Attributes:
        names: M.
        counts: Requests of every column per state; shape (M, n).
    """

    names: tuple[str, ...]
    counts: FloatArray


@dataclass(frozen=True, slots=True)
class Beginnings:
    """States in which traces can begin.

    Attributes:
        states: One for each trace; requests per state, shape (R, n).
        determined: Whether there is no other.
        equations: What a beginning fulfils, of n states and S numbers of free threads; shape (E, n + S).
        solutions: The states with these numbers; shape (R, n + S).
    """

    states: FloatArray
    determined: bool
    equations: FloatArray
    solutions: FloatArray


def column_names(lqn: InlinedLqn) -> tuple[str, ...]:
    """Return the names of the finest columns: where every single flow can be."""
    return tuple(str(p) for p in lqn.positions)


def match_columns(lqn: InlinedLqn, names: Sequence[str]) -> Columns:
    """Find what every column counts.

    Raises:
        UsageError: A name stands for nothing in the model; the message lists what there is.
    """
    rows = []
    for name in names:
        row = _count(lqn, name)
        if not row.any():
            known = [*sorted({t for p in lqn.positions for t in p.tasks}), *column_names(lqn)]
            raise UsageError(
                f"column {name!r} counts nothing in the model; {did_you_mean(name, known)}",
                hint="name columns after tasks, entries (TASK.entry) or activities (TASK.entry:activity)",
            )
        rows.append(row)
    return Columns(tuple(names), np.array(rows))


def _count(lqn: InlinedLqn, name: str) -> FloatArray:
    model = lqn.model
    labels = [(ref.task, label) for ref, label in Names(model.tasks).entries.items()]
    # What a request is engaged in counts once, however many branches it has.
    wanted = {i for i, (task, label) in enumerate(labels) if name in (task, label)}
    if wanted:
        return np.array(
            [sum(r.entry in wanted for r in requests_of(lqn, s)) for s in range(lqn.system.size)], dtype=float
        )
    row = np.zeros(lqn.system.size)
    for index, position in enumerate(lqn.positions):
        ends = (">".join(position.path[i:]) for i in range(len(position.path)))
        if name in ends:
            row += lqn.counts[index]
    return row


def _populations(lqn: InlinedLqn, columns: Columns) -> Iterator[tuple[FloatArray, float, FloatArray | None]]:
    """Yield, for every reference task, which states are its clients', how many there are, and their columns.

    Columns are given as weights, shape (M,), whose sum counts the clients; None if no such sum does.
    """
    inverse = np.linalg.pinv(columns.counts)
    for number, population in enumerate(lqn.space.code.populations):
        own = np.array([float(s.owner == number) for s in lqn.space.states]) * lqn.client_states
        weights = own @ inverse
        counted = np.abs(own - weights @ columns.counts).max() <= 1e-6
        yield own, population.clients, weights if counted else None


def require_clients(lqn: InlinedLqn, columns: Columns, x: FloatArray) -> None:
    """Check that clients neither appear nor vanish, where the columns tell how many there are.

    Args:
        lqn: The model.
        columns: M.
        x: What the columns say; shape (R, H, M).

    Raises:
        UsageError: They do in some trace.
    """
    for _, clients, weights in _populations(lqn, columns):
        if weights is None:
            continue
        present = x @ weights
        moved = np.abs(present - present[:, :1]).max(axis=1)
        worst = int(np.argmax(moved))
        if moved[worst] > MISFIT * clients:
            low, high = present[worst].min(), present[worst].max()
            raise UsageError(
                f"x: clients appear or vanish in trace {worst}: together the columns count from {low:g} to"
                f" {high:g} of them, and the model has {clients:g}",
                hint="every client is in exactly one column at any time: is one counted twice, or left out?",
            )


def beginnings(
    lqn: InlinedLqn, columns: Columns, first: FloatArray, start: Start | None = None
) -> Beginnings:
    """Return the states in which traces begin: no pool has more requests than threads, the others wait.

    Args:
        lqn: The model; n states.
        columns: M.
        first: What the columns say at time 0; shape (R, M).
        start: What is known besides of where requests are at time 0.

    Returns:
        One that fits for each trace, and whether there are others.

    Raises:
        UsageError: No state of the model looks like the beginning of a trace.
    """
    if start is not None:
        further = match_columns(lqn, start.names)
        columns = Columns((*columns.names, *further.names), np.concatenate((columns.counts, further.counts)))
        first = np.concatenate((first, start.x), axis=1)
    rows, fixed = [columns.counts], []
    for own, clients, weights in _populations(lqn, columns):
        if weights is None:  # the columns do not say how many clients there are: the model does
            rows.append(own[None])
            fixed.append(clients)
    matrix = np.vstack(rows)
    # One more unknown per pool, its free threads, makes an inequality an equation.
    limited = np.isfinite(lqn.system.capacity)
    held, capacity = held_pools(lqn)[limited], lqn.system.capacity[limited]
    free = np.zeros((len(matrix), len(held)))
    bounded = np.block([[matrix, free], [held, np.eye(len(held))]])
    size = lqn.system.size
    solved = np.array([nnls(bounded, np.concatenate([row, fixed, capacity]))[0] for row in first])
    found = solved[:, :size]
    missed = np.abs(found @ columns.counts.T - first).sum(axis=1)
    worst = int(np.argmax(missed / np.maximum(first.sum(axis=1), 1.0)))
    if missed[worst] > MISFIT * max(1.0, first[worst].sum()):
        column = columns.names[int(np.argmax(np.abs(found[worst] @ columns.counts.T - first[worst])))]
        raise UsageError(
            f"x: no state of the model looks like the beginning of trace {worst}: column {column!r} is"
            f" {first[worst][columns.names.index(column)]:g} there",
            hint="do the columns overlap, is 'start' not as they say, or has the model another number of"
            " clients (--clients)?",
        )
    determined = bool(np.linalg.matrix_rank(matrix) == size)
    return Beginnings(np.where(found < 1e-9, 0.0, found), determined, bounded, solved)
