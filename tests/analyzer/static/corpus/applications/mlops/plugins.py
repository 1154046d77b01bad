"""Registries of plugins: feature sources, drift detectors, training steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from mup import Communication
from mup.errors import CallError
from support import ApiError

F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[F]):
    """Names of plugins of a kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._plugins: dict[str, F] = {}

    def register(self, name: str) -> Callable[[F], F]:
        def add(plugin: F) -> F:
            self._plugins[name] = plugin
            return plugin

        return add

    def __getitem__(self, name: str) -> F:
        try:
            return self._plugins[name]
        except KeyError:
            raise ApiError(422, f"unknown_{self.kind}", name=name, known=sorted(self._plugins)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)


Rows = dict[str, dict[str, Any]]
sources: Registry[Callable[[Communication, str, list[str]], Awaitable[Rows]]] = Registry("source")


@sources.register("online")
async def read_online(comm: Communication, view: str, entities: list[str]) -> Rows:
    answer = await comm.call("OnlineStore", "/read", {"view": view, "entities": entities}, timeout=0.3)
    return answer.get("rows", {})


@sources.register("stream")
async def read_stream(comm: Communication, view: str, entities: list[str]) -> Rows:
    """Streams lag behind for new entities; the online store has those."""
    answer = await comm.call("StreamStore", "/latest", {"view": view, "keys": entities}, timeout=0.2)
    rows: Rows = answer.get("rows", {})
    if late := [entity for entity in entities if entity not in rows]:
        rows = {**rows, **await read_online(comm, view, late)}
    return rows


@sources.register("request")
async def read_request(comm: Communication, view: str, entities: list[str]) -> Rows:
    given = comm.params.get("request_data", {})
    return {entity: given for entity in entities}


@dataclass(frozen=True, slots=True)
class Finding:
    detector: str
    score: float
    threshold: float

    @property
    def drifted(self) -> bool:
        return self.score > self.threshold


class Detector(Protocol):
    def __call__(self, comm: Communication, model: str, config: dict[str, Any]) -> Finding: ...


detectors: Registry[Detector] = Registry("detector")


def histogram_distance(expected: list[float], actual: list[float]) -> float:
    return sum(abs(e - a) for e, a in zip(expected, actual)) / 2


@detectors.register("psi")
def population_stability(comm: Communication, model: str, config: dict[str, Any]) -> Finding:
    baseline = comm.call("Baselines", "/get", {"model": model})
    current = comm.call("PredictionLog", "/histogram", {"model": model, "window": config.get("window", "1d")})
    distance = histogram_distance(baseline.get().get("bins", []), current.get().get("bins", []))
    return Finding("psi", distance, config.get("threshold", 0.2))


@detectors.register("performance")
def performance_drop(comm: Communication, model: str, config: dict[str, Any]) -> Finding:
    labelled = comm.call("PredictionLog", "/join", {"model": model, "labels": True}).get()
    if labelled.get("count", 0) < config.get("min_labels", 50):
        return Finding("performance", 0.0, 1.0)
    return Finding("performance", 1.0 - labelled.get("auc", 1.0), config.get("threshold", 0.3))


@detectors.register("nulls")
def null_rate(comm: Communication, model: str, config: dict[str, Any]) -> Finding:
    series = comm.call("Metrics", "/range", {"name": "feature_null_rate", "model": model}).get()
    return Finding("nulls", max(series.get("values", []), default=0.0), config.get("threshold", 0.1))


@dataclass
class TrainingContext:
    """What the steps of a training pipeline hand on."""

    comm: Communication
    config: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    stopped: str | None = None


Step = Callable[[TrainingContext], TrainingContext]
steps: Registry[Step] = Registry("step")


@steps.register("snapshot")
def snapshot_data(ctx: TrainingContext) -> TrainingContext:
    answer = ctx.comm.call(
        "Warehouse", "/snapshot", {"table": ctx.config.get("table", "events")}, timeout=5.0
    ).get()
    ctx.values["snapshot"] = answer.get("snapshot")
    ctx.values["rows"] = answer.get("rows", 0)
    if ctx.values["rows"] == 0:
        ctx.stopped = "empty_snapshot"
    return ctx


@steps.register("validate")
def validate_data(ctx: TrainingContext) -> TrainingContext:
    report = ctx.comm.call("DataQuality", "/validate", {"snapshot": ctx.values.get("snapshot")}).get()
    match report:
        case {"violations": [_, *_] as violations} if ctx.config.get("strict", True):
            ctx.stopped = f"{len(violations)} violations"
        case {"violations": [_, *_] as violations}:
            ctx.values["warnings"] = violations
        case _:
            pass
    return ctx


@steps.register("fit")
def fit_model(ctx: TrainingContext) -> TrainingContext:
    job = {"image": ctx.config.get("image", "xgboost:1"), "snapshot": ctx.values.get("snapshot")}
    try:
        ctx.values["run"] = ctx.comm.call("Scheduler", "/submit", {**job, "pool": "spot"}).get().get("run")
    except CallError as error:
        if error.status != 503:
            raise
        ctx.values["run"] = (
            ctx.comm.call("Scheduler", "/submit", {**job, "pool": "on_demand"}).get().get("run")
        )
    return ctx


@steps.register("evaluate")
def evaluate_model(ctx: TrainingContext) -> TrainingContext:
    metrics = ctx.comm.call("Tracking", "/metrics", {"run": ctx.values.get("run")}).get()
    ctx.values["auc"] = metrics.get("auc", 0.0)
    if ctx.values["auc"] < ctx.config.get("min_auc", 0.7):
        ctx.stopped = "below_threshold"
    return ctx


@steps.register("register")
def register_model(ctx: TrainingContext) -> TrainingContext:
    answer = ctx.comm.call(
        "ModelRegistry",
        "/models/{name}/versions",
        {"name": ctx.config.get("model", "m"), "run": ctx.values.get("run")},
        headers={"authorization": ctx.comm.headers.get("authorization", "")},
    ).get()
    ctx.values["version"] = answer.get("version")
    return ctx
