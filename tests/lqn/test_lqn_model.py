"""A wrong model can be neither built nor read, and the message lists all its errors."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from mup.errors import ModelError
from mup.lqn import (
    SCHEMA,
    Activity,
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Erlang,
    Exponential,
    Front,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Model,
    Pareto,
    Precedence,
    Processor,
    Task,
    TruncatedNormal,
    Uniform,
    Weibull,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)


def _model() -> Model:
    """A model that uses every field of the schema."""
    body = Entry(
        name="/a/",
        start="s",
        activities=(
            Activity(name="s", demand=Exponential(0.1), delay=Constant(0.0), line=3),
            Activity(name="x", kind="registry", demand=Erlang(0.2, 3), delay=None, detached=True),
            Activity(name="y", demand=Uniform(0.0, 1.0), delay=Empirical((0.1, 0.1, 0.4))),
            Activity(name="l", kind="communication", calls=(Call(task="db", entry="q"),), replies=True),
            Activity(name="r", kind="after"),
        ),
        precedences=(
            Precedence(pre=("s",), post=("y", "x"), fork="and"),
            Precedence(pre=("y",), post=("l", "r"), fork="or", probabilities=(0.25, 0.75)),
        ),
        paths=(
            {"operations": [{"op": "respond", "target": "", "of": None}], "first": "split", "ends": "return"},
        ),
        fingerprint="abc",
    )
    query = Entry(name="q", start="w", activities=(Activity(name="w"),))
    cycle = Entry(name="c", start="g", activities=(Activity(name="g", calls=(Call(task="A", entry="/a/"),)),))
    return Model(
        name="all",
        processors=(Processor(name="host", cores=2, speed=1.5), Processor(name="inf", cores=math.inf, discipline="infinite")),
        tasks=(
            Task(name="U", role="reference", threads=3, think=Exponential(1.0), entries=(cycle,)),
            Task(name="A", threads=5, replicas=2, processor="host", entries=(body,),
                 front=Front(request=Constant(0.001), reply=None)),
            Task(name="db", role="database", threads=math.inf, entries=(query,)),
        ),
        provenance={"run": "r1"},
    )  # fmt: skip


def test_model_survives_its_file(tmp_path: Path) -> None:
    """load(save(model)) == model, and the file is plain JSON without NaN or Infinity."""
    path = tmp_path / "model.json"
    save_model(_model(), path)
    assert load_model(path) == _model()
    data = json.loads(path.read_text(), parse_constant=lambda c: pytest.fail(f"{c} in the file"))
    assert data["schema"] == SCHEMA
    assert data["tasks"][2]["threads"] == "inf"
    assert data["tasks"][1]["front"]["reply"] is None
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_numbers_that_belong_together_are_on_one_line(tmp_path: Path) -> None:
    """A comparison of two files shows a line per time, however many values were measured."""
    path = tmp_path / "model.json"
    measured = Empirical(tuple(k / 1024 for k in range(500)))
    work = Activity(name="a", demand=measured, delay=Constant(0.5))
    entry = Entry(name="e", start="a", activities=(work,))
    save_model(Model(name="m", tasks=(Task(name="t", entries=(entry,)),)), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 60
    (values,) = [line for line in lines if '"values": [' in line]
    assert json.loads("{" + values.strip().removesuffix(",") + "}") == {"values": list(measured.values)}
    assert {"{", "}", ' "tasks": ['} <= set(lines)


def test_models_are_frozen() -> None:
    """A calibrated model cannot be edited in place."""
    with pytest.raises(FrozenInstanceError):
        _model().tasks[0].threads = 7  # type: ignore[misc]


BREAKS: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
    ("schema", lambda d: d.update(schema="mup-lqn/0"), "schema: must be 'mup-lqn/1'"),
    ("no tasks", lambda d: d.pop("tasks"), "field 'tasks' is missing"),
    ("unknown field", lambda d: d["tasks"][1].update(thread=2), "tasks['A']: unknown field 'thread'"),
    ("threads", lambda d: d["tasks"][1].update(threads=0), "tasks['A'].threads: threads must be"),
    ("fraction", lambda d: d["tasks"][1].update(threads=1.5), "tasks['A'].threads"),
    ("replicas", lambda d: d["tasks"][1].update(replicas=-1), "tasks['A'].replicas"),
    ("clients", lambda d: d["tasks"][0].update(threads="inf"), "tasks['U'].threads: clients must be"),
    ("role", lambda d: d["tasks"][1].update(role="boss"), "tasks['A'].role: must be one of"),
    ("cores", lambda d: d["processors"][0].update(cores=0), "processors['host'].cores"),
    ("speed", lambda d: d["processors"][0].update(speed=0), "processors['host'].speed"),
    ("discipline", lambda d: d["processors"][0].update(discipline="lifo"), "processors['host'].discipline"),
    ("processor", lambda d: d["tasks"][1].update(processor="hots"), "did you mean 'host'"),
    ("call task", lambda d: _activity(d, 3)["calls"][0].update(task="dbb"), "did you mean 'db'"),
    ("call entry", lambda d: _activity(d, 3)["calls"][0].update(entry="p"), "has no entry 'p'"),
    ("call clients", lambda d: _activity(d, 3)["calls"][0].update(task="U"), "cannot be called"),
    ("family", lambda d: _activity(d, 0)["demand"].update(family="gauss"), "unknown family 'gauss'"),
    ("negative", lambda d: _activity(d, 0)["demand"].update(mean=-1), "activities['s'].demand.mean"),
    ("stages", lambda d: _activity(d, 1)["demand"].update(stages=0), "demand.stages"),
    ("values", lambda d: _activity(d, 2)["delay"].update(values=[2, 1]), "ascending order"),
    ("start", lambda d: d["tasks"][1]["entries"][0].update(start="t"), "start: no activity is named 't'"),
    ("sum", lambda d: _precedence(d, 1).update(probabilities=[0.5, 0.6]), "sum to 1"),
    ("count", lambda d: _precedence(d, 1).update(probabilities=[1.0]), "1 probabilities for 2 branches"),
    ("post", lambda d: _precedence(d, 1).update(post=["l", "z"]), "no activity is named 'z'"),
    ("cycle", lambda d: _precedence(d, 1).update(post=["y"], fork="sequence", probabilities=None), "cycle"),
    ("duplicate", lambda d: d["tasks"].append(d["tasks"][2]), "2 elements are named 'db'"),
    ("kind", lambda d: _activity(d, 0).update(kind="magic"), "activities['s'].kind"),
    ("no object", lambda d: d["tasks"].append(7), "tasks[3]: must be an object"),
]  # fmt: skip


def _activity(data: dict[str, Any], index: int) -> Any:
    return data["tasks"][1]["entries"][0]["activities"][index]


def _precedence(data: dict[str, Any], index: int) -> Any:
    return data["tasks"][1]["entries"][0]["precedences"][index]


@pytest.mark.parametrize(("change", "message"), [pytest.param(c, m, id=n) for n, c, m in BREAKS])
def test_broken_files_name_the_element(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    """Every rule a file breaks is reported with the path of the element and the offending value."""
    data = copy.deepcopy(model_to_json(_model()))
    change(data)
    with pytest.raises(ModelError) as caught:
        model_from_json(data)
    assert message in str(caught.value)


def test_all_problems_are_listed_at_once() -> None:
    """Three mistakes in different places make one error with three lines."""
    data = copy.deepcopy(model_to_json(_model()))
    data["tasks"][1]["threads"] = 0
    data["processors"][0]["cores"] = -2
    _activity(data, 0)["demand"]["mean"] = "fast"
    with pytest.raises(ModelError) as caught:
        model_from_json(data)
    message = str(caught.value)
    assert "3 problems" in message
    for part in ("tasks['A'].threads", "processors['host'].cores", "activities['s'].demand.mean", "'fast'"):
        assert part in message


def test_rules_between_elements_are_listed_at_once() -> None:
    """Building a model in Python reports every violated rule, too."""
    a = _model().task("A")
    with pytest.raises(ModelError) as caught:
        replace(_model(), tasks=(replace(a, processor="nope"), a))
    message = str(caught.value)
    assert "no processor is named 'nope'" in message
    assert "2 elements are named 'A'" in message
    assert "no task is named 'db'" in message


def test_cycles_of_calls_are_refused() -> None:
    """Services that call each other in a ring could wait for their own threads."""

    def task(name: str, other: str) -> Task:
        activity = Activity(name="w", calls=(Call(task=other, entry="e"),))
        return Task(name=name, entries=(Entry(name="e", start="w", activities=(activity,)),))

    with pytest.raises(ModelError, match=r"A\.e -> B\.e -> A\.e"):
        Model(name="ring", tasks=(task("A", "B"), task("B", "A")))


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", '{"schema": 1}', "\udcff"],
    ids=["missing", "empty", "half", "list", "number", "bytes"],
)
def test_unreadable_files_end_in_one_message(tmp_path: Path, text: str | None) -> None:
    """A file that is no model is refused with its name."""
    path = tmp_path / "model.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert "model.json" in str(caught.value)


DISTRIBUTIONS = [
    Constant(0.3),
    Exponential(0.3),
    Erlang(0.3, 4),
    Uniform(0.1, 0.5),
    Empirical((0.1, 0.2, 0.6)),
    Gamma(0.3, 0.4),
    Gamma(0.3, 2.0),
    Lognormal(0.3, 0.5),
    Weibull(0.3, 1.7),
    Pareto(0.3, 6.5),
    TruncatedNormal(0.1, 0.2),
    Hyperexponential((0.3, 0.7), (0.9, 0.1)),
    Geometric(1.8),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: d.family)
def test_variates_have_the_mean_and_variance_the_distribution_claims(distribution: Distribution) -> None:
    """100 000 draws agree with the exact mean within 4 standard errors and the variance within 3 %."""
    from simulator.machine.variates import Stream, tables

    stream, source = Stream(5), tables((distribution,))
    values = [stream.draw(source, 0) for _ in range(100_000)]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    assert abs(mean - distribution.mean) <= 4 * math.sqrt(distribution.variance / len(values)) + 1e-12
    assert variance == pytest.approx(distribution.variance, rel=0.03, abs=1e-15)
    assert distribution.scaled(2.0).mean == pytest.approx(2 * distribution.mean)
    if not isinstance(distribution, Geometric):  # whole numbers cannot keep their shape
        assert distribution.scaled(2.0).scv == pytest.approx(distribution.scv)


def test_example_in_the_reference_is_a_model() -> None:
    """The example of docs/reference/model-schema.md loads, and can be simulated."""
    from simulator import simulate

    page = Path(__file__).parents[2] / "docs" / "reference" / "model-schema.md"
    text = page.read_text(encoding="utf-8").split("```json\n")[-1].split("```")[0]
    result = simulate(model_from_json(json.loads(text)), horizon=20)
    assert result.entries["A/epA/"].throughput.mean > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["tasks"][0].update(processor=0), "processor: must be the name"),
        (lambda d: d.update(provenance="x"), "provenance: must be an object"),
        (lambda d: d["tasks"][0]["entries"][0].update(paths=[{}]), "paths[0].operations"),
        (
            lambda d: d["tasks"][0]["entries"][0]["paths"][0]["operations"][0].update(of=[]),
            "operations[0].of",
        ),
        (lambda d: d["tasks"][0].update(threads=10**400), "digits"),
        (lambda d: d["provenance"].update(x=float("nan")), "NaN"),
    ],
    ids=["processor", "provenance", "paths", "of", "huge", "nan"],
)
def test_hostile_files_are_model_errors(tmp_path: Path, change: Any, says: str) -> None:
    """Whatever a file holds, reading it ends in a model or in a message."""
    data = model_to_json(_model())
    data["tasks"].sort(key=lambda t: t["name"] != "A")
    change(data)
    file = tmp_path / "model.json"
    file.write_text(json.dumps(data))
    with pytest.raises(ModelError, match=re.escape(says)):
        load_model(file)


def test_nesting_without_end_is_a_model_error(tmp_path: Path) -> None:
    """A file made to exhaust the reader is refused like any other."""
    file = tmp_path / "model.json"
    file.write_text("[" * 100_000)
    with pytest.raises(ModelError, match=r"nested too deeply|not JSON"):
        load_model(file)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_scaled_empirical_time_is_the_one_of_scaled_values(factor: float) -> None:
    """Its moments are scaled if they are known; what is no time any more is refused as ever."""
    time = Empirical((0.0, 0.1, 0.4))
    whole = Empirical(tuple(factor * value for value in time.values))
    assert time.scaled(factor) == whole
    assert time.mean > 0
    scaled = time.scaled(factor)
    assert (scaled.mean, scaled.variance) == pytest.approx((whole.mean, whole.variance), rel=1e-12)
    assert time.scaled(0.0) == Empirical((0.0, 0.0, 0.0))
    for bad in (-1.0, math.nan, 1e308):
        with pytest.raises(ModelError, match="values"):
            Empirical((0.0, 0.1, 4.0)).scaled(bad)
