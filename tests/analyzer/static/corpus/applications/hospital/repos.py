"""Repositories and the unit of work."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from models import Patient, Slot
from mup import Communication

E = TypeVar("E")


class Repository(abc.ABC, Generic[E]):
    collection: str

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    @abc.abstractmethod
    def build(self, row: dict[str, Any]) -> E: ...

    def rows(self, name: str, **where: Any) -> list[dict[str, Any]]:
        return self._comm.query("clinic", name, self.collection, where).get()

    def get(self, id_: str) -> E | None:
        return next(map(self.build, self.rows("by_id", _id=id_)), None)

    def __getitem__(self, id_: str) -> E:
        if (found := self.get(id_)) is None:
            raise KeyError(id_)
        return found

    def __contains__(self, id_: object) -> bool:
        return bool(self.rows("exists", _id=id_))

    def __iter__(self) -> Iterator[E]:
        yield from (self.build(row) for row in self.rows("all"))


class Patients(Repository[Patient]):
    collection = "patients"

    def build(self, row):
        known = {"id": row["_id"]} | {k: row[k] for k in ("name", "insurance", "allergies") if k in row}
        return Patient(**known)


class Slots(Repository[Slot]):
    collection = "slots"

    def build(self, row):
        return Slot.from_doc(row)


class UnitOfWork:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm
        self._writes: list[tuple[str, str, dict[str, Any]]] = []
        self.patients = Patients(comm)
        self.slots = Slots(comm)

    def __enter__(self) -> Self:
        self._writes.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()

    def add(self, collection: str, **row: Any) -> None:
        self._writes.append(("write", collection, row))

    def commit(self) -> None:
        for name, collection, row in self._writes:
            self._comm.query("clinic", name, collection, row).get()


class Compensations:
    """What is to be undone, last first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def push(self, undo: Callable[[], Any]) -> None:
        self._undo.append(undo)

    def run(self) -> int:
        count = 0
        while self._undo:
            self._undo.pop()()
            count += 1
        return count


class AsyncRows:
    """Pages of a collection, for ``async for``."""

    def __init__(self, comm: Communication, collection: str, size: int = 2) -> None:
        self.comm = comm
        self.collection = collection
        self.size = size
        self._buffer: list[dict[str, Any]] = []
        self._page = 0
        self._last = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        if not self._buffer:
            if self._last:
                raise StopAsyncIteration
            self._buffer = await self.comm.query(
                "clinic", "page", self.collection, {"skip": self._page * self.size}
            )
            self._page += 1
            self._last = len(self._buffer) < self.size
            if not self._buffer:
                raise StopAsyncIteration
        return self._buffer.pop(0)


def unique(rows: Iterable[dict[str, Any]], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows if key in row))
