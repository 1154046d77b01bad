"""End of a command: an exit code, and after a failure one message without a traceback.

What a command cannot help (a full disk, a reader that has gone, a signal) is no bug of the program: it ends
with one message, too. Anything else that escapes is a bug, and its traceback is wanted.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from mup.cli.optional_parts import missing_part
from mup.errors import MupError

__all__ = ["exit_code"]

INTERRUPTED = 130
REFUSED = 2
ENVIRONMENT = {
    errno.ENOSPC: "write less, or free space on that disk",
    errno.EDQUOT: "write less, or ask for a larger quota",
    errno.EFBIG: "write less, or to another file system",
    errno.EROFS: "write elsewhere: the file system is mounted read-only",
    errno.EACCES: "check who owns it and its permissions",
    errno.EPERM: "check who owns it and its permissions",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.EIO: "the device failed",
    errno.ENOMEM: "free memory, or ask for less",
}
"""Errors of the operating system that are no mistake of this program, and what to do about them."""


def exit_code(command: Callable[[], object], words: Sequence[str]) -> int:
    """Run a command, print its failure, and return its exit code.

    Args:
        command: What to run; a whole number it returns is its exit code.
        words: The command line, to see whether it asks for JSON.
    """
    try:
        result = command()
        # Now, not when the interpreter ends: a full disk is told as any other failure.
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return _flushed(ended.exit_code)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _flushed(_stopped_by())
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return REFUSED
    except click.ClickException as error:
        return _refuse(_usage_error(error), words)
    except MupError as error:
        return _refuse(error, words)
    except ModuleNotFoundError as error:
        refusal = missing_part(error, words[0] if words else "")
        if refusal is None:
            raise
        return _refuse(refusal, words)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: nothing left to say.
        _discard_output()
        return 0
    except OSError as error:
        if error.errno not in ENVIRONMENT:
            raise
        return _refuse(_environment_error(error), words)
    return result if isinstance(result, int) else 0


def _stopped_by() -> int:
    """Return the exit code of a command that was stopped: 130, or that of another signal than Ctrl-C."""
    stopping = sys.modules.get("mup.cli.stopping")
    return INTERRUPTED if stopping is None else int(stopping.code())


def _usage_error(error: click.ClickException) -> MupError:
    """Return what click says about the command line in the words of mup."""
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f"'{context.command_path} --help' lists what it takes"
    return MupError(f"{text[:1].lower()}{text[1:]}", hint=hint)


def _environment_error(error: OSError) -> MupError:
    named = error.filename if isinstance(error.filename, str) else ""
    failed = (
        "cannot write" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS) else "failed"
    )
    return MupError(
        f"{failed}: {os.strerror(error.errno or 0)}", where=named, hint=ENVIRONMENT[error.errno or 0]
    )


def _refuse(error: MupError, words: Sequence[str]) -> int:
    if "--json" not in words or not _printed(_document(error)):
        with contextlib.suppress(OSError):
            click.echo(f"mup: error: {error}", err=True)
    return _flushed(REFUSED)


def _document(error: MupError) -> str:
    details: dict[str, Any] = {"where": error.where, "hint": error.hint}
    content = {"message": error.message, **{k: v for k, v in details.items() if v}}
    return json.dumps({"error": content}, indent=1)


def _printed(text: str) -> bool:
    """Print to standard output; return whether that was possible."""
    try:
        click.echo(text)
    except OSError:
        _discard_output()
        return False
    return True


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _discard_output()
    return code


def _discard_output() -> None:
    """Send to nowhere what standard output still holds: it would fail again when the interpreter ends."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        if sys.stdout is sys.__stdout__ and sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
