"""What is sent to the sample mlops, and what its stubs may answer."""

from corpus.execution import Case, Inputs

IDIOM = "everyday code, mlops"

STUBS = (
    "Approvals/request",
    "Approvals/status",
    "Artifacts/discard",
    "Artifacts/promote",
    "Artifacts/scan",
    "Artifacts/stage",
    "Audit/append",
    "Baselines/get",
    "Baselines/put",
    "Billing/default_rates",
    "Billing/rates",
    "Catalog/get",
    "Catalog/list",
    "Catalog/register",
    "DataQuality/validate",
    "Directory/teams",
    "EventStore/read",
    "EventStore/save_snapshot",
    "EventStore/snapshot",
    "Events/publish",
    "Experiments/assignment",
    "Experiments/expose",
    "Experiments/get",
    "Explainer/shap",
    "Fairness/report",
    "Flags/evaluate",
    "Identity/introspect",
    "JobStore/create",
    "JobStore/find",
    "JobStore/get",
    "JobStore/update",
    "Lineage/downstream",
    "Lineage/record",
    "Lineage/upstream",
    "Metadata/create",
    "Metadata/delete",
    "Metadata/get",
    "Metadata/importance",
    "Metadata/list",
    "Metadata/tag",
    "Metadata/update",
    "Metadata/versions",
    "Metrics/canary",
    "Metrics/increment",
    "Metrics/range",
    "ModelServer/embed",
    "ModelServer/predict",
    "ModelServer/predict_batch",
    "ModelServer/unload",
    "ModelServer/warmup",
    "Notify/email",
    "Notify/page",
    "Notify/slack",
    "OfflineStore/scan",
    "OnlineStore/read",
    "OnlineStore/status",
    "OnlineStore/write",
    "PredictionLog/disagreement",
    "PredictionLog/histogram",
    "PredictionLog/join",
    "PredictionLog/sample",
    "PredictionLog/write",
    "Quota/release",
    "Quota/reserve",
    "Quota/restore",
    "Quota/usage",
    "Routes/get",
    "Routes/put",
    "Scheduler/cancel",
    "Scheduler/capacity",
    "Scheduler/logs",
    "Scheduler/submit",
    "Silences/active",
    "StreamStore/latest",
    "StreamStore/subscribe",
    "TextIndex/query",
    "Tracking/finish",
    "Tracking/metrics",
    "Tracking/start",
    "Tracking/tag",
    "Trainer/trial",
    "VectorIndex/query",
    "Warehouse/export",
    "Warehouse/export_status",
    "Warehouse/partitions",
    "Warehouse/read",
    "Warehouse/snapshot",
    "Warehouse/write",
)

AUTH = {"authorization": "Bearer t"}
DATA = {"features": {"age": 31, "visits": 4}}

INPUTS = Inputs(
    {
        **dict.fromkeys(STUBS, Case("stub")),
        "FeatureStore/features/online": Case(
            IDIOM,
            [
                {
                    "json": {
                        "features": ["users:age", "users:visits", "clicks:last"],
                        "entities": ["u1", "u2"],
                    }
                },
                {"json": {"features": ["clicks:last"], "entities": ["u1"], "request_data": {"last": 3}}},
                {
                    "json": {
                        "features": ["basket:sum", "geo:country"],
                        "entities": ["u3"],
                        "request_data": {"sum": 12},
                    }
                },
                {"json": {"features": ["broken"], "entities": ["u1"]}},
                {"json": {}},
            ],
        ),
        "FeatureStore/features/views": Case(
            IDIOM,
            [
                {},
                {"query": {"limit": "5", "expand": "owners"}},
                {"query": {"cursor": "c2", "expand": "owners,stats"}},
            ],
        ),
        "FeatureStore/features/views/register": Case(
            IDIOM,
            [
                {"json": {"name": "users", "schema": {"age": "int"}}, "headers": AUTH},
                {
                    "json": {"name": "clicks", "source": "stream", "schema": {"last": "int"}, "force": True},
                    "headers": AUTH,
                },
                {"json": {"name": "clicks", "source": "stream", "schema": {"age": "int"}}, "headers": AUTH},
                {"json": {"name": "x", "source": "tape"}, "headers": AUTH},
                {"json": {"name": "x"}},
            ],
        ),
        "FeatureStore/features/materialize": Case(
            IDIOM,
            [
                {"json": {"view": "users", "days": ["05-01", "05-02", "05-03"]}, "headers": AUTH},
                {"json": {"view": "users", "days": ["05-01"]}, "headers": AUTH},
                {"json": {"view": "users"}, "headers": AUTH},
            ],
        ),
        "FeatureStore/features/freshness": Case(
            IDIOM,
            [
                {"query": {"views": "users,clicks"}},
                {"query": {"views": "users,clicks,geo"}},
                {},
            ],
        ),
        "ModelRegistry/models/{name}/versions": Case(
            IDIOM,
            [
                {"path": {"name": "churn"}, "json": {"run": "r1"}, "headers": AUTH},
                {
                    "path": {"name": "churn"},
                    "json": {"run": "r1", "parents": ["users", "clicks"]},
                    "headers": AUTH,
                },
                {"path": {"name": "churn"}, "json": {}, "headers": AUTH},
            ],
        ),
        "ModelRegistry/models/{name}/transition": Case(
            IDIOM,
            [
                {"path": {"name": "churn"}, "json": {"to": "staging"}, "headers": AUTH},
                {"path": {"name": "churn"}, "json": {"to": "production", "version": 4}, "headers": AUTH},
                {"path": {"name": "fraud"}, "json": {"to": "production"}, "headers": AUTH},
                {"path": {"name": "churn"}, "json": {"to": "archived"}, "headers": AUTH},
                {"path": {"name": "churn"}, "json": {"to": "nirvana"}, "headers": AUTH},
            ],
        ),
        "ModelRegistry/models/search": Case(
            IDIOM,
            [
                {"query": {"q": "churn"}},
                {"query": {"q": "churn", "mode": "vector", "limit": "3"}},
                {"query": {"q": "fraud", "mode": "text"}},
                {"query": {"q": "x", "mode": "graph"}},
            ],
        ),
        "ModelRegistry/models/{name}/rollback": Case(
            IDIOM,
            [
                {"path": {"name": "churn"}, "headers": AUTH},
                {"path": {"name": "churn"}},
            ],
        ),
        "ModelRegistry/models/{name}/card": Case(IDIOM, [{"path": {"name": "churn"}}]),
        "ModelRegistry/models/hooks": Case(
            IDIOM,
            [
                {
                    "json": {"status": "success", "model": "churn", "uri": "s3://m/1"},
                    "headers": {"x-event": "build"},
                },
                {"json": {"status": "error", "author": "ann@example.org"}, "headers": {"x-event": "build"}},
                {"json": {"tag": "v1", "models": ["churn", "fraud"]}, "headers": {"x-event": "tag"}},
                {"json": {}, "headers": {"x-event": "star"}},
            ],
        ),
        "Inference/predict/{model}": Case(
            IDIOM,
            [
                {
                    "path": {"model": "churn"},
                    "json": {"entity": "u1", "feature_names": ["users:age"]},
                    "headers": AUTH,
                },
                {"path": {"model": "churn"}, "json": {"entity": "u2", **DATA}, "headers": AUTH},
                {"path": {"model": "fraud"}, "json": {"entity": "u7", **DATA}, "headers": AUTH},
                {"path": {"model": "churn"}, "json": {"entity": "u1"}},
            ],
        ),
        "Inference/predict/ensemble": Case(
            IDIOM,
            [
                {"json": {"weights": {"a": 1.0, "b": 2.0, "c": 0.5}, "quorum": 2, **DATA}},
                {"json": {"weights": {"a": 1.0, "b": 2.0}, "quorum": 2, **DATA}},
                {"json": {"weights": {"a": 1.0, "b": 2.0}, **DATA}},
                {"json": {}},
            ],
        ),
        "Inference/explain/{model}": Case(
            IDIOM,
            [
                {"path": {"model": "churn"}, "json": DATA},
                {"path": {"model": "churn"}, "json": {"method": "importance"}},
            ],
        ),
        "Inference/embed": Case(
            IDIOM,
            [
                {"json": {"texts": ["a", "b", "c"]}},
                {"json": {"texts": ["d"]}},
                {"json": {"texts": ["a", "e"]}},
                {"json": {}},
            ],
        ),
        "Inference/v1/score": Case(
            IDIOM,
            [
                {"query": {"model": "churn", "entity": "u1"}},
                {"query": {"model": "fraud", "entity": "u2"}},
            ],
        ),
        "Inference/v2/score": Case(
            IDIOM,
            [
                {"json": {"model": "churn", "entities": ["u1", "u2"]}, "headers": AUTH},
                {"json": {"entities": ["u1", "u2", "u3"]}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
            ],
        ),
        "Inference/canary/{model}/step": Case(
            IDIOM,
            [
                {"path": {"model": "churn"}, "headers": AUTH},
                {"path": {"model": "fraud"}, "headers": AUTH},
            ],
        ),
        "BatchScoring/jobs/submit": Case(
            IDIOM,
            [
                {"json": {"table": "users"}, "headers": {**AUTH, "idempotency-key": "k1"}},
                {"json": {"table": "users"}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
            ],
        ),
        "BatchScoring/jobs/{job_id}/run": Case(
            IDIOM, [{"path": {"job_id": "j1"}}, {"path": {"job_id": "j2"}}]
        ),
        "BatchScoring/jobs/{job_id}": Case(
            IDIOM,
            [
                {"path": {"job_id": "j1"}},
                {"path": {"job_id": "j1"}, "query": {"wait": "2"}},
            ],
        ),
        "BatchScoring/jobs/{job_id}/cancel": Case(
            IDIOM,
            [
                {"path": {"job_id": "j1"}, "headers": AUTH},
                {"path": {"job_id": "j2"}, "headers": AUTH},
            ],
        ),
        "BatchScoring/jobs/{job_id}/export": Case(
            IDIOM,
            [
                {"path": {"job_id": "j1"}, "json": {"format": "csv", "email": "ann@example.org"}},
                {"path": {"job_id": "j1"}, "json": {}},
            ],
        ),
        "Training/train/submit": Case(
            IDIOM,
            [
                {"json": {"model": "churn", "gpus": 2, "tags": ["nightly", "gpu"]}, "headers": AUTH},
                {"json": {"model": "fraud", "params": {"depth": 3}}, "headers": AUTH},
                {"json": {"gpus": 99}, "headers": AUTH},
            ],
        ),
        "Training/train/pipeline": Case(
            IDIOM,
            [
                {"json": {"config": {"model": "churn", "min_auc": 0.6}}, "headers": AUTH},
                {"json": {"config": {"strict": False, "min_auc": 0.6}}},
                {"json": {"steps": ["snapshot", "fit"], "config": {"image": "lgbm:2"}}},
                {"json": {"steps": ["snapshot", "sacrifice"]}},
            ],
        ),
        "Training/train/sweep": Case(
            IDIOM,
            [
                {"json": {"space": {"depth": [2, 4], "eta": [0.1, 0.3]}, "submit": True}, "headers": AUTH},
                {"json": {"space": {"depth": [2, 4]}, "budget": 3}},
                {"json": {"space": {"depth": [2]}, "submit": True}, "headers": AUTH},
                {"json": {"space": {"depth": []}}},
            ],
        ),
        "Training/train/callback": Case(
            IDIOM,
            [
                {"json": {"event": "preempted", "run": "r1"}},
                {"json": {"event": "preempted", "run": "r1", "attempt": 3}},
                {"json": {"event": "finished", "run": "r1"}},
                {"json": {"event": "failed", "run": "r1"}},
                {"json": {"event": "moved"}},
            ],
        ),
        "Training/experiments/assign": Case(
            IDIOM,
            [
                {"json": {"experiment": "price", "user": 7}},
                {"json": {"experiment": "price", "user": 8}},
                {"json": {"experiment": "color", "user": "x"}},
            ],
        ),
        "Monitoring/drift/check": Case(
            IDIOM,
            [
                {"json": {"model": "churn"}},
                {
                    "json": {
                        "model": "churn",
                        "detectors": {"psi": {"threshold": 0.1}, "performance": {"min_labels": 10}},
                    }
                },
                {"json": {"detectors": {"nulls": {}}}},
                {"json": {"detectors": {"oracle": {}}}},
            ],
        ),
        "Monitoring/drift/baseline": Case(
            IDIOM,
            [
                {"json": {"model": "churn", "size": 6}, "headers": AUTH},
                {"json": {}, "headers": AUTH},
            ],
        ),
        "Monitoring/alerts/ingest": Case(
            IDIOM,
            [
                {"json": {"alerts": [{"name": "p99", "severity": "critical", "owner": "ann@example.org"}]}},
                {
                    "json": {
                        "alerts": [
                            {"name": "psi", "kind": "drift", "score": 0.7, "model": "churn"},
                            {"name": "cpu"},
                        ]
                    }
                },
                {"json": {"alerts": [{"name": "nulls", "kind": "drift", "score": 0.2}]}},
                {"json": {}},
            ],
        ),
        "Monitoring/usage/{tenant}": Case(
            IDIOM,
            [
                {"path": {"tenant": "acme"}},
                {"path": {"tenant": "acme"}, "headers": {"accept": "text/csv"}},
            ],
        ),
        "Monitoring/quotas/replay": Case(
            IDIOM,
            [
                {"json": {}, "headers": AUTH},
                {"json": {"targets": ["quota", "warehouse"]}, "headers": AUTH},
                {"json": {"targets": ["pigeon"], "dry_run": True}, "headers": AUTH},
            ],
        ),
    },
    {
        "Approvals/status": [
            {"state": "approved"},
            {"state": "approved"},
            {"state": "pending"},
            {"state": "rejected", "by": "bob"},
            {},
        ],
        "Artifacts/scan": [{}, {"findings": []}, {"findings": ["pickle"]}],
        "Artifacts/stage": [{"uri": "s3://staging/1"}],
        "Baselines/get": [{"bins": [0.5, 0.5]}, {"bins": [0.1, 0.9]}, {}],
        "Billing/default_rates": [{"predictions": 2}],
        "Billing/rates": [{"predictions": 3, "gpus": 10}, {}],
        "Catalog/get": [
            {
                "name": "users",
                "source": "online",
                "defaults": {"age": 0},
                "schema": {"age": "int"},
                "max_age": 60,
            },
            {"name": "clicks", "source": "stream", "schema": {"last": "int"}},
            {"name": "basket", "source": "request"},
            {"name": "old", "source": "tape"},
            {},
        ],
        "Catalog/list": [
            {"items": [{"name": "users", "team": "growth"}, {"name": "geo"}], "next": "c2"},
            {"items": []},
            {},
        ],
        "Catalog/register": [{"name": "users", "id": 5}],
        "DataQuality/validate": [{}, {"violations": []}, {"violations": ["nulls in age"]}],
        "Directory/teams": [{"growth": "ann"}, {}],
        "EventStore/read": [
            {
                "events": [
                    {"type": "reserved", "tenant": "a", "units": 3},
                    {"type": "released", "tenant": "a", "units": 1},
                ]
            },
            {"events": [{"type": "reset", "tenant": "a"}, {"type": "noted"}]},
            {"events": []},
            {},
        ],
        "EventStore/snapshot": [{"offset": 10, "balances": {"a": 4, "b": 1}}, {}],
        "Experiments/assignment": [{"arm": "blue"}, {}],
        "Experiments/get": [
            {"state": "running", "sticky": True, "arms": {"control": 50, "blue": 100}},
            {"state": "running", "arms": {"control": 10, "blue": 100}},
            {"state": "running"},
            {"state": "stopped", "winner": "blue"},
            {},
        ],
        "Explainer/shap": [{"values": {"age": 0.2}}, {}],
        "Fairness/report": [{"parity": 0.9}],
        "Flags/evaluate": [{"on": True}, {"on": False}, {}],
        "Identity/introspect": [
            {"active": True, "sub": "ann", "tenant": "acme", "scopes": ["admin"]},
            {"active": True, "sub": "bob", "tenant": "acme", "scopes": ["admin", "predict"]},
            {"active": True, "sub": "eve", "tenant": "evil", "scopes": ["predict", "batch", "train"]},
            {"active": True, "sub": "cat"},
            {"active": False},
        ],
        "JobStore/create": [{"id": "j9", "state": "queued"}],
        "JobStore/find": [{"jobs": [{"id": "j1", "state": "queued"}]}, {"jobs": []}, {}],
        "JobStore/get": [
            {"id": "j1", "state": "queued", "table": "users", "tenant": "acme", "lease": "l1"},
            {"id": "j1", "state": "partial", "failed": ["p2"], "model": "fraud"},
            {"id": "j1", "state": "running", "lease": "l1"},
            {"id": "j1", "state": "queued", "tenant": "other"},
            {"id": "j1", "state": "done"},
            {"id": "j1", "state": "cancelled"},
            {},
        ],
        "Lineage/downstream": [{"models": ["churn"]}, {"models": []}, {}],
        "Lineage/upstream": [{"nodes": ["users"]}],
        "Metadata/create": [{"version": 7}, {}],
        "Metadata/get": [
            {
                "version": 4,
                "stage": "staging",
                "uri": "s3://m/4",
                "metrics": {"auc": 0.9},
                "regions": ["eu", "us"],
            },
            {"version": 4, "stage": "staging", "uri": "s3://m/4", "metrics": {"auc": 0.85}},
            {"version": 5, "stage": "draft", "metrics": {"auc": 0.7}},
            {"version": 5, "stage": "draft"},
            {"version": 3, "stage": "production"},
            {"version": 2, "stage": "archived"},
            {},
        ],
        "Metadata/importance": [{"values": {"age": 0.6}}],
        "Metadata/list": [{"models": [{"model": "churn"}, {"model": "fraud"}]}, {}],
        "Metadata/versions": [
            {
                "versions": [
                    {"version": 3, "stage": "production"},
                    {"version": 2, "stage": "archived"},
                    {"version": 1, "stage": "archived", "regions": ["eu", "us"]},
                ]
            },
            {"versions": [{"version": 3, "stage": "production"}, {"version": 2, "stage": "archived"}]},
            {"versions": [{"version": 3, "stage": "production"}]},
            {},
        ],
        "Metrics/canary": [{"errors": 0.2}, {"errors": 0.01}, {}],
        "Metrics/range": [{"values": [0.0, 0.05]}, {"values": [0.3, 0.6]}, {"values": []}, {}],
        "ModelServer/embed": [{"vectors": [[0.1], [0.2]]}, {"vectors": [[0.3]]}, {}],
        "ModelServer/predict": [{"score": 0.9, "label": "yes"}, {"score": 0.2}, {}],
        "ModelServer/predict_batch": [{"scores": [0.1, 0.2]}, {"scores": []}, {}],
        "OfflineStore/scan": [
            {"rows": [{"id": 1}, {"id": 2}], "next": "n1"},
            {"rows": [{"id": 3}]},
            {"rows": []},
            {},
        ],
        "OnlineStore/read": [{"rows": {"u1": {"age": 31, "last": 2}, "u2": {"age": 40}}}, {"rows": {}}, {}],
        "OnlineStore/status": [{"age": 10}, {"age": 9000}, {}],
        "PredictionLog/histogram": [{"bins": [0.5, 0.5]}, {"bins": [0.9, 0.1]}, {}],
        "PredictionLog/join": [{"count": 80, "auc": 0.9}, {"count": 80, "auc": 0.5}, {"count": 2}, {}],
        "PredictionLog/sample": [{"scores": [0.1, 0.5, 0.93]}, {"scores": [0.4]}, {"scores": []}, {}],
        "Quota/reserve": [
            {"granted": True, "lease": "l1"},
            {"granted": True, "lease": "l2"},
            {"granted": False, "retry_after": 5},
            {},
        ],
        "Quota/usage": [{"resources": {"predictions": 100, "gpus": 3}}, {}],
        "Routes/get": [
            {"stable": "3"},
            {"stable": "3", "canary": "4", "weight": 100, "shadow": "5"},
            {"stable": "3", "canary": "4", "weight": 20, "updated": "05-01"},
            {"stable": "3", "shadow": "5"},
            {},
        ],
        "Scheduler/capacity": [{"available": True}, {"available": False}, {}],
        "Scheduler/logs": [{"lines": ["out of memory"]}, {}],
        "Scheduler/submit": [{"id": "s1", "run": "r1"}, {}],
        "Silences/active": [{"names": ["cpu", "p99"]}, {"names": []}, {}],
        "StreamStore/latest": [
            {"rows": {"u1": {"last": 5}, "u2": {"last": 6}, "u3": {}}},
            {"rows": {"u1": {"last": 5}}},
            {},
        ],
        "TextIndex/query": [{"hits": ["churn", "fraud"]}, {"hits": []}, {}],
        "Tracking/finish": [{"lease": "l1", "auto_register": True}, {"lease": "l1"}, {}],
        "Tracking/metrics": [{"auc": 0.9}, {"auc": 0.5}, {}],
        "Tracking/start": [{"id": "r1"}],
        "Trainer/trial": [{"loss": 0.3}, {"loss": 0.1}, {}],
        "VectorIndex/query": [{"hits": ["fraud", "ltv"]}, {"hits": []}, {}],
        "Warehouse/export": [{"url": "https://files/1"}, {"state": "running"}, {}],
        "Warehouse/export_status": [{"url": "https://files/1"}, {"state": "running"}, {"state": "failed"}],
        "Warehouse/partitions": [{"partitions": ["p1", "p2"]}, {"partitions": ["p1"]}, {}],
        "Warehouse/read": [{"rows": [{"id": 1}, {"id": 2}, {"name": "x"}]}, {"rows": []}, {}],
        "Warehouse/snapshot": [{"snapshot": "s1", "rows": 100}, {"snapshot": "s2", "rows": 40}, {}],
        "FeatureStore/features/online": [{"vectors": {"u1": {"users:age": 31}}, "degraded": []}],
        "ModelRegistry/models/{name}/versions": [{"name": "churn", "version": 3}],
        "Training/train/submit": [{"run": "r1", "job": "s1"}],
        "Training/train/pipeline": [{"snapshot": "s1"}],
        "Monitoring/alerts/ingest": [{"fired": {}, "failed": 0}],
    },
)
