"""Requests that one cycle causes, read off the instructions that engines execute.

Expected visits of all addresses follow from linear equations, one per address and whether the request it works for
is waited for. Nothing here knows of activities or precedences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from simulator.program import (
    CALL,
    CHOICE,
    COUNT,
    CYCLE,
    END,
    FORK,
    FORWARD,
    GOTO,
    JOIN,
    LOOP,
    RETURN,
    SEND,
    Population,
    Program,
)

Place = tuple[int, bool]
"""Address, and whether a reply is waited for."""


def requests_per_cycle(program: Program, population: Population) -> dict[str, float]:
    """Return the mean number of requests to every entry, by its label; the cycle itself counts as one."""
    means = _loop_means(program)
    epilogues = {entry.start: entry.epilogue for entry in program.entries}
    root: Place = (program.entries[population.entry].start, False)
    follows: dict[Place, list[tuple[Place, float]]] = {}
    stack = [root]
    while stack:
        place = stack.pop()
        if place not in follows:
            follows[place] = list(_following(program, place, means, epilogues))
            stack += [target for target, _ in follows[place]]
    index = {place: i for i, place in enumerate(follows)}
    flow = np.eye(len(index))
    for place, targets in follows.items():
        for target, often in targets:
            flow[index[target], index[place]] -= often
    visits = np.linalg.solve(flow, np.eye(len(index))[index[root]])
    found: dict[str, float] = defaultdict(float)
    for entry in program.entries:
        for waited in (False, True):
            if (entry.start, waited) in index:
                found[entry.label] += float(visits[index[entry.start, waited]])
    return {label: often for label, often in found.items() if often > 1e-12}


def _following(
    program: Program, place: Place, means: dict[int, float], epilogues: dict[int, int]
) -> Iterator[tuple[Place, float]]:
    address, waited = place
    operation, a, b, _ = program.code[address]
    if waited and address in epilogues:
        # A request that is waited for replies exactly once, wherever its flows are then.
        yield (epilogues[address], True), 1.0
    if operation in (CALL, SEND, FORWARD):
        yield (program.entries[a].start, operation != SEND), 1.0
    if operation in (FORWARD, END, RETURN, CYCLE):
        return
    if operation == GOTO:
        yield (a, waited), 1.0
    elif operation == CHOICE:
        before = 0.0
        for target, cumulative in zip(
            program.choices[a].addresses, program.choices[a].cumulative, strict=True
        ):
            yield (target, waited), cumulative - before
            before = cumulative
    elif operation == LOOP:
        again = means[address] / (1 + means[address])
        yield (address + 1, waited), again
        yield (b, waited), 1 - again
    else:
        if operation == FORK:
            yield (a, waited), 1.0
        yield (address + 1, waited), 1 / program.joins[a].arrivals if operation == JOIN else 1.0


def _loop_means(program: Program) -> dict[int, float]:
    """Return the mean count of every LOOP: registers belong to entries, whose code lies in one piece."""
    starts = sorted(entry.start for entry in program.entries if entry.start >= 0)
    counts: dict[tuple[int, int], float] = {}
    loops: dict[int, tuple[int, int]] = {}
    piece = -1
    for address, (operation, a, b, _) in enumerate(program.code):
        piece = max((s for s in starts if s <= address), default=-1)
        if operation == COUNT:
            counts[piece, a] = program.distributions[b].mean
        elif operation == LOOP:
            loops[address] = (piece, a)
    return {address: counts[key] for address, key in loops.items()}
