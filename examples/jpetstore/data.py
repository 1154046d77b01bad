"""Products and users of the shop, the same on every machine."""

from __future__ import annotations

import random
from typing import Any, NamedTuple


class Product(NamedTuple):
    """A kind of pet, and the items of it: id, attribute, list price."""

    category: str
    name: str
    sentence: str
    items: tuple[tuple[str, str, float], ...]


CATEGORIES = {
    "FISH": "Fish",
    "DOGS": "Dogs",
    "REPTILES": "Reptiles",
    "CATS": "Cats",
    "BIRDS": "Birds",
}

PRODUCTS = {
    "FI-SW-01": Product(
        *("FISH", "Angelfish", "Salt water fish from Australia"),
        (("EST-1", "Large", 16.5), ("EST-2", "Small", 16.5)),
    ),
    "FI-SW-02": Product(
        "FISH", "Tiger Shark", "Salt water fish from Australia", (("EST-3", "Toothless", 18.5),)
    ),
    "FI-FW-01": Product(
        *("FISH", "Koi", "Fresh water fish from Japan"),
        (("EST-4", "Spotted", 18.5), ("EST-5", "Spotless", 18.5)),
    ),
    "FI-FW-02": Product(
        *("FISH", "Goldfish", "Fresh water fish from China"),
        (("EST-20", "Adult Male", 5.5), ("EST-21", "Adult Female", 5.29)),
    ),
    "K9-BD-01": Product(
        *("DOGS", "Bulldog", "Friendly dog from England"),
        (("EST-6", "Male Adult", 18.5), ("EST-7", "Female Puppy", 18.5)),
    ),
    "K9-PO-02": Product("DOGS", "Poodle", "Cute dog from France", (("EST-8", "Male Puppy", 18.5),)),
    "K9-DL-01": Product(
        *("DOGS", "Dalmation", "Great dog for a fire station"),
        (("EST-9", "Spotless Male Puppy", 18.5), ("EST-10", "Spotted Adult Female", 18.5)),
    ),
    "K9-RT-01": Product(
        "DOGS", "Golden Retriever", "Great family dog", (("EST-28", "Adult Female", 155.29),)
    ),
    "K9-RT-02": Product(
        *("DOGS", "Labrador Retriever", "Great hunting dog"),
        (
            ("EST-22", "Adult Male", 135.5),
            ("EST-23", "Adult Female", 145.49),
            ("EST-24", "Adult Male", 255.5),
            ("EST-25", "Adult Female", 325.29),
        ),
    ),
    "K9-CW-01": Product(
        *("DOGS", "Chihuahua", "Great companion dog"),
        (("EST-26", "Adult Male", 125.5), ("EST-27", "Adult Female", 155.29)),
    ),
    "RP-SN-01": Product(
        *("REPTILES", "Rattlesnake", "Doubles as a watch dog"),
        (("EST-11", "Venomless", 18.5), ("EST-12", "Rattleless", 18.5)),
    ),
    "RP-LI-02": Product("REPTILES", "Iguana", "Friendly green friend", (("EST-13", "Green Adult", 18.5),)),
    "FL-DSH-01": Product(
        *("CATS", "Manx", "Great for reducing mouse populations"),
        (("EST-14", "Tailless", 58.5), ("EST-15", "With tail", 23.5)),
    ),
    "FL-DLH-02": Product(
        *("CATS", "Persian", "Friendly house cat, doubles as a princess"),
        (("EST-16", "Adult Female", 93.5), ("EST-17", "Adult Male", 93.5)),
    ),
    "AV-CB-01": Product(
        "BIRDS", "Amazon Parrot", "Great companion for up to 75 years", (("EST-18", "Adult Male", 193.5),)
    ),
    "AV-SB-02": Product("BIRDS", "Finch", "Great stress reliever", (("EST-19", "Adult Male", 15.5),)),
}

KEYWORDS = {
    "a": (
        *("FI-SW-01", "FI-SW-02", "K9-DL-01", "K9-RT-02", "K9-CW-01"),
        *("RP-SN-01", "RP-LI-02", "FL-DSH-01", "FL-DLH-02", "AV-CB-01"),
    ),
    "e": ("FI-SW-01", "FI-SW-02", "K9-PO-02", "K9-RT-01", "K9-RT-02", "RP-SN-01", "FL-DLH-02"),
    "i": (
        *("FI-SW-01", "FI-SW-02", "FI-FW-01", "FI-FW-02", "K9-DL-01"),
        *("K9-RT-01", "K9-RT-02", "K9-CW-01", "RP-LI-02", "FL-DLH-02"),
    ),
    "o": ("FI-FW-01", "FI-FW-02", "K9-BD-01", "K9-PO-02", "K9-DL-01", "K9-RT-01", "K9-RT-02", "AV-CB-01"),
    "u": ("K9-BD-01", "K9-CW-01", "RP-LI-02"),
}
"""What customers search for, and what they then look at: made by hand, not quite what the search finds."""

USERS = {"j2ee": "DOGS", "ACID": "CATS", "test": "FISH"}
"""User names, which are also passwords (of a shop that is not public), and favourite categories."""

OPEN_SESSIONS = 11
ORDERS = 19
ORDER_LINES = 34
FIRST_ORDER = 1000


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    for name, documents in collections().items():
        database[name].delete_many({})
        if documents:
            database[name].insert_many(documents)


def collections() -> dict[str, list[dict[str, Any]]]:
    """Return every collection of the shop."""
    return {
        "account": [_account(user) for user in USERS],
        "signon": [{"_id": user, "password": user} for user in USERS],
        "profile": [_profile(user, favourite) for user, favourite in USERS.items()],
        "bannerdata": [{"_id": key, "bannername": _picture(key, "banner")} for key in CATEGORIES],
        "category": [{"_id": key, "name": name, "descn": _picture(key)} for key, name in CATEGORIES.items()],
        "product": [_product(key, product) for key, product in PRODUCTS.items()],
        "item": [_item(key, *item) for key, product in PRODUCTS.items() for item in product.items],
        "inventory": [{"_id": item[0], "qty": 10000} for p in PRODUCTS.values() for item in p.items],
        "supplier": [_supplier(number) for number in (1, 2)],
        "sequence": [{"_id": "ordernum", "nextid": FIRST_ORDER + ORDERS}],
        "orderstatus": [],
        **_history(random.Random("jpetstore")),
    }


def _picture(category: str, kind: str = "picture") -> str:
    return f'<img class="{kind}" src="/static/{category.lower()}.svg" alt="{CATEGORIES[category]}">'


def _account(user: str) -> dict[str, Any]:
    return {
        "_id": user,
        "email": f"{user.lower()}@example.com",
        "firstname": "ABC",
        "lastname": "XYX",
        "status": "OK",
        "addr1": "901 San Antonio Road",
        "addr2": "MS UCUP02-206",
        "city": "Palo Alto",
        "state": "CA",
        "zip": "94303",
        "country": "USA",
        "phone": "555-555-5555",
    }


def _profile(user: str, favourite: str) -> dict[str, Any]:
    return {"_id": user, "langpref": "english", "favcategory": favourite, "mylistopt": 1, "banneropt": 1}


def _product(key: str, product: Product) -> dict[str, Any]:
    description = f"{_picture(product.category)} {product.sentence}"
    return {"_id": key, "category": product.category, "name": product.name, "descn": description}


def _item(product: str, key: str, attribute: str, price: float) -> dict[str, Any]:
    return {
        "_id": key,
        "productid": product,
        "listprice": price,
        "unitcost": round(price * 0.6, 2),
        "supplier": 1,
        "status": "P",
        "attr1": attribute,
        "attr2": "",
        "attr3": "",
        "attr4": "",
        "attr5": "",
    }


def _supplier(number: int) -> dict[str, Any]:
    return {
        "_id": number,
        "name": f"Supplier {number}",
        "status": "AC",
        "addr1": f"{600 + number} Avon Way",
        "city": "Los Angeles",
        "state": "CA",
        "zip": "94024",
        "phone": "212-947-0797",
    }


def _history(draw: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Return what happened before: customers who are signed on, and orders."""
    prices = {key: price for product in PRODUCTS.values() for key, _, price in product.items}
    sizes = [1] * ORDERS
    for _ in range(ORDER_LINES - ORDERS):
        sizes[draw.randrange(ORDERS)] += 1
    orders, lines = [], []
    for number, size in enumerate(sizes, start=FIRST_ORDER):
        items = [draw.choice(list(prices)) for _ in range(size)]
        lines += [
            {
                "_id": f"{number}-{index}",
                "orderid": number,
                "linenum": index,
                "itemid": item,
                "quantity": 1,
                "unitprice": prices[item],
            }
            for index, item in enumerate(items, start=1)
        ]
        orders.append(
            {
                "_id": number,
                "userid": draw.choice(list(USERS)),
                "orderdate": f"2022-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
                "firstname": "ABC",
                "lastname": "XYX",
                "addr1": "901 San Antonio Road",
                "city": "Palo Alto",
                "cardType": "Visa",
                "totalprice": round(sum(prices[item] for item in items), 2),
            }
        )
    sessions = [
        {"_id": draw.getrandbits(63), "username": draw.choice(list(USERS))} for _ in range(OPEN_SESSIONS)
    ]
    return {"sessions": sessions, "orders": orders, "lineitem": lines}
