"""Flights between two airports on a day."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mup import Communication


def departure(text: str) -> int:
    """Return the midnight that begins a day, as flights have it: milliseconds since the epoch.

    Args:
        text: A date as browsers write it: ``Sun Jul 25 2021 00:00:00 GMT+0100``.

    Raises:
        ValueError: It is none.
    """
    date = datetime.strptime(text.partition(" (")[0], "%a %b %d %Y %H:%M:%S GMT%z")
    return int(date.replace(hour=0, minute=0, second=0).timestamp()) * 1000


def find_flights(comm: Communication, origin: str, destination: str, date: int) -> list[dict[str, Any]]:
    """Return the flights of a day, each with its segment."""
    segments = comm.query(
        "aair",
        "findSegment",
        "n_flightsegment",
        {
            "$command": "find",
            "filter": {"originPort": origin, "destPort": destination},
            "projection": ["_id"],
        },
    ).get()
    if not segments:
        return []
    of_the_day = comm.query(
        "aair",
        "flightsOfDay",
        "n_flightsegment",
        {
            "$command": "aggregate",
            "pipeline": [
                {"$match": {"_id": segments[0]["_id"]}},
                {"$unwind": "$flights"},
                {"$match": {"flights.scheduledDepartureTime": date}},
            ],
        },
    ).get()
    return [with_segment(segment) for segment in of_the_day]


def with_segment(segment: dict[str, Any]) -> dict[str, Any]:
    """Return the one flight of a segment that was unwound, and the segment in it."""
    return {
        **segment["flights"],
        "flightSegment": {key: segment[key] for key in ("_id", "originPort", "destPort", "miles")},
    }


def on_one_page(flights: list[dict[str, Any]]) -> dict[str, Any]:
    """Return flights as a list of which there is just one page."""
    return {
        "numPages": 1,
        "flightsOptions": flights,
        "currentPage": 0,
        "hasMoreOptions": False,
        "pageSize": 10,
    }
