"""Features of real services in both halves of the wide bed: systems, sources, points."""

from __future__ import annotations

import hashlib
import json
import os
import random
import runpy
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from accuracy.beds import BEDS
from accuracy.campaign import Campaign
from accuracy.command import seeds_of
from accuracy.deploy import deployable, generated, prepare
from accuracy.features import DEALT, FEATURES, SYSTEMS, plan
from accuracy.nominal import nominal
from accuracy.points import Point, choose_wide
from accuracy.project import write_project
from accuracy.statements import wants_key
from accuracy.store import Results
from accuracy.system import Ask, Burn, Cached, CallTo, Choice, Find, Scan, System, every_step
from accuracy.wide import MOST_WORKERS, RESPONSE_MS, wide

from analyzer.static import analyse_project
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from mup.project import load_project

HALVES = (seeds_of(BEDS["wide"].train), seeds_of(BEDS["wide"].test))
SEEDS = [*HALVES[0], *HALVES[1]]
SOURCES = Path(__file__).with_name("data") / "generated_sources.json"


def sources(system: System, folder: Path) -> dict[str, str]:
    """Return the modules of a written project."""
    write_project(system, folder)
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("name", json.loads(SOURCES.read_text(encoding="utf-8")))
def test_systems_of_earlier_campaigns_stay_as_they_are(name: str, tmp_path: Path) -> None:
    """Results of years ago can be compared: the sources of a seed are the same to the byte."""
    found = generated(name)
    assert found is not None
    digest = hashlib.sha256()
    for file, text in sources(found, tmp_path).items():
        digest.update(f"{file}\0{text}\0".encode())
    assert digest.hexdigest()[:16] == json.loads(SOURCES.read_text(encoding="utf-8"))[name]


def test_a_seed_always_gives_the_same_system(tmp_path: Path) -> None:
    """What is held out today is what was held out yesterday."""
    digest = hashlib.sha256()
    for seed in SEEDS:
        assert wide(seed) == wide(seed)
        for file, text in sources(wide(seed), tmp_path / str(seed)).items():
            digest.update(f"{seed} {file}\0{text}\0".encode())
    assert digest.hexdigest()[:16] == json.loads(SOURCES.with_name("wide_sources.json").read_text())


@pytest.mark.parametrize("hundred", range(5, 30))
def test_any_hundred_makes_a_half(hundred: int) -> None:
    """Of some, the first deal leaves no system for what has to be alone."""
    plans = [plan(100 * hundred + number) for number in range(SYSTEMS)]
    assert {feature: sum(feature in one.dealt for one in plans) for feature in DEALT} == DEALT
    assert any("millisecond" in one.dealt and one.alone for one in plans)


def test_the_halves_are_twelve_systems_each_and_share_none() -> None:
    """Development and held-out systems have names of their own, and no two are alike."""
    assert [len(half) for half in HALVES] == [SYSTEMS, SYSTEMS]
    assert not set(HALVES[0]) & set(HALVES[1])
    assert len({repr(replace(wide(seed), seed=0)) for seed in SEEDS}) == len(SEEDS)
    assert generated("w312") is None


@pytest.mark.parametrize("half", HALVES, ids=["development", "held-out"])
def test_every_feature_is_in_both_halves(half: list[int]) -> None:
    """Each is dealt to several systems, and each system has several."""
    systems = [wide(seed) for seed in half]
    count = Counter(feature for system in systems for feature in system.features)
    assert {feature: count[feature] for feature in DEALT} == dict(DEALT)
    assert set(count) == set(FEATURES)
    assert min(count.values()) >= 2
    assert min(len(system.features) for system in systems) >= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_features_are_more_than_names(seed: int) -> None:
    """What a system is listed under is in it, and nothing else of the kind."""
    system = wide(seed)
    steps = [step for service in system.services for step in every_step(service)]
    asks = [step for step in steps if isinstance(step, Ask)]
    runtimes = {system.runtime_of(service) for service in system.services}
    shapes = {step.shape for step in steps if isinstance(step, Burn)}
    caches = [service.cache for service in system.services if service.cache]
    refusing = any(e.refused for service in system.services for e in service.endpoints)
    calls = [[o for o in ask.operations if isinstance(o, CallTo)] for ask in asks]
    has = {
        "mixture": len(runtimes) > 1,
        **{kind: runtimes == {kind} for kind in ("process", "thread", "async")},
        "cold cache": any(not cache.filled for cache in caches),
        "filled cache": any(cache.filled for cache in caches),
        "retries": any(service.retries for service in system.services) and refusing,
        "own retries": any(ask.attempts > 1 for ask in asks) and refusing,
        "after response": any(e.after for service in system.services for e in service.endpoints),
        "two kinds of users": system.other is not None,
        "open arrivals": system.arrivals,
        "data in memory": any(isinstance(step, Scan) for step in steps),
        "embedded database": system.database == "embedded",
        "MongoDB": system.database == "mongod",
    }
    assert {feature for feature, there in has.items() if there} == set(system.features) & set(has)
    assert bool(caches) == any(isinstance(step, Cached) for step in steps)
    assert bool(system.database) == any(isinstance(o, Find) for ask in asks for o in ask.operations)
    if "fan-out" in system.features:
        assert max(map(len, calls)) >= 2
    tails = {"heavy tail": "heavy", "bounded Pareto": "pareto", "bimodal": "bimodal"}
    assert shapes & set(tails.values()) <= {tails[f] for f in system.features if f in tails}


@pytest.mark.parametrize("half", HALVES, ids=["development", "held-out"])
def test_amounts_have_tails_in_both_halves(half: list[int]) -> None:
    """Of the systems that may have a shape of work, most do."""
    steps = [s for seed in half for service in wide(seed).services for s in every_step(service)]
    shapes = Counter(step.shape for step in steps if isinstance(step, Burn))
    assert min(shapes[shape] for shape in ("heavy", "pareto", "bimodal")) >= 2
    assert {step.work for step in steps if isinstance(step, Burn)} == {"burn", "digest", "render"}


@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_are_in_range(seed: int) -> None:
    """One user is answered within 1 to 65 ms on paper, and few enough processes serve."""
    system = wide(seed)
    assert RESPONSE_MS[0] <= nominal(system).response <= RESPONSE_MS[1]
    assert sum(s.pool * s.replicas for s in system.services if s.runtime == "process") <= MOST_WORKERS
    assert system.think is not None
    assert 0 < system.think.seconds <= 0.4
    for service in system.services:
        for step in every_step(service):
            if isinstance(step, Cached):
                assert 0.2 < step.hits < 1
            if isinstance(step, Choice):
                assert 0 < step.probability < 1


def test_an_answer_takes_longer_where_half_of_it_is_not_cached() -> None:
    """On paper, what is not found counts in proportion to how often that is."""
    system = wide(302)
    cold = replace(
        system,
        services=tuple(
            replace(
                service,
                endpoints=tuple(
                    replace(
                        e,
                        steps=tuple(replace(s, hits=0.0) if isinstance(s, Cached) else s for s in e.steps),
                    )
                    for e in service.endpoints
                ),
            )
            for service in system.services
        ),
    )
    assert nominal(cold).response > nominal(system).response


@pytest.mark.parametrize("seed", SEEDS)
def test_the_analysis_refuses_none(seed: int, tmp_path: Path) -> None:
    """Every written project can be modelled: services, runtimes, calls and queries are found in its source."""
    system = wide(seed)
    write_project(system, tmp_path)
    application = analyse_project(load_project(tmp_path))
    assert {d.code for d in application.diagnostics} <= {"MUP022"}
    for service in system.services:
        read = next(s for s in application.services if s.name == service.name)
        assert (read.pool_size, read.replicas) == (service.pool, service.replicas)
        assert read.runtime == system.runtime_of(service)
        asks = [step for step in every_step(service) if isinstance(step, Ask)]
        wanted = {
            f"{o.service}{o.path}" if isinstance(o, CallTo) else f"db.{o.query}"
            for ask in asks
            for o in ask.operations
        }
        paths = json.dumps([[repr(o) for o in p.operations] for e in read.endpoints for p in e.paths])
        assert all(target in paths for target in wanted)


def test_only_what_needs_it_gets_a_key() -> None:
    """Users send the key they ask for where a cache looks it up, however far behind."""
    for seed in SEEDS:
        system = wide(seed)
        first = system.services[0].endpoints[0]
        cached = any(isinstance(s, Cached) for service in system.services for s in every_step(service))
        assert wants_key(system, first.steps) <= cached
        assert bool(system.keys) == cached


def model() -> Model:
    """Return clients that think 0.1 s and call A: 5 ms on two cores, then 20 ms, with two workers."""

    def one(name: str, **what: object) -> Entry:
        return Entry(name=name, start="a", activities=(Activity(name="a", **what),))  # type: ignore[arg-type]

    users = one("User", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="/main/"),))
    work = one("/main/", demand=Exponential(0.005), delay=Constant(0.02), replies=True)
    return Model(
        name="m",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="User", role="reference", think=Exponential(0.1), entries=(users,)),
            Task(name="A", threads=2, processor="host", entries=(work,)),
        ),
    )


@pytest.mark.slow
def test_points_of_a_system_with_data_and_arrivals() -> None:
    """Loads, one more worker each way, more data, and 60 % of the rate that fills two workers of 25 ms."""
    found = {p.name: p for p in choose_wide(model(), wide(301))}
    # The knee is at 10 clients, and a quarter of it no load of its own for a system that begins with two.
    assert [p.name for p in choose_wide(model(), wide(300))][:3] == ["two", "half", "knee"]
    wanted = ["one", "light", "half", "knee", "beyond", "pool", "replicas", "data-1.5", "data-2", "open"]
    assert list(found) == wanted
    assert [found[n].clients for n in ("one", "data-2", "open")] == [1, found["half"].clients, 0]
    assert (found["pool"].pools, found["replicas"].replicas) == ({"A": 4}, {"A": 2})
    assert found["open"].arrivals == pytest.approx(48, rel=0.1)
    assert [found[n].covered for n in ("half", "data-1.5", "data-2", "open")] == [True, False, False, True]


def test_a_point_is_read_as_it_was_written() -> None:
    """Also one of an earlier campaign, which knows neither arrivals nor data."""
    for point in (
        Point("one", 1, {}, {}),
        Point("open", 0, {}, {}, arrivals=12.0),
        Point("data-2", 4, {}, {}, data=2.0),
    ):
        assert Point.from_json(json.loads(json.dumps(point.to_json()))) == point
    assert str(Point("open", 0, {"A": 2}, {}, arrivals=12.0)) == "12 arrivals/s, pool A=2"
    assert str(Point("data-2", 4, {}, {}, data=2.0)) == "4 clients, 2 times the data"
    assert Point("open", 0, {}, {}, arrivals=12.0).scenario(model()).to_json() == {"arrivals": 12.0}
    assert Point("one", 1, {}, {}).scenario(model()).to_json() == {"clients": 1}


def test_data_grows_for_the_services_and_for_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that runs meanwhile is told how much data there is; what was set before is not left behind."""
    monkeypatch.delenv("DATA_SCALE", raising=False)
    folder = Results(tmp_path).system("w303")
    prepare(folder)
    with deployable(folder, 2.0):
        assert os.environ["DATA_SCALE"] == "2"
        grown = runpy.run_path(str(folder.project / "data.py"))
    assert "DATA_SCALE" not in os.environ
    as_explored = runpy.run_path(str(folder.project / "data.py"))
    assert (as_explored["ITEMS"], grown["ITEMS"]) == (500, 1000)
    assert len(grown["Catalogue"](1.0).prices) == 2 * len(as_explored["Catalogue"](1.0).prices)


@pytest.mark.parametrize("shape", ["heavy", "pareto", "bimodal", "lognormal", "exponential", "uniform"])
def test_amounts_have_the_mean_they_say(shape: str, tmp_path: Path) -> None:
    """Work of every shape has the given mean; the tails have more variation than an exponential time."""
    found: dict[str, object] = {}
    for seed in SEEDS:
        write_project(wide(seed), tmp_path / str(seed))
        found |= runpy.run_path(str(tmp_path / str(seed) / "work.py"))
        if shape in found:
            break
    draw = found[shape]
    random.seed(3)
    values = [draw(2.0) for _ in range(60_000)]  # type: ignore[operator]
    mean = sum(values) / len(values)
    deviation = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
    assert mean == pytest.approx(2.0, rel=0.05)
    if shape in ("heavy", "pareto", "bimodal"):
        assert deviation > 1.1 * mean


def test_caches_fill_before_a_window_opens(tmp_path: Path) -> None:
    """Four requests for each place of each worker's cache, 10 s at most; a full one needs none."""
    results = Results(tmp_path)
    campaign = Campaign(results=results, deadline=0.0)

    def warmup(name: str, point: Point, throughput: float) -> float:
        return campaign._warmup(results.system(name), point, throughput)

    (caching,) = (service for service in wide(307).services if service.cache)
    assert caching.cache is not None
    assert (caching.runtime, caching.pool, caching.replicas, caching.cache.filled) == ("thread", 1, 1, False)
    rate = 4 * caching.cache.size * 3 / 5.0
    assert warmup("w307", Point("half", 8, {}, {}), rate) == 2.0
    assert warmup("w307", Point("pool", 8, {caching.name: 3}, {}), rate) == pytest.approx(5.0, abs=0.1)
    assert warmup("w307", Point("replicas", 8, {}, {caching.name: 9}), rate) == 10.0
    assert warmup("w300", Point("half", 8, {}, {}), rate) == 2.0
