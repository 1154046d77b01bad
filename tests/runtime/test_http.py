"""HTTP of running services: methods, parameters, forms, uploads, cookies, redirects."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from deployments import System, ask, make_project, running, wait_for

from mup.events.reader import read_log
from mup.events.record import Event

pytestmark = pytest.mark.services

SOURCE = '''
from __future__ import annotations

import msgspec

from mup import EP, MS, Communication
from mup.communication import Cookie


class Item(msgspec.Struct):
    name: str
    price: float


class Order(msgspec.Struct):
    """What a customer wants to buy."""

    items: list[Item]
    note: str | None = None


class Shop(MS):
    pool_size = 2

    @EP("/orders", method="GET")
    def list(self, comm: Communication, limit: int = 10) -> None:
        """List orders.

        The newest come first.
        """
        comm.respond({"limit": limit, "method": comm.method})

    @EP("/orders", method="POST")
    def create(self, comm: Communication, order: Order) -> None:
        comm.respond({"total": sum(i.price for i in order.items)}, status=201, headers={"Location": "/orders/1"})

    @EP("/orders/{order_id}", method="GET")
    def show(self, comm: Communication, order_id: int, verbose: bool = False) -> None:
        comm.respond([order_id, verbose])

    @EP("/orders/{order_id}", method="DELETE")
    def delete(self, comm: Communication, order_id: int) -> None:
        comm.respond(status=204)

    @EP("/any/{what}")
    def any(self, comm: Communication) -> None:
        comm.respond({"method": comm.method, **comm.params})

    @EP("/cookies")
    def cookies(self, comm: Communication) -> None:
        comm.respond(dict(comm.cookies), cookies={
            "session": "a b;c", "gone": Cookie(value="", max_age=0, secure=True, path="/x")})

    @EP("/bad-cookie")
    def bad_cookie(self, comm: Communication) -> None:
        comm.respond(cookies={"a": Cookie(value="x", path=comm.params["path"])})

    @EP("/raw")
    def raw(self, comm: Communication) -> None:
        comm.respond(len(comm.body))

    @EP("/away")
    def away(self, comm: Communication) -> None:
        comm.respond(status=303, headers={"Location": "/orders"})

    @EP("/trace")
    def trace(self, comm: Communication) -> None:
        comm.respond({
            "in": comm.headers.get("traceparent"), "state": comm.headers.get("tracestate"),
            "out": comm.traceparent, "id": comm.request_id})

    @EP("/upload", method="POST")
    def upload(self, comm: Communication, title: str) -> None:
        comm.respond([title, {
            field: [[f.filename, f.content_type, len(f.data), sum(f.data)] for f in files]
            for field, files in comm.files.items()}])


class Buyer(MS):
    pool_size = 2

    @EP("/buy")
    def buy(self, comm: Communication) -> None:
        created = comm.call("Shop", "/orders", {"items": [{"name": "tea", "price": 2}]}, method="POST")
        shown = comm.call("Shop", "/orders/{order_id}", {"order_id": 5, "verbose": True}, method="GET")
        named = comm.call("Shop", "show", {"order_id": 6})
        filled = comm.call("Shop", "/any/a%2Fb?x=1", {"y": 2})
        gone = comm.call("Shop", "delete", {"order_id": 7})
        comm.respond([created.get(), shown.get(), named.get(), filled.get(), gone.get(check=False).status])

    @EP("/trace")
    def trace(self, comm: Communication) -> None:
        comm.respond([comm.request_id, comm.call("Shop", "/trace").get()])

    @EP("/wrong")
    def wrong(self, comm: Communication) -> None:
        answer = comm.call("Shop", "create", {"items": [{"name": "tea", "price": "x"}]}).get(check=False)
        comm.respond([answer.status, answer.body["field"]])


class Waiter(MS):
    """The same calls, awaited."""

    runtime = "async"
    pool_size = 2

    @EP("/buy/{order_id}", method="GET")
    async def buy(self, comm: Communication, order_id: int, verbose: bool = True) -> None:
        shown = comm.call("Shop", "/orders/{order_id}", {"order_id": order_id, "verbose": verbose}, method="GET")
        created = comm.call("Shop", "create", {"items": [{"name": "tea", "price": 2}]})
        comm.respond([await shown, await created])

    @EP("/trace")
    async def trace(self, comm: Communication) -> None:
        comm.respond([comm.request_id, await comm.call("Shop", "/trace")])
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Shop and Buyer."""
    with running(make_project(tmp_path_factory.mktemp("http"), SOURCE, "Shop", "Buyer", "Waiter")) as system:
        yield system


def test_methods_choose_the_endpoint(shop: System) -> None:
    """GET and POST of one path reach different endpoints; HEAD is GET without a body."""
    url = shop.url("Shop")
    assert ask(url, "/orders?limit=3").body == {"limit": 3, "method": "GET"}
    order = json.dumps({"items": [{"name": "tea", "price": 2.5}, {"name": "milk", "price": 1}]}).encode()
    created = ask(url, "/orders", order, content_type="application/json")
    assert (created.status, created.body, created.headers["location"]) == (201, {"total": 3.5}, "/orders/1")
    head = ask(url, "/orders", method="HEAD")
    assert (head.status, head.raw) == (200, b"")
    assert ask(url, "/any/x", method="PATCH").body == {"method": "PATCH", "what": "x"}


def test_other_methods_are_refused(shop: System) -> None:
    """405 says what is allowed."""
    refused = ask(shop.url("Shop"), "/orders/5", b"{}", method="PUT")
    assert (refused.status, refused.headers["allow"]) == (405, "DELETE, GET, HEAD")
    assert "DELETE, GET, HEAD" in refused.body["error"]


def test_wrong_values_are_the_clients_fault(shop: System) -> None:
    """400 names the field; the service is not disturbed."""
    url = shop.url("Shop")
    refused = ask(
        url, "/orders", b'{"items": [{"name": "a", "price": "x"}]}', content_type="application/json"
    )
    assert refused.status == 400
    assert refused.body == {
        "error": "Expected `float`, got `str`",
        "field": "items[0].price",
        "service": "Shop",
        "endpoint": "/orders POST",
    }
    assert ask(url, "/orders/five").body["field"] == "order_id"
    assert ask(url, "/orders/5?verbose=1").body == [5, True]


def test_calls_fill_paths_and_choose_methods(shop: System) -> None:
    """By template, by name, by filled-in path; the log of both sides has one name per endpoint."""
    assert ask(shop.url("Buyer"), "/buy").body == [
        {"total": 2.0},
        [5, True],
        [6, False],
        {"method": "POST", "x": "1", "y": 2, "what": "a/b"},
        204,
    ]
    expected = {
        "Shop/orders POST": 1,
        "Shop/orders/{order_id} GET": 2,
        "Shop/any/{what}": 1,
        "Shop/orders/{order_id} DELETE": 1,
    }

    def called() -> bool:
        names: Counter[str] = Counter()
        for file in shop.logs.glob("Buyer.*.w*.mlog"):
            log = read_log(file)
            names.update(log.names[r["name"]] for r in log.records if r["event"] == Event.CONTACT_DEST)
        return all(names[name] == count for name, count in expected.items())

    def served() -> bool:
        logs = shop.logs.glob("Shop.*.w*.mlog")
        return set(expected) <= {name for file in logs for name in read_log(file).names.values()}

    wait_for(called)
    wait_for(served)


def test_async_endpoints_do_the_same(shop: System) -> None:
    """Typed parameters, templates, methods and names; a wrong value is refused before the endpoint runs."""
    url = shop.url("Waiter")
    assert ask(url, "/buy/5?verbose=0").body == [[5, False], {"total": 2.0}]
    assert ask(url, "/buy/x").body["field"] == "order_id"


def test_a_refused_call_says_why(shop: System) -> None:
    """The caller sees the field."""
    assert ask(shop.url("Buyer"), "/wrong").body == [400, "items[0].price"]


def test_bodies_of_other_kinds(shop: System) -> None:
    """415 for what is not decoded; an endpoint that looks at the bytes alone gets them."""
    url = shop.url("Shop")
    packed = gzip.compress(b'{"items": []}')
    for service in ("Shop", "Waiter"):
        refused = ask(
            shop.url(service),
            {"Shop": "/orders", "Waiter": "/trace"}[service],
            packed,
            content_type="application/json",
            content_encoding="gzip",
        )
        assert (refused.status, refused.body["service"]) == (415, service)
    assert "not encoded as 'gzip'" in refused.body["error"]
    assert ask(url, "/orders", b"<order/>", content_type="text/xml").status == 415
    raw = ask(url, "/raw", packed, content_type="application/octet-stream", content_encoding="gzip")
    assert raw.body == len(packed)


def test_cookies_and_redirects(shop: System) -> None:
    """Cookies are read, set, deleted; a redirect has no body."""
    url = shop.url("Shop")
    answer = ask(url, "/cookies", cookie='a=1; of somebody else; x={"y": 1}; b=two')
    assert answer.body == {"a": "1", "x": '{"y": 1}', "b": "two"}
    away = ask(url, "/away")
    assert (away.status, away.headers["location"], away.raw) == (303, "/orders", b"")
    assert "content-type" not in away.headers or away.headers["content-type"] != "application/json"


def test_several_cookies_are_several_headers(shop: System) -> None:
    """Each has its attributes; values are quoted."""
    import http.client
    from http.cookies import SimpleCookie
    from urllib.parse import urlsplit

    parts = urlsplit(shop.url("Shop"))
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=10)
    connection.request("GET", "/cookies")
    lines = connection.getresponse().msg.get_all("set-cookie") or []
    connection.close()
    first, second = (SimpleCookie(line) for line in lines)
    assert first["session"].value == "a b;c"
    assert (first["session"]["path"], first["session"]["samesite"]) == ("/", "Lax")
    assert first["session"]["httponly"]
    assert (second["gone"]["max-age"], second["gone"]["path"]) == ("0", "/x")
    assert second["gone"]["secure"]


def test_nothing_is_injected_by_cookies(shop: System) -> None:
    """An attribute that would start another one is refused."""
    assert ask(shop.url("Shop"), "/bad-cookie?path=/;%20Domain=x").status == 500


def _multipart(*parts: tuple[str, str, bytes], boundary: str = "xyz") -> bytes:
    lines = [
        f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n{more}\r\n".encode() + content + b"\r\n"
        for name, more, content in parts
    ]
    return b"".join(lines) + f"--{boundary}--\r\n".encode()


def test_uploads(shop: System) -> None:
    """Binary content arrives unchanged, with line breaks and dashes; folders of file names do not."""
    data = bytes(range(256)) * 3 + b"\r\n--xy\r\n"
    body = _multipart(
        ('name="title"', "", "Über".encode()),
        ('name="doc"; filename="C:\\\\temp\\\\ä ; b.bin"', "Content-Type: image/png\r\n", data),
        ('name="doc"; filename="../../b"', "", b""),
    )
    answer = ask(shop.url("Shop"), "/upload", body, content_type="multipart/form-data; boundary=xyz")
    assert answer.body == [
        "Über",
        {"doc": [["ä ; b.bin", "image/png", len(data), sum(data)], ["b", "application/octet-stream", 0, 0]]},
    ]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("multipart/form-data", b"--xyz--", id="no-boundary"),
        pytest.param("multipart/form-data; boundary=xyz", b"--xyz\r\n\r\n", id="no-end"),
        pytest.param("multipart/form-data; boundary=xyz", b"--xyz\r\nx\r\n\r\n1\r\n--xyz--", id="no-name"),
        pytest.param("multipart/form-data; boundary=xyz", b"\r\n--xyz" * 5000 + b"--", id="many-parts"),
        pytest.param(
            "multipart/form-data; boundary=xyz", _multipart(('name="title"', "", b"\xff")), id="no-text"
        ),
    ],
)
def test_broken_uploads_are_the_clients_fault(shop: System, kind: str, body: bytes) -> None:
    """400, whatever is wrong."""
    assert ask(shop.url("Shop"), "/upload", body, content_type=kind).status == 400


def test_a_replica_describes_itself(shop: System) -> None:
    """The OpenAPI document is served by every replica."""
    described = ask(shop.url("Shop"), "/mup/openapi.json").body
    assert described["paths"]["/orders"]["get"]["summary"] == "List orders."
    assert described["components"]["schemas"]["Order"]["description"] == "What a customer wants to buy."


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_traces_go_through(shop: System) -> None:
    """A call carries the trace and the caller's id; the logs have the lower half of the trace."""
    header = f"00-{TRACE}-00f067aa0ba902b7-01"
    for service in ("Buyer", "Waiter"):
        caller, callee = ask(shop.url(service), "/trace", traceparent=header, tracestate="a=b").body
        assert (callee["in"], callee["state"]) == (f"00-{TRACE}-{caller}-01", "a=b")
        assert callee["out"] == f"00-{TRACE}-{callee['id']}-01"

    def logged() -> bool:
        logs = [read_log(file).records for file in shop.logs.glob("*.w*.mlog")]
        # A worker of each service; both requests may have met the same worker of Shop.
        return sum(int((records["trace"] == int(TRACE[16:], 16)).any()) for records in logs) >= 3

    wait_for(logged)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"00-{TRACE}-0000000000000000-01",
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-1-00",
    ],
)
def test_a_trace_that_is_none_is_replaced(shop: System, header: str) -> None:
    """Calls then carry mup's own headers only; an endpoint can still name the trace to others."""
    _, callee = ask(shop.url("Buyer"), "/trace", traceparent=header).body
    assert callee["in"] is None
    assert re.fullmatch(f"00-0{{16}}[0-9a-f]{{16}}-{callee['id']}-00", callee["out"])
