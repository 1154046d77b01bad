"""Requests to the suggestions, written anew after mozilla-services/merino-py."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Suggest/api/v1/suggest": Case(
            "fan-out, dynamic tasks",
            [
                {"query": {"q": "A"}, "headers": {"x-geo": "Rome"}},
                {"query": {"q": "A", "providers": "wiki,adm", "client_variants": "a,b"}},
                {"query": {"q": "A", "providers": "default,wiki"}, "headers": {"x-geo": "Rome"}},
                {"query": {"q": "A", "providers": "x"}},
            ],
        ),
        "Suggest/api/v1/simple": Case("fan-out, dynamic gather", [{"query": {"q": "a"}}]),
        "Suggest/api/v1/first": Case("fallback chain", [{"query": {"q": "a"}}]),
        "Suggest/api/v1/weather": Case("timeouts", [{"query": {"city": "Rome"}}, {}]),
        "Suggest/api/v1/providers": Case("handler"),
        "Geo/locate": Case("query", [{"json": {"name": "Rome"}}]),
        "Forecast/now": Case("cache", [{"json": {"key": "1"}}]),
        "Elastic/search": Case("query"),
    },
    {
        "Geo/locate": [{"key": "1"}],
        "Forecast/now": [{"t": 3}],
        "Elastic/search": [[], ["x"]],
        "adm.by_keyword": [[], [{"_id": "ad"}]],
    },
)
