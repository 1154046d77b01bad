"""Registration of a replica: it registers, sends heartbeats, and deregisters."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import msgspec

from mup.addresses import is_loopback, is_wildcard, route_to
from mup.errors import CommunicationError, DeploymentError
from mup.runtime.client.reply import BrokenError
from mup.runtime.client.request import address_of
from mup.runtime.deployment.kept_connection import KeptConnection
from mup.tls import why_refused

__all__ = ["Registration", "advertised_host"]

_log = logging.getLogger("mup.runtime")
_PROBLEMS = (OSError, BrokenError, msgspec.DecodeError)
"""What comes of a registry that does not answer, or of something that is none."""
_AGAIN_SECONDS = 0.1
"""Between two attempts to register at an address that another replica has."""
_SHORTEST_PAUSE = 0.1
"""Seconds between an attempt that took longer than it should and the next one."""


class Registration:
    """One replica's entry in the registry.

    Args:
        registry: URL of the registry.
        entry: What to register: ``service``, ``replica``, ``url``, ``pid``, ``endpoints``.
        heartbeat: Seconds between signs of life; less if the registry expects more of them.
        patience: Seconds to wait for a registry that does not answer at start.
        token: What the registry wants to see; "" = nothing.
    """

    def __init__(
        self, registry: str, entry: dict[str, Any], *, heartbeat: float, patience: float, token: str = ""
    ) -> None:
        self._url = registry.rstrip("/")
        self._entry = entry
        self._heartbeat = heartbeat
        self._interval = heartbeat
        self._patience = patience
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = KeptConnection(registry)
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
            except _TakenError as error:
                # The replica that had the address before may have died without deregistering.
                if loop.time() > give_up + error.expiry:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
            except _PROBLEMS as error:
                if why := why_refused(error.__cause__ or error):
                    raise DeploymentError(
                        f"the registry at {self._url} refuses this replica: {why}",
                        where=f"services.{self._entry['service']}",
                        hint="start it with a certificate that the registry's tls.client_ca has signed",
                    ) from error
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
            # It may be in the middle of a request on the same connection.
            await asyncio.gather(self._task, return_exceptions=True)
            try:
                await self._post("/deregister", {"id": self._id})
            except _PROBLEMS as error:
                _log.debug("deregistering: %s", error)
        self._connection.close()

    async def _register(self, *, again: bool = False) -> None:
        status, answer = await self._post(
            "/register", {**self._entry, "again": True} if again else self._entry
        )
        if status != 200:
            text, where = (
                f"the registry at {self._url} refuses: {answer.get('error', status)}",
                f"services.{self._entry['service']}",
            )
            if status == 409:
                raise _TakenError(text, where=where, expiry=float(answer.get("expiry", 0.0)))
            if status == 410:
                raise _ReplacedError(text, where=where)
            raise DeploymentError(text, where=where)
        self._id = answer["id"]
        # Two may get lost.
        self._interval = min(self._heartbeat, answer["expiry"] / 3)

    async def _keep_alive(self) -> None:
        silent = False
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            # Not all replicas that a restart of the registry has brought into step at the same moment.
            pause = self._interval * random.uniform(0.8, 1.0) - (loop.time() - began)
            await asyncio.sleep(max(pause, _SHORTEST_PAUSE))
            began = loop.time()
            try:
                status, _ = await self._post("/heartbeat", {"id": self._id})
                if status != 200:
                    # The registry is a new one, this replica was silent for too long, or it has a successor.
                    await self._register(again=True)
            except _PROBLEMS as error:
                problem = f"does not answer: {why_refused(error) or str(error) or type(error).__name__}"
            except _ReplacedError:
                # It is about to be stopped. Should the successor end first, the next attempt registers.
                continue
            except DeploymentError as error:
                problem = f"does not want this replica any more: {error.message}"
            else:
                if silent:
                    _log.warning("the registry at %s knows this replica again", self._url)
                silent = False
                continue
            if not silent:
                _log.warning("the registry at %s %s", self._url, problem)
            silent = True

    async def _post(self, path: str, data: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        response = await self._connection.post(path, self._headers, msgspec.json.encode(data))
        answer = msgspec.json.decode(response.body)
        return response.status, answer if isinstance(answer, dict) else {}


class _ReplacedError(DeploymentError):
    """A successor of this replica has registered at the same address."""


class _TakenError(DeploymentError):
    """Another replica has the address.

    Attributes:
        expiry: Seconds after its last sign of life at which it has it no more.
    """

    def __init__(self, message: str, *, where: str, expiry: float) -> None:
        super().__init__(message, where=where, hint="stop that one, or let this one listen elsewhere")
        self.expiry = expiry


def advertised_host(listen: str, advertise: str, registry: str) -> str:
    """Return the host others are told to reach a replica at.

    Args:
        listen: Where it listens.
        advertise: What its operator says; "" = nothing.
        registry: URL of the registry it is told through.

    Raises:
        DeploymentError: Only this machine could reach it, although other machines may read the address.
    """
    try:
        registry_host, registry_port = address_of(registry)
    except CommunicationError as error:
        raise DeploymentError(f"the registry: {error.message}") from error
    host = advertise or listen
    if is_wildcard(host):
        try:
            host = route_to(registry_host, registry_port)
        except OSError as error:
            raise DeploymentError(
                f"no route to the registry at {registry}: {error.strerror}",
                hint="say under which address this machine is reached: --advertise ADDRESS",
            ) from error
    if (is_loopback(listen) or is_loopback(host)) and not is_loopback(registry_host):
        raise DeploymentError(
            f"other machines use the registry at {registry}, but this replica would be reached at "
            f"{host if is_loopback(host) else listen} only, which is this machine",
            hint="listen on an address they can reach: --host ADDRESS (0.0.0.0 = all of this machine)",
        )
    return host
