"""Option values several commands share: lists of numbers, and ``NAME=NUMBER`` pairs."""

from __future__ import annotations

from collections.abc import Iterable

from mup.errors import UsageError

__all__ = ["assignments", "whole_numbers"]


def whole_numbers(text: str, option: str) -> list[int]:
    """Parse ``1,2,4``.

    Raises:
        UsageError: A part is not a whole number >= 1.
    """
    numbers = []
    for part in text.split(","):
        try:
            value = int(part)
        except ValueError:
            value = 0
        if value < 1:
            raise UsageError(
                f"{option}: must be whole numbers >= 1 separated by commas, got {part.strip()!r}",
                hint=f"for example {option} 1,2,4,8",
            )
        numbers.append(value)
    return numbers


def assignments(values: Iterable[str], option: str) -> dict[str, int]:
    """Parse ``B=4`` pairs.

    Raises:
        UsageError: A value has no name or no whole number >= 1.
    """
    result = {}
    for text in values:
        name, equals, number = text.partition("=")
        if not (name and equals):
            raise UsageError(f"{option}: must be NAME=NUMBER, got {text!r}", hint=f"for example {option} B=4")
        result[name] = whole_numbers(number, f"{option} {name}")[0]
    return result
