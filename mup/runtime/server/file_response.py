"""Send a file: whole, in part, or not if the client's copy is current (RFC 9110, 13 and 14).

Small files are read at once: that takes less time than to ask a thread for it. Others are read by threads, in
pieces, each when the client has taken those before.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path

from mup.runtime.server.http_request import HttpRequest

__all__ = ["FileSender"]

_PIECE = 256 * 1024
"""Bytes of a file that are in memory at a time, for each connection."""
_SMALL = 64 * 1024
"""Bytes that are read at once instead: a thread for each piece would cost more."""
_CODINGS = (("br", ".br"), ("gzip", ".gz"))
_HEADERS = {
    # A browser asks whether its copy is current, and takes the content type as it is.
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Accept-Ranges": "bytes",
}
_RANGE = re.compile(r"bytes=\s*(\d*)-(\d*)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class _File:
    """An open file: its descriptor, size, and what tells one version from another."""

    descriptor: int
    size: int
    modified: int
    tag: str


class FileSender:
    """Sends files, several at once."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    def send(self, request: HttpRequest, path: Path) -> bool:
        """Answer a request with a file; False = it cannot be opened, and nothing is answered.

        Args:
            request: ``GET`` or ``HEAD``.
            path: Without symbolic links.
        """
        headers = {"Content-Type": _content_type(path), **_HEADERS}
        fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.fields.items()}
        file = None
        for coding, suffix in _CODINGS:
            encoded = path.with_name(path.name + suffix)
            if not encoded.exists():
                continue
            headers["Vary"] = "Accept-Encoding"
            if file is None and _accepts(fields.get("accept-encoding", ""), coding):
                file = _open(encoded)
                if file is not None:
                    headers["Content-Encoding"] = coding
        file = file or _open(path)
        if file is None:
            return False
        headers["ETag"] = file.tag
        headers["Last-Modified"] = formatdate(file.modified, usegmt=True)
        self._send(request, fields, headers, file)
        return True

    def _send(
        self, request: HttpRequest, fields: Mapping[str, str], headers: dict[str, str], file: _File
    ) -> None:
        status = _precondition(fields, file)
        begin, end = 0, file.size
        if status == 200:
            part = _part(fields, file)
            if part is not None:
                begin, end = part
                status = 206 if begin < end else 416
                headers["Content-Range"] = (
                    f"bytes {begin}-{end - 1}/{file.size}" if status == 206 else f"bytes */{file.size}"
                )
        if status in (200, 206) and end - begin > _SMALL and request.method != "HEAD":
            request.start(status, headers, end - begin)
            task = asyncio.get_running_loop().create_task(_stream(request, file.descriptor, begin, end))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            return
        try:
            if status not in (200, 206):
                request.respond(status, headers)
            elif request.method == "HEAD":
                request.start(status, headers, end - begin)
                request.finish()
            else:
                request.respond(status, headers, os.pread(file.descriptor, end - begin, begin))
        finally:
            os.close(file.descriptor)


async def _stream(request: HttpRequest, descriptor: int, begin: int, end: int) -> None:
    """Send a part of a file in pieces, and close it."""
    try:
        while begin < end:
            piece = await asyncio.to_thread(os.pread, descriptor, min(_PIECE, end - begin), begin)
            if not piece:
                request.abort()  # the file has become shorter
                return
            await request.send(piece)
            begin += len(piece)
        request.finish()
    except ConnectionResetError:
        pass
    except OSError:
        request.abort()  # the disk
    finally:
        os.close(descriptor)


def _open(path: Path) -> _File | None:
    """Open a regular file; a link may lead anywhere, and a pipe would make us wait."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return None
    tag = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
    return _File(descriptor, found.st_size, int(found.st_mtime), tag)


def _content_type(path: Path) -> str:
    kind, coding = mimetypes.guess_type(path.name)
    if coding is not None:
        # The file itself is compressed: it is not sent as an encoding of something else.
        return {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}.get(
            coding, "application/octet-stream"
        )
    return kind or "application/octet-stream"


def _accepts(header: str, coding: str) -> bool:
    """Whether ``Accept-Encoding`` names a coding, and not with ``q=0``."""
    for item in header.lower().split(","):
        name, _, quality = item.partition(";")
        if name.strip() == coding:
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _precondition(fields: Mapping[str, str], file: _File) -> int:
    """Return 200, 304 or 412, in the order of RFC 9110, 13.2.2."""
    if "if-match" in fields:
        if not _names(fields["if-match"], file.tag, weak=False):
            return 412
    elif "if-unmodified-since" in fields:
        since = _seconds(fields["if-unmodified-since"])
        if since is not None and file.modified > since:
            return 412
    if "if-none-match" in fields:
        return 304 if _names(fields["if-none-match"], file.tag, weak=True) else 200
    since = _seconds(fields.get("if-modified-since", ""))
    return 304 if since is not None and file.modified <= since else 200


def _part(fields: Mapping[str, str], file: _File) -> tuple[int, int] | None:
    """Return the part of a file to send; None = all of it, an empty one = it cannot be had."""
    match = _RANGE.fullmatch(fields.get("range", ""))
    if match is None or not (match[1] or match[2]) or len(match[0]) > 100:
        return None  # none, several, or nonsense: the whole is always right
    condition = fields.get("if-range")
    if condition is not None and condition != file.tag and _seconds(condition) != file.modified:
        return None
    if not match[1]:
        begin, end = max(file.size - int(match[2]), 0), file.size
    else:
        begin = int(match[1])
        end = min(int(match[2]) + 1, file.size) if match[2] else file.size
        if match[2] and int(match[2]) < begin:
            return None
    return (begin, end) if begin < end else (0, 0)


def _names(header: str, tag: str, *, weak: bool) -> bool:
    """Whether a list of tags has this one, or is ``*``."""
    tags = [item.strip() for item in header.split(",")]
    return "*" in tags or tag in tags or (weak and f"W/{tag}" in tags)


def _seconds(date: str) -> int | None:
    """Return a date of HTTP as seconds since 1970; None = it is none."""
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        moment = parsedate_to_datetime(date)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return None
