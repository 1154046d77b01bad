"""Closed queueing network with Markov routing.

N clients move between M stations for ever. Station i serves up to ``servers[i]`` of its clients at once, each
at the rate ``rates[i]``, the others wait; a client served there goes to station j with probability
``routing[i, j]``. Units are clients and seconds.

Sources: Garbi's thesis, sections 2.1 and 3.1, and Garbi, Incerto, Tribastone, "Learning Queuing Networks by
Recurrent Neural Networks", ICPE 2020, section 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.errors import ModelError, UsageError, did_you_mean
from mup.lqn.distribution_json import distribution_from_json
from mup.lqn.distributions import Constant, Distribution, Exponential

__all__ = ["EXPONENTIAL", "ClosedNetwork", "FloatArray"]

FloatArray = npt.NDArray[np.float64]

EXPONENTIAL = Exponential(1.0)
"""The shape of exponential services."""
UNIT = 1e-6
"""How far the mean of a shape may be beside 1."""
STOCHASTIC = 1e-9
"""How far a row of the routing matrix may sum beside 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedNetwork:
    """A closed network of first-come first-served stations and Markov routing; checked when made.

    Attributes:
        names: Of the stations, unique; M.
        rates: Services per second of one server; shape (M,), >= 0.
        routing: Probability to go from the station of the row to that of the column; shape (M, M), every row
            sums to 1.
        servers: Clients served at once, whole numbers >= 1 or ``inf``; shape (M,).
        shapes: Service times as multiples of their mean: distributions of mean 1; M. By default all are
            exponential.

    Raises:
        ModelError: A rule is broken; the message names the element.
    """

    names: tuple[str, ...]
    rates: FloatArray
    routing: FloatArray
    servers: FloatArray
    shapes: tuple[Distribution, ...] = ()

    def __post_init__(self) -> None:
        m = len(self.names)
        if not self.shapes:
            object.__setattr__(self, "shapes", (EXPONENTIAL,) * m)
        for attribute in ("rates", "routing", "servers"):
            object.__setattr__(self, attribute, np.asarray(getattr(self, attribute), dtype=np.float64))
        if m < 1 or len(set(self.names)) < m:
            raise ModelError(f"must be different and at least one, got {list(self.names)}", where="names")
        for attribute, shape in (("rates", (m,)), ("routing", (m, m)), ("servers", (m,))):
            values = getattr(self, attribute)
            if values.shape != shape:
                raise ModelError(f"must have the shape {shape}, got {values.shape}", where=attribute)
        if len(self.shapes) != m:
            raise ModelError(f"must be {m} distributions, got {len(self.shapes)}", where="shapes")
        for i, name in enumerate(self.names):
            if abs(self.shapes[i].mean - 1) > UNIT:
                raise ModelError(
                    f"must have the mean 1, got {self.shapes[i].mean!r}", where=f"shapes[{name!r}]"
                )
            rate, servers, row = float(self.rates[i]), float(self.servers[i]), self.routing[i]
            if not 0 <= rate < math.inf:
                raise ModelError(f"must be a number >= 0, got {rate!r}", where=f"rates[{name!r}]")
            if not (servers == math.inf or (servers >= 1 and servers == int(servers))):
                raise ModelError(
                    f"must be a whole number >= 1, or inf, got {servers!r}", where=f"servers[{name!r}]"
                )
            if not ((row >= 0).all() and abs(float(row.sum()) - 1) <= STOCHASTIC):
                raise ModelError(
                    f"must be probabilities that sum to 1, got {row.tolist()}", where=f"routing[{name!r}]"
                )

    @property
    def exponential(self) -> bool:
        """Whether all services are exponential."""
        return all(isinstance(shape, Exponential) for shape in self.shapes)

    @property
    def scv(self) -> FloatArray:
        """Squared coefficients of variation of the services; shape (M,)."""
        return np.array([shape.scv for shape in self.shapes])

    def services(self) -> tuple[Distribution, ...]:
        """Return the times of service in seconds; of a station of rate 0, which serves nothing, 0."""
        return tuple(
            shape.scaled(1 / rate) if rate > 0 else Constant(0.0)
            for shape, rate in zip(self.shapes, self.rates.tolist(), strict=True)
        )

    @property
    def flows(self) -> FloatArray:
        """What the fluid depends on: ``rates[i] * routing[i, j]``, and 0 on the diagonal; shape (M, M).

        A client that is served and stays changes no queue, so self-loops leave no trace here (thesis, theorem
        2.1.1).
        """
        result: FloatArray = self.rates[:, None] * self.routing
        np.fill_diagonal(result, 0.0)
        return result

    @staticmethod
    def of_flows(
        flows: FloatArray,
        names: Sequence[str],
        servers: FloatArray,
        shapes: tuple[Distribution, ...] = (),
    ) -> ClosedNetwork:
        """Return the network without self-loops that has these flows.

        A station that no client leaves has rate 0, and a routing that does not matter: equal probabilities.
        """
        m = len(names)
        rates = flows.sum(axis=1)
        equal = (np.ones((m, m)) - np.eye(m)) / max(1, m - 1) if m > 1 else np.ones((1, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            routing = np.where(rates[:, None] > 0, flows / rates[:, None], equal)
        return ClosedNetwork(names=tuple(names), rates=rates, routing=routing, servers=servers, shapes=shapes)

    def index(self, name: str) -> int:
        """Return the position of a station.

        Raises:
            UsageError: There is none of this name; the message suggests the closest.
        """
        if name not in self.names:
            raise UsageError(f"no station {name!r}; {did_you_mean(name, list(self.names))}")
        return self.names.index(name)

    def with_servers(self, name: str, servers: float) -> ClosedNetwork:
        """Return the network with another number of servers at one station."""
        changed = self.servers.copy()
        changed[self.index(name)] = servers
        return replace(self, servers=changed)

    def with_rate(self, name: str, rate: float) -> ClosedNetwork:
        """Return the network with another rate of service at one station."""
        changed = self.rates.copy()
        changed[self.index(name)] = rate
        return replace(self, rates=changed)

    def with_routing(self, name: str, targets: dict[str, float]) -> ClosedNetwork:
        """Return the network with other probabilities behind one station; those not named become 0."""
        row = np.zeros(len(self.names))
        for target, probability in targets.items():
            row[self.index(target)] = probability
        changed = self.routing.copy()
        changed[self.index(name)] = row
        return replace(self, routing=changed)

    def visits(self, reference: str) -> FloatArray:
        """Return how often each station is visited between two visits of ``reference``; shape (M,).

        Raises:
            ModelError: Clients can get to a place from which they never come back there.
        """
        m, r = len(self.names), self.index(reference)
        # No client leaves a station that never completes a service, wherever its routing points.
        routing = np.where(self.rates[:, None] > 0, self.routing, np.eye(m))
        reached = _reachable(routing, r)
        stuck = [self.names[i] for i in reached if r not in _reachable(routing, i)]
        if stuck:
            raise ModelError(
                f"clients never come back to {reference!r} from {', '.join(stuck)}", where="routing"
            )
        inner = [i for i in reached if i != r]
        visits = np.zeros(m)
        visits[r] = 1.0
        if inner:
            among = self.routing[np.ix_(inner, inner)]
            visits[inner] = np.linalg.solve(np.eye(len(inner)) - among.T, self.routing[r, inner])
        return visits / (1.0 - self.routing[r, r]) if inner else visits

    def to_json(self) -> dict[str, Any]:
        """Return the network as plain data; infinitely many servers are ``"inf"``.

        ``shapes`` are there unless all services are exponential.
        """
        return {
            "names": list(self.names),
            "rates": self.rates.tolist(),
            "routing": self.routing.tolist(),
            "servers": ["inf" if s == math.inf else int(s) for s in self.servers.tolist()],
            **({} if self.exponential else {"shapes": [shape.to_json() for shape in self.shapes]}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> ClosedNetwork:
        """Return the network ``to_json`` wrote."""
        return ClosedNetwork(
            names=tuple(data["names"]),
            rates=np.array(data["rates"], dtype=float),
            routing=np.array(data["routing"], dtype=float),
            servers=np.array([float(s) for s in data["servers"]]),
            shapes=tuple(
                EXPONENTIAL if (shape := distribution_from_json(known)) is None else shape
                for known in data.get("shapes", ())
            ),
        )


def _reachable(routing: FloatArray, start: int) -> list[int]:
    found, todo = {start}, [start]
    while todo:
        new = set(np.flatnonzero(routing[todo.pop()] > 0).tolist()) - found
        found |= new
        todo += new
    return sorted(found)
