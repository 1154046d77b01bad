"""What the log of a service says of calls that are made again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mup.retries import RetryPolicy
from mup.runtime.client.events import EventLog, Operation
from mup.runtime.client.retries import LINES_APART, Failure, Retries


def operation() -> Operation:
    """Return a call that has just failed for the first time."""
    return Operation(EventLog(None, Path()), 1, 2, 1, 0, "S/x/", time.monotonic() + 30.0)


def test_an_outage_is_a_line_per_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All repetitions are counted, the log has the first of each kind, and then how many it held back."""
    retried = []
    retries = Retries(RetryPolicy(attempts=3, budget=1.0, backoff=0.001), "seed", retried.append)
    full, refused = Failure("unavailable", "status 503"), Failure("refused", "no replica")

    def fail(failure: Failure, service: str = "S") -> None:
        retries.called(service)
        assert retries.pause(failure, operation(), service, idempotent=True) is not None

    with caplog.at_level("WARNING", "mup.runtime"):
        for _ in range(5):
            fail(full)
        fail(refused)
        fail(full, "T")
        assert [r.args[2] for r in caplog.records if isinstance(r.args, tuple)] == [
            "status 503",
            "no replica",
            "status 503",
        ]
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + LINES_APART)
        fail(full)
    assert caplog.messages[-1].startswith("S/x/: attempt 1 failed: status 503; again in ")
    assert caplog.messages[-1].endswith("(so did 4 since the last line)")
    assert len(retried) == 8
