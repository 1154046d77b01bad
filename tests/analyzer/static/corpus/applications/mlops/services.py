"""A machine-learning platform: features, models, inference, batch scoring, training, monitoring."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial, reduce
from operator import itemgetter
from typing import Any, NamedTuple

from batch import keep_valid, read_partitions, score_chunks, through, write_chunks
from clients import Catalog, JobStore, Metadata, ModelServer, OfflineStore, Prediction, ViewSpec
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError
from plugins import Finding, TrainingContext, detectors, sources, steps
from promotion import TRANSITIONS, Promotion, Stage, warmed_up
from support import (
    FAILED,
    LRU,
    ApiError,
    CircuitBreaker,
    Saga,
    api,
    audit,
    batched,
    bucket,
    log,
    principal,
    quota,
    retry,
    retry_async,
    secured,
)


# ---------------------------------------------------------------- features


class FeatureRef(NamedTuple):
    view: str
    name: str

    @classmethod
    def parse(cls, text: str) -> FeatureRef:
        view, _, name = text.partition(":")
        if not name:
            raise ApiError(422, "bad_feature_reference", reference=text)
        return cls(view, name)


class FeatureStore(MS):
    """Online features, and what fills the online store."""

    pool_size = 32
    runtime = "async"

    def setup(self) -> None:
        self.specs = LRU(256)

    async def spec(self, comm: Communication, view: str) -> ViewSpec:
        if view in self.specs:
            return self.specs[view]
        return self.specs.put(view, await Catalog(comm).view(view))

    @EP("/features/online", method="POST")
    @api
    async def online(self, comm: Communication) -> None:
        refs = [FeatureRef.parse(text) for text in comm.params.get("features", [])]
        entities: list[str] = comm.params.get("entities", [])
        if not refs or not entities:
            raise ApiError(422, "nothing_asked")
        wanted = defaultdict(list)
        for ref in refs:
            wanted[ref.view].append(ref.name)
        specs = await asyncio.gather(*(self.spec(comm, view) for view in wanted))
        reads = [sources[spec["source"]](comm, spec["name"], entities) for spec in specs]
        results = await asyncio.gather(*reads, return_exceptions=True)
        vectors: dict[str, dict[str, Any]] = {entity: {} for entity in entities}
        degraded = []
        for spec, names, result in zip(specs, wanted.values(), results, strict=True):
            match result:
                case CallError() | CallTimeoutError():
                    degraded.append(spec["name"])
                    rows = {}
                case BaseException():
                    raise result
                case rows:
                    pass
            for entity, vector in vectors.items():
                row = rows.get(entity, spec["defaults"])
                vector.update({f"{spec['name']}:{name}": row.get(name) for name in names})
        comm.respond({"vectors": vectors, "degraded": degraded})
        if degraded:
            comm.call("Metrics", "/increment", {"name": "degraded_reads", "views": degraded})

    @EP("/features/views", method="GET")
    @api
    async def views(
        self, comm: Communication, cursor: str | None = None, limit: int = 20, expand: str = ""
    ) -> None:
        page = await Catalog(comm).page(cursor, min(limit, 100))
        items = page.get("items", [])
        if "owners" in expand.split(",") and items:
            owners = await comm.call(
                "Directory", "/teams", {"ids": sorted({item.get("team", "") for item in items})}
            )
            items = [{**item, "owner": owners.get(item.get("team", ""))} for item in items]
        comm.respond({"items": items, "next": page.get("next")})

    @EP("/features/views/register", method="POST")
    @api
    @secured("features:write")
    async def register(self, comm: Communication) -> None:
        name, source = comm.params.get("name"), comm.params.get("source", "online")
        if not name or source not in sources:
            raise ApiError(422, "invalid_view", sources=list(sources))
        try:
            known = await comm.call("Catalog", "/get", {"name": name})
        except CallError as error:
            if error.status != 404:
                raise
            known = {}
        if known.get("schema") and known["schema"] != comm.params.get("schema"):
            if not comm.params.get("force"):
                raise ApiError(409, "schema_conflict")
            dependents = await comm.call("Lineage", "/downstream", {"node": name})
            if dependents.get("models"):
                raise ApiError(409, "view_in_use", models=dependents["models"])
        view = await comm.call(
            "Catalog", "/register", {"name": name, "source": source, "schema": comm.params.get("schema")}
        )
        self.specs.pop(name, None)
        async with asyncio.TaskGroup() as group:
            group.create_task(
                retry_async(lambda: comm.call("Lineage", "/record", {"node": name, "kind": "view"}))
            )
            if source == "stream":
                group.create_task(retry_async(lambda: comm.call("StreamStore", "/subscribe", {"view": name})))
        comm.respond(view, 201)

    @EP("/features/materialize", method="POST")
    @api
    @secured("features:write")
    async def materialize(self, comm: Communication) -> None:
        view, days = comm.params.get("view", ""), comm.params.get("days", [])
        gate = asyncio.Semaphore(2)

        async def load(window: list[str]) -> int:
            written = 0
            async with gate:
                async for rows in OfflineStore(comm).scan(view, window[0], window[-1]):
                    await comm.call("OnlineStore", "/write", {"view": view, "rows": rows}, timeout=2.0)
                    written += len(rows)
            return written

        windows = list(batched(days, 2))
        results = await asyncio.gather(*map(load, windows), return_exceptions=True)
        failed = [window for window, result in zip(windows, results) if isinstance(result, Exception)]
        comm.respond(
            {"rows": sum(r for r in results if isinstance(r, int)), "failed": failed}, 207 if failed else 200
        )
        if failed:
            with suppress(*FAILED):
                await comm.call(
                    "Notify", "/slack", {"channel": "#features", "text": f"{view}: {len(failed)} windows"}
                )
        else:
            audit(comm, "materialize", view=view)

    @EP("/features/freshness", method="GET")
    @api
    async def freshness(self, comm: Communication) -> None:
        """The first stale view decides."""
        views = [view for view in comm.params.get("views", "").split(",") if view]

        async def age(view: str) -> tuple[str, float, float]:
            spec, status = await asyncio.gather(
                self.spec(comm, view), comm.call("OnlineStore", "/status", {"view": view})
            )
            return view, status.get("age", 0), spec.get("max_age", 3600)

        tasks = [asyncio.create_task(age(view)) for view in views]
        try:
            for done in asyncio.as_completed(tasks, timeout=2.0):
                view, actual, allowed = await done
                if actual > allowed:
                    comm.call("Notify", "/page", {"team": "features", "view": view})
                    comm.respond({"fresh": False, "view": view, "age": actual}, 503)
                    return
        except TimeoutError:
            raise ApiError(504, "freshness_unknown") from None
        finally:
            for task in tasks:
                task.cancel()
        comm.respond({"fresh": True, "views": views})


# ---------------------------------------------------------------- models


class ModelRegistry(MS):
    """Models, their versions, and the way of a version into production."""

    pool_size = 6
    runtime = "process"

    @EP("/models/{name}/versions", method="POST")
    @api
    @secured("models:write")
    def create_version(self, comm: Communication, name: str) -> None:
        run = comm.params.get("run")
        if not run:
            raise ApiError(422, "run_missing")
        with Saga(comm) as saga:
            staged = saga.step("Artifacts", "/stage", {"run": run})
            saga.compensate("Artifacts", "/discard", {"uri": staged.get("uri")})
            version = saga.step("Metadata", "/create", {"model": name, "uri": staged.get("uri"), "run": run})
            saga.compensate("Metadata", "/delete", {"model": name, "version": version.get("version")})
            if parents := comm.params.get("parents"):
                for parent in parents:
                    saga.step("Lineage", "/record", {"node": name, "parent": parent})
            saga.step("Artifacts", "/promote", {"uri": staged.get("uri")})
        comm.respond({"name": name, "version": version.get("version", 1)}, 201)
        audit(comm, "version_created", model=name)

    @EP("/models/{name}/transition", method="POST")
    @api
    @secured("models:promote")
    def transition(self, comm: Communication, name: str) -> None:
        metadata = Metadata(comm)
        record = metadata.version(name, comm.params.get("version", "latest"))
        if record is None:
            raise ApiError(404, "no_such_version")
        try:
            source, target = Stage(record.get("stage", "draft")), Stage(comm.params.get("to", ""))
            checks = TRANSITIONS[source, target]
        except (ValueError, KeyError):
            raise ApiError(409, "illegal_transition", stage=record.get("stage")) from None
        promotion = Promotion(comm, name, record)
        for check in checks:
            check(promotion)
        metadata.set_stage(name, record.get("version", 0), target)
        comm.respond({"name": name, "stage": target})
        audit(comm, "transition", model=name, to=target)

    @EP("/models/search", method="GET")
    @api
    def search(self, comm: Communication, q: str = "", mode: str = "hybrid", limit: int = 10) -> None:
        backends = {
            "text": partial(comm.call, "TextIndex", "/query", {"q": q, "limit": limit}, timeout=0.4),
            "vector": partial(comm.call, "VectorIndex", "/query", {"text": q, "k": limit}, timeout=0.4),
        }
        wanted = list(backends) if mode == "hybrid" else [mode]
        if unknown := [name for name in wanted if name not in backends]:
            raise ApiError(400, "unknown_mode", mode=unknown[0])
        pending = [(name, backends[name]()) for name in wanted]
        ranks: Counter[str] = Counter()
        missing = []
        for name, future in pending:
            try:
                hits = future.get().get("hits", [])
            except FAILED:
                missing.append(name)
                continue
            for rank, hit in enumerate(hits):
                ranks[hit] += 1 / (60 + rank)
        if not ranks and missing:
            ranks.update(
                record.get("model", "")
                for record in comm.call("Metadata", "/list", {"prefix": q}).get().get("models", [])
            )
        comm.respond({"hits": [hit for hit, _ in ranks.most_common(limit)], "missing": missing})

    @EP("/models/{name}/rollback", method="POST")
    @api
    @secured("models:promote")
    def rollback(self, comm: Communication, name: str) -> None:
        metadata = Metadata(comm)
        versions = sorted(metadata.versions(name), key=lambda v: v.get("version", 0), reverse=True)
        current = next((v for v in versions if v.get("stage") == Stage.PRODUCTION), None)
        candidates = (v for v in versions if v.get("stage") == Stage.ARCHIVED)
        if current is None:
            raise ApiError(409, "nothing_in_production")
        for candidate in itertools.islice(candidates, 2):
            with suppress(ApiError, *FAILED):
                warmed_up(Promotion(comm, name, candidate))
                break
        else:
            raise ApiError(409, "no_candidate")
        metadata.set_stage(name, candidate.get("version", 0), Stage.PRODUCTION)
        metadata.set_stage(name, current.get("version", 0), Stage.ARCHIVED)
        comm.respond({"name": name, "version": candidate.get("version")})
        comm.call("Notify", "/slack", {"channel": "#models", "text": f"{name} rolled back"})

    @EP("/models/{name}/card", method="GET")
    @api
    def card(self, comm: Communication, name: str) -> None:
        record = comm.call("Metadata", "/get", {"model": name, "version": "latest"})
        sections = {
            "lineage": comm.call("Lineage", "/upstream", {"node": name}),
            "fairness": comm.call("Fairness", "/report", {"model": name}, timeout=1.0),
            "usage": comm.call("Metrics", "/range", {"name": "predictions", "model": name}),
        }

        def section(title: str) -> Any:
            try:
                return sections[title].get()
            except FAILED as error:
                log.warning("no %s for %s: %s", title, name, error)
                return None

        comm.respond({**record.get(), **{title: section(title) for title in sections}})

    @EP("/models/hooks", method="POST")
    @api
    def hooks(self, comm: Communication) -> None:
        """Webhooks of the CI system, told apart by their event header."""
        event = comm.headers.get("x-event", "")
        handler = getattr(self, f"on_{event}", None)
        if handler is None:
            comm.respond({"ignored": event}, 202)
            return
        comm.respond(handler(comm, comm.params) or {"ok": True})

    def on_build(self, comm: Communication, payload: dict[str, Any]) -> dict[str, Any] | None:
        if payload.get("status") != "success":
            comm.call(
                "Notify", "/email", {"to": payload.get("author", "ml@example.org"), "subject": "build failed"}
            )
            return None
        created = comm.call(
            "Metadata", "/create", {"model": payload.get("model"), "uri": payload.get("uri")}
        ).get()
        return {"version": created.get("version")}

    def on_tag(self, comm: Communication, payload: dict[str, Any]) -> None:
        futures = [
            comm.call("Metadata", "/tag", {"model": model, "tag": payload.get("tag")})
            for model in payload.get("models", [])
        ]
        for future in futures:
            future.get()


# ---------------------------------------------------------------- inference


@dataclass(frozen=True)
class Route:
    stable: str = "1"
    canary: str | None = None
    weight: int = 0
    shadow: str | None = None

    def pick(self, key: str) -> str:
        return self.canary if self.canary and bucket(key) < self.weight else self.stable


class Inference(MS):
    """Online predictions: routing, canaries, shadows, ensembles."""

    pool_size = 64
    runtime = "async"

    def setup(self) -> None:
        self.embeddings = LRU(4096)
        self.canary_failures: Counter[str] = Counter()
        self.explainer = CircuitBreaker(threshold=4)

    async def route(self, comm: Communication, model: str) -> Route:
        try:
            answer = await comm.call("Routes", "/get", {"model": model}, timeout=0.2)
        except FAILED:
            return Route()
        known = Route.__dataclass_fields__
        return Route(**{name: value for name, value in answer.items() if name in known})

    async def features(self, comm: Communication, entity: str, names: list[str]) -> dict[str, Any]:
        if not names:
            return comm.params.get("features", {})
        answer = await comm.call(
            "FeatureStore", "/features/online", {"entities": [entity], "features": names}, timeout=0.5
        )
        return answer.get("vectors", {}).get(entity, {})

    async def shadow(
        self, comm: Communication, model: str, version: str, features: dict[str, Any]
    ) -> Prediction | None:
        try:
            return await ModelServer(comm).predict(model, version, features)
        except FAILED:
            return None

    @EP("/predict/{model}", method="POST")
    @api
    @secured("predict")
    async def predict(self, comm: Communication, model: str) -> None:
        entity, names = str(comm.params.get("entity", "")), comm.params.get("feature_names", [])
        server = ModelServer(comm)
        async with quota(comm, principal.get().tenant, "predictions"):
            route, features = await asyncio.gather(
                self.route(comm, model), self.features(comm, entity, names)
            )
            version = route.pick(entity)
            mirror = (
                asyncio.create_task(self.shadow(comm, model, route.shadow, features))
                if route.shadow
                else None
            )
            try:
                prediction = await server.predict(model, version, features)
            except FAILED:
                if version == route.stable:
                    raise
                self.canary_failures[model] += 1
                prediction = await server.predict(model, route.stable, features)
        comm.respond(asdict(prediction))
        comm.call("PredictionLog", "/write", {"entity": entity, **asdict(prediction)})
        if mirror is not None:
            other = await mirror
            if other and abs(other.score - prediction.score) > 0.1:
                comm.call(
                    "PredictionLog", "/disagreement", {"served": asdict(prediction), "shadow": asdict(other)}
                )

    @EP("/predict/ensemble", method="POST")
    @api
    async def ensemble(self, comm: Communication) -> None:
        weights: dict[str, float] = comm.params.get("weights", {})
        quorum = comm.params.get("quorum", 1)
        server = ModelServer(comm)
        tasks = {
            asyncio.create_task(server.predict(m, "stable", comm.params.get("features", {}))) for m in weights
        }
        votes: list[Prediction] = []
        while tasks and len(votes) < quorum:
            done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            votes += [task.result() for task in done if not task.exception()]
        for task in tasks:
            task.cancel()
        if len(votes) < quorum:
            raise ApiError(503, "no_quorum", votes=len(votes))
        total = sum(weights[v.model] for v in votes) or 1.0
        comm.respond({"score": sum(weights[v.model] * v.score for v in votes) / total, "votes": len(votes)})

    @EP("/explain/{model}", method="POST")
    @api
    async def explain(self, comm: Communication, model: str) -> None:
        """Shapley values if there is time, else the importances known for the model."""
        features = comm.params.get("features", {})
        if comm.params.get("method", "shap") == "shap":
            try:
                with self.explainer:
                    async with asyncio.timeout(1.5):
                        exact = await comm.call("Explainer", "/shap", {"model": model, "features": features})
                comm.respond({"method": "shap", "values": exact.get("values", {})})
                return
            except (ApiError, TimeoutError, *FAILED) as error:
                log.info("no exact explanation of %s: %r", model, error)
        importance = await comm.call("Metadata", "/importance", {"model": model})
        comm.respond({"method": "importance", "values": importance.get("values", {})})

    @EP("/embed", method="POST")
    @api
    async def embed(self, comm: Communication) -> None:
        texts: list[str] = comm.params.get("texts", [])
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        absent = [(d, t) for d, t in zip(digests, texts) if d not in self.embeddings]
        fresh: dict[str, Any] = {}
        for chunk in batched(absent, 2):
            answer = await retry_async(
                lambda: comm.call("ModelServer", "/embed", {"texts": [t for _, t in chunk]})
            )
            for (digest, _), vector in zip(chunk, answer.get("vectors", [])):
                fresh[digest] = self.embeddings.put(digest, vector)
        comm.respond(
            {"vectors": [fresh.get(d) or self.embeddings.get(d) for d in digests], "computed": len(absent)}
        )

    @EP("/v1/score", method="GET")
    @api
    async def score_v1(self, comm: Communication, model: str, entity: str) -> None:
        """The old API: one number, never an error."""
        score = await self.scored(comm, model, entity, default=0.5)
        comm.respond({"score": score}, headers={"Deprecation": "true"})

    @EP("/v2/score", method="POST")
    @api
    @secured("predict")
    async def score_v2(self, comm: Communication) -> None:
        model, entities = comm.params.get("model", "churn"), comm.params.get("entities", [])
        flag = await comm.call(
            "Flags", "/evaluate", {"flag": "parallel-score", "tenant": principal.get().tenant}
        )
        score = partial(self.scored, comm, model)
        if flag.get("on"):
            scores = await asyncio.gather(*(score(entity) for entity in entities))
        else:
            scores = [await score(entity) for entity in entities]
        comm.respond({"scores": dict(zip(entities, scores))})

    async def scored(
        self, comm: Communication, model: str, entity: str, default: float | None = None
    ) -> float | None:
        try:
            features = await self.features(comm, entity, [f"{model}:all"])
            return (await ModelServer(comm).predict(model, "stable", features)).score
        except FAILED:
            return default

    @EP("/canary/{model}/step", method="POST")
    @api
    @secured("models:promote")
    async def canary_step(self, comm: Communication, model: str) -> None:
        """Give a canary more of the traffic, or end it."""
        route, stats = await asyncio.gather(
            self.route(comm, model), comm.call("Metrics", "/canary", {"model": model})
        )
        match route, stats:
            case Route(canary=None), _:
                raise ApiError(409, "no_canary")
            case Route(weight=weight), {"errors": errors} if errors > 0.05:
                await comm.call(
                    "Routes", "/put", {"model": model, **asdict(replace(route, canary=None, weight=0))}
                )
                comm.call(
                    "Notify",
                    "/page",
                    {"team": "inference", "text": f"canary of {model} at {weight} % failed"},
                )
                outcome = "aborted"
            case Route(weight=weight), _ if weight >= 50:
                await comm.call("Routes", "/put", {"model": model, "stable": route.canary, "weight": 0})
                with suppress(CallError):
                    await comm.call("ModelServer", "/unload", {"model": model, "version": route.stable})
                outcome = "promoted"
            case _:
                await comm.call(
                    "Routes", "/put", {"model": model, **asdict(replace(route, weight=route.weight * 2 + 5))}
                )
                outcome = "advanced"
        self.canary_failures.pop(model, None)
        comm.respond({"outcome": outcome})


# ---------------------------------------------------------------- batch scoring


class BatchScoring(MS):
    """Scores tables of the warehouse."""

    pool_size = 8
    runtime = "thread"

    def setup(self) -> None:
        self.breaker = CircuitBreaker(threshold=3)

    @EP("/jobs/submit", method="POST")
    @api
    @secured("batch")
    def submit(self, comm: Communication) -> None:
        store, tenant = JobStore(comm), principal.get().tenant
        key = comm.headers.get("idempotency-key")
        if key and (known := store.find(key=key, tenant=tenant)):
            comm.respond(known[0], 200)
            return
        if not comm.params.get("table"):
            raise ApiError(422, "table_missing")
        with Saga(comm) as saga:
            lease = saga.step("Quota", "/reserve", {"tenant": tenant, "resource": "batch", "units": 1})
            if not lease.get("granted"):
                raise ApiError(429, "quota_exceeded")
            saga.compensate("Quota", "/release", {"lease": lease.get("lease")})
            job = saga.step(
                "JobStore", "/create", {"key": key, "tenant": tenant, "table": comm.params["table"]}
            )
            saga.compensate("JobStore", "/update", {"id": job.get("id"), "state": "failed"})
            saga.step("Scheduler", "/submit", {"job": job.get("id"), "pool": "batch"})
        comm.respond(job, 202)

    @contextmanager
    def running(self, store: JobStore, job_id: str) -> Iterator[dict[str, Any]]:
        job = store.get(job_id)
        match job.get("state"):
            case None:
                raise ApiError(404, "no_such_job")
            case "running":
                raise ApiError(409, "already_running")
            case "cancelled" | "done":
                raise ApiError(410, "job_over", state=job["state"])
        store.mark(job_id, "running")
        try:
            yield job
        except Exception as error:
            with suppress(*FAILED):
                store.mark(job_id, "failed", reason=str(error))
            raise

    @EP("/jobs/{job_id}/run", method="POST")
    @api
    def run(self, comm: Communication, job_id: str) -> None:
        store = JobStore(comm)
        with self.running(store, job_id) as job:
            table = job.get("table", "users")
            partitions = job.get("failed") or comm.call(
                "Warehouse", "/partitions", {"table": table}
            ).get().get("partitions", [])
            done, failed = 0, []
            for chunk in through(
                read_partitions(comm, table, partitions),
                partial(keep_valid, ("id",)),
                partial(score_chunks, comm, job.get("model", "churn"), self.breaker),
                partial(write_chunks, comm, f"{table}_scores"),
            ):
                if chunk.error:
                    failed.append(chunk.partition)
                else:
                    done += len(chunk.rows)
            store.mark(job_id, "partial" if failed else "done", failed=failed, rows=done)
        comm.respond({"rows": done, "failed": failed}, 207 if failed else 200)
        comm.call("Events", "/publish", {"topic": "batch.finished", "job": job_id})

    @EP("/jobs/{job_id}", method="GET")
    @api
    def status(self, comm: Communication, job_id: str, wait: int = 0) -> None:
        """Long polling: ?wait=3 looks up to three times more."""
        store = JobStore(comm)
        job = store.get(job_id)
        while wait > 0 and job.get("state") in ("queued", "running"):
            time.sleep(1.0)
            wait -= 1
            job = store.get(job_id)
        comm.respond(job, 200 if job.get("state") else 404)

    @EP("/jobs/{job_id}/cancel", method="POST")
    @api
    @secured("batch")
    def cancel(self, comm: Communication, job_id: str) -> None:
        store = JobStore(comm)
        job = store.get(job_id)
        if job.get("tenant", principal.get().tenant) != principal.get().tenant:
            raise ApiError(404, "no_such_job")
        if job.get("state") in ("queued", "running"):
            if job["state"] == "running":
                retry(lambda: comm.call("Scheduler", "/cancel", {"job": job_id}))
            store.mark(job_id, "cancelled")
            comm.call("Quota", "/release", {"lease": job.get("lease")})
        comm.respond({"id": job_id, "state": "cancelled"})

    @EP("/jobs/{job_id}/export", method="POST")
    @api
    def export(self, comm: Communication, job_id: str) -> None:
        export = comm.call(
            "Warehouse", "/export", {"job": job_id, "format": comm.params.get("format", "parquet")}
        ).get()
        deadline = time.monotonic() + 20
        while not export.get("url"):
            if export.get("state") == "failed" or time.monotonic() > deadline:
                raise ApiError(502, "export_failed")
            time.sleep(0.5)
            export = comm.call("Warehouse", "/export_status", {"job": job_id}).get()
        if email := comm.params.get("email"):
            comm.call("Notify", "/email", {"to": email, "url": export["url"]})
        comm.respond(None, 303, headers={"Location": export["url"]})


# ---------------------------------------------------------------- training and experiments


@dataclass(frozen=True)
class TrainConfig:
    model: str = "churn"
    dataset: str = "events"
    gpus: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> TrainConfig:
        config = cls(**{name: params[name] for name in cls.__dataclass_fields__ if name in params})
        if not 0 <= config.gpus <= 8:
            raise ApiError(422, "bad_gpus", gpus=config.gpus)
        return config


def grid(space: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values))


CALLBACKS: dict[str, Callable[[Communication, dict[str, Any]], None]] = {}


def on(event: str) -> Callable[[Any], Any]:
    """Handle an event of the scheduler."""

    def add(handler: Any) -> Any:
        CALLBACKS[event] = handler
        return handler

    return add


@on("preempted")
def resubmit(comm: Communication, event: dict[str, Any]) -> None:
    attempt = event.get("attempt", 1)
    if attempt >= 3:
        comm.call("Tracking", "/finish", {"run": event.get("run"), "state": "failed"}).get()
        return
    comm.call(
        "Scheduler", "/submit", {"run": event.get("run"), "pool": "on_demand", "attempt": attempt + 1}
    ).get()


@on("finished")
def finish(comm: Communication, event: dict[str, Any]) -> None:
    finished = comm.call("Tracking", "/finish", {"run": event.get("run"), "state": "done"}).get()
    comm.call("Quota", "/release", {"lease": finished.get("lease")})
    if finished.get("auto_register"):
        comm.call("Events", "/publish", {"topic": "model.candidate", "run": event.get("run")}).get()


@on("failed")
def give_up(comm: Communication, event: dict[str, Any]) -> None:
    logs = comm.call("Scheduler", "/logs", {"run": event.get("run"), "tail": 50}).get()
    comm.call("Notify", "/slack", {"channel": "#training", "text": "\n".join(logs.get("lines", []))})


class Training(MS):
    """Training jobs, sweeps, and assignment to experiments."""

    pool_size = 4
    runtime = "process"

    @EP("/train/submit", method="POST")
    @api
    @secured("train")
    def submit(self, comm: Communication) -> None:
        config = TrainConfig.from_params(comm.params)
        checks = [comm.call("DataQuality", "/validate", {"dataset": config.dataset})]
        if config.gpus:
            checks.append(comm.call("Scheduler", "/capacity", {"gpus": config.gpus}))
        quality, *capacity = (check.get() for check in checks)
        if quality.get("violations"):
            raise ApiError(409, "dataset_invalid", violations=quality["violations"])
        pool = "spot" if capacity and not capacity[0].get("available") else "on_demand"
        run = comm.call("Tracking", "/start", {**asdict(config), "pool": pool}).get()
        try:
            job = comm.call(
                "Scheduler", "/submit", {"run": run.get("id"), "pool": pool, "gpus": config.gpus}
            ).get()
        except FAILED:
            comm.call("Tracking", "/finish", {"run": run.get("id"), "state": "failed"})
            raise
        for tag in config.tags:
            comm.call("Tracking", "/tag", {"run": run.get("id"), "tag": tag})
        comm.respond({"run": run.get("id"), "job": job.get("id")}, 202)

    @EP("/train/pipeline", method="POST")
    @api
    def pipeline(self, comm: Communication) -> None:
        names = comm.params.get("steps") or ["snapshot", "validate", "fit", "evaluate", "register"]
        plan = [(name, steps[name]) for name in names]
        ctx = TrainingContext(comm, comm.params.get("config", {}))
        for name, step in plan:
            ctx = step(ctx)
            if ctx.stopped:
                comm.call(
                    "Events", "/publish", {"topic": "training.stopped", "step": name, "why": ctx.stopped}
                )
                raise ApiError(409, "pipeline_stopped", step=name, reason=ctx.stopped)
        comm.respond(ctx.values, 201)

    @EP("/train/sweep", method="POST")
    @api
    def sweep(self, comm: Communication) -> None:
        """Successive halving: half of the trials get twice the budget."""
        trials = list(itertools.islice(grid(comm.params.get("space", {})), 4))
        budget = comm.params.get("budget", 1)
        rounds = []
        while len(trials) > 1:
            futures = [
                comm.call("Trainer", "/trial", {"params": trial, "budget": budget}) for trial in trials
            ]
            scored = []
            for trial, future in zip(trials, futures):
                with suppress(*FAILED):
                    scored.append((future.get().get("loss", 1.0), trial))
            if not scored:
                raise ApiError(502, "all_trials_failed", budget=budget)
            scored.sort(key=itemgetter(0))
            rounds.append({"budget": budget, "best": scored[0][0]})
            trials = [trial for _, trial in scored[: max(1, len(trials) // 2)]]
            budget *= 2
        if comm.params.get("submit") and trials:
            token = comm.headers.get("authorization", "")
            comm.call(
                "Training", "/train/submit", {"params": trials[0]}, headers={"authorization": token}
            ).get()
        comm.respond({"best": trials[0] if trials else None, "rounds": rounds})

    @EP("/train/callback", method="POST")
    @api
    def callback(self, comm: Communication) -> None:
        handle = CALLBACKS.get(comm.params.get("event", ""))
        if not handle:
            raise ApiError(400, "unknown_event", known=sorted(CALLBACKS))
        handle(comm, comm.params)
        comm.respond({"ok": True})

    @EP("/experiments/assign", method="POST")
    @api
    def assign(self, comm: Communication) -> None:
        name, user = comm.params.get("experiment", ""), str(comm.params.get("user", ""))
        experiment = comm.call("Experiments", "/get", {"name": name}, timeout=0.5).get()
        if experiment.get("state") != "running":
            comm.respond({"arm": experiment.get("winner", "control"), "assigned": False})
            return
        if experiment.get("sticky"):
            with suppress(CallError):
                if (
                    arm := comm.call("Experiments", "/assignment", {"name": name, "user": user})
                    .get()
                    .get("arm")
                ):
                    comm.respond({"arm": arm, "assigned": True})
                    return
        position, arm = bucket(f"{name}/{user}"), "control"
        for arm, upper in experiment.get("arms", {}).items():
            if position < upper:
                break
        comm.respond({"arm": arm, "assigned": True})
        comm.call("Experiments", "/expose", {"name": name, "user": user, "arm": arm})


# ---------------------------------------------------------------- monitoring


@dataclass(frozen=True)
class Rule:
    name: str
    when: Callable[[dict[str, Any]], bool]
    then: Callable[[Communication, dict[str, Any]], Any]


def notify(path: str, **fixed: Any) -> Callable[[Communication, dict[str, Any]], Any]:
    def send(comm: Communication, alert: dict[str, Any]) -> Any:
        return comm.call("Notify", path, {**fixed, "alert": alert.get("name")})

    return send


RULES = [
    Rule("outage", lambda a: a.get("severity") == "critical", notify("/page", team="sre")),
    Rule("drift", lambda a: a.get("kind") == "drift", notify("/slack", channel="#drift")),
    Rule("owner", lambda a: bool(a.get("owner")), notify("/email", subject="alert")),
    Rule(
        "retrain",
        lambda a: a.get("kind") == "drift" and a.get("score", 0) > 0.5,
        lambda comm, a: comm.call(
            "Training", "/train/pipeline", {"config": {"model": a.get("model", "churn")}}
        ),
    ),
]


def apply_event(balances: dict[str, int], event: dict[str, Any]) -> dict[str, int]:
    match event:
        case {"type": "reserved", "tenant": tenant, "units": int(units)}:
            return {**balances, tenant: balances.get(tenant, 0) + units}
        case {"type": "released", "tenant": tenant, "units": int(units)}:
            return {**balances, tenant: max(0, balances.get(tenant, 0) - units)}
        case {"type": "reset", "tenant": tenant}:
            return {name: value for name, value in balances.items() if name != tenant}
        case _:
            return balances


EXPORTERS: dict[str, Callable[[Communication, dict[str, int]], Any]] = {
    "quota": lambda comm, balances: comm.call("Quota", "/restore", {"balances": balances}).get(),
    "warehouse": lambda comm, balances: comm.call(
        "Warehouse", "/write", {"table": "quota", "rows": [balances]}
    ).get(),
}


class Monitoring(MS):
    """Drift, alerts, and what tenants use."""

    pool_size = 6
    runtime = "thread"

    @EP("/drift/check", method="POST")
    @api
    def drift(self, comm: Communication) -> None:
        model, configs = (
            comm.params.get("model", "churn"),
            comm.params.get("detectors") or {"psi": {}, "nulls": {}},
        )
        findings: list[Finding] = []
        errors = {}
        for name, config in configs.items():
            detect = detectors[name]
            try:
                findings.append(detect(comm, model, config))
            except FAILED as error:
                errors[name] = str(error)
        drifted = [finding for finding in findings if finding.drifted]
        if drifted:
            worst = max(drifted, key=lambda f: f.score)
            alert = {"kind": "drift", "model": model, "name": worst.detector, "score": worst.score}
            comm.call("Monitoring", "/alerts/ingest", {"alerts": [alert]})
        if errors and not findings:
            raise ApiError(503, "no_detector_worked", errors=errors)
        comm.respond({"drifted": bool(drifted), "findings": [asdict(f) for f in findings], "errors": errors})

    @EP("/drift/baseline", method="PUT")
    @api
    @secured("monitoring:write")
    def baseline(self, comm: Communication) -> None:
        model = comm.params.get("model", "churn")
        sample, page = [], 0
        while len(sample) < comm.params.get("size", 100) and page < 3:
            rows = (
                comm.call("PredictionLog", "/sample", {"model": model, "page": page}).get().get("scores", [])
            )
            if not rows:
                break
            sample.extend(rows)
            page += 1
        if len(sample) < 2:
            raise ApiError(409, "too_few_predictions", found=len(sample))
        histogram = Counter(int(score * 10) for score in sample)
        bins = [histogram[i] / len(sample) for i in range(10)]
        comm.call("Baselines", "/put", {"model": model, "bins": bins}).get()
        comm.respond({"model": model, "bins": bins})

    @EP("/alerts/ingest", method="POST")
    @api
    def ingest(self, comm: Communication) -> None:
        silenced = set(comm.call("Silences", "/active", {}).get().get("names", []))
        fired: defaultdict[str, list[str]] = defaultdict(list)
        pending = []
        for alert in comm.params.get("alerts", []):
            if (name := alert.get("name", "unnamed")) in silenced:
                continue
            for rule in RULES:
                if rule.when(alert):
                    pending.append(rule.then(comm, alert))
                    fired[name].append(rule.name)
        failed = 0
        for future in pending:
            try:
                future.get(timeout=1.0)
            except FAILED:
                failed += 1
        comm.respond({"fired": fired, "failed": failed}, 502 if pending and failed == len(pending) else 200)

    @EP("/usage/{tenant}", method="GET")
    @api
    def usage(self, comm: Communication, tenant: str) -> None:
        """What a tenant has used, priced; as CSV if wanted."""
        usage, rates = (
            comm.call("Quota", "/usage", {"tenant": tenant}),
            comm.call("Billing", "/rates", {"tenant": tenant}),
        )
        used: dict[str, int] = usage.get().get("resources", {})
        try:
            prices = rates.get(timeout=0.5)
        except CallTimeoutError:
            prices = comm.call("Billing", "/default_rates").get()
        except CallError as error:
            if error.status != 404:
                raise
            prices = {}
        lines = [
            (resource, units, units * prices.get(resource, 1)) for resource, units in sorted(used.items())
        ]
        if "text/csv" in comm.headers.get("accept", ""):
            comm.respond(
                "\n".join(",".join(map(str, line)) for line in lines), headers={"Content-Type": "text/csv"}
            )
        else:
            comm.respond({"tenant": tenant, "lines": lines, "total": sum(cost for *_, cost in lines)})

    @EP("/quotas/replay", method="POST")
    @api
    @secured("admin")
    def replay(self, comm: Communication) -> None:
        """Rebuild the balances from the events since the last snapshot."""
        snapshot = comm.call("EventStore", "/snapshot", {"stream": "quota"}).get()
        offset = snapshot.get("offset", 0)

        def events() -> Iterator[dict[str, Any]]:
            nonlocal offset
            while (
                batch := comm.call("EventStore", "/read", {"stream": "quota", "after": offset})
                .get()
                .get("events")
            ):
                offset += len(batch)
                yield from batch

        balances = reduce(apply_event, events(), snapshot.get("balances", {}))
        for target in comm.params.get("targets", ["quota"]):
            if export := EXPORTERS.get(target):
                export(comm, balances)
        if offset != snapshot.get("offset", 0) and not comm.params.get("dry_run"):
            comm.call(
                "EventStore", "/save_snapshot", {"stream": "quota", "offset": offset, "balances": balances}
            ).get()
        comm.respond({"offset": offset, "balances": balances})
