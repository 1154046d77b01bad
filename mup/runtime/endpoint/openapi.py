"""OpenAPI 3.1 document of a service, from type hints and docstrings."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from mup.routes import WITHOUT_BODY
from mup.runtime.endpoint.arguments import Arguments, Parameter
from mup.runtime.endpoint.dispatch import Dispatch
from mup.service import MS, EndpointInfo

__all__ = ["document"]

_FORM = "application/x-www-form-urlencoded"


class Failure(msgspec.Struct):
    """What is answered when a request cannot be served."""

    error: str
    service: str
    endpoint: str = ""
    field: str = ""


def document(name: str, service: type[MS], dispatch: Dispatch) -> dict[str, Any]:
    """Return the OpenAPI document of a service.

    An endpoint for every HTTP method is described as ``POST``, which is what calls use, and as ``GET`` if it
    needs no body.

    Args:
        name: Of the service.
        service: Its class.
        dispatch: Its endpoints.
    """
    schemas = _Schemas(dispatch)
    paths: dict[str, dict[str, Any]] = {}
    # Endpoints for one method first: on a shared path, one for all methods serves the rest.
    for endpoint in sorted(dispatch.endpoints.values(), key=lambda e: not e.http_method):
        arguments = dispatch.arguments.get(endpoint.key)
        needs_body = arguments is not None and arguments.body is not None and arguments.body.required
        any_method = ["POST"] if needs_body else ["POST", "GET"]
        methods = [endpoint.http_method] if endpoint.http_method else any_method
        operations = paths.setdefault(endpoint.path, {})
        for method in methods:
            identity = endpoint.name if method == methods[0] else f"{endpoint.name}.{method.lower()}"
            operation = _operation(service, endpoint, method, arguments, dispatch, schemas)
            operations.setdefault(method.lower(), {"operationId": identity, **operation})
    about = inspect.getdoc(service) if service.__doc__ else None
    return {
        "openapi": "3.1.0",
        "info": {"title": name, "version": "unversioned", **({"description": about} if about else {})},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas.components},
    }


class _Schemas:
    """JSON schemas of all types at once, so that equal types are described once."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._parameters = [p for arguments in dispatch.arguments.values() for p in arguments.every()]
        # References to a type must not get into the document: components are the only place for them.
        found, self.components = msgspec.json.schema_components(
            [Failure, *(parameter.type for parameter in self._parameters)],
            ref_template="#/components/schemas/{name}",
        )
        self.failure, *self._schemas = found

    def of(self, parameter: Parameter) -> dict[str, Any]:
        """Return the schema of a parameter, its default included."""
        (schema,) = [s for p, s in zip(self._parameters, self._schemas, strict=True) if p is parameter]
        if parameter.required or parameter.default is None:
            return schema
        return {**schema, "default": msgspec.to_builtins(parameter.default)}


def _operation(
    service: type[MS],
    endpoint: EndpointInfo,
    method: str,
    arguments: Arguments | None,
    dispatch: Dispatch,
    schemas: _Schemas,
) -> dict[str, Any]:
    summary, _, description = (inspect.getdoc(getattr(service, endpoint.method)) or "").partition("\n")
    operation: dict[str, Any] = {}
    if summary:
        operation["summary"] = summary
    if description.strip():
        operation["description"] = description.strip()
    typed = {p.name: schemas.of(p) for p in arguments.path} if arguments else {}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": typed.get(name, {"type": "string"})}
        for name in dispatch.names.get(endpoint.key, ())
    ]
    simple = arguments.simple if arguments else ()
    if arguments is not None and arguments.body is not None:
        schema = schemas.of(arguments.body)
        operation["requestBody"] = {
            "required": arguments.body.required,
            "content": {"application/json": {"schema": schema}},
        }
    elif simple and method not in WITHOUT_BODY:
        fields = {
            "type": "object",
            "properties": {p.name: schemas.of(p) for p in simple},
            "required": [p.name for p in simple if p.required],
        }
        operation["requestBody"] = {
            "required": bool(fields["required"]),
            "content": {kind: {"schema": fields} for kind in ("application/json", _FORM)},
        }
        simple = ()
    parameters += [
        {"name": p.name, "in": "query", "required": p.required, "schema": schemas.of(p)} for p in simple
    ]
    if parameters:
        operation["parameters"] = parameters
    failure = {"content": {"application/json": {"schema": schemas.failure}}}
    operation["responses"] = {"2XX": {"description": "Done."}}
    if arguments is not None:
        operation["responses"]["400"] = {"description": "`field` has a wrong value.", **failure}
    operation["responses"]["default"] = {"description": "It failed.", **failure}
    return operation
