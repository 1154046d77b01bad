"""Every element survives its file, and every rule of the schema is enforced with a path."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_strategies import models

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Forward,
    Geometric,
    Migration,
    Model,
    Precedence,
    Processor,
    Task,
    Turns,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)
from mup.lqn.edits import with_pool
from mup.lqn.json_reader import Reader
from mup.lqn.model import LOCK

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "model-schema.md"


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(models())
def test_every_model_survives_its_file(model: Model) -> None:
    """load(save(model)) == model over all elements, and the text is the same the second time."""
    text = json.dumps(model_to_json(model), allow_nan=False)
    again = model_from_json(json.loads(text))
    assert again == model
    assert json.dumps(model_to_json(again)) == text


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 2.5, 1e300, "", "x", "\ud800", [], [[]], [{}], {}, {"family": []}]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever replaces a value anywhere in a file, reading it ends in a model or in one ModelError."""
    document = copy.deepcopy(EVERYTHING)
    place: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], dict | list) and place[key]) or data.draw(st.integers(0, 9)) == 0:
            break
        place = place[key]
    place[key] = data.draw(JUNK)
    with contextlib.suppress(ModelError):
        model = model_from_json(document)
        assert model_from_json(json.loads(json.dumps(model_to_json(model)))) == model


def _work(name: str, **fields: Any) -> Activity:
    return Activity(name=name, **{"demand": Exponential(0.1), "delay": Constant(0), **fields})


def _everything() -> Model:
    """A small model with every new element in a known place."""
    cycle = Entry(
        name="cycle",
        start="go",
        arrivals=Exponential(1.0),
        activities=(
            _work(
                "go",
                calls=(
                    Call(task="A", entry="/a/"),
                    Call(task="lock", entry="take", kind="send"),
                    Call(task="lock", entry="give", kind="send"),
                ),
            ),
        ),
    )
    a = Entry(
        name="/a/", start="s", priority=2, waits=True, forwards=(Forward(task="B", entry="b", probability=0.5),),
        activities=(
            _work("s"), _work("body"), _work("x"), _work("y"), _work("j"), _work("late"),
            _work("r", replies=True, calls=(Call(task="B", entry="b", kind="releasing"),)),
            _work("l", interleaved=True, calls=(Call(task="B", entry="b", count=Geometric(2.5)),)),
            _work("z"),
        ),
        precedences=(
            Precedence(pre=("s",), post=("body", "r"), fork="loop", counts=(Geometric(3.0),)),
            Precedence(pre=("body",), post=("x", "y"), fork="and"),
            Precedence(pre=("x", "y"), post=("j",), join="and"),
            Precedence(pre=("r",), post=("l", "z"), fork="and"),
            Precedence(pre=("l", "z"), post=("late",), join="and", quorum=1),
        ),
    )  # fmt: skip
    b = Entry(name="b", start="w", activities=(_work("w"),))
    take = Entry(name="take", start="w", activities=(_work("w"),), token="acquire")
    give = Entry(name="give", start="w", activities=(_work("w"),), token="release")
    shares = tuple(Entry(name=t, start="w", activities=(_work("w"),), token=t) for t in LOCK)
    return Model(
        name="everything",
        processors=(
            Processor(name="host", cores=4),
            Processor(name="gil", parent="host"),
            Processor(
                name="numa",
                cores=4,
                discipline="cores",
                migration=Migration(wake=0.5, balance=2.0),
                turns=Turns(quantum=0.002, preempt=0.8),
            ),
            Processor(name="fifo", discipline="fcfs"),
        ),
        tasks=(
            Task(name="U", role="reference", threads=math.inf, entries=(cycle,)),
            Task(name="A", threads=3, processor="gil", entries=(a,), admission="hol", priority=1),
            Task(name="B", threads=2, replicas=2, processor="numa", entries=(b,)),
            Task(name="lock", processor="fifo", entries=(take, give)),
            Task(name="shared", threads=4, processor="fifo", entries=shares),
        ),
    )


EVERYTHING = model_to_json(_everything())


def _entry(d: dict[str, Any]) -> Any:
    return d["tasks"][1]["entries"][0]


def _act(d: dict[str, Any], index: int) -> Any:
    return _entry(d)["activities"][index]


def _arc(d: dict[str, Any], index: int) -> Any:
    return _entry(d)["precedences"][index]


def _processor(d: dict[str, Any], index: int) -> Any:
    return d["processors"][index]


A = "tasks['A'].entries['/a/']"
EMPIRICAL = {"family": "empirical", "values": [1, 2.5]}
BREAKS: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("migration without cores", lambda d: _processor(d, 0).update(migration={}), "processors['host'].migration: only"),
    ("migration range", lambda d: _processor(d, 2)["migration"].update(wake=1.5), "processors['numa'].migration.wake"),
    ("migration sign", lambda d: _processor(d, 2)["migration"].update(balance=-1), "migration.balance"),
    ("migration field", lambda d: _processor(d, 2)["migration"].update(push=1), "unknown field 'push'"),
    ("turns without cores", lambda d: _processor(d, 0).update(turns={"quantum": 1}), "processors['host'].turns: only"),
    ("turns without a quantum", lambda d: _processor(d, 2).update(turns={}), "quantum"),
    ("quantum", lambda d: _processor(d, 2)["turns"].update(quantum=0), "processors['numa'].turns.quantum"),
    ("preemption", lambda d: _processor(d, 2)["turns"].update(preempt=1.1), "processors['numa'].turns.preempt"),
    ("turns field", lambda d: _processor(d, 2)["turns"].update(slice=1), "unknown field 'slice'"),
    ("turns kind", lambda d: _processor(d, 2).update(turns=0.002), "must be an object with quantum and preempt"),
    ("infinite cores", lambda d: _processor(d, 2).update(cores="inf"), "processors['numa'].cores"),
    ("parent", lambda d: _processor(d, 1).update(parent="hots"), "processors['gil'].parent: no processor is named"),
    ("parent kind", lambda d: _processor(d, 1).update(parent="fifo"), "'fifo' is 'fcfs'"),
    ("parent cycle", lambda d: _processor(d, 0).update(parent="gil"), "part of itself: host in gil in host"),
    ("child kind", lambda d: _processor(d, 1).update(discipline="hol"), "finitely many cores, got 'hol'"),
    ("child cores", lambda d: _processor(d, 1).update(cores="inf"), "processors['gil'].parent"),
    ("admission", lambda d: d["tasks"][1].update(admission="lifo"), "tasks['A'].admission: must be one of fifo"),
    ("task priority", lambda d: d["tasks"][1].update(priority=1.5), "tasks['A'].priority: must be a whole"),
    ("entry priority", lambda d: _entry(d).update(priority="high"), f"{A}.priority: must be a whole"),
    ("waits", lambda d: _entry(d).update(waits="no"), f"{A}.waits: must be true or false"),
    ("token", lambda d: _entry(d).update(token="steal"), f"{A}.token: must be one of"),
    ("token of one entry", lambda d: _entry(d).update(token="acquire"), "has the token 'release'"),
    ("no acquire", lambda d: d["tasks"][3]["entries"][0].update(token="release"), "has the token 'acquire'"),
    ("no token", lambda d: d["tasks"][3]["entries"].append({**_leaf("more")}), "entries['more'].token: every entry"),
    ("token threads", lambda d: d["tasks"][3].update(threads="inf"), "tasks['lock'].threads: a semaphore"),
    ("token replicas", lambda d: d["tasks"][3].update(replicas=2), "tasks['lock'].replicas: a semaphore"),
    ("lock of one entry", lambda d: _entry(d).update(token="read-lock"), "this lock has the token 'write-unlock'"),
    ("lock half", lambda d: d["tasks"][4]["entries"].pop(), "no entry of this lock has the token 'write-unlock'"),
    ("lock mixed", lambda d: d["tasks"][4]["entries"].append(_leaf("v") | {"token": "release"}),
     "tasks['shared'].entries['v'].token: every entry of a lock locks or unlocks"),
    ("lock threads", lambda d: d["tasks"][4].update(threads="inf"), "tasks['shared'].threads: a lock has finitely"),
    ("lock replicas", lambda d: d["tasks"][4].update(replicas=2), "tasks['shared'].replicas: a lock has no replicas"),
    ("lock order", lambda d: d["tasks"][4].update(admission="hol"), "tasks['shared'].admission: a lock has an order"),
    ("lock call", lambda d: d["tasks"][4]["entries"][0]["activities"][0].update(
        calls=[{"task": "B", "entry": "b", "kind": "releasing"}]), "an entry of a lock has no thread to give back"),
    ("forward target", lambda d: _entry(d)["forwards"][0].update(entry="c"), f"{A}.forwards[0]: task 'B' has no"),
    ("forward to clients", lambda d: _entry(d)["forwards"][0].update(task="U", entry="cycle"), "forwards[0]: 'U' is"),
    ("forward odds", lambda d: _entry(d)["forwards"][0].update(probability=1.5), "forwards[0].probability"),
    ("forward sum", lambda d: _entry(d)["forwards"].append(_entry(d)["forwards"][0] | {"probability": 0.7}), "sum to 1.2"),
    ("forward of clients", lambda d: d["tasks"][0]["entries"][0].update(forwards=[{"task": "B", "entry": "b"}]),
     "tasks['U'].entries['cycle'].forwards: a reference task"),
    ("forward cycle", lambda d: _leaf_of(d, "B").update(forwards=[{"task": "A", "entry": "/a/"}]), "form a cycle"),
    ("arrivals at 0", lambda d: _entry(d).update(arrivals={"family": "constant", "mean": 0}), f"{A}.arrivals.mean"),
    ("arrivals and clients", lambda d: d["tasks"][0].update(threads=5), "tasks['U'].threads: a reference task with"),
    ("arrivals and think", lambda d: d["tasks"][0].update(think={"family": "constant", "mean": 1}), "tasks['U'].think"),
    ("no arrivals", lambda d: d["tasks"][0]["entries"][0].pop("arrivals"), "tasks['U'].threads: clients must be"),
    ("count part", lambda d: _call(d).update(count=2.5), "activities['l'].calls[0].count: a count is a whole"),
    ("count sign", lambda d: _call(d).update(count=-1), "activities['l'].calls[0].count.mean"),
    ("count values", lambda d: _call(d).update(count=EMPIRICAL), "a count is a whole number, got 2.5"),
    ("count family", lambda d: _call(d).update(count={"family": "exponential", "mean": 1}), "calls[0].count.family"),
    ("call kind", lambda d: _call(d).update(kind="maybe"), "calls[0].kind: must be one of synchronous"),
    ("geometric time", lambda d: _act(d, 0).update(demand={"family": "geometric", "mean": 1}), "activities['s'].demand.family"),
    ("interleaved", lambda d: _act(d, 7)["calls"].append({"task": "B", "entry": "b", "count": 2}), "['l'].interleaved"),
    ("releasing branch", lambda d: _act(d, 8).update(calls=[{"task": "B", "entry": "b", "kind": "releasing"}]),
     "activities['z'].calls[0].kind: an auxiliary branch"),
    ("releasing clients", lambda d: d["tasks"][0]["entries"][0]["activities"][0]["calls"][0].update(kind="releasing"),
     "calls[0].kind: a reference task has no thread"),
    ("loop counts", lambda d: _arc(d, 0).update(counts=[]), f"{A}.precedences[0].counts: a loop has one count"),
    ("loop too many", lambda d: _arc(d, 0).update(counts=[1, 2, 3]), "3 counts for 2 in 'post'"),
    ("loop fraction", lambda d: _arc(d, 0).update(counts=[1.5]), "precedences[0].counts[0]: a count is a whole"),
    ("counts of an and", lambda d: _arc(d, 1).update(counts=[1]), "only a 'loop' has counts"),
    ("join a loop", lambda d: _arc(d, 2).update(join="loop"), "precedences[2].join: must be one of"),
    ("quorum all", lambda d: _arc(d, 4).update(quorum=2), "precedences[4].quorum: must be a whole number from 1 to 1"),
    ("quorum none", lambda d: _arc(d, 4).update(quorum=0), "got 0"),
    ("quorum of a fork", lambda d: _arc(d, 3).update(quorum=1), "only an 'and' join has a quorum"),
    ("quorum in a loop", lambda d: _arc(d, 2).update(quorum=1), "precedences[2]: a quorum join cannot be repeated"),
    ("reply in a loop", lambda d: _act(d, 4).update(replies=True), "activities['j'].replies: a reply inside a loop"),
    ("body leaves", lambda d: _arc(d, 4).update(pre=["l", "z", "j"]), "precedences[4]: the loop body that starts with 'body'"),
    ("join not awaited", lambda d: (_arc(d, 2).update(pre=["x", "z"]), _arc(d, 4).update(pre=["l", "y"])), "outside it"),
    ("second reply", lambda d: _act(d, 5).update(replies=True), "activities['late'].replies: a reply was already sent"),
    ("client replies", lambda d: d["tasks"][0]["entries"][0]["activities"][0].update(replies=True), "no caller to reply"),
    ("control character", lambda d: d["tasks"][2].update(name="B\x00"), "contains control characters: 'B\\x00'"),
    ("mean of others", lambda d: _act(d, 0).update(demand={"family": "uniform", "low": 0, "high": 1, "mean": 3}),
     "activities['s'].demand.mean: 3 is not the mean"),
    ("overflow", lambda d: _act(d, 0).update(demand={"family": "empirical", "values": [1e308] * 3}), "too large"),
]  # fmt: skip


def _leaf(name: str) -> dict[str, Any]:
    return {"name": name, "start": "w", "activities": [{"name": "w"}]}


def _leaf_of(d: dict[str, Any], name: str) -> Any:
    return next(t for t in d["tasks"] if t["name"] == name)["entries"][0]


def _call(d: dict[str, Any]) -> Any:
    return _act(d, 7)["calls"][0]


@pytest.mark.parametrize(("change", "message"), [pytest.param(c, m, id=n) for n, c, m in BREAKS])
def test_broken_rules_name_the_element(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    """Every rule of the elements is reported with the path of what breaks it."""
    data = copy.deepcopy(EVERYTHING)
    model_from_json(data)
    change(data)
    with pytest.raises(ModelError) as caught:
        model_from_json(data)
    assert message in str(caught.value)


def test_problems_of_elements_and_between_them_are_listed_together() -> None:
    """A number out of range does not hide that a rule is broken elsewhere."""
    data = copy.deepcopy(EVERYTHING)
    data["tasks"][1]["threads"] = 0
    data["tasks"][2]["processor"] = "nuna"
    _act(data, 0)["demand"] = {"family": "gamma", "mean": 1, "scv": 0}
    _arc(data, 4)["quorum"] = 9
    with pytest.raises(ModelError) as caught:
        model_from_json(data)
    message = str(caught.value)
    assert "4 problems" in message
    for part in ("tasks['A'].threads", "did you mean 'numa'", "demand.scv", "precedences[4].quorum"):
        assert part in message


def _with_arcs(names: Iterable[str], *arcs: Precedence, replies: str = "") -> Model:
    entry = Entry(
        name="e",
        start="a",
        activities=tuple(_work(n, replies=n in replies) for n in names),
        precedences=arcs,
    )
    return Model(name="m", tasks=(Task(name="T", entries=(entry,)),))


def _p(pre: str, post: str, **fields: Any) -> Precedence:
    return Precedence(pre=tuple(pre), post=tuple(post), **fields)


def test_loops_hold_whole_forks_and_other_loops() -> None:
    """A body may fork, join, choose and repeat, as long as it ends in itself."""
    count = (Constant(2),)
    model = _with_arcs(
        "abcdefghi",
        _p("a", "bi", fork="loop", counts=count),
        _p("b", "cd", fork="and"),
        _p("d", "e", fork="loop", counts=(Geometric(1.0),)),
        _p("c", "fg", fork="or", probabilities=(0.5, 0.5)),
        _p("fg", "h", join="or"),
    )
    loop = model.tasks[0].entries[0].precedences[0]
    assert (loop.bodies, loop.continuation) == (("b",), "i")


def test_join_the_body_does_not_wait_for_cannot_be_repeated() -> None:
    """Branches that outlive their round would be joined with those of the next one."""
    with pytest.raises(ModelError, match="does not wait for this join"):
        _with_arcs(
            "abcdefg",
            _p("a", "b", fork="loop", counts=(Constant(2),)),
            _p("b", "cd", fork="and"),
            _p("d", "ef", fork="and"),
            _p("ef", "g", join="and"),
        )


@pytest.mark.parametrize(
    ("arcs", "replies", "message"),
    [
        ((_p("a", "b"),), "ab", "already sent"),
        ((_p("a", "bc", fork="and"),), "bc", "'b' and 'c' both reply"),
        ((_p("a", "bc", fork="or"),), "bc", ""),
        ((_p("a", "bc", fork="or"),), "ac", "already sent"),
        ((_p("a", "bc", fork="or"), _p("bc", "d", join="or")), "bcd", "already sent"),
        ((_p("a", "bc", fork="or"), _p("bc", "d", join="or")), "bd", ""),
        ((_p("a", "bc", fork="and"), _p("bc", "d", join="and")), "cd", "already sent"),
        ((_p("a", "bc", fork="and"), _p("bc", "d", join="and", quorum=1)), "cd", ""),
        ((_p("a", "bc", fork="and"), _p("bc", "d", join="and")), "d", ""),
    ],
)
def test_only_certain_second_replies_are_refused(
    arcs: tuple[Precedence, ...], replies: str, message: str
) -> None:
    """Two replies are refused if a request that takes the path is sure to send both."""
    names = sorted({name for p in arcs for name in (*p.pre, *p.post)})
    if not message:
        assert _with_arcs(names, *arcs, replies=replies).tasks
        return
    with pytest.raises(ModelError, match=message):
        _with_arcs(names, *arcs, replies=replies)


def test_a_cycle_with_a_send_is_allowed() -> None:
    """No request waits around it, so nothing can deadlock; a cycle of releasing calls never ends."""

    def task(name: str, other: str, kind: Any) -> Task:
        call = Call(task=other, entry="e", kind=kind)
        return Task(name=name, entries=(Entry(name="e", start="w", activities=(_work("w", calls=(call,)),)),))

    assert Model(name="ring", tasks=(task("A", "B", "synchronous"), task("B", "A", "send")))
    with pytest.raises(ModelError, match=r"A\.e -> B\.e -> A\.e"):
        Model(name="ring", tasks=(task("A", "B", "releasing"), task("B", "A", "synchronous")))


def test_examples_of_the_reference_are_elements() -> None:
    """Every element has an example in docs/reference/model-schema.md, and each is read without a problem."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    found = set()
    for section in sections[:-1]:
        heading = section.split("\n", 1)[0]
        for block in section.split("```json\n")[1:]:
            reader = Reader()
            kind = "processor" if heading == "Migration" else heading.lower()
            assert getattr(reader, kind)(json.loads(block.split("```")[0]), heading)
            assert not reader.problems
            found.add(heading)
    assert found == {
        "Uncertainty",
        "Processor",
        "Migration",
        "Task",
        "Entry",
        "Forward",
        "Activity",
        "Call",
        "Precedence",
    }


def test_a_plain_number_is_a_constant_count() -> None:
    """Counts may be written by hand as numbers, and are written as distributions."""
    data = copy.deepcopy(EVERYTHING)
    _act(data, 7)["interleaved"] = False
    _call(data)["count"] = 3
    _arc(data, 0)["counts"] = [4]
    model = model_from_json(data)
    entry = model.task("A").entries[0]
    assert entry.activity("l").calls[0].count == Constant(3)
    assert entry.precedences[0].counts == (Constant(4),)
    assert _act(model_to_json(model), 7)["calls"][0]["count"] == {"family": "constant", "mean": 3}


def test_unknown_counts_stay_unknown(tmp_path: Path) -> None:
    """A count that was never measured is null in the file, and no count at all is once."""
    data = copy.deepcopy(EVERYTHING)
    _act(data, 7)["calls"][0]["count"] = None
    _arc(data, 0)["counts"] = [None]
    model = model_from_json(data)
    save_model(model, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert again == model == with_pool(model, "A", 3)
    assert again.task("A").entries[0].activity("l").calls[0].count is None
    assert again.task("A").entries[0].activity("r").calls[0].count == Constant(1)
