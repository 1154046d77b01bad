"""The store as browsers see it: every page asks several services, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from auth import read_session, with_product
from jinja2 import Environment, FileSystemLoader
from page_files import PageFiles
from pictures import write_files
from recommender import RECOMMENDED

from mup import EP, MS, Communication

HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE_SIZE = 20
IN_A_LIST = (600, 600)
AS_ADVERTISED = (200, 200)
ICON = {"icon": (400, 400)}
STRANGER = "{}"


class Web(PageFiles, MS):
    """Pages. A text called cookie goes from page to page: who is logged in, and the cart."""

    pool_size = 1
    port = 9100

    def setup(self) -> None:
        """Load the templates, once per worker, and have the files of the pages written."""
        write_files()
        self.templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
        )

    @EP("/index/", method="GET")
    def index(self, comm: Communication, cookie: str = STRANGER) -> None:
        """Show the front page."""
        categories = self.categories(comm)
        self.show(comm, "index.html", cookie, {"categories": categories})

    @EP("/login/", method="GET")
    def login(self, comm: Communication, cookie: str = STRANGER) -> None:
        """Ask for user name and password."""
        categories = self.categories(comm)
        self.show(comm, "login.html", cookie, {"categories": categories})

    @EP("/loginAction/", method="POST")
    def login_action(self, comm: Communication, cookie: str = STRANGER) -> None:
        """Log in or out; return the new cookie."""
        if "logout" in comm.params:
            changed = comm.call("auth", "/logout/", {"cookie": cookie}).get()
        else:
            name, password = comm.params.get("username", ""), comm.params.get("password", "")
            changed = comm.call("auth", "/login/", {"name": name, "password": password}).get()
        comm.respond(changed)

    @EP("/category/", method="GET")
    def category(self, comm: Communication, category: int, page: int = 1, cookie: str = STRANGER) -> None:
        """Show twenty products of a category, and their pictures."""
        context: dict[str, Any] = {"categories": self.categories(comm), "page": page}
        context["category"] = comm.call("persistence", "/categories/", {"id": category}).get()
        count = int(comm.call("persistence", "/productsCount/", {"category": category}).get())
        first = max(min((page - 1) * PAGE_SIZE, count - PAGE_SIZE), 0)
        some = {"category": category, "idxFrom": first, "count": PAGE_SIZE}
        context["products"] = comm.call("persistence", "/productsList/", some).get()
        context["images"] = self.images(comm, context["products"], IN_A_LIST)
        context["pages"] = range(1, -(-count // PAGE_SIZE) + 1)
        self.show(comm, "category.html", cookie, context)

    @EP("/product/", method="GET")
    def product(self, comm: Communication, id: int, cookie: str = STRANGER) -> None:  # noqa: A002
        """Show a product, and what else its buyers might like."""
        categories = self.categories(comm)
        product = comm.call("persistence", "/products/", {"id": id}).get()
        session = read_session(cookie)
        items = with_product(session, product).items if product else session.items
        context = {"categories": categories, "product": product, **self.advertised(comm, cookie, items)}
        self.show(comm, "product.html", cookie, context)

    @EP("/cart/", method="GET")
    def cart(self, comm: Communication, cookie: str = STRANGER) -> None:
        """Show the cart, and what else its owner might like."""
        categories = self.categories(comm)
        items = read_session(cookie).items
        context = {"categories": categories, "items": items, **self.advertised(comm, cookie, items)}
        self.show(comm, "cart.html", cookie, context)

    @EP("/profile/", method="GET")
    def profile(self, comm: Communication, cookie: str = STRANGER) -> None:
        """Show a user and what the user has ordered."""
        categories = self.categories(comm)
        userid = read_session(cookie).userid
        # No user has this number.
        number = -1 if userid is None else userid
        user = comm.call("persistence", "/users/", {"id": number}).get()
        orders = comm.call("persistence", "/ordersList/", {"userId": number}).get()
        self.show(comm, "profile.html", cookie, {"categories": categories, "user": user, "orders": orders})

    @EP("/cartActionAdd/", method="POST")
    def cart_action_add(self, comm: Communication, productid: int, cookie: str = STRANGER) -> None:
        """Put a product into the cart; return the new cookie."""
        change = {"cookie": cookie, "productid": productid}
        comm.respond(comm.call("auth", "/addProductToCart/", change).get())

    def categories(self, comm: Communication) -> list[dict[str, Any]]:
        """Return all categories, for the menu."""
        everything = {"idxFrom": -1, "count": -1}
        found: list[dict[str, Any]] = comm.call("persistence", "/categoriesList/", everything).get()
        return found

    def images(
        self, comm: Communication, products: list[dict[str, Any]], size: tuple[int, int]
    ) -> dict[str, str]:
        """Return the pictures of some products."""
        wanted = {str(product["_id"]): size for product in products}
        found: dict[str, str] = comm.call("image", "/getProductImages/", {"qry": wanted}).get()
        return found

    def advertised(self, comm: Communication, cookie: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Return three recommended products, and their pictures."""
        cart = {"cookie": cookie, "items": msgspec.json.encode(items).decode()}
        chosen = comm.call("recommender", "/recommend/", cart).get()
        products = [
            comm.call("persistence", "/products/", {"id": chosen[place]}).get()
            for place in range(RECOMMENDED)
        ]
        return {"advertised": products, "images": self.images(comm, products, AS_ADVERTISED)}

    def show(self, comm: Communication, template: str, cookie: str, context: dict[str, Any]) -> None:
        """Answer with a page: what it shows, the store's picture, and whether a user is logged in."""
        icon = comm.call("image", "/GetWebImages/", {"qry": ICON}).get()["icon"]
        logged_in = comm.call("auth", "/isLoggedIn/", {"cookie": cookie}).get()
        page = self.templates.get_template(template)
        comm.respond(page.render(context, cookie=cookie, icon=icon, logged_in=logged_in), headers=HTML)
