"""Every error mup raises on purpose, in one tree.

    MupError
        UsageError            a command, option or what-if that cannot be carried out
        ModelError            a model breaks a rule; carries ``where``
            UncalibratedError   a number is needed that was never measured
        AnalysisError         source code the analyzer cannot turn into a model
        LogError              an event log or run directory that cannot be used
            StaleLogError       the log was written by another version of the code
        ProjectError          ``mup.toml`` is wrong, or what it names does not exist
        DeploymentError       a service, registry or database did not start (port in use, ...)
            RequestsFailedError more requests of a load failed than may
        SimulationError       a run whose result cannot be trusted, or that cannot end
            LimitError          a study ended at a limit before it had found anything; carries ``reached``
            UnfinishedError     scenarios of a grid have no result; has ``outcomes`` of the others
        CommunicationError    what a service sees when a remote operation fails
            CallError           an endpoint answered with a status outside 2xx; carries ``status``, ``body``
            CallTimeoutError    no answer in time
            BrokenCallError     the connection ended before the answer was complete
            NoReplicaError      no live replica of the service is reachable
                UnknownServiceError  the registry has never heard of the service
            QueryError          the database refused or failed
                UnknownDatabaseError  the registry knows no database of this name
                DatabaseDownError     the database cannot be reached, or was lost on the way
                QueryTimeoutError     the database did not answer in time

Anything else that escapes (KeyError, AssertionError, ...) is a bug in mup.

One rule for all packages that are installed with mup: an error that another module may see stands here, in
the tree above. A module that needs a kind for itself alone gives it a name with an underscore.
All of them pickle, for they cross process boundaries: the class is found by its name in its module, and
what its instances carry is their ``__dict__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Any


class MupError(Exception):
    """Base of all deliberate errors: one message, where it applies, and what to do about it.

    Attributes:
        message: One sentence; names the offending value.
        where: File, field or element the message is about ("" if it is about the whole input).
        hint: The remedy ("" if there is none to give).
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.__dict__.copy(), self.args))


def _rebuild(kind: type[MupError], state: dict[str, Any], args: tuple[Any, ...]) -> MupError:
    """Recreate a pickled error without going through its constructor's keyword arguments."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class UsageError(MupError):
    """A command, option or what-if that cannot be carried out."""


class ModelError(MupError):
    """A model breaks a rule; ``where`` is the path of the element."""


class UncalibratedError(ModelError):
    """A number is needed that was never measured."""


class AnalysisError(MupError):
    """Source code the analyzer cannot turn into a model."""


class LogError(MupError):
    """An event log or run directory that cannot be used."""


class StaleLogError(LogError):
    """The log was written by another version of the code."""


class ProjectError(MupError):
    """``mup.toml`` is wrong, or what it names does not exist."""


class DeploymentError(MupError):
    """A service, registry or database did not start."""


class RequestsFailedError(DeploymentError):
    """More requests of a load failed than may."""


class SimulationError(MupError):
    """A run whose result cannot be trusted, or that cannot end."""


class LimitError(SimulationError):
    """A study ended at a limit of events or time before it had found anything.

    Attributes:
        reached: The limit, a `simulator.machine.budget.Reached`.
    """

    def __init__(self, message: str, *, reached: Any = None, where: str = "", hint: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.reached = reached


class UnfinishedError(SimulationError):
    """Some scenarios of a grid have no result, or the executor failed before all of them were done.

    Attributes:
        outcomes: Of those that were done, each a `simulator.studies.grids.Outcome`; the baseline first if it
            is among them.
    """

    def __init__(
        self, message: str, *, outcomes: tuple[Any, ...] = (), where: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.outcomes = outcomes


class CommunicationError(MupError):
    """A remote operation of a service failed.

    Attributes:
        answer: Status an endpoint that does not handle the error is answered with: 502, 503 or 504 if
            a service or database behind it is gone or silent, 500 if the endpoint itself is at fault.
    """

    answer = 500


class CallError(CommunicationError):
    """An endpoint answered with a status outside 2xx.

    Attributes:
        status: The HTTP status.
        body: The decoded body (usually ``{"error": ...}``).
    """

    def __init__(
        self, message: str, *, status: int, body: Any = None, where: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.status = status
        self.body = body
        if status in (502, 503, 504):
            # Who asks a chain of services learns what happened at its end.
            self.answer = status


class CallTimeoutError(CommunicationError):
    """No answer in time."""

    answer = 504


class BrokenCallError(CommunicationError):
    """The connection ended before the answer was complete: the callee may have done its work, or not."""

    answer = 502


class NoReplicaError(CommunicationError):
    """No live replica of the service is reachable."""

    answer = 503


class UnknownServiceError(NoReplicaError):
    """The registry has never heard of the service."""

    answer = 500


class QueryError(CommunicationError):
    """The database refused the query or failed."""


class UnknownDatabaseError(QueryError):
    """The registry knows no database of this name."""


class DatabaseDownError(QueryError):
    """The database cannot be reached, or was lost on the way: a write may have been done, or not."""

    answer = 503


class QueryTimeoutError(QueryError):
    """The database did not answer in time: a write may have been done, or not."""

    answer = 504


MOST_NAMES = 20
"""How many of the known names a remedy lists; of more it lists a few, and says how many there are."""
_FEW = 10
_COMPARED = 100
"""Comparing takes time that grows with the number of names and the square of their length."""
_SHOWN = 80
"""Characters of a name that are compared and shown."""


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return the remedy for a misspelt name: the closest known ones, and the list of all if it is short."""
    # Imported here: a running service should not hold difflib in memory for a rare misspelling.
    from difflib import get_close_matches  # noqa: PLC0415

    compared: Sequence[str] = known
    if len(known) > _COMPARED:
        compared = nsmallest(
            _COMPARED, known, key=lambda k: (-_common_ends(k, name), abs(len(k) - len(name)), k)
        )
    close = get_close_matches(name[:_SHOWN], [k[:_SHOWN] for k in compared], n=2, cutoff=0.6)
    close = close or [k for k in compared if k.lower() == name.lower()]
    listed = sorted(known) if len(known) <= MOST_NAMES else nsmallest(_FEW, known)
    names = [k if len(k) <= _SHOWN else f"{k[:_SHOWN]}..." for k in listed]
    if len(listed) < len(known):
        names.append(f"and {len(known) - len(listed)} more")
    listing = f"known: {', '.join(names) or 'none'}"
    return f"did you mean {' or '.join(repr(c) for c in close)}? ({listing})" if close else listing


def _common_ends(one: str, other: str) -> int:
    """Return how many characters two names share at their ends: of a slip of the pen, all but one or two."""
    ends = 0
    for a, b in ((one[:_SHOWN], other[:_SHOWN]), (one[: -_SHOWN - 1 : -1], other[: -_SHOWN - 1 : -1])):
        for left, right in zip(a, b, strict=False):
            if left != right:
                break
            ends += 1
    return ends
