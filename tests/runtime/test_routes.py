"""Requests and calls find their endpoints by path, template, method and name."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from mup.errors import DeploymentError, UsageError
from mup.routes import CallRoutes, Routes, pick, query_string, target_of
from mup.service import EP, MS, endpoints_of

ADDRESSES = [
    "/orders GET",
    "/orders POST",
    "/orders/{order_id}",
    "/orders/last",
    "/orders/{order_id}/items/{item} PUT",
    "/orders/last/items/{item} GET",
    "/über weg/",
]


@pytest.mark.parametrize(
    ("method", "path", "key", "values"),
    [
        pytest.param("GET", "/orders", "/orders GET", (), id="shared-path"),
        pytest.param("HEAD", "/orders", "/orders GET", (), id="head-is-get"),
        pytest.param("DELETE", "/orders", None, (), id="method-nobody-has"),
        pytest.param("PATCH", "/orders/17", "/orders/{order_id}", ("17",), id="any-method"),
        pytest.param("GET", "/orders/last", "/orders/last", (), id="literal-before-parameter"),
        pytest.param("GET", "/orders/a%2Fb%20c", "/orders/{order_id}", ("a/b c",), id="encoded-slash"),
        pytest.param("PUT", "/orders/1/items/2", "/orders/{order_id}/items/{item}", ("1", "2"), id="two"),
        pytest.param("GET", "/orders/last/items/2", "/orders/last/items/{item}", ("2",), id="deep-literal"),
        pytest.param("GET", "/%C3%BCber%20weg/", "/über weg/", (), id="encoded-letters"),
    ],
)
def test_requests_find_their_endpoint(
    method: str, path: str, key: str | None, values: tuple[str, ...]
) -> None:
    """A literal segment wins; an encoded slash stays inside its parameter."""
    found = Routes(ADDRESSES).find(path)
    assert found is not None
    route = pick(found[0], method)
    assert (route and route.key, found[1]) == (key, values)


@pytest.mark.parametrize("path", ["/orders/", "/orders/1/", "/orders//items/1", "/", "/nothing"])
def test_paths_of_no_service(path: str) -> None:
    """A parameter is never empty, and a slash at the end makes another path."""
    assert Routes(ADDRESSES).find(path) is None


@pytest.mark.parametrize(
    ("path", "method", "key"),
    [
        pytest.param("show", "", "/orders/{order_id}", id="name"),
        pytest.param("/orders/{order_id}", "", "/orders/{order_id}", id="template"),
        pytest.param("/orders/5", "", "/orders/{order_id}", id="filled-in"),
        pytest.param("/orders", "POST", "/orders POST", id="method"),
        pytest.param("/nothing/{x}", "", "/nothing/{x}", id="unknown"),
        pytest.param("nothing", "", "/nothing", id="unknown-name"),
    ],
)
def test_calls_find_their_endpoint(path: str, method: str, key: str) -> None:
    """Names, templates and filled-in paths lead to the same key, so that logs have one name for an endpoint."""
    names = {"list": "/orders GET", "create": "/orders POST", "show": "/orders/{order_id} GET"}
    routes = CallRoutes(names)
    assert routes.find(path, method).key == routes.find(path, method).key == key


def test_a_call_says_which_method_it_means() -> None:
    """Where several methods share a path, one has to be named."""
    routes = CallRoutes({"list": "/orders GET", "create": "/orders POST"})
    with pytest.raises(UsageError, match="several methods: GET, POST"):
        routes.find("/orders", "")


def test_params_fill_the_path() -> None:
    """They are encoded; what is left goes on as params."""
    route = CallRoutes({"put": "/a/{x}/b/{y} PUT"}).find("put", "")
    target, rest = target_of(route, "put", {"x": "q/ü", "y": 5, "z": [1]})
    assert (target, rest) == ("/a/q%2F%C3%BC/b/5", {"z": [1]})
    with pytest.raises(UsageError, match="needs the param 'y'"):
        target_of(route, "put", {"x": 1})


@pytest.mark.parametrize("value", ["", ".", "..", [1], {"a": 1}, None, object()])
def test_what_cannot_stand_in_a_path(value: Any) -> None:
    """A value that would change the path, or is none, is refused."""
    route = CallRoutes({"put": "/a/{x}"}).find("put", "")
    with pytest.raises(UsageError):
        target_of(route, "put", {"x": value})


def test_query_strings() -> None:
    """Lists repeat their name, None is left out, and values that are texts elsewhere are texts here."""
    number = uuid.UUID(int=1)
    text = query_string({"a": "x&y", "b": [1, 2.5], "c": None, "d": True, "e": number})
    assert text == f"a=x%26y&b=1&b=2.5&d=true&e={number}"
    with pytest.raises(UsageError):
        query_string({"a": {"b": 1}})


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/a/{x}/{x}", "occurs twice"),
        ("/a/x{y}", "whole segment"),
        ("/a/{}", "name of a parameter"),
        ("/a/{1}", "name of a parameter"),
        ("/a GET", "method="),
    ],
)
def test_templates_that_cannot_be_served(path: str, message: str) -> None:
    """A template that means nothing, or two things, is refused at start."""
    bad = type("Bad", (MS,), {"x": EP(path)(lambda self, comm: None)})
    with pytest.raises(DeploymentError, match=message):
        endpoints_of(bad)


def test_endpoints_that_get_in_each_others_way() -> None:
    """Same path and method, also behind other names of parameters; and a method HTTP does not have."""
    for first, second in (("/a/{x}", "/a/{y}"), ("/a/", "/a/")):
        marks = {
            "x": EP(first, method="GET")(lambda self, comm: None),
            "y": EP(second, method="GET")(lambda self, comm: None),
        }
        with pytest.raises(DeploymentError, match=r"already served|same requests"):
            endpoints_of(type("Bad", (MS,), marks))
    with pytest.raises(DeploymentError, match="method must be one of"):
        endpoints_of(type("Bad", (MS,), {"x": EP("/a", method="get")(lambda self, comm: None)}))


def test_keys() -> None:
    """An endpoint is called by its path; by its method too where it shares the path."""

    class Shop(MS):
        @EP("/orders", method="GET")
        def list(self, comm: object) -> None: ...

        @EP("/orders", method="POST")
        def create(self, comm: object) -> None: ...

        @EP("/orders/{order_id}", method="GET")
        def show(self, comm: object) -> None: ...

    assert [(e.key, e.address) for e in endpoints_of(Shop).values()] == [
        ("/orders GET", "/orders GET"),
        ("/orders POST", "/orders POST"),
        ("/orders/{order_id}", "/orders/{order_id} GET"),
    ]
