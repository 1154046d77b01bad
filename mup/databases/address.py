"""Parse a database URI: its server, its database, and the password to hide."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit, urlunsplit

__all__ = [
    "checked_uri",
    "database_of",
    "has_credentials",
    "scheme_of",
    "server_of",
    "with_database",
    "without_credentials",
]

_SECRET_OPTION = re.compile(r"password|authmechanismproperties|token|secret", re.IGNORECASE)
"""Options of a URI that hold secrets: passwords of keys and proxies, session tokens."""


def checked_uri(uri: str) -> str:
    """Return the URI if it is clear what in it are credentials.

    Others would be taken apart at the wrong places, and parts of a password end up in messages.

    Raises:
        ValueError: It is not; the message does not show it.
    """
    credentials = uri.partition("://")[2].rpartition("@")[0]
    if re.search(r"[/?#@]", credentials):
        raise ValueError(
            "the characters / ? # @ in a user name, password or option must be percent-encoded "
            "(what a ${VARIABLE} of mup.toml stands for is)"
        )
    return uri


def scheme_of(uri: str) -> str:
    """Return what stands before ``://`` ("" if nothing does)."""
    head, mark, _ = uri.partition("://")
    return head.lower() if mark else ""


def database_of(uri: str) -> str:
    """Return the name of the database in the path of the URI, or ""."""
    return unquote(urlsplit(uri).path.strip("/"))


def server_of(uri: str) -> str:
    """Return ``host:port`` without credentials: fit for messages, also if the URI is malformed."""
    # Not by urlsplit: for it, a password with a slash in it would be host, port and path.
    rest = uri.partition("://")[2]
    return re.split(r"[/?#]", rest.rpartition("@")[2], maxsplit=1)[0]


def has_credentials(uri: str) -> bool:
    """Whether a URI holds something that opens the database."""
    head, _, query = uri.partition("?")
    return "@" in head or bool(_SECRET_OPTION.search(query))


def without_credentials(uri: str) -> str:
    """Return the URI with nothing left in it that opens the database; the rest finds the server."""
    scheme, _, rest = uri.partition("://")
    head, _, query = rest.partition("?")
    kept = [option for option in query.split("&") if option and not _SECRET_OPTION.search(option)]
    head = head.rpartition("@")[2]
    return f"{scheme}://{head}" + (f"?{'&'.join(kept)}" if kept else "")


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
