"""Systems that are fitted: those of Woodside's "The Relationship of Performance Models to Data", two pools.

The queueing network is figure 4. Of the layered network, figure 7, the text gives demands, threads,
processors and think time, not how often each entry is called; the counts here reproduce the utilizations the
paper prints for 50 users (WSP 0.88 of 2, AppP 0.61, DBP 0.34, WS 3.0, App 0.96). Two pools in a row are the
smallest layered system: threads of the first are held while they wait for the second.
"""

from __future__ import annotations

from collections.abc import Sequence

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Geometric,
    Model,
    Precedence,
    Processor,
    Task,
)

NOTHING = Constant(0.0)
NODES = ("web", "disk", "app")
TRUE_DEMANDS = (2.0, 3.0, 4.0)
TRUE_LAYERED = {
    "demand.Dir.dirOp": 0.1,
    "demand.WS.webOp": 0.4,
    "demand.App.appOp:phase1": 0.2,
    "demand.App.appOp:phase2": 0.2,
    "demand.DB.dbOp": 0.1,
    "pool.App": 1.0,
    "pool.WS": 3.0,
}
"""The parameters of Table 3, in its order."""

TRUE_POOLS = {"demand.front.serve": 0.06, "demand.back.serve": 0.03}


def users(calls: Sequence[Call], number: int, think: float) -> Task:
    """Return clients that make some calls per cycle."""
    go = Activity(name="go", demand=NOTHING, delay=NOTHING, calls=tuple(calls))
    return Task(
        name="Users",
        role="reference",
        threads=number,
        think=Exponential(think) if think else None,
        entries=(Entry(name="cycle", start="go", activities=(go,)),),
    )


def queueing(demands: Sequence[float] = TRUE_DEMANDS, *, number: int = 4, think: float = 0.0) -> Model:
    """Return the closed queueing network; a fourth demand is a fourth node that no trial measures."""
    names = (*NODES, "ghost")[: len(demands)]
    tasks = []
    for name, demand in zip(names, demands, strict=True):
        work = Activity(name="work", demand=Exponential(demand), delay=NOTHING)
        tasks.append(Task(name=name, entries=(Entry(name="serve", start="work", activities=(work,)),)))
    calls = [Call(task=name, entry="serve") for name in names]
    return Model(name="queueing network", tasks=(users(calls, number, think), *tasks))


def layered(values: dict[str, float] | None = None, *, number: int = 50, think: float = 5.0) -> Model:
    """Return the layered network with some values of its seven parameters."""
    v = {**TRUE_LAYERED, **(values or {})}

    def step(name: str, path: str, *calls: tuple[str, str, float], replies: bool = False) -> Activity:
        return Activity(
            name=name,
            demand=Exponential(v[path]),
            delay=NOTHING,
            interleaved=bool(calls),
            calls=tuple(Call(task=task, entry=entry, count=Geometric(count)) for task, entry, count in calls),
            replies=replies,
        )

    web = step("web", "demand.WS.webOp", ("App", "appOp", 0.65), ("Dir", "dirOp", 0.17))
    first = step("phase1", "demand.App.appOp:phase1", ("DB", "dbOp", 1.4), replies=True)
    second = step("phase2", "demand.App.appOp:phase2", ("DB", "dbOp", 1.0))
    app = Entry(
        name="appOp",
        start="phase1",
        activities=(first, second),
        precedences=(Precedence(pre=("phase1",), post=("phase2",)),),
    )

    def single(name: str, activity: Activity) -> Entry:
        return Entry(name=name, start=activity.name, activities=(activity,))

    return Model(
        name="layered network",
        processors=(Processor(name="WSP", cores=2), Processor(name="AppP"), Processor(name="DBP")),
        tasks=(
            users([Call(task="WS", entry="webOp")], number, think),
            Task(name="WS", threads=int(v["pool.WS"]), processor="WSP", entries=(single("webOp", web),)),
            Task(name="App", threads=int(v["pool.App"]), processor="AppP", entries=(app,)),
            Task(name="Dir", processor="AppP", entries=(single("dirOp", step("dir", "demand.Dir.dirOp")),)),
            Task(name="DB", processor="DBP", entries=(single("dbOp", step("db", "demand.DB.dbOp")),)),
        ),
    )


def pools(values: dict[str, float] | None = None, *, number: int = 6, think: float = 0.2) -> Model:
    """Return two pools in a row, with some values of their demands: 4 threads on 2 cores, and 1."""
    v = {**TRUE_POOLS, **(values or {})}

    def serving(path: str, *calls: Call) -> Entry:
        work = Activity(name="work", demand=Exponential(v[path]), delay=NOTHING, calls=calls)
        return Entry(name="serve", start="work", activities=(work,))

    front = serving("demand.front.serve", Call(task="back", entry="serve"))
    return Model(
        name="two pools",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            users([Call(task="front", entry="serve")], number, think),
            Task(name="front", threads=4, processor="host", entries=(front,)),
            Task(name="back", entries=(serving("demand.back.serve"),)),
        ),
    )
