"""Read and write the native model file (schema ``mup-lqn/1``, see docs/reference/model-schema.md)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from mup.errors import ModelError
from mup.json_text import RepeatedNameError, parse_json
from mup.lqn.distributions import Distribution
from mup.lqn.json_reader import Reader
from mup.lqn.model import (
    LOAD_DEPENDENCE_ABOVE,
    ONCE,
    SCHEMA,
    Activity,
    Call,
    Entry,
    Forward,
    LoadDependence,
    Migration,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
)
from mup.lqn.uncertainty import uncertainty_to_json
from mup.lqn.validation import rule_problems
from mup.whole_file import write_whole

__all__ = ["load_model", "model_from_json", "model_to_json", "save_model"]

_MAX_DIGITS = 300


def load_model(path: str | Path) -> Model:
    """Read a model file.

    Raises:
        ModelError: The file cannot be read, is not JSON, or breaks rules; all problems are listed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ModelError(f"cannot read the model: {reason}", where=str(path)) from error
    return model_from_text(text, str(path))


def model_from_text(text: str, where: str) -> Model:
    """Return the model a text describes.

    Args:
        text: All of a model file.
        where: Name of the file, for messages.

    Raises:
        ModelError: It is not JSON, or breaks rules; all problems are listed.
    """
    try:
        data = parse_json(text, parse_int=_integer)
    except RecursionError as error:
        raise ModelError("nested too deeply to be a model", where=where) from error
    except RepeatedNameError as error:
        raise ModelError(str(error), where=where, hint="leave one of them") from error
    except ValueError as error:
        raise ModelError(
            f"not JSON: {error}", where=where, hint="expected a model written by 'mup model'"
        ) from error
    try:
        return model_from_json(data)
    except ModelError as error:
        error.where = f"{where}: {error.where}" if error.where else where
        raise


def _integer(text: str) -> int:
    """Refuse numbers that no float can hold: every number of a model takes part in calculations."""
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def save_model(model: Model, path: str | Path) -> None:
    """Write a model file whole or not at all (a crash never leaves half a file).

    Raises:
        ModelError: The file cannot be written.
    """
    text = _laid_out(model_to_json(model), 0)
    write_whole(path, text + "\n", what="the model", error=ModelError)


def _laid_out(value: Any, depth: int) -> str:
    """Write JSON with indentation, but numbers that belong together on one line: there are thousands."""
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict) and value:
        parts = [f"{json.dumps(key)}: {_laid_out(item, depth + 1)}" for key, item in value.items()]
        return "{" + pad + ("," + pad).join(parts) + "\n" + " " * depth + "}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        parts = [_laid_out(item, depth + 1) for item in value]
        return "[" + pad + ("," + pad).join(parts) + "\n" + " " * depth + "]"
    return json.dumps(value, allow_nan=False)


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the JSON object of a model; defaults are left out, so files stay readable."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "name": model.name,
        "processors": [_processor_to_json(p) for p in model.processors],
        "tasks": [_task_to_json(t) for t in model.tasks],
        "provenance": dict(model.provenance),
    }
    if model.uncertainty is not None:
        data["uncertainty"] = uncertainty_to_json(model.uncertainty)
    return data


def _number(value: float) -> float | str:
    return "inf" if value == math.inf else int(value)


def _time(distribution: Distribution | None) -> dict[str, Any] | None:
    return None if distribution is None else distribution.to_json()


def _processor_to_json(processor: Processor) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": processor.name,
        "cores": _number(processor.cores),
        "discipline": processor.discipline,
        "speed": processor.speed,
    }
    if processor.migration is not None:
        data["migration"] = _changed(processor.migration, Migration(), "wake", "steal", "balance")
        if processor.migration.by_utilization:
            data["migration"]["by_utilization"] = [list(row) for row in processor.migration.by_utilization]
    if processor.turns is not None:
        data["turns"] = {"quantum": processor.turns.quantum, "preempt": processor.turns.preempt}
    if processor.parent is not None:
        data["parent"] = processor.parent
    if processor.core is not None:
        data["core"] = processor.core
    if processor.idling:
        data["idling"] = [list(point) for point in processor.idling]
    if processor.background:
        data["background"] = processor.background
    return data


def _changed(element: object, default: object, *fields: str) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    values = {field: getattr(element, field) for field in fields}
    return {field: value for field, value in values.items() if value != getattr(default, field)}


def _task_to_json(task: Task) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": task.name,
        "role": task.role,
        "threads": _number(task.threads),
        "replicas": task.replicas,
        "processor": task.processor,
    }
    if task.admission != "fifo":
        data["admission"] = task.admission
    if task.priority:
        data["priority"] = task.priority
    if task.think is not None:
        data["think"] = _time(task.think)
    if task.front is not None:
        data["front"] = {"request": _time(task.front.request), "reply": _time(task.front.reply)}
        if task.front.holds:
            data["front"]["holds"] = True
    if task.load_dependence is not None:
        data["load_dependence"] = _load_dependence_to_json(task.load_dependence)
    if task.setup is not None:
        data["setup"] = _setup_to_json(task.setup)
    data["entries"] = [_entry_to_json(e) for e in task.entries]
    return data


def _load_dependence_to_json(load_dependence: LoadDependence) -> dict[str, Any]:
    data: dict[str, Any] = {"rates": list(load_dependence.rates)}
    if load_dependence.by_thread:
        data["by_thread"] = True
    if load_dependence.above != LOAD_DEPENDENCE_ABOVE:
        data["above"] = load_dependence.above
    for field in ("demands", "delays"):
        if getattr(load_dependence, field):
            data[field] = {key: list(values) for key, values in getattr(load_dependence, field).items()}
    return data


def _setup_to_json(setup: Setup) -> dict[str, Any]:
    data: dict[str, Any] = {name: list(getattr(setup, name)) for name in ("gaps", "worker", "core")}
    if setup.by_thread:
        data["by_thread"] = True
    for field in ("demands", "delays"):
        if getattr(setup, field):
            data[field] = {key: list(values) for key, values in getattr(setup, field).items()}
    return data


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {"name": entry.name, "start": entry.start}
    if entry.fingerprint:
        data["fingerprint"] = entry.fingerprint
    if entry.paths:
        data["paths"] = [dict(p) for p in entry.paths]
    if entry.arrivals is not None:
        data["arrivals"] = _time(entry.arrivals)
    for field in ("priority", "token", "waits"):
        if getattr(entry, field):
            data[field] = getattr(entry, field)
    data["activities"] = [_activity_to_json(a) for a in entry.activities]
    if entry.precedences:
        data["precedences"] = [_precedence_to_json(p) for p in entry.precedences]
    if entry.forwards:
        data["forwards"] = [_forward_to_json(f) for f in entry.forwards]
    return data


def _forward_to_json(forward: Forward) -> dict[str, Any]:
    data: dict[str, Any] = {"task": forward.task, "entry": forward.entry}
    if forward.probability != 1:
        data["probability"] = forward.probability
    return data


def _activity_to_json(activity: Activity) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": activity.name,
        "kind": activity.kind,
        "demand": _time(activity.demand),
        "delay": _time(activity.delay),
    }
    if activity.calls:
        data["calls"] = [_call_to_json(c) for c in activity.calls]
    for flag in ("interleaved", "replies", "detached"):
        if getattr(activity, flag):
            data[flag] = True
    if activity.line:
        data["line"] = activity.line
    return data


def _call_to_json(call: Call) -> dict[str, Any]:
    data: dict[str, Any] = {"task": call.task, "entry": call.entry}
    if call.count != ONCE:
        data["count"] = _time(call.count)
    if call.kind != "synchronous":
        data["kind"] = call.kind
    return data


def _precedence_to_json(precedence: Precedence) -> dict[str, Any]:
    data: dict[str, Any] = {"pre": list(precedence.pre), "post": list(precedence.post)}
    if precedence.join != "sequence":
        data["join"] = precedence.join
    if precedence.quorum is not None:
        data["quorum"] = precedence.quorum
    if precedence.fork != "sequence":
        data["fork"] = precedence.fork
    if precedence.fork == "or":
        data["probabilities"] = None if precedence.probabilities is None else list(precedence.probabilities)
    if precedence.counts:
        data["counts"] = [_time(c) for c in precedence.counts]
    for name in ("first", "limit"):
        if getattr(precedence, name) is not None:
            data[name] = getattr(precedence, name)
    return data


def model_from_json(data: Any) -> Model:
    """Build a model from a parsed file.

    Raises:
        ModelError: One message that lists every problem with the path of its element.
    """
    if not isinstance(data, dict):
        raise ModelError(f"a model is a JSON object, got {type(data).__name__}")
    if "schema" not in data and isinstance(data.get("processor"), list):
        raise ModelError(
            "this is the JSON format of LQNS, which is not read",
            hint="write the model as lqnx or as text with the tools of LQNS ('lqn2xml', 'lqn2lqn')",
        )
    if data.get("schema") != SCHEMA:
        raise ModelError(
            f"must be {SCHEMA!r}, got {data.get('schema')!r}",
            where="schema",
            hint="write the model again with 'mup model'",
        )
    reader = Reader()
    reader.keys(data, "", "schema name tasks", "processors provenance uncertainty")
    processors = tuple(reader.processor(p, where) for p, where in reader.objects(data, "processors", ""))
    tasks = tuple(reader.task(t, where) for t, where in reader.objects(data, "tasks", ""))
    name = data.get("name")
    name = name if isinstance(name, str) and name else "model"
    provenance = data.get("provenance", {})
    if not isinstance(provenance, dict):
        reader.report(f"must be an object, got {type(provenance).__name__}", "provenance")
    uncertainty = reader.uncertainty(data.get("uncertainty"), "uncertainty")
    if not reader.problems:
        return Model(
            name=name,
            processors=processors,
            tasks=tasks,
            provenance=provenance,
            uncertainty=uncertainty,
        )
    problems = reader.problems
    if not reader.incomplete:
        problems += rule_problems(processors, tasks)
    if len(problems) == 1:
        raise problems[0]
    listing = "\n".join(f"  {p}" for p in problems)
    raise ModelError(f"{len(problems)} problems\n{listing}", where=name)
