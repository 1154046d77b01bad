"""Settings of a service's retries; `mup.runtime.retries` follows them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IDEMPOTENT", "MAX_ATTEMPTS", "RetryPolicy"]

MAX_ATTEMPTS = 10
"""More attempts multiply the load of a service that fails for this very reason."""

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods whose requests may be executed twice, by the definition of HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How the calls of one service are repeated.

    Attributes:
        attempts: At most so many per call, the first included.
        budget: Repeated calls per call, in the long run; what keeps retries from multiplying an outage.
        backoff: Seconds before the second attempt at most; twice as many before each further one. How
            many it is, is random between 0 and that.
        max_backoff: Where doubling ends.
        attempt_timeout: Seconds one attempt of an idempotent call may take; None = as long as the call.

    Raises:
        ValueError: A value is out of range.
    """

    attempts: int = 3
    budget: float = 0.1
    backoff: float = 0.1
    max_backoff: float = 2.0
    attempt_timeout: float | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.attempts <= MAX_ATTEMPTS:
            raise ValueError(f"attempts must be between 2 and {MAX_ATTEMPTS}, got {self.attempts!r}")
        if not 0 < self.budget <= 1:
            raise ValueError(f"budget must be > 0 and <= 1, got {self.budget!r}")
        for name in ("backoff", "max_backoff", "attempt_timeout"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ValueError(f"{name} must be > 0 seconds, got {value!r}")
