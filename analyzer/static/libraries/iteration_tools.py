"""What do functions of ``itertools`` return?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise, product, zip_longest

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import NONE, TupleValue, Value, chained

__all__ = ["FUNCTIONS"]

MAX_ROWS = 1000
"""More tuples are not followed."""


def _chained(call: LibraryCall, values: Iterable[Value] | None) -> Results | None:
    sequences = [] if values is None else [call.walk.copies.runs(value, call.state) for value in values]
    runs = tuple(run for sequence in sequences if sequence is not None for run in sequence)
    if values is None or None in sequences:
        return None
    content = chained(runs)
    return call.result(content if isinstance(content, Value) else TupleValue(runs))


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
        return call.result(TupleValue(tuple(islice(items, *(bound for _, bound in bounds)))))
    except (TypeError, ValueError):
        return None


def _combined(function: Callable[..., Iterable[tuple[Value, ...]]]) -> Known:
    """Return what a function does that makes tuples of the items of what it is given."""

    def known(call: LibraryCall) -> Results | None:
        spelt = call.items_of_each()
        if call.keywords or spelt is None:
            return None
        rows = list(islice(function(*spelt), MAX_ROWS + 1))
        return None if len(rows) > MAX_ROWS else call.result(TupleValue(tuple(map(TupleValue, rows))))

    return known


def _longest(*sequences: Sequence[Value]) -> Iterable[tuple[Value, ...]]:
    return zip_longest(*sequences, fillvalue=NONE)


FUNCTIONS: dict[str, Known] = {
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_of,
    "itertools.islice": _islice,
    "itertools.pairwise": _combined(pairwise),
    "itertools.product": _combined(product),
    "itertools.zip_longest": _combined(_longest),
}
