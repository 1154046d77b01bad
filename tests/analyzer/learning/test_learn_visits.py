"""mup learn visits finds the rates and the structure of systems that a separate simulation has recorded."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from visit_systems import (
    Sampler,
    Station,
    Visit,
    closed_visits,
    constant,
    erlang,
    exponential,
    hyperexponential,
    layered_visits,
    lognormal,
    write_visits,
)

from analyzer.access_logs.formats import wanted
from analyzer.access_logs.reading import Source
from analyzer.learning.visit_learning import LearnedVisits, learn_visits
from analyzer.learning.visit_rates import StationRate
from analyzer.learning.visit_tables import read_visits
from mup.cli.learning.learn_visits import command
from mup.lqn.distributions import Constant
from mup.lqn.files import read_model
from simulator.analytic import estimate

ROUTING = {
    "think": {"A": 1.0},
    "A": {"B": 0.5, "P": 0.3, "think": 0.2},
    "B": {"A": 0.4, "think": 0.6},
    "P": {"think": 1.0},
}
MEANS = {"A": 0.05, "B": 0.16, "P": 0.08}
SERVERS = {"A": 1, "B": 2, "P": 1}


def _network(law: str, seed: int = 1, seconds: float = 300.0) -> list[Visit]:
    def service(mean: float) -> Sampler:
        return {
            "constant": constant(mean),
            "erlang": erlang(mean, 5),
            "exponential": exponential(mean),
            "lognormal": lognormal(mean, 4.0),
            "h2": hyperexponential(mean, 2.0),
        }[law]

    stations = {"think": Station(exponential(1.0), math.inf)}
    for name, mean in MEANS.items():
        stations[name] = Station(service(mean), SERVERS[name], sharing=name == "P")
    return closed_visits(
        stations, ROUTING, clients=12, seconds=seconds, seed=seed, silent=("think",), warmup=20.0
    )


def _learn(path: Path, **given: float) -> LearnedVisits:
    return learn_visits(read_visits([path], Source()), servers=given)


def _by_name(learned: LearnedVisits) -> dict[str, StationRate]:
    return {station.name: station for station in learned.stations}


@pytest.mark.parametrize("law", ["constant", "erlang", "exponential", "lognormal", "h2"])
def test_rates_and_routing_of_one_stationary_run(tmp_path: Path, law: str) -> None:
    """Servers, rates, routing and think time are found for any distribution of service."""
    learned = _learn(write_visits(tmp_path / "v.csv", _network(law)))
    found = _by_name(learned)
    assert {name: found[name].servers for name in MEANS} == SERVERS
    for name, mean in MEANS.items():
        assert found[name].rate * mean == pytest.approx(1, abs=0.12)
        half = (found[name].high - found[name].low) / 2 + 1e-6 / mean
        assert abs(found[name].rate - 1 / mean) < 2 * half
    assert found["rest"].rate == pytest.approx(1.0, abs=0.08)
    assert learned.routing is not None
    assert learned.routing.clients == 12
    row = learned.routing.probabilities[learned.routing.names.index("A")]
    chances = dict(zip(learned.routing.names, row.tolist(), strict=True))
    assert chances == pytest.approx({"A": 0.0, "B": 0.5, "P": 0.3, "rest": 0.2}, abs=0.05)


def test_the_distribution_of_service_is_that_of_the_system(tmp_path: Path) -> None:
    """Stations in order of arrival keep their scv in the model; that of shared servers is known, too."""
    learned = _learn(write_visits(tmp_path / "v.csv", _network("erlang")))
    found = _by_name(learned)
    assert found["A"].scv == pytest.approx(0.2, abs=0.05)
    assert not found["P"].fcfs
    assert found["P"].scv == pytest.approx(0.2, abs=0.05)
    assert any("all shared 1 server:" in warning for warning in learned.warnings)
    assert learned.model is not None
    demand = learned.model.task("A").entries[0].activities
    assert any(a.demand.mean == pytest.approx(0.05, rel=0.05) and a.demand.scv < 0.4 for a in demand)


def test_the_model_predicts_more_clients(tmp_path: Path) -> None:
    """Throughput of 30 clients, predicted from a recording of 12, is that of the system with 30."""
    learned = learn_visits(
        read_visits([write_visits(tmp_path / "v.csv", _network("exponential"))], Source()), clients=30
    )
    assert learned.model is not None
    predicted = estimate(learned.model)
    more = closed_visits(
        {
            "think": Station(exponential(1.0), math.inf),
            **{
                name: Station(exponential(mean), SERVERS[name], sharing=name == "P")
                for name, mean in MEANS.items()
            },
        },
        ROUTING,
        clients=30,
        seconds=300.0,
        seed=7,
        silent=("think",),
        warmup=20.0,
    )
    completed = sum(name == "A" and took is not None for name, _, took, _ in more) / 300.0
    task = learned.model.task("A").name
    assert predicted.tasks[task].throughput == pytest.approx(completed, rel=0.05)


def test_calls_from_visits_within_visits(tmp_path: Path) -> None:
    """A web tier whose threads wait for two calls: own time, calls and threads; and a model that is layered."""
    visits = layered_visits(
        clients=12, think=0.5, own=erlang(0.06, 3), threads=3, calls=2, database=exponential(0.02),
        seconds=200, seed=1,
    )  # fmt: skip
    learned = _learn(write_visits(tmp_path / "v.csv", visits))
    found = _by_name(learned)
    assert (found["web"].servers, found["db"].servers) == (3, 1)
    assert learned.own == pytest.approx({"web": 0.06, "db": 0.02}, rel=0.05)
    assert [(c.caller, c.callee, c.mean) for c in learned.calls] == [("", "web", 1.0), ("web", "db", 2.0)]
    assert learned.model is not None
    calls = learned.model.task("web").entries[0].activities[0].calls
    assert [(call.task, call.count) for call in calls] == [("db", Constant(2.0))]
    reference = next(task for task in learned.model.tasks if task.is_reference)
    assert reference.think is not None
    assert reference.think.mean == pytest.approx(0.5, rel=0.1)


def test_shared_servers_whose_visits_leave_in_order(tmp_path: Path) -> None:
    """Constant service of two shared servers looks like three in order of arrival; the likelihood tells."""
    stations = {
        "think": Station(exponential(1.0), math.inf),
        "P": Station(constant(0.3), 2, sharing=True),
    }
    visits = closed_visits(
        stations,
        {"think": {"P": 1.0}, "P": {"think": 1.0}},
        clients=10,
        seconds=400,
        seed=3,
        silent=("think",),
    )
    found = _by_name(_learn(write_visits(tmp_path / "v.csv", visits)))["P"]
    assert (found.servers, found.fcfs) == (2, False)
    assert found.rate * 0.3 == pytest.approx(1, abs=1e-4)


def test_wrong_servers_are_called_in_question(tmp_path: Path) -> None:
    learned = _learn(write_visits(tmp_path / "v.csv", _network("exponential")), B=5.0)
    assert any("service at B takes" in warning for warning in learned.warnings)


def test_without_ids_rates_and_no_model(tmp_path: Path) -> None:
    path = write_visits(tmp_path / "v.csv", _network("exponential"), ids="")
    learned = _learn(path)
    assert learned.model is None
    assert _by_name(learned)["A"].rate == pytest.approx(20, rel=0.1)
    result = CliRunner().invoke(command, [str(path), "-o", str(tmp_path / "m.json")])
    assert result.exit_code != 0
    assert "no model to write" in str(result.exception) + result.output


def test_the_command_writes_a_model_and_a_document(tmp_path: Path) -> None:
    """--servers, --json and -o; the model file is valid."""
    path = write_visits(tmp_path / "v.csv", _network("exponential"))
    model = tmp_path / "m.json"
    result = CliRunner().invoke(
        command, [str(path), "--servers", "B=2", "-o", str(model), "--json"], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert document["stations"]["B"]["counted"] is False
    assert document["stations"]["A"]["counted"] is True
    assert document["routing"]["clients"] == 12
    assert {task.name for task in read_model(model).tasks} >= {"A", "B", "P", "rest"}
    shown = CliRunner().invoke(command, [str(path)], catch_exceptions=False)
    assert "Routing of 12 clients" in shown.output


def test_milliseconds_and_other_names_of_columns(tmp_path: Path) -> None:
    """--field says which column means what, and its unit."""
    path = tmp_path / "v.csv"
    lines = ["service,began,ms,user"]
    lines += [f"{s},{b:.6f},{'' if d is None else f'{d * 1e3:.6f}'},{c}" for s, b, d, c in _network("erlang")]
    path.write_text("\n".join(lines) + "\n")
    fields = wanted(["start=began", "duration=ms:ms"])
    learned = learn_visits(read_visits([path], Source("", fields)))
    assert _by_name(learned)["A"].rate == pytest.approx(20, rel=0.1)


def test_milliseconds_taken_for_seconds_are_noticed(tmp_path: Path) -> None:
    """A client cannot leave a station after it has left the next one; without the error nothing is said."""
    visits = _network("exponential", seconds=60.0)
    wrong = [(s, b, None if d is None else 1e3 * d, c) for s, b, d, c in visits]
    right, mistaken = (_learn(write_visits(tmp_path / "v.csv", some)) for some in (visits, wrong))
    assert any("another unit than starts" in warning for warning in mistaken.warnings)
    assert mistaken.model is None
    assert not any("another unit than starts" in warning for warning in right.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a,b\n1,2\n", "no columns of visits", id="columns"),
        pytest.param("station,start\nA,1\n", "how long visits took", id="duration"),
        pytest.param("station,start,duration\nA,x,1\n", "line 2, column 'start'", id="number"),
        pytest.param("station,start,end\nA,2,1\n", "must not end before it starts", id="order"),
        pytest.param("station,start,end\nA,2\n", "has 2 columns, the header 3", id="row"),
        pytest.param("station,start,end\n", "a header and nothing else", id="nothing"),
        pytest.param("", "is empty", id="empty"),
    ],
)
def test_bad_tables_are_refused_in_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "v.csv"
    path.write_text(text)
    result = CliRunner().invoke(command, [str(path)])
    assert result.exit_code != 0
    assert message in str(result.exception) + result.output


def test_unknown_stations_and_servers_are_refused(tmp_path: Path) -> None:
    path = write_visits(tmp_path / "v.csv", _network("exponential", seconds=30.0))
    for arguments, message in (
        (["--servers", "Z=2"], "no visits to 'Z'"),
        (["--servers", "A=0"], "whole number >= 1"),
        (["--rest", "A"], "has visits"),
        (["--reference", "Z"], "no station 'Z'"),
    ):
        result = CliRunner().invoke(command, [str(path), *arguments])
        assert result.exit_code != 0
        assert message in str(result.exception) + result.output
