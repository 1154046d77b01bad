"""Simulate a grid of scenarios on the workers of a Dask cluster.

A cluster does what is sent to it again if the worker that did it is lost. What all scenarios need is a task
of its own, not data that the client has put somewhere: its result is lost with a worker, too, and made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from distributed import Client
from distributed.cfexecutor import ClientExecutor

from mup.errors import UsageError

__all__ = ["DaskExecutor", "dask_cluster"]

CONNECT_SECONDS: Final = 5.0
"""How long a scheduler has to answer."""
JOIN_SECONDS: Final = 20.0
"""How long its first workers have to join."""


class DaskExecutor:
    """The workers of a cluster as an executor.

    Args:
        client: Of the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # Equal calls are not taken for one: each has a result that is waited for.
        self._executor = ClientExecutor(client, pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Have a function called by some worker."""
        future: Future[Any] = self._executor.submit(fn, *args)
        return future

    def share(self, value: Any) -> Any:
        """Return what stands for a value in the arguments of calls."""
        return self._client.submit(_as_it_is, value, pure=False)


def _as_it_is(value: Any) -> Any:
    return value


@contextmanager
def dask_cluster(address: str, *, workers: int = 1) -> Iterator[DaskExecutor]:
    """Connect to the scheduler of a cluster.

    Args:
        address: As the scheduler prints it: ``tcp://HOST:PORT``, or ``HOST:PORT``.
        workers: How many it is to have before anything is sent.

    Raises:
        UsageError: No scheduler answers there, or it has too few workers.
    """
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address}",
            hint="start one with 'dask scheduler', and give the address that it prints",
        ) from error
    try:
        try:
            client.wait_for_workers(workers, timeout=JOIN_SECONDS)
        except TimeoutError as error:
            raise UsageError(
                f"the Dask scheduler at {address} has no workers"
                if workers == 1
                else f"the Dask scheduler at {address} has less than {workers} workers",
                hint=f"start some with 'dask worker {address}'",
            ) from error
        yield DaskExecutor(client)
    finally:
        client.close()
