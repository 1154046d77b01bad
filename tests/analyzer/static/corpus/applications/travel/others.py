"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Flights(MS):
    @EP("/search")
    def search(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/hold")
    def hold(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/seat")
    def seat(self, comm: Communication) -> None:
        comm.respond({})


class Hotels(MS):
    @EP("/search")
    def search(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/hold")
    def hold(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release(self, comm: Communication) -> None:
        comm.respond({})


class Cars(MS):
    @EP("/quote")
    def quote(self, comm: Communication) -> None:
        comm.respond({})


class Pay(MS):
    @EP("/charge")
    def charge(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/refund")
    def refund(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/points")
    def points(self, comm: Communication) -> None:
        comm.respond({})


class Mail(MS):
    @EP("/send")
    def send(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/alert")
    def alert(self, comm: Communication) -> None:
        comm.respond({})


class Risk(MS):
    @EP("/score")
    def score(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/visa")
    def visa(self, comm: Communication) -> None:
        comm.respond({})
