"""Check that all acknowledged purchases are in the database and in the service's event log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pymongo
from pymongo.collection import Collection

from faults.buyers import Purchase
from mup.events.reader import LogStream, log_files
from mup.events.record import FAILED, Event

__all__ = ["lost_orders", "unlogged"]


def lost_orders(uri: str, purchases: Sequence[Purchase]) -> set[str]:
    """Return the orders that users were told of as kept, and that the database does not have."""
    client: pymongo.MongoClient[dict[str, Any]]
    with pymongo.MongoClient(uri) as client:
        orders: Collection[dict[str, Any]] = client.get_default_database()["orders"]
        kept = {order["_id"] for order in orders.find({}, {"_id": True})}
    return {purchase.order for purchase in purchases if purchase.status == 200} - kept


def unlogged(
    logs: Path, service: str, purchases: Sequence[Purchase], killed: Mapping[int, float]
) -> set[str]:
    """Return the requests that were answered with 200 and have no response in the log of the service.

    A process that is killed takes the records with it that it had not yet written: what it may have answered
    between its last record and its death is no loss.

    Args:
        logs: Folder.
        service: Name.
        purchases: What users saw.
        killed: When processes were killed, by process id; seconds of the monotonic clock.
    """
    answered: set[int] = set()
    unwritten: list[tuple[float, float]] = []
    for segments in log_files(logs):
        log = LogStream(segments)
        newest = 0
        for records in log:
            if log.header["service"] != service or log.header["role"] != "worker":
                break
            ends = (records["event"] == Event.END) & ((records["flags"] & FAILED) == 0)
            answered.update(records["request"][ends].tolist())
            newest = max(newest, int(np.max(records["time"], initial=0)))
        if log.header["service"] == service and (death := killed.get(log.header["pid"])) is not None:
            unwritten.append((newest * 1e-9, death))
    return {
        purchase.request
        for purchase in purchases
        if purchase.status == 200
        and int(purchase.request, 16) not in answered
        and not any(last < purchase.ended and purchase.began < death for last, death in unwritten)
    }
