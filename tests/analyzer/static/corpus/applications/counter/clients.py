"""Typed clients of other services."""

from __future__ import annotations

import functools
import logging
import random
import time
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mup import Communication
from mup.errors import CallError, CallTimeoutError

log = logging.getLogger(__name__)
T = TypeVar("T")


class ApiError(Exception):
    def __init__(self, status: int, detail: str = "") -> None:
        super().__init__(detail or str(status))
        self.status = status
        self.detail = detail

    @classmethod
    def of(cls, error: CallError) -> "ApiError":
        if error.status == 404:
            return NotFound(404, "missing")
        return cls(502 if (error.status or 0) >= 500 else 400)


class NotFound(ApiError):
    pass


def translated(method):
    @functools.wraps(method)
    def wrapper(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except CallError as error:
            raise ApiError.of(error) from error

    return wrapper


class Client:
    service = ""
    timeout: float | None = None

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def _get(self, path: str, **params: Any) -> Any:
        return self._comm.call(self.service, path, params, timeout=self.timeout).get()

    def _start(self, path: str, **params: Any):
        return self._comm.call(self.service, path, params)


class Users(Client):
    service = "Users"
    timeout = 2.0

    @translated
    def get(self, id: str) -> dict:
        return self._get("/user", id=id)

    @translated
    def exists(self, id: str) -> bool:
        return bool(self._get("/exists", id=id))


class Stock(Client):
    service = "Stock"

    def reserve(self, sku: str, count: int) -> bool:
        try:
            self._get("/reserve", sku=sku, count=count)
        except CallError as error:
            if error.status == 409:
                return False
            raise
        return True

    def release(self, sku: str) -> None:
        self._get("/release", sku=sku)

    def levels(self, skus):
        return [self._start("/level", sku=sku) for sku in skus]


class Payments(Client):
    service = "Payments"

    def __getattr__(self, name: str):
        if name not in ("capture", "void"):
            raise AttributeError(name)
        return functools.partial(self._get, "/" + name)


@dataclass
class Clients:
    comm: Communication

    @functools.cached_property
    def users(self) -> Users:
        return Users(self.comm)

    @functools.cached_property
    def stock(self) -> Stock:
        return Stock(self.comm)

    @property
    def payments(self) -> Payments:
        return Payments(self.comm)


def retrying(times: int = 3, on: tuple[type[Exception], ...] = (CallTimeoutError,), base: float = 0.05):
    def decorate(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return f(*args, **kwargs)
                except on:
                    if attempt == times:
                        raise
                    time.sleep(base * 2**attempt * random.random())

        return inner

    return decorate


class Result(Generic[T]):
    def __init__(self, value: T | None = None, error: Exception | None = None) -> None:
        self._value, self._error = value, error

    @classmethod
    def run(cls, f, *args):
        try:
            return cls(f(*args))
        except (CallError, ApiError) as error:
            return cls(error=error)

    def __bool__(self) -> bool:
        return self._error is None

    def map(self, f):
        return Result.run(f, self._value) if self else self

    def or_else(self, other):
        return self._value if self else other() if callable(other) else other
