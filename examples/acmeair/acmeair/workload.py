"""Travellers: log in, look for flights a few times, book one, look at the booking and cancel it, log out."""

from __future__ import annotations

from typing import Any

from mup import Client, Communication

CUSTOMERS = 999
DATE = "Sun Jul 25 2021 00:00:00 GMT+0100"


class Traveller(Client):
    """User i travels as customer i + 1; the session is a cookie, which every user keeps."""

    patience = 600.0
    """Seconds to wait for an answer: a model knows no timeouts."""

    async def scenario(self, comm: Communication) -> None:
        """Travel once."""
        user = f"uid{self.index % CUSTOMERS + 1}@email.com"
        await self.think(0.15)
        await comm.call("main", "/index.html")
        await self.think(0.05)
        await comm.call("main", "/rest/api/login", {"login": user, "password": "password"})
        await self.think(1)
        await comm.call("main", "/flights.html")
        await self.think(1)
        flight = ""
        for _ in range(self.random.randint(1, 3)):
            found = await comm.call("main", "/rest/api/flights/queryflights", wish())
            flight = found["tripFlights"][0]["flightsOptions"][0]["_id"]
            await self.think(1)
        order = {"userid": user, "toFlightId": flight, "oneWayFlight": True}
        booked = await comm.call("main", "/rest/api/bookings/bookflights", order)
        await self.think(1)
        await comm.call("main", "/checkin.html")
        await comm.call("main", "/rest/api/bookings/byuser/", {"user": user})
        await self.think(1)
        booking = {"number": booked["departBookingId"], "userid": user}
        await comm.call("main", "/rest/api/bookings/cancelbooking", booking)
        await comm.call("main", "/rest/api/bookings/byuser/", {"user": user})
        await self.think(1)
        await comm.call("main", "/rest/api/login/logout")


def wish() -> dict[str, Any]:
    """Return what travellers look for."""
    return {"fromAirport": "JFK", "toAirport": "CDG", "fromDate": DATE, "oneWay": True}
