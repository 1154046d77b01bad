"""Ids by which the caller's and the callee's records of one request find each other.

The id of a request follows from the id of the execution that caused it and the number of the remote
operation there, so joining caller and callee needs no record of its own.
"""

from __future__ import annotations

import os
import random

__all__ = ["attempt_of", "child_id", "new_id"]

_MASK = (1 << 64) - 1

# Asking the kernel for every id would cost more than writing an event. Forked processes go their own ways.
_random = random.Random()
_random_bits = _random.getrandbits
os.register_at_fork(after_in_child=_random.seed)


def new_id() -> int:
    """Return a random id of 64 bits, never 0."""
    return _random_bits(64) or 1


def attempt_of(seq: int, number: int) -> int:
    """Return what stands for ``seq`` in the id of a repeated call: each attempt causes a request of its own.

    Args:
        seq: Of the call.
        number: Of the attempt; 0 = the first.
    """
    return seq + (number << 32)


def child_id(request: int, seq: int) -> int:
    """Return the id of the request that operation ``seq`` (counted from 1) of ``request`` causes, never 0.

    The mixing function is splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators").
    """
    z = (request + seq * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) or 1
