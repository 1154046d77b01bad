"""Requests to the recommendations, written anew after open-telemetry/opentelemetry-demo."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Recommendation/recommendations": Case("telemetry", [{"json": {"ids": ["a"]}}]),
        "Recommendation/detailed": Case("telemetry", [{"json": {"ids": ["a"]}}]),
        "Recommendation/health": Case("handler"),
        "Recommendation/traced": Case("telemetry"),
        "Recommendation/counted": Case("telemetry"),
        "Ads/ads": Case("telemetry", [{"json": {"keys": ["a", "b"]}}, {}]),
        "Flags/flags/{name}": Case("query"),
        "Catalog/products": Case("telemetry"),
        "Catalog/products/{id}": Case("telemetry"),
    },
    {
        "Catalog/products": [[{"id": "a"}, {"id": "b"}, {"id": "c"}], []],
        "Flags/flags/{name}": [{"enabled": True}, {"enabled": False}],
    },
)
