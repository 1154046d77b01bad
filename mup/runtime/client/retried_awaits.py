"""How does an ``async def`` endpoint make a call again? The task that makes the call waits and repeats it."""

from __future__ import annotations

import asyncio
import time

from mup.errors import CallError, CommunicationError, MupError
from mup.events.ids import attempt_of
from mup.events.record import Event
from mup.retries import IDEMPOTENT
from mup.runtime.client.awaited import ClientFuture
from mup.runtime.client.retries import Failure, failure_of_answer, failure_of_error

__all__ = ["RetriedClientFuture"]


class RetriedClientFuture(ClientFuture):
    """A call under way that may be made again; its network has ``retries``."""

    __slots__ = ()

    async def _run(self, address: str | None) -> None:
        retries = self._network.retries
        assert retries is not None  # noqa: S101 - else this class is not used
        retries.called(self._dest)
        clock = asyncio.get_running_loop().time
        while True:
            if address is None:
                # What the method is, and so whether the call may be repeated, is known with the service.
                address = await self._found()
            harmless = self._method in IDEMPOTENT if self._idempotent is None else self._idempotent
            now = clock()
            self._until = retries.limit(self._deadline, now, idempotent=harmless)
            # What an error says: this attempt was not given more.
            self._seconds = self._until - now
            answer, error = await self._attempt(address)
            failure = None if error is None else self._why(error)
            if failure is None:
                break
            pause = retries.pause(
                failure,
                name=self._label,
                service=self._dest,
                attempt=self._number,
                left=self._deadline - clock(),
                idempotent=harmless,
            )
            if pause is None:
                break
            self._log_finish(error, time.monotonic_ns())
            await asyncio.sleep(pause)
            self._begin()
            address = None
        self._finish(answer, error)

    async def _found(self) -> str | None:
        """Return the URL of a replica; None = an attempt will say why there is none."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._locate()
        except (MupError, TimeoutError):
            return None

    def _begin(self) -> None:
        """Note that another attempt begins; where to is still to be found out."""
        self._number += 1
        self._sent_as = attempt_of(self._seq, self._number)
        self._contacted = False
        self._log(Event.COMM_START, site=self._site)

    def _why(self, error: MupError) -> Failure | None:
        if isinstance(error, CallError):
            return failure_of_answer(error.status, self._retry_after)
        return failure_of_error(error, lost=self._lost) if isinstance(error, CommunicationError) else None
