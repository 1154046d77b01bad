"""Which server and which database inside it does a URI name?"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit, urlunsplit

__all__ = ["database_of", "scheme_of", "server_of", "with_database"]


def scheme_of(uri: str) -> str:
    """Return what stands before ``://`` ("" if nothing does)."""
    head, mark, _ = uri.partition("://")
    return head.lower() if mark else ""


def database_of(uri: str) -> str:
    """Return the name of the database in the path of the URI, or ""."""
    return unquote(urlsplit(uri).path.strip("/"))


def server_of(uri: str) -> str:
    """Return ``host:port`` without credentials: fit for messages."""
    return urlsplit(uri).netloc.rpartition("@")[2]


def with_database(uri: str, database: str) -> str:
    """Return the URI with this database in its path.

    A URI with credentials but without a path authenticates against ``admin``; a path would change that
    silently, so it is spelt out.
    """
    parts = urlsplit(uri)
    query = parts.query
    if "@" in parts.netloc and not parts.path.strip("/") and "authsource" not in query.lower():
        query = f"{query}&authSource=admin" if query else "authSource=admin"
    return urlunsplit((parts.scheme, parts.netloc, f"/{quote(database, safe='')}", query, ""))
