"""The only service that knows the database: one query per endpoint."""

from __future__ import annotations

from mup import EP, MS, Communication


class Persistence(MS):
    """Users, categories, products; ``{}`` and ``[]`` where there is nothing."""

    pool_size = 1
    port = 9130

    @EP("/products/", method="GET")
    def products(self, comm: Communication, id: int) -> None:  # noqa: A002
        """Return a product."""
        found = comm.query("teastore", "product", "products", {"_id": id}).get()
        comm.respond(found[0] if found else {})

    @EP("/productsCount/", method="GET")
    def products_count(self, comm: Communication, category: int) -> None:
        """Return how many products a category has."""
        count = {"$command": "count", "filter": {"category_id": category}}
        comm.respond(str(comm.query("teastore", "countProducts", "products", count).get()[0]["count"]))

    @EP("/productsList/", method="GET")
    def products_list(self, comm: Communication, category: int, idxFrom: int, count: int) -> None:  # noqa: N803
        """Return some products of a category, in the order of their ids."""
        some = {
            "$command": "find",
            "filter": {"category_id": category},
            "sort": {"_id": 1},
            "skip": idxFrom,
            "limit": count,
        }
        comm.respond(comm.query("teastore", "listProducts", "products", some).get())

    @EP("/categories/", method="GET")
    def categories(self, comm: Communication, id: int) -> None:  # noqa: A002
        """Return a category."""
        found = comm.query("teastore", "category", "category", {"_id": id}).get()
        comm.respond(found[0] if found else {})

    @EP("/categoriesList/", method="GET")
    def categories_list(self, comm: Communication, idxFrom: int = -1, count: int = -1) -> None:  # noqa: N803
        """Return categories in the order of their ids; all of them, unless a range is given."""
        some: dict[str, object] = {"$command": "find", "sort": {"_id": 1}, "skip": max(idxFrom, 0)}
        if count > 0:
            some["limit"] = count
        comm.respond(comm.query("teastore", "listCategories", "category", some).get())

    @EP("/users/", method="GET")
    def users(self, comm: Communication, id: int) -> None:  # noqa: A002
        """Return a user."""
        found = comm.query("teastore", "user", "user", {"_id": id}).get()
        comm.respond(found[0] if found else {})

    @EP("/usersByName/", method="GET")
    def users_by_name(self, comm: Communication, name: str) -> None:
        """Return the user of this name; there is no index."""
        found = comm.query("teastore", "userByName", "user", {"username": name}).get()
        comm.respond(found[0] if found else {})

    @EP("/ordersList/", method="GET")
    def orders_list(self, comm: Communication, userId: int) -> None:  # noqa: N803
        """Return the orders of a user."""
        found = comm.query("teastore", "orders", "user", {"_id": userId}).get()
        comm.respond(found[0]["orders"] if found else [])
