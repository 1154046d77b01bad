"""What functions that talk to others have in common."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from mup.errors import CommunicationError

log = logging.getLogger("media")

Function = TypeVar("Function", bound=Callable[..., Any])


def timed(function: Function) -> Function:
    """Log how long a function takes."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            log.debug("%s took %.3f s", function.__name__, time.perf_counter() - begin)

    return wrapper  # type: ignore[return-value]


def retried(times: int) -> Callable[[Function], Function]:
    """Try a function again if a service does not answer; the last failure is the caller's."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for _ in range(times - 1):
                try:
                    return function(*args, **kwargs)
                except CommunicationError as error:
                    log.info("%s: once more, %s", function.__name__, error)
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def optional(default: Any) -> Callable[[Function], Function]:
    """Return a default instead of failing: for what a page can do without."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except CommunicationError:
                return default

        return wrapper  # type: ignore[return-value]

    return decorate
