"""Settings of a log: segments, a cap, and the share of requests that are logged."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from mup.errors import DeploymentError

__all__ = ["LogSettings"]

MEGABYTE = 10**6
_FEWEST_SEGMENTS = 4


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every process that writes a log is told.

    Attributes:
        segment: Bytes after which a process goes on in another file.
        keep: Bytes of logs that stay of one process and its predecessors; 0 = all of them.
        sample: One in so many chains of requests is logged.
    """

    segment: int = 256 * MEGABYTE
    keep: int = 0
    sample: int = 1

    @property
    def segment_bytes(self) -> int:
        """Size of a segment: small enough that deleting the oldest one leaves most of what is kept."""
        return min(self.segment, self.keep // _FEWEST_SEGMENTS) if self.keep else self.segment

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> LogSettings:
        """Return what ``MUP_LOG_SEGMENT``, ``MUP_LOG_KEEP`` (megabytes) and ``MUP_LOG_SAMPLE`` say.

        Raises:
            DeploymentError: One of them is not understood.
        """
        default = cls()
        return cls(
            segment=_megabytes(environment, "MUP_LOG_SEGMENT", default.segment, 0.25),
            keep=_megabytes(environment, "MUP_LOG_KEEP", default.keep, 1),
            sample=_sample(environment.get("MUP_LOG_SAMPLE", "")),
        )


def _megabytes(environment: Mapping[str, str], name: str, default: int, least: float) -> int:
    """Return a size in bytes; ``least`` (megabytes) leaves room for a few blocks of the writer."""
    text = environment.get(name, "")
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise DeploymentError(f"{name} must be a number of megabytes >= {least:g}, got {text!r}")
    return int(number * MEGABYTE)


def _sample(text: str) -> int:
    if not text:
        return 1
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise DeploymentError(
            f"MUP_LOG_SAMPLE must be a whole number >= 1 (1 = log everything), got {text!r}"
        )
    return int(text)
