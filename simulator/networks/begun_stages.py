"""States of an inlined model whose times have stages, by the states without.

An inlined model with exponential times knows what every request does, but not for how long it has been at it.
With stages, it is in one of them. Where all times begin at the same moment, it is in the first one, of each
of the alternatives with its probability.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simulator.fluid.code import Code
from simulator.fluid.states import Flow, Request, in_order
from simulator.networks.inlined import InlinedLqn

__all__ = ["BegunStages", "begun_stages"]

FloatArray = npt.NDArray[np.float64]

Odds = tuple[float, int]
"""Probability, address."""


@dataclass(frozen=True, slots=True)
class BegunStages:
    """Beginnings of R traces of a model with stages.

    Attributes:
        starts: Whole numbers of requests per state without stages; shape (R, n).
        odds: In which states with stages they are; shape (n, n of stages).
        seed: Of the draws.
    """

    starts: FloatArray
    odds: FloatArray
    seed: int

    def select(self, rows: npt.NDArray[np.int64]) -> BegunStages:
        """Return the same of some traces."""
        return replace(self, starts=self.starts[rows])

    def drawn(self, many: int, draw: int) -> FloatArray:
        """Return whole numbers of requests by stages; shape (many, R, n of stages).

        Each request begins in a stage by chance. All beginnings of a trace together have as many in each
        stage as they should, or one more: then their mean has hardly any noise.

        Args:
            many: Beginnings of each trace.
            draw: Of the random numbers.
        """
        rng = np.random.default_rng([self.seed, draw])
        found = np.zeros((many, len(self.starts), self.odds.shape[1]))
        for row, counts in enumerate(self.starts):
            for state in np.flatnonzero(counts):
                odds = self.odds[state]
                if not odds.any():
                    continue
                each = int(counts[state])
                wanted = odds * (many * each / odds.sum())
                whole = np.floor(wanted + 1e-9)
                rest = many * each - int(whole.sum())
                if rest:
                    left = np.maximum(wanted - whole, 0.0)
                    whole[rng.choice(len(odds), rest, replace=False, p=left / left.sum())] += 1
                stages = rng.permutation(np.repeat(np.arange(len(odds)), whole.astype(np.int64)))
                for start, chosen in zip(found, stages.reshape(many, each), strict=True):
                    start[row] += np.bincount(chosen, minlength=len(odds))
        return found


def begun_stages(plain: InlinedLqn, staged: InlinedLqn) -> FloatArray:
    """Return in which states requests are that have just begun what they do; shape (n, n of stages).

    Args:
        plain: With exponential times; n states.
        staged: The same model with stages.
    """
    addresses = _addresses(plain.space.code, staged.space.code)
    found = np.zeros((plain.system.size, staged.system.size))
    for row, state in enumerate(plain.space.states):
        if state.request is None:
            found[row, staged.space.index[state]] = 1.0
            continue
        for odds, request in _begun(state.request, addresses):
            column = staged.space.index.get(state._replace(request=request))
            # What is not reached at all has no beginning: of branches begun together some pairs of stages.
            if column is not None:
                found[row, column] += odds
    return found


def _addresses(plain: Code, staged: Code) -> list[tuple[Odds, ...]]:
    """Return for every instruction which ones it is in the code with stages."""
    found: list[tuple[Odds, ...]] = []
    for before, after in zip(plain.times, staged.times, strict=True):
        shift = after.begin - before.begin
        found += [((1.0, address + shift),) for address in range(len(found), before.begin)]
        found += [after.entered] * (before.end - before.begin)
    end = len(plain.ops)
    shift = len(staged.ops) - end
    found += [((1.0, address + shift),) for address in range(len(found), end)]
    return found


def _begun(request: Request, addresses: list[tuple[Odds, ...]]) -> Iterator[tuple[float, Request]]:
    """Yield what a request can be with stages, with probabilities."""
    each = [list(_flows(flow, addresses)) for flow in request.flows]
    for chosen in itertools.product(*each):
        odds = float(np.prod([p for p, _ in chosen]))
        yield odds, in_order(request._replace(flows=tuple(flow for _, flow in chosen)))


def _flows(flow: Flow, addresses: list[tuple[Odds, ...]]) -> Iterator[tuple[float, Flow]]:
    # A flow parked at a join has no address.
    own = addresses[flow.address] if flow.address >= 0 else ((1.0, flow.address),)
    children: list[tuple[float, Request | None]] = [(1.0, None)]
    if isinstance(flow.child, Request):
        children = list(_begun(flow.child, addresses))
    for (p, address), (q, child) in itertools.product(own, children):
        yield p * q, flow._replace(address=address, child=child)
