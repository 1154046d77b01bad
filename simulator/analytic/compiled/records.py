"""What does compiled code know of a model, and what does it find? Records of arrays.

Indices: p plans, s steps (those of a plan one behind the other), k calls, m stations, w columns of loads (the
stations, and delays behind them), c customers (the clients of every root, then the pools), v views (a station
of a network as its customers see it), n jobs. ``first`` of something says where what belongs to each begins.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mup.native.shapes import Floats1, Floats2, Floats3, Longs1, Longs2
from simulator.analytic.operating_point import LONGEST

__all__ = [
    "ADD",
    "BEGIN",
    "JOIN",
    "LONGEST",
    "LOOPED",
    "MEETING",
    "MIX",
    "OP_COLUMNS",
    "RELEASING",
    "SENT",
    "SYNCHRONOUS",
    "VIEW_COLUMNS",
    "VIEW_NUMBERS",
    "Layout",
    "Numbers",
    "Point",
]

SYNCHRONOUS: Final = 0
RELEASING: Final = 1
SENT: Final = 2
"""Kinds of calls."""

BEGIN: Final = 0
ADD: Final = 1
MIX: Final = 2
JOIN: Final = 3
LOOPED: Final = 4
"""Operations of a tape, which makes the times of a plan of those of its steps, each in its own slot."""
OP_COLUMNS: Final = 9
"""Code, slot written, first argument, number of arguments, and up to five more."""

MEETING: Final = 7
"""Numbers of branches of a request that are told apart: 0 to ``SIBLINGS``."""
VIEW_COLUMNS: Final = 12
VIEW_NUMBERS: Final = 4


class Layout(NamedTuple):
    """The structure: what is the same for all candidates whose stations are the same."""

    # Steps.
    step_first: Longs1
    call_first: Longs1
    call_target: Longs1
    call_kind: Longs1
    call_mean: Floats1
    call_variance: Floats1
    visits: Floats1
    held: Floats1
    awaited: Floats1
    # Plans.
    order: Longs1
    station: Longs1
    processor: Longs1
    before: Longs1
    behind: Longs1
    single: Longs1
    wide: Longs1
    second: Longs1
    releases: Floats1
    forward_first: Longs1
    forward_target: Longs1
    forward_chance: Floats1
    # Tapes: operations, their arguments, weights, and the slots of what is asked for in the end.
    op_first: Longs1
    ops: Longs2
    arguments: Longs1
    weights: Floats1
    hold_slot: Longs1
    reply_slot: Longs1
    branch_first: Longs1
    branch_steps: Longs1
    overlap_first: Longs1
    overlap_one: Longs1
    overlap_other: Longs1
    overlap_forks: Floats1
    # Columns of the loads of each plan, delays last.
    own_first: Longs1
    own_columns: Longs1
    called_first: Longs1
    called_columns: Longs1
    place: Longs2
    # Stations.
    shared: Longs1
    parent: Longs1
    pool_of: Longs1
    pools: Longs1
    plans_at_first: Longs1
    plans_at: Longs1
    # Sources of load.
    roots: Longs1
    unbounded: Longs1
    # Which step follows which in the same flow, for immediate returns.
    link_first: Longs1
    link_to: Longs1
    link_often: Floats1
    beside_first: Longs1
    beside: Longs1
    height: Longs1
    start: Longs1
    end_first: Longs1
    ends: Longs1
    reach_first: Longs1
    reach: Longs1
    # Numbers of own customers for which a shared station is evaluated, by how many there are at most.
    grids: Longs2
    grid_rows: Longs1
    # Integration.
    grid: Floats1
    grid_weights: Floats1
    nodes: Floats1
    node_weights: Floats1


class Numbers(NamedTuple):
    """What differs between candidates."""

    slices: Floats1
    demand: Floats1
    demand_variance: Floats1
    delay: Floats1
    delay_variance: Floats1
    servers: Floats1
    replicas: Longs1
    population: Longs1
    is_open: Longs1
    think: Floats1
    arrivals: Floats1


class Point(NamedTuple):
    """The operating point, and room to work in."""

    counts: Longs1
    """Rounds, shifts, places used in ``area``, views, returns."""
    # Steps.
    step_mean: Floats1
    step_variance: Floats1
    last_mean: Floats1
    last_variance: Floats1
    extra: Floats1
    share: Floats1
    # Plans.
    rates: Floats1
    arriving: Floats1
    waited: Floats1
    reply: Floats2
    hold: Floats2
    called: Floats2
    held: Floats3
    as_called: Floats3
    local: Floats3
    length: Floats1
    version: Longs1
    below: Longs1
    # Overlaps of branches: 1 if there is one, mean times of either, and of both.
    overlaps: Floats2
    slot_mean: Floats1
    slot_variance: Floats1
    load: Floats1
    beside: Floats1
    # Stations.
    total: Floats2
    wait: Floats1
    stretch: Floats1
    jobs: Floats1
    plain_wait: Floats1
    plain_stretch: Floats1
    lost: Floats2
    scale: Floats1
    second_rate: Floats1
    second_work: Floats1
    unawaited_visits: Floats1
    unawaited_work: Floats1
    sums: Floats2
    occupancy: Floats2
    # Queues.
    length_of: Longs1
    cut: Longs1
    speeds: Floats2
    forms: Floats2
    busy: Floats2
    pace: Floats2
    level: Floats1
    first: Floats1
    spread_one: Floats2
    spread_rest: Floats2
    spread_all: Floats2
    # Customers.
    rate: Floats1
    population: Longs1
    solved: Longs1
    profile: Floats3
    reached: Floats2
    throughput: Floats2
    busy_customers: Floats2
    busy_known: Longs1
    view_first: Longs1
    view_end: Longs1
    view_all: Longs1
    flows: Floats1
    pool_order: Longs1
    visited: Longs1
    # Views, and what they and networks keep in ``area``.
    view: Longs2
    view_numbers: Floats2
    area: Floats1
    # Returns.
    feedback_first: Longs1
    feedback_end: Longs1
    feedback_station: Longs1
    feedback_plan: Longs1
    feedback_step: Longs1
    feedback_numbers: Floats2
    first_reach: Floats3
    last_left: Floats3
    time: Floats1
    walk: Floats1
    walk_found: Floats2
