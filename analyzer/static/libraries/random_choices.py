"""What do functions return that choose by chance? Any of what they are given to choose from."""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Const, Value, join

__all__ = ["FUNCTIONS"]

MOST = 16
"""Longer lists of choices are not followed item by item."""


def _any_of(call: LibraryCall) -> Value | None:
    """Return what one choice may be; None if that is not known, or futures would be taken more than once."""
    items = call.items(call.given[0]) if call.given else None
    if not items or any(map(call.state.holds_tracked, items)):
        return None
    return join(items)


def _choice(call: LibraryCall) -> Results | None:
    found = _any_of(call)
    return None if found is None else call.result(found)


def _several(call: LibraryCall) -> Results | None:
    found = _any_of(call)
    number = call.keywords.get("k", Const.of(1) if len(call.given) < 2 else call.given[-1])
    known, count = number.python()
    if found is None or not known or type(count) is not int or not 0 <= count <= MOST:
        return None
    return call.new_list([found] * count)


def _choices(call: LibraryCall) -> Results | None:
    # What else is given without a name are weights.
    return _several(LibraryCall(call.walk, call.given[:1], call.keywords, call.node, call.state))


FUNCTIONS: dict[str, Known] = {
    "random.choice": _choice,
    "random.choices": _choices,
    "random.sample": _several,
    "secrets.choice": _choice,
}
