"""Tests without a running system: other services and the database are stubs."""

import json
from pathlib import Path

import pytest
from account import Account
from cart import CartService
from catalog import Catalog
from data import PRODUCTS, collections
from frontend import Frontend

ITEM = {
    "product": {"productId": "FI-SW-02", "name": "Tiger Shark", "description": "<img alt='Fish'> Salt water"},
    "item": {
        "itemId": "EST-3",
        "listPrice": 18.5,
        "quantity": 10000,
        **{f"attribute{number}": "Toothless" if number == 1 else "" for number in range(1, 6)},
    },
}
LINE = {**ITEM, "inStock": True, "quantity": 1, "total": 18.5}
USER = {
    "username": "j2ee",
    "firstname": "Ada",
    "lastname": "Byron",
    "favcategory": "DOGS",
    "banneropt": 1,
    "bannername": "<img alt='Dogs'>",
}


@pytest.fixture
def shop(mup_client):
    """The frontend, with a customer whose session is 5."""
    client = mup_client(Frontend)
    client.stub("account", "/sessuser/", lambda sent: USER if sent["sessid"] == "5" else {})
    return client


def test_strangers_are_offered_to_sign_in(shop):
    """A page for a visitor without a session costs no call."""
    page = shop.get("/actions/Catalog.action")
    assert page.headers["content-type"].startswith("text/html")
    assert "Sign in" in page.body
    assert "Dogs" in page.body
    assert shop.calls == []


def test_customers_are_greeted(shop):
    """The page shows the account, and the banner as it is."""
    page = shop.get("/actions/Catalog.action", cookies={"sessid": "5"})
    assert "Ada Byron" in page.body
    assert "Sign out" in page.body
    assert "<img alt='Dogs'>" in page.body


def test_a_session_that_is_over(mup_client):
    """Is none."""
    client = mup_client(Frontend)
    client.stub("account", "/sessuser/", {"error": "no such session"}, status=403)
    assert "Sign in" in client.get("/account/signonForm", cookies={"sessid": "7"}).body


def test_signing_on_and_off(shop):
    """The browser gets a session and an empty cart, and loses both."""
    shop.stub("account", "/signon/", "5")
    answer = shop.request("POST", "/account/login", form={"username": "j2ee", "password": "j2ee"})
    assert answer.cookies["sessid"] == "5"
    assert json.loads(answer.cookies["cart"]) == {"itemList": [], "subTotal": 0}
    assert "/actions/Catalog.action" in answer.body
    shop.stub("account", "/signout/")
    answer = shop.post("/account/signoff", cookies={"sessid": "5"})
    assert answer.cookies == {"sessid": "", "cart": ""}
    assert shop.calls[-1].params == {"sessid": "5"}


def test_a_wrong_password(shop):
    """Leads back to the form."""
    shop.stub("account", "/signon/", {"error": "wrong"}, status=403)
    answer = shop.request("POST", "/account/login", form={"username": "j2ee", "password": "x"})
    assert "/account/signonForm" in answer.body
    assert answer.cookies["sessid"] == ""


def test_what_customers_type_is_no_html(shop):
    """Names are escaped."""
    shop.stub("catalog", "/searchProd/", [{"productId": "X", "name": "<b>", "description": ""}])
    assert "&lt;b&gt;" in shop.get("/catalog/searchProducts?keyword=x", cookies={"sessid": "5"}).body


def test_putting_an_item_into_the_cart(shop):
    """The changed cart is shown, and kept by the browser."""
    changed = {"itemList": [LINE], "subTotal": 18.5}
    shop.stub("cart", "/add", changed)
    answer = shop.post("/cart/addItemToCart", {"workingItemId": "EST-3"}, cookies={"sessid": "5"})
    assert "Toothless Tiger Shark" in answer.body
    assert "$18.50" in answer.body
    assert json.loads(answer.cookies["cart"]) == changed
    assert [call.path for call in shop.calls] == ["/add", "/sessuser/"]


@pytest.mark.parametrize("cart", ["nonsense", "[]", '"x"'])
def test_a_cart_that_cannot_be_read(shop, cart):
    """Is empty."""
    assert "The cart is empty" in shop.get("/cart/viewCart", cookies={"cart": cart}).body


@pytest.mark.parametrize("page", ["viewProduct", "viewCategory", "viewItem"])
def test_what_the_shop_does_not_have(shop, page):
    """Is a page with status 404."""
    for path in ("/getProd/", "/getCatProd/", "/getItem/"):
        shop.stub("catalog", path, {"error": "no"}, status=404)
    answer = shop.get(f"/catalog/{page}")
    assert (answer.status, "No such" in answer.body) == (404, True)


def test_ordering_needs_a_session(shop):
    """Strangers are led to the form for signing on; customers get their data filled in."""
    assert "/account/signonForm" in shop.get("/order/newOrderForm").body
    assert shop.post("/order/newOrderConfirmed", {}).cookies["cart"] == ""
    assert shop.calls == []


def test_carts_are_added_up(mup_client):
    """The same item twice is two lines; quantities of 0 remove a line."""
    client = mup_client(CartService)
    client.stub("catalog", "/getItem/", ITEM)
    change = {"cart": {"itemList": [LINE], "subTotal": 18.5}, "workingItemId": "EST-3"}
    cart = client.post("/add", change).body
    assert [line["total"] for line in cart["itemList"]] == [18.5, 18.5]
    assert cart["subTotal"] == 37.0
    more = client.post("/update", {"cart": cart, "data": {"EST-3": "2", "other": "x"}}).body
    assert more["subTotal"] == 74.0
    assert client.post("/update", {"cart": cart, "data": {"EST-3": "0"}}).body["itemList"] == []
    assert client.post("/remove", {"cart": cart, "workingItemId": "EST-3"}).body["subTotal"] == 0


def test_an_unknown_item_and_a_broken_cart(mup_client):
    """Neither becomes a line."""
    client = mup_client(CartService)
    client.stub("catalog", "/getItem/", {"error": "no item"}, status=404)
    assert client.post("/add", {"cart": {}, "workingItemId": "EST-99"}).status == 404
    broken = client.post("/add", {"cart": {"itemList": [{}]}, "workingItemId": "EST-3"})
    assert (broken.status, broken.body["field"]) == (400, "cart.itemList[0].product")


def test_search_finds_each_product_once(mup_client):
    """Every word is searched for, as a text and not as a pattern."""
    client = mup_client(Catalog)
    asked = []

    def found(_, query):
        asked.append(query["name"]["$regex"])
        return [{"_id": "K9-PO-02", "name": "Poodle", "descn": "cute"}]

    client.stub_query("jps", "searchProduct", found)
    products = client.get("/searchProd/", {"keyword": " oo  P.o "}).body
    assert products == [{"productId": "K9-PO-02", "name": "Poodle", "description": "cute"}]
    assert asked == ["oo", r"P\.o"]


def test_sessions_are_numbers_of_64_bits(mup_client):
    """And travel as text."""
    client = mup_client(Account)
    known = {"_id": "j2ee", "password": "j2ee"}
    client.stub_query("jps", "findSignon", lambda _, query: [known] if query == known else [])
    client.stub_query("jps", "insertSession", [])
    session = client.post("/signon/", {"username": "j2ee", "password": "j2ee"}).body
    assert 0 <= int(session) < 2**63
    assert client.post("/signon/", {"username": "j2ee", "password": "x"}).status == 403


def test_the_shop_is_as_large_as_it_says():
    """Row counts, and products that exist for every keyword."""
    sizes = {name: len(documents) for name, documents in collections().items()}
    assert [sizes.pop(name) for name in ("product", "item", "inventory")] == [16, 28, 28]
    assert [sizes.pop(name) for name in ("account", "signon", "profile")] == [3, 3, 3]
    assert [sizes.pop(name) for name in ("category", "bannerdata", "sessions")] == [5, 5, 11]
    assert sizes == {"orders": 19, "lineitem": 34, "supplier": 2, "sequence": 1, "orderstatus": 0}
    assert {item[0] for product in PRODUCTS.values() for item in product.items} == {
        f"EST-{number}" for number in range(1, 29)
    }


def test_templates_are_as_large_as_published():
    """20 files of 0.25 to 3.2 kB, 30 kB together: some 10 % more or less."""
    sizes = [file.stat().st_size for file in Path(__file__).parents[1].joinpath("templates").iterdir()]
    assert (len(sizes), min(sizes) >= 250, max(sizes) <= 3200) == (20, True, True)
    assert sum(sizes) == pytest.approx(30_000, rel=0.1)
