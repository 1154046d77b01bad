"""The OpenAPI document says what a service accepts, in the form tools expect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from mup.cli.main import cli
from mup.runtime.endpoint.dispatch import Dispatch
from mup.runtime.endpoint.openapi import document
from mup.service import EP, MS, endpoints_of


class Item(msgspec.Struct):
    """One thing."""

    price: float


class Failure(msgspec.Struct):
    """A user's type that is called like mup's own."""

    why: str


class Shop(MS):
    """Sells things."""

    @EP("/orders", method="GET")
    def list(self, comm: Any, limit: int = 10, tag: list[str] | None = None) -> None:
        """List orders.

        The newest come first.
        """

    @EP("/orders", method="POST")
    def create(self, comm: Any, items: list[Item], dry: bool = False) -> None: ...

    @EP("/orders/{order_id}/{part}", method="PUT")
    def change(self, comm: Any, order_id: int, note: str) -> None: ...

    @EP("/any")
    def any(self, comm: Any) -> None: ...

    @EP("/any", method="GET")
    def any_get(self, comm: Any) -> None: ...

    @EP("/failed")
    def failed(self, comm: Any, failure: Failure) -> None: ...


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The document of Shop, as it is sent."""
    made = document("Shop", Shop, Dispatch(Shop, endpoints_of(Shop)))
    decoded: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return decoded


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in described["paths"].items():
        assert set(item) <= {"get", "head", "post", "put", "patch", "delete", "options"}
        for operation in item.values():
            yield path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_what_every_document_needs(described: dict[str, Any]) -> None:
    """The required fields of the format; every reference leads somewhere; operations have names of their own."""
    assert described["openapi"] == "3.1.0"
    assert described["info"] == {"title": "Shop", "version": "unversioned", "description": "Sells things."}
    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert set(references(described)) <= known
    names = [operation["operationId"] for _, operation in operations(described)]
    assert len(names) == len(set(names)) == 6
    for path, operation in operations(described):
        in_path = [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"]
        assert in_path == re.findall(r"{(\w+)}", path)
        assert all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path")
        assert all(isinstance(r["description"], str) for r in operation["responses"].values())


def test_parameters_and_bodies(described: dict[str, Any]) -> None:
    """Query, body and path parameters carry the schema of their hints, and docstrings become texts."""
    paths = described["paths"]
    listing = paths["/orders"]["get"]
    assert (listing["summary"], listing["description"]) == ("List orders.", "The newest come first.")
    limit = {"name": "limit", "in": "query", "required": False, "schema": {"type": "integer", "default": 10}}
    assert listing["parameters"][0] == limit
    create = paths["/orders"]["post"]
    schema = create["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}
    assert [(p["name"], p["in"]) for p in create["parameters"]] == [("dry", "query")]
    change = paths["/orders/{order_id}/{part}"]["put"]
    assert [p["schema"] for p in change["parameters"]] == [{"type": "integer"}, {"type": "string"}]
    fields = change["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"]
    assert (fields["required"], fields["properties"]) == (["note"], {"note": {"type": "string"}})
    assert described["components"]["schemas"]["Item"]["properties"]["price"] == {"type": "number"}


def test_endpoints_for_every_method(described: dict[str, Any]) -> None:
    """POST, and GET unless another endpoint has it or a body is needed."""
    assert {m: o["operationId"] for m, o in described["paths"]["/any"].items()} == {
        "get": "any_get",
        "post": "any",
    }
    assert set(described["paths"]["/failed"]) == {"post"}


def test_the_command_prints_it(tmp_path: Path) -> None:
    """For the only service, or the one that is named."""
    (tmp_path / "openapi_shop.py").write_text(
        "from mup import EP, MS\nclass Shop(MS):\n    @EP('/a/{x}')\n    def a(self, comm, x: int): comm.respond(x)\n"
    )
    (tmp_path / "mup.toml").write_text("[services.Shop]\nclass = 'openapi_shop:Shop'\n")
    done = CliRunner().invoke(cli, ["openapi", str(tmp_path)], catch_exceptions=False)
    assert list(json.loads(done.output)["paths"]) == ["/a/{x}"]
    file = tmp_path / "api.json"
    CliRunner().invoke(
        cli, ["openapi", str(tmp_path), "--service", "Shop", "-o", str(file)], catch_exceptions=False
    )
    assert json.loads(file.read_text()) == json.loads(done.output)
