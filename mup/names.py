"""Names allowed for services and databases.

Logs and models write a call as ``SERVICE/path/`` and a query as ``DATABASE.QUERY``, options of the command
line ``SERVICE=4`` and lists of them. A name with such a character in it could not be told from what stands
beside it: ``shop.v2.find`` would be the query ``v2.find`` of a database ``shop``.
"""

from __future__ import annotations

import re

__all__ = ["name_problem"]

_NAME = re.compile(r"\w[\w-]*")


def name_problem(name: str) -> str:
    """Return what is wrong with the name of a service or a database, with a better one; "" if nothing is."""
    if _NAME.fullmatch(name):
        return ""
    better = re.sub(r"[^\w-]+", "_", name).strip("-")
    call = f"; call it {better!r}" if better.strip("_") else ""
    return f"a name has letters, digits, '_' and '-' (not in front), got {name!r}{call}"
