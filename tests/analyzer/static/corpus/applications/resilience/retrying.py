"""Decorators for calls that may fail, with the interfaces of the usual libraries."""

import asyncio
import functools
import random
import time
from collections.abc import Callable
from typing import Any

from mup.errors import CallTimeoutError, CommunicationError


class RetryError(Exception):
    def __init__(self, last: BaseException) -> None:
        super().__init__(f"gave up: {last!r}")
        self.last = last


def retry(attempts: int = 3, wait: float = 0.05, on=(CommunicationError,)):
    """Call again if it fails, as tenacity does."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(1, attempts + 1):
                try:
                    return function(*args, **kwargs)
                except on:
                    if attempt == attempts:
                        raise
                    time.sleep(wait * attempt)
            raise AssertionError("unreachable")

        return wrapper

    return decorate


def on_exception(errors, max_tries: int, on_giveup: Callable[[BaseException], Any] | None = None):
    """Call again with growing pauses, as backoff does."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            tries = 0
            while True:
                tries += 1
                try:
                    return function(*args, **kwargs)
                except errors as error:
                    if tries >= max_tries:
                        if on_giveup is not None:
                            on_giveup(error)
                        raise
                    time.sleep(random.uniform(0, 0.1 * 2**tries))

        return wrapper

    return decorate


def retry_async(attempts: int):
    def decorate(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            last = None
            for attempt in range(attempts):
                try:
                    return await function(*args, **kwargs)
                except CommunicationError as error:
                    last = error
                    await asyncio.sleep(0.01 * 2**attempt)
            raise RetryError(last)

        return wrapper

    return decorate


class Attempt:
    def __init__(self, number: int, last: bool) -> None:
        self.number = number
        self.last = last
        self.failed = False

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(self, kind, error, trace) -> bool:
        self.failed = kind is not None and issubclass(kind, CommunicationError)
        return self.failed and not self.last


class Retrying:
    """To be used as ``for attempt in Retrying(3): with attempt: ...``."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts

    def __iter__(self):
        for number in range(self.attempts):
            attempt = Attempt(number, last=number + 1 == self.attempts)
            yield attempt
            if not attempt.failed:
                return


def fallback(value):
    """Return a value if it fails."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except CommunicationError:
                return value

        return wrapper

    return decorate


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise CallTimeoutError("the deadline is over")
        return left
