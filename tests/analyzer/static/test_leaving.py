"""Loops that wait for one call after the other, and are left before all have been waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

from analyzer.static import translate
from analyzer.static.application import LEFT
from analyzer.static.leaving import is_begun_by_the_flow

BEGUN = "fs = [comm.call('B', '/b/') for w in comm.params]\n"
WHOLE = "fan-out[call:B/b/ get:0] join:0"
LEAVING = "fan-out[call:B/b/ get:0] loop[call:B/b/] join:0"

LEFT_EARLY = {
    "break": "for f in fs:\n    if f.get():\n        break\ncomm.respond(1)",
    "any": "comm.respond(any(f.get() for f in fs))",
    "all": "comm.respond(all(f.get() for f in fs))",
    "return": "for f in fs:\n    if not f.get():\n        comm.respond(0)\n        return\ncomm.respond(1)",
    "before the wait": "for f in fs:\n    if comm.params:\n        break\n    f.get()\ncomm.respond(1)",
    "else": "for f in fs:\n    if f.get():\n        break\nelse:\n    pass\ncomm.respond(1)",
    "failed": "for f in fs:\n    try:\n        f.get()\n    except CallError:\n        break\ncomm.respond(1)",
    "in a dict": "gs = {w: comm.call('B', '/b/') for w in comm.params}\nfor g in gs.values():\n    if g.get():\n"
    "        break\ncomm.respond(1)",
}


@pytest.mark.parametrize("name", LEFT_EARLY)
def test_what_is_not_waited_for_is_a_loop_beside_the_copies(tmp_path: Path, name: str) -> None:
    body = LEFT_EARLY[name]
    application = analyse_files(tmp_path, app=endpoint_source(("" if "gs = " in body else BEGUN) + body))
    assert codes(application) == []
    whole = f"{WHOLE} respond".replace("join", "early" if "gs = " in body else "join")
    assert set(outline(application)) <= {whole, f"{LEAVING} respond"}
    assert f"{LEAVING} respond" in outline(application)
    (path, *_) = [p for p in application.endpoint("A/a/").paths if p.operations[1].op == "loop"]
    fan_out, loop = path.operations[:2]
    assert (fan_out.target, loop.target) == ("flow", LEFT)
    assert is_begun_by_the_flow(loop, fan_out)
    assert not is_begun_by_the_flow(loop, path.operations[3])


def test_what_follows_has_its_place(tmp_path: Path) -> None:
    body = f"q = comm.query('db', 'q', 'c', {{}})\n{BEGUN}first = comm.call('B', '/c/')\nfor f in fs:\n"
    body += "    if not f.get():\n        again = comm.call('B', '/b/')\n        q.get()\n        comm.respond(0)\n"
    body += "        again.get()\n        first.get()\n        return\nfirst.get()\nq.get()\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body))
    assert codes(application) == []
    assert outline(application) == [
        "query:db.q fan-out[call:B/b/ get:0] call:B/c/ join:1 get:2 get:0 respond",
        "query:db.q fan-out[call:B/b/ get:0] loop[call:B/b/] call:B/c/ join:1 call:B/b/ get:0 respond get:5 get:3",
    ]
    translate(application, name="x")


REFUSED = {
    "waits for the others behind it": "for f in fs:\n    if f.get():\n        break\n[f.get() for f in fs]",
    "waits for them in the loop": "for f in fs:\n    if f.get():\n        [g.get() for g in fs]\n        break",
    "in another loop": "for w in comm.params:\n    gs = [comm.call('B', '/b/') for v in comm.params]\n    for g in gs:\n"
    "        if g.get():\n            break",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_refused(tmp_path: Path, name: str) -> None:
    application = analyse_files(tmp_path, app=endpoint_source(f"{BEGUN}{REFUSED[name]}\ncomm.respond(1)"))
    assert codes(application) == ["MUP040"]


def test_model_has_a_loop_beside_the_flow(tmp_path: Path) -> None:
    application = analyse_files(tmp_path, app=endpoint_source(BEGUN + LEFT_EARLY["return"]))
    model = translate(application, name="x")
    entry = model.task("A").entry("/a/")
    (loop,) = [arc for arc in entry.precedences if arc.fork == "loop"]
    detached = {activity.name for activity in entry.activities if activity.detached}
    assert loop.pre[0] in detached
    fans = [arc for arc in entry.precedences if arc.fork == "fan-out"]
    assert len(fans) == 2


LIMITED = """
async def limited(limit, jobs):
    gate = asyncio.Semaphore(limit)
    async def run(job):
        async with gate:
            return await job
    return await asyncio.gather(*(run(job) for job in jobs)OPTIONS)
"""


@pytest.mark.parametrize("options", ["", ", return_exceptions=True"])
def test_coroutines_that_wait_for_calls_already_begun(tmp_path: Path, options: str) -> None:
    body = "await limited(3, (comm.call('B', '/b/') for w in comm.params))\ncomm.respond(1)"
    module = f"import asyncio\n{LIMITED.replace('OPTIONS', options)}"
    application = analyse_files(tmp_path, app=endpoint_source(body, module=module, define="async def"))
    assert codes(application) == []
    join = "early:0" if options else "join:0"
    assert f"fan-out[call:B/b/ get:0] {join} respond" in outline(application)
    (path, *_) = application.endpoint("A/a/").paths
    assert path.operations[0].limit is None  # all calls are under way
