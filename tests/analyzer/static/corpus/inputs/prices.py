"""Requests to a comparison of prices."""

from corpus.execution import Case, Inputs

SKUS = [{"json": {"skus": s}} for s in ([], ["a"], ["a", "b"], ["xa", "b", "c"], list("abcde"))]
ONE = [{"json": {"sku": "a"}}]
DYNAMIC, FIXED, BOUNDED = "fan-out, list of futures", "fan-out, fixed", "fan-out, bounded by the source"

INPUTS = Inputs(
    {
        "Prices/basket": Case(DYNAMIC, SKUS),
        "Prices/basket/dict": Case(DYNAMIC, SKUS),
        "Prices/basket/loop": Case(DYNAMIC, SKUS),
        "Prices/basket/objects": Case(DYNAMIC, SKUS),
        "Prices/basket/three": Case(BOUNDED, SKUS),
        "Prices/basket/islice": Case(BOUNDED, SKUS),
        "Prices/basket/total": Case(DYNAMIC, SKUS),
        "Prices/basket/one-by-one": Case("loop of calls", SKUS),
        "Prices/compare/{sku}": Case(FIXED),
        "Prices/compare/{sku}/tolerant": Case(FIXED),
        "Prices/compare/{sku}/sorted": Case("futures through functions"),
        "Prices/compare/{sku}/chained": Case("futures through functions"),
        "Prices/compare/{sku}/reduced": Case("futures through functions"),
        "Prices/compare/{sku}/mapped": Case("futures through functions"),
        "Prices/compare/{sku}/grouped": Case("futures through functions"),
        "Prices/compare/{sku}/first": Case("futures through functions"),
        "Prices/compare/{sku}/zip": Case("futures through functions"),
        "Prices/pairs": Case(BOUNDED, SKUS),
        "Prices/chunks": Case("fan-out, limited concurrency", SKUS),
        "Prices/window": Case("fan-out, limited concurrency", SKUS),
        "Prices/report": Case(DYNAMIC, SKUS),
        "Stores/price": Case("query", ONE),
        "Stores/north": Case("handler", ONE),
        "Stores/south": Case("handler", ONE),
        "Stores/west": Case("handler", ONE),
    },
    {f"Stores/{name}": [{"price": 3}] for name in ("price", "north", "south", "west")},
)
