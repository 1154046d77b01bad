"""How does a replica stay in the registry's list? It registers, shows signs of life, and deregisters."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiohttp

from mup.errors import DeploymentError

__all__ = ["Registration"]

_log = logging.getLogger("mup.runtime")
_TIMEOUT = aiohttp.ClientTimeout(total=2.0)


class Registration:
    """One replica's entry in the registry.

    Args:
        registry: URL of the registry.
        entry: What to register: ``service``, ``replica``, ``url``, ``pid``, ``endpoints``.
        heartbeat: Seconds between signs of life.
        patience: Seconds to wait for a registry that does not answer at start.
    """

    def __init__(self, registry: str, entry: dict[str, Any], *, heartbeat: float, patience: float) -> None:
        self._url = registry.rstrip("/")
        self._entry = entry
        self._heartbeat = heartbeat
        self._patience = patience
        self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        self._id = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Register, and keep the entry alive from now on.

        Raises:
            DeploymentError: The registry does not answer, or refuses.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        while True:
            try:
                await self._register()
                break
            except (OSError, aiohttp.ClientError, TimeoutError) as error:
                if loop.time() > give_up:
                    raise DeploymentError(
                        f"the registry at {self._url} does not answer: {str(error) or type(error).__name__}",
                        where=f"services.{self._entry['service']}",
                        hint="start it first ('python -m mup_registry'), or use 'mup run'",
                    ) from error
                await asyncio.sleep(0.05)
        self._task = asyncio.create_task(self._keep_alive())

    async def stop(self) -> None:
        """Deregister; a registry that does not answer is left alone."""
        if self._task is not None:
            self._task.cancel()
            try:
                await self._post("/deregister", {"id": self._id})
            except (OSError, aiohttp.ClientError, TimeoutError) as error:
                _log.debug("deregistering: %s", error)
        await self._session.close()

    async def _register(self) -> None:
        status, answer = await self._post("/register", self._entry)
        if status != 200:
            raise DeploymentError(
                f"the registry at {self._url} refuses: {answer.get('error', status)}",
                where=f"services.{self._entry['service']}",
            )
        self._id = answer["id"]

    async def _keep_alive(self) -> None:
        silent = False
        while True:
            await asyncio.sleep(self._heartbeat)
            try:
                status, _ = await self._post("/heartbeat", {"id": self._id})
                if status == 404:
                    # The registry is a new one, or this replica was silent for too long.
                    await self._register()
            except (OSError, aiohttp.ClientError, TimeoutError, DeploymentError) as error:
                if not silent:
                    _log.warning("the registry at %s does not answer: %s", self._url, error)
                silent = True
            else:
                silent = False

    async def _post(self, path: str, data: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        async with self._session.post(self._url + path, json=data) as response:
            answer = await response.json(content_type=None)
            return response.status, answer if isinstance(answer, dict) else {}
