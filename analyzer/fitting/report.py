"""Report of a fit: the JSON of ``mup fit``, and the fitted model as a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import Data
from analyzer.fitting.design import Experiment, elasticities
from analyzer.fitting.fit import Fit
from analyzer.fitting.forward import Settings
from analyzer.fitting.parameters import Parameter
from analyzer.fitting.predictions import Prediction, draws_of
from analyzer.fitting.structures import FTest
from mup.lqn.model import Model
from mup.lqn.refs import Names
from mup.lqn.uncertainty import Replicate, Uncertainty

__all__ = [
    "FORMER_NAME",
    "REPLICATES",
    "comparison",
    "document",
    "fitted_model",
    "ranking",
    "with_replicates",
]

FloatArray = npt.NDArray[np.float64]

FORMER_NAME: Final = "doubts"
"""Of the field ``warnings``, for programs that read it before its name changed."""
REPLICATES: Final = 20
"""Models that the report's uncertainty is taken from; what-ifs simulate each."""


def document(
    fit: Fit, data: Data, predictions: Sequence[tuple[Settings, Sequence[Prediction]]]
) -> dict[str, Any]:
    """Return the JSON document of a fit."""
    sure = fit.confidence
    content: dict[str, Any] = {
        "parameters": _parameters(fit),
        "level": 0.95 if sure is None else sure.level,
        "squares": fit.squares,
        "freedom": fit.freedom,
        "p_value": fit.p_value,
        "errors": fit.problem.errors.source,
        "learned_errors": fit.learned_errors,
        "exact": fit.exact,
        "corrections": fit.corrections,
    }
    if sure is not None:
        content["covariance"] = {
            "parameters": [p.path for p in fit.problem.parameters],
            "matrix": [[_finite(c) for c in row] for row in sure.covariance.tolist()],
            "factor": sure.factor,
            "radius": sure.ellipsoid.radius,
        }
    content["whole"] = [
        {"values": list(key), "squares": squares} for key, squares in sorted(fit.whole.items()) if key
    ]
    content["trials"] = [
        {
            "settings": {s.path: v for s, v in trial.settings},
            "residuals": {
                m: _finite(r) for m, r in zip(data.measures, row.tolist(), strict=True) if math.isfinite(r)
            },
            "sensitivities": {
                m: {p.path: float(s) for p, s in zip(fit.problem.parameters, column, strict=True)}
                for m, column in zip(data.measures, slopes, strict=True)
            },
        }
        for trial, row, slopes in zip(data.trials, fit.residuals, elasticities(fit), strict=True)
    ]
    content["predictions"] = [
        {
            "settings": {s.path: v for s, v in settings},
            "figures": {
                m: {
                    "mean": p.mean,
                    "low": p.interval.low,
                    "high": p.interval.high,
                    "joint": [p.joint.low, p.joint.high],
                }
                for m, p in zip(data.measures, figures, strict=True)
            },
        }
        for settings, figures in predictions
    ]
    content["warnings"] = content[FORMER_NAME] = list(fit.warnings)
    return content


def comparison(other: Fit, test: FTest) -> dict[str, Any]:
    """Return the JSON object of a second structure."""
    return {
        "parameters": _parameters(other),
        "warnings": list(other.warnings),
        FORMER_NAME: list(other.warnings),
        "test": {
            **asdict(test),
            "statistic": None if math.isnan(test.statistic) else _finite(test.statistic),
            "p_value": None if math.isnan(test.p_value) else test.p_value,
            "significant": test.significant,
        },
    }


def ranking(fit: Fit, found: Sequence[Experiment]) -> list[dict[str, Any]]:
    """Return the JSON list of further trials."""
    paths = [p.path for p in fit.problem.parameters]
    return [
        {
            "settings": {s.path: v for s, v in e.settings},
            "shrinkage": e.shrinkage,
            "half_widths": dict(zip(paths, e.half_widths, strict=True)),
        }
        for e in found
    ]


def _parameters(fit: Fit) -> dict[str, Any]:
    return {
        p.path: {
            "value": value,
            "low": _finite(own.low),
            "high": _finite(own.high),
            "method": own.method,
            "joint": [_finite(all_.low), _finite(all_.high)],
        }
        for p, value, own, all_ in zip(fit.parameters, fit.values, fit.intervals, fit.joint, strict=True)
    }


def _finite(value: float) -> float | str:
    return float(value) if math.isfinite(value) else "inf" if value > 0 else "-inf"


def fitted_model(fit: Fit, source: str, seed: int) -> Model:
    """Return the fitted model with a note on where its numbers come from, and how sure they are.

    Demands and delays come with replicates: draws from the distribution of the estimates, as factors. ``mup
    whatif`` turns them into prediction intervals. Estimates of 0 have none.
    """
    note = {
        "measurements": source,
        "parameters": {
            p.path: {"value": v, "low": _finite(i.low), "high": _finite(i.high)}
            for p, v, i in zip(fit.parameters, fit.values, fit.intervals, strict=True)
        },
        "squares": fit.squares,
        "freedom": fit.freedom,
    }
    problem, draws = fit.problem, draws_of(fit, REPLICATES, seed)
    return with_replicates(fit.model, problem.parameters, fit.solution.values, draws, {"fit": note})


def with_replicates(
    model: Model,
    parameters: Sequence[Parameter],
    values: FloatArray,
    draws: FloatArray,
    provenance: Mapping[str, Any],
) -> Model:
    """Return a model that says how sure its parameters are, and where they come from.

    Args:
        model: With the values of the parameters.
        parameters: Those that were estimated, n of them.
        values: Their values, shape (n,).
        draws: From their distribution, shape (replicates, n).
        provenance: What is noted in addition.
    """
    replicates = tuple(_replicate(model, parameters, values, row) for row in draws)
    discrepancy = None if model.uncertainty is None else model.uncertainty.discrepancy
    return replace(
        model,
        provenance={**model.provenance, **provenance},
        uncertainty=Uncertainty(replicates=replicates, discrepancy=discrepancy),
    )


def _replicate(
    model: Model, parameters: Sequence[Parameter], values: FloatArray, drawn: FloatArray
) -> Replicate:
    factors: dict[str, dict[str, float]] = {"demand": {}, "delay": {}}
    for parameter, value, centre in zip(parameters, drawn, values, strict=True):
        if parameter.kind in factors and centre > 0:
            for label in _activities(model, parameter.name):
                factors[parameter.kind][label] = float(value / centre)
    return Replicate(demands=factors["demand"], delays=factors["delay"])


def _activities(model: Model, name: str) -> list[str]:
    """Return the activities a parameter's name stands for, as results name them."""
    names = Names(model.tasks)
    owner = names.spoken_entry(name)
    if owner is None:
        return [names.activity(names.spoken_activity(name))]
    return [names.activity(ref) for ref in names.activities() if ref.owner == owner]
