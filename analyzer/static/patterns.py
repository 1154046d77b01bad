"""Does a value match a pattern of ``match``, and what do its names capture?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from analyzer.static.state import State
from analyzer.static.syntax import stars
from analyzer.static.values import (
    ClassValue,
    Const,
    External,
    ListRef,
    TupleValue,
    Value,
    agreed,
    alternatives,
    compare,
    join,
    keyed,
)
from analyzer.static.values.callables import BUILT_IN
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part

__all__ = ["Patterns", "captures"]


@dataclass(frozen=True, slots=True)
class Match:
    """The answer of a pattern.

    Attributes:
        holds: None = perhaps.
        captured: Values of the names, for the case that it holds.
    """

    holds: bool | None
    captured: Mapping[str, Value]


class Patterns(Part):
    """Compares values with patterns."""

    def match(self, pattern: cst.MatchPattern, value: Value, state: State) -> Match:
        """Return whether a value matches."""
        return _either([self._match_one(pattern, one, state) for one in alternatives(value)])

    def _match_one(self, pattern: cst.MatchPattern, value: Value, state: State) -> Match:
        match pattern:
            case cst.MatchAs(pattern=inner, name=name):
                match = Match(True, {}) if inner is None else self._match_one(inner, value, state)
                return Match(match.holds, {**match.captured, **_captured(name, value)})
            case cst.MatchOr(patterns=patterns):
                found: list[Match] = []
                for element in patterns:
                    found.append(self._match_one(element.pattern, value, state))
                    if found[-1].holds is True:
                        return _either([f for f in found if f.holds is not False])
                return _perhaps(found)
            case cst.MatchValue(value=node) | cst.MatchSingleton(value=node):
                results = self.walk.expressions.evaluate(node, state)
                same = join(compare("Equal", value, other) for _, other in results)
                return Match(same.truth({}), {})
            case cst.MatchSequence():
                return self._match_sequence(pattern, value, state)
            case cst.MatchMapping():
                return self._match_mapping(pattern, value, state)
            case cst.MatchClass():
                return self._match_class(pattern, value, state)
        return Match(None, {})

    def _match_sequence(self, pattern: cst.MatchSequence, value: Value, state: State) -> Match:
        if isinstance(value, Const) or value.is_mapping:
            return Match(False, {})
        items = self.walk.expressions.items(value, state)
        elements = list(pattern.patterns)
        starred = stars(elements)
        part = state.content_of([value])
        if items is None:
            parts = [Match(None, {}), *(self._match_element(e, part, state) for e in elements)]
            return _all(parts)
        if len(items) < len(elements) - len(starred) or (not starred and len(items) > len(elements)):
            return Match(False, {})
        if starred:
            before, behind = starred[0], len(elements) - starred[0] - 1
            middle = TupleValue(items[before : len(items) - behind])
            items = (*items[:before], middle, *items[len(items) - behind :])
        return _all([self._match_element(e, i, state) for e, i in zip(elements, items, strict=True)])

    def _match_element(
        self, element: cst.MatchSequenceElement | cst.MatchStar, item: Value, state: State
    ) -> Match:
        if isinstance(element, cst.MatchStar):
            return Match(True, _captured(element.name, item))
        return self.match(element.value, item, state)

    def _match_mapping(self, pattern: cst.MatchMapping, value: Value, state: State) -> Match:
        if isinstance(value, Const | ListRef | TupleValue):
            return Match(False, {})
        pairs = value.pairs(state.heap) if value.is_mapping else None
        part = state.content_of([value])
        rows = keyed(pairs)
        found = [] if pairs is not None else [Match(None, {})]
        for element in pattern.elements:
            key = join(v for _, v in self.walk.expressions.evaluate(element.key, state))
            wanted = key.as_key()
            known = None if rows is None or wanted is None else rows.get(wanted)
            if rows is not None and wanted is not None and known is None:
                return Match(False, {})
            found.append(self.match(element.pattern, part if known is None else known[1], state))
            found.append(Match(None if known is None else True, {}))
        return _all([*found, Match(True, _captured(pattern.rest, part))])

    def _match_class(self, pattern: cst.MatchClass, value: Value, state: State) -> Match:
        kind = join(v for _, v in self.walk.expressions.evaluate(pattern.cls, state))
        holds = value.instance_of(kind, self.walk)
        if holds is False:
            return Match(False, {})
        found = [Match(holds, {})]
        whole, names = False, list[str]()
        match kind:
            case External(name=name):
                whole = name.removeprefix("builtins.") in BUILT_IN
            case ClassValue(info=info):
                names = self.walk.making.field_names(info)
        for index, element in enumerate(pattern.patterns):
            item = value if whole else self._field_of(value, names[index : index + 1], pattern, state)
            found.append(self.match(element.value, item, state))
        for keyword in pattern.kwds:
            item = self._field_of(value, [keyword.key.value], pattern, state)
            found.append(self.match(keyword.pattern, item, state))
        return _all(found)

    def _field_of(self, value: Value, names: Sequence[str], node: cst.CSTNode, state: State) -> Value:
        for name in names if isinstance(value, MadeObject) else ():
            found = value.attribute(name, node, state, self.walk)
            if found is not None:
                return found
        return state.content_of([value])


def _captured(name: cst.Name | None, value: Value) -> dict[str, Value]:
    return {} if name is None else {name.value: value}


def captures(matches: Iterable[Match]) -> dict[str, Value]:
    """Return what names capture of a value of which one of these matches holds."""
    found = list(matches)
    names = dict.fromkeys(name for match in found for name in match.captured)
    return {name: join(m.captured[name] for m in found if name in m.captured) for name in names}


def _all(found: Sequence[Match]) -> Match:
    answers = {match.holds for match in found}
    if False in answers:
        return Match(False, {})
    return Match(None if None in answers else True, captures(found))


def _either(found: Sequence[Match]) -> Match:
    """Return the match of a value that may be any of several."""
    holds = agreed(match.holds for match in found)
    return Match(holds, captures(m for m in found if m.holds is not False))


def _perhaps(found: Sequence[Match]) -> Match:
    """Return the match of a pattern of which one alternative may hold."""
    if all(match.holds is False for match in found):
        return Match(False, {})
    return Match(None, captures(m for m in found if m.holds is not False))
