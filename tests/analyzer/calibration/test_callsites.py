"""Endpoints that behave differently for different callers get variants, and only those."""

from __future__ import annotations

import random
import textwrap
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from walking import World, world

from analyzer.calibration.callsites import (
    CallingSite,
    Variant,
    calling_sites,
    differs,
    split,
    variant_name,
    variants,
    with_frequencies,
)
from analyzer.calibration.executions import collect
from analyzer.calibration.matching import Matched, match
from analyzer.static import PathPlan, analyse_project, translate_with_plan
from mup.events.reader import read_log
from mup.lqn import Constant, Model, entry_label, model_from_json, model_to_json
from mup.lqn.visits import EntryKey, entry_rates
from mup.project import Project, ServiceConfig
from mup.runtime.deployment.launcher import Deployment

SHOP = """
from mup import EP, MS

class A(MS):
    @EP("/ask/")
    def ask(self, comm):
        comm.respond(comm.call("B", "/b/", {"often": comm.params["often"]}).get())

    @EP("/twice/")
    def twice(self, comm):
        f = comm.call("B", "/b/", {"often": 0})
        comm.params["work"](50)
        comm.respond([comm.call("B", "/b/", {"often": 1}).get(), f.get()])

    @EP("/reply/")
    def reply(self, comm):
        if comm.params["coin"]():
            comm.call("B", "/b/", {"often": 1}).get()
            comm.call("B", "/c/").get()
        else:
            comm.call("B", "/b/", {"often": 0}).get()
        comm.respond(1)

class M(MS):
    @EP("/one/")
    def one(self, comm):
        comm.respond(comm.call("A", "/ask/", {"often": 1}).get())

    @EP("/none/")
    def none(self, comm):
        comm.respond(comm.call("A", "/ask/", {"often": 0}).get())

class B(MS):
    @EP("/b/")
    def b(self, comm):
        if comm.params["coin"](comm.params["often"]):
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)

    @EP("/c/")
    def c(self, comm):
        comm.respond(1)

    @EP("/many/")
    def many(self, comm):
        for w in range(comm.params["size"]):
            comm.query("db", "q", "c", {}).get()
        comm.respond(1)
"""


def matched_of(app: World) -> dict[str, Matched]:
    _, plans = app.translated()
    return {label: match(found, app.of(label)) for label, found in plans.items()}


def translated(app: World) -> tuple[Model, dict[EntryKey, list[PathPlan]]]:
    return translate_with_plan(app.application, name="x")


def with_load(app: World, matched: Mapping[str, Matched], *labels: str) -> tuple[Model, Model]:
    """Return the model with measured frequencies, without and with variants; requests arrive at the labels."""
    model, plans = translated(app)
    for task in model.tasks:
        entries = []
        for entry in task.entries:
            label = entry_label(task.name, entry.name)
            own = plans.get((task.name, entry.name), ())
            known = with_frequencies(entry, own, matched[label].taken) if own else entry
            entries.append(replace(known, arrivals=Constant(1.0) if label in labels else None))
        model = model.with_task(replace(task, entries=tuple(entries)))
    return model, split(model, plans, variants(matched))


def queries(model: Model) -> dict[EntryKey, float]:
    """Return how often a request at each source leads to a query."""
    return {source: rates.get(("db", "q"), 0.0) for source, rates in entry_rates(model).items()}


def test_two_callers_of_one_endpoint(tmp_path: Path) -> None:
    """One caller's requests always query, the other's never do: the split model says so, the plain one cannot."""
    app = world(tmp_path, SHOP)
    for _ in range(40):
        app.request("A/twice/")
    matched = matched_of(app)
    plain, model = with_load(app, matched, "A/twice/")
    assert queries(plain) == pytest.approx({("A", "/twice/"): 1})
    assert queries(model) == pytest.approx({("A", "/twice/"): 1})
    names = [e.name for e in model.task("B").entries]
    assert names == ["/b/", "/b/@2", "/c/", "/many/"]
    calls = {c.entry for a in model.task("A").entry("/twice/").activities for c in a.calls if c.task == "B"}
    assert calls == {"/b/", "/b/@2"}
    odds = [p.probabilities for e in model.task("B").entries[:2] for p in e.precedences if p.fork == "or"]
    assert set(odds) == {(0.0, 1.0), (1.0, 0.0)}
    assert model_from_json(model_to_json(model)) == model


def test_table_of_calling_sites(tmp_path: Path) -> None:
    """Sites are told apart by the operation, also where the reply is picked up late; strangers have none."""
    app = world(tmp_path, SHOP)
    for _ in range(3):
        app.request("A/twice/")
    app.request("B/b/", often=0)
    _, plans = app.translated()
    querying = next(n for n, plan in enumerate(plans["B/b/"]) if len(plan.operations) > 1)
    table = calling_sites(matched_of(app))["B/b/"]
    first, second = CallingSite("A/twice/", 1, 0, ((), 0)), CallingSite("A/twice/", 1, 0, ((), 1))
    assert table == {
        first: {(1 - querying, ()): 3},
        second: {(querying, ()): 3},
        None: {(1 - querying, ()): 1},
    }


def test_what_lies_between_is_split_too(tmp_path: Path) -> None:
    """The path of B depends on who called A: A itself always does the same, and still needs two variants."""
    app = world(tmp_path, SHOP)
    for _ in range(40):
        app.request("M/one/")
        app.request("M/none/")
        app.request("M/none/")
    plain, model = with_load(app, matched_of(app), "M/one/", "M/none/")
    assert queries(plain) == pytest.approx({("M", "/one/"): 1 / 3, ("M", "/none/"): 1 / 3})
    assert queries(model) == pytest.approx({("M", "/one/"): 1, ("M", "/none/"): 0})
    assert [e.name for e in model.task("A").entries] == ["/ask/", "/ask/@2", "/twice/", "/reply/"]


def test_path_of_the_caller_and_of_the_called_stay_correlated(tmp_path: Path) -> None:
    """The caller's two paths are two calling sites."""
    app = world(tmp_path, SHOP)
    for _ in range(100):
        app.request("A/reply/")
    found = variants(matched_of(app))
    assert list(found) == ["B/b/"]
    for variant in found["B/b/"]:
        assert len(variant.sites) == 1
        assert sorted(map(bool, variant.taken)) == [False, True]


def test_callers_that_make_no_difference_share_an_entry(tmp_path: Path) -> None:
    """Random differences between callers make no variants."""
    app = world(tmp_path, SHOP)
    for _ in range(300):
        app.request("A/ask/", often=0.3)
        app.request("M/one/")
    fair = app.of("B/b/")
    matched = matched_of(app)
    assert "B/b/" in variants(matched)
    app = world(tmp_path, SHOP.replace('"often": 1', '"often": 0.3').replace('"often": 0}', '"often": 0.3}'))
    for _ in range(300):
        app.request("M/one/")
        app.request("M/none/")
        app.request("A/twice/")
    assert len(fair) < len(app.of("B/b/"))
    matched = matched_of(app)
    assert variants(matched) == {}
    plain, model = with_load(app, matched, "M/one/")
    assert model == plain


def test_nothing_is_split_where_no_endpoint_has_a_second_caller(tmp_path: Path) -> None:
    """One chain of calls, each with one path: there is nothing to compare."""
    source = (
        SHOP.partition("class M(MS)")[0].partition('    @EP("/twice/")')[0]
        + SHOP[SHOP.index("class B(MS)") :]
    )
    app = world(tmp_path, source.replace('comm.params["coin"](comm.params["often"])', "True"))
    for _ in range(40):
        app.request("A/ask/", often=1)
    assert variants(matched_of(app)) == {}


def test_number_of_iterations_depends_on_the_caller(tmp_path: Path) -> None:
    """Loop counts are behaviour as well: every variant has its own."""
    source = SHOP.replace('"/b/", {"often": 0}', '"/many/", {"size": 1}').replace(
        '"/b/", {"often": 1}', '"/many/", {"size": 6}'
    )
    app = world(tmp_path, source)
    for _ in range(30):
        app.request("A/twice/")
    matched = matched_of(app)
    _, model = with_load(app, matched, "A/twice/")
    counts = {
        e.name: next(p.counts for p in e.precedences if p.fork == "loop")
        for e in model.task("B").entries
        if e.name.startswith("/many/")
    }
    assert sorted(counts) == ["/many/", "/many/@2"]
    assert sorted(c.mean for (c,) in counts.values() if c is not None) == [1, 6]
    assert queries(model) == pytest.approx({("A", "/twice/"): 7})


def test_few_executions_decide_nothing() -> None:
    """Twenty executions of each caller are the least that a difference is based on."""
    left, right = (0, ()), (1, ())
    assert differs({"x": {left: 20}, "y": {right: 20}})
    assert not differs({"x": {left: 19}, "y": {right: 20}})
    assert not differs({None: {left: 100}, "y": {right: 100}})


def test_differences_must_matter_and_be_certain() -> None:
    """A tiny difference is ignored however certain, an uncertain one however large."""
    left, right = (0, ()), (1, ())
    assert not differs({"x": {left: 50_000, right: 50_000}, "y": {left: 52_000, right: 48_000}})
    assert not differs({"x": {left: 12, right: 18}, "y": {left: 18, right: 12}})
    assert differs({"x": {left: 400, right: 600}, "y": {left: 600, right: 400}})


def test_false_alarms_are_rare() -> None:
    """Callers that behave alike are told apart at most once in 400 times."""
    draw = random.Random(7)
    alarms = 0
    for _ in range(400):
        table = {}
        for caller in range(4):
            row = Counter((draw.randrange(draw.randrange(1, 5)), ()) for _ in range(60))
            table[caller] = row
        alarms += differs(table)
    assert alarms <= 1


def test_rare_behaviours_are_pooled() -> None:
    """Hundreds of behaviours seen once each are no evidence."""
    rows = {c: {(0, ()): 50, **{(1 + 200 * c + k, ()): 1 for k in range(200)}} for c in range(2)}
    assert not differs(rows)


def test_name_of_a_variant() -> None:
    """The first keeps the name, so that a model without variants is as it always was."""
    assert [variant_name("/b/", n) for n in (1, 2, 3)] == ["/b/", "/b/@2", "/b/@3"]


REAL = """
from mup import EP, MS

class Front(MS):
    @EP("/page/")
    def page(self, comm):
        late = comm.call("Back", "/item/", {"deep": False, "size": 0})
        early = comm.call("Back", "/item/", {"deep": True, "size": int(comm.params["size"])})
        comm.respond([early.get(), late.get()])

class Back(MS):
    @EP("/item/")
    def item(self, comm):
        if comm.params["deep"]:
            for number in range(comm.params["size"]):
                comm.call("Leaf", "/leaf/", {"number": number}).get()
            comm.respond("deep")
            return
        comm.respond("flat")

class Leaf(MS):
    @EP("/leaf/")
    def leaf(self, comm):
        comm.respond(comm.params["number"])
"""


@pytest.mark.slow
@pytest.mark.services
def test_real_logs(tmp_path: Path) -> None:
    """Logs of real services are matched iteration by iteration, and the two calling sites told apart."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "shop.py").write_text(textwrap.dedent(REAL), encoding="utf-8")
    names = ("Front", "Back", "Leaf")
    services = tuple(ServiceConfig(name=name, target=f"shop:{name}") for name in names)
    project = Project(name="shop", root=tmp_path, source=source, services=services, registry_port=0)
    logs = tmp_path / "logs"
    with Deployment(project, log_dir=logs) as running:
        (url,) = (replica.url for replica in running.replicas() if replica.service == "Front")
        for number in range(40):
            with urllib.request.urlopen(f"{url}/page/?size={number % 4}", timeout=10) as answer:
                assert answer.status == 200
    application = analyse_project(project)
    assert not application.errors
    model, plans = translate_with_plan(application, name="x")
    executions = collect(read_log(path) for path in sorted(logs.glob("*.mlog")))
    matched = {
        entry_label(*key): match(found, [e for e in executions if e.endpoint == entry_label(*key)])
        for key, found in plans.items()
    }
    assert {label: (m.matched, m.unmatched) for label, m in matched.items()} == {
        "Front/page/": (40, []),
        "Back/item/": (80, []),
        "Leaf/leaf/": (60, []),
    }
    found: dict[str, tuple[Variant, ...]] = variants(matched)
    assert [len(v.sites) for v in found["Back/item/"]] == [1, 1]
    for task in model.tasks:
        entries = [
            with_frequencies(e, plans[task.name, e.name], matched[entry_label(task.name, e.name)].taken)
            if (task.name, e.name) in plans
            else e
            for e in task.entries
        ]
        first = replace(entries[0], arrivals=Constant(1.0)) if task.name == "Front" else entries[0]
        model = model.with_task(replace(task, entries=(first, *entries[1:])))
    rates = entry_rates(split(model, plans, found))["Front", "/page/"]
    assert rates["Leaf", "/leaf/"] == pytest.approx(1.5)
    assert (rates["Back", "/item/"], rates["Back", "/item/@2"]) == pytest.approx((1, 1))
