"""The checks of a run notice when something is wrong with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sim_models import act, clients, entry, exp, model, ps, service

from mup.errors import SimulationError
from simulator.figures.operational_laws import check_identities, law_warnings
from simulator.figures.output import Window, open_window
from simulator.machine.recording import AREA, ENTERED, Bins, Layout
from simulator.machine.reference.engine import ReferenceEngine
from simulator.program import Nominal, compile_model


@pytest.fixture
def window() -> Window:
    """The measured window of a small queue, untampered."""
    program = compile_model(
        model(
            clients(5, exp(0.5), "A.a"),
            service("A", entry("a", act("w", exp(0.1))), threads=2, processor="cpu"),
            processors=(ps(),),
        )
    )
    layout, engine = Layout(program), ReferenceEngine(program, 1)
    bins = Bins(layout.width, 0.5)
    while bins.end < 800:
        engine.run_until(bins.next_time)
        bins.add(engine.snapshot())
    return open_window(program, layout, bins)


def test_an_honest_run_passes(window: Window) -> None:
    """Nothing is wrong with an untampered run."""
    check_identities(window)
    assert law_warnings(window) == []


def test_lost_thread_time_is_an_error(window: Window) -> None:
    """A millionth of the busy time missing from one account is noticed."""
    column = window.layout.busy(0) + AREA
    window.sums[0, column] -= 1e-6 * window.sums[:, column].sum()
    with pytest.raises(SimulationError, match=r"tasks\['A'\] busy: integral"):
        check_identities(window)


def test_lost_request_is_an_error(window: Window) -> None:
    """An arrival that was not counted is noticed."""
    window.sums[3, window.layout.inside(1) + ENTERED] -= 1
    with pytest.raises(SimulationError, match=r"A\.a inside: arrivals - departures"):
        check_identities(window)


def test_lost_processor_time_is_an_error(window: Window) -> None:
    """Service that did not make a core busy is noticed."""
    window.sums[3, window.layout.server(0)] *= 1.001
    with pytest.raises(SimulationError, match=r"processors\['cpu'\]"):
        check_identities(window)


@pytest.mark.parametrize(
    ("nominal", "message"),
    [
        (Nominal(think=0.55, demand=(0.1,), total=0.65), "Little's law: 'U'"),
        (Nominal(think=0.5, demand=(0.11,), total=0.61), "utilization law: processor 'cpu'"),
    ],
)
def test_wrong_nominal_means_are_doubted(window: Window, nominal: Nominal, message: str) -> None:
    """Clients that think, or demands that weigh, 10 % more than the model says raise a warning."""
    population = replace(window.program.populations[0], nominal=nominal)
    other = replace(window, program=replace(window.program, populations=(population,)))
    found = law_warnings(other)
    assert len(found) == 1
    assert message in found[0]
