"""What do functions of ``functools`` do?"""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Partial

__all__ = ["FUNCTIONS"]


def _partial(call: LibraryCall) -> Results | None:
    if not call.given:
        return None
    return call.returns(Partial(call.given[0], tuple(call.given[1:]), tuple(call.keywords.items())))


FUNCTIONS: dict[str, Known] = {
    "functools.partial": _partial,
    "functools.partialmethod": _partial,
}
