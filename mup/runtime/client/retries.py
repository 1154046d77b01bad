"""Retries of failed calls, never more often than the budget of their service allows.

The budget is a bucket of tokens per worker and destination: every call puts a fraction of a token in, every
repetition takes a whole one out. While all is well it fills up to a small reserve; in an outage the reserve
is soon gone, and from then on the callee gets no more than that fraction on top of what it would get anyway.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from mup.errors import CallTimeoutError, CommunicationError, MupError, NoReplicaError, UnknownServiceError
from mup.retries import RetryPolicy
from mup.runtime.client.events import Operation
from mup.runtime.client.reply import RawResponse
from mup.runtime.protocol.wire import Retried

__all__ = ["Failure", "Retries", "failure_of"]

_log = logging.getLogger("mup.runtime")
RESERVE = 5.0
"""Tokens a bucket holds at most, and begins with: a service with few calls could never repeat one else."""

LINES_APART = 1.0
"""Seconds between two lines about the same kind of failure of a service: in an outage there are thousands."""

Reason = Literal["refused", "unavailable", "lost"]


class Failure(NamedTuple):
    """Why an attempt failed, as far as it matters for another one.

    Attributes:
        reason: ``refused``: no replica accepts connections. ``unavailable``: it was refused, and we were
            told to come again. ``lost``: it is unknown whether it was executed.
        text: For the log.
        wait: Seconds the callee wants us to wait.
    """

    reason: Reason
    text: str
    wait: float = 0.0


@dataclass(slots=True)
class _Line:
    """What the log says of one kind of failure.

    Attributes:
        due: When it may say more, on the monotonic clock.
        held_back: Repetitions since the last line.
    """

    due: float = 0.0
    held_back: int = 0


class Retries:
    """Decides for all calls of one worker.

    Args:
        policy: As the service is configured.
        seed: Of the jitter.

    Attributes:
        report: Gets what there is to count.
    """

    def __init__(
        self, policy: RetryPolicy, seed: str, report: Callable[[Retried], None] = lambda _: None
    ) -> None:
        self._policy = policy
        self._random = random.Random(seed)
        self._tokens: dict[str, float] = {}
        self._lines: dict[tuple[str, Reason], _Line] = {}
        self.report = report

    def called(self, service: str) -> None:
        """Note a call that is no repetition."""
        tokens = self._tokens.get(service, RESERVE)
        self._tokens[service] = min(RESERVE, tokens + self._policy.budget)

    def limit(self, deadline: float, now: float, *, idempotent: bool) -> float:
        """Return the deadline of an attempt that begins now, given that of its call."""
        seconds = self._policy.attempt_timeout
        # Giving up early is of use only where another attempt may follow.
        return min(deadline, now + seconds) if seconds is not None and idempotent else deadline

    def pause(
        self, failure: Failure, operation: Operation, service: str, *, idempotent: bool
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None = there is none.

        Args:
            failure: Of the last attempt.
            operation: The call, and its attempt that has failed.
            service: The destination.
            idempotent: Whether executing the call twice does no harm.
        """
        policy, attempt = self._policy, operation.attempt
        if attempt + 1 >= policy.attempts or (failure.reason == "lost" and not idempotent):
            return None
        most = min(policy.max_backoff, policy.backoff * 2**attempt)
        # Between 0 and the limit, so that callers that failed together do not come back together.
        seconds = failure.wait + self._random.uniform(0.0, most)
        if seconds >= operation.deadline - time.monotonic():
            return None
        tokens = self._tokens.get(service, RESERVE)
        made = tokens >= 1
        self.report(Retried(service, failure.reason, made))
        if not made:
            return None
        self._tokens[service] = tokens - 1
        line = self._lines.setdefault((service, failure.reason), _Line())
        line.held_back += 1
        now = time.monotonic()
        if now >= line.due:
            more = f" (so did {line.held_back - 1} since the last line)" if line.held_back > 1 else ""
            said = (operation.name, attempt + 1, failure.text, seconds, more)
            _log.warning("%s: attempt %d failed: %s; again in %.3g s%s", *said)
            line.due, line.held_back = now + LINES_APART, 0
        return seconds


def failure_of(answer: RawResponse | None, error: MupError | None, *, lost: bool) -> Failure | None:
    """Return why what came of an attempt calls for another one; None = it does not.

    Args:
        answer: What was answered.
        error: Why nothing was.
        lost: Whether a request without an answer may have been executed.
    """
    if answer is not None:
        if answer.status == 502:
            return Failure("lost", "status 502")
        after = answer.headers.get("retry-after")
        if answer.status != 503 or after is None:
            return None
        # A date is possible, too; a callee that sends one has no short wait in mind.
        return Failure("unavailable", "status 503", float(after) if after.isdecimal() else 0.0)
    if not isinstance(error, CommunicationError):
        return None
    if lost:
        return Failure("lost", error.message)
    if isinstance(error, NoReplicaError | CallTimeoutError) and not isinstance(error, UnknownServiceError):
        return Failure("refused", error.message)
    return None
