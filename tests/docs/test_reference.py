"""The tables of the reference list what the code has, and nothing else."""

from __future__ import annotations

import dataclasses
import re

import pytest
from doc_pages import ROOT

from mup.events.record import RECORD, Event
from mup.lqn import model
from mup.project import DatabaseConfig, ServiceConfig


def _section(page: str, heading: str) -> str:
    """Return the text below a heading, up to the next one of its level."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def _rows(table: str) -> list[list[str]]:
    """Return the cells of the rows of a table, or of several."""
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    "kind",
    [model.Model, model.Processor, model.Task, model.Entry, model.Activity, model.Precedence],
    ids=lambda kind: kind.__name__,
)
def test_the_model_file_has_these_fields(kind: type) -> None:
    """The table of each element lists the fields of its class."""
    fields = {field.name for field in dataclasses.fields(kind)}
    rows = _rows(_section("reference/model-schema.md", kind.__name__))
    documented = {name for row in rows for name in _names(row[0])}
    assert documented - {"schema"} == fields


def test_the_defaults_of_the_model_file() -> None:
    """Defaults in the tables are the defaults of the classes."""
    spelt: dict[str, object] = {
        "`null`": None,
        "`[]`": (),
        '`""`': "",
        "`false`": False,
        "none": None,
        "`{}`": {},
    }
    for kind in (model.Processor, model.Task, model.Entry, model.Activity, model.Precedence):
        for cell, default, *_ in _rows(_section("reference/model-schema.md", kind.__name__))[1:]:
            (name,) = _names(cell)
            if default == "required":
                continue
            (field,) = [f for f in dataclasses.fields(kind) if f.name == name]
            shown = spelt[default] if default in spelt else default.strip('`"')
            assert field.default == shown or str(field.default) == shown, f"{kind.__name__}.{name}"


@pytest.mark.parametrize(("table", "kind"), [("services", ServiceConfig), ("databases", DatabaseConfig)])
def test_the_fields_of_mup_toml(table: str, kind: type) -> None:
    """The table of mup.toml lists the fields of services and databases."""
    page = (ROOT / "docs/reference/mup-toml.md").read_text(encoding="utf-8")
    # Only the first row of a group names its table; the next group, or an empty line, ends it.
    group = re.search(rf"^\| `\[{table}\.NAME\]` (\|.*?)(?=\n\| `\[|\n\n)", page, re.MULTILINE | re.DOTALL)
    assert group is not None
    documented = {name for line in group[1].splitlines() for name in _names(line.split("|")[-4])}
    spelt = {"target": "class"}
    fields = {spelt.get(field.name, field.name) for field in dataclasses.fields(kind)} - {"name"}
    assert documented == fields


def test_the_events_of_the_log() -> None:
    """The table of events has every event with its number, and the size and format of a record are right."""
    section = _section("explanation/architecture.md", "Event log")
    events = _rows(section.partition("| event | number |")[2])
    numbers = [int(number) for row in events for number in row[1].split("/")]
    assert sorted(numbers) == sorted(Event)
    assert f"records of {RECORD.size} bytes" in section
    assert f"`{RECORD.format}`" in section
