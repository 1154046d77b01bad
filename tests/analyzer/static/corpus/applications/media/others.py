"""What the services of this application call: each answers whatever it is asked."""

from mup import EP, MS, Communication


class Anything(MS):
    @EP("/{rest}")
    def any(self, comm: Communication, rest: str) -> None:
        comm.respond({})


class Index(Anything):
    pass


class Accounts(Anything):
    pass


class Packager(Anything):
    pass


class Rails(Anything):
    pass


class Thumbs(Anything):
    pass


class Storage(Anything):
    pass


class Scanner(Anything):
    pass


class Pricing(Anything):
    pass
