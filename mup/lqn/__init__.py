"""The layered queueing network shared by analyzer, simulator and command line: pure data."""

from mup.lqn.distributions import Constant, Distribution, Empirical, Erlang, Exponential, Uniform
from mup.lqn.json_io import load_model, model_from_json, model_to_json, save_model
from mup.lqn.model import (
    SCHEMA,
    Activity,
    Call,
    Entry,
    Front,
    Model,
    Precedence,
    Processor,
    Task,
    entry_label,
)

__all__ = [
    "SCHEMA",
    "Activity",
    "Call",
    "Constant",
    "Distribution",
    "Empirical",
    "Entry",
    "Erlang",
    "Exponential",
    "Front",
    "Model",
    "Precedence",
    "Processor",
    "Task",
    "Uniform",
    "entry_label",
    "load_model",
    "model_from_json",
    "model_to_json",
    "save_model",
]
