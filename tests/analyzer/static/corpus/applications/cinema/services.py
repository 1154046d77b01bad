from typing import Any

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, NoReplicaError


class NotFound(Exception):
    pass


class ServiceUnavailable(Exception):
    pass


def nice(comm: Communication, body: Any) -> None:
    comm.respond(body, headers={"Cache-Control": "no-store"})


class Users(MS):
    def setup(self) -> None:
        self.users = {"chris": {"id": "chris"}, "eve": {"id": "eve"}}

    @EP("/", method="GET")
    def hello(self, comm: Communication) -> None:
        nice(comm, {"uri": "/", "subresources": ["/users", "/users/<name>", "/users/<name>/bookings"]})

    @EP("/users", method="GET")
    def all(self, comm: Communication) -> None:
        nice(comm, self.users)

    @EP("/users/{name}", method="GET")
    def record(self, comm: Communication, name: str) -> None:
        if name not in self.users:
            comm.respond({"error": "not found"}, status=404)
            return
        nice(comm, self.users[name])

    @EP("/users/{name}/bookings", method="GET")
    def bookings(self, comm: Communication, name: str) -> None:
        if name not in self.users:
            comm.respond({"error": f"user {name!r} not found"}, status=404)
            return
        try:
            bookings = comm.call("Bookings", "/bookings/{name}", {"name": name}).get(check=False)
        except NoReplicaError:
            comm.respond({"error": "the bookings service is unavailable"}, status=503)
            return
        if bookings.status == 404:
            comm.respond({"error": f"no bookings for {name}"}, status=404)
            return
        result = {}
        for date, movies in bookings.body.items():
            result[date] = []
            for movie in movies:
                try:
                    found = comm.call("Movies", "/movies/{movie}", {"movie": movie}).get()
                except CommunicationError:
                    comm.respond({"error": "the movie service is unavailable"}, status=503)
                    return
                result[date].append({"title": found["title"], "rating": found["rating"]})
        nice(comm, result)

    @EP("/users/{name}/suggested", method="GET")
    def suggested(self, comm: Communication, name: str) -> None:
        raise NotImplementedError


class Movies(MS):
    @EP("/movies/{movie}", method="GET")
    def info(self, comm: Communication, movie: str) -> None:
        rows = comm.query("movies", "by_id", "movies", {"_id": movie}).get()
        if not rows:
            raise NotFound(movie)
        result = rows[0]
        result["uri"] = f"/movies/{movie}"
        nice(comm, result)

    @EP("/movies", method="GET")
    def all(self, comm: Communication) -> None:
        movies = comm.query("movies", "all", "movies", {}).get()
        for movie in movies:
            movie["uri"] = f"/movies/{movie['_id']}"
        nice(comm, movies)


class Showtimes(MS):
    @EP("/showtimes", method="GET")
    def all(self, comm: Communication) -> None:
        nice(comm, comm.query("movies", "showtimes", "showtimes", {}).get())

    @EP("/showtimes/{date}", method="GET")
    def record(self, comm: Communication, date: str) -> None:
        rows = comm.query("movies", "showtimes_of_day", "showtimes", {"date": date}).get()
        if not rows:
            comm.respond({"error": "no shows"}, status=404)
            return
        titles = [
            comm.call("Movies", "/movies/{movie}", {"movie": m}).get()["title"] for m in rows[0]["movies"]
        ]
        nice(comm, titles)


class Bookings(MS):
    @EP("/bookings", method="GET")
    def all(self, comm: Communication) -> None:
        nice(comm, comm.query("bookings", "all", "bookings", {}).get())

    @EP("/bookings/{name}", method="GET")
    def record(self, comm: Communication, name: str) -> None:
        rows = comm.query("bookings", "of_user", "bookings", {"user": name}).get()
        if rows:
            nice(comm, {row["date"]: row["movies"] for row in rows})
        else:
            comm.respond({"error": "not found"}, status=404)

    @EP("/bookings/new", method="POST")
    def new(self, comm: Communication) -> None:
        user, date, movie = comm.params.get("user"), comm.params.get("date"), comm.params.get("movie")
        shows = comm.call("Showtimes", "/showtimes/{date}", {"date": date}).get(check=False)
        if not shows.ok:
            comm.respond({"error": "no shows on that day"}, status=409)
            return
        rows = comm.query("bookings", "of_user", "bookings", {"user": user, "date": date}).get()
        try:
            rows[0]["movies"].append(movie)
            row = rows[0]
        except IndexError:
            row = {"user": user, "date": date, "movies": [movie]}
        change = {"filter": {"user": user, "date": date}, "update": {"$set": row}, "upsert": True}
        comm.query("bookings", "save", "bookings", {"$update": change}).get()
        comm.respond({"status": "booked"})


class Api(MS):
    """Everything of a user on one page; errors are raised deep inside and answered here."""

    def fetch(self, comm, service, path, params):
        try:
            return comm.call(service, path, params).get()
        except CallError as error:
            if error.status == 404:
                raise NotFound(path) from error
            raise ServiceUnavailable(service) from error
        except CommunicationError as error:
            raise ServiceUnavailable(service) from error

    @EP("/overview/{name}", method="GET")
    def overview(self, comm: Communication, name: str) -> None:
        try:
            user = self.fetch(comm, "Users", "/users/{name}", {"name": name})
            bookings = self.fetch(comm, "Bookings", "/bookings/{name}", {"name": name})
        except NotFound as error:
            comm.respond({"error": str(error)}, status=404)
        except ServiceUnavailable as error:
            comm.respond({"error": f"{error} is unavailable"}, status=503)
        else:
            comm.respond({"user": user, "bookings": bookings})

    @EP("/today", method="GET")
    def today(self, comm: Communication, date: str = "20260101") -> None:
        try:
            shows = self.fetch(comm, "Showtimes", "/showtimes/{date}", {"date": date})
        except NotFound:
            shows = []
        comm.respond({"shows": shows})
