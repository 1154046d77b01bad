"""Tests without a running system: other services and the database are stubs."""

import base64
import json
import struct

import pytest
from auth import Auth
from data import PRODUCTS, collections
from image import Image
from persistence import Persistence
from pictures import FILES, PAGE_FILES, PRODUCT_FILES, product_file
from recommender import Recommender
from web import Web

CATEGORIES = [{"_id": 0, "name": "Category 0"}]
USER = {"_id": 2, "username": "user2", "password": "password2", "realname": "Ada", "email": "a@b"}
LOGGED_IN = '{"userid":2,"cart":[]}'


def product(number):
    """Return a product as the database has it."""
    return {"_id": number, "name": f"Product {number}", "description": "tea", "listpriceincents": 250}


@pytest.fixture
def store(mup_client):
    """The pages, with services that know five products of one category."""
    client = mup_client(Web)
    client.stub("persistence", "/categoriesList/", CATEGORIES)
    client.stub("persistence", "/categories/", CATEGORIES[0])
    client.stub("persistence", "/productsCount/", "5")
    client.stub("persistence", "/productsList/", [product(number) for number in range(5)])
    client.stub("persistence", "/products/", lambda sent: product(sent["id"]) if sent["id"] < 5 else {})
    client.stub("persistence", "/users/", lambda sent: USER if sent["id"] == 2 else {})
    client.stub("persistence", "/ordersList/", [])
    client.stub("image", "/getProductImages/", lambda sent: dict.fromkeys(sent["qry"], "cGljdHVyZQ=="))
    client.stub("image", "/GetWebImages/", {"icon": "aWNvbg=="})
    client.stub("auth", "/isLoggedIn/", lambda sent: "userid" in sent["cookie"])
    client.stub("recommender", "/recommend/", [1, 4, 1])
    return client


FRAME = ["/categoriesList/", "/GetWebImages/", "/isLoggedIn/"]


@pytest.mark.parametrize(
    ("page", "between"),
    [
        pytest.param("/index/", [], id="index"),
        pytest.param("/login/", [], id="login"),
        pytest.param(
            "/category/?category=0",
            ["/categories/", "/productsCount/", "/productsList/", "/getProductImages/"],
            id="category",
        ),
        pytest.param(
            "/product/?id=3",
            ["/products/", "/recommend/", "/products/", "/products/", "/products/", "/getProductImages/"],
            id="product",
        ),
        pytest.param(
            "/cart/",
            ["/recommend/", "/products/", "/products/", "/products/", "/getProductImages/"],
            id="cart",
        ),
        pytest.param("/profile/", ["/users/", "/ordersList/"], id="profile"),
    ],
)
def test_pages_ask_in_this_order(store, page, between):
    """Every page shows the menu first, and then the icon and whether a user is logged in."""
    answer = store.get(page)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Category 0" in answer.body
    assert "data:image/png;base64,aWNvbg==" in answer.body
    assert [call.path for call in store.calls] == [FRAME[0], *between, *FRAME[1:]]


def test_the_cookie_goes_from_page_to_page(store):
    """In every link, so that no page is a stranger's."""
    page = store.get("/index/", {"cookie": LOGGED_IN}).body
    assert "Log out" in page
    assert "/cart/?cookie=%7B%22userid%22%3A2" in page
    assert "Log in" in store.get("/index/").body


def test_a_category_shows_pictures_and_pages(store):
    """The last page is full, if there are enough products; a category that is smaller has one page."""
    store.stub("persistence", "/productsCount/", "105")
    answer = store.get("/category/", {"category": 0, "page": 99})
    assert "data:image/png;base64,cGljdHVyZQ==" in answer.body
    listed, images = (c.params for c in store.calls if c.path in ("/productsList/", "/getProductImages/"))
    assert (listed["idxFrom"], listed["count"]) == (85, 20)
    assert images["qry"]["4"] == [600, 600]
    store.stub("persistence", "/productsCount/", "5")
    assert store.get("/category/", {"category": 0}).status == 200
    assert [c.params["idxFrom"] for c in store.calls if c.path == "/productsList/"] == [85, 0]


def test_a_product_counts_as_in_the_cart(store):
    """The recommender is asked as if it were bought; twice the same recommendation needs one picture."""
    store.get("/product/", {"id": 3, "cookie": LOGGED_IN})
    asked = next(call.params for call in store.calls if call.path == "/recommend/")
    assert [(item["_id"], item["qty"]) for item in json.loads(asked["items"])] == [(3, 1)]
    pictures = next(call.params for call in store.calls if call.path == "/getProductImages/")
    assert pictures == {"qry": {"1": [200, 200], "4": [200, 200]}}


def test_what_the_store_does_not_have(store):
    """Is said on a page like any other."""
    assert "No such product" in store.get("/product/?id=77").body
    assert "Nobody is logged in" in store.get("/profile/?cookie=nonsense").body


def test_logging_in_and_out(store):
    """The answer is the text auth returns."""
    store.stub("auth", "/login/", LOGGED_IN)
    store.stub("auth", "/logout/", "{}")
    answer = store.request("POST", "/loginAction/", form={"username": "user2", "password": "password2"})
    assert (answer.headers["content-type"].partition(";")[0], answer.content.decode()) == (
        "text/plain",
        LOGGED_IN,
    )
    assert store.request("POST", "/loginAction/", form={"cookie": LOGGED_IN, "logout": ""}).body == "{}"
    assert [call.path for call in store.calls] == ["/login/", "/logout/"]


def test_auth_knows_users_and_carts(mup_client):
    """A wrong password, an unknown user and a product that is not sold change nothing."""
    auth = mup_client(Auth)
    auth.stub("persistence", "/usersByName/", lambda sent: USER if sent["name"] == "user2" else {})
    auth.stub("persistence", "/products/", lambda sent: product(sent["id"]) if sent["id"] < 5 else {})
    assert auth.post("/login/", {"name": "user2", "password": "password2"}).body == LOGGED_IN
    assert auth.post("/login/", {"name": "user2", "password": "x"}).body == "{}"
    assert auth.post("/login/", {"name": "nobody", "password": "x"}).body == "{}"
    cookie = LOGGED_IN
    for number in (3, 1, 3, 9):
        cookie = auth.post("/addProductToCart/", {"cookie": cookie, "productid": number}).body
    cart = json.loads(cookie)["cart"]
    assert [(item["_id"], item["qty"]) for item in cart] == [(3, 2), (1, 1)]
    assert auth.post("/isLoggedIn/", {"cookie": cookie}).body is True
    assert auth.post("/isLoggedIn/", {"cookie": "[1"}).body is False
    assert auth.post("/logout/", {"cookie": cookie}).body == "{}"


def test_pictures(mup_client):
    """Texts are those of the files; what is no picture of the store is none."""
    client = mup_client(Image)
    answer = client.post("/getProductImages/", {"qry": {"3": [200, 200], "499": [10, 10]}}).body
    assert answer["3"] == product_file(3).read_text()
    assert base64.b64decode(answer["499"]).startswith(b"\x89PNG")
    icon = client.post("/GetWebImages/", {"qry": {"icon": [400, 400]}}).body["icon"]
    assert base64.b64decode(icon) == (FILES / "icon.png").read_bytes()
    assert client.post("/GetWebImages/", {"qry": {"../data": [1, 1]}}).status == 500


def test_files_are_as_large_as_they_say(mup_client):
    """Sizes of the published store, in files that are what their names say."""
    web = mup_client(Web)
    for name, size in PAGE_FILES.items():
        answer = web.get(f"/{name}")
        assert (answer.status, len(answer.content)) == (200, size)
    assert len((FILES / "icon.png").read_bytes()) == 46_800
    assert b"addEventListener" in web.get("/resizingscript.js").content
    ico = web.get("/images/icon.ico").content
    assert struct.unpack_from("<II", ico, 14) == (len(ico) - 22, 22)
    sizes = sorted(product_file(number).stat().st_size for number in range(PRODUCT_FILES))
    assert sizes[0] >= 4_500
    assert sizes[-1] <= 387_000
    assert sizes[256] == pytest.approx(42_700, rel=0.1)


def test_recommendations(mup_client):
    """Three products there are."""
    client = mup_client(Recommender)
    for _ in range(20):
        chosen = client.post("/recommend/", {"cookie": "{}", "items": "[]"}).body
        assert len(chosen) == 3
        assert all(0 <= number < PRODUCTS for number in chosen)


def test_nothing_is_found(mup_client):
    """Is an empty object or list."""
    client = mup_client(Persistence)
    for query in ("product", "category", "user", "userByName", "orders"):
        client.stub_query("teastore", query, [])
    nothing = [
        client.get(f"/{path}/?id=1&name=x&userId=1").body for path in ("products", "users", "usersByName")
    ]
    assert nothing == [{}, {}, {}]
    assert client.get("/categories/?id=9").body == {}
    assert client.get("/ordersList/?userId=9").body == []


def test_categories_in_a_range(mup_client):
    """Without one, all of them."""
    client = mup_client(Persistence)
    asked = []
    client.stub_query("teastore", "listCategories", lambda _, query: asked.append(query) or CATEGORIES)
    client.get("/categoriesList/?idxFrom=-1&count=-1")
    client.get("/categoriesList/?idxFrom=2&count=2")
    assert [(query["skip"], query.get("limit")) for query in asked] == [(0, None), (2, 2)]


def test_the_store_is_as_large_as_it_says():
    """Row counts, and prices below 150 dollars."""
    store = collections()
    assert {name: len(rows) for name, rows in store.items()} == {"user": 1000, "category": 5, "products": 500}
    assert all(0 <= row["listpriceincents"] < 15_000 for row in store["products"])
    assert store["products"][217]["name"] == "Product 2-17"
    assert store == collections()
