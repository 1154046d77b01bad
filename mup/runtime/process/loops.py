"""The event loop implementation of a service's processes."""

from __future__ import annotations

import asyncio

__all__ = ["new_event_loop"]


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where there is one, else asyncio's."""
    try:
        import uvloop  # noqa: PLC0415 - where it exists
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
