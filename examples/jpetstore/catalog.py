"""The catalog: categories, products, and the items that are sold of a product."""

from __future__ import annotations

import re
from typing import Any

from mup import EP, MS, Communication

ATTRIBUTES = range(1, 6)


class Catalog(MS):
    """What there is to buy."""

    pool_size = 1
    port = 9130

    @EP("/searchProd/", method="GET")
    def search_product(self, comm: Communication, keyword: str = "") -> None:
        """List products whose name has one of the words in it."""
        found: dict[str, Any] = {}
        for word in keyword.split():
            pattern = {"name": {"$regex": re.escape(word)}}
            for product in comm.query("jps", "searchProduct", "product", pattern).get():
                found[product["_id"]] = product_json(product)
        comm.respond(list(found.values()))

    @EP("/getProd/", method="GET")
    def get_product(self, comm: Communication) -> None:
        """Return a product and its items."""
        product_id = comm.params.get("productId", "")
        products = comm.query("jps", "findProduct", "product", {"_id": product_id}).get()
        items = comm.query("jps", "itemsOfProduct", "item", {"productid": product_id}).get()
        if not products:
            comm.respond({"error": f"no product {product_id!r}"}, status=404)
            return
        comm.respond(
            {
                "name": products[0]["name"],
                "categoryId": products[0]["category"],
                "itemList": [{"productId": product_id, **item_json(item)} for item in items],
            }
        )

    @EP("/getItem/", method="GET")
    def get_item(self, comm: Communication) -> None:
        """Return an item, its product, and how many there are."""
        item_id = comm.params.get("itemId", "")
        items = comm.query("jps", "findItem", "item", {"_id": item_id}).get()
        if not items:
            comm.respond({"error": f"no item {item_id!r}"}, status=404)
            return
        products = comm.query("jps", "productOfItem", "product", {"_id": items[0]["productid"]}).get()
        stock = comm.query("jps", "findInventory", "inventory", {"_id": item_id}).get()
        comm.respond(
            {
                "product": product_json(products[0]),
                "item": {**item_json(items[0]), "quantity": stock[0]["qty"]},
            }
        )

    @EP("/getCatProd/", method="GET")
    def get_category_products(self, comm: Communication, catid: str = "") -> None:
        """Return a category and its products."""
        categories = comm.query("jps", "findCategory", "category", {"_id": catid}).get()
        products = comm.query("jps", "productsOfCategory", "product", {"category": catid}).get()
        if not categories:
            comm.respond({"error": f"no category {catid!r}"}, status=404)
            return
        comm.respond(
            {
                "categoryId": catid,
                "name": categories[0]["name"],
                "productList": [product_json(product) for product in products],
            }
        )


def product_json(product: dict[str, Any]) -> dict[str, Any]:
    """Return what other services see of a product."""
    return {"productId": product["_id"], "name": product["name"], "description": product["descn"]}


def item_json(item: dict[str, Any]) -> dict[str, Any]:
    """Return what other services see of an item."""
    attributes = {f"attribute{number}": item[f"attr{number}"] for number in ATTRIBUTES}
    return {"itemId": item["_id"], "listPrice": item["listprice"], **attributes}
