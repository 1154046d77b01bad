"""Login and cart, all of it in a text that goes from page to page."""

from __future__ import annotations

from typing import Any

import msgspec

from mup import EP, MS, Communication


class Session(msgspec.Struct, omit_defaults=True):
    """What the text called cookie says: ``{}`` for a stranger."""

    userid: int | None = None
    cart: list[dict[str, Any]] | None = None

    @property
    def items(self) -> list[dict[str, Any]]:
        """Products in the cart, each with its quantity ``qty``."""
        return self.cart or []

    def to_text(self) -> str:
        """Return the text."""
        return msgspec.json.encode(self).decode()


def read_session(cookie: str) -> Session:
    """Return what a cookie says; one that cannot be read is a stranger's."""
    try:
        return msgspec.json.decode(cookie, type=Session)
    except msgspec.DecodeError:
        return Session()


class Auth(MS):
    """Checks and changes sessions."""

    pool_size = 1
    port = 9110

    @EP("/isLoggedIn/", method="POST")
    def is_logged_in(self, comm: Communication, cookie: str = "{}") -> None:
        """Return whether the user is logged in."""
        comm.respond(read_session(cookie).userid is not None)

    @EP("/login/", method="POST")
    def login(self, comm: Communication, name: str, password: str) -> None:
        """Return the cookie of a user with an empty cart; a stranger's if the password is wrong."""
        user = comm.call("persistence", "/usersByName/", {"name": name}).get()
        session = Session(userid=user["_id"], cart=[]) if user.get("password") == password else Session()
        comm.respond(session.to_text())

    @EP("/logout/", method="POST")
    def logout(self, comm: Communication) -> None:
        """Return a stranger's cookie."""
        comm.respond(Session().to_text())

    @EP("/addProductToCart/", method="POST")
    def add_product_to_cart(self, comm: Communication, cookie: str, productid: int) -> None:
        """Return the cookie with one more of a product in its cart."""
        product = comm.call("persistence", "/products/", {"id": productid}).get()
        session = read_session(cookie)
        comm.respond(with_product(session, product).to_text() if product else session.to_text())


def with_product(session: Session, product: dict[str, Any]) -> Session:
    """Return a session with one more of a product in its cart."""
    items = [dict(item) for item in session.items]
    for item in items:
        if item["_id"] == product["_id"]:
            item["qty"] += 1
            break
    else:
        items.append({**product, "qty": 1})
    return Session(userid=session.userid, cart=items)
