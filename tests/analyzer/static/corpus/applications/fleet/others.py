"""What the services of this application call, as stubs."""

from mup import EP, MS, Communication


class Surge(MS):
    @EP("/factor")
    def factor_(self, comm: Communication) -> None:
        comm.respond({})


class Maps(MS):
    @EP("/route")
    def route_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/ping")
    def ping_(self, comm: Communication) -> None:
        comm.respond({})


class Drivers(MS):
    @EP("/hold")
    def hold_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/release")
    def release_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/offer")
    def offer_(self, comm: Communication) -> None:
        comm.respond({})


class Payments(MS):
    @EP("/authorize")
    def authorize_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/void")
    def void_(self, comm: Communication) -> None:
        comm.respond({})


class Vehicles(MS):
    @EP("/reserve")
    def reserve_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/free")
    def free_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/quote")
    def quote_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/state")
    def state_(self, comm: Communication) -> None:
        comm.respond({})


class Notify(MS):
    @EP("/notify-low")
    def notify_low_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/notify-high")
    def notify_high_(self, comm: Communication) -> None:
        comm.respond({})


class Pager(MS):
    @EP("/page")
    def page_(self, comm: Communication) -> None:
        comm.respond({})


class Accounts(MS):
    @EP("/costs")
    def costs_(self, comm: Communication) -> None:
        comm.respond({})


class Locks(MS):
    @EP("/lock")
    def lock_(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/unlock")
    def unlock_(self, comm: Communication) -> None:
        comm.respond({})
