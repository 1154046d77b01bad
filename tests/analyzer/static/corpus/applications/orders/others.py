"""What the services of this application call: each answers whatever it is asked."""

from mup import EP, MS, Communication


class Anything(MS):
    @EP("/{rest}")
    def any(self, comm: Communication, rest: str) -> None:
        comm.respond({})


class Stock(Anything):
    pass


class Payment(Anything):
    pass


class Catalog(Anything):
    pass


class Vendors(Anything):
    pass


class Jobs(Anything):
    pass


class CustomersBackup(Anything):
    pass


class Audit(Anything):
    pass


class Feeds(Anything):
    pass


class Shipping(Anything):
    pass


class Auth(Anything):
    pass
