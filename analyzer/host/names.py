"""Name of the processor that stands for the machine of an exploration."""

from __future__ import annotations

from typing import Final

__all__ = ["HOST"]

HOST: Final = "host"
