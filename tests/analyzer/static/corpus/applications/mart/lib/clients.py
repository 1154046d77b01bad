from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, overload

from lib.settings import SERVICES, settings
from mup import Communication
from mup.errors import CallError, CallTimeoutError, NoReplicaError

logger = logging.getLogger(__name__)


def url(*parts: object) -> str:
    return "/" + "/".join(str(p) for p in parts)


class ServiceClient:
    name = ""
    prefix = ""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def _path(self, tail: str) -> str:
        return f"{self.prefix}{tail}"

    def get(self, tail: str, **params: Any) -> Any:
        return self.send("GET", tail, params)

    def post(self, tail: str, body: Mapping[str, Any] | None = None) -> Any:
        return self.send("POST", tail, dict(body or {}))

    def send(self, method: str, tail: str, params: dict[str, Any]) -> Any:
        attempt = 0
        while True:
            try:
                return self._comm.call(self.name, self._path(tail), params, method=method).get()
            except NoReplicaError:
                attempt += 1
                if attempt > settings().retries:
                    raise
                logger.warning("no replica of %s", self.name)


class Stock(ServiceClient):
    name = settings().stock
    prefix = "/v1"

    def level(self, sku: str) -> int:
        return self.get("/level", sku=sku).get("n", 0)

    def reserve(self, sku: str, n: int = 1) -> str:
        return self.post("/reserve", {"sku": sku, "n": n})["id"]

    def release(self, id: str) -> None:
        self.post("/release", {"id": id})


class Pricing(ServiceClient):
    name = SERVICES["pricing"]

    def quote(self, sku: str, currency: str) -> float:
        if currency not in settings().currencies:
            raise ValueError(currency)
        return self.get(url("quote"), sku=sku, currency=currency)["price"]


class Users(ServiceClient):
    name = SERVICES["users"]

    def me(self, token: str | None) -> dict | None:
        if not token:
            return None
        try:
            return self.get("/me", token=token)
        except CallError as error:
            if error.status in (401, 403):
                return None
            raise


class Clients:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def __getattr__(self, name: str) -> ServiceClient:
        kinds = {"stock": Stock, "pricing": Pricing, "users": Users}
        try:
            return kinds[name](self.comm)
        except KeyError:
            raise AttributeError(name) from None


def clients(comm: Communication) -> Clients:
    return Clients(comm)
