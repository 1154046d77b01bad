"""The endpoint that a call means: by name, path, template, filled-in path, and HTTP method."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes

SERVICES = """
    from mup import EP, MS, Communication

    class Shop(MS):
        @EP("/orders", method="GET")
        def orders(self, comm): comm.respond([])
        @EP("/orders", method="POST")
        def order(self, comm): comm.respond(1)
        @EP("/orders/{order_id}")
        def show(self, comm, order_id: int, verbose: bool = False):
            if verbose:
                comm.call("Shop", "status").get()
            comm.respond(order_id)
        @EP("/orders/{order_id}/items/{item}", name="item", method="PUT")
        def change(self, comm, order_id: int, item: str): comm.respond(1)
        @EP("/status")
        def status(self, comm): comm.respond("ok")

    class Caller(MS):
        @EP("/go/")
        def go(self, comm: Communication) -> None:
            comm.call(CALL).get()
            comm.respond(1)
"""


@pytest.mark.parametrize(
    ("call", "target"),
    [
        pytest.param('"Shop", "/orders", method="GET"', "Shop/orders GET", id="path-and-method"),
        pytest.param('"Shop", "/orders", {}, None, None, "POST"', "Shop/orders POST", id="by-position"),
        pytest.param('"Shop", "order"', "Shop/orders POST", id="name"),
        pytest.param(
            '"Shop", "/orders/{order_id}", {"order_id": 1}', "Shop/orders/{order_id}", id="template"
        ),
        pytest.param('"Shop", "/orders/17"', "Shop/orders/{order_id}", id="filled-in"),
        pytest.param('"Shop", "item"', "Shop/orders/{order_id}/items/{item}", id="one-method-only"),
        pytest.param(
            '"Shop", "/orders/17/items/b"', "Shop/orders/{order_id}/items/{item}", id="two-filled-in"
        ),
        pytest.param('"Shop", "/status", method="GET"', "Shop/status", id="any-method"),
        pytest.param(
            '"Shop", "/status", idempotent=comm.params["again"]', "Shop/status", id="may-be-repeated"
        ),
    ],
)
def test_a_call_addresses(tmp_path: Path, call: str, target: str) -> None:
    """The target has the HTTP method only where several endpoints share the path, as in the log."""
    application = analyse_files(tmp_path, app=SERVICES.replace("CALL", call))
    assert codes(application) == []
    (path,) = application.endpoint("Caller/go/").paths
    assert path.operations[0].target == target


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param('"Shop", "/orders"', "MUP012", id="which-of-two"),
        pytest.param('"Shop", "/orders", method="PUT"', "MUP012", id="no-such-method"),
        pytest.param('"Shop", "/orders/17/lines"', "MUP012", id="no-such-path"),
        pytest.param('"Shop", "/orders", method=comm.params["m"]', "MUP010", id="method-of-the-request"),
    ],
)
def test_a_call_that_addresses_nothing(tmp_path: Path, call: str, code: str) -> None:
    """One finding each; an unknown method leaves nothing to choose from."""
    application = analyse_files(tmp_path, app=SERVICES.replace("CALL", call))
    assert code in codes(application)


def test_parameters_of_a_request_are_not_known(tmp_path: Path) -> None:
    """A default says nothing about what a request brings: both ways are paths."""
    application = analyse_files(tmp_path, app=SERVICES.replace("CALL", '"Shop", "status"'))
    assert len(application.endpoint("Shop/orders/{order_id}").paths) == 2


@pytest.mark.parametrize(
    ("decorator", "code"),
    [
        pytest.param('@EP("/status", name="other")', "MUP005", id="same-path"),
        pytest.param('@EP("/orders/{number}")', "MUP005", id="same-template"),
        pytest.param('@EP("/orders", name="other", method="GET")', "MUP005", id="same-method"),
        pytest.param('@EP("/x", method="FETCH")', "MUP006", id="no-method"),
        pytest.param('@EP("/x/{a}b")', "MUP006", id="half-a-segment"),
        pytest.param('@EP("/x", name="pages/x")', "MUP006", id="name-like-a-path"),
    ],
)
def test_endpoints_that_cannot_be_served(tmp_path: Path, decorator: str, code: str) -> None:
    """What the service would refuse at start is found before."""
    more = f"        {decorator}\n        def more(self, comm): comm.respond(1)\n\n    class Caller"
    source = SERVICES.replace("CALL", '"Shop", "status"').replace("    class Caller", more, 1)
    assert codes(analyse_files(tmp_path, app=source)) == [code]
