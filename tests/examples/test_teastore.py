"""The tea store: its model as the literature counts it, its pages, and its workload on real services."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from applications import Browser, observed_paths, own_tests
from browsing import visit
from example_systems import Steps, analysed, committed_model, drive, example, lacking

from analyzer.static import Application
from mup.lqn.model import Model
from mup.lqn.statistics import Size, statistics
from mup.project import Project
from mup.runtime.deployment.launcher import Deployment

FILES = (
    *("/images/front.png", "/bootstrap/css/bootstrap.min.css", "/teastore.css", "/images/icon.ico"),
    *("/bootstrap/js/jquery.min.js", "/bootstrap/js/bootstrap.min.js", "/resizingscript.js"),
)
QUERIES = {
    "products": "product",
    "productsCount": "countProducts",
    "productsList": "listProducts",
    "categories": "category",
    "categoriesList": "listCategories",
    "users": "user",
    "usersByName": "userByName",
    "ordersList": "orders",
}
"""The query of every endpoint of persistence."""
OBSERVED = {
    "web/index/": [(3, 0)],
    "web/login/": [(3, 0)],
    "web/loginAction/": [(1, 0), (1, 0)],
    "web/category/": [(7, 0)],
    "web/product/": [(9, 0)],
    "web/cart/": [(8, 0)],
    "web/profile/": [(5, 0)],
    "web/cartActionAdd/": [(1, 0)],
    **{f"web{file}": [(0, 0)] for file in FILES},
    "auth/isLoggedIn/": [(0, 0)],
    "auth/login/": [(1, 0)],
    "auth/logout/": [(0, 0)],
    "auth/addProductToCart/": [(1, 0)],
    "image/getProductImages/": [(0, 0)],
    "image/GetWebImages/": [(0, 0)],
    **{f"persistence/{query}/": [(0, 1)] for query in QUERIES},
    "recommender/recommend/": [(0, 0)],
}
"""What the workload does: calls and queries of every path it takes."""

CATEGORIES, ICON, ALLOWED = "persistence/categoriesList/", "image/GetWebImages/", "auth/isLoggedIn/"
PRODUCT, RECOMMENDED = "persistence/products/", "recommender/recommend/"
ADVERTISED = (RECOMMENDED, PRODUCT, PRODUCT, PRODUCT, "image/getProductImages/")
CHOSEN = ("persistence/categories/", "persistence/productsCount/", "persistence/productsList/")
SPECIFIED: dict[str, set[Steps]] = {
    **{f"web/{page}/": {(CATEGORIES, ICON, ALLOWED)} for page in ("index", "login")},
    "web/loginAction/": {("auth/logout/",), ("auth/login/",)},
    "web/category/": {(CATEGORIES, *CHOSEN, "image/getProductImages/", ICON, ALLOWED)},
    "web/product/": {(CATEGORIES, PRODUCT, *ADVERTISED, ICON, ALLOWED)},
    "web/cart/": {(CATEGORIES, *ADVERTISED, ICON, ALLOWED)},
    "web/profile/": {(CATEGORIES, "persistence/users/", "persistence/ordersList/", ICON, ALLOWED)},
    "web/cartActionAdd/": {("auth/addProductToCart/",)},
    **{f"web{file}": {()} for file in FILES},
    "auth/isLoggedIn/": {()},
    "auth/login/": {("persistence/usersByName/",)},
    "auth/logout/": {()},
    "auth/addProductToCart/": {(PRODUCT,)},
    "image/getProductImages/": {()},
    "image/GetWebImages/": {()},
    **{f"persistence/{path}/": {(f"teastore.{query}",)} for path, query in QUERIES.items()},
    "recommender/recommend/": {()},
}
"""Everything services can do, call by call."""

PER_VISIT = {
    **{
        f"web{path}": 2
        for path in ("/index/", "/loginAction/", "/category/", "/cart/", "/cartActionAdd/", *FILES)
    },
    **{f"web{path}": 1 for path in ("/login/", "/product/", "/profile/")},
}


@pytest.fixture(scope="module")
def project() -> Project:
    """The example on free ports, with little work."""
    return example("teastore", {"MUP_MEGAPIXEL_MS": "0.1"})


@pytest.fixture(scope="module")
def application() -> Application:
    """What its source says."""
    return analysed("teastore")


@pytest.fixture(scope="module")
def model(application: Application) -> Model:
    """The calibrated model in the folder of the example, which is of the source as it is."""
    return committed_model("teastore", application)


def test_analysis_finds_every_path(application: Application) -> None:
    """Of every endpoint what it calls and queries, in this order."""
    assert lacking(application, SPECIFIED) == {}


def test_the_model_is_as_large_as_published(model: Model) -> None:
    """Table 3 of the thesis, its arcs counted correctly, and the view with queries."""
    size = statistics(model)
    published = Size(tasks=7, entries=70, activities=192, nodes=110, or_nodes=30, arcs=341, paths=31)
    assert size.table3 == published, asdict(size.table3)
    assert size.correct_arcs == 421
    full = Size(tasks=7, entries=78, activities=224, nodes=126, or_nodes=30, arcs=485, paths=31)
    assert size.full == full, asdict(size.full)


def test_observed_paths(model: Model) -> None:
    """Endpoint by endpoint, what the workload makes the services do."""
    assert observed_paths(model) == OBSERVED


@pytest.mark.slow
def test_its_own_tests(tmp_path: Path) -> None:
    assert " passed" in own_tests("teastore", tmp_path)


@pytest.fixture(scope="module", params=["embedded", "mongod"])
def deployment(request: pytest.FixtureRequest, project: Project) -> Iterator[Deployment]:
    """Running services, once on either database."""
    if request.param == "mongod":
        project = project.with_database_uri("teastore", request.getfixturevalue("mongod").uri)
    with Deployment(project) as running:
        yield running


@pytest.mark.slow
@pytest.mark.services
def test_a_visit(deployment: Deployment) -> None:
    """A user logs in, looks at products, puts two into the cart, and logs out."""
    store = Browser(deployment, "web")
    assert "Category 4" in store.get("/index/")
    assert [len(store.get_bytes(file)) for file in FILES] == [57676, 121200, 4882, 34494, 86659, 37045, 2484]
    assert "user name" in store.get("/login/").lower()
    cookie = store.post("/loginAction/", username="user7", password="password7")
    assert json.loads(cookie) == {"userid": 7, "cart": []}
    listed = store.get("/category/", category="3", page="2", cookie=cookie)
    assert "Log out" in listed
    assert ("Product 3-20<" in listed, "Product 3-19<" in listed) == (True, False)
    assert listed.count("data:image/png;base64,") == 21
    assert "Description of product 2-17" in store.get("/product/", id="217", cookie=cookie)
    for product in ("217", "3"):
        cookie = store.post("/cartActionAdd/", productid=product, cookie=cookie)
    cart = store.get("/cart/", cookie=cookie)
    assert "Product 0-3" in cart
    assert cart.count("data:image/png;base64,") == 4
    assert "Name Surname 7" in store.get("/profile/", cookie=cookie)
    assert store.post("/loginAction/", cookie=cookie, logout="") == "{}"
    assert store.post("/loginAction/", username="user7", password="x") == "{}"


@pytest.mark.slow
@pytest.mark.services
def test_browsers_show_every_page(deployment: Deployment, application: Application) -> None:
    """All tags are closed, all links lead somewhere, all forms are sent to an endpoint."""
    store = Browser(deployment, "web")
    cookie = urllib.parse.quote(store.post("/loginAction/", username="user7", password="password7"))
    for session in ("", f"cookie={cookie}"):
        starts = [f"/{page}/?{session}" for page in ("index", "login", "cart", "profile")]
        # Of five hundred products one is enough.
        pages = visit(store, f"/product/?id=3&{session}", *starts, without="/product/")
        assert len([path for path in pages if "/category/" in path]) == 5 * 5
        forms = {f"web{form}" for page in pages.values() for form in page.forms}
        assert forms <= {endpoint.label for endpoint in application.endpoints()}


@pytest.mark.slow
@pytest.mark.services
def test_the_workload(deployment: Deployment, project: Project) -> None:
    """Every visit makes the same 27 calls."""
    result = drive(deployment, project, seconds=1.0)
    visits = len(result.cycles)
    # The calls of a visit that began in the window and ended after it are not all in it.
    for label, calls in PER_VISIT.items():
        assert abs(result.endpoints[label].count - calls * visits) <= calls, (label, visits)
    assert set(result.endpoints) == set(PER_VISIT)
    assert sum(PER_VISIT.values()) == 27
