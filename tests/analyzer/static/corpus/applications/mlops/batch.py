"""The pipeline of batch scoring: generators over the partitions of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

from mup import Communication
from support import FAILED, ApiError, CircuitBreaker, retry


@dataclass(slots=True)
class Chunk:
    partition: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


Pipe = Callable[[Iterable[Chunk]], Iterator[Chunk]]


def read_partitions(comm: Communication, table: str, partitions: Iterable[str]) -> Iterator[Chunk]:
    for partition in partitions:
        try:
            answer = comm.call(
                "Warehouse", "/read", {"table": table, "partition": partition}, timeout=5.0
            ).get()
        except FAILED as error:
            yield Chunk(partition, error=type(error).__name__)
        else:
            yield Chunk(partition, answer.get("rows", []))


def keep_valid(required: tuple[str, ...], chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        chunk.rows = [row for row in chunk.rows if all(name in row for name in required)]
        yield chunk


def score_chunks(
    comm: Communication, model: str, breaker: CircuitBreaker, chunks: Iterable[Chunk]
) -> Iterator[Chunk]:
    for chunk in chunks:
        if chunk.rows:
            try:
                with breaker:
                    scores = comm.call(
                        "ModelServer", "/predict_batch", {"model": model, "rows": chunk.rows}
                    ).get()
                chunk.rows = [
                    {**row, "score": score} for row, score in zip(chunk.rows, scores.get("scores", []))
                ]
            except (ApiError, *FAILED) as error:
                chunk = Chunk(chunk.partition, error=str(error))
        yield chunk


def write_chunks(comm: Communication, table: str, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        if chunk.rows and not chunk.error:
            retry(partial(comm.call, "Warehouse", "/write", {"table": table, "rows": chunk.rows}), attempts=2)
        yield chunk


def through(source: Iterable[Chunk], *pipes: Pipe) -> Iterable[Chunk]:
    return reduce(lambda chunks, pipe: pipe(chunks), pipes, source)
