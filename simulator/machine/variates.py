"""Random streams, and the sampling of times from them.

Every flow (a client, a parallel branch, the work behind a reply) owns a stream of random numbers. A
client's stream depends on the seed, its reference task and its index alone, a child's on a draw of its
parent, so that changing one part of a model does not disturb the draws of another, and two what-ifs with
the same seed see the same luck (common random numbers).

The generator is splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
2014): 64 bits of state, one addition and one mixing function per draw.

The functions here are compiled once and called by every engine, so that all of them get the same bits:
no two implementations of a logarithm have to agree. They are compiled without fused multiply-add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt

from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Pareto,
    TruncatedNormal,
    Uniform,
    Weibull,
)
from mup.native.binding import compiled, inlined, internal
from mup.native.shapes import ANY, Floats1, Longs1, Word

__all__ = [
    "Stream",
    "Tables",
    "client_stream",
    "client_streams",
    "draw",
    "exponential",
    "mix",
    "mixed",
    "quick_draw",
    "resource_stream",
    "split",
    "tables",
    "uniform",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Bits = Word
Parameters = Annotated[FloatArray, (ANY, 3)]

_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_S11: Final = np.uint64(11)
_S27: Final = np.uint64(27)
_S30: Final = np.uint64(30)
_S31: Final = np.uint64(31)
_UNIT: Final = 2.0**-53

# Families, as the engines see them. The parameters are explained in ``tables``.
CONSTANT: Final = 0
EXPONENTIAL: Final = 1
UNIFORM: Final = 2
ERLANG: Final = 3
EMPIRICAL: Final = 4
GAMMA: Final = 5
LOGNORMAL: Final = 6
WEIBULL: Final = 7
PARETO: Final = 8
TRUNCATED_NORMAL: Final = 9
HYPEREXPONENTIAL: Final = 10
GEOMETRIC: Final = 11


@compiled
def mix(value: Bits) -> Bits:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    value = (value ^ (value >> _S30)) * _MIX_1
    value = (value ^ (value >> _S27)) * _MIX_2
    return value ^ (value >> _S31)


@compiled
def uniform(state: Bits) -> tuple[Bits, float]:
    """Return the next state and a number uniform on [0, 1), with 53 random bits."""
    state = state + _GAMMA
    return state, float(mix(state) >> _S11) * _UNIT


@compiled
def split(state: Bits) -> tuple[Bits, Bits]:
    """Return the next state and the state of a new stream; costs this stream one draw."""
    state = state + _GAMMA
    return state, mix(mix(state) ^ _GAMMA)


@compiled
def client_stream(seed: Bits, population: Bits, client: Bits) -> Bits:
    """Return the stream of one client of the ``population``-th reference task; all arguments uint64."""
    state = mix(seed + _GAMMA)
    state = mix(state + (population + np.uint64(1)) * _GAMMA)
    return mix(state + (client + np.uint64(1)) * _GAMMA)


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return ``mix`` of many values at once."""
    values = (values ^ (values >> _S30)) * _MIX_1
    values = (values ^ (values >> _S27)) * _MIX_2
    return values ^ (values >> _S31)


def client_streams(seed: np.uint64, population: int, clients: int) -> npt.NDArray[np.uint64]:
    """Return ``client_stream`` of the first clients of a reference task, all at once."""
    one = np.uint64(1)
    # Arrays, not numbers: numpy warns of numbers that overflow, and here they are meant to.
    start = mixed(np.array([seed]) + _GAMMA)
    start = mixed(start + (np.array([population], dtype=np.uint64) + one) * _GAMMA)
    return mixed(start + (np.arange(clients, dtype=np.uint64) + one) * _GAMMA)


@compiled
def resource_stream(seed: Bits, kind: Bits, index: Bits) -> Bits:
    """Return the stream of something that decides by itself (a processor, a queue); arguments uint64."""
    return client_stream(~seed, kind, index)


@compiled
def exponential(mean: float, state: Bits) -> tuple[Bits, float]:
    """Return the next state and an exponential time of the given mean."""
    state, u = uniform(state)
    return state, -mean * math.log(1.0 - u)


@compiled
def normal_quantile(p: float) -> float:
    """Return the standard normal's quantile, accurate to about 1e-9 and better after the refinement.

    Rational approximation of P. J. Acklam with one step of Halley's method.
    """
    if p < 0.02425:
        q = math.sqrt(-2.0 * math.log(p))
        x = (
            (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e00) * q
               - 2.549732539343734e00) * q + 4.374664141464968e00) * q + 2.938163982698783e00)
            / ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e00) * q
                + 3.754408661907416e00) * q + 1.0)
        )  # fmt: skip
    elif p <= 0.97575:
        q = p - 0.5
        r = q * q
        x = (
            (((((-3.969683028665376e01 * r + 2.209460984245205e02) * r - 2.759285104469687e02) * r
               + 1.383577518672690e02) * r - 3.066479806614716e01) * r + 2.506628277459239e00) * q
            / (((((-5.447609879822406e01 * r + 1.615858368580409e02) * r - 1.556989798598866e02) * r
                 + 6.680131188771972e01) * r - 1.328068155288572e01) * r + 1.0)
        )  # fmt: skip
    else:
        return -normal_quantile_tail(1.0 - p)
    error = 0.5 * math.erfc(-x / math.sqrt(2.0)) - p
    step = error * math.sqrt(2.0 * math.pi) * math.exp(x * x / 2.0)
    return x - step / (1.0 + x * step / 2.0)


@internal
def normal_quantile_tail(p: float) -> float:
    """Return the quantile for a small probability (the lower tail)."""
    q = math.sqrt(-2.0 * math.log(p))
    x = (
        (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e00) * q
           - 2.549732539343734e00) * q + 4.374664141464968e00) * q + 2.938163982698783e00)
        / ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e00) * q
            + 3.754408661907416e00) * q + 1.0)
    )  # fmt: skip
    error = 0.5 * math.erfc(-x / math.sqrt(2.0)) - p
    step = error * math.sqrt(2.0 * math.pi) * math.exp(x * x / 2.0)
    return x - step / (1.0 + x * step / 2.0)


@internal
def _open_uniform(state: Bits) -> tuple[Bits, float]:
    """Return a number uniform on (0, 1): half a step off both ends."""
    state, u = uniform(state)
    return state, u + _UNIT / 2.0


@internal
def _gamma(shape: float, state: Bits) -> tuple[Bits, float]:
    """Draw a gamma of scale 1 (Marsaglia, Tsang, "A simple method for generating gamma variables", 2000)."""
    boost = 1.0
    if shape < 1.0:
        state, u = _open_uniform(state)
        boost = u ** (1.0 / shape)
        shape = shape + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        state, u = _open_uniform(state)
        x = normal_quantile(u)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        state, u = _open_uniform(state)
        if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return state, boost * d * v


@compiled
def draw(kinds: Longs1, parameters: Parameters, data: Floats1, which: int, state: Bits) -> tuple[Bits, float]:
    """Draw one time in seconds (or one count) of distribution ``which`` of the tables.

    Draws used: none for a constant, ``stages`` for an Erlang, two for a hyperexponential, any number for
    a gamma, one otherwise. Where one is used it goes through the inverse distribution function, so that
    more luck always means a longer time.
    """
    kind = kinds[which]
    a = parameters[which, 0]
    if kind == EXPONENTIAL:
        state, u = uniform(state)
        return state, -a * math.log(1.0 - u)
    if kind == CONSTANT:
        return state, a
    return _draw_other(kind, a, parameters[which, 1], parameters[which, 2], data, state)


@inlined
def quick_draw(
    kinds: Longs1, parameters: Parameters, data: Floats1, which: int, state: Bits
) -> tuple[Bits, float]:
    """Do the same as ``draw``, with the commonest family in place."""
    if kinds[which] == EXPONENTIAL:
        state, u = uniform(state)
        return state, -parameters[which, 0] * math.log(1.0 - u)
    return draw(kinds, parameters, data, which, state)


@internal
def _draw_other(kind: int, a: float, b: float, c: float, data: Floats1, state: Bits) -> tuple[Bits, float]:
    if kind == EMPIRICAL:
        state, u = uniform(state)
        return state, data[int(a) + int(u * b)]
    if kind == UNIFORM:
        state, u = uniform(state)
        return state, a + b * u
    if kind == ERLANG:
        total = 0.0
        for _ in range(int(b)):
            state, u = uniform(state)
            total = total + math.log(1.0 - u)
        return state, -a * total
    if kind == GAMMA:
        state, value = _gamma(b, state)
        return state, a * value
    if kind == LOGNORMAL:
        state, u = _open_uniform(state)
        return state, math.exp(a + b * normal_quantile(u))
    if kind == WEIBULL:
        state, u = uniform(state)
        return state, a * (-math.log(1.0 - u)) ** b
    if kind == PARETO:
        state, u = uniform(state)
        return state, a * (1.0 - u) ** (-b)
    if kind == TRUNCATED_NORMAL:
        state, u = _open_uniform(state)
        return state, max(0.0, a - b * normal_quantile((1.0 - u) * c))
    if kind == GEOMETRIC:
        state, u = uniform(state)
        return state, math.floor(math.log(1.0 - u) * a) if a < 0.0 else 0.0
    # Hyperexponential: the data hold cumulative probabilities, then means.
    state, u = uniform(state)
    first, count = int(a), int(b)
    phase = 0
    while phase < count - 1 and u >= data[first + phase]:
        phase += 1
    state, u = uniform(state)
    return state, -data[first + count + phase] * math.log(1.0 - u)


@dataclass(frozen=True)
class Tables:
    """Distributions as arrays: family, three parameters each, and the data some of them point into."""

    kinds: IntArray
    parameters: FloatArray
    data: FloatArray


def tables(distributions: tuple[Distribution, ...]) -> Tables:
    """Return the tables ``draw`` works on.

    Raises:
        TypeError: A family is none of the model schema's.
    """
    kinds = np.zeros(len(distributions), dtype=np.int64)
    parameters = np.zeros((len(distributions), 3))
    data: list[float] = []
    for index, distribution in enumerate(distributions):
        kinds[index], parameters[index] = _parameters(distribution, data)
    # Not of whole numbers even if all are: the engine would be compiled a second time, for them.
    return Tables(kinds, parameters, np.array(data or [0.0], dtype=np.float64))


def _parameters(distribution: Distribution, data: list[float]) -> tuple[int, tuple[float, float, float]]:
    match distribution:
        case Constant(value):
            return CONSTANT, (value, 0.0, 0.0)
        case Exponential(mean):
            return EXPONENTIAL, (mean, 0.0, 0.0)
        case Uniform(low, high):
            return UNIFORM, (low, high - low, 0.0)
        case Erlang(mean, stages):
            return ERLANG, (mean / stages, stages, 0.0)
        case Empirical(values):
            data.extend(values)
            return EMPIRICAL, (len(data) - len(values), len(values), 0.0)
        case Gamma(mean, scv):
            return GAMMA, (mean * scv, 1.0 / scv, 0.0)
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            return LOGNORMAL, (math.log(mean) - spread / 2 if mean > 0 else -math.inf, math.sqrt(spread), 0.0)
        case Weibull(mean, shape):
            return WEIBULL, (mean / math.gamma(1 + 1 / shape), 1 / shape, 0.0)
        case Pareto(mean, shape):
            return PARETO, (mean * (shape - 1) / shape, 1 / shape, 0.0)
        case TruncatedNormal(location, scale):
            return TRUNCATED_NORMAL, (location, scale, math.erfc(-location / scale / math.sqrt(2)) / 2)
        case Geometric(mean):
            # P(n >= k) = q^k with q = mean / (1 + mean); the inverse is floor(log(1 - u) / log(q)).
            return GEOMETRIC, (-1 / math.log1p(1 / mean) if mean > 0 else 0.0, 0.0, 0.0)
        case Hyperexponential(probabilities, means):
            first = len(data)
            data.extend(math.fsum(probabilities[: i + 1]) for i in range(len(means)))
            data.extend(means)
            return HYPEREXPONENTIAL, (first, len(means), 0.0)
    raise TypeError(f"no variates for {type(distribution).__name__}")


class Stream:
    """The random numbers of one flow, for code that is not compiled."""

    __slots__ = ("state",)

    def __init__(self, state: int) -> None:
        self.state = state

    def uniform(self) -> float:
        """Return the next number, uniform on [0, 1)."""
        self.state, value = uniform(np.uint64(self.state))
        return float(value)

    def exponential(self, mean: float) -> float:
        """Return an exponential time of the given mean."""
        self.state, value = exponential(mean, np.uint64(self.state))
        return float(value)

    def draw(self, source: Tables, which: int) -> float:
        """Return one time in seconds of a distribution."""
        self.state, value = draw(source.kinds, source.parameters, source.data, which, np.uint64(self.state))
        return float(value)

    def child(self) -> Stream:
        """Return the stream of a new flow; costs this stream one draw."""
        self.state, child = split(np.uint64(self.state))
        return Stream(int(child))
