"""Words of the translator: a few hundred made-up pairs, the same on every machine."""

from __future__ import annotations

from typing import Any

ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t")
VOWELS = ("a", "e", "i", "o", "u")
ENDINGS = ("ndo", "rma", "sti", "lle", "to")

WORDS = tuple(onset + vowel + ending for onset in ONSETS for vowel in VOWELS for ending in ENDINGS)


def translation(word: str) -> str:
    """Return the word in the other language."""
    return word[::-1]


def fill(database: Any) -> None:
    """Fill the dictionary; called by mup with a pymongo database when the project starts."""
    database.tr.delete_many({})
    database.tr.insert_many([{"_id": word, "text": translation(word)} for word in WORDS])
