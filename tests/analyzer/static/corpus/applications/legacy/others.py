"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Audit(MS):
    @EP("/write")
    def write_(self, comm: Communication) -> None:
        comm.respond({})


class Users(MS):
    @EP("/by-id")
    def by_id_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/name")
    def name_(self, comm: Communication) -> None:
        comm.respond({})


class Prices(MS):
    @EP("/current")
    def current_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/rebate")
    def rebate_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/table")
    def table_(self, comm: Communication) -> None:
        comm.respond({})


class Backend(MS):
    @EP("/primary")
    def primary_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/secondary")
    def secondary_(self, comm: Communication) -> None:
        comm.respond({})


class Worker(MS):
    @EP("/work")
    def work_(self, comm: Communication) -> None:
        comm.respond({})


class Locks(MS):
    @EP("/take")
    def take_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/give")
    def give_(self, comm: Communication) -> None:
        comm.respond({})


class Tiles(MS):
    @EP("/tile")
    def tile_(self, comm: Communication) -> None:
        comm.respond({})


class Tree(MS):
    @EP("/node")
    def node_(self, comm: Communication) -> None:
        comm.respond({})


class Recommend(MS):
    @EP("/for")
    def for_(self, comm: Communication) -> None:
        comm.respond({})


class Bank(MS):
    @EP("/hold")
    def hold_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/capture")
    def capture_(self, comm: Communication) -> None:
        comm.respond({})
