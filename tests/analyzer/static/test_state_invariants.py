"""The invariants that ``State`` states hold wherever a block of statements ends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from source_outline import analyse_files, endpoint_source

from analyzer.static import analyse
from analyzer.static.application import Operation
from analyzer.static.state import Flow, State
from analyzer.static.statements import Statements
from analyzer.static.values import Value

CORPUS = Path(__file__).parent / "corpus" / "applications"
MANY = "".join(f"if comm.params['{n}']:\n    f = comm.call('B', '/b/')\n    f.get()\n" for n in range(7))
"""More ways than are listed: they are folded into choices."""


def _values(flow: Flow) -> Iterable[Value]:
    yield flow.value
    for frame in flow.state.frames:
        yield from frame.values()
    for content in flow.state.heap.values():
        yield from [content] if isinstance(content, Value) else [value for _, value in content]


def violated(flows: Iterable[Flow]) -> set[str]:
    """Return what does not hold of the ends of a block."""
    found: set[str] = set()
    first: dict[tuple[Operation, ...], State] = {}
    for flow in flows:
        state = flow.state
        places = range(len(state.operations))
        waits = {place: o.of for place, o in enumerate(state.operations) if o.of is not None}
        other = first.setdefault(state.operations, state)
        checks = {
            "waits for a later one": all(0 <= of < place for place, of in waits.items()),
            "joined": set(waits.values()) <= state.joined <= set(places),
            "lines": len(state.local_lines) == len(state.operations) + 1,
            "futures": all(i in places for value in _values(flow) for i in value.futures()),
            "mergeable": (len(state.frames), state.joined) == (len(other.frames), other.joined),
        }
        found |= {problem for problem, holds in checks.items() if not holds}
    return found


@pytest.mark.parametrize("application", ["allocation", "feed", "resilience", "choices"])
def test_invariants_hold_behind_every_block(
    application: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Loops, tasks, handlers, copies of a branch, folded choices: whatever has been walked."""
    found: set[str] = set()
    seen = 0
    block = Statements.block

    def examined(*arguments: object) -> list[Flow]:
        nonlocal seen
        flows = block(*arguments)  # type: ignore[arg-type]
        seen += sum(len(flow.state.operations) > 0 for flow in flows)
        found.update(violated(flows))
        return flows

    monkeypatch.setattr(Statements, "block", examined)
    if application == "choices":
        analyse_files(tmp_path, services=endpoint_source(MANY + "comm.respond(1)"))
    else:
        analyse(CORPUS / application)
    assert not found
    assert seen > 20, "too little was walked for this test to mean anything"
