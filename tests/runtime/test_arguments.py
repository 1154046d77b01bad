"""Parameters of endpoint methods come from the request; wrong values are refused by field."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import gzip
import json
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest

from mup.errors import DeploymentError
from mup.runtime.endpoint.content import BadRequestError, Content
from mup.runtime.endpoint.dispatch import Dispatch
from mup.service import EP, MS, endpoints_of


class Item(msgspec.Struct):
    name: str
    price: float


class Order(msgspec.Struct):
    items: list[Item]
    note: str | None = None
    tags: list[str] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    depth: int


class Color(enum.Enum):
    RED = "red"
    NONE = ""


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Form(msgspec.Struct):
    name: str
    agree: bool = False
    age: int | None = None
    price: Decimal | None = None
    tags: list[str] = []
    numbers: list[int] = []


class Shop(MS):
    @EP("/plain")
    def plain(self, comm: Any) -> None: ...

    @EP("/orders/{order_id}/{day}")
    def show(
        self,
        comm: Any,
        order_id: int,
        day: dt.date,
        verbose: bool = False,
        sort: Literal["up", "down"] = "up",
        tag: list[int] | None = None,
    ) -> None: ...

    @EP("/order")
    def order(self, comm: Any, order: Order, dry: bool = False) -> None: ...

    @EP("/point")
    def point(self, comm: Any, point: Point | None = None) -> None: ...

    @EP("/options")
    def options(self, comm: Any, options: Options) -> None: ...

    @EP("/add")
    def add(self, comm: Any, a: Annotated[int, msgspec.Meta(ge=0)], b: int = 1, untyped=None) -> None: ...  # type: ignore[no-untyped-def] # noqa: ANN001

    @EP("/form")
    def form(self, comm: Any, form: Form) -> None: ...

    @EP("/kinds")
    def kinds(
        self,
        comm: Any,
        price: Decimal = Decimal(0),
        at: dt.datetime | None = None,
        key: uuid.UUID | None = None,
        color: Color = Color.RED,
        size: Size = Size.SMALL,
        sort: Literal["up", "down"] = "up",
        limit: int | None = None,
        flag: bool = False,
        flags: list[bool] | None = None,
        ids: frozenset[int] = frozenset(),
        span: tuple[int, int] | None = None,
        note: str | None = None,
    ) -> None: ...

    @EP("/many")
    def many(self, comm: Any, points: list[Point]) -> None: ...


DISPATCH = Dispatch(Shop, endpoints_of(Shop))
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def values(
    key: str, body: Any = b"", kind: str = JSON, query: str = "", encoding: str = "", **path: str
) -> dict[str, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {b"content-encoding": encoding}
    content = Content(path, query, kind if data else "", data, lambda name: headers.get(name, ""))
    return DISPATCH.arguments[key].values(content)


def test_methods_that_take_comm_alone_cost_nothing() -> None:
    """There is nothing to convert for them."""
    assert "/plain" not in DISPATCH.arguments


def test_path_and_query() -> None:
    """Texts become what the hints say; a list takes all values; what is missing keeps its default."""
    show = "/orders/{order_id}/{day}"
    known = {"order_id": 7, "day": dt.date(2024, 2, 29)}
    path = {"order_id": "7", "day": "2024-02-29"}
    assert values(show, **path) == known
    query = "verbose=true&tag=1&tag=2&sort=down&unknown=1"
    assert values(show, query=query, **path) == {**known, "verbose": True, "tag": [1, 2], "sort": "down"}


def test_bodies() -> None:
    """Structs, dataclasses and TypedDicts come from JSON and from forms; beside them, the query string counts."""
    order = Order([Item("tea", 2.5)], tags=["a"])
    body = {"items": [{"name": "tea", "price": 2.5}], "tags": ["a"]}
    assert values("/order", body, query="dry=1") == {"order": order, "dry": True}
    assert values("/point", {"x": 1}) == {"point": Point(1)}
    assert values("/point") == {"point": None}
    assert values("/point", b"x=1&y=2", FORM) == {"point": Point(1, 2)}
    assert values("/options", {"depth": 3}) == {"options": {"depth": 3}}
    assert values("/many", [{"x": 1}, {"x": 2}]) == {"points": [Point(1), Point(2)]}


KEY = uuid.UUID("7c2d4a52-6f4c-4b5c-9a37-0e8e0b8b1a11")


@pytest.mark.parametrize(
    ("query", "known"),
    [
        pytest.param("price=2.10", {"price": Decimal("2.10")}, id="decimal"),
        pytest.param("at=2024-01-01T00:00:00%2B01:00", {"at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))}, id="datetime"),
        pytest.param(f"key={KEY}", {"key": KEY}, id="uuid"),
        pytest.param("color=red&size=2", {"color": Color.RED, "size": Size.LARGE}, id="enums"),
        pytest.param("color=", {"color": Color.NONE}, id="a-value-that-is-blank"),
        pytest.param("sort=down", {"sort": "down"}, id="literal"),
        pytest.param("limit=3&limit=4", {"limit": 4}, id="the-last-one"),
        pytest.param("flag=on&flags=yes&flags=0&flags=NO", {"flag": True, "flags": [True, False, False]}, id="flags"),
        pytest.param("ids=1&ids=2&ids=2", {"ids": frozenset({1, 2})}, id="set"),
        pytest.param("span=1&span=2", {"span": (1, 2)}, id="tuple"),
        pytest.param("limit=&price=&sort=&at=&ids=&note=", {"note": ""}, id="fields-not-filled-in"),
    ],
)  # fmt: skip
def test_texts_become_values(query: str, known: dict[str, Any]) -> None:
    """As forms of browsers have them: in the query string, and in a body."""
    assert values("/kinds", query=query) == known
    assert values("/kinds", query.encode(), FORM) == known


def test_forms_of_browsers_as_bodies() -> None:
    """Boxes that are checked, fields that are left empty, several values of a name."""
    filled = b"name=&agree=on&age=&price=&tags=a&tags=&numbers=1&numbers=&unknown="
    assert values("/form", filled, FORM) == {"form": Form("", agree=True, tags=["a", ""], numbers=[1])}


def test_scalars_come_from_the_body_too() -> None:
    """What a call sends as params fills parameters; a value of the body wins over the query string."""
    assert values("/add", {"a": 1, "b": 2, "untyped": [3]}) == {"a": 1, "b": 2, "untyped": [3]}
    assert values("/add", {"a": 1}, query="a=5&b=6") == {"a": 1, "b": 6}
    assert values("/add", b"a=3&b=4", FORM) == {"a": 3, "b": 4}


@pytest.mark.parametrize(
    ("key", "body", "query", "field", "message"),
    [
        pytest.param(
            "/order",
            {"items": [{"name": "a", "price": 1}, {"name": "b", "price": "x"}]},
            "",
            "items[1].price",
            "Expected `float`, got `str`",
            id="nested",
        ),
        pytest.param(
            "/order", {"items": [{"name": "a"}]}, "", "items[0].price", "missing", id="missing-nested"
        ),
        pytest.param("/order", {}, "", "items", "missing", id="missing"),
        pytest.param("/order", [], "", "", "Expected `object`", id="whole"),
        pytest.param("/order", b"", "", "", "needs a body", id="no-body"),
        pytest.param("/order", b"{", "", "", "not JSON", id="no-json"),
        pytest.param("/order", b"\xff", "", "", "not JSON", id="no-text"),
        pytest.param("/add", b"", "", "a", "missing", id="missing-parameter"),
        pytest.param("/add", b"", "a=x", "a", "Expected `int`", id="text"),
        pytest.param("/add", {"a": "1"}, "", "a", "Expected `int`, got `str`", id="json-is-strict"),
        pytest.param("/add", {"a": -1}, "", "a", "Expected `int` >= 0", id="constraint"),
        pytest.param("/many", [{"x": 1}, {}], "", "[1].x", "missing", id="list-as-body"),
        pytest.param("/add", b"", "&".join(["a=1"] * 2000), "", "query string", id="too-many"),
    ],
)
def test_wrong_values_are_refused(key: str, body: Any, query: str, field: str, message: str) -> None:
    """The field is named by its path, the message says what was expected."""
    with pytest.raises(BadRequestError, match=message) as caught:
        values(key, body, query=query)
    assert caught.value.field == field


def test_a_wrong_path_parameter_is_refused() -> None:
    """It has a field, too."""
    with pytest.raises(BadRequestError) as caught:
        values("/orders/{order_id}/{day}", order_id="x", day="2024-01-01")
    assert caught.value.field == "order_id"


def test_other_kinds_of_body_are_refused() -> None:
    """A structure is JSON or a form."""
    with pytest.raises(BadRequestError, match="must be JSON or a form") as caught:
        values("/order", b"<order/>", "text/xml")
    assert caught.value.status == 415


@pytest.mark.parametrize(("key", "kind"), [("/form", JSON), ("/form", FORM), ("/add", JSON), ("/add", FORM)])
def test_compressed_bodies_are_refused(key: str, kind: str) -> None:
    """They say so themselves, and what they are is not guessed."""
    with pytest.raises(BadRequestError, match="not encoded as 'gzip'") as caught:
        values(key, gzip.compress(b"{}"), kind, encoding="gzip")
    assert caught.value.status == 415
    assert values("/add", {"a": 1}, encoding="identity") == {"a": 1}


def _two(self: Any, comm: Any, a: Point, b: Point) -> None: ...
def _strange(self: Any, comm: Any, a: MS) -> None: ...
def _unknown(self: Any, comm: Any, a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _positional(self: Any, comm: Any, a: int, /) -> None: ...


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (_two, "only one parameter"),
        (_strange, "cannot have type"),
        (_unknown, "hint"),
        (_positional, "positional"),
    ],
)
def test_methods_that_cannot_be_called(method: Any, message: str) -> None:
    """The service does not start, and says which parameter is the matter."""
    kind = type("Bad", (MS,), {"x": EP("/x")(method)})
    with pytest.raises(DeploymentError, match=message):
        Dispatch(kind, endpoints_of(kind))


def test_wrappers_have_the_parameters_they_can_be_called_with() -> None:
    """What a wrapper fills by itself is not asked of the request; what it passes on is."""

    def fills(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(self: Any, comm: Any) -> None:
            function(self, comm, "user")

        return wrapper

    def passes(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(self: Any, comm: Any, *args: Any, **kwargs: Any) -> None:
            function(self, comm, *args, **kwargs)

        return wrapper

    class Wrapped(MS):
        @EP("/filled")
        @fills
        def filled(self, comm: Any, user: str) -> None: ...

        @EP("/passed")
        @passes
        @functools.cache  # noqa: B019 - a wrapper without a signature of its own
        def passed(self, comm: Any, order: Order, count: int = 1) -> None: ...

        @EP("/both")
        @passes
        @fills
        def both(self, comm: Any, user: str) -> None: ...

    arguments = Dispatch(Wrapped, endpoints_of(Wrapped)).arguments
    assert set(arguments) == {"/passed"}
    found = arguments["/passed"]
    assert found.body is not None
    assert found.body.type is Order
    assert [p.name for p in found.simple] == ["count"]


def test_hints_that_a_wrapper_has_taken_over_are_meant_where_they_were_written() -> None:
    """The decorator of another module, which does not know the type, names the parameter."""
    elsewhere: dict[str, Any] = {"functools": functools}
    exec(
        "def named(function):\n"
        "    @functools.wraps(function)\n"
        "    def wrapper(self, comm, order):\n"
        "        function(self, comm, order)\n"
        "    return wrapper\n",
        elsewhere,
    )

    class Wrapped(MS):
        @EP("/order")
        @elsewhere["named"]
        def order(self, comm: Any, order: Order) -> None: ...

    found = Dispatch(Wrapped, endpoints_of(Wrapped)).arguments["/order"]
    assert found.body is not None
    assert found.body.type is Order
