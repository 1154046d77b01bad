"""How is a model file replaced so that a crash never leaves half of one?"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from mup.errors import ModelError

__all__ = ["write_whole"]


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        ModelError: The file cannot be written.
    """
    target = Path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # noqa: PTH101  (mkstemp makes it private)
        os.replace(temporary, target)  # noqa: PTH105
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
        raise ModelError(f"cannot write the model: {error.strerror}", where=str(path)) from error
