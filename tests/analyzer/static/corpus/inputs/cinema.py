"""Requests to the cinema, written anew after umermansoor/microservices."""

from corpus.execution import Case, Inputs

INPUTS = Inputs(
    {
        "Users/": Case("handler"),
        "Users/users": Case("handler"),
        "Users/users/{name}": Case("handler", [{"path": {"name": "eve"}}, {}]),
        "Users/users/{name}/bookings": Case("loop of calls", [{"path": {"name": "eve"}}, {}]),
        "Users/users/{name}/suggested": Case("handler", completes=False),
        "Movies/movies/{movie}": Case("query"),
        "Movies/movies": Case("query"),
        "Showtimes/showtimes": Case("query"),
        "Showtimes/showtimes/{date}": Case("loop of calls"),
        "Bookings/bookings": Case("query"),
        "Bookings/bookings/{name}": Case("query"),
        "Bookings/bookings/new": Case(
            "queries, read then write", [{"json": {"user": "eve", "date": "20260101", "movie": "m"}}]
        ),
        "Api/overview/{name}": Case("errors become answers"),
        "Api/today": Case("errors become answers"),
    },
    {
        "Bookings/bookings/{name}": [{}, {"d1": ["m1", "m2"]}, {"d1": ["m1"], "d2": ["m3"]}],
        "Movies/movies/{movie}": [{"title": "t", "rating": 3}],
        "Showtimes/showtimes/{date}": [["t"]],
        "movies.showtimes_of_day": [[], [{"movies": []}], [{"movies": ["m1", "m2"]}]],
        "bookings.of_user": [[], [{"date": "d", "movies": ["m"]}]],
    },
)
