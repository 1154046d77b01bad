"""Classes of requests: method and path, with the ids in paths put together.

``GET /item/4711`` and ``GET /item/4712`` ask for the same work. Two rules find what is an id:

1. What looks like one: numbers, UUIDs, long hexadecimal words, long words with digits. Always ``{}``.
2. What there is too much of: where more than ``MANY`` different words stand at one place of otherwise equal
   paths, most of them with fewer than ``FEW`` requests, they are names of things, not of endpoints.

Memory is bounded: what stands at a place with more than ``TOO_MANY`` words becomes ``{}`` while the log is
still being read. Query strings do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mup.errors import UsageError

__all__ = ["FEW", "MANY", "Targets"]

Codes = npt.NDArray[np.int32]
Place = tuple[tuple[str, ...], int]
"""The words before a place, and how many words the path has."""

MANY = 50
FEW = 30
"""Requests below which a class has no more than a rough guess of an interval."""
TOO_MANY = 1000
RAW_KEPT = 200_000
"""Texts whose class is remembered."""
COMPACTED = 5000
"""Classes from which on places with too many words are looked for."""
ID = "{}"

_ID = re.compile(
    r"(?<=/)(?:\d[\d.,:_-]*"
    r"|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[^/]*\d)[0-9a-fA-F]{8,}"
    r"|(?=(?:[^/]*\d){2})[\w=~-]{16,})"
    r"(?=/|\.[A-Za-z]\w{0,4}(?:/|$)|$)"
)
_BEHIND = re.compile(r"[?;]| HTTP/")
_ORIGIN = re.compile(r"(?<= )[a-z]+://[^/ ]*|^[a-z]+://[^/ ]*")


class Targets:
    """Numbers classes of requests as they come.

    Args:
        groups: Name of a class -> regular expression found in method and path; the first that fits counts,
            and comes before all rules.

    Raises:
        UsageError: An expression is none.
    """

    def __init__(self, groups: Mapping[str, str]) -> None:
        self._groups: list[tuple[str, re.Pattern[str]]] = []
        for name, pattern in groups.items():
            try:
                self._groups.append((name, re.compile(pattern)))
            except re.error as error:
                raise UsageError(f"--group: {pattern!r} is no regular expression: {error}") from error
        self._raw: dict[bytes | str, int] = {}
        self._classes: dict[tuple[str, ...], int] = {}
        self._words: list[tuple[str, ...]] = []
        self._requests = np.zeros(0, dtype=np.int64)
        self._ids: set[Place] = set()
        self._compacted = COMPACTED

    def numbers(self, column: Sequence[bytes | str]) -> Codes:
        """Return the number of the class of each request, shape (I,); see `names` for what they are."""
        known = self._raw.get
        found = np.fromiter((known(text, -1) for text in column), np.int32, len(column))
        for i in np.flatnonzero(found < 0).tolist():
            found[i] = self._number(column[i])
        counts = np.bincount(found, minlength=len(self._words))
        counts[: len(self._requests)] += self._requests
        self._requests = counts
        if len(self._words) > self._compacted:
            self._merge(TOO_MANY, 0)
            # Whatever is left is looked at again when there is twice as much.
            self._compacted = 2 * len(self._words)
        return found

    def names(self) -> tuple[list[str], Codes]:
        """Return the classes by name, in order, and the class of each number; shape (numbers,)."""
        self._merge(MANY, FEW)
        texts = ["/".join(words) for words in self._words]
        names = sorted(set(texts))
        place = {name: r for r, name in enumerate(names)}
        return names, np.array([place[text] for text in texts], dtype=np.int32)

    def _number(self, raw: bytes | str) -> int:
        number = self._raw.get(raw)
        if number is None:
            words = self._words_of(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw)
            number = self._classes.get(words)
            if number is None:
                number = self._classes[words] = len(self._words)
                self._words.append(words)
            if len(self._raw) >= RAW_KEPT:
                self._raw.clear()
            self._raw[raw] = number
        return number

    def _words_of(self, text: str) -> tuple[str, ...]:
        """Return method and path as words: ``("GET ", "item", "{}")``; a group is one word."""
        if "://" in text:
            text = _ORIGIN.sub("", text)
        # What follows the path: a query, parameters, the protocol of a whole request line.
        text = _BEHIND.split(text, maxsplit=1)[0]
        for name, pattern in self._groups:
            if pattern.search(text):
                return (name,)
        words = tuple(_ID.sub(ID, text).split("/"))
        return self._with_ids(words) if self._ids else words

    def _with_ids(self, words: tuple[str, ...]) -> tuple[str, ...]:
        found: tuple[str, ...] = words[:1]
        for word in words[1:]:
            found = (*found, ID if (found, len(words)) in self._ids else word)
        return found

    def _merge(self, many: int, few: int) -> None:
        """Put the words of places together that have too many.

        Args:
            many: Different words that may be at a place.
            few: Requests of the median word from which on more words are accepted; 0 = none are.
        """
        for depth in range(1, max(map(len, self._words), default=0)):
            places: defaultdict[Place, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
            for number, words in enumerate(self._words):
                if len(words) > depth:
                    count = int(self._requests[number]) if number < len(self._requests) else 0
                    places[words[:depth], len(words)][words[depth]] += count
            full = {
                place
                for place, words_there in places.items()
                if len(words_there) > many and (not few or np.median(list(words_there.values())) < few)
            }
            if not full:
                continue
            self._ids |= full
            self._words = [
                (*words[:depth], ID, *words[depth + 1 :])
                if len(words) > depth and (words[:depth], len(words)) in full
                else words
                for words in self._words
            ]
        self._classes = {}
        for number, words in enumerate(self._words):
            self._classes.setdefault(words, number)
