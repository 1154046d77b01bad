"""First cycle of each client of a closed load.

Clients that all came at once would queue behind each other for as long as their work takes equally long. So
they come one by one, at a share of the warm-up that is random and depends on the seed and the number of the
client alone. The simulator draws the same shares from the same seed (of the first number of a client's
stream, ``simulator.machine.variates.client_stream``) and spreads its clients over one cycle.
"""

from __future__ import annotations

__all__ = ["start_share"]

GAMMA = 0x9E3779B97F4A7C15
BITS = 0xFFFFFFFFFFFFFFFF


def start_share(seed: int, client: int) -> float:
    """Return when a client comes, as a share of the time clients have to come: 0 <= share < 1.

    Source: splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).

    Args:
        seed: Of the load.
        client: From 0.
    """
    stream = _mix((seed & BITS) + GAMMA)
    stream = _mix(stream + GAMMA)  # the first reference task
    stream = _mix(stream + (client + 1) * GAMMA)
    return (_mix(stream + GAMMA) >> 11) * 2.0**-53


def _mix(value: int) -> int:
    value &= BITS
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & BITS
    return value ^ (value >> 31)
