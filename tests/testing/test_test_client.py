"""The test client serves requests as a replica would, with stubs for all others."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, UsageError
from mup.testing import StubCall, TestClient


class Item(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    price: float


class Shop(MS):
    def setup(self) -> None:
        self.state = "up"

    def teardown(self) -> None:
        self.state = "down"

    @EP("/items/{item_id}", method="GET")
    def show(self, comm: Communication, item_id: int, verbose: bool = False) -> None:
        comm.respond({"id": item_id, "verbose": verbose, "agent": comm.headers.get("user-agent")})

    @EP("/items", method="POST")
    def create(self, comm: Communication, item: Item) -> None:
        comm.respond(item, status=201, cookies={"last": item.name})

    @EP("/upload")
    def upload(self, comm: Communication) -> None:
        comm.respond({**comm.params, **{k: [f.filename, f.data.hex()] for k, (f,) in comm.files.items()}})

    @EP("/whoami")
    def whoami(self, comm: Communication) -> None:
        comm.respond(comm.cookies.get("user", "nobody"))

    @EP("/price")
    def price(self, comm: Communication) -> None:
        try:
            price = comm.call("Stock", "/price/{item}", {"item": "tea", "n": (1, 2)}, method="GET")
            rows = comm.query("db", "rate", "rates", {"_id": "EUR"})
            comm.respond(price.get()["price"] * rows.get()[0]["rate"])
        except CallError as error:
            comm.respond({"stock": error.status}, status=502)
        except CallTimeoutError:
            comm.respond("late", status=504)

    @EP("/boom")
    def boom(self, comm: Communication) -> None:
        raise ValueError("no such luck")


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(Shop) as client:
        yield client


def test_requests_are_served(client: TestClient) -> None:
    """Parameters, bodies and answers are those of a replica."""
    answer = client.get("/items/5?verbose=1", headers={"User-Agent": "x"})
    assert (answer.status, answer.body) == (200, {"id": 5, "verbose": True, "agent": "x"})
    assert client.get("/items/5", {"verbose": True}).body["verbose"]
    made = client.post("/items", {"name": "tea", "price": 2})
    assert (made.status, made.ok, made.cookies) == (201, True, {"last": "tea"})
    assert made.content == b'{"name":"tea","price":2.0}'
    assert client.request("POST", "/items", form={"name": "tea", "price": "2"}).body["price"] == 2.0
    assert client.get("/whoami", cookies={"user": "eve"}).body == "eve"
    files = {"doc": ("a.bin", b"\x00\r\n")}
    uploaded = client.request("POST", "/upload", form={"t": "x"}, files=files)
    assert uploaded.body == {"t": "x", "doc": ["a.bin", "000d0a"]}


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/nothing", 404, "no endpoint"),
        ("PUT", "/items", 405, "is for POST"),
        ("GET", "/items/x", 400, "Expected `int`"),
        ("GET", "/boom", 500, "ValueError: no such luck"),
    ],
)
def test_failures_are_answers(client: TestClient, method: str, path: str, status: int, text: str) -> None:
    """As callers would see them."""
    answer = client.request(method, path)
    assert answer.status == status
    assert text in answer.body["error"]


class Remembered(MS):
    seen: ClassVar[list[weakref.ref[Communication]]] = []

    @EP("/")
    def remembered(self, comm: Communication) -> None:
        self.seen.append(weakref.ref(comm))
        comm.respond(comm.params)


def test_a_request_is_gone_once_it_is_answered() -> None:
    """Its body does not wait in memory for the collector of cycles, which comes when it likes."""
    gc.disable()
    try:
        with TestClient(Remembered) as client:
            assert client.post("/", {"a": 1}).body == {"a": 1}
        assert [comm() for comm in Remembered.seen] == [None]
    finally:
        gc.enable()


def test_what_is_refused_does_not_write_the_log(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    """Line breaks in the names of fields stay out of it."""
    answer = client.post("/items", {"name": "a", "price": 1, "x\n12:00:00 all is well": 1})
    assert answer.body["field"] == "x\n12:00:00 all is well"
    assert "x?12:00:00 all is well" in caplog.records[-1].getMessage()


def test_stubs_answer(client: TestClient) -> None:
    """With values, or functions of what was asked; what was asked is kept."""
    client.stub("Stock", "/price/{item}", lambda params: {"price": len(params["item"])})
    client.stub_query("db", "rate", lambda collection, text: [{"rate": 2, "of": (collection, text)}])
    assert client.get("/price").body == 6
    call = StubCall(
        dest="Stock", path="/price/{item}", params={"item": "tea", "n": [1, 2]}, method="GET", headers={}
    )
    assert client.calls == [call]


def test_stubs_fail(client: TestClient) -> None:
    """With a status, or with an error; one for a method wins over one for all."""
    client.stub_query("db", "rate", [])
    client.stub("Stock", "/price/{item}", CallTimeoutError("too late"))
    assert client.get("/price").status == 504
    client.stub("Stock", "/price/{item}", {"error": "gone"}, status=410, method="GET")
    assert client.get("/price").body == {"stock": 410}


def test_a_missing_stub_is_named(client: TestClient) -> None:
    """The answer says what to add."""
    assert "no stub for the call of Stock/price/{item}" in client.get("/price").body["error"]
    client.stub("Stock", "/price/{item}", 1)
    assert "no stub for query db.rate" in client.get("/price").body["error"]


def test_a_stub_cannot_send_what_a_service_cannot(client: TestClient) -> None:
    """Its answer goes through the same encoding."""
    client.stub("Stock", "/price/{item}", object())
    assert "cannot be sent as JSON" in client.get("/price").body["error"]


class Awaiting(MS):
    runtime = "async"

    async def setup(self) -> None:  # type: ignore[override]
        self.ready = True

    @EP("/twice/{number}")
    async def twice(self, comm: Communication, number: int) -> None:
        first, second = comm.call("Stock", "/one"), comm.call("Stock", "/one")
        comm.respond([self.ready, number * (await first + await second)])

    @EP("/boom")
    async def boom(self, comm: Communication) -> None:
        raise ValueError("no such luck")

    @EP("/blocking")
    async def blocking(self, comm: Communication) -> None:
        comm.respond(comm.call("Stock", "/one").get())

    @EP("/tasks")
    async def tasks(self, comm: Communication) -> None:
        one = asyncio.create_task(comm.call("Stock", "/one"))
        async with asyncio.TaskGroup() as group:
            rate = group.create_task(comm.query("db", "rate", "rates", {}))
        comm.respond([await one, rate.result()])

    @EP("/again")
    async def again(self, comm: Communication) -> None:
        future = comm.query("db", "rate", "rates", {})
        comm.respond([await future, future.get()])


def test_async_endpoints_must_not_block() -> None:
    """``get`` of what was not awaited fails as it does on the event loop of a replica."""
    with TestClient(Awaiting) as client:
        client.stub("Stock", "/one", 1)
        client.stub_query("db", "rate", [])
        refused = client.get("/blocking")
        assert refused.status == 500
        assert "must not block on Stock/one" in refused.body["error"]
        assert client.get("/again").body == [[], []]
        assert client.get("/tasks").body == [1, []]


def test_async_endpoints_are_awaited() -> None:
    """So are their calls, and `setup`."""
    with TestClient(Awaiting) as client:
        client.stub("Stock", "/one", 1)
        assert client.get("/twice/4").body == [True, 8]
        assert client.get("/boom").status == 500


def test_one_kind_of_body(client: TestClient) -> None:
    """Two are refused."""
    with pytest.raises(UsageError, match="one body"):
        client.request("POST", "/items", json={}, form={})


def test_the_service_is_set_up_and_torn_down() -> None:
    """As a worker does it."""
    with TestClient(Shop, name="Store") as client:
        service: Any = client.service
        assert (service.state, service.service_name) == ("up", "Store")
    assert service.state == "down"


def test_the_fixture(tmp_path: Path) -> None:
    """Pytest has `mup_client` when the plugin is there, and tears the services down."""
    (tmp_path / "test_shop.py").write_text(
        "from mup import EP, MS\n"
        "class Shop(MS):\n"
        "    def teardown(self): print('torn', 'down')\n"
        "    @EP('/a')\n"
        "    def a(self, comm): comm.respond(comm.method)\n"
        "def test_a(mup_client):\n"
        "    assert mup_client(Shop).get('/a').body == 'GET'\n"
    )
    # Named, not found: mup need not be installed where its own tests run.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-p", "mup.pytest_plugin", "-p", "no:cacheprovider", "-q", "-s"]
    done = subprocess.run(
        [*words, "test_shop.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout
    assert "torn down" in done.stdout


def test_the_plugin_is_light() -> None:
    """It does not load mup's runtime into every test run of a machine."""
    check = "import sys, mup.pytest_plugin; sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
