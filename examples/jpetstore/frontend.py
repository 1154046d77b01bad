"""The shop as browsers see it: pages made of what other services know."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Template
from pages import HTML, Pages

from mup import EP, MS, Communication
from mup.communication import Cookie

EMPTY_CART = {"itemList": [], "subTotal": 0}
GONE = Cookie(value="", max_age=0)
CARD = {"cardType": "Visa", "creditCard": "999 9999 9999 9999", "expiryDate": "12/30"}


class Frontend(MS):
    """Pages, and the forms on them."""

    pool_size = 1
    port = 9100

    def setup(self) -> None:
        """Load the templates, once per worker."""
        self.pages = Pages()

    @EP("/actions/Catalog.action", method="GET")
    def main(self, comm: Communication) -> None:
        """Show the front page."""
        self.show_form(comm, "main.html")

    @EP("/account/signonForm", method="GET")
    def signon_form(self, comm: Communication) -> None:
        """Ask for user name and password."""
        self.show_form(comm, "signon_form.html")

    @EP("/account/newAccountForm", method="GET")
    def new_account_form(self, comm: Communication) -> None:
        """Ask a new customer for everything."""
        self.show_form(comm, "new_account_form.html")

    @EP("/account/editAccountForm", method="GET")
    def edit_account_form(self, comm: Communication) -> None:
        """Show a customer what the shop knows."""
        self.show_form(comm, "edit_account_form.html")

    @EP("/account/login", method="POST")
    def login(self, comm: Communication, username: str = "", password: str = "") -> None:
        """Sign on: the browser gets a session and an empty cart."""
        credentials = {"username": username, "password": password}
        session = comm.call("account", "/signon/", credentials).get(check=False)
        if session.status == 200:
            cookies: dict[str, str | Cookie] = {"sessid": session.body, "cart": json.dumps(EMPTY_CART)}
            comm.respond(self.pages.redirect("/actions/Catalog.action"), headers=HTML, cookies=cookies)
        else:
            self.refuse(comm)

    @EP("/account/signoff", method="POST")
    def signout(self, comm: Communication) -> None:
        """Sign off: the browser forgets session and cart."""
        comm.call("account", "/signout/", {"sessid": comm.cookies.get("sessid", "0")}).get(check=False)
        page = self.pages.redirect("/actions/Catalog.action")
        comm.respond(page, headers=HTML, cookies={"sessid": GONE, "cart": GONE})

    @EP("/account/newAccount", method="POST")
    def new_account(self, comm: Communication) -> None:
        """Make an account of the form."""
        made = comm.call("account", "/newaccount/", comm.params).get(check=False)
        form = "/account/signonForm" if made.status == 200 else "/account/newAccountForm"
        comm.respond(self.pages.redirect(form), headers=HTML)

    @EP("/catalog/searchProducts", method="GET")
    def search_products(self, comm: Communication, keyword: str = "") -> None:
        """List the products whose name has the keyword in it."""
        template = self.pages.template("search_products.html")
        context = self.who_asks(comm)
        context["products"] = comm.call("catalog", "/searchProd/", {"keyword": keyword}).get()
        self.show(comm, template, context)

    @EP("/catalog/viewCategory", method="GET")
    def view_category(self, comm: Communication) -> None:
        """List the products of a category."""
        template = self.pages.template("category.html")
        context = self.who_asks(comm)
        found = comm.call("catalog", "/getCatProd/", {"catid": comm.params.get("categoryId", "")})
        context["category"] = found.get(check=False)
        self.show(comm, template, context, status=context["category"].status)

    @EP("/catalog/viewProduct", method="GET")
    def view_product(self, comm: Communication) -> None:
        """List the items of a product."""
        template = self.pages.template("product.html")
        context = self.who_asks(comm)
        found = comm.call("catalog", "/getProd/", {"productId": comm.params.get("productId", "")})
        context["product"] = found.get(check=False)
        self.show(comm, template, context, status=context["product"].status)

    @EP("/catalog/viewItem", method="GET")
    def view_item(self, comm: Communication) -> None:
        """Show one item."""
        template = self.pages.template("item.html")
        context = self.who_asks(comm)
        found = comm.call("catalog", "/getItem/", {"itemId": comm.params.get("itemId", "")})
        context["found"] = found.get(check=False)
        self.show(comm, template, context, status=context["found"].status)

    @EP("/cart/viewCart", method="GET")
    def view_cart(self, comm: Communication) -> None:
        """Show the cart."""
        self.show_cart(comm, cart_of(comm))

    @EP("/cart/addItemToCart", method="POST")
    def add_to_cart(self, comm: Communication) -> None:
        """Put an item into the cart."""
        change = {"cart": cart_of(comm), "workingItemId": comm.params.get("workingItemId", "")}
        changed = comm.call("cart", "/add", change).get(check=False)
        self.show_cart(comm, changed.body if changed.status == 200 else change["cart"])

    @EP("/cart/removeItemFromCart", method="POST")
    def remove_from_cart(self, comm: Communication) -> None:
        """Take an item out of the cart."""
        change = {"cart": cart_of(comm), "workingItemId": comm.params.get("workingItemId", "")}
        self.show_cart(comm, comm.call("cart", "/remove", change).get())

    @EP("/cart/updateCartQuantities", method="POST")
    def update_cart(self, comm: Communication) -> None:
        """Change how many of each item are in the cart."""
        change = {"cart": cart_of(comm), "data": comm.params}
        self.show_cart(comm, comm.call("cart", "/update", change).get())

    @EP("/order/newOrderForm", method="GET")
    def new_order_form(self, comm: Communication) -> None:
        """Ask how to pay, and where to send the bill; only customers who have signed on."""
        context = self.who_asks(comm)
        if not context["authenticated"]:
            self.refuse(comm)
            return
        self.show(comm, self.pages.template("new_order_form.html"), {**context, **CARD})

    @EP("/order/newOrder", method="POST")
    def new_order(self, comm: Communication) -> None:
        """Ask for another address if the customer wants that, else for confirmation."""
        context = {**self.who_asks(comm), "form": comm.params}
        ask = comm.params.get("page") == "1" and "shippingAddressRequired" in comm.params
        self.show(comm, self.pages.template("shipping_form.html" if ask else "confirm_order.html"), context)

    @EP("/order/newOrderConfirmed", method="POST")
    def new_order_confirmed(self, comm: Communication) -> None:
        """Order what is in the cart, and show the order."""
        context = self.who_asks(comm)
        if not context["authenticated"]:
            self.refuse(comm)
            return
        order = {"form": comm.params, "cart": cart_of(comm), "username": context["username"]}
        made = comm.call("cart", "/order", order).get()
        self.show_order(comm, made["orderId"], context, cookies={"cart": GONE})

    @EP("/order/viewOrder", method="GET")
    def view_order(self, comm: Communication) -> None:
        """Show an order."""
        context = self.who_asks(comm)
        self.show_order(comm, comm.params.get("orderId", "0"), context)

    @EP("/order/listOrders", method="GET")
    def list_orders(self, comm: Communication) -> None:
        """List the customer's orders."""
        context = self.who_asks(comm)
        context["orders"] = comm.call("cart", "/getorders", {"username": context.get("username", "")}).get()
        self.show(comm, self.pages.template("list_orders.html"), context)

    def who_asks(self, comm: Communication) -> dict[str, Any]:
        """Return what every page shows of the customer: the account, if the browser has a live session."""
        session = comm.cookies.get("sessid")
        if not session:
            return {"authenticated": False}
        user = comm.call("account", "/sessuser/", {"sessid": session}).get(check=False)
        if user.status != 200:
            return {"authenticated": False}
        return {**user.body, "authenticated": True}

    def show(
        self,
        comm: Communication,
        template: Template,
        context: dict[str, Any],
        *,
        status: int = 200,
        cookies: dict[str, str | Cookie] | None = None,
    ) -> None:
        """Answer with a page."""
        comm.respond(template.render(context), status=status, headers=HTML, cookies=cookies)

    def show_form(self, comm: Communication, name: str) -> None:
        """Answer with a page that needs nothing but the customer."""
        template = self.pages.template(name)
        self.show(comm, template, self.who_asks(comm))

    def show_cart(self, comm: Communication, cart: dict[str, Any]) -> None:
        """Answer with the cart, which the browser keeps."""
        template = self.pages.template("cart.html")
        context = {**self.who_asks(comm), "cart": cart}
        self.show(comm, template, context, cookies={"cart": json.dumps(cart)})

    def show_order(
        self,
        comm: Communication,
        number: object,
        context: dict[str, Any],
        cookies: dict[str, str | Cookie] | None = None,
    ) -> None:
        """Answer with an order."""
        found = comm.call("cart", "/getorder", {"number": str(number)}).get(check=False)
        template = self.pages.template("view_order.html")
        self.show(comm, template, {**context, "found": found}, status=found.status, cookies=cookies)

    def refuse(self, comm: Communication) -> None:
        """Lead to the form for signing on."""
        page = self.pages.redirect("/account/signonForm")
        comm.respond(page, headers=HTML, cookies={"sessid": GONE, "cart": GONE})


def cart_of(comm: Communication) -> dict[str, Any]:
    """Return the cart the browser has sent; an empty one if there is none."""
    try:
        cart = json.loads(comm.cookies.get("cart", ""))
    except ValueError:
        return dict(EMPTY_CART)
    return cart if isinstance(cart, dict) else dict(EMPTY_CART)
