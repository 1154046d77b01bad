"""Closed networks to test with."""

from __future__ import annotations

import math

import numpy as np

from simulator.networks.closed_network import ClosedNetwork


def balancer(servers: tuple[float, ...] = (1000, 30, 25)) -> ClosedNetwork:
    """The running example of chapter 3 of the thesis."""
    return ClosedNetwork(
        names=("W", "C1", "C2"),
        rates=np.array([1.0, 11.0, 11.0]),
        routing=np.array([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]]),
        servers=np.array(servers),
    )


def loop(servers: tuple[float, ...] = (math.inf, 2, 1)) -> ClosedNetwork:
    """Clients can go back and forth between two stations before they come home."""
    return ClosedNetwork(
        names=("home", "A", "B"),
        rates=np.array([0.5, 2.0, 3.0]),
        routing=np.array([[0, 0.7, 0.3], [0.2, 0, 0.8], [0.5, 0.5, 0]]),
        servers=np.array(servers),
    )
