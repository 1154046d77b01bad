"""The airline's data: customers, a week of flights between all airports, and what airports are called."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

Document = dict[str, Any]

SEED = 2021
FIRST_DAY = datetime(2021, 7, 23, 23, tzinfo=UTC)
"""Midnight at GMT+1 of the first of seven days of flights."""
DAYS = 7
FLIGHTS_PER_DAY = 2
MILES_PER_HOUR = 600

ORIGINS = ("BOM", "DEL", "FRA", "HKG", "LHR", "YUL", "SVO", "JFK", "CDG", "FCO", "SIN", "SYD", "IKA", "NRT")
DESTINATIONS = (
    *(
        "AMS",
        "AKL",
        "BKK",
        "BRU",
        "CAI",
        "DXB",
        "FRA",
        "GVA",
        "HKG",
        "IST",
        "KHI",
        "KWI",
        "LOS",
        "LHR",
        "MNL",
    ),
    *("MEX", "YUL", "SVO", "NBO", "JFK", "CDG", "PRG", "GIG", "FCO", "SIN", "ARN", "SYD", "IKA", "NRT"),
)
PLACES = {
    "AKL": ("Auckland", -37.01, 174.79),
    "AMS": ("Amsterdam", 52.31, 4.76),
    "ARN": ("Stockholm", 59.65, 17.92),
    "BKK": ("Bangkok", 13.69, 100.75),
    "BOM": ("Mumbai", 19.09, 72.87),
    "BRU": ("Brussels", 50.90, 4.48),
    "CAI": ("Cairo", 30.12, 31.41),
    "CDG": ("Paris", 49.01, 2.55),
    "DEL": ("Delhi", 28.57, 77.10),
    "DXB": ("Dubai", 25.25, 55.36),
    "FCO": ("Rome", 41.80, 12.24),
    "FRA": ("Frankfurt", 50.03, 8.57),
    "GIG": ("Rio de Janeiro", -22.81, -43.25),
    "GVA": ("Geneva", 46.24, 6.11),
    "HKG": ("Hong Kong", 22.31, 113.91),
    "IKA": ("Tehran", 35.42, 51.15),
    "IST": ("Istanbul", 41.26, 28.74),
    "JFK": ("New York", 40.64, -73.78),
    "KHI": ("Karachi", 24.91, 67.16),
    "KWI": ("Kuwait", 29.23, 47.97),
    "LHR": ("London", 51.47, -0.45),
    "LOS": ("Lagos", 6.58, 3.32),
    "MEX": ("Mexico City", 19.44, -99.07),
    "MNL": ("Manila", 14.51, 121.02),
    "NBO": ("Nairobi", -1.32, 36.93),
    "NRT": ("Tokyo", 35.77, 140.39),
    "PRG": ("Prague", 50.10, 14.26),
    "SIN": ("Singapore", 1.36, 103.99),
    "SVO": ("Moscow", 55.97, 37.41),
    "SYD": ("Sydney", -33.95, 151.18),
    "YUL": ("Montreal", 45.47, -73.74),
}
EARTH_RADIUS = 3959
KNOWN_MILES = {("JFK", "CDG"): 3628}
"""What the airline says; all other distances are as the crow flies."""


def fill(database: Any) -> None:
    """Fill the database; called by mup with a pymongo database when the project starts."""
    for collection, documents in (
        ("n_customer", customers()),
        ("n_flightsegment", segments()),
        ("n_airportcodemapping", airports()),
    ):
        database[collection].delete_many({})
        database[collection].insert_many(documents)
    database.n_flightsegment.create_index([("originPort", 1), ("destPort", 1)])


def customers(number: int = 1000) -> list[Document]:
    """Return customers 1 to ``number`` - 1; there is no customer 0."""
    return [
        {
            "_id": f"uid{i}@email.com",
            "password": "password",
            "status": "GOLD",
            "total_miles": 1_000_000,
            "miles_ytd": 1000,
            "streetAddress1": "123 Main St.",
            "city": "Anytown",
            "stateProvince": "NC",
            "country": "USA",
            "postalCode": "27617",
            "phoneNumber": "919-123-4567",
            "phoneNumberType": "BUSINESS",
            "bookings": [],
            "sessions": [],
        }
        for i in range(1, number)
    ]


def segments() -> list[Document]:
    """Return every pair of airports that is flown, with its flights of all days."""
    ids = random.Random(SEED)
    pairs = [(o, d) for o in ORIGINS for d in DESTINATIONS if o != d]
    return [
        {
            "_id": _new_id(ids),
            "originPort": origin,
            "destPort": destination,
            "miles": str(miles(origin, destination)),
            "flights": _flights(miles(origin, destination), ids),
        }
        for origin, destination in pairs
    ]


def airports() -> list[Document]:
    """Return what the airports are called that travellers start from."""
    return [{"_id": code, "airportName": PLACES[code][0]} for code in ORIGINS]


def miles(origin: str, destination: str) -> int:
    """Return the length of a flight."""
    if (origin, destination) in KNOWN_MILES:
        return KNOWN_MILES[origin, destination]
    (_, lat1, lon1), (_, lat2, lon2) = PLACES[origin], PLACES[destination]
    phi1, phi2, between = math.radians(lat1), math.radians(lat2), math.radians(lon2 - lon1)
    cosine = math.sin(phi1) * math.sin(phi2) + math.cos(phi1) * math.cos(phi2) * math.cos(between)
    return round(EARTH_RADIUS * math.acos(cosine))


def _flights(distance: int, ids: random.Random) -> list[Document]:
    duration = round(distance / MILES_PER_HOUR * 3_600_000)
    midnights = [int((FIRST_DAY + timedelta(days=day)).timestamp()) * 1000 for day in range(DAYS)]
    return [
        {
            "_id": _new_id(ids),
            "scheduledDepartureTime": midnight,
            "scheduledArrivalTime": midnight + duration,
            "firstClassBaseCost": 500,
            "economyClassBaseCost": 200,
            "numFirstClassSeats": 10,
            "numEconomyClassSeats": 200,
            "airplaneTypeId": "B747",
        }
        for midnight in midnights
        for _ in range(FLIGHTS_PER_DAY)
    ]


def _new_id(ids: random.Random) -> str:
    return ids.randbytes(12).hex()
