"""Typed clients of the services around the platform."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from mup import Communication
from mup.errors import CallError


class VersionRecord(TypedDict, total=False):
    version: int
    stage: str
    uri: str
    metrics: dict[str, float]
    regions: list[str]


class ViewSpec(TypedDict, total=False):
    name: str
    source: str
    defaults: dict[str, Any]
    max_age: int


class ServiceClient:
    """Remembers the request; subclasses say which service they talk to, and how patiently."""

    service: ClassVar[str]
    timeout: ClassVar[float | None] = None

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def send(self, path: str, **params: Any) -> Any:
        return self.comm.call(self.service, path, params, timeout=self.timeout)


class Metadata(ServiceClient):
    service = "Metadata"
    timeout = 2.0

    def version(self, model: str, version: int | str = "latest") -> VersionRecord | None:
        try:
            return self.send("/get", model=model, version=version).get() or None
        except CallError as error:
            if error.status == 404:
                return None
            raise

    def versions(self, model: str) -> list[VersionRecord]:
        return self.send("/versions", model=model).get().get("versions", [])

    def set_stage(self, model: str, version: int, stage: str) -> None:
        self.send("/update", model=model, version=version, stage=stage).get()


class JobStore(ServiceClient):
    service = "JobStore"

    def get(self, job_id: str) -> dict[str, Any]:
        return self.send("/get", id=job_id).get()

    def find(self, **criteria: Any) -> list[dict[str, Any]]:
        return self.send("/find", **criteria).get().get("jobs", [])

    def mark(self, job_id: str, state: str, **fields: Any) -> None:
        self.send("/update", id=job_id, state=state, **fields).get()


class Catalog(ServiceClient):
    """Async, as all below."""

    service = "Catalog"

    async def view(self, name: str) -> ViewSpec:
        spec = await self.send("/get", name=name)
        return {"name": name, "source": "online", "defaults": {}, **spec}

    async def page(self, cursor: str | None, limit: int) -> dict[str, Any]:
        return await self.send("/list", cursor=cursor, limit=limit)


class OfflineStore(ServiceClient):
    service = "OfflineStore"
    timeout = 10.0

    async def scan(self, view: str, since: str = "", until: str = "") -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the pages of a scan."""
        cursor: str | None = None
        while True:
            page = await self.send("/scan", view=view, since=since, until=until, cursor=cursor)
            if rows := page.get("rows"):
                yield rows
            cursor = page.get("next")
            if cursor is None:
                return


@dataclass(frozen=True, slots=True)
class Prediction:
    model: str
    version: str
    score: float
    label: str | None = None


class ModelServer(ServiceClient):
    service = "ModelServer"
    timeout = 0.8

    async def predict(self, model: str, version: str, features: dict[str, Any]) -> Prediction:
        answer = await self.send("/predict", model=model, version=version, features=features)
        return Prediction(model, version, float(answer.get("score", 0.0)), answer.get("label"))
