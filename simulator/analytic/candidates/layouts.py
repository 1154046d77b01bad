"""How do the layers of a model become arrays? The structure, its numbers, and room for an operating point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from mup.lqn.lowered import FanOut, passed_on
from mup.native.shapes import Floats1, Longs1, Longs2
from simulator.analytic.approximations.many_customers import FEW
from simulator.analytic.approximations.shared_station import grid
from simulator.analytic.candidates.tapes import Tapes
from simulator.analytic.compiled.feedback import AHEAD
from simulator.analytic.compiled.loads import ROWS
from simulator.analytic.compiled.records import (
    LONGEST,
    MEETING,
    OP_COLUMNS,
    RELEASING,
    SENT,
    SYNCHRONOUS,
    VIEW_COLUMNS,
    VIEW_NUMBERS,
    Layout,
    Numbers,
    Point,
)
from simulator.analytic.entries.entry_times import GRID, NODE_WEIGHTS, NODES, WEIGHTS
from simulator.analytic.evaluation import reached_stations
from simulator.analytic.layers import Layers, Plan

__all__ = ["is_compilable", "layout_of", "numbers_of", "point_for"]

MOST: Final = 3_000_000
"""Numbers in the loads of all plans at most: larger models are left to sparse loads."""
KINDS: Final = {"synchronous": SYNCHRONOUS, "releasing": RELEASING, "send": SENT}


def is_compilable(layers: Layers) -> bool:
    """Tell whether compiled code takes a model: without fan-outs or very many clients, plans, stations."""
    if any(isinstance(arc.then, FanOut) for plan in layers.plans for arc in plan.graph.arcs.values()):
        return False
    size = len(layers.plans) * ROWS * (len(layers.stations) + 1)
    tasks = [layers.model.tasks[layers.plans[root].task] for root in layers.roots]
    few = all(task.is_open or task.threads <= FEW for task in tasks)
    return size <= MOST and few and all(station.servers >= 1 for station in layers.stations)


def layout_of(layers: Layers) -> Layout:
    """Return the structure of layers."""
    plans, stations = layers.plans, layers.stations
    steps = [(plan, step) for plan in plans for step in plan.steps]
    calls = [call for _, step in steps for call in step.calls]
    releases = [
        sum(
            plan.graph.visits[step.name] * call.count[0]
            for step in plan.steps
            for call in step.calls
            if call.kind == "releasing"
        )
        for plan in plans
    ]
    tapes = Tapes()
    for plan in plans:
        tapes.add(plan.graph, [step.name for step in plan.steps])
    own, called = reached_stations(plans, layers.order)
    delays = len(stations)
    own_first, own_columns = _lists([[*sorted(found), delays] for found in own])
    called_first, called_columns = _lists([[*sorted(found), delays] for found in called])
    place = np.zeros((len(plans), delays + 1), dtype=np.int64)
    for index, found in enumerate(own):
        place[index, [*sorted(found), delays]] = np.arange(len(found) + 1)
    pools = _pools(layers)
    pool_of = np.full(delays, -1, dtype=np.int64)
    pool_of[pools] = np.arange(len(pools))
    at_first, plans_at = _lists(
        [[p for p, plan in enumerate(plans) if plan.station == at] for at in range(delays)]
    )
    links = [_Links(plan) for plan in plans]
    firsts = np.cumsum([0, *(len(plan.steps) for plan in plans)])
    outgoing = [one for each in links for found in each.outgoing for one in found]
    bases = [
        int(base) for each, base in zip(links, firsts, strict=False) for found in each.outgoing for _ in found
    ]
    link_first, _ = _lists([found for each in links for found in each.outgoing])
    beside_first, beside = _lists(
        [[base + b for b in one.beside] for base, one in zip(bases, outgoing, strict=True)]
    )
    end_first, ends = _lists(
        [[int(base) + e for e in each.ends] for each, base in zip(links, firsts, strict=False)]
    )
    reach_first, reach = _lists(_reach(layers))
    forward_first, _ = _lists([plan.forwards for plan in plans])
    forwards = [forward for plan in plans for forward in plan.forwards]
    unbounded = any(not call.awaited for call in calls) or any(plan.arrivals for plan in plans)
    grids, grid_rows = _grids()
    return Layout(
        step_first=_longs(firsts),
        call_first=_lists([step.calls for _, step in steps])[0],
        call_target=_longs(call.target for call in calls),
        call_kind=_longs(KINDS[call.kind] for call in calls),
        call_mean=_floats(call.count[0] for call in calls),
        call_variance=_floats(call.count[1] for call in calls),
        visits=_floats(plan.graph.visits[step.name] for plan, step in steps),
        held=_floats(step.name in plan.graph.held for plan, step in steps),
        awaited=_floats(step.name in plan.graph.awaited for plan, step in steps),
        order=_longs(layers.order),
        station=_longs(_index(plan.station) for plan in plans),
        processor=_longs(_index(plan.processor) for plan in plans),
        before=_longs(_index(plan.before) for plan in plans),
        behind=_longs(_index(plan.behind) for plan in plans),
        single=_longs(len(plan.graph.visits) == 1 for plan in plans),
        wide=_longs(plan.graph.width > 1 for plan in plans),
        second=_longs(plan.graph.awaited != plan.graph.held for plan in plans),
        releases=_floats(releases),
        forward_first=forward_first,
        forward_target=_longs(target for target, _ in forwards),
        forward_chance=_floats(chance for _, chance in forwards),
        op_first=_longs(tapes.op_first),
        ops=np.array(tapes.ops, dtype=np.int64).reshape(-1, OP_COLUMNS),
        arguments=_longs(tapes.arguments),
        weights=_floats(tapes.weights),
        hold_slot=_longs(tapes.hold_slot),
        reply_slot=_longs(tapes.reply_slot),
        branch_first=_longs(tapes.branch_first),
        branch_steps=_longs(tapes.branch_steps),
        overlap_first=_longs(tapes.overlap_first),
        overlap_one=_longs(tapes.overlap_one),
        overlap_other=_longs(tapes.overlap_other),
        overlap_forks=_floats(tapes.overlap_forks),
        own_first=own_first,
        own_columns=own_columns,
        called_first=called_first,
        called_columns=called_columns,
        place=place,
        shared=_longs(station.shared for station in stations),
        parent=_longs(_index(station.parent) for station in stations),
        pool_of=pool_of,
        pools=_longs(pools),
        plans_at_first=at_first,
        plans_at=plans_at,
        roots=_longs(layers.roots),
        unbounded=_longs([unbounded]),
        link_first=link_first,
        link_to=_longs(base + one.to for base, one in zip(bases, outgoing, strict=True)),
        link_often=_floats(one.often for one in outgoing),
        beside_first=beside_first,
        beside=beside,
        height=_longs(height for each in links for height in each.heights),
        start=_longs(int(base) + each.start for each, base in zip(links, firsts, strict=False)),
        end_first=end_first,
        ends=ends,
        reach_first=reach_first,
        reach=reach,
        grids=grids,
        grid_rows=grid_rows,
        grid=GRID,
        grid_weights=WEIGHTS,
        nodes=np.ascontiguousarray(NODES),
        node_weights=np.ascontiguousarray(NODE_WEIGHTS),
    )


def numbers_of(layers: Layers) -> Numbers:
    """Return the numbers of layers."""
    model = layers.model
    steps = [step for plan in layers.plans for step in plan.steps]
    tasks = [model.tasks[layers.plans[root].task] for root in layers.roots]
    return Numbers(
        slices=_floats(step.slices for step in steps),
        demand=_floats(step.demand[0] for step in steps),
        demand_variance=_floats(step.demand[1] for step in steps),
        delay=_floats(step.delay[0] for step in steps),
        delay_variance=_floats(step.delay[1] for step in steps),
        servers=_floats(station.servers for station in layers.stations),
        replicas=_longs(station.replicas for station in layers.stations),
        population=_longs(1 if task.is_open else int(task.threads) for task in tasks),
        is_open=_longs(task.is_open for task in tasks),
        think=_floats(0.0 if task.think is None or task.is_open else task.think.mean for task in tasks),
        arrivals=_floats(plan.arrivals for plan in layers.plans),
    )


def point_for(lay: Layout, area: Floats1) -> Point:
    """Return room for an operating point.

    Args:
        lay: The structure.
        area: Room for what the networks of a round keep, 50,000 numbers at least: enough for one view.
    """
    plans, stations, pools, roots = (len(each) for each in (lay.order, lay.shared, lay.pools, lay.roots))
    steps, width, customers = len(lay.visits), stations + 1, pools + roots
    per_plan = np.diff(lay.step_first)
    own, reach = np.diff(lay.own_first), np.diff(lay.reach_first)
    calls = np.array([lay.call_first[end] - lay.call_first[first] for first, end in _spans(lay.step_first)])
    feedbacks = int(((per_plan + 2 * calls) * reach).sum()) + 1
    block = int(((per_plan + 1) * own).max(initial=1))
    count = LONGEST + 1
    views = customers * stations + 1
    f, n = np.zeros, _counters
    return Point(
        counts=n(8),
        step_mean=f(steps),
        step_variance=f(steps),
        last_mean=f(steps),
        last_variance=f(steps),
        extra=f(steps),
        share=f(steps),
        rates=f(plans),
        arriving=f(plans),
        waited=f(plans),
        reply=f((plans, 2)),
        hold=f((plans, 2)),
        called=f((plans, 2)),
        held=f((plans, ROWS, width)),
        as_called=f((plans, ROWS, width)),
        local=f((plans, ROWS, width)),
        length=f(plans),
        version=n(plans),
        below=n(plans),
        overlaps=f((len(lay.overlap_one), 4)),
        slot_mean=f(max(len(lay.ops), 1)),
        slot_variance=f(max(len(lay.ops), 1)),
        load=f(block * ROWS),
        beside=f(4 * block + int(per_plan.max(initial=0)) + 2 * width),
        total=f((ROWS, width)),
        wait=f(stations),
        stretch=f(stations),
        jobs=f(stations),
        plain_wait=f(width),
        plain_stretch=f(width),
        lost=f((MEETING, width)),
        scale=f(width),
        second_rate=f(stations),
        second_work=f(stations),
        unawaited_visits=f(stations),
        unawaited_work=f(stations),
        sums=f((4, stations)),
        occupancy=f((stations, count)),
        length_of=n(stations),
        cut=n(stations),
        speeds=f((stations, count)),
        forms=f((stations, count)),
        busy=f((stations, count)),
        pace=f((stations, count)),
        level=f(stations),
        first=f(stations),
        spread_one=f((stations, count)),
        spread_rest=f((stations, count)),
        spread_all=f((stations, count)),
        rate=f(customers),
        population=n(customers),
        solved=n(customers),
        profile=f((customers, ROWS, width)),
        reached=f((customers, stations)),
        throughput=f((customers, count)),
        busy_customers=f((customers, count)),
        busy_known=n(customers),
        view_first=n(customers),
        view_end=n(customers),
        view_all=n(customers),
        flows=f(1),
        pool_order=n(pools),
        visited=n(customers),
        view=n((views, VIEW_COLUMNS)),
        view_numbers=f((views, VIEW_NUMBERS)),
        area=area,
        feedback_first=n(plans),
        feedback_end=n(plans),
        feedback_station=n(feedbacks),
        feedback_plan=n(feedbacks),
        feedback_step=n(feedbacks),
        feedback_numbers=f((feedbacks, 3)),
        first_reach=f((plans, stations, 3)),
        last_left=f((plans, stations, 3)),
        time=f(plans),
        walk=f((AHEAD + 1) * 3 * int((per_plan * reach).max(initial=1))),
        walk_found=f((width, 3)),
    )


class _Outgoing:
    """That a step follows another one in the same flow: how likely, and which steps have to be over, too."""

    __slots__ = ("beside", "often", "to")

    def __init__(self, to: int, often: float, beside: Sequence[int]) -> None:
        self.to, self.often, self.beside = to, often, beside


class _Links:
    """Which step of a plan follows which.

    Attributes:
        outgoing: Per step, what may follow.
        heights: Per step, how many steps may follow one after the other, at most ``AHEAD``.
        start, ends: The first step, and the last ones by name.
    """

    def __init__(self, plan: Plan) -> None:
        graph = plan.graph
        number = {step.name: k for k, step in enumerate(plan.steps)}
        self.outgoing: list[list[_Outgoing]] = [[] for _ in plan.steps]
        for before, after, often, beside in graph.links():
            one = _Outgoing(number[after], often / graph.visits[before], [number[name] for name in beside])
            self.outgoing[number[before]].append(one)
        self.start = number[graph.start]
        self.ends = [number[name] for name in sorted(graph.ends) if name in number]
        self.heights = [0] * len(plan.steps)
        changed = True
        while changed:
            changed = False
            for step in range(len(plan.steps) - 1, -1, -1):
                height = max((min(self.heights[one.to] + 1, AHEAD) for one in self.outgoing[step]), default=0)
                changed = changed or height != self.heights[step]
                self.heights[step] = height


def _reach(layers: Layers) -> list[list[int]]:
    """Return, per plan, the stations that a request gets to, by the servers of others too."""
    found: list[set[int]] = [set() for _ in layers.plans]
    for index in reversed(layers.order):
        plan = layers.plans[index]
        found[index].update(at for at in (plan.processor, plan.station) if at is not None)
        for step in plan.steps:
            for call in step.calls:
                if call.awaited:
                    found[index] |= found[call.target]
    return [sorted(each) for each in found]


def _pools(layers: Layers) -> list[int]:
    """Return the stations whose servers are customers of others, in the order they are found."""
    arriving = [float(plan.arrivals > 0) for plan in layers.plans]
    for root in layers.roots:
        arriving[root] = 1.0
    rates = passed_on(layers.order, layers.caused, layers.handed, arriving)
    used = [plan.station for plan, rate in zip(layers.plans, rates, strict=True) if rate > 0]
    found = dict.fromkeys(at for at in used if at is not None)
    return [*found, *(at for at, station in enumerate(layers.stations) if station.parent is not None)]


@cache
def _grids() -> tuple[Longs2, Longs1]:
    grids = np.zeros((LONGEST + 1, 80), dtype=np.int64)
    rows = np.zeros(LONGEST + 1, dtype=np.int64)
    for top in range(1, LONGEST + 1):
        found = grid(top)
        rows[top] = len(found)
        grids[top, : len(found)] = found
    return grids, rows


def _counters(shape: int | tuple[int, ...]) -> Any:
    return np.zeros(shape, dtype=np.int64)


def _spans(first: Longs1) -> Iterable[tuple[int, int]]:
    return zip(first[:-1].tolist(), first[1:].tolist(), strict=True)


def _index(number: int | None) -> int:
    return -1 if number is None else number


def _longs(values: Iterable[float]) -> Longs1:
    return np.array([int(v) for v in values], dtype=np.int64)


def _floats(values: Iterable[float]) -> Floats1:
    return np.array([float(v) for v in values], dtype=np.float64)


def _lists(rows: Sequence[Sequence[object]]) -> tuple[Longs1, Longs1]:
    """Return where each of some lists begins when they stand one behind the other, and all of them."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    flat = [value for row in rows for value in row if isinstance(value, int)]
    return first, np.array(flat, dtype=np.int64)
