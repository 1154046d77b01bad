"""Parameters of the frontend's forms, with their defaults."""

from __future__ import annotations

import base64
import binascii
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mup.communication import UploadedFile

SHARES = 2
"""How many backends there are."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """What the services behind have to do.

    Attributes:
        timeout: Seconds they have.
        extraload: Pictures the storage reads besides.
    """

    timeout: float
    extraload: int


def upstream_of(params: Mapping[str, Any]) -> Upstream:
    """Return what a request says about the services behind; they have a second less than the frontend.

    Raises:
        ValueError: A number is none, or out of range.
    """
    timeout = float(params.get("upstream-timeout", 2.0)) - 1
    extraload = int(params.get("storage-extraload", 5))
    if timeout <= 0 or extraload < 0:
        raise ValueError("upstream-timeout has to be > 1, storage-extraload >= 0")
    return Upstream(timeout, extraload)


def picture_name(params: Mapping[str, Any]) -> str:
    """Return the file a request names.

    Raises:
        ValueError: It names none, or no JPEG file.
    """
    name = params.get("imgfile")
    if not isinstance(name, str) or not name.endswith(".jpg"):
        raise ValueError(f"imgfile has to be a .jpg file, got {name!r}")
    return name


def uploaded_picture(
    params: Mapping[str, Any], files: Mapping[str, Sequence[UploadedFile]]
) -> tuple[str, bytes]:
    """Return name and content of the picture in a request.

    It is a file of a form, as browsers and curl send it, or an object with its ``name`` and ``base64``.

    Raises:
        ValueError: There is none.
    """
    for file in files.get("imgfile", ()):
        if file.data:  # of a form without a chosen file, browsers send one without content
            return file.filename, file.data
    try:
        sent = params["imgfile"]
        return str(sent["name"]), base64.b64decode(sent["base64"], validate=True)
    except (KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"imgfile is no name and base64: {error}") from error


def chosen_backend(params: Mapping[str, Any]) -> int:
    """Return the number of a backend, drawn by the weights a request names; equal ones if it names none."""
    try:
        weights = [float(word) for word in str(params["lb-weights"]).split(",")]
    except (KeyError, ValueError):
        weights = []
    if len(weights) != SHARES or min(weights) < 0 or sum(weights) == 0:
        weights = [1.0] * SHARES
    return random.choices(range(SHARES), weights)[0]
