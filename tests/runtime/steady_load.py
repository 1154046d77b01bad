"""A few users who ask again and again while a test breaks something, and what they saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from deployments import Answer, wait_for


@dataclass
class Load:
    """What users saw so far: when they began to ask, how long it took, and the answer."""

    seen: list[tuple[float, float, Answer]] = field(default_factory=list)

    def since(self, moment: float) -> list[tuple[float, float, Answer]]:
        """Return what was asked after a moment."""
        return [one for one in self.seen if one[0] >= moment]

    def bad(self, moment: float = 0.0) -> list[Answer]:
        """Return the answers outside 200 to what was asked after a moment."""
        return [answer for _, _, answer in self.since(moment) if answer.status != 200]

    def slowest(self, moment: float = 0.0) -> float:
        """Return the longest time an answer took."""
        return max(took for _, took, _ in self.since(moment))

    def await_answers(self, count: int, seconds: float = 10.0) -> None:
        """Wait until so many more answers have come."""
        moment = time.monotonic()
        wait_for(lambda: len(self.since(moment)) >= count, seconds)


@contextmanager
def load(ask: Callable[[], Answer], users: int = 3) -> Iterator[Load]:
    """Let users ask until the end of the block; an error of theirs is the test's."""
    load, stop = Load(), threading.Event()
    errors: list[Exception] = []

    def user() -> None:
        try:
            while not stop.wait(0.01):
                began = time.monotonic()
                answer = ask()
                load.seen.append((began, time.monotonic() - began, answer))
        except Exception as error:  # noqa: BLE001 - the test is told
            errors.append(error)

    threads = [threading.Thread(target=user) for _ in range(users)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not errors, errors
    assert not any(thread.is_alive() for thread in threads), "a client still waits for an answer"
