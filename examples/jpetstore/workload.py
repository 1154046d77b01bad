"""Customers: look around, sign on, search, look at a product, buy it or not, sign off."""

from __future__ import annotations

from data import KEYWORDS, PRODUCTS

from mup import Client, Communication

LOOKING = 3.5
"""Seconds a customer looks at a page."""


class Customer(Client):
    """One customer of the shop. The session and the cart are cookies, which every client keeps."""

    patience = 600.0
    """Seconds to wait for an answer: a model knows no timeouts."""

    async def scenario(self, comm: Communication) -> None:
        """Visit the shop once."""
        await self.think(0.7)
        await comm.call("frontend", "/actions/Catalog.action")
        await self.think(LOOKING)
        await comm.call("frontend", "/account/signonForm")
        await comm.call("frontend", "/account/login", {"username": "j2ee", "password": "j2ee"})
        await self.think(LOOKING)
        buys = self.random.random() < 0.5
        keyword = self.random.choice(list(KEYWORDS))
        product = self.random.choice(KEYWORDS[keyword])
        item = self.random.choice(PRODUCTS[product].items)
        await comm.call("frontend", "/catalog/searchProducts", {"keyword": keyword})
        await self.think(LOOKING)
        await comm.call("frontend", "/catalog/viewProduct", {"productId": product})
        await self.think(LOOKING)
        if buys:
            await comm.call("frontend", "/cart/addItemToCart", {"workingItemId": item[0]})
            await self.think(LOOKING)
        await self.think(LOOKING)
        await comm.call("frontend", "/account/signoff")
