"""Strict files: names given twice, byte order marks, null for unmeasured, vast numbers."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.host.profile import load_profile
from mup.errors import LogError, ModelError, UncalibratedError
from mup.json_text import RepeatedNameError, parse_json
from mup.lqn import load_model
from mup.lqn.json_io import model_from_json, model_to_json
from mup.project import load_project
from simulator import simulate
from simulator.analytic import estimate

ZERO = {"family": "constant", "mean": 0}
DATA: dict[str, Any] = {
    "schema": "mup-lqn/1",
    "name": "strict",
    "processors": [{"name": "cpu", "cores": 2}],
    "tasks": [
        {
            "name": "U",
            "role": "reference",
            "threads": 2,
            "think": {"family": "exponential", "mean": 1.0},
            "entries": [
                {
                    "name": "cycle",
                    "start": "go",
                    "activities": [
                        {"name": "go", "demand": ZERO, "delay": ZERO, "calls": [{"task": "A", "entry": "a"}]}
                    ],
                }
            ],
        },
        {
            "name": "A",
            "threads": 2,
            "processor": "cpu",
            "entries": [
                {
                    "name": "a",
                    "start": "w",
                    "activities": [
                        {"name": "w", "demand": {"family": "exponential", "mean": 0.1}, "delay": ZERO}
                    ],
                }
            ],
        },
    ],
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """Return the model with one value replaced."""
    data = copy.deepcopy(DATA)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return data


def test_a_name_given_twice_is_an_error_with_its_line(tmp_path: Path) -> None:
    """The last one used to win silently; the same name in another object is no repetition."""
    file = tmp_path / "model.json"
    file.write_text(
        json.dumps(DATA, indent=1).replace('"threads": 2,', '"threads": 2,\n   "threads": 64,', 1)
    )
    with pytest.raises(ModelError, match='"threads" is given twice in one object') as caught:
        load_model(file)
    lines = file.read_text().splitlines()
    first = next(n for n, line in enumerate(lines, start=1) if '"threads"' in line)
    assert f"line {first + 1}:" in caught.value.message
    assert f"(first in line {first})" in caught.value.message
    assert caught.value.where == str(file)


def test_lines_of_repeated_names_are_found_among_texts() -> None:
    """Braces, colons and quotes inside texts are no structure; escapes do not hide a repetition."""
    text = '{"a": "}{:\\"", "b": [{"c": 1},\n {"c": 2}], "d": {\n"x": 1,\n"\\u0078": 2}}'
    with pytest.raises(
        RepeatedNameError, match=r'line 4: "x" is given twice in one object \(first in line 3\)'
    ):
        parse_json(text)
    assert parse_json('{"a": {"b": 1}, "c": {"b": 2}}') == {"a": {"b": 1}, "c": {"b": 2}}
    with pytest.raises(ValueError, match="NaN is no number"):
        parse_json("[NaN]")


def test_a_host_profile_is_read_as_strictly(tmp_path: Path) -> None:
    """One loader for everything a user may have written."""
    file = tmp_path / "profile.json"
    file.write_text('{"identity": {},\n "identity": {}}')
    with pytest.raises(LogError, match='line 2: "identity" is given twice'):
        load_profile(file)


def test_byte_order_marks_are_accepted(tmp_path: Path) -> None:
    """As some editors write them in front of JSON and TOML."""
    model = tmp_path / "model.json"
    model.write_bytes(b"\xef\xbb\xbf" + json.dumps(DATA).encode())
    assert load_model(model) == model_from_json(DATA)
    project = tmp_path / "mup.toml"
    project.write_bytes(b"\xef\xbb\xbf[services.A]\nclass = 'services:A'\n")
    assert [service.name for service in load_project(tmp_path).services] == ["A"]


def test_a_think_time_of_null_was_never_measured() -> None:
    """It is not 0: everything that computes names it; without the field no client thinks."""
    model = model_from_json(changed("tasks", 0, "think", to=None))
    for predict in (simulate, estimate):
        with pytest.raises(
            UncalibratedError, match=r"tasks\['U'\].entries\['cycle'\].activities\['think'\].delay"
        ):
            predict(model)
    assert model_from_json(model_to_json(model)) == model
    known = model_to_json(model)
    (pause,) = (a for a in known["tasks"][0]["entries"][0]["activities"] if a["name"] == "think")
    pause["delay"] = {"family": "exponential", "mean": 1.0}
    assert estimate(model_from_json(known)).cycle == estimate(model_from_json(DATA)).cycle
    without = copy.deepcopy(DATA)
    del without["tasks"][0]["think"]
    assert model_from_json(without).task("U").think is None


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (changed("tasks", 1, "think", to=None), "tasks['A'].think", "only a reference task"),
        (changed("tasks", 0, "think", "mean", to=None), "tasks['U'].think.mean", "null as a whole"),
        (changed("tasks", 0, "think", "mean", to=1e-300), "tasks['U'].think.mean", "between 1e-50 and 1e+50"),
        (changed("tasks", 0, "think", "mean", to=1e308), "tasks['U'].think", "too large"),
        (
            changed("tasks", 1, "threads", to=1e18),
            "tasks['A'].threads",
            "at most 1000000000000000 or infinite",
        ),
        (
            changed("tasks", 1, "threads", to=1e308),
            "tasks['A'].threads",
            "at most 1000000000000000 or infinite",
        ),
        (changed("tasks", 1, "replicas", to=10**18), "tasks['A'].replicas", "at most 1000000000000000, got"),
        (changed("tasks", 0, "threads", to=1e18), "tasks['U'].threads", "clients must be at most"),
        (
            changed("processors", 0, "cores", to=1e18),
            "processors['cpu'].cores",
            "at most 1000000000000000 or",
        ),
        (changed("processors", 0, "speed", to=1e-300), "processors['cpu'].speed", "between 1e-50"),
    ],
)
def test_vast_and_missing_numbers_are_named(data: dict[str, Any], where: str, message: str) -> None:
    """One message with the path of the number, before anything computes with it."""
    with pytest.raises(ModelError) as caught:
        model_from_json(data)
    assert where in str(caught.value)
    assert message in str(caught.value)


def test_threads_that_stick_to_cores_have_a_limit() -> None:
    """Each of them has a place in memory."""
    data = changed("processors", 0, "discipline", to="cores")
    data["tasks"][1]["threads"] = 1_000_000_000
    with pytest.raises(
        ModelError, match="threads that stick to cores are too many to simulate; the limit is 1000000"
    ):
        simulate(model_from_json(data))
