"""Tea drinkers: log in, look at two categories, put two products into the cart, look at it, log out."""

from __future__ import annotations

from data import CATEGORIES, PRODUCTS, USERS
from pictures import PAGE_FILES

from mup import Client, Communication

LOOKING = 1.5
"""Seconds a user looks at a page."""
STRANGER = "{}"


class TeaDrinker(Client):
    """One user. The cookie is a text that comes with an answer and goes along with the next request."""

    patience = 600.0
    """Seconds to wait for an answer: a model knows no timeouts."""

    async def scenario(self, comm: Communication) -> None:
        """Visit the store once."""
        category, other_category = self.random.randrange(CATEGORIES), self.random.randrange(CATEGORIES)
        product, other_product = self.random.randrange(PRODUCTS), self.random.randrange(PRODUCTS)
        number = self.index % USERS
        await self.think(LOOKING)
        await self.look_at_the_front_page(comm, STRANGER)
        await self.think(LOOKING)
        await comm.call("web", "/login/", {"cookie": STRANGER})
        await self.think(LOOKING)
        user = {"username": f"user{number}", "password": f"password{number}"}
        cookie = await comm.call("web", "/loginAction/", {"cookie": STRANGER, **user})
        await self.think(LOOKING)
        await comm.call("web", "/category/", {"cookie": cookie, "category": category, "page": 1})
        await self.think(LOOKING)
        await comm.call("web", "/product/", {"cookie": cookie, "id": product})
        await self.think(LOOKING)
        cookie = await comm.call("web", "/cartActionAdd/", {"cookie": cookie, "productid": product})
        await self.think(LOOKING)
        await comm.call("web", "/cart/", {"cookie": cookie})
        await self.think(LOOKING)
        await comm.call("web", "/category/", {"cookie": cookie, "category": other_category, "page": 1})
        await self.think(LOOKING)
        cookie = await comm.call("web", "/cartActionAdd/", {"cookie": cookie, "productid": other_product})
        await self.think(LOOKING)
        await comm.call("web", "/cart/", {"cookie": cookie})
        await self.think(LOOKING)
        await comm.call("web", "/profile/", {"cookie": cookie})
        await self.think(LOOKING)
        await self.look_at_the_front_page(comm, cookie)
        await comm.call("web", "/loginAction/", {"cookie": cookie, "logout": ""})

    async def look_at_the_front_page(self, comm: Communication, cookie: str) -> None:
        """Load the page and then its files, one after the other."""
        await comm.call("web", "/index/", {"cookie": cookie})
        for file in PAGE_FILES:
            await comm.call("web", f"/{file}")
