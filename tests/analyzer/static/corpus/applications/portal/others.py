"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Users(MS):
    @EP("/badge")
    def badge_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/names")
    def names_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/create")
    def create_(self, comm: Communication) -> None:
        comm.respond({})


class Catalog(MS):
    @EP("/product")
    def product_(self, comm: Communication) -> None:
        comm.respond({})


class Reviews(MS):
    @EP("/latest")
    def latest_(self, comm: Communication) -> None:
        comm.respond({})


class Leases(MS):
    @EP("/acquire")
    def acquire_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/free")
    def free_(self, comm: Communication) -> None:
        comm.respond({})


class Search(MS):
    @EP("/suggest")
    def suggest_(self, comm: Communication) -> None:
        comm.respond({})


class Orders(MS):
    @EP("/place")
    def place_(self, comm: Communication) -> None:
        comm.respond({})


class Prices(MS):
    @EP("/price")
    def price_(self, comm: Communication) -> None:
        comm.respond({})


class Mirror(MS):
    @EP("/east")
    def east_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/west")
    def west_(self, comm: Communication) -> None:
        comm.respond({})


class Mail(MS):
    @EP("/welcome")
    def welcome_(self, comm: Communication) -> None:
        comm.respond({})


class Invites(MS):
    @EP("/use")
    def use_(self, comm: Communication) -> None:
        comm.respond({})


class Flaky(MS):
    @EP("/get")
    def get_(self, comm: Communication) -> None:
        comm.respond({})


class Audit(MS):
    @EP("/shop")
    def shop_(self, comm: Communication) -> None:
        comm.respond({})


class Reports(MS):
    @EP("/build")
    def build_(self, comm: Communication) -> None:
        comm.respond({})
