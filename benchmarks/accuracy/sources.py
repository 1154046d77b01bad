"""Modules of a written project that do not depend on the calls between services.

``work.py``, ``data.py`` and ``cache.py``: text, with as much of it as a system uses.
"""

from __future__ import annotations

from accuracy.system import Scan, System, every_step

__all__ = ["CACHE", "data_module", "work_module"]

WORK = '''"""Work of a known size: a number of loop iterations, whatever machine they run on."""

from __future__ import annotations

import math
import random
import time

ITERATIONS = 25_000
"""In one nominal millisecond."""
SPREAD = 0.8
"""Standard deviation of the logarithm of a lognormal amount."""


def burn(milliseconds: float) -> None:
    """Use the CPU for about this long."""
    state = 1
    for _ in range(int(milliseconds * ITERATIONS)):
        state = (state * 5 + 1) & 0xFFFF


def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    time.sleep(milliseconds / 1000)


def uniform(mean: float) -> float:
    """Return up to a half more or less than the mean."""
    return random.uniform(0.5 * mean, 1.5 * mean)


def exponential(mean: float) -> float:
    """Return an exponential amount."""
    return random.expovariate(1 / mean)


def lognormal(mean: float) -> float:
    """Return an amount that is now and then several times the mean."""
    return mean * math.exp(random.gauss(-SPREAD * SPREAD / 2, SPREAD))
'''

BLOCKING = '''
def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    time.sleep(milliseconds / 1000)
'''
AWAITED = '''
async def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    await asyncio.sleep(milliseconds / 1000)
'''

WIDE_WORK = '''"""Work of a known size: so many iterations, blocks or rows, whatever machine they run on."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time

ITERATIONS = 25_000
"""In one nominal millisecond; so are the next two."""
BLOCKS = 128
TABLES = 80

BLOCK = bytes(16 * 1024)
TABLE = [{"id": n, "name": f"item {n}", "price": n * 1.25} for n in range(20)]


def burn(milliseconds: float) -> None:
    """Compute for about this long."""
    state = 1
    for _ in range(int(milliseconds * ITERATIONS)):
        state = (state * 5 + 1) & 0xFFFF


def digest(milliseconds: float) -> str:
    """Hash blocks for about this long, without the interpreter's lock."""
    found = hashlib.sha256()
    for _ in range(int(milliseconds * BLOCKS)):
        found.update(BLOCK)
    return found.hexdigest()


def render(milliseconds: float) -> int:
    """Write JSON for about this long."""
    return sum(len(json.dumps(TABLE)) for _ in range(int(milliseconds * TABLES)))


def pause(milliseconds: float) -> None:
    """Wait without using the CPU, as for a slow foreign service."""
    time.sleep(milliseconds / 1000)


def uniform(mean: float) -> float:
    """Return up to a half more or less than the mean."""
    return random.uniform(0.5 * mean, 1.5 * mean)


def exponential(mean: float) -> float:
    """Return an exponential amount."""
    return random.expovariate(1 / mean)


def lognormal(mean: float) -> float:
    """Return an amount that is now and then several times the mean."""
    return mean * math.exp(random.gauss(-0.32, 0.8))


def heavy(mean: float) -> float:
    """Return a lognormal amount with a standard deviation of three times the mean, at most 40 times that."""
    return min(mean * math.exp(random.gauss(-1.125, 1.5)), 40 * mean)


def pareto(mean: float) -> float:
    """Return an amount of a Pareto distribution (shape 1.5) bounded at a hundred times its least."""
    # The mean of the bounded distribution is 2.70 times the least amount.
    least = mean / 2.7027
    return least * (1 - random.random() * (1 - 100**-1.5)) ** (-1 / 1.5)


def bimodal(mean: float) -> float:
    """Return much for one request of ten, little for the others."""
    return 6 * mean if random.random() < 0.1 else mean * 4 / 9
'''
PARTS = ("digest", "render", "pause", "uniform", "exponential", "lognormal", "heavy", "pareto", "bimodal")
"""Functions that are left out where nothing calls them."""
NEEDS = {
    "hashlib": ("digest",),
    "json": ("render",),
    "math": ("lognormal", "heavy"),
    "random": ("uniform", "exponential", "lognormal", "heavy", "pareto", "bimodal"),
    "time": ("pause",),
}
CONSTANTS = {
    "digest": ("BLOCKS = 128\n", "BLOCK = bytes(16 * 1024)\n"),
    "render": (
        "TABLES = 80\n",
        'TABLE = [{"id": n, "name": f"item {n}", "price": n * 1.25} for n in range(20)]\n',
    ),
}

DATA = '''"""What is in the database? Items on shelves."""

from __future__ import annotations

from typing import Any

ITEMS, SHELVES = 500, 50


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    database.items.delete_many({})
    items = ({"_id": n, "shelf": n % SHELVES, "text": f"item {n} " + "x" * 80} for n in range(ITEMS))
    database.items.insert_many(list(items))
'''

SCALE = '''
SCALE = float(os.environ.get("DATA_SCALE", "1"))
"""How much data there is: 2 = twice as much."""
'''
FILL = DATA[DATA.index("\n\ndef fill") :]
CATALOGUE = '''

class Catalogue:
    """Prices that are gone through for every request: so many for each nominal millisecond."""

    def __init__(self, milliseconds: float) -> None:
        self.prices = [n * 7919 % 10_007 for n in range(int(milliseconds * 20_000 * SCALE))]

    def best(self, key: int) -> int:
        """Return how many cost less than a key says."""
        return sum(price < key for price in self.prices)
'''

CACHE = '''"""What was asked for lately: what has not been for longest leaves first."""

from __future__ import annotations

from collections import OrderedDict


class Cache:
    """Room for a number of values by key."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: OrderedDict[int, str] = OrderedDict()

    def get(self, key: int) -> str | None:
        """Return the value of a key, None if it is not here."""
        value = self.values.get(key)
        if value is not None:
            self.values.move_to_end(key)
        return value

    def put(self, key: int, value: str) -> None:
        """Keep a value."""
        self.values[key] = value
        if len(self.values) > self.size:
            self.values.popitem(last=False)
'''


def work_module(system: System, used: set[str]) -> str:
    """Return ``work.py``.

    Args:
        system: What it is for.
        used: Names its services use.
    """
    if system.prefix:
        return _wide_work(used)
    if system.runtime != "async":
        return WORK
    imports = "import math\nimport random\nimport time\n", "import asyncio\nimport math\nimport random\n"
    return WORK.replace(*imports).replace(BLOCKING, AWAITED)


def _wide_work(used: set[str]) -> str:
    text = WIDE_WORK
    for name in PARTS:
        if name not in used:
            begin = text.index(f"\n\ndef {name}(")
            end = text.find("\n\n\ndef ", begin + 2)
            text = text[:begin] + (text[end:] if end >= 0 else "\n")
            for line in CONSTANTS.get(name, ()):
                text = text.replace(line, "")
    for module, functions in NEEDS.items():
        if not used.intersection(functions):
            text = text.replace(f"import {module}\n", "")
    if not used.intersection(CONSTANTS):
        text = text.replace(
            '"""In one nominal millisecond; so are the next two."""', '"""In one nominal millisecond."""'
        )
    while "\n\n\n\n" in text:
        text = text.replace("\n\n\n\n", "\n\n\n")
    return text.replace("annotations\n\n\n", "annotations\n\n").rstrip() + "\n"


def data_module(system: System) -> str:
    """Return ``data.py``; "" for a system without data."""
    if not system.prefix:
        return DATA if system.database else ""
    steps = [step for service in system.services for step in every_step(service)]
    scans = any(isinstance(step, Scan) for step in steps)
    if not system.database and not scans:
        return ""
    about = "What is in the database" if system.database else "What does a service hold in memory"
    text = f'"""{about}, and how much of it?"""\n\nfrom __future__ import annotations\n\nimport os\n'
    if system.database:
        text += "from typing import Any\n"
    text += SCALE
    if system.database:
        text += "\nITEMS, SHELVES = round(500 * SCALE), 50\n" + FILL
    return text + (CATALOGUE if scans else "")
