"""How do replicas and clients talk to the registry? Its HTTP interface, one handler per path.

Every answer is a JSON object; a refused request gets a status of 4xx and ``{"error": ...}``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from mup.errors import did_you_mean
from mup_registry.directory import Directory
from mup_registry.metrics import add_metrics

__all__ = ["application"]

DIRECTORY = web.AppKey("directory", Directory)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_T = TypeVar("_T")
_routes = web.RouteTableDef()


class _Registration(msgspec.Struct, forbid_unknown_fields=True):
    service: str
    url: str
    replica: int = 0
    pid: int = 0
    endpoints: dict[str, str] = {}


class _Reference(msgspec.Struct, forbid_unknown_fields=True):
    id: str


class _Database(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    uri: str


class _DatabaseName(msgspec.Struct, forbid_unknown_fields=True):
    name: str


def application(directory: Directory) -> web.Application:
    """Return the registry as an aiohttp application."""
    app = web.Application(middlewares=[_errors_as_json])
    app[DIRECTORY] = directory
    app.add_routes(_routes)
    add_metrics(app, directory)
    return app


@_routes.get("/healthz")
async def _health(_: web.Request) -> web.Response:
    return _answer({"status": "ok"})


@_routes.post("/register")
async def _register(request: web.Request) -> web.Response:
    data = await _read(request, _Registration)
    if not data.service or "/" in data.service:
        raise _Refused(400, f"service: must be a name without '/', got {data.service!r}")
    if not data.url.startswith(("http://", "https://")):
        raise _Refused(400, f"url: must start with http://, got {data.url!r}")
    if data.replica < 0:
        raise _Refused(400, f"replica: must be >= 0, got {data.replica}")
    for name, path in data.endpoints.items():
        if not path.startswith("/"):
            raise _Refused(400, f"endpoints: the path of {name!r} must start with '/', got {path!r}")
    directory = request.app[DIRECTORY]
    instance = directory.register(
        service=data.service,
        replica=data.replica,
        url=data.url.rstrip("/"),
        pid=data.pid,
        endpoints=data.endpoints,
        now=time.monotonic(),
    )
    return _answer({"id": instance.id, "expiry": directory.expiry})


@_routes.post("/heartbeat")
async def _heartbeat(request: web.Request) -> web.Response:
    data = await _read(request, _Reference)
    if not request.app[DIRECTORY].heartbeat(data.id, time.monotonic()):
        raise _Refused(404, f"unknown instance {data.id!r}; register again")
    return _answer({})


@_routes.post("/deregister")
async def _deregister(request: web.Request) -> web.Response:
    data = await _read(request, _Reference)
    return _answer({"removed": request.app[DIRECTORY].deregister(data.id)})


@_routes.get("/resolve")
async def _resolve(request: web.Request) -> web.Response:
    replicas = _replicas_of(request)
    if not replicas:
        raise _Refused(503, f"service {request.query['service']!r} has no live replica")
    return _answer(random.choice(replicas))


@_routes.get("/replicas")
async def _replicas(request: web.Request) -> web.Response:
    replicas = _replicas_of(request)
    service = request.query["service"]
    endpoints = request.app[DIRECTORY].endpoints[service]
    return _answer({"service": service, "replicas": replicas, "endpoints": endpoints})


@_routes.get("/services")
async def _services(request: web.Request) -> web.Response:
    services = request.app[DIRECTORY].services(time.monotonic())
    return _answer({"services": {name: [i.describe() for i in live] for name, live in services.items()}})


@_routes.get("/databases")
async def _databases(request: web.Request) -> web.Response:
    databases = request.app[DIRECTORY].databases
    name = request.query.get("name")
    if name is None:
        return _answer({"databases": databases})
    if name not in databases:
        raise _Refused(404, f"unknown database {name!r}; {did_you_mean(name, list(databases))}")
    return _answer({"name": name, "uri": databases[name]})


@_routes.post("/databases")
async def _add_database(request: web.Request) -> web.Response:
    data = await _read(request, _Database)
    if not data.name or "://" not in data.uri:
        raise _Refused(
            400, f"a database needs a name and a uri with a scheme, got {data.name!r}, {data.uri!r}"
        )
    request.app[DIRECTORY].databases[data.name] = data.uri
    return _answer({})


@_routes.delete("/databases")
async def _remove_database(request: web.Request) -> web.Response:
    data = await _read(request, _DatabaseName)
    return _answer({"removed": request.app[DIRECTORY].databases.pop(data.name, None) is not None})


class _Refused(Exception):  # noqa: N818 - it becomes an answer, not a failure of the registry
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@web.middleware
async def _errors_as_json(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except _Refused as error:
        return _answer({"error": error.message}, error.status)
    except web.HTTPException as error:
        return _answer({"error": f"{request.method} {request.path}: {error.reason}"}, error.status)


async def _read(request: web.Request, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except msgspec.DecodeError as error:
        raise _Refused(400, f"{request.path}: {error}") from error


def _replicas_of(request: web.Request) -> list[dict[str, Any]]:
    service = request.query.get("service", "")
    if not service:
        raise _Refused(400, f"{request.path}: the query needs ?service=NAME")
    directory = request.app[DIRECTORY]
    live = directory.replicas(service, time.monotonic())
    if live is None:
        raise _Refused(
            404, f"unknown service {service!r}; {did_you_mean(service, list(directory.endpoints))}"
        )
    return [instance.describe() for instance in live]


def _answer(data: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(data), status=status, content_type="application/json")
