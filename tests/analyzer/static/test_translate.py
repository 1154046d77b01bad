"""Paths in, layered queueing network out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from source_outline import HEAD, OTHERS, analyse_files, endpoint_source

from analyzer.static import translate, translate_with_plan
from mup.errors import AnalysisError
from mup.lqn import Constant, Entry, Model, QueryRef, model_from_json, model_to_json
from mup.lqn.statistics import statistics

# The running example of Garbi's thesis (Figure 23): A is defined at line 1 and calls at lines 4 and 6.
THESIS = """class A(MS):
    pool_size = 5
    @EP("/epA/")
    def ep_a(self, comm): bfuture = comm.call("B", "/epB/", comm.params); \\
        bstr = bfuture.get(); \\
        dq = comm.query("db", "qry", "tr", {"_id": comm.params["word"]}); \\
        qstr = dq.get(); \\
        ans = bstr + "=>" + qstr[0]; \\
        comm.respond(ans)

class B(MS):
    pool_size = 2; \\
    replicas = 1
    @EP("/epB/")
    def ep_b(self, comm):
        hw = "hello" + "world"
        comm.respond(hw)
from mup import EP, MS
"""


def flow(entry: Entry) -> list[str]:
    """Return activities and arcs of an entry as text."""
    arcs = []
    for p in entry.precedences:
        signs = {"sequence": "", "and": "&", "or": "|"}
        arcs.append(f"{signs[p.join]}{','.join(p.pre)}>{signs[p.fork]}{','.join(p.post)}")
    return arcs


def test_thesis_running_example(tmp_path: Path) -> None:
    """Figure 23 becomes the model of Figure 24b: the activities have the thesis's names."""
    model = translate(analyse_files(tmp_path, app=THESIS), name="thesis")
    entry = model.task("A").entry("/epA/")
    assert flow(entry) == [
        "init_4>&cont_4,reg_4",
        "reg_4>comm_4",
        "&cont_4,comm_4>cont_5",
        "cont_5>&cont_6,reg_6",
        "reg_6>comm_6",
        "&cont_6,comm_6>comp_8",
        "comp_8>after_9",
    ]
    calls = {a.name: [(c.task, c.entry) for c in a.calls] for a in entry.activities if a.calls}
    assert calls == {"comm_4": [("Net", "exchange_4@A/epA/"), ("B", "/epB/")], "comm_6": [("db", "qry")]}
    assert [a.name for a in entry.activities if a.replies] == ["comp_8"]
    assert model.task("A").threads == 5
    assert model.task("Net").threads == math.inf
    assert [t.role for t in model.tasks] == ["service", "service", "network", "database"]
    second = model.task("B").entry("/epB/")
    assert [a.name for a in second.activities] == ["comp_16", "after_17"]


def test_nothing_is_calibrated(tmp_path: Path) -> None:
    """Translation invents no numbers: times and probabilities are unknown, not zero."""
    source = endpoint_source("if comm.params:\n    comm.call('B', '/b/').get()\ncomm.respond(1)")
    model = translate(analyse_files(tmp_path, app=source), name="x")
    times = {(a.kind, a.demand, a.delay) for _, _, a in model.walk()}
    assert {kind for kind, demand, delay in times if demand is not None or delay is not None} == {"choice"}
    forks = [p for t in model.tasks for e in t.entries for p in e.precedences if p.fork == "or"]
    assert [p.probabilities for p in forks] == [None]
    assert model_from_json(model_to_json(model)) == model


def test_paths_become_branches_of_a_choice(tmp_path: Path) -> None:
    """Several paths hang below a zero-time start; their activities carry the number of the path."""
    source = endpoint_source("if comm.params:\n    comm.call('B', '/b/').get()\ncomm.respond(1)")
    model = translate(analyse_files(tmp_path, app=source), name="x")
    entry = model.task("A").entry("/a/")
    assert entry.start == "start"
    assert flow(entry)[0] == "start>|comp_7#1,comp_7#2"
    start = entry.activity("start")
    assert (start.kind, start.demand, start.delay) == ("choice", Constant(0.0), Constant(0.0))
    assert [e.name for e in model.task("Net").entries] == ["exchange_8@A/a/#1"]


def test_equal_lines_get_numbers(tmp_path: Path) -> None:
    """Operations of one line, or of an unrolled loop, are told apart."""
    source = endpoint_source("for _ in range(2):\n    comm.call('B', '/b/').get()\ncomm.respond(1)")
    model = translate(analyse_files(tmp_path, app=source), name="x")
    names = [a.name for a in model.task("A").entry("/a/").activities]
    assert [n for n in names if n.startswith("reg")] == ["reg_8", "reg_8.2"]
    assert [e.name for e in model.task("Net").entries] == ["exchange_8@A/a/", "exchange_8.2@A/a/"]


def test_unjoined_call_is_detached(tmp_path: Path) -> None:
    """A call that is not waited for is a branch that may outlive its request."""
    source = endpoint_source("comm.call('B', '/b/')\nf = comm.call('B', '/c/')\nf.get()\ncomm.respond(1)")
    model = translate(analyse_files(tmp_path, app=source), name="x")
    detached = {a.name: a.detached for a in model.task("A").entry("/a/").activities if a.kind == "registry"}
    assert detached == {"reg_7": True, "reg_8": False}


def test_overlapping_calls_join_in_the_order_of_their_gets(tmp_path: Path) -> None:
    """Each join waits for the branch of its own call."""
    source = endpoint_source(
        "f = comm.call('B', '/b/')\ng = comm.call('B', '/c/')\ng.get()\nf.get()\ncomm.respond(1)"
    )
    entry = translate(analyse_files(tmp_path, app=source), name="x").task("A").entry("/a/")
    assert flow(entry) == [
        "init_6>&cont_7,reg_7",
        "reg_7>comm_7",
        "cont_7>&cont_8,reg_8",
        "reg_8>comm_8",
        "&cont_8,comm_8>cont_9",
        "&cont_9,comm_7>cont_10",
        "cont_10>after_11",
    ]


def test_plan_maps_operations_to_activities(tmp_path: Path) -> None:
    """The plan names one segment more than operations, and the activities of every call; the file keeps it."""
    source = endpoint_source(
        "comm.query('db', 'q', 'c', {}).get()\ncomm.call('B', '/b/').get()\ncomm.respond(1)"
    )
    model, plans = translate_with_plan(analyse_files(tmp_path, app=source), name="x")
    (plan,) = plans["A", "/a/"]
    assert len(plan.segments) == len(plan.operations) + 1
    assert plan.segments[0] == model.task("A").entry("/a/").start
    assert (plan.registry, plan.communication) == ({0: "reg_7", 2: "reg_8"}, {0: "comm_7", 2: "comm_8"})
    assert plan.exchange == {2: "exchange_8@A/a/"}
    (record,) = model.task("A").entry("/a/").paths
    assert record == plan.to_json()
    assert record["operations"][1] == {
        "op": "get", "target": "", "file": "app.py", "function": "A.a", "ordinal": 2, "line": 7, "of": 0
    }  # fmt: skip
    assert plan.describe() == "query db.q (7), get (7), call B/b/ (8), get (8), respond (9)"


def client_source() -> str:
    return (
        HEAD
        + OTHERS
        + """
class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("B", "/b/")
"""
    )


def test_client_becomes_the_reference_task(tmp_path: Path) -> None:
    """The chosen client generates the load; its think steps have their time, and use no processor."""
    model, plans = translate_with_plan(analyse_files(tmp_path, app=client_source()), name="x", client="User")
    (task,) = model.reference_tasks
    assert (task.name, task.threads, [e.name for e in task.entries]) == ("User", 1, ["scenario"])
    think = task.entries[0].activity("think_14")
    assert (think.kind, think.demand, think.delay) == ("think", Constant(0.0), Constant(0.1))
    (plan,) = plans["User", "scenario"]
    assert plan.think == {0: "think_14"}
    assert model.task("Net").entries[0].name == "exchange_15@User.scenario"


def test_unknown_client_is_an_error(tmp_path: Path) -> None:
    """A client class that is not there is named, with the closest one that is."""
    with pytest.raises(AnalysisError, match="did you mean 'User'"):
        translate(analyse_files(tmp_path, app=client_source()), name="x", client="Usr")


def test_database_with_the_name_of_a_service(tmp_path: Path) -> None:
    """Tasks need names of their own; a clash is one clear error."""
    source = endpoint_source("comm.query('B', 'q', 'c', {}).get()\ncomm.respond(1)")
    with pytest.raises(AnalysisError, match="'B' names two of"):
        translate(analyse_files(tmp_path, app=source), name="x")


def test_a_query_keeps_its_database(tmp_path: Path) -> None:
    """``shop.v2.find`` is the query ``find`` of database ``shop.v2`` if that is what was asked, else ``v2.find``."""
    source = endpoint_source("comm.query('shop', 'v2.find', 'c', {}).get()\ncomm.respond(1)")
    application = analyse_files(tmp_path, app=source)
    (path,) = application.endpoint("A/a/").paths
    assert path.operations[0].to == QueryRef("shop", "v2.find")
    tasks = {}
    for asked in (QueryRef("shop", "v2.find"), QueryRef("shop.v2", "find")):
        operations = (replace(path.operations[0], target=asked.label, to=asked), *path.operations[1:])
        services = tuple(
            replace(s, endpoints=(replace(s.endpoints[0], paths=(replace(path, operations=operations),)),))
            if s.name == "A"
            else s
            for s in application.services
        )
        model = translate(replace(application, services=services), name="x")
        (database,) = (t for t in model.tasks if t.role == "database")
        tasks[asked] = database.name, [e.name for e in database.entries]
        assert statistics(model).full.tasks == 3
    assert tasks == {QueryRef(*key): (key[0], [key[1]]) for key in (("shop", "v2.find"), ("shop.v2", "find"))}


def test_fingerprint_travels_with_the_entry(tmp_path: Path) -> None:
    """The model remembers which code its numbers belong to."""
    application = analyse_files(tmp_path, app=client_source())
    model: Model = translate(application, name="x", client="User")
    assert model.task("B").entry("/b/").fingerprint == application.endpoint("B/b/").fingerprint
    assert len(application.endpoint("B/b/").fingerprint) == 16
