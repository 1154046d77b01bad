"""Meaning of a model: engines and tools read it here, instead of walking its graphs.

``Graph`` is an entry as explicit steps, ``Lowered`` a model: its sources of load, the graphs these get to,
the requests per cycle, and the numbers that are missing. The rules are listed in
docs/explanation/simulation.md, each with its test.
"""

from mup.lqn.lowered.graph import (
    Arc,
    Block,
    Choice,
    FanOut,
    Fork,
    Graph,
    Join,
    Loop,
    Repeated,
    Then,
    Unmeasured,
)
from mup.lqn.lowered.lowering import Lowered
from mup.lqn.lowered.refusals import MAX_LISTED, measured, refuse_unmeasured
from mup.lqn.lowered.requests import (
    EntryKey,
    Node,
    Passed,
    Request,
    Slices,
    check_graph,
    is_awaited,
    onward,
    passed_on,
    per_request,
    requests_of,
    slices_of,
    targets,
    tasks_behind,
)
from mup.lqn.lowered.sources import (
    Source,
    check_sources,
    clients_of,
    is_source,
    sources_of,
    tasks_with_sources,
)
from mup.lqn.lowered.stations import (
    has_front,
    is_limited,
    machines,
    pinned_together,
    speeds_of,
    wholes,
)

__all__ = [
    "MAX_LISTED",
    "Arc",
    "Block",
    "Choice",
    "EntryKey",
    "FanOut",
    "Fork",
    "Graph",
    "Join",
    "Loop",
    "Lowered",
    "Node",
    "Passed",
    "Repeated",
    "Request",
    "Slices",
    "Source",
    "Then",
    "Unmeasured",
    "check_graph",
    "check_sources",
    "clients_of",
    "has_front",
    "is_awaited",
    "is_limited",
    "is_source",
    "machines",
    "measured",
    "onward",
    "passed_on",
    "per_request",
    "pinned_together",
    "refuse_unmeasured",
    "requests_of",
    "slices_of",
    "sources_of",
    "speeds_of",
    "targets",
    "tasks_behind",
    "tasks_with_sources",
    "wholes",
]
