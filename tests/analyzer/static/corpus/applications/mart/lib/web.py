from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from lib.settings import STATUS, settings
from mup import Communication
from mup.errors import CallError, CommunicationError, MupError


class Problem(Exception):
    def __init__(self, status: HTTPStatus | int, detail: str = "", **extra: Any) -> None:
        super().__init__(detail)
        self.status = int(status)
        self.body = {"detail": detail, **extra}


def endpoint_errors(handler: Callable[..., Any]) -> Callable[..., None]:
    """Answer what a handler returns, or what went wrong."""

    @functools.wraps(handler)
    def wrapped(self: Any, comm: Communication, **params: Any) -> None:
        began = time.monotonic()
        try:
            result = handler(self, comm, **params)
        except Problem as problem:
            status, body = problem.status, problem.body
        except CallError as error:
            status, body = 502, {"detail": STATUS.get(error.status, "upstream")}
        except CommunicationError:
            status, body = 503, {"detail": "later"}
        else:
            status, body = result if isinstance(result, tuple) else (200, result)
        if settings().audit:
            comm.call("Audit", "/note", {"took": time.monotonic() - began})
        comm.respond(body, status=status)

    return wrapped


def require(condition: Any, status: int, detail: str) -> None:
    if not condition:
        raise Problem(status, detail)


def paged(fetch: Callable[[int], list[Any]], size: int = 20) -> Iterator[Any]:
    page = 0
    while True:
        rows = fetch(page)
        yield from rows
        if len(rows) < size:
            break
        page += 1
