"""What the services of this application call: each answers whatever it is asked."""

from mup import EP, MS, Communication


class Anything(MS):
    @EP("/{rest}")
    def any(self, comm: Communication, rest: str) -> None:
        comm.respond({})


class Audit(Anything):
    pass


class Users(Anything):
    pass


class Prices(Anything):
    pass


class Backend(Anything):
    pass


class Worker(Anything):
    pass


class Locks(Anything):
    pass


class Tiles(Anything):
    pass


class Tree(Anything):
    pass


class Recommend(Anything):
    pass


class Bank(Anything):
    pass
