"""What traces cannot tell about a closed network.

Regression weighs every flow by the busy time behind it. A direction of the flows with no weight can be
changed at will without any trace noticing; which flows it consists of is what this module says in words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.learning.explanations import CANNOT_TELL
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs

__all__ = ["other_explanations", "unknowns"]

UNDETERMINED = 1e-10
"""Directions with a smaller part of the information than this of the best known one."""
INVOLVED = 0.2
"""Flows named are those with at least this weight in such a direction."""
EMPTY = 1e-9
VAGUE = 0.25
"""Rates whose interval is wider than this part of them are named."""


def unknowns(
    traces: Traces,
    servers: FloatArray,
    pairs: Pairs,
    information: FloatArray,
    rates: FloatArray,
    half: FloatArray | None,
) -> list[str]:
    """Return what cannot be known, or only vaguely, one sentence each; [] if there is nothing.

    Args:
        traces: Learned from.
        servers: Shape (M,).
        pairs: Between which stations clients may move; shape (P, 2).
        information: Of the fit, in the order of the pairs; shape (P, P).
        rates: Learned; shape (M,).
        half: Half-widths of their 95 % intervals, NaN where unknown; None if there are none.
    """
    names, found = traces.names, []
    most = traces.x.max(axis=(0, 1))
    for i, name in enumerate(names):
        if most[i] < EMPTY:
            found.append(
                f"station {name!r} was empty throughout: neither its rate nor its routing can be known"
            )
        elif rates[i] <= 0:
            found.append(f"no client was seen to leave station {name!r}: its routing cannot be known")
        elif most[i] < servers[i] < np.inf:
            found.append(
                f"station {name!r} was never full (at most {most[i]:.3g} of {servers[i]:.0f} servers were"
                " busy): that it cannot serve more at once is taken from you, not from the data"
            )
        elif traces.x[:, :, i].min() >= servers[i]:
            found.append(
                f"station {name!r} was always full: its rate follows from the flow through it alone; whether"
                f" it has {servers[i]:.0f} servers of rate {rates[i]:.3g} or others of the same total cannot"
                " be known"
            )
    found += _undetermined(names, most, pairs, information)
    for i, name in enumerate(names):
        if half is not None and rates[i] > 0 and half[i] > VAGUE * rates[i]:
            found.append(
                f"the rate of station {name!r} is only known as {rates[i]:.3g} +- {half[i]:.2g} per second:"
                " more traces that begin with many clients there would help"
            )
    return found


def other_explanations(network: ClosedNetwork, others: Sequence[ClosedNetwork]) -> list[str]:
    """Return what else explains the traces as well as a network, one sentence for each of the others.

    Args:
        network: What was learned.
        others: With the same stations.
    """
    found = []
    for other in others:
        apart = np.abs(np.log(np.maximum(other.rates, 1e-300) / np.maximum(network.rates, 1e-300)))
        apart = np.maximum(apart, np.abs(np.log(other.scv / network.scv)) / 2)
        station = int(np.argmax(apart))
        found.append(
            f"services of station {network.names[station]!r} are of rate {network.rates[station]:.3g} with a"
            f" squared coefficient of variation of {network.scv[station]:.2g}, or of"
            f" {other.rates[station]:.3g} with {other.scv[station]:.2g}: {CANNOT_TELL}"
        )
    return found


def _undetermined(
    names: tuple[str, ...], most: FloatArray, pairs: Pairs, information: FloatArray
) -> list[str]:
    visited = np.flatnonzero(most[pairs[:, 0]] >= EMPTY)
    if not len(visited):
        return []
    among = information[np.ix_(visited, visited)]
    scale = np.sqrt(np.maximum(np.diag(among), 1e-300))
    values, vectors = np.linalg.eigh(among / scale[:, None] / scale[None, :])
    lost = np.flatnonzero(values < UNDETERMINED * values[-1])
    involved = np.flatnonzero((np.abs(vectors[:, lost]) > INVOLVED).any(axis=1))
    if not len(involved):
        return []
    flows = [f"{names[a]}->{names[b]}" for a, b in pairs[visited[involved]]]
    sentence = (
        f"{len(lost)} combination(s) of the flows {', '.join(flows)} leave no trace in the queue lengths:"
        " only their effect together is known; say which do not exist ('--without'), or add other starting"
        " points"
    )
    return [sentence]
