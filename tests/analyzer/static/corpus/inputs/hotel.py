"""Requests to the hotels, written anew after the hotel reservation of delimitrou/DeathStarBench."""

from corpus.execution import Case, Inputs

STAY = {"inDate": "2026-01-01", "outDate": "2026-01-02"}
BOOKING = {**STAY, "hotelId": "1", "customerName": "e", "username": "e", "password": "p"}

INPUTS = Inputs(
    {
        "Frontend/hotels": Case(
            "chain of calls, each may fail",
            [
                {"query": {**STAY, "lat": 1, "lon": 2}},
                {"query": STAY},
                {},
                {"query": {**STAY, "lat": "x", "lon": 2}},
            ],
        ),
        "Frontend/recommendations": Case(
            "chain of calls, each may fail", [{"query": {"require": "dis"}}, {}]
        ),
        "Frontend/user": Case("call", [{"query": {"username": "e", "password": "p"}}, {}]),
        "Frontend/reservation": Case(
            "chain of calls", [{"json": BOOKING}, {"json": STAY}, {"json": {**BOOKING, "inDate": "x"}}]
        ),
        "Search/nearby": Case("chain of calls", [{"json": {"lat": 1, "lon": 2}}]),
        "Geo/nearby": Case("query", [{"json": {"lat": 1, "lon": 2}}]),
        "Rate/rates": Case("loop of calls", [{"json": {"hotels": h}} for h in ([], ["1"], ["1", "2", "3"])]),
        "Profile/profiles": Case(
            "fan-out, list of futures", [{"json": {"hotels": h}} for h in ([], ["1"], ["1", "2"])]
        ),
        "Recommendation/recommend": Case(
            "handler", [{"json": {"require": "rate"}}, {"json": {"require": "x"}}]
        ),
        "Reservation/availability": Case(
            "loop of calls", [{"json": {"hotels": h}} for h in ([], ["1"], ["1", "2", "3"])]
        ),
        "Reservation/reserve": Case("queries, read then write", [{"json": {"hotel": "1", "customer": "e"}}]),
        "User/check": Case("query", [{"json": {"name": "e", "password": "p"}}]),
    },
    {
        "Search/nearby": [{"hotels": []}, {"hotels": ["1", "2"]}],
        "Geo/nearby": [{"hotels": ["1"]}],
        "Rate/rates": [[{"hotel": "1"}]],
        "Reservation/availability": [{"hotels": ["1"]}],
        "Reservation/reserve": [{"hotels": ["1"]}, {"hotels": []}],
        "Recommendation/recommend": [{"hotels": ["1"]}],
        "Profile/profiles": [[], [{"_id": "1"}]],
        "User/check": [{"correct": True}, {"correct": False}],
    },
)
