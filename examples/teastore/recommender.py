"""Recommendations of other products, drawn at random."""

from __future__ import annotations

import random

from data import PRODUCTS

from mup import EP, MS, Communication

RECOMMENDED = 3


class Recommender(MS):
    """Recommends products."""

    pool_size = 1
    port = 9140

    @EP("/recommend/", method="POST")
    def recommend(self, comm: Communication) -> None:
        """Return ids of products; what is in the cart does not matter."""
        comm.respond([random.randrange(PRODUCTS) for _ in range(RECOMMENDED)])
