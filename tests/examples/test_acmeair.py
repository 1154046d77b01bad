"""The AcmeAir example: its data, what its services do, its sizes, and travellers on real services."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from applications import Browser
from browsing import visit
from example_systems import (
    EXAMPLES,
    Page,
    Steps,
    analysed,
    committed_model,
    drive,
    example,
    executed,
    fetch,
    lacking,
)

from analyzer.static import Application
from mup import MS
from mup.lqn.model import Model
from mup.lqn.statistics import Size, statistics
from mup.runtime.deployment.launcher import Deployment
from mup.testing import TestClient

sys.path.insert(0, str(EXAMPLES / "acmeair"))

from acmeair import data, work
from acmeair.auth import DAY, Auth, now
from acmeair.flights import departure
from acmeair.main import Main

LITTLE_WORK = {"MUP_WORK": "wait", "MUP_MAIN_MS": "0", "MUP_AUTH_MS": "0"}
TOKENS = "auth/acmeair-auth-service/rest/api/authtoken"
CREATE, VALIDATE, DELETE = f"{TOKENS}/byuserid/", f"{TOKENS}/validate", f"{TOKENS}/delete"
USER = "uid7@email.com"
DATE = "Sun Jul 25 2021 00:00:00 GMT+0100"
WISH = {"fromAirport": "JFK", "toAirport": "CDG", "fromDate": DATE, "oneWay": True}


def travelled(check: str) -> dict[str, set[Steps]]:
    """Return what a traveller makes the services do, where main checks sessions like this."""
    reads = {VALIDATE: {("aair.findSession",)}} if check == VALIDATE else {}
    return {
        "main/index.html": {()},
        "main/flights.html": {()},
        "main/checkin.html": {()},
        "main/rest/api/login": {("aair.findCustomer", CREATE)},
        "main/rest/api/flights/queryflights": {(check, "aair.findSegment", "aair.flightsOfDay")},
        "main/rest/api/bookings/bookflights": {(check, "aair.addBooking")},
        "main/rest/api/bookings/byuser/": {(check, "aair.findBookings")},
        "main/rest/api/bookings/cancelbooking": {(check, "aair.removeBooking")},
        "main/rest/api/login/logout": {(DELETE,)},
        CREATE: {("aair.addSession",)},
        DELETE: {("aair.removeSession",)},
        **reads,
    }


def not_travelled(check: str) -> dict[str, set[Steps]]:
    """Return the other paths there are: without a session, with a wrong one, there and back, the rest."""
    guarded = ("flights/queryflights", "bookings/bookflights", "bookings/byuser/", "bookings/cancelbooking")
    config = "main/rest/api/config"
    counted = ("countCustomers", "countFlightSegments", "countAirports")
    summed = ("countBookings", "countFlights", "countSessions")
    one_way = ("aair.findSegment", "aair.flightsOfDay")
    kinds = ("Customers", "Segments", "Airports")
    return {
        **{f"main/rest/api/{path}": {(), (check,)} for path in guarded},
        "main/rest/api/login": {(), ("aair.findCustomer",)},
        "main/rest/api/login/logout": {()},
        "main/rest/api/flights/queryflights": {(), (check,), (check, *one_way, *one_way)},
        "main/rest/api/bookings/bookflights": {(), (check,), (check, "aair.addBooking", "aair.addBooking")},
        "main/rest/api/customer/get/byid/": {(), (check,), (check, "aair.findCustomerById")},
        "main/rest/api/customer/set/byid/": {(), (check,), (check, "aair.setCustomer")},
        "main/rest/api/loader/load": {
            tuple(f"aair.{verb}{kind}" for kind in kinds for verb in ("delete", "insert"))
        },
        "main/rest/api/loader/query": {("aair.count",)},
        **{f"{config}/{name}": {("aair.count",)} for name in counted},
        **{f"{config}/{name}": {("aair.countItems",)} for name in summed},
        **{f"{config}/{name}": {()} for name in ("runtime", "dataServices", "activeDataService")},
        VALIDATE: {("aair.findSession",), ("aair.findSession", "aair.removeSession")},
        f"{TOKENS}/status": {()},
    }


# Data


def test_data_has_the_stated_size() -> None:
    """999 customers without a customer 0, 394 segments with 14 flights each, 14 airports; always the same."""
    ids = [customer["_id"] for customer in data.customers()]
    assert (len(ids), ids[0], ids[-1]) == (999, "uid1@email.com", "uid999@email.com")
    segments = data.segments()
    assert (len(segments), {len(s["flights"]) for s in segments}) == (394, {14})
    assert len(data.airports()) == 14
    assert segments == data.segments()
    assert len({f["_id"] for s in segments for f in s["flights"]}) == 394 * 14


def test_the_travellers_day_has_two_flights() -> None:
    """The date the client asks for is a midnight of the schedule, at GMT+1."""
    (segment,) = [s for s in data.segments() if (s["originPort"], s["destPort"]) == ("JFK", "CDG")]
    assert segment["miles"] == "3628"
    options = [f for f in segment["flights"] if f["scheduledDepartureTime"] == departure(DATE)]
    assert len(options) == 2
    hours = (options[0]["scheduledArrivalTime"] - options[0]["scheduledDepartureTime"]) / 3_600_000
    assert hours == pytest.approx(3628 / 600, abs=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "Sun Jul 25 2021 13:45:10 GMT+0100",
        "Sun Jul 25 2021 00:00:00 GMT+0100 (Central European Standard Time)",
    ],
)
def test_dates_are_days(text: str) -> None:
    """The time of the day does not matter, nor what browsers add."""
    assert departure(text) == departure(DATE)


# Work


def test_work_is_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes its time, and no core."""
    monkeypatch.setattr(work, "MODE", "wait")
    began, used = time.monotonic(), time.thread_time()
    work.compute(50)
    assert time.monotonic() - began >= 0.05
    assert time.thread_time() - used < 0.025


def test_work_is_on_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses a core, in proportion to what it is; a machine ten times as fast is thinkable."""
    monkeypatch.setattr(work, "MODE", "cpu")
    used = time.thread_time()
    work.compute(50)
    assert time.thread_time() - used > 0.005


# Services, one by one


ClientOf = Callable[[type[MS]], TestClient]


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientOf]:
    """Run the endpoints of a service in this process, with stubs for all others."""
    for name, value in LITTLE_WORK.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda service: stack.enter_context(TestClient(service))


@pytest.mark.parametrize(
    ("page", "size"), [("index.html", 5021), ("flights.html", 14961), ("checkin.html", 8593)]
)
def test_pages(client_of: ClientOf, page: str, size: int) -> None:
    """Pages are read from their files, which are as large as those of the published study."""
    answer = client_of(Main).get(f"/{page}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.content == (EXAMPLES / "acmeair" / "pages" / page).read_bytes()
    assert len(answer.content) == size


def test_log_in(client_of: ClientOf) -> None:
    """A known customer gets a session, in the answer and as a cookie."""
    client = client_of(Main)
    client.stub_query("aair", "findCustomer", [{"_id": USER}])
    client.stub("auth", "createSession", {"_id": f"{USER}-1"})
    answer = client.post("/rest/api/login", {"login": USER, "password": "password"})
    assert answer.status == 200
    assert answer.cookies == {"sessionid": f"{USER}-1"}
    assert answer.body == "logged in"


@pytest.mark.parametrize("form", [{}, {"login": USER}, {"login": USER, "password": "wrong"}])
def test_no_other_user_logs_in(client_of: ClientOf, form: dict[str, str]) -> None:
    """Without user, password, or with a wrong one, there is no session, and an old one is forgotten."""
    client = client_of(Main)
    client.stub_query("aair", "findCustomer", [])
    answer = client.post("/rest/api/login", form)
    assert (answer.status, answer.cookies) == (403, {"sessionid": ""})


PROTECTED = [
    ("POST", "/rest/api/flights/queryflights", WISH),
    ("POST", "/rest/api/bookings/bookflights", {"userid": USER, "toFlightId": "f"}),
    ("GET", f"/rest/api/bookings/byuser/?user={USER}", None),
    ("POST", "/rest/api/bookings/cancelbooking", {"number": "1", "userid": USER}),
    ("GET", f"/rest/api/customer/get/byid/?user={USER}", None),
]


@pytest.mark.parametrize(("method", "path", "params"), PROTECTED, ids=[p for _, p, _ in PROTECTED])
@pytest.mark.parametrize("cookies", [{}, {"sessionid": "expired-1"}], ids=["no cookie", "no session"])
def test_sessions_are_needed(
    client_of: ClientOf, method: str, path: str, params: Any, cookies: dict[str, str]
) -> None:
    """Who has no cookie, or one of no session, is refused."""
    client = client_of(Main)
    client.stub("auth", "validateSession", {})
    assert client.request(method, path, json=params, cookies=cookies).status == 403
    assert len(client.calls) == len(cookies)


def test_bad_dates_are_refused(client_of: ClientOf) -> None:
    """The message quotes the date."""
    client = client_of(Main)
    client.stub("auth", "validateSession", {"customerid": USER})
    wish = {**WISH, "fromDate": "tomorrow"}
    answer = client.post("/rest/api/flights/queryflights", wish, cookies={"sessionid": "x-1"})
    assert answer.status == 400
    assert "tomorrow" in answer.body["error"]


def test_there_and_back(client_of: ClientOf) -> None:
    """A return flight has two legs; where no airline flies, there is no flight."""
    client = client_of(Main)
    client.stub("auth", "validateSession", {"customerid": USER})
    client.stub_query("aair", "findSegment", [])
    wish = {**WISH, "oneWay": False, "returnDate": DATE}
    answer = client.post("/rest/api/flights/queryflights", wish, cookies={"sessionid": "x-1"})
    assert answer.body["tripLegs"] == 2
    assert [leg["flightsOptions"] for leg in answer.body["tripFlights"]] == [[], []]


@pytest.mark.parametrize(
    ("sessions", "valid"),
    [
        pytest.param([{"_id": "1", "timeoutTime": now() + DAY}], True, id="valid"),
        pytest.param([{"_id": "1", "timeoutTime": now() - 1}], False, id="expired"),
        pytest.param([], False, id="unknown"),
    ],
)
def test_sessions_are_checked(client_of: ClientOf, sessions: list[dict[str, Any]], valid: bool) -> None:
    """Only a session that has not expired names its customer; an expired one is removed."""
    client = client_of(Auth)
    removed = []
    client.stub_query("aair", "findSession", [{"sessions": sessions}] if sessions else [])
    client.stub_query("aair", "removeSession", lambda _, query: removed.append(query) or [{"matched": 1}])
    answer = client.post(VALIDATE.removeprefix("auth"), {"sess": f"{USER}-1"})
    assert answer.body == ({"_id": f"{USER}-1", "customerid": USER} if valid else {})
    assert len(removed) == (1 if sessions and not valid else 0)


# The model


@pytest.fixture(scope="module")
def application() -> Application:
    return analysed("acmeair")


@pytest.fixture(scope="module")
def model(application: Application) -> Model:
    return committed_model("acmeair", application)


@pytest.mark.parametrize("check", [CREATE, VALIDATE])
def test_analysis_finds_every_path(application: Application, check: str) -> None:
    """All that services can do is known from the source, with either check of sessions."""
    assert lacking(application, travelled(check)) == {}
    assert lacking(application, not_travelled(check)) == {}


def test_the_model_has_the_sizes_of_table_3(model: Model) -> None:
    """All seven numbers of the thesis, the arcs counted right, and the full view."""
    sizes = statistics(model)
    assert sizes.table3 == Size(4, 17, 35, 23, 11, 64, 11)
    assert sizes.correct_arcs == 76
    assert sizes.full == Size(4, 25, 67, 39, 11, 140, 11)


# The whole, for real


@pytest.fixture(scope="module")
def embedded_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path]:
    """What is left after travellers who were checked properly, and the log of it."""
    folder = tmp_path_factory.mktemp("log")
    project = example("acmeair", {**LITTLE_WORK, "ACMEAIR_SESSION_CHECK": "validateSession"})
    with Deployment(project, log_dir=folder) as deployment:
        drive(deployment, project, seconds=1.5)
        names = ("Customers", "FlightSegments", "Airports", "Flights", "Bookings", "Sessions")
        config = "/rest/api/config/count"
        left = {name: fetch(deployment, "main", "GET", f"{config}{name}").text for name in names}
    return left, folder


@pytest.mark.slow
@pytest.mark.services
def test_travellers_leave_nothing(embedded_run: tuple[dict[str, str], Path]) -> None:
    """After each cycle, bookings and sessions are gone."""
    left, _ = embedded_run
    assert left == {
        "Customers": "999",
        "FlightSegments": "394",
        "Airports": "14",
        "Flights": "5516",
        "Bookings": "0",
        "Sessions": "0",
    }


@pytest.mark.slow
@pytest.mark.services
def test_travellers_do_what_is_stated(embedded_run: tuple[dict[str, str], Path]) -> None:
    """With proper checks, 12 endpoints take one path each, with 6 calls."""
    _, folder = embedded_run
    seen = {
        label: steps
        for label, steps in executed(folder).items()
        if not label.startswith("main/rest/api/config")
    }
    assert seen == travelled(VALIDATE)


@pytest.fixture(scope="module")
def on_mongodb(mongod: Any) -> Iterator[Deployment]:
    """The project as it is, on a real MongoDB."""
    project = example("acmeair", LITTLE_WORK).with_database_uri("aair", mongod.uri)
    with Deployment(project) as deployment:
        drive(deployment, project, seconds=0.5)
        yield deployment


@pytest.mark.slow
@pytest.mark.services
def test_a_journey_on_a_real_mongodb(on_mongodb: Deployment) -> None:
    """Log in, look for a flight, book it, see it, cancel it, log out."""

    def ask(method: str, path: str, params: Any = None) -> Page:
        return fetch(on_mongodb, "main", method, f"/rest/api/{path}", params, cookie)

    cookie: dict[str, str] = {}
    answer = ask("POST", "login", {"login": USER, "password": "password"})
    assert answer.status == 200
    assert "Path=/" in answer.headers["set-cookie"]
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert ask("GET", "config/countSessions").text == "1"
    (leg,) = ask("POST", "flights/queryflights", WISH).json["tripFlights"]
    assert len(leg["flightsOptions"]) == 2
    flight = leg["flightsOptions"][0]
    assert (flight["flightSegment"]["originPort"], flight["airplaneTypeId"]) == ("JFK", "B747")
    booked = ask("POST", "bookings/bookflights", {"userid": USER, "toFlightId": flight["_id"]}).json
    (booking,) = ask("GET", f"bookings/byuser/?user={USER}").json
    assert booking["_id"] == booked["departBookingId"]
    assert (booking["customerId"], booking["flightId"]) == (USER, flight["_id"])
    assert ask("GET", "config/countBookings").text == "1"
    cancelled = ask("POST", "bookings/cancelbooking", {"number": booking["_id"], "userid": USER})
    assert cancelled.json == {"status": "success"}
    assert ask("GET", f"bookings/byuser/?user={USER}").json == []
    assert ask("POST", "login/logout").status == 200
    assert ask("GET", "config/countSessions").text == "0"


@pytest.mark.slow
@pytest.mark.services
def test_browsers_show_every_page(on_mongodb: Deployment) -> None:
    """All tags are closed, all links lead somewhere."""
    pages = visit(Browser(on_mongodb, "main"), "/index.html")
    assert set(pages) == {"/index.html", "/flights.html", "/checkin.html"}


@pytest.mark.slow
@pytest.mark.services
def test_accounts_change(on_mongodb: Deployment) -> None:
    """A customer's address is what it was set to; passwords stay inside."""
    cookie = {"Cookie": "sessionid=x-1"}
    path = "/rest/api/customer/get/byid/?user=uid9@email.com"
    account = fetch(on_mongodb, "main", "GET", path, headers=cookie).json
    assert (account["city"], "password" in account) == ("Anytown", False)
    changed = {**account, "city": "Otherville", "password": "secret"}
    answer = fetch(on_mongodb, "main", "POST", "/rest/api/customer/set/byid/", changed, cookie)
    assert (answer.status, answer.json["city"]) == (200, "Otherville")
    assert fetch(on_mongodb, "main", "GET", path, headers=cookie).json["city"] == "Otherville"


@pytest.mark.slow
@pytest.mark.services
def test_the_database_is_loaded_anew(on_mongodb: Deployment) -> None:
    """The loader takes the number of customers."""
    answer = fetch(on_mongodb, "main", "POST", "/rest/api/loader/load", {"numCustomers": 11})
    assert answer.text == "loaded 10 customers"
    assert fetch(on_mongodb, "main", "GET", "/rest/api/loader/query").text == "10"
    assert fetch(on_mongodb, "main", "GET", "/rest/api/config/countFlights").text == "5516"
