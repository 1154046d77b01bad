"""A file that is no usable lqnx ends in one message that says where and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from lqnx_samples import CLIENT, arc, file, graph, phases, read, server

from mup.errors import ModelError
from mup.lqn.files import read_model
from mup.lqn.lqnx import load_lqnx
from mup.lqn.lqnx.elements import MAX_DEPTH

OK = server(phases("e", 'host-demand-mean="1"'))


def refusal(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not XML"),
        ("<lqn-model>\n <processor></lqn-model>", "line 2, column"),
        ("no xml at all", "line 1, column 1"),
        ('<!DOCTYPE x [<!ENTITY a "aaaa">]><lqn-model>&a;</lqn-model>', "document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><lqn-model/>', "document type"),
        ("<lqn-model>&nothing;</lqn-model>", "not XML"),
        ('<?xml version="1.0" encoding="nonsense"?><lqn-model/>', "not XML"),
        ("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "inside each other"),
        ("<html><body/></html>", "outermost element is <html>"),
    ],
)
def test_what_is_no_lqnx(text: str, expected: str) -> None:
    """Broken, dangerous or foreign XML is refused with the place."""
    message = refusal(text)
    assert expected in message
    assert message.startswith("t.lqnx")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('dest="e"', 'dest="ee"', "no entry is named 'ee'; did you mean 'e'"),
        ('dest="e"', 'dest="ce"', "'c' is a reference task and cannot be called"),
        ('scheduling="ref"', 'scheduling="fcfs"', "think time"),
        ('multiplicity="3"', 'multiplicity="2.5"', "whole number"),
        ('multiplicity="3"', 'multiplicity="1e300"', "from 1 to 1000000000"),
        ('multiplicity="3"', 'multiplicity="inf"', "clients must be a whole number"),
        ('host-demand-mean="0.5"', 'host-demand-mean="-0.5"', "must be a number >= 0, got '-0.5'"),
        ('host-demand-mean="0.5"', 'host-demand-mean="1e400"', "must be a number >= 0, got '1e400'"),
        ('host-demand-mean="0.5"', 'host-demand-mean="1_0"', "must be a number >= 0, got '1_0'"),
        ('host-demand-mean="0.5"', 'host-demand-mean="nan"', "must be a number >= 0"),
        ('host-demand-mean="0.5"', 'host-demand-mean="$x"', "variable"),
        ('host-demand-mean="0.5"', 'host-demand-maen="0.5"', "did you mean 'host-demand-mean'"),
        ('calls-mean="2"', 'calls-mean="-1"', "must be a number >= 0, got '-1'"),
        ('phase="1"', 'phase="4"', "phase 4 does not exist"),
        ('scheduling="inf"', 'scheduling="cfs"', "scheduling 'cfs'"),
        ('scheduling="inf"', 'scheduling="rand"', "scheduling 'rand'"),
        ('scheduling="inf"', 'scheduling="infinite"', "unknown scheduling 'infinite'; known: "),
        ('scheduling="ref"', 'scheduling="rwlock"', "'r-lock', 'r-unlock'"),
        ('scheduling="ref"', 'scheduling="poll"', "polling"),
        ('think-time="2"', 'queue-length="5"', "bounded queue"),
        ('<entry name="ce"', '<entrie name="ce"', "not XML"),
        ("<synch-call", '<sync-call dest="e"/><synch-call', "unknown element <sync-call>"),
        ("<processor", "<lqx>x</lqx><processor", "a program that computes models"),
        ('name="c" ', "", "attribute 'name' is missing"),
        ('type="PH1PH2"', 'open-arrival-rate="1"', "a reference task has no arrivals"),
        ('type="PH1PH2"', 'semaphore="wait"', "semaphore"),
    ],
)
def test_a_wrong_value_is_named(old: str, new: str, expected: str) -> None:
    """One wrong attribute or element of a good file is found and named, with its line."""
    assert old in CLIENT
    text = file(CLIENT.replace(old, new, 1), OK)
    message = refusal(text)
    assert expected in message
    assert "Error" not in message


def test_a_fraction_of_deterministic_calls_is_refused() -> None:
    """DETERMINISTIC calls are counted in whole numbers."""
    text = CLIENT.replace('host-demand-mean="0.5"', 'call-order="DETERMINISTIC"').replace('"2"/>', '"2.5"/>')
    assert "whole number" in refusal(file(text, OK))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (graph("a; b; c", arc("a", 'b:prob="0.3" c:prob="0.6"', post="post-OR"), "b c"), "sum to 0.9, not to 1"),
        (graph("a; b", arc("a", "x")), "no activity is named 'x'"),
        (graph("a; b"), "cannot be reached: b"),
        (graph("a; b", arc("a", "b") + arc("b", "a")), "cannot follow another activity"),
        (graph("a; b; c", arc("a", "b") + arc("b", "c") + arc("b", "c")), "already has a successor"),
        (graph("a", reply="x"), "no activity is named 'x'"),
        (graph("a; b", arc("a", 'b:count="-1"', post="post-LOOP")), "must be a number >= 0"),
        (graph("a; b; c; d", arc("a", "b c", post="post-AND") + arc("b c", "d", pre='pre-AND quorum="5"')), "quorum"),
        ('<entry name="e" type="NONE"/>', "has no activity"),
        (phases("e", "") + phases("e", ""), "a second entry is named 'e'"),
        (graph("a").replace('bound-to-entry="e"', 'bound-to-entry="f"'), "the task has no entry 'f'"),
        (graph("a").replace("<task-act", "<task-activities><reply-entry/></task-activities><task-act"), "'name' is missing"),
        (graph("a:host-demand-mean='-3'; b", arc("a", "b")), "activity 'a'.host-demand-mean"),
    ],
)  # fmt: skip
def test_wrong_graphs(inside: str, expected: str) -> None:
    """What is wrong with an activity graph is named."""
    assert expected in refusal(file(CLIENT, server(inside)))


def test_entries_that_meet_in_a_join_are_refused() -> None:
    """A join between the graphs of two entries has no meaning in a model."""
    first, second = graph("a"), graph("b; c", arc("a b", "c", pre="pre-AND"), entry="f")
    message = refusal(file(CLIENT, server(first + second)))
    assert "entries that share activities, or meet in a join, are not supported" in message


def test_nothing_that_generates_load() -> None:
    """A file without reference task and without arrivals is refused with the remedy."""
    message = refusal(file(OK))
    assert "nothing generates load" in message
    assert "open-arrival-rate" in message


def test_calls_in_a_circle() -> None:
    """A cycle of synchronous calls is refused."""
    text = phases("e", '><synch-call dest="e" calls-mean="1"/>')
    assert "synchronous calls form a cycle" in refusal(file(CLIENT, server(text)))


def test_all_problems_are_listed_at_once() -> None:
    """Three mistakes give one message with three lines, each with its own place."""
    text = file(
        CLIENT, server(phases("e", 'host-demand-mean="-1"', 'host-demand-cvsq="x"'), 'priority="1.5"')
    )
    message = refusal(text)
    assert "3 problems" in message
    assert message.count("line ") == 3


def test_processor_groups_are_named() -> None:
    """Groups with shares cannot be expressed and are named."""
    text = OK.replace("<task", '<group name="g" share="1"><task').replace("</task>", "</task></group>")
    assert "group 'g'" in refusal(file(CLIENT, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are errors like any other, through both entrances."""
    for load in (load_lqnx, read_model):
        for path in (tmp_path / "none.lqnx", tmp_path):
            with pytest.raises(ModelError, match="cannot read the model"):
                load(path)


def test_the_format_is_recognised_by_name_or_content(tmp_path: Path) -> None:
    """A file without a telling name is read as what it begins with."""
    path = tmp_path / "model"
    path.write_text("\n" + file(CLIENT, OK).partition("\n")[2])
    assert read_model(path).name == "m"
