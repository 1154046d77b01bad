"""Main service for travellers: pages, logging in, flights, bookings, their account."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from acmeair import data
from acmeair.bookings import add_booking, bookings_of, remove_booking
from acmeair.flights import departure, find_flights, on_one_page
from acmeair.sessions import COOKIE, FORGOTTEN, SessionCheck, customer_of, refuse
from acmeair.work import compute, milliseconds
from mup import EP, MS, Communication

PAGES = Path(__file__).resolve().parents[1] / "pages"
HTML = {"Content-Type": "text/html; charset=utf-8"}


class Account(msgspec.Struct):
    """What customers can change about themselves; ``_id`` says whose account it is."""

    id: str = msgspec.field(name="_id")
    password: str
    streetAddress1: str  # noqa: N815 - as the page and the database call it
    city: str
    stateProvince: str  # noqa: N815
    country: str
    postalCode: str  # noqa: N815
    phoneNumber: str  # noqa: N815
    phoneNumberType: str = "BUSINESS"  # noqa: N815


class Main(MS):
    """The airline's website."""

    pool_size = 1
    port = 9100

    def setup(self) -> None:
        """Read how much work a request is, and how sessions are checked, once per worker."""
        self.work_ms = milliseconds("MUP_MAIN_MS", 0.5)
        self.check: SessionCheck = SessionCheck(os.environ.get("ACMEAIR_SESSION_CHECK", "validateSession"))

    # Pages

    @EP("/index.html", method="GET")
    def index_page(self, comm: Communication) -> None:
        """Where travellers log in."""
        send_page(comm, "index.html")

    @EP("/flights.html", method="GET")
    def flights_page(self, comm: Communication) -> None:
        """Where they look for flights and book them."""
        send_page(comm, "flights.html")

    @EP("/checkin.html", method="GET")
    def checkin_page(self, comm: Communication) -> None:
        """Where they see and cancel their bookings."""
        send_page(comm, "checkin.html")

    # Logging in and out

    @EP("/rest/api/login", name="Login", method="POST")
    def log_in(self, comm: Communication, login: str = "", password: str = "") -> None:
        """Begin a session."""
        compute(self.work_ms)
        if not (login and password and knows(comm, login, password)):
            comm.respond({"error": "wrong user or password"}, status=403, cookies=FORGOTTEN)
            return
        session = comm.call("auth", "createSession", {"user": login}).get()["_id"]
        comm.respond("logged in", cookies={COOKIE: session})

    @EP("/rest/api/login/logout", name="Logout", method="POST")
    def log_out(self, comm: Communication) -> None:
        """End the session, if there is one."""
        compute(self.work_ms)
        session = comm.cookies.get(COOKIE)
        if session:
            comm.call("auth", "deleteSession", {"sess": session}).get()
        comm.respond("logged out", cookies=FORGOTTEN)

    # Flights

    @EP("/rest/api/flights/queryflights", name="QueryFlights", method="POST")
    def query_flights(
        self,
        comm: Communication,
        fromAirport: str,  # noqa: N803 - as the page calls it; so below
        toAirport: str,  # noqa: N803
        fromDate: str,  # noqa: N803
        oneWay: bool = True,  # noqa: N803
        returnDate: str = "",  # noqa: N803
    ) -> None:
        """Return the flights of a day, and those back on another one."""
        customer = customer_of(comm, self.check)
        compute(self.work_ms)
        if customer is None:
            refuse(comm)
            return
        try:
            there = departure(fromDate)
            back = there if oneWay else departure(returnDate)
        except ValueError as error:
            comm.respond({"error": str(error)}, status=400)
            return
        legs = [on_one_page(find_flights(comm, fromAirport, toAirport, there))]
        if not oneWay:
            legs.append(on_one_page(find_flights(comm, toAirport, fromAirport, back)))
        comm.respond({"tripFlights": legs, "tripLegs": len(legs)})

    # Bookings

    @EP("/rest/api/bookings/bookflights", name="BookFlights", method="POST")
    def book_flights(
        self,
        comm: Communication,
        userid: str,
        toFlightId: str,  # noqa: N803
        oneWayFlight: bool = True,  # noqa: N803
        retFlightId: str = "",  # noqa: N803
    ) -> None:
        """Book a flight, and one back."""
        customer = customer_of(comm, self.check)
        compute(self.work_ms)
        if customer is None:
            refuse(comm)
            return
        answer = {"oneWay": oneWayFlight, "departBookingId": add_booking(comm, userid, toFlightId)}
        if not oneWayFlight:
            answer["returnBookingId"] = add_booking(comm, userid, retFlightId)
        comm.respond(answer)

    @EP("/rest/api/bookings/byuser/", name="BookingsByUser", method="GET")
    def bookings_by_user(self, comm: Communication, user: str) -> None:
        """Return a customer's bookings."""
        customer = customer_of(comm, self.check)
        compute(self.work_ms)
        if customer is None:
            refuse(comm)
            return
        comm.respond(bookings_of(comm, user))

    @EP("/rest/api/bookings/cancelbooking", name="CancelBookings", method="POST")
    def cancel_booking(self, comm: Communication, number: str, userid: str) -> None:
        """Cancel a booking."""
        customer = customer_of(comm, self.check)
        compute(self.work_ms)
        if customer is None:
            refuse(comm)
            return
        remove_booking(comm, userid, number)
        comm.respond({"status": "success"})

    # Accounts

    @EP("/rest/api/customer/get/byid/", name="GetAccount", method="GET")
    def get_account(self, comm: Communication, user: str) -> None:
        """Return a customer's profile and address."""
        if customer_of(comm, self.check) is None:
            refuse(comm)
            return
        compute(self.work_ms)
        found = comm.query("aair", "findCustomerById", "n_customer", {"_id": user}).get()
        if not found:
            comm.respond({"error": f"no customer {user!r}"}, status=404)
            return
        private = {"password", "bookings", "sessions"}
        comm.respond({key: value for key, value in found[0].items() if key not in private})

    @EP("/rest/api/customer/set/byid/", name="SetAccount", method="POST")
    def set_account(self, comm: Communication, account: Account) -> None:
        """Change a customer's password, address and telephone."""
        if customer_of(comm, self.check) is None:
            refuse(comm)
            return
        compute(self.work_ms)
        fields = msgspec.to_builtins(account)
        customer = {"_id": fields.pop("_id")}
        comm.query(
            "aair",
            "setCustomer",
            "n_customer",
            {"$command": "update", "filter": customer, "update": {"$set": fields}},
        ).get()
        comm.respond(account)

    # What is in the database

    @EP("/rest/api/loader/load", name="DBLoader", method="POST")
    def load_database(self, comm: Communication, numCustomers: int = 1000) -> None:  # noqa: N803
        """Begin anew, with other customers."""
        refill(comm, "Customers", "n_customer", data.customers(numCustomers))
        refill(comm, "Segments", "n_flightsegment", data.segments())
        refill(comm, "Airports", "n_airportcodemapping", data.airports())
        comm.respond(f"loaded {numCustomers - 1} customers")

    @EP("/rest/api/config/countCustomers", name="NumCustomers", method="GET")
    def count_customers(self, comm: Communication) -> None:
        """Return how many customers there are."""
        comm.respond(number_of(comm, "n_customer"))

    @EP("/rest/api/loader/query", name="NumCustomersQuery", method="GET")
    def count_customers_to_load(self, comm: Communication) -> None:
        """Return how many customers there are, to those who load."""
        comm.respond(number_of(comm, "n_customer"))

    @EP("/rest/api/config/countFlightSegments", name="NumFlightSegments", method="GET")
    def count_segments(self, comm: Communication) -> None:
        """Return how many pairs of airports there are."""
        comm.respond(number_of(comm, "n_flightsegment"))

    @EP("/rest/api/config/countAirports", name="NumAirports", method="GET")
    def count_airports(self, comm: Communication) -> None:
        """Return how many airports there are."""
        comm.respond(number_of(comm, "n_airportcodemapping"))

    @EP("/rest/api/config/countBookings", name="NumBookings", method="GET")
    def count_bookings(self, comm: Communication) -> None:
        """Return how many bookings all customers have."""
        comm.respond(items_in(comm, "n_customer", "bookings"))

    @EP("/rest/api/config/countFlights", name="NumFlights", method="GET")
    def count_flights(self, comm: Communication) -> None:
        """Return how many flights there are."""
        comm.respond(items_in(comm, "n_flightsegment", "flights"))

    @EP("/rest/api/config/countSessions", name="NumSessions", method="GET")
    def count_sessions(self, comm: Communication) -> None:
        """Return how many customers' sessions there are."""
        comm.respond(items_in(comm, "n_customer", "sessions"))

    @EP("/rest/api/config/runtime", name="Runtime", method="GET")
    def runtime_name(self, comm: Communication) -> None:
        """Say what runs this."""
        comm.respond([{"name": "Runtime", "description": "mup"}])

    @EP("/rest/api/config/dataServices", name="DataServices", method="GET")
    def data_services(self, comm: Communication) -> None:
        """Say where data can be."""
        comm.respond([{"name": "mongo", "description": "MongoDB"}])

    @EP("/rest/api/config/activeDataService", name="ActiveDataService", method="GET")
    def active_data_service(self, comm: Communication) -> None:
        """Say where data is."""
        comm.respond("mongo")


def send_page(comm: Communication, name: str) -> None:
    """Answer with a page, read from its file."""
    file = PAGES / name
    if file.is_file():
        comm.respond(file.read_bytes(), headers=HTML)
    else:
        comm.respond(f"no page {name}", status=404)


def knows(comm: Communication, login: str, password: str) -> bool:
    """Return whether there is such a customer."""
    found = comm.query(
        "aair",
        "findCustomer",
        "n_customer",
        {"$command": "find", "filter": {"_id": login, "password": password}, "projection": ["_id"]},
    ).get()
    return bool(found)


def refill(comm: Communication, what: str, collection: str, documents: list[data.Document]) -> None:
    """Replace all documents of a collection."""
    comm.query("aair", f"delete{what}", collection, {"$command": "delete", "filter": {}, "many": True}).get()
    comm.query("aair", f"insert{what}", collection, {"$command": "insert", "documents": documents}).get()


def number_of(comm: Communication, collection: str) -> str:
    """Return how many documents a collection has, as text."""
    counted = comm.query("aair", "count", collection, {"$command": "count"}).get()
    return str(counted[0]["count"])


def items_in(comm: Communication, collection: str, field: str) -> str:
    """Return how many items the lists in a field have together, as text."""
    pipeline = [
        {"$project": {"items": {"$size": f"${field}"}}},
        {"$group": {"_id": None, "items": {"$sum": "$items"}}},
    ]
    summed = comm.query(
        "aair", "countItems", collection, {"$command": "aggregate", "pipeline": pipeline}
    ).get()
    return str(summed[0]["items"] if summed else 0)
