"""Operations on pictures: real ones, with OpenCV, or pretended ones.

The environment variable ``MUP_WORK`` says which: ``wait`` (the default) pauses as long as the work would take
and leaves pictures as they are, so that pools and replicas can grow beyond the cores of one machine; ``cpu``
does it.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

Face = list[int]
"""Left, top, width, height."""


class Images(Protocol):
    """Everything a service does to a picture; pictures are JPEG files."""

    def grey(self, picture: bytes) -> bytes:
        """Return it without colours."""
        ...

    def faces(self, picture: bytes) -> list[Face]:
        """Return where its faces are."""
        ...

    def marked(self, picture: bytes, faces: list[Face], labels: list[str]) -> bytes:
        """Return it without colours, with a frame around each face, and lines of text."""
        ...


class PretendedImages:
    """Takes as long as the real work, and does nothing.

    Args:
        milliseconds: Length of each pause.
    """

    def __init__(self, milliseconds: float) -> None:
        self._seconds = milliseconds / 1000

    def grey(self, picture: bytes) -> bytes:
        """Return it as it is."""
        time.sleep(self._seconds)
        return picture

    def faces(self, picture: bytes) -> list[Face]:  # noqa: ARG002 - it is not looked at
        """Find none."""
        time.sleep(self._seconds)
        return []

    def marked(self, picture: bytes, faces: list[Face], labels: list[str]) -> bytes:  # noqa: ARG002
        """Return it as it is."""
        time.sleep(self._seconds)
        return picture


def open_images(milliseconds: str, default: float) -> Images:
    """Return what the environment asks for.

    Args:
        milliseconds: The variable that says how long a pretended step takes.
        default: What it is without it.

    Raises:
        ValueError: ``MUP_WORK`` is something else.
    """
    mode = os.environ.get("MUP_WORK", "wait")
    if mode == "wait":
        return PretendedImages(float(os.environ.get(milliseconds, default)))
    if mode == "cpu":
        # Only who works on real pictures needs OpenCV.
        from facedetect.opencv_images import OpenCVImages  # noqa: PLC0415

        return OpenCVImages()
    raise ValueError(f"MUP_WORK must be cpu or wait, got {mode!r}")
