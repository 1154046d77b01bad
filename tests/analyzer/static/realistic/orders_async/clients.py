"""Other services, as coroutines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mup import Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError

log = logging.getLogger(__name__)

PRICES, STOCK, USERS, MAIL = "Prices", "Stock", "Users", "Mail"


async def price_list(comm: Communication, region: str = "eu") -> dict[str, int]:
    """Return today's prices."""
    answer = await comm.call(PRICES, "/list/", {"region": region})
    return dict(answer["prices"])


async def profile(comm: Communication, user: str) -> dict[str, Any]:
    """Return a user's profile; anonymous if the service does not answer."""
    try:
        return await comm.call(USERS, "/profile/", {"user": user})
    except CommunicationError:
        log.warning("no profile of %s", user)
        return {"name": "guest", "address": None}


async def cart_rows(comm: Communication, user: str) -> list[dict[str, Any]]:
    """Return what is in a user's cart."""
    return await comm.query("carts", "cart", "carts", {"user": user})


async def reserve(comm: Communication, user: str) -> str:
    """Reserve everything in a cart, and return the number of the reservation."""
    return (await comm.call(STOCK, "/reserve/", {"user": user}))["reservation"]


@asynccontextmanager
async def reservation(comm: Communication, user: str) -> AsyncIterator[str]:
    """Hold a reservation; it is given back if the block fails."""
    number = await reserve(comm, user)
    try:
        yield number
    except Exception:
        await comm.call(STOCK, "/release/", {"reservation": number})
        raise


async def pay(comm: Communication, user: str, amount: int) -> bool:
    """Return whether the payment went through; slow answers count as no."""
    try:
        async with asyncio.timeout(2.0):
            await comm.call("Payments", "/pay/", {"user": user, "amount": amount})
    except (CallError, CallTimeoutError, TimeoutError):
        return False
    return True


def confirm(comm: Communication, user: str, order: str) -> None:
    """Send a mail without waiting for it."""
    comm.call(MAIL, "/send/", {"user": user, "template": "confirmation", "order": order})
