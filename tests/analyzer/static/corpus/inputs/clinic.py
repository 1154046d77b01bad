"""Requests to the clinic, written anew after spring-petclinic/spring-petclinic-microservices."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "ApiGateway/owners/{owner}": Case("circuit breaker"),
        "ApiGateway/owners/{owner}/plain": Case("fallback per part"),
        "ApiGateway/chat": Case("circuit breaker", [{"json": {"question": "x"}}]),
        "ApiGateway/vets": Case("call"),
        "Customers/owners/{owner}": Case("queries side by side"),
        "Customers/owners": Case(
            "early responses",
            [{"json": {"first": "a", "last": "b"}}, {"json": {"first": "", "last": "b", "telephone": "x"}}],
        ),
        "Customers/owners/{owner}/pets/{pet}": Case("queries, read then write"),
        "Visits/pets/visits": Case("query", [{"json": {"pets": [1]}}]),
        "Visits/owners/{owner}/pets/{pet}/visits": Case("query"),
        "Vets/vets": Case("cache"),
        "GenAi/chat": Case(
            "calls by a condition", [{"json": {"question": q}} for q in ("x", "which vet", "owner")]
        ),
    },
    {
        "Customers/owners/{owner}": [{"pets": []}, {"pets": [{"id": 1}]}],
        "Visits/pets/visits": [{"items": []}, {"items": [{"pet": 1}]}],
        "Vets/vets": [[], [{"name": "v"}]],
        "GenAi/chat": [{"answer": "a"}],
        "customers.pets": [[], [{"id": 1}]],
    },
)
