"""Values of a parameter beyond the first few, which prove what the others prove already.

They are marked ``repeats``: a plain run leaves them out, ``pytest -m repeats`` runs them, and so does continuous
integration. A test that gives a proof of its own is none of them, however long it takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def repeats_after(first: int, values: Iterable[Any]) -> list[Any]:
    """Return the values for ``parametrize``; those after the first ones are repeats."""
    every = list(values)
    return [*every[:first], *(pytest.param(value, marks=pytest.mark.repeats) for value in every[first:])]
