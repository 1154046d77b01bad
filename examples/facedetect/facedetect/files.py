"""Encoding of pictures between services."""

from __future__ import annotations

import msgspec


class PictureFile(msgspec.Struct):
    """A picture and what its file is called."""

    name: str
    base64: str


class Upload(msgspec.Struct):
    """A picture to be worked on, and how many others the storage reads besides."""

    file: PictureFile
    extraload: int = msgspec.field(default=0, name="storage-extraload")
