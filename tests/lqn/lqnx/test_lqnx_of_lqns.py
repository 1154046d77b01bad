"""Files as LQNS writes them: keywords in texts, comments, histograms in joins."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lqnx_samples import CLIENT, arc, file, graph, phases, read, server, there_and_back

from mup.errors import ModelError
from mup.lqn import Model, Processor
from mup.lqn.files import read_model
from mup.lqn.lqnx import model_to_lqnx
from simulator import simulate

OK = server(phases("e", 'host-demand-mean="1"'))


def test_a_keyword_in_a_text_is_no_variable() -> None:
    """``$Id: ... $`` in a description or comment is text; only where a number stands ``$x`` is a variable."""
    text = file(CLIENT, OK).replace(
        'name="m"', 'name="$m" description="$Id: x.lqnx 17 greg $" xml-debug="no"'
    )
    for tag in (
        'task name="c"',
        'entry name="ce"',
        'activity name="ce_1"',
        'synch-call dest="e"',
        'processor name="p"',
    ):
        assert tag in text
        text = text.replace(tag, f'{tag} comment="$Revision$"')
    model = read(text)
    assert model.name == "$m"
    assert there_and_back(model) == replace(model, provenance={})
    with pytest.raises(ModelError, match=r"line 5: activity.host-demand-mean: '\$d' is a variable without"):
        read(text.replace('host-demand-mean="0.5"', 'host-demand-mean="$d"'))


def test_a_histogram_of_a_join_is_no_activity() -> None:
    """A join may ask for the histogram of its delay; what it joins are its activities alone."""
    steps = arc("a", "b c", post="post-AND") + arc("b c", "d", pre="pre-AND")
    ask = '<service-time-distribution min="0" max="10" number-bins="10"/>'
    text = file(CLIENT, server(graph("a; b; c; d", steps, reply="d")))
    model = read(text.replace("<pre-AND>", f"<pre-AND>{ask}"))
    assert model.tasks == read(text).tasks
    assert any("histograms" in note for note in model.provenance["lqnx"]["notes"])


def urgent(word: str) -> Model:
    """Two customers on one core, the first of the higher priority; think time and demand have mean 1."""
    tasks = "".join(
        f'<task name="{name}" scheduling="ref" think-time="1" priority="{priority}"><entry name="e{name}">'
        f'<entry-phase-activities><activity name="a{name}" phase="1" host-demand-mean="1"/>'
        "</entry-phase-activities></entry></task>"
        for name, priority in (("hi", 2), ("lo", 1))
    )
    return read(file(f'<processor name="cpu" scheduling="{word}">{tasks}</processor>'))


@pytest.mark.parametrize("word", ["pri", "pp", "ppr"])
def test_preemptive_priority_has_three_names(word: str) -> None:
    """``pri`` is what LQNS calls preemptive priority, ``pp`` what the schema of its files calls it."""
    assert urgent(word).processors == (Processor(name="cpu", discipline="pp"),)


def test_preemptive_priority_is_written_as_lqns_reads_it() -> None:
    """LQNS knows the word ``pri`` alone."""
    text = model_to_lqnx(urgent("pp")).text
    assert '<processor name="cpu" scheduling="pri"' in text
    assert read(text).tasks == urgent("pp").tasks


def test_preemptive_priority_is_exact() -> None:
    """The Markov chain of two customers (at the core or thinking): the urgent one never waits."""
    states = [(hi, lo) for hi in (0, 1) for lo in (0, 1)]
    rates = np.zeros((4, 4))
    for i, (hi, lo) in enumerate(states):
        rates[i, states.index((1 - hi, lo))] += 1.0
        if lo == 0 or hi == 0:  # thinking ends; served only while the urgent one is away
            rates[i, states.index((hi, 1 - lo))] += 1.0
    rates -= np.diag(rates.sum(axis=1))
    share = np.linalg.lstsq(np.vstack([rates.T, np.ones(4)]), np.array([0.0] * 4 + [1.0]), rcond=None)[0]
    exact = {"hi": share[2] + share[3], "lo": share[1]}
    assert exact["hi"] == pytest.approx(0.5)
    result = simulate(urgent("pri"), horizon=50000.0, seed=1)
    for name, throughput in exact.items():
        found = result.tasks[name].throughput
        assert abs(found.mean - throughput) <= 3 * found.ci95, name
        assert found.ci95 < 0.02


WITH_VARIABLES = file(CLIENT.replace('multiplicity="3"', 'multiplicity="$n"'), OK)


def with_parameters(text: str) -> str:
    return WITH_VARIABLES.replace("<processor", f"<parameters>{text}</parameters><processor", 1)


def test_parameters_of_one_value_are_put_in() -> None:
    """``<parameters>`` are assignments; what a solver is to print is no part of the model."""
    text = with_parameters("\n$half = 2.5\n$n = 2 * $half\n")
    text = text.replace("</lqn-model>", "<results-collection>$n $x</results-collection></lqn-model>")
    assert read(text).task("c").threads == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WITH_VARIABLES, "line 3: task.multiplicity: '$n' is a variable without a value"),
        (with_parameters("\n$m = 1"), "'$n' is a variable without a value"),
        (with_parameters("\n\n$n = [1, 2]"), "line 5: '$n' takes several values"),
        (with_parameters("$n = 1 2"), "line 3: expected a variable and '=', got '2'"),
        (with_parameters("$n = 2.5"), "multiplicity: must be a whole number"),
        (
            WITH_VARIABLES.replace("</lqn-model>", "<lqx>$n = 1;</lqx></lqn-model>"),
            "a program that computes models",
        ),
        (
            WITH_VARIABLES.replace(
                "</lqn-model>", "<convergence-collection>$n = $m</convergence-collection></lqn-model>"
            ),
            "solved again until its variables converge",
        ),
    ],
)
def test_variables_without_one_value_are_refused(text: str, expected: str) -> None:
    """The message names the variable, or why it has no single value, with the line."""
    with pytest.raises(ModelError) as caught:
        read(text)
    assert expected in str(caught.value)


def test_infinity_has_the_name_lqns_writes() -> None:
    """LQNS writes infinitely many threads or cores as ``@infinity``."""
    text = server(phases("e", ""), 'multiplicity="@infinity"', 'multiplicity="@infinity"')
    model = read(file(CLIENT, text))
    assert model.task("s").threads == math.inf
    assert model.processor("p").discipline == "infinite"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            server(phases("e", "", entry='rwlock="r-lock"'), 'scheduling="rwlock"'),
            "no entry of this lock has the token 'read-unlock'",
        ),
        (
            server(phases("e", "", entry='rwlock="lock"'), 'scheduling="rwlock"'),
            "'r-lock', 'r-unlock', 'w-lock' and 'w-unlock' are for the entries of a task with scheduling",
        ),
        (
            server(phases("e", "", entry='rwlock="r-lock"')),
            "which all have one of them; got 'r-lock'",
        ),
        (
            OK.replace("<task", '<group name="g" share="0.5"><task')
            .replace("</task>", "</task></group>")
            .replace("<group", "\n<group"),
            "line 7: processor 'p', group 'g': processor groups are not supported",
        ),
        (
            server(
                graph("a", entry="e") + graph("b; c", arc("a b", "c", pre="pre-AND"), entry="f"),
            ),
            "not supported (one request would wait for another)",
        ),
    ],
    ids=["incomplete lock", "unknown lock", "lock elsewhere", "group", "join of entries"],
)
def test_what_a_model_does_not_have_is_refused_by_name(text: str, expected: str) -> None:
    """The message says what the element means, and on which line it is."""
    with pytest.raises(ModelError) as caught:
        read(file(CLIENT, text))
    assert expected in str(caught.value)


def test_the_json_format_of_lqns_is_named(tmp_path: Path) -> None:
    """It is no native model with a wrong schema; the message says what it is, and what to do."""
    path = tmp_path / "m.json"
    path.write_text('{"general": {}, "processor": [{"name": "p", "scheduling": "fcfs", "task": []}]}')
    with pytest.raises(ModelError, match="the JSON format of LQNS, which is not read") as caught:
        read_model(path)
    assert "lqn2xml" in caught.value.hint
