"""Log lines of a service on standard error, for people or as JSON.

``MUP_LOG`` is ``text`` (default) or ``json``, ``MUP_LOG_LEVEL`` the least severe level that is shown. A line
is one line whatever is in it: control characters are escaped. Passwords in URIs are hidden. Tracebacks show
the user's code, not mup's.
"""

from __future__ import annotations

import codecs
import importlib
import json
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

from mup.errors import DeploymentError, MupError

__all__ = ["CURRENT", "InWork", "set_up_logging", "text_of"]

_LEVELS = ("debug", "info", "warning", "error")
_FORMATS = ("text", "json")
_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
_IMPORT_MACHINERY = ("<frozen importlib", str(Path(importlib.__file__).parent) + os.sep)
"""Where frames of an ``import`` statement are: neither the user's nor mup's."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CREDENTIALS = re.compile(r"(\w+://)[^/@\s]*@")


class InWork(msgspec.Struct, frozen=True, gc=False):
    """The request that what is logged now belongs to.

    Not the request itself: connections and tasks that are made meanwhile keep the context they are made in.
    """

    endpoint: str
    request: int
    trace: int


CURRENT: ContextVar[InWork | None] = ContextVar("mup_request", default=None)


def set_up_logging(service: str, replica: int, process: str = "") -> None:
    """Send what this process logs to standard error, as the environment says.

    Args:
        service: Name of the service.
        replica: Number of the replica.
        process: Name of the process in the replica; "" = its front.

    Raises:
        DeploymentError: ``MUP_LOG`` or ``MUP_LOG_LEVEL`` is none of the words known.
    """
    form = _choice("MUP_LOG", _FORMATS, "text")
    level = _choice("MUP_LOG_LEVEL", _LEVELS, "info")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter((_JsonLines if form == "json" else _Text)(service, replica, process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Libraries are not asked for their details: they would log in the middle of every request.
    logging.getLogger("mup").setLevel(level.upper())
    if level in ("warning", "error"):
        root.setLevel(level.upper())


class _Text(logging.Formatter):
    """``12:00:00 A.0.w1 ERROR message``, and the traceback in indented lines."""

    def __init__(self, service: str, replica: int, process: str) -> None:
        super().__init__()
        self._who = f"{service}.{replica}" + (f".{process}" if process else "")

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of one record; only the first one starts at the margin."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        text = f"{clock} {self._who} {record.levelname} {_clean(record.getMessage())}"
        current = CURRENT.get()
        if current is not None:
            text += f" [{_clean(current.endpoint)} {current.request:016x}]"
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping) and fields.get("stacks"):
            text = "\n".join([text, *(f"  {_clean(line)}" for line in fields["stacks"])])
        if record.exc_info and record.exc_info[1] is not None:
            text = "\n".join([text, *(f"  {line}" for line in _traceback(record.exc_info[1]))])
        return text


class _JsonLines(logging.Formatter):
    """One JSON object per record."""

    def __init__(self, service: str, replica: int, process: str) -> None:
        super().__init__()
        self._who: dict[str, Any] = {"service": service, "replica": replica}
        if process:
            self._who["process"] = process
        self._who["pid"] = os.getpid()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            **self._who,
            "logger": record.name,
            "message": _hidden(record.getMessage()),
        }
        current = CURRENT.get()
        if current is not None:
            line["endpoint"] = current.endpoint
            line["request"] = f"{current.request:016x}"
            line["trace"] = f"{current.trace:016x}"
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update(fields)
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = {"type": type(error).__name__, "message": _hidden(text_of(error))}
            line["traceback"] = list(_traceback(error))
        try:
            return msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:
            # Bytes of a client that are no text, somewhere in it: escaped here, in a fraction of the speed.
            return json.dumps(line, default=str)


def _traceback(error: BaseException) -> Iterator[str]:
    """Yield the lines of a traceback, causes first; every line is one line."""
    chain = [error]
    while (before := _cause(chain[-1])) is not None and before not in chain:
        chain.append(before)
    for each in reversed(chain):
        frames = traceback.extract_tb(each.__traceback__)
        users = [frame for frame in frames if not frame.filename.startswith((_PACKAGE, *_IMPORT_MACHINERY))]
        # What mup raises on purpose is explained by its message; else the mistake is mup's own.
        own_mistake = bool(frames) and frames[-1] not in users and not isinstance(each, MupError)
        for frame in frames if own_mistake else users:
            yield f"File {_clean(frame.filename)!r}, line {frame.lineno}, in {_clean(frame.name)}"
            if frame.line:
                yield f"  {_clean(frame.line)}"
        if isinstance(each, SyntaxError) and each.filename and each.lineno:
            yield f"File {_clean(each.filename)!r}, line {each.lineno}"
            if each.text:
                yield f"  {_clean(each.text.strip())}"
        yield f"{type(each).__name__}: {_clean(text_of(each))}"


def text_of(error: BaseException) -> str:
    """Return what an exception says, whatever its own way to say it does."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - the user's code may raise anything
        return f"(says nothing: {type(problem).__name__} in its __str__)"


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _clean(text: str) -> str:
    """Return a text that cannot end a line, move a cursor, or show a password."""
    # Not encode(): it imports the codec when it is needed first, for which there may be no descriptor left.
    return _CONTROL.sub(lambda found: codecs.unicode_escape_encode(found[0])[0].decode(), _hidden(text))


def _hidden(text: str) -> str:
    return _CREDENTIALS.sub(r"\1***@", text)


def _choice(name: str, known: tuple[str, ...], default: str) -> str:
    text = os.environ.get(name, "").lower() or default
    if text not in known:
        raise DeploymentError(f"{name} must be one of {', '.join(known)}, got {text!r}")
    return text
