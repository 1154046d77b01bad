"""The services behind."""

from mup import EP, MS


class Flights(MS):
    @EP("/book")
    def book(self, comm):
        comm.respond({})

    @EP("/cancel")
    def cancel(self, comm):
        comm.respond({})

    @EP("/price")
    def price(self, comm):
        comm.respond({})


class Hotels(MS):
    @EP("/price")
    def price(self, comm):
        comm.respond({})

    @EP("/page")
    def page(self, comm):
        comm.respond({})

    @EP("/book")
    def book(self, comm):
        comm.respond({})

    @EP("/v1/rooms/free")
    def v1_rooms_free(self, comm):
        comm.respond({})

    @EP("/v1/rooms/hold")
    def v1_rooms_hold(self, comm):
        comm.respond({})


class Cars(MS):
    @EP("/ship")
    def ship(self, comm):
        comm.respond({})

    @EP("/batch")
    def batch(self, comm):
        comm.respond({})

    @EP("/public")
    def public(self, comm):
        comm.respond({})

    @EP("/private")
    def private(self, comm):
        comm.respond({})

    @EP("/price")
    def price(self, comm):
        comm.respond({})

    @EP("/book")
    def book(self, comm):
        comm.respond({})


class Rules(MS):
    @EP("/risk")
    def risk(self, comm):
        comm.respond({})

    @EP("/limit")
    def limit(self, comm):
        comm.respond({})

    @EP("/paid")
    def paid(self, comm):
        comm.respond({})

    @EP("/state")
    def state(self, comm):
        comm.respond({})

    @EP("/audit")
    def audit(self, comm):
        comm.respond({})

    @EP("/price")
    def price(self, comm):
        comm.respond({})

    @EP("/stock")
    def stock(self, comm):
        comm.respond({})

    @EP("/rate")
    def rate(self, comm):
        comm.respond({})

    @EP("/user")
    def user(self, comm):
        comm.respond({})

    @EP("/lookup")
    def lookup(self, comm):
        comm.respond({})

    @EP("/exists")
    def exists(self, comm):
        comm.respond({})

    @EP("/parent")
    def parent(self, comm):
        comm.respond({})
