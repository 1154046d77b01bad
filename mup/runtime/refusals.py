"""What is answered to requests that reach no endpoint?"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from mup.errors import did_you_mean
from mup.runtime.dispatch import Dispatch
from mup.runtime.wire import Answer

__all__ = ["failure", "no_endpoint", "wrong_method"]


def failure(service: str, status: int, message: str, path: str = "") -> Answer:
    """Return an answer with a status and ``{"error", "service", "endpoint"}``."""
    error = {"error": message, "service": service}
    body = {**error, "endpoint": path} if path else error
    return Answer(status, {"Content-Type": "application/json"}, msgspec.json.encode(body))


def no_endpoint(service: str, dispatch: Dispatch, path: str) -> Answer:
    """Return the answer to a path nobody serves; it suggests the closest one."""
    by_name = {endpoint.name: endpoint.path for endpoint in dispatch.endpoints.values()}
    asked = by_name.get(path.strip("/"), "")
    known = list(dict.fromkeys(by_name.values()))
    hint = f"did you mean {asked!r}?" if asked else did_you_mean(path, known)
    return failure(service, 404, f"service {service!r} has no endpoint {path!r}; {hint}", path)


def wrong_method(service: str, path: str, methods: Collection[str]) -> Answer:
    """Return the answer to a method nobody serves on a path that has others."""
    allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
    answer = failure(service, 405, f"{path!r} is for {allowed}", path)
    answer.headers["Allow"] = allowed
    return answer
