"""Read and write the native model file (schema ``mup-lqn/1``, see docs/reference/model-schema.md)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mup.errors import ModelError
from mup.lqn.distributions import Distribution, distribution_from_json
from mup.lqn.model import SCHEMA, Activity, Call, Entry, Front, Model, Precedence, Processor, Task

__all__ = ["load_model", "model_from_json", "model_to_json", "save_model"]

T = TypeVar("T")

_MAX_DIGITS = 300


def load_model(path: str | Path) -> Model:
    """Read a model file.

    Raises:
        ModelError: The file cannot be read, is not JSON, or breaks rules; all problems are listed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ModelError(f"cannot read the model: {reason}", where=str(path)) from error
    try:
        data = json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except RecursionError as error:
        raise ModelError("nested too deeply to be a model", where=str(path)) from error
    except ValueError as error:
        raise ModelError(
            f"not JSON: {error}", where=str(path), hint="expected a model written by 'mup model'"
        ) from error
    try:
        return model_from_json(data)
    except ModelError as error:
        error.where = f"{path}: {error.where}" if error.where else str(path)
        raise


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number a model may contain")


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
    target = Path(path)
    text = json.dumps(model_to_json(model), indent=1, allow_nan=False) + "\n"
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)  # noqa: PTH101  (mkstemp makes it private)
        os.replace(temporary, target)  # noqa: PTH105
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
        raise ModelError(f"cannot write the model: {error.strerror}", where=str(path)) from error


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the JSON object of a model; defaults are left out, so files stay readable."""
    return {
        "schema": SCHEMA,
        "name": model.name,
        "processors": [
            {"name": p.name, "cores": _number(p.cores), "discipline": p.discipline, "speed": p.speed}
            for p in model.processors
        ],
        "tasks": [_task_to_json(t) for t in model.tasks],
        "provenance": dict(model.provenance),
    }


def _number(value: float) -> float | str:
    return "inf" if value == math.inf else int(value)


def _time(distribution: Distribution | None) -> dict[str, Any] | None:
    return None if distribution is None else distribution.to_json()


def _task_to_json(task: Task) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": task.name,
        "role": task.role,
        "threads": _number(task.threads),
        "replicas": task.replicas,
        "processor": task.processor,
    }
    if task.think is not None:
        data["think"] = _time(task.think)
    if task.front is not None:
        data["front"] = {"request": _time(task.front.request), "reply": _time(task.front.reply)}
    data["entries"] = [_entry_to_json(e) for e in task.entries]
    return data


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {"name": entry.name, "start": entry.start}
    if entry.fingerprint:
        data["fingerprint"] = entry.fingerprint
    if entry.paths:
        data["paths"] = [dict(p) for p in entry.paths]
    data["activities"] = [_activity_to_json(a) for a in entry.activities]
    if entry.precedences:
        data["precedences"] = [_precedence_to_json(p) for p in entry.precedences]
    return data


def _activity_to_json(activity: Activity) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": activity.name,
        "kind": activity.kind,
        "demand": _time(activity.demand),
        "delay": _time(activity.delay),
    }
    if activity.calls:
        data["calls"] = [{"task": c.task, "entry": c.entry} for c in activity.calls]
    for flag in ("replies", "detached"):
        if getattr(activity, flag):
            data[flag] = True
    if activity.line:
        data["line"] = activity.line
    return data


def _precedence_to_json(precedence: Precedence) -> dict[str, Any]:
    data: dict[str, Any] = {"pre": list(precedence.pre), "post": list(precedence.post)}
    if precedence.join != "sequence":
        data["join"] = precedence.join
    if precedence.fork != "sequence":
        data["fork"] = precedence.fork
    if precedence.fork == "or":
        data["probabilities"] = None if precedence.probabilities is None else list(precedence.probabilities)
    return data


class _Reader:
    """Collects every problem of a file instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[ModelError] = []

    def report(self, message: str, where: str) -> None:
        self.problems.append(ModelError(message, where=where))

    def build(self, make: Callable[[], T], where: str) -> T | None:
        """Run a constructor; a rule it breaks is collected under ``where``."""
        try:
            return make()
        except ModelError as error:
            # Elements with a name know their own path; distributions only know the field.
            if not error.where.startswith(("tasks[", "processors[")):
                error.where = f"{where}.{error.where}" if error.where else where
            self.problems.append(error)
        except TypeError as error:
            self.report(str(error).split(") ", 1)[-1], where)
        return None

    def objects(self, data: dict[str, Any], field: str, where: str) -> list[tuple[dict[str, Any], str]]:
        """Return the objects of a list with the path of each; anything else is a problem."""
        value = data.get(field, [])
        place = f"{where}.{field}" if where else field
        if not isinstance(value, list):
            self.report(f"must be a list, got {type(value).__name__}", place)
            return []
        result = []
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                self.report(f"must be an object, got {type(item).__name__}", f"{place}[{index}]")
                continue
            name = item.get("name")
            result.append((item, f"{place}[{name!r}]" if isinstance(name, str) else f"{place}[{index}]"))
        return result

    def keys(self, data: dict[str, Any], where: str, required: str, optional: str = "") -> bool:
        """Check the fields of an object against two space-separated lists."""
        need, may = required.split(), optional.split()
        missing = [k for k in need if k not in data]
        for key in missing:
            self.report(f"field {key!r} is missing", where)
        for key in data:
            if key not in need and key not in may:
                self.report(f"unknown field {key!r}; known: {', '.join(need + may)}", where)
        return not missing

    def text(self, data: dict[str, Any], field: str, where: str) -> str:
        value = data.get(field)
        if not isinstance(value, str) or not value:
            self.report(f"must be a non-empty text, got {value!r}", f"{where}.{field}")
            return ""
        return value

    def names(self, data: dict[str, Any], field: str, where: str) -> tuple[str, ...]:
        value = data.get(field)
        if not isinstance(value, list) or not all(isinstance(n, str) for n in value):
            self.report(f"must be a list of activity names, got {value!r}", f"{where}.{field}")
            return ()
        return tuple(value)

    def number(self, data: dict[str, Any], field: str, where: str, default: float) -> float:
        value = data.get(field, default)
        if value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self.report(f"must be a number or 'inf', got {value!r}", f"{where}.{field}")
            return default
        return value

    def time(self, data: dict[str, Any], field: str, where: str) -> Distribution | None:
        return self.build(lambda: distribution_from_json(data.get(field)), f"{where}.{field}")

    def processor(self, data: dict[str, Any], where: str) -> Processor | None:
        self.keys(data, where, "name", "cores discipline speed")
        name = self.text(data, "name", where)
        cores = self.number(data, "cores", where, 1)
        return self.build(
            lambda: Processor(
                name=name, cores=cores, discipline=data.get("discipline", "ps"), speed=data.get("speed", 1.0)
            ),
            where,
        )

    def task(self, data: dict[str, Any], where: str) -> Task | None:
        self.keys(data, where, "name entries", "role threads replicas processor think front")
        name = self.text(data, "name", where)
        role = data.get("role", "service")
        roles = ("reference", "service", "network", "database", "other")
        if role not in roles:
            self.report(f"must be one of {', '.join(roles)}, got {role!r}", f"{where}.role")
        entries = [self.entry(e, spot) for e, spot in self.objects(data, "entries", where)]
        front = None
        if (raw := data.get("front")) is not None:
            spot = f"{where}.front"
            if isinstance(raw, dict) and self.keys(raw, spot, "request reply"):
                front = Front(request=self.time(raw, "request", spot), reply=self.time(raw, "reply", spot))
            elif not isinstance(raw, dict):
                self.report("must be an object with 'request' and 'reply'", spot)
        processor = data.get("processor")
        if processor is not None and not isinstance(processor, str):
            self.report(f"must be the name of a processor or null, got {processor!r}", f"{where}.processor")
            processor = None
        threads = self.number(data, "threads", where, 1)
        replicas = self.number(data, "replicas", where, 1)
        think = self.time(data, "think", where)
        return self.build(
            lambda: Task(
                name=name,
                role=role,
                threads=threads,
                replicas=int(replicas) if replicas == replicas // 1 and replicas < math.inf else replicas,  # type: ignore[arg-type]
                processor=processor,
                entries=tuple(e for e in entries if e is not None),
                front=front,
                think=think,
            ),
            where,
        )

    def entry(self, data: dict[str, Any], where: str) -> Entry | None:
        self.keys(data, where, "name start activities", "precedences paths fingerprint")
        activities = [self.activity(a, spot) for a, spot in self.objects(data, "activities", where)]
        precedences = [self.precedence(p, spot) for p, spot in self.objects(data, "precedences", where)]
        paths = self.objects(data, "paths", where)
        for path, spot in paths:
            self.path(path, spot)
        return Entry(
            name=self.text(data, "name", where),
            start=self.text(data, "start", where),
            activities=tuple(activities),
            precedences=tuple(precedences),
            paths=tuple(p for p, _ in paths),
            fingerprint=data.get("fingerprint", ""),
        )

    def path(self, data: dict[str, Any], where: str) -> None:
        """Check what statistics and calibration read of a path; the rest is for display."""
        for field in ("first", "ends"):
            if not isinstance(data.get(field), str):
                self.report(f"must be a text, got {data.get(field)!r}", f"{where}.{field}")
        if not isinstance(data.get("operations"), list):
            self.report("must be a list of operations", f"{where}.operations")
        for operation, spot in self.objects(data, "operations", where):
            of = operation.get("of")
            if of is not None and (isinstance(of, bool) or not isinstance(of, int)):
                self.report(f"must be an index or null, got {of!r}", f"{spot}.of")
            for field in ("op", "target"):
                if not isinstance(operation.get(field), str):
                    self.report(f"must be a text, got {operation.get(field)!r}", f"{spot}.{field}")

    def activity(self, data: dict[str, Any], where: str) -> Activity:
        self.keys(data, where, "name", "kind demand delay calls replies detached line")
        kinds = ("local", "registry", "communication", "think", "after", "choice")
        kind = data.get("kind", "local")
        if kind not in kinds:
            self.report(f"must be one of {', '.join(kinds)}, got {kind!r}", f"{where}.kind")
        calls = []
        for call, spot in self.objects(data, "calls", where):
            self.keys(call, spot, "task entry")
            calls.append(Call(task=self.text(call, "task", spot), entry=self.text(call, "entry", spot)))
        return Activity(
            name=self.text(data, "name", where),
            kind=kind,
            demand=self.time(data, "demand", where),
            delay=self.time(data, "delay", where),
            calls=tuple(calls),
            replies=bool(data.get("replies", False)),
            detached=bool(data.get("detached", False)),
            line=data.get("line", 0),
        )

    def precedence(self, data: dict[str, Any], where: str) -> Precedence:
        self.keys(data, where, "pre post", "join fork probabilities")
        odds = data.get("probabilities")
        if odds is not None and (
            not isinstance(odds, list)
            or any(isinstance(p, bool) or not isinstance(p, int | float) for p in odds)
        ):
            self.report(f"must be a list of numbers or null, got {odds!r}", f"{where}.probabilities")
            odds = None
        return Precedence(
            pre=self.names(data, "pre", where),
            post=self.names(data, "post", where),
            join=data.get("join", "sequence"),
            fork=data.get("fork", "sequence"),
            probabilities=None if odds is None else tuple(odds),
        )


def model_from_json(data: Any) -> Model:
    """Build a model from a parsed file.

    Raises:
        ModelError: One message that lists every problem with the path of its element.
    """
    if not isinstance(data, dict):
        raise ModelError(f"a model is a JSON object, got {type(data).__name__}")
    if data.get("schema") != SCHEMA:
        raise ModelError(
            f"must be {SCHEMA!r}, got {data.get('schema')!r}",
            where="schema",
            hint="write the model again with 'mup model'",
        )
    reader = _Reader()
    reader.keys(data, "", "schema name tasks", "processors provenance")
    processors = [reader.processor(p, where) for p, where in reader.objects(data, "processors", "")]
    tasks = [reader.task(t, where) for t, where in reader.objects(data, "tasks", "")]
    name = data.get("name")
    name = name if isinstance(name, str) and name else "model"
    provenance = data.get("provenance", {})
    if not isinstance(provenance, dict):
        reader.report(f"must be an object, got {type(provenance).__name__}", "provenance")
    if not reader.problems:
        return Model(
            name=name,
            processors=tuple(p for p in processors if p is not None),
            tasks=tuple(t for t in tasks if t is not None),
            provenance=provenance,
        )
    # Rules between elements are not checked here: an element that could not be built would show up
    # again as a missing one wherever it is referred to.
    problems = reader.problems
    if len(problems) == 1:
        raise problems[0]
    listing = "\n".join(f"  {p}" for p in problems)
    raise ModelError(f"{len(problems)} problems\n{listing}", where=name)
