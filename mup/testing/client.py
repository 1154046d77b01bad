"""Send requests of a test into a service's endpoints, by the code that serves real ones."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import msgspec

from mup.errors import UsageError
from mup.events.ids import new_id
from mup.events.settings import LogSettings
from mup.routes import pick, query_string
from mup.runtime.client.events import EventLog
from mup.runtime.client.reply import decode_body
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.endpoint.execution import Execution
from mup.runtime.endpoint.refusals import no_endpoint, wrong_method
from mup.runtime.endpoint.worker_tools import WorkerTools
from mup.runtime.protocol import wire
from mup.runtime.worker.worker import ServiceRun
from mup.service import MS, check_service
from mup.testing.stubs import StubCall, StubCommunication, Stubs

__all__ = ["Answer", "TestClient"]

_NOWHERE = "http://127.0.0.1:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an endpoint answered.

    Attributes:
        status: HTTP status.
        headers: By lower-case name.
        body: Decoded as its content type says.
        content: The bytes.
        cookies: Set by the answer.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    content: bytes
    cookies: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class TestClient:
    """One instance of a service in the process of the test; as a context manager it ends with ``teardown``.

    Requests are served one at a time, by the code that serves them in a worker. There is no front: no
    queue, no limits, no static files. Calls and queries of the endpoints need stubs.

    Args:
        service: Class of the service.
        name: Of the service; the name of the class by default.

    Raises:
        DeploymentError: The class cannot be served.
    """

    __test__ = False  # not a test of pytest's, whatever its name

    def __init__(self, service: type[MS], *, name: str = "") -> None:
        name = name or service.__name__
        endpoints = check_service(
            service, pool_size=service.pool_size, replicas=service.replicas, port=service.port
        )
        self._run = ServiceRun(
            service=name,
            kind=service,
            dispatch=Dispatch(service, endpoints),
            replica=0,
            registry=_NOWHERE,
            source=Path(),
            log_dir="",
            log=LogSettings(),
        )
        pool = ConnectionPool()
        log = EventLog(None, Path())
        self._tools = WorkerTools(
            service=name, log=log, silent=log, resolver=Resolver(_NOWHERE, pool), pool=pool
        )
        self._stubs = Stubs(awaited=service.runtime == "async")
        self._instance = service()
        self._instance.service_name = name
        self._runner = asyncio.Runner()
        self._finish(self._instance.setup)

    def __enter__(self) -> TestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def service(self) -> MS:
        """The instance that serves."""
        return self._instance

    @property
    def calls(self) -> list[StubCall]:
        """The calls of the endpoints so far."""
        return self._stubs.calls

    def stub(
        self,
        dest_ms: str,
        path: str,
        answer: Any = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> None:
        """Say what calls of another service get.

        Args:
            dest_ms: Name of the service.
            path: As the endpoint under test writes it: path, template or name.
            answer: Body of the answer; or a function that gets the params and returns it; or a `MupError`,
                which ``get`` raises.
            status: HTTP status.
            headers: Headers of the answer.
            method: For calls with this ``method`` only.

        Raises:
            UsageError: No call can be written like this (``/orders GET``).
        """
        self._stubs.add_call(dest_ms, path, method, answer, status, headers or {})

    def stub_query(self, db_name: str, qry_name: str, answer: Any) -> None:
        """Say what a query gets.

        Args:
            db_name: Name of the database.
            qry_name: Name of the query.
            answer: The documents; or a function that gets ``coll_name`` and ``qry_txt`` and returns them; or
                a `MupError`, which ``get`` raises.
        """
        self._stubs.add_query(db_name, qry_name, answer)

    def get(self, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        """Send a ``GET`` with params in the query string; see `request`."""
        return self.request("GET", path, params, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> Answer:
        """Send a ``POST`` with a JSON body; see `request`."""
        return self.request("POST", path, json=json, **options)

    def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        json: Any = None,
        form: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return the answer; errors of the endpoint are answers with 500, and logged.

        Args:
            method: HTTP method.
            path: May contain a query string.
            params: Of the query string.
            json: Body.
            form: Fields of a form, instead of ``json``.
            files: File name and content by field, together with ``form``.
            body: Bytes, instead of the others.
            headers: Further headers.
            cookies: Of the request.

        Raises:
            UsageError: More than one kind of body is given.
        """
        if (json is not None) + (form is not None or files is not None) + bool(body) > 1:
            raise UsageError("a request has one body: json, form with files, or body")
        path, _, query = path.partition("?")
        if params:
            query = "&".join(part for part in (query, query_string(params)) if part)
        sent = {}
        if json is not None:
            sent["Content-Type"], body = "application/json", msgspec.json.encode(json)
        elif files is not None:
            sent["Content-Type"], body = _multipart(form or {}, files)
        elif form is not None:
            sent["Content-Type"], body = "application/x-www-form-urlencoded", urlencode(form).encode()
        if cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        sent.update(headers or {})
        pairs = [(name.lower().encode("latin-1"), value.encode()) for name, value in sent.items()]
        return _answer(self._serve(method, quote(path, safe="/%"), query, pairs, body), method)

    def close(self) -> None:
        """Let the service tear down."""
        self._finish(self._instance.teardown)
        self._runner.close()

    def _finish(self, method: Callable[[], Any]) -> None:
        """Call a method, and wait for it if it is ``async def``."""
        result = method()
        if inspect.isawaitable(result):
            self._runner.run(_awaited(result))

    def _serve(
        self, method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> wire.Answer:
        run = self._run
        found = run.dispatch.routes.find(path)
        if found is None:
            return no_endpoint(run.service, run.dispatch, unquote(path))
        methods, values = found
        route = pick(methods, method)
        if route is None:
            return wrong_method(run.service, path, methods)
        key, names = route.key, run.dispatch.names.get(route.key, ())
        request = wire.Request(new_id(), new_id(), key, query, headers, body, None, False, method, values)
        kept = _Kept()
        comm = StubCommunication(request, "", self._tools, kept, names)
        comm.stubs = self._stubs
        with Execution(run.service, request, comm):
            endpoint = getattr(self._instance, run.dispatch.endpoints[key].method)
            self._finish(partial(endpoint, comm, **run.dispatch.values(key, comm)))
        assert kept.answer is not None  # noqa: S101 - an endpoint that does not answer gets 500
        return kept.answer


class _Kept:
    """The end of the way for an answer."""

    answer: wire.Answer | None = None

    def send(self, message: wire.FromWorker) -> None:
        if isinstance(message, wire.Answer):
            self.answer = message

    hold = send


async def _awaited(result: Awaitable[Any]) -> None:
    await result


def _answer(answer: wire.Answer, method: str) -> Answer:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    content = b"" if method == "HEAD" else answer.body
    cookies = SimpleCookie()
    for line in answer.cookies:
        cookies.load(line)
    return Answer(
        status=answer.status,
        headers=headers,
        body=decode_body(content, headers.get("content-type", "")),
        content=content,
        cookies={name: morsel.value for name, morsel in cookies.items()},
    )


def _multipart(form: Mapping[str, str], files: Mapping[str, tuple[str, bytes]]) -> tuple[str, bytes]:
    boundary = secrets.token_hex(16)
    parts = [(f'name="{_quoted(name)}"', value.encode()) for name, value in form.items()]
    parts += [
        (f'name="{_quoted(name)}"; filename="{_quoted(filename)}"', content)
        for name, (filename, content) in files.items()
    ]
    lines = [
        f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
        for head, content in parts
    ]
    return f"multipart/form-data; boundary={boundary}", b"".join(lines) + f"--{boundary}--\r\n".encode()


def _quoted(name: str) -> str:
    # As browsers do.
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
