"""The fast solution of networks of queues is exact, and so are its derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fitted_models import MEASURES, PATHS, TRUE, clients, loads, server, three_queues, two_layers

from analyzer.fitting.forward import AnalyticForward, ExactForward, forward_of
from analyzer.fitting.parameters import parameter
from mup.lqn import Constant, Exponential, Model, Processor
from simulator.analytic.product_form import product_form

FIGURES = (*MEASURES, "response_time", "cycle.cycle_time", "tasks.app.utilization", "tasks.app.busy")


def test_agrees_with_the_layered_estimate_and_its_differences() -> None:
    """Both forward models give the same means, and derivatives as far as differences are exact."""
    model, scales = three_queues(think=10.0), np.array(TRUE)
    parameters, trials = [parameter(p) for p in (*PATHS, "think")], loads([1, 2, 7])
    values = np.array([*TRUE, 10.0])
    scales = values
    exact = forward_of(model, parameters, scales, trials, FIGURES)
    assert isinstance(exact, ExactForward)
    means, slopes = exact.sensitivities(values)
    roughly, differences = AnalyticForward(model, parameters, scales, trials, FIGURES).sensitivities(values)
    np.testing.assert_allclose(means, roughly, rtol=1e-9)
    np.testing.assert_allclose(slopes, differences, rtol=0.03, atol=2e-3 * float(np.abs(slopes).max()))


def test_derivatives_are_exact() -> None:
    """Derivatives equal central differences of the exact means."""
    forward = forward_of(
        three_queues(), [parameter(p) for p in PATHS], np.array(TRUE), loads([3, 9]), FIGURES
    )
    values, slopes = np.array(TRUE), forward.sensitivities(np.array(TRUE))[1]
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        central = (forward.means(values + step) - forward.means(values - step)) / 2e-6
        np.testing.assert_allclose(slopes[..., k], central, rtol=1e-6, atol=1e-8)


def test_a_processor_without_waiting_is_no_queue() -> None:
    """A single thread on a core of its own has a product form; the core's utilization is known."""
    model = Model(
        name="own core",
        processors=(Processor(name="core"),),
        tasks=(clients(["a"], 5, 1.0), server("a", Exponential(0.3), processor="core")),
    )
    figures = ("processors.core.utilization", "tasks.a.utilization", "response_time")
    forward = forward_of(model, [parameter("demand.a.serve")], np.array([0.3]), loads([1, 5]), figures)
    assert forward.exact
    rough = AnalyticForward(model, [], np.zeros(0), loads([1, 5]), figures).means(np.zeros(0))
    np.testing.assert_allclose(forward.means(np.array([0.3])), rough, rtol=1e-4)


LAYERED = two_layers()


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(LAYERED, id="a-server-is-held-while-waiting"),
        pytest.param(
            Model(name="m", tasks=(clients(["a"], 3, 1.0), server("a", Constant(1.0)))), id="not-exponential"
        ),
        pytest.param(
            Model(name="m", tasks=(clients(["a"], 3, 1.0), server("a", Exponential(1.0), threads=2))),
            id="two-servers",
        ),
        pytest.param(
            Model(
                name="m",
                tasks=(clients(["a"], 3, 1.0), replace(server("a", Exponential(1.0)), replicas=2)),
            ),
            id="replicas",
        ),
    ],
)
def test_everything_else_is_left_to_the_estimate(model: Model) -> None:
    """A model without product form, or with one this module does not solve, is not taken for one."""
    assert product_form(model) is None
