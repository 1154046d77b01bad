"""Products and users of the store, the same on every machine."""

from __future__ import annotations

import random
from typing import Any

USERS = 1000
CATEGORIES = 5
PER_CATEGORY = 100
PRODUCTS = CATEGORIES * PER_CATEGORY


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    for name, documents in collections().items():
        database[name].delete_many({})
        database[name].insert_many(documents)


def collections() -> dict[str, list[dict[str, Any]]]:
    """Return every collection of the store."""
    draw = random.Random("teastore")
    return {
        "user": [_user(number) for number in range(USERS)],
        "category": [_category(number) for number in range(CATEGORIES)],
        "products": [_product(number, draw.randrange(15000)) for number in range(PRODUCTS)],
    }


def _user(number: int) -> dict[str, Any]:
    return {
        "_id": number,
        "username": f"user{number}",
        "password": f"password{number}",
        "email": f"user{number}@teastore.com",
        "realname": f"Name Surname {number}",
        "orders": [],
    }


def _category(number: int) -> dict[str, Any]:
    return {"_id": number, "name": f"Category {number}", "description": f"Everything of category {number}"}


def _product(number: int, cents: int) -> dict[str, Any]:
    category, index = divmod(number, PER_CATEGORY)
    return {
        "_id": number,
        "category_id": category,
        "name": f"Product {category}-{index}",
        "description": f"Description of product {category}-{index}",
        "listpriceincents": cents,
    }
