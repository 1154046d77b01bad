"""Answers to requests that reach no endpoint."""

from __future__ import annotations

import logging
from collections.abc import Collection
from http import HTTPStatus

import msgspec

from mup.errors import did_you_mean
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.protocol.wire import Answer

__all__ = ["REQUEST_ID", "failure", "generic", "identified", "no_endpoint", "wrong_method"]

REQUEST_ID = "X-Request-Id"
"""Header of every error that mup answers by itself: the id its log lines have."""

_log = logging.getLogger("mup.runtime")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def generic(status: int, request_id: str) -> dict[str, str]:
    """Return what an error in production tells: what its status means, and the id to look for in the log."""
    return {"error": _PHRASES.get(status, f"status {status}"), "request": request_id}


def identified(answer: Answer, request: int, *, production: bool) -> Answer:
    """Return an error answer with the id of its request; in production the log has what it would say.

    Args:
        answer: From one of the functions below; it is changed.
        request: Id of the request.
        production: Whether clients are told nothing but the status.
    """
    request_id = f"{request:016x}"
    answer.headers[REQUEST_ID] = request_id
    if production:
        said = msgspec.json.decode(answer.body) if answer.body else {}
        _log.info("request %s was answered %d: %s", request_id, answer.status, said.get("error", ""))
        answer.body = msgspec.json.encode(generic(answer.status, request_id))
    return answer


def failure(service: str, status: int, message: str, path: str = "") -> Answer:
    """Return an answer with a status and ``{"error", "service", "endpoint"}``."""
    error = {"error": message, "service": service}
    body = {**error, "endpoint": path} if path else error
    return Answer(status, {"Content-Type": "application/json"}, msgspec.json.encode(body))


def no_endpoint(service: str, dispatch: Dispatch, path: str) -> Answer:
    """Return the answer to an unknown path; it suggests the closest one."""
    by_name = {endpoint.name: endpoint.path for endpoint in dispatch.endpoints.values()}
    meant = by_name.get(path.strip("/"), "")
    known = list(dict.fromkeys(by_name.values()))
    hint = f"did you mean {meant!r}?" if meant else did_you_mean(path, known)
    return failure(service, 404, f"service {service!r} has no endpoint {path!r}; {hint}", path)


def wrong_method(service: str, path: str, methods: Collection[str]) -> Answer:
    """Return the answer to a method that a path does not have, although it has others."""
    allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
    answer = failure(service, 405, f"{path!r} is for {allowed}", path)
    answer.headers["Allow"] = allowed
    return answer
