"""Reasons why a value must not leave the code the analyzer sees."""

from __future__ import annotations

__all__ = ["HERE", "Escape"]

HERE = "call it here, or in a function of this source tree"
"""What to do with a function or ``Communication`` object instead of handing it out."""

Escape = tuple[str, str, str, str]
"""The code of the finding, what the value is, the consequence and the remedy."""
