"""Deliveries whose couriers answer late, wrongly, or not at all."""

from corpus.execution import Case, Inputs

TENACITY, BACKOFF = "retry by tenacity", "retry by backoff"
CITY, ORDER = [{"json": {"city": "Graz"}}], [{"json": {"order": "o1"}}]

INPUTS = Inputs(
    {
        "Deliveries/quote": Case(TENACITY, CITY),
        "Deliveries/quote/or-default": Case(TENACITY, CITY),
        "Deliveries/book": Case(TENACITY, CITY),
        "Deliveries/delivered": Case(TENACITY, ORDER),
        "Deliveries/address": Case(BACKOFF, ORDER),
        "Deliveries/attempts": Case(TENACITY, ORDER),
        "Deliveries/call": Case(TENACITY, CITY),
        "Tracking/where": Case(TENACITY, ORDER),
        "Tracking/address": Case(BACKOFF, ORDER),
        "Tracking/ready": Case(BACKOFF, ORDER),
        "Tracking/attempts": Case(TENACITY, ORDER),
        "Couriers/quote": Case("handler", CITY),
        "Couriers/book": Case("query", [{"json": {"city": "Graz", "slot": 2}}]),
        "Couriers/state": Case("handler", ORDER),
        "Couriers/ready": Case("handler", ORDER),
        "Couriers/position": Case("query", ORDER),
        "Customers/address": Case("handler", ORDER),
    },
    {
        "Couriers/quote": [{"price": 4.5}],
        "Couriers/book": [{"number": 7}],
        "Couriers/state": [{"state": None}, {"state": "delivered"}],
        "Couriers/ready": [{"ready": False}, {"ready": True}],
        "Couriers/position": [{"x": 1, "y": 2}],
        "Customers/address": [{"street": "Ring 1"}],
        "orders.position": [[{"x": 1, "y": 2}]],
        "orders.book": [1],
        "orders.slot": [[{"slot": 1}]],
        "orders.order": [[{"_id": "o1"}]],
    },
)
