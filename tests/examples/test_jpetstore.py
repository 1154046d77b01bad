"""The pet shop: its model as the literature counts it, its pages, and its workload on real services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pymongo
import pytest
from applications import Browser, observed_paths, own_tests
from browsing import visit
from example_systems import Steps, analysed, committed_model, drive, example, lacking

from analyzer.static import Application
from mup.lqn.model import Model
from mup.lqn.statistics import Size, statistics
from mup.project import Project
from mup.runtime.deployment.launcher import Deployment

OBSERVED = {
    "frontend/actions/Catalog.action": [(0, 0)],
    "frontend/account/signonForm": [(0, 0)],
    "frontend/account/login": [(1, 0)],
    "frontend/catalog/searchProducts": [(2, 0)],
    "frontend/catalog/viewProduct": [(2, 0)],
    "frontend/cart/addItemToCart": [(2, 0)],
    "frontend/account/signoff": [(1, 0)],
    "account/signon/": [(0, 2)],
    "account/sessuser/": [(0, 4)],
    "account/signout/": [(0, 1)],
    "catalog/searchProd/": [(0, 1)],
    "catalog/getProd/": [(0, 2)],
    "catalog/getItem/": [(0, 3)],
    "cart/add": [(1, 0)],
}
"""What the workload does: calls and queries of every path it takes."""


WHO = "account/sessuser/"
"""What a page for a user with a session asks first."""

ALONE = ("actions/Catalog.action", "cart/viewCart", "order/newOrder", "order/newOrderForm")
FORMS = ("signonForm", "newAccountForm", "editAccountForm")
ASKING = {
    "catalog/searchProducts": "catalog/searchProd/",
    "catalog/viewCategory": "catalog/getCatProd/",
    "catalog/viewProduct": "catalog/getProd/",
    "catalog/viewItem": "catalog/getItem/",
    "order/viewOrder": "cart/getorder",
    "order/listOrders": "cart/getorders",
}
CHANGING = {
    "addItemToCart": "cart/add",
    "removeItemFromCart": "cart/remove",
    "updateCartQuantities": "cart/update",
}
SPECIFIED: dict[str, set[Steps]] = {
    **{f"frontend/{page}": {(), (WHO,)} for page in (*ALONE, *(f"account/{form}" for form in FORMS))},
    **{f"frontend/{page}": {(asked,), (WHO, asked)} for page, asked in ASKING.items()},
    **{f"frontend/cart/{page}": {(asked,), (asked, WHO)} for page, asked in CHANGING.items()},
    "frontend/account/login": {("account/signon/",)},
    "frontend/account/signoff": {("account/signout/",)},
    "frontend/account/newAccount": {("account/newaccount/",)},
    "frontend/order/newOrderConfirmed": {(), (WHO,), (WHO, "cart/order", "cart/getorder")},
    "account/signon/": {("jps.findSignon",), ("jps.findSignon", "jps.insertSession")},
    "account/sessuser/": {
        ("jps.findSession",),
        ("jps.findSession", "jps.findAccount", "jps.findProfile", "jps.findBanner"),
    },
    "account/signout/": {("jps.deleteSession",)},
    "account/newaccount/": {("jps.insertSignon", "jps.insertAccount", "jps.insertProfile")},
    "catalog/searchProd/": {("jps.searchProduct",)},
    "catalog/getProd/": {("jps.findProduct", "jps.itemsOfProduct")},
    "catalog/getItem/": {("jps.findItem",), ("jps.findItem", "jps.productOfItem", "jps.findInventory")},
    "catalog/getCatProd/": {("jps.findCategory", "jps.productsOfCategory")},
    "cart/add": {("catalog/getItem/",)},
    "cart/remove": {()},
    "cart/update": {()},
    "cart/order": {("jps.insertOrder", "jps.insertLine")},
    "cart/getorder": {
        ("jps.findOrder",),
        ("jps.findOrder", "jps.linesOfOrder", "jps.itemOfLine", "jps.productOfLine"),
    },
    "cart/getorders": {("jps.ordersOfUser",)},
}
"""Everything services can do; what a loop repeats stands there once."""


@pytest.fixture(scope="module")
def project() -> Project:
    """The example on free ports, with little work."""
    return example("jpetstore", {"MUP_PAGE_MS": "1"})


@pytest.fixture(scope="module")
def application() -> Application:
    """What its source says."""
    return analysed("jpetstore")


@pytest.fixture(scope="module")
def model(application: Application) -> Model:
    """The calibrated model in the folder of the example, which is of the source as it is."""
    return committed_model("jpetstore", application)


def test_analysis_finds_every_path(application: Application) -> None:
    """With and without a session, and what no customer of the workload asks for."""
    assert lacking(application, SPECIFIED) == {}


def test_the_model_is_as_large_as_published(model: Model) -> None:
    """Table 3 of the thesis, its arcs counted correctly, and the view with queries."""
    size = statistics(model)
    published = Size(tasks=6, entries=23, activities=50, nodes=32, or_nodes=14, arcs=91, paths=14)
    assert size.table3 == published, asdict(size.table3)
    assert size.correct_arcs == 109
    full = Size(tasks=6, entries=36, activities=102, nodes=58, or_nodes=14, arcs=213, paths=14)
    assert size.full == full, asdict(size.full)


def test_observed_paths(model: Model) -> None:
    """Endpoint by endpoint, what the workload makes the services do."""
    assert observed_paths(model) == OBSERVED


@pytest.mark.slow
def test_its_own_tests(tmp_path: Path) -> None:
    assert " passed" in own_tests("jpetstore", tmp_path)


@pytest.fixture(scope="module", params=["embedded", "mongod"])
def deployment(request: pytest.FixtureRequest, project: Project) -> Iterator[Deployment]:
    """Running services, once on either database."""
    if request.param == "mongod":
        project = project.with_database_uri("jps", request.getfixturevalue("mongod").uri)
    with Deployment(project) as running:
        yield running


def _sizes(deployment: Deployment) -> dict[str, int]:
    with pymongo.MongoClient[dict[str, Any]](deployment.databases()["jps"].uri) as client:
        database = client.get_default_database()
        return {
            name: database[name].count_documents({}) for name in ("sessions", "orders", "lineitem", "item")
        }


@pytest.mark.slow
@pytest.mark.services
def test_a_visit(deployment: Deployment) -> None:
    """A customer signs on, searches, buys, orders and signs off; nothing of the visit but the order stays."""
    shop = Browser(deployment, "frontend")
    before = _sizes(deployment)
    assert before == {"sessions": 11, "orders": 19, "lineitem": 34, "item": 28}
    assert "Sign in" in shop.get("/actions/Catalog.action")
    assert b"<svg" in shop.get_bytes("/static/dogs.svg")
    shop.post("/account/login", username="j2ee", password="j2ee")
    assert _sizes(deployment)["sessions"] == 12
    assert "Sign out" in shop.get("/actions/Catalog.action")
    found = shop.get("/catalog/searchProducts", keyword="oo")
    assert "Poodle" in found
    assert "Koi" not in found
    assert "Spotted Adult Female" in shop.get("/catalog/viewProduct", productId="K9-DL-01")
    assert "Persian" in shop.get("/catalog/viewCategory", categoryId="CATS")
    assert "10000" in shop.get("/catalog/viewItem", itemId="EST-28")
    assert "$155.29" in shop.post("/cart/addItemToCart", workingItemId="EST-28")
    assert "$310.58" in shop.post("/cart/updateCartQuantities", **{"EST-28": "2"})
    assert "999 9999" in shop.get("/order/newOrderForm")
    form = {"firstname": "Ada", "lastname": "B", "addr1": "1 Road", "city": "Here", "cardType": "Visa"}
    assert "Please confirm" in shop.post("/order/newOrder", page="2", **form)
    assert "Golden Retriever" in shop.post("/order/newOrderConfirmed", **form)
    assert "$310.58" in shop.get("/order/listOrders")
    assert {cookie.name for cookie in shop.cookies} == {"sessid"}
    shop.post("/account/signoff")
    assert len(shop.cookies) == 0
    assert "Sign in" in shop.get("/actions/Catalog.action")
    assert _sizes(deployment) == {**before, "orders": 20, "lineitem": 35}


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize("signed_on", [False, True], ids=["stranger", "customer"])
def test_browsers_show_every_page(deployment: Deployment, application: Application, signed_on: bool) -> None:
    """All tags are closed, all links lead somewhere, all forms are sent to an endpoint."""
    shop = Browser(deployment, "frontend")
    if signed_on:
        shop.post("/account/login", username="j2ee", password="j2ee")
        shop.post("/cart/addItemToCart", workingItemId="EST-3")
    pages = visit(shop, "/actions/Catalog.action")
    # Categories, products, items; front page, forms, cart, lists, redirections.
    assert len([path for path in pages if "/catalog/view" in path]) == 5 + 16 + 28
    assert any("viewOrder" in path for path in pages) == signed_on
    forms = {f"frontend{form}" for page in pages.values() for form in page.forms}
    assert forms <= {endpoint.label for endpoint in application.endpoints()}
    shop.post("/account/signoff")


@pytest.mark.slow
@pytest.mark.services
def test_a_new_account(deployment: Deployment) -> None:
    """A new user can sign on, and no other one can take the name."""
    shop = Browser(deployment, "frontend")
    form = {
        "username": "ada",
        "password": "ada",
        "firstname": "Ada",
        "favcategory": "CATS",
        "banneropt": "on",
    }
    assert "signonForm" in shop.post("/account/newAccount", **form)
    assert "newAccountForm" in shop.post("/account/newAccount", **form)
    shop.post("/account/login", username="ada", password="ada")
    assert "/static/cats.svg" in shop.get("/account/editAccountForm")


@pytest.mark.slow
@pytest.mark.services
def test_the_workload(deployment: Deployment, project: Project) -> None:
    """Every visit asks for the same pages, and half of the customers buy."""
    result = drive(deployment, project, seconds=1.5)
    calls = {label.removeprefix("frontend"): stats.count for label, stats in result.endpoints.items()}
    bought = calls.pop("/cart/addItemToCart", 0)
    assert bought < len(result.cycles)
    # The calls of a visit that began in the window and ended after it are not all in it.
    assert all(abs(count - len(result.cycles)) <= 1 for count in calls.values()), calls
    assert set(calls) == {
        *("/actions/Catalog.action", "/account/signonForm", "/account/login", "/account/signoff"),
        *("/catalog/searchProducts", "/catalog/viewProduct"),
    }
