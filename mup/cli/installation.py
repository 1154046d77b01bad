"""Where is what an installation of mup has besides its packages?"""

from __future__ import annotations

from pathlib import Path

import mup

__all__ = ["installed_folder"]


def installed_folder(name: str, sign: str) -> Path | None:
    """Return a folder: inside the package when installed, beside it in a clone; None = there is none.

    Args:
        name: Of the folder.
        sign: A file in it by which it is recognised.
    """
    package = Path(mup.__file__).resolve().parent
    return next((f for f in (package / name, package.parent / name) if (f / sign).is_file()), None)
