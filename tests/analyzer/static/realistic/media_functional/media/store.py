"""Metadata and blobs: functions that are handed the request's communication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from media import names
from media.decorators import optional, retried, timed
from mup import Communication, MupFuture

Item = Mapping[str, Any]


@timed
def find_item(comm: Communication, number: str) -> Item | None:
    """Return an item's metadata, None if there is none."""
    rows = comm.query(names.DATABASE, names.QUERIES["item"], "items", {"_id": number}).get()
    return rows[0] if rows else None


def items_of(comm: Communication, owner: str, *, kind: str | None = None) -> list[Item]:
    """Return the items of an owner, perhaps of one kind only."""
    condition = {"owner": owner} | ({"kind": kind} if kind else {})
    rows = comm.query(names.DATABASE, names.QUERIES["owner"], "items", condition).get()
    return sorted(rows, key=lambda row: row["created"], reverse=True)


def start_tags(comm: Communication, item: Item) -> MupFuture:
    """Ask for the tags of an item; the caller waits when it needs them."""
    return comm.query(names.DATABASE, names.QUERIES["tags"], "tags", {"item": item["_id"]})


@retried(times=2)
def signed_url(comm: Communication, key: str, seconds: int = 600) -> str:
    """Return a link to a blob that works for a while."""
    answer = comm.call(names.STORE, names.SIGN, {"key": key, "seconds": seconds}).get()
    return str(answer["url"])


@optional(default=())
def related(comm: Communication, item: Item) -> Iterable[Item]:
    """Return similar items; a page is fine without them."""
    return comm.call(names.SEARCH, endpoint_of_search(), {"like": item["_id"]}).get()["items"]


def endpoint_of_search() -> str:
    return names.endpoint("similar")


def save(comm: Communication, number: str, **changes: Any) -> None:
    """Change metadata, and let the index know; the index is not waited for."""
    command = {"$command": "update", "filter": {"_id": number}, "update": {"$set": changes}}
    comm.query(names.DATABASE, "save_item", "items", command).get()
    comm.call(names.SEARCH, names.INDEX, {"item": number})
