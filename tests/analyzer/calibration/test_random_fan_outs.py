"""Random endpoints with fan-outs: where the analysis accepts one, the log says how wide each fan-out was."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from walking_async import AsyncWorld, async_endpoint, async_world

from analyzer.calibration.matching import Match, OperationKey, match
from analyzer.static.application import LEFT
from analyzer.static.application import Path as Way
from analyzer.static.rounds_in_logs import also_one_by_one

HELPERS = """
async def h0(comm):
    await asyncio.sleep(0.001 * comm.params["pause"]())
    await comm.call("B", "/b/")
async def h1(comm):
    if comm.params["coin"]():
        await comm.query("db", "q", "c", {})
    else:
        await comm.call("B", "/c/")
    await asyncio.sleep(0.001 * comm.params["pause"]())
    if comm.params["coin"]():
        await comm.query("db", "d", "c", {})
async def h2(comm):
    await asyncio.gather(comm.call("B", "/b/"), comm.call("B", "/c/"))
async def h3(comm):
    if comm.params["coin"]():
        await h0(comm)
    await comm.query("db", "z", "c", {})
async def ask(comm, x):
    await comm.call("B", "/b/")
    await asyncio.sleep(0.001 * comm.params["pause"]())
async def each(comm):
    xs = comm.params["items"]()
    fs = [comm.call("B", "/b/") for x in xs]
    for f in fs:
        await f
"""
FAN_OUTS = (
    ("await asyncio.gather(*[HELPER for x in xs])",),
    ("await asyncio.gather(*(HELPER for x in xs), return_exceptions=True)",),
    (
        "ts = [asyncio.create_task(HELPER) for x in xs]",
        "await comm.query('db', 'y', 'c', {})",
        "for t in ts:",
        "    await t",
    ),
    ("fs = [comm.call('B', '/b/') for x in xs]", "for f in fs:", "    await f"),
    (
        "fs = []",
        "for x in xs:",
        "    fs.append((comm.call('B', '/b/'), comm.call('B', '/c/')))",
        "for f, g in fs:",
        "    await f",
        "    await g",
    ),
    (
        "ts = [asyncio.create_task(ask(comm, x)) for x in xs]",
        "if ts: await asyncio.wait(ts, return_when=asyncio.FIRST_COMPLETED)",
    ),
    ("async with asyncio.TaskGroup() as g:", "    for x in xs:", "        g.create_task(HELPER)"),
    (
        "fs = [comm.call('B', '/b/') for x in xs]",
        "for f in fs:",
        "    await f",
        "    if comm.params['coin']():",
        "        await HELPER",
        "        break",
    ),
)
PROGRAMS, CHUNK, REQUESTS = 200, 50, 20


def statements(rng: random.Random, depth: int = 0) -> list[str]:
    """Return a statement that communicates, as lines of source."""
    kind = rng.choice(("fan-out", "fan-out", "fan-out", "each", "helper", "if", "for"))
    helper = f"h{rng.randrange(4)}(comm)"
    inner = [f"    {line}" for line in statements(rng, depth + 1)] if depth < 2 else []
    if kind == "if" and inner:
        other = [f"    {line}" for line in statements(rng, depth + 1)]
        return ["if comm.params['coin']():", *inner, "else:", *other]
    if kind == "for" and inner:
        return ["for y in comm.params['some']():", *inner]
    if kind == "each":
        return ["await each(comm)"]
    if kind == "helper":
        return [f"await {helper}"]
    lines = rng.choice(FAN_OUTS)
    return ["xs = comm.params['items']()", *(line.replace("HELPER", helper) for line in lines)]


FLOWS = (
    ("fs = [start(comm) for x in xs]", "for f in fs:", "    await f"),
    ("fs = {x // 2: start(comm) for x in xs}", "for f in fs.values():", "    await f"),
    (
        "fs = [start(comm) for x in xs]",
        "for f in fs:",
        "    try:",
        "        await f",
        "    except CallError:",
        "        pass",
    ),
    (
        "try:",
        "    fs = [start(comm) for x in xs]",
        "    for f in fs:",
        "        await f",
        "except CallError:",
        "    pass",
    ),
    (
        "fs = [start(comm) for x in xs]",
        "for f in fs:",
        "    await f",
        "    if comm.params['coin']():",
        "        await start(comm)",
        "        break",
    ),
)
GATHERS = (
    ("await asyncio.gather(*[once(comm) for x in xs])",),
    ("await asyncio.gather(*[again(comm) for x in xs])",),
    ("await asyncio.gather(*[once(comm) for x in xs], return_exceptions=True)",),
    ("try:", "    await asyncio.gather(*(once(comm) for x in xs))", "except CallError:", "    pass"),
    ("ts = [asyncio.create_task(again(comm)) for x in xs]", "for t in ts:", "    await t"),
    (
        "ts = [asyncio.create_task(once(comm)) for x in xs]",
        "await asyncio.gather(*ts, return_exceptions=True)",
    ),
    (
        "async with asyncio.TaskGroup() as group:",
        "    for x in xs:",
        "        group.create_task(again(comm))",
    ),
)
ONE_BY_ONE = (
    "await start(comm)",
    "for z in comm.params['some'](): await start(comm)",
    "for z in comm.params['some'](): await once(comm)",
    "await again(comm)",
)
START = """
def start(comm):
    return comm.call("B", "/b/")
async def once(comm):
    await start(comm)
async def again(comm):
    await start(comm)
    await asyncio.sleep(0.001 * comm.params["pause"]())
    if comm.params["coin"]():
        await start(comm)
"""


def rounds(rng: random.Random, depth: int = 0) -> list[str]:
    """Return a statement that makes the same call as all others, as lines of source."""
    kind = rng.choice(("fan-out", "fan-out", "one", "if", "for", "for"))
    inner = [f"    {line}" for line in rounds(rng, depth + 1)] if depth < 2 else []
    if kind == "if" and inner:
        return ["if comm.params['coin']():", *inner, "else:", f"    {rng.choice(ONE_BY_ONE)}"]
    if kind == "for" and inner:
        leave = rng.choice(([], [["break"]], [["comm.respond(0)", "return"]]))
        ends = [f"        {line}" for lines in leave for line in lines]
        ends = ["    if comm.params['coin'](0.2):", *ends] if ends else []
        return ["for y in comm.params['some']():", *inner, *ends]
    if kind == "one":
        return [rng.choice(ONE_BY_ONE)]
    return ["xs = comm.params['items']()", *rng.choice(rng.choice((FLOWS, GATHERS)))]


def fan_outs(path: Way, place: tuple[int, ...] = ()) -> dict[OperationKey, OperationKey]:
    """Return where the fan-outs of a path are, and the loops of what they do not wait for."""
    found: dict[OperationKey, OperationKey] = {}
    for index, operation in enumerate(path.operations):
        if operation.op == "fan-out":
            found[place, index] = (place, index)
        elif operation.target == LEFT:
            found[place, index] = (place, index - 1)
        for number, body in enumerate(operation.bodies):
            found |= fan_outs(body, (*place, index, number))
    return found


def widths(app: AsyncWorld, rng: random.Random) -> list[list[int]]:
    """Run the endpoint, and return how wide the fan-outs of each good execution were, but for empty ones."""
    found: list[list[int]] = []

    def items() -> range:
        width = rng.randrange(5)
        found[-1].append(width)
        return range(width)

    for _ in range(REQUESTS):
        found.append([])
        app.request(items=items, some=lambda: range(rng.randrange(4)), pause=lambda: rng.randrange(9))
    good = [one for one, execution in zip(found, app.executions, strict=True) if not execution.failed]
    return sorted(sorted(width for width in one if width) for one in good)


def counted(app: AsyncWorld) -> list[list[int]]:
    """Return what a log says of that."""
    places = [fan_outs(path) for path in app.application.endpoint("A/a/").paths]
    found = match(app.translated()[1], app.good(), waits=True)
    assert not found.unmatched
    return [
        sorted(_widths_of(one, places[number])) for number, taken in enumerate(found.taken) for one in taken
    ]


def _widths_of(match_: Match, places: dict[OperationKey, OperationKey]) -> list[int]:
    """Return how wide the fan-outs of an execution were, with the calls that were not waited for."""
    left = {places[e.loop]: len(e.bodies) for e in match_.shape.loops if places.get(e.loop, e.loop) != e.loop}
    # What is left has been begun once, for it is in no loop.
    found = [len(e.bodies) + left.get(e.loop, 0) for e in match_.shape.loops if places.get(e.loop) == e.loop]
    return [width for width in found if width]


def is_accepted(app: AsyncWorld) -> bool:
    return not any(d.severity == "error" for d in app.application.diagnostics)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(PROGRAMS // CHUNK))
def test_widths_of_random_endpoints(tmp_path: Path, chunk: int) -> None:
    followed = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = random.Random(seed)
        lines = [line for _ in range(rng.choice((1, 1, 2, 3))) for line in statements(rng)]
        body = "\n".join(f"{'        '}{line}" for line in [*lines, "comm.respond(1)"])
        folder = tmp_path / str(seed)
        folder.mkdir()
        app = async_world(folder, async_endpoint(body, helpers=HELPERS), seed=seed)
        try:
            if is_accepted(app):
                followed += any(map(fan_outs, app.application.endpoint("A/a/").paths))
                # Of one copy alone, other code may have done as much.
                least = 2 if also_one_by_one(app.application.endpoint("A/a/").paths) else 1
                wide = [
                    sorted([width for width in one if width >= least] for one in some)
                    for some in (widths(app, rng), counted(app))
                ]
                assert wide[0] == wide[1], (seed, body)
        finally:
            app.close()
    assert followed > 5


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(2))
def test_widths_where_other_code_makes_the_same_call(tmp_path: Path, chunk: int) -> None:
    """Of one copy alone, other code may have done as much."""
    followed = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = random.Random(seed)
        lines = [line for _ in range(rng.choice((1, 2, 3))) for line in rounds(rng)]
        body = "\n".join(f"{'        '}{line}" for line in [*lines, "comm.respond(1)"])
        folder = tmp_path / str(seed)
        folder.mkdir()
        app = async_world(folder, async_endpoint(body, helpers=START), seed=seed, fail=0.05)
        try:
            if is_accepted(app):
                followed += any(map(fan_outs, app.application.endpoint("A/a/").paths))
                wanted = widths(app, rng)
                wide = [
                    [[width for width in one if width > 1] for one in some] for some in (counted(app), wanted)
                ]
                assert sorted(wide[0]) == sorted(wide[1]), (seed, body)
        finally:
            app.close()
    assert followed > 9
