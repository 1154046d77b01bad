import re

from mup import EP, MS, Communication
from mup.errors import CommunicationError

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
REQUIRE = ("dis", "rate", "price")


def geo_json(hotels):
    return {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "id": h["_id"], "properties": {"name": h.get("name")}} for h in hotels
        ],
    }


class Frontend(MS):
    runtime = "thread"
    pool_size = 32

    @EP("/hotels", method="GET")
    def hotels(self, comm: Communication) -> None:
        p = comm.params
        inside, outside = p.get("inDate", ""), p.get("outDate", "")
        if inside == "" or outside == "":
            comm.respond("Please specify inDate/outDate params", status=400)
            return
        lat, lon = p.get("lat", ""), p.get("lon", "")
        if lat == "" or lon == "":
            comm.respond("Please specify location params", status=400)
            return
        try:
            nearby = comm.call("Search", "/nearby", {"lat": float(lat), "lon": float(lon)}).get()
        except CommunicationError as error:
            comm.respond(str(error), status=500)
            return
        locale = p.get("locale") or "en"
        try:
            available = comm.call("Reservation", "/availability", {"hotels": nearby["hotels"]}).get()
        except CommunicationError as error:
            comm.respond(str(error), status=500)
            return
        try:
            profiles = comm.call(
                "Profile", "/profiles", {"hotels": available["hotels"], "locale": locale}
            ).get()
        except CommunicationError as error:
            comm.respond(str(error), status=500)
            return
        comm.respond(geo_json(profiles), headers={"Access-Control-Allow-Origin": "*"})

    @EP("/recommendations", method="GET")
    def recommendations(self, comm: Communication) -> None:
        p = comm.params
        require = p.get("require", "")
        if require != "dis" and require != "rate" and require != "price":
            comm.respond("Please specify require params", status=400)
            return
        found = comm.call("Recommendation", "/recommend", {"require": require}).get(check=False)
        if not found.ok:
            return comm.respond(found.body, status=500)
        profiles = comm.call("Profile", "/profiles", {"hotels": found.body["hotels"]}).get(check=False)
        if not profiles.ok:
            return comm.respond(profiles.body, status=500)
        comm.respond(geo_json(profiles.body))

    @EP("/user", method="GET")
    def user(self, comm: Communication) -> None:
        name, password = comm.params.get("username"), comm.params.get("password")
        if not (name and password):
            comm.respond("Please specify username and password", status=400)
            return
        correct = comm.call("User", "/check", {"name": name, "password": password}).get()["correct"]
        comm.respond({"message": "Login successfully!" if correct else "Failed."})

    @EP("/reservation", method="POST")
    def reservation(self, comm: Communication) -> None:
        p = comm.params
        for name in ("inDate", "outDate", "hotelId", "customerName", "username", "password"):
            if not p.get(name):
                comm.respond(f"Please specify {name}", status=400)
                return
        if not all(DATE.fullmatch(p[d]) for d in ("inDate", "outDate")):
            comm.respond("Please check inDate/outDate format", status=400)
            return
        message = "Reserve successfully!"
        user = comm.call("User", "/check", {"name": p["username"], "password": p["password"]}).get()
        if not user["correct"]:
            message = "Failed. Please check your username and password."
        made = comm.call(
            "Reservation", "/reserve", {"hotel": p["hotelId"], "customer": p["customerName"]}
        ).get()
        if not made["hotels"]:
            message = "Failed. Already reserved."
        comm.respond({"message": message})


class Search(MS):
    @EP("/nearby")
    def nearby(self, comm: Communication, lat: float, lon: float) -> None:
        near = comm.call("Geo", "/nearby", {"lat": lat, "lon": lon}).get()
        rates = comm.call("Rate", "/rates", {"hotels": near["hotels"]}).get()
        comm.respond({"hotels": [plan["hotel"] for plan in rates]})


class Geo(MS):
    @EP("/nearby")
    def nearby(self, comm: Communication, lat: float, lon: float) -> None:
        points = comm.query("geo", "points", "points", {}).get()
        near = sorted(points, key=lambda p: (p.get("lat", 0) - lat) ** 2 + (p.get("lon", 0) - lon) ** 2)
        comm.respond({"hotels": [p["_id"] for p in near[:5]]})


class Rate(MS):
    """Rates from the cache; what is missing is fetched from the database, one by one, and put there."""

    @EP("/rates")
    def rates(self, comm: Communication, hotels: list[str]) -> None:
        cached = {
            r["_id"]: r for r in comm.query("ratecache", "many", "rates", {"_id": {"$in": hotels}}).get()
        }
        plans = []
        for hotel in hotels:
            if hotel in cached:
                plans.append(cached[hotel])
                continue
            rows = comm.query("rates", "of_hotel", "rates", {"hotel": hotel}).get()
            comm.query("ratecache", "put", "rates", {"$insert": [{"_id": hotel, "rates": rows}]})
            plans.extend(rows)
        plans.sort(key=lambda plan: plan.get("rate", 0), reverse=True)
        comm.respond([{"hotel": p.get("hotel", p.get("_id"))} for p in plans])


class Profile(MS):
    @EP("/profiles")
    def profiles(self, comm: Communication, hotels: list[str], locale: str = "en") -> None:
        """All missing profiles at the same time."""
        futures = {h: comm.query("profiles", "one", "profiles", {"_id": h, "locale": locale}) for h in hotels}
        comm.respond([row for future in futures.values() for row in future.get()])


class Recommendation(MS):
    def setup(self) -> None:
        self.hotels = [{"id": str(i), "rate": i % 3, "price": 100 - i, "dis": i} for i in range(10)]

    @EP("/recommend")
    def recommend(self, comm: Communication, require: str) -> None:
        if require not in REQUIRE:
            raise ValueError(require)
        best = min(h[require] for h in self.hotels)
        comm.respond({"hotels": [h["id"] for h in self.hotels if h[require] == best]})


class Reservation(MS):
    @EP("/availability")
    def availability(self, comm: Communication, hotels: list[str]) -> None:
        free = []
        for hotel in hotels:
            capacity = comm.query("reservation", "capacity", "hotels", {"_id": hotel}).get()
            if not capacity:
                continue
            taken = comm.query("reservation", "taken", "reservations", {"hotel": hotel}).get()
            if len(taken) < capacity[0].get("rooms", 1):
                free.append(hotel)
        comm.respond({"hotels": free})

    @EP("/reserve")
    def reserve(self, comm: Communication, hotel: str, customer: str) -> None:
        taken = comm.query("reservation", "taken", "reservations", {"hotel": hotel}).get()
        if len(taken) > 1:
            comm.respond({"hotels": []})
            return
        row = {"hotel": hotel, "customer": customer}
        comm.query("reservation", "insert", "reservations", {"$insert": [row]}).get()
        comm.respond({"hotels": [hotel]})


class User(MS):
    @EP("/check")
    def check(self, comm: Communication, name: str, password: str) -> None:
        users = comm.query("users", "by_name", "users", {"name": name}).get()
        comm.respond({"correct": any(u.get("password") == password for u in users)})
