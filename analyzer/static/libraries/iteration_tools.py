"""What do functions of ``itertools`` return?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import TupleValue, Value

__all__ = ["FUNCTIONS"]


def _chained(call: LibraryCall, values: Iterable[Value] | None) -> Results | None:
    sequences = [] if values is None else [call.items(value) for value in values]
    known = [item for sequence in sequences if sequence is not None for item in sequence]
    return None if values is None or None in sequences else call.returns(TupleValue(tuple(known)))


def _chain(call: LibraryCall) -> Results | None:
    return _chained(call, call.given)


def _chain_of(call: LibraryCall) -> Results | None:
    return _chained(call, call.items(call.given[0]) if len(call.given) == 1 else None)


def _islice(call: LibraryCall) -> Results | None:
    items = call.items(call.given[0]) if call.given else None
    bounds = [value.python() for value in call.given[1:]]
    if items is None or not bounds or not all(known for known, _ in bounds):
        return None
    try:
        return call.returns(TupleValue(tuple(islice(items, *(bound for _, bound in bounds)))))
    except (TypeError, ValueError):
        return None


FUNCTIONS: dict[str, Known] = {
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_of,
    "itertools.islice": _islice,
}
