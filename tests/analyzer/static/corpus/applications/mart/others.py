"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Stock(MS):
    @EP("/v1/level")
    def v1_level_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/v1/reserve")
    def v1_reserve_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/v1/release")
    def v1_release_(self, comm: Communication) -> None:
        comm.respond({})


class Pricing(MS):
    @EP("/quote")
    def quote_(self, comm: Communication) -> None:
        comm.respond({})


class Users(MS):
    @EP("/me")
    def me_(self, comm: Communication) -> None:
        comm.respond({})


class Bank(MS):
    @EP("/pay")
    def pay_(self, comm: Communication) -> None:
        comm.respond({})


class Audit(MS):
    @EP("/note")
    def note_(self, comm: Communication) -> None:
        comm.respond({})
