"""What does an event log say? Reads one file into numpy arrays; for tools, never imported by services."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.errors import LogError
from mup.events.record import DEFINE_NAME, DEFINE_SITE, MAGIC, RECORD, Event, padded
from mup.events.sites import Site

__all__ = ["DTYPE", "Log", "read_log"]

DTYPE = np.dtype(
    [
        ("request", "<u8"),
        ("trace", "<u8"),
        ("time", "<i8"),
        ("cpu", "<i8"),
        ("seq", "<u2"),
        ("site", "<u2"),
        ("name", "<u2"),
        ("event", "u1"),
        ("flags", "u1"),
    ]
)

_HINT = "record a new one with 'mup explore'"


@dataclass(frozen=True, slots=True)
class Log:
    """One event log.

    Attributes:
        header: ``role``, ``service``, ``replica``, ``worker``, ``pid``, ``clock``.
        names: Text of each name id; 0 is not in it.
        sites: Site of each site id; 0 is not in it.
        records: Structured array of type ``DTYPE``, in file order, without definitions.
        truncated: The file ends in the middle of a record (its process was killed): the rest is complete.
        path: The file.
    """

    header: dict[str, Any]
    names: dict[int, str]
    sites: dict[int, Site]
    records: npt.NDArray[np.void]
    truncated: bool
    path: Path


def read_log(path: str | Path) -> Log:
    """Read one log.

    Raises:
        LogError: The file cannot be read, is empty, is no event log, or is damaged before its end.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"cannot read the log: {error.strerror}", where=str(path)) from error
    header, start = _header(data, path)
    usable = (len(data) - start) // RECORD.size
    records = np.frombuffer(data, DTYPE, usable, start)
    names: dict[int, str] = {}
    sites: dict[int, Site] = {}
    keep = np.ones(usable, dtype=bool)
    end = usable  # of the undamaged part
    after = 0  # first record that is not text of the definition before it
    for index in np.flatnonzero(records["event"] == Event.DEFINE).tolist():
        if index < after:
            continue
        kind, number, length = (int(records[index][field]) for field in ("site", "name", "request"))
        after = index + 1 + padded(length) // RECORD.size
        if after > usable or kind == 0:
            # The text was not written to its end, or the disk filled the lost tail with zeros.
            end = index
            break
        keep[index:after] = False
        text_at = start + (index + 1) * RECORD.size
        _define(
            kind,
            number,
            data[text_at : text_at + length],
            names=names,
            sites=sites,
            where=f"{path} at byte {text_at}",
        )
    records = records[:end][keep[:end]]
    unknown = np.flatnonzero(records["event"] > max(Event))
    if len(unknown):
        offset = start + int(np.flatnonzero(keep[:end])[unknown[0]]) * RECORD.size
        raise LogError(
            f"unknown event {int(records['event'][unknown[0]])}",
            where=f"{path} at byte {offset}",
            hint=f"the file is damaged or of a newer mup; {_HINT}",
        )
    truncated = end < usable or (len(data) - start) % RECORD.size != 0
    return Log(header, names, sites, records, truncated, path)


def _header(data: bytes, path: Path) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the first record."""
    if not data:
        raise LogError("the log is empty", where=str(path), hint=_HINT)
    if not data.startswith(MAGIC):
        if data[:6] == MAGIC[:6]:
            version = data[6:8].decode(errors="replace")
            raise LogError(
                f"event log of format {version}, expected 01", where=f"{path} at byte 6", hint=_HINT
            )
        problem = "the log ends inside its header" if MAGIC.startswith(data) else "not an event log of mup"
        raise LogError(problem, where=f"{path} at byte 0", hint=_HINT)
    size_end = len(MAGIC) + 4
    length = int.from_bytes(data[len(MAGIC) : size_end], "little")
    if len(data) < size_end + length:
        raise LogError("the log ends inside its header", where=f"{path} at byte {len(data)}", hint=_HINT)
    try:
        header = json.loads(data[size_end : size_end + length])
    except ValueError as error:
        raise LogError("the header is damaged", where=f"{path} at byte {size_end}", hint=_HINT) from error
    if not isinstance(header, dict):
        raise LogError("the header is not a JSON object", where=f"{path} at byte {size_end}", hint=_HINT)
    return header, size_end + length


def _define(
    kind: int, number: int, text: bytes, *, names: dict[int, str], sites: dict[int, Site], where: str
) -> None:
    try:
        if kind == DEFINE_NAME:
            names[number] = text.decode()
        elif kind == DEFINE_SITE:
            sites[number] = Site(**json.loads(text))
        else:
            raise LogError(f"unknown definition {kind}", where=where, hint=_HINT)
    except (ValueError, TypeError) as error:
        raise LogError("a definition is damaged", where=where, hint=_HINT) from error
