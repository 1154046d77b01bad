"""Numbers and layout of one record of an event log, shared by writer and reader."""

from __future__ import annotations

import enum
import struct

__all__ = [
    "CENSORED",
    "DEFINE_NAME",
    "DEFINE_SITE",
    "FAILED",
    "LEFT_BECAUSE",
    "MAGIC",
    "QUEUED",
    "RECORD",
    "Event",
    "attempt_flag",
    "attempt_number",
    "padded",
]

MAGIC = b"MUPLOG01"

RECORD = struct.Struct("<QQqqHHHBB")
"""request, trace, time (ns), cpu (ns), seq, site, name, event, flags."""

FAILED = 1
CENSORED = 2
QUEUED = 4

_ATTEMPT_SHIFT = 3

# The values of ``site`` in a define record.
DEFINE_NAME = 1
DEFINE_SITE = 2


class Event(enum.IntEnum):
    """What happened; the numbers are part of the file format."""

    DEFINE = 0
    ARRIVE = 1
    BEGIN = 2
    COMM_START = 3
    CONTACT_DEST = 4
    COMM_FINISH = 5
    WAIT_START = 6
    WAIT_END = 7
    END = 8
    DONE = 9
    ERROR = 10
    THINK_START = 11
    THINK_END = 12
    POOL = 13
    LEFT = 14
    DRIVER = 15


LEFT_BECAUSE = ("client_gone", "deadline_passed", "no_worker", "draining")
"""Why a request left the queue without having had a worker; ``seq`` of the record counts from 1."""


def attempt_flag(number: int) -> int:
    """Return the flags of a record that belongs to a repetition of a call; 0 = to the first attempt."""
    return number << _ATTEMPT_SHIFT


def attempt_number(flags: int) -> int:
    """Return the number of the attempt a record belongs to; 0 = the first."""
    return flags >> _ATTEMPT_SHIFT


def padded(length: int) -> int:
    """Return the bytes a text of ``length`` bytes takes in the log: whole records."""
    return -(-length // RECORD.size) * RECORD.size
