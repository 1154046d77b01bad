"""Where does randomness come from, and how does a number become a random time?

Every token (a flow of control: a client, a parallel branch, the work behind a reply) owns a stream of
random numbers. A client's stream depends on the seed, its reference task and its index alone, a
child's on a draw of its parent, so that changing one part of a model does not disturb the draws of
another, and two what-ifs with the same seed see the same luck (common random numbers).

The generator is splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
2014): 64 bits of state, one addition and one mixing function per draw.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log1p

from mup.lqn.distributions import Constant, Distribution, Empirical, Erlang, Exponential, Uniform

__all__ = ["Stream", "client_stream", "mix", "sampler"]

_MASK = 0xFFFFFFFFFFFFFFFF
_GAMMA = 0x9E3779B97F4A7C15
_UNIT = 2.0**-53


def mix(value: int) -> int:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Stream:
    """The random numbers of one token."""

    __slots__ = ("state",)

    def __init__(self, state: int) -> None:
        self.state = state & _MASK

    def bits(self) -> int:
        """Return the next 64 random bits."""
        self.state = state = (self.state + _GAMMA) & _MASK
        return mix(state)

    def uniform(self) -> float:
        """Return the next number, uniform on [0, 1), with 53 random bits."""
        self.state = value = (self.state + _GAMMA) & _MASK
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((value ^ (value >> 31)) >> 11) * _UNIT

    def child(self) -> Stream:
        """Return the stream of a new token; costs this stream one draw."""
        return Stream(mix(self.bits() ^ _GAMMA))


def client_stream(seed: int, population: int, client: int) -> Stream:
    """Return the stream of one client of the ``population``-th reference task."""
    state = mix((seed + _GAMMA) & _MASK)
    state = mix((state + (population + 1) * _GAMMA) & _MASK)
    return Stream(mix((state + (client + 1) * _GAMMA) & _MASK))


def sampler(distribution: Distribution) -> Callable[[Stream], float]:
    """Return the function that draws one time in seconds from a stream.

    Draws used: none for a constant, ``stages`` for an Erlang, one otherwise. Exponentials come from
    the inverse distribution function, so that more luck always means a longer time.

    Raises:
        TypeError: The family is none of the model schema's.
    """
    if isinstance(distribution, Constant):
        value = distribution.value
        return lambda _stream: value
    if isinstance(distribution, Exponential):
        mean = distribution.mean_value
        return lambda stream: -mean * log1p(-stream.uniform())
    if isinstance(distribution, Erlang):
        stage, stages = distribution.mean_value / distribution.stages, distribution.stages
        return lambda stream: -stage * sum(log1p(-stream.uniform()) for _ in range(stages))
    if isinstance(distribution, Uniform):
        low, width = distribution.low, distribution.high - distribution.low
        return lambda stream: low + width * stream.uniform()
    if isinstance(distribution, Empirical):
        values, count = distribution.values, len(distribution.values)
        return lambda stream: values[int(stream.uniform() * count)]
    raise TypeError(f"no variates for {type(distribution).__name__}")
