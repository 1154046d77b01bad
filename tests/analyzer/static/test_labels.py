"""One rule for how an endpoint is addressed: the analyzer accepts what the runtime carries out, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files

from mup import EP, MS, Communication
from mup.errors import UsageError
from mup.testing import TestClient

SERVICES = """
    from mup import EP, MS, Client, Communication

    class Shop(MS):
        @EP("/search", method="GET")
        def search(self, comm): comm.respond("searched")
        @EP("/orders", method="GET")
        def orders(self, comm): comm.respond("listed")
        @EP("/orders", method="POST")
        def order(self, comm): comm.respond("ordered")
        @EP("/orders/{order_id}", method="PUT")
        def change(self, comm, order_id: int): comm.respond("changed")

    class Caller(MS):
        @EP("/go/")
        def go(self, comm: Communication) -> None:
            comm.call("Shop", CALL).get()
            comm.respond(1)
"""

LABELS = [
    pytest.param('"/search GET"', "write '/search', method='GET'", id="label-of-an-only-method"),
    pytest.param('"/orders POST"', "write '/orders', method='POST'", id="label-of-a-shared-path"),
    pytest.param('"/orders/{order_id} PUT"', "write '/orders/{order_id}', method='PUT'", id="template"),
    pytest.param('"GET /search"', "write '/search', method='GET'", id="method-in-front"),
    pytest.param('"/search GET?page=2"', "write '/search', method='GET'", id="with-a-query"),
]


@pytest.mark.parametrize(("call", "hint"), LABELS)
def test_a_label_is_no_path(tmp_path: Path, call: str, hint: str) -> None:
    """What logs call an endpoint is refused, and the remedy is what can be typed."""
    (found,) = analyse_files(tmp_path, app=SERVICES.replace("CALL", call)).diagnostics
    assert found.code == "MUP012"
    assert hint in found.hint


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        pytest.param('"/serch"', "did you mean '/search' or 'search'?", id="typo"),
        pytest.param('"/orders"', "say which: comm.call(..., '/orders', method='GET')", id="which-of-two"),
        pytest.param('"/search", method="POST"', "'/search' is for GET", id="wrong-method"),
        pytest.param('"search", method="POST"', "is for GET, not for POST", id="wrong-method-of-a-name"),
        pytest.param('"/orders", method="DELETE"', "several methods: GET, POST", id="no-such-method"),
    ],
)
def test_hints_can_be_typed(tmp_path: Path, call: str, hint: str) -> None:
    """No hint contains a label."""
    (found,) = analyse_files(tmp_path, app=SERVICES.replace("CALL", call)).diagnostics
    assert found.code == "MUP012"
    assert hint in found.hint
    assert not any(f"{path} {method}" in found.hint for path in ("/search", "/orders") for method in ("GET",))


@pytest.mark.parametrize(
    ("call", "target"),
    [
        pytest.param('"/search?page=2"', "Shop/search", id="query-string"),
        pytest.param('"search", method="HEAD"', "Shop/search", id="head-of-a-name"),
        pytest.param('"orders/17", method="PUT"', "Shop/orders/{order_id}", id="no-slash-in-front"),
        pytest.param('"orders", method="GET"', "Shop/orders GET", id="name-before-path"),
    ],
)
def test_what_the_runtime_accepts_is_accepted(tmp_path: Path, call: str, target: str) -> None:
    """Queries in the path, ``HEAD`` of a ``GET``, and paths without the slash in front are as for a service."""
    application = analyse_files(tmp_path, app=SERVICES.replace("CALL", call))
    assert application.diagnostics == ()
    assert application.endpoint("Caller/go/").paths[0].operations[0].target == target


def test_stubs_have_the_rule() -> None:
    """A test cannot lay out, and code under test not call, what the runtime would refuse."""

    class Caller(MS):
        @EP("/go/")
        def go(self, comm: Communication) -> None:
            try:
                comm.call("Shop", "/search GET")
            except UsageError as error:
                comm.respond(error.hint)

    with TestClient(Caller) as client:
        assert client.post("/go/").body == "write '/search', method='GET' as arguments of the call"
        with pytest.raises(UsageError, match="is no path"):
            client.stub("Shop", "/search GET", 1)
