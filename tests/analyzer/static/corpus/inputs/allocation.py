"""Requests to the allocation service, written anew after cosmicpython/code."""

from corpus.execution import Case, Inputs

ORDER = [{"json": {"order": "o", "sku": "s", "qty": q}} for q in (1, 5, 100)]

INPUTS = Inputs(
    {
        "Allocation/batches": Case("message bus", [{"json": {"ref": "b", "sku": "s", "qty": 3}}]),
        "Allocation/allocate": Case("message bus", ORDER),
        "Allocation/allocate-directly": Case("unit of work", ORDER),
        "Allocation/batches/{ref}": Case("unit of work", [{"json": {"qty": 3}}]),
        "Allocation/allocations/{order}": Case("query"),
        "Mail/send": Case("handler"),
        "Broker/publish": Case("query", [{"json": {"channel": "c"}}]),
    },
    {
        "stock.batches": [[], [{"_id": "b", "qty": 3}], [{"_id": "b", "qty": 3}, {"_id": "c", "qty": 30}]],
        "stock.commit": [[]],
        "stock.rollback": [[]],
    },
)
